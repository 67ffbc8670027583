"""Labels and verdicts made up from the counts of a 2 x 2 table."""

from misslink.calibration import calibrate, read_verdicts
from misslink.io.labels import read_labels

METRIC = "faithfulness"
CELLS = ((True, 0.9), (True, 0.2), (False, 0.8), (False, 0.1))  # by people, and the judge's score


def table(true_good=40, false_bad=10, false_good=20, true_bad=30, **more):
    """Verdicts and labels of one annotator; scores are 0.9 and 0.2, 0.8 and 0.1."""
    counts = (true_good, false_bad, false_good, true_bad)
    verdicts, labels = [], []
    for (good, score), count in zip(CELLS, counts, strict=True):
        for _ in range(count):
            case = f"c{len(verdicts)}"
            verdicts.append(verdict(case, score, **more))
            labels.append(label(case, good))
    return verdicts, labels


def verdict(case, score, **more):
    return {"case_id": case, "metric": METRIC, "value": score, "probability": score, **more}


def label(case, good, annotator="ada", **more):
    return {
        "case_id": case, "metric": METRIC, "label": float(good), "annotator": annotator, **more
    }  # fmt: skip


def held(verdicts, labels, metric=METRIC, **options):
    """The document of a calibration."""
    everyone = options.pop("all_verdicts", None)
    if everyone is not None:
        options["all_verdicts"] = read_verdicts(everyone, metric)
    return calibrate(read_verdicts(verdicts, metric), read_labels(labels), **options).document()
