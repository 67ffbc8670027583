"""Labels that people gave: numbers that scikit-learn gives too, and what is known of the sets."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from misslink.calibration import calibrate, read_verdicts
from misslink.calibration.people import agreement
from misslink.files.labels import read_labels

DATA = Path(__file__).parents[3] / "shared" / "data"


def needed(*parts):
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the data set {'/'.join(parts)} is not here")
    return path


@pytest.fixture(scope="module")
def relevance():
    """3,000 passages graded 0 to 4 by people and by a language model, as verdicts and labels."""
    with needed("judges", "rag25_human_vs_umbrela2.tsv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))[:3000]
    verdicts, labels = [], []
    for number, row in enumerate(rows):
        case = {"case_id": f"c{number}", "metric": "relevance"}
        verdicts.append({**case, "value": int(row["umbrela2"]) / 4})
        labels.append({**case, "label": int(row["human"]) / 4, "annotator": "nist"})
    return verdicts, labels


def test_agreement_on_graded_relevance_is_what_scikit_learn_and_scipy_say(relevance):
    metrics = pytest.importorskip("sklearn.metrics")
    from scipy import stats

    verdicts, labels = relevance
    document = calibrate(read_verdicts(verdicts, "relevance"), read_labels(labels))
    score = [one["value"] for one in verdicts]
    human = [one["label"] for one in labels]
    good, called = [h >= 0.5 for h in human], [s >= 0.5 for s in score]
    found = {name: each["value"] for name, each in document["agreement"].items()}
    expected = {
        "kappa": metrics.cohen_kappa_score(good, called),
        "auroc": metrics.roc_auc_score(good, score),
        "average_precision": metrics.average_precision_score(good, score),
        "f1": metrics.f1_score(good, called),
        "precision": metrics.precision_score(good, called),
        "recall": metrics.recall_score(good, called),
        "balanced_accuracy": metrics.balanced_accuracy_score(good, called),
        "spearman": stats.spearmanr(human, score).statistic,
        "kendall": stats.kendalltau(human, score).statistic,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    bad = metrics.f1_score([not g for g in good], [not c for c in called])
    assert document["detection"]["f1"]["value"] == pytest.approx(bad)
    assert document["threshold"] == 0.5


def test_two_annotators_of_ragchecker_agree_on_every_second_pair():
    path = needed("judges", "ragchecker_pairs_dev.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    labels = read_labels(
        [
            {
                "case_id": row["id"],
                "metric": "b_is_better",
                "label": (grade + 2) / 4,
                "annotator": name,
            }
            for row in rows
            for name, grade in zip(("x", "y"), row["human_overall"], strict=True)
        ]
    )
    exact = sum(row["human_overall"][0] == row["human_overall"][1] for row in rows) / len(rows)
    assert exact == pytest.approx(0.55, abs=0.02)  # of the whole set, 0.55
    found = agreement(labels.items, {}, seed=0)
    assert found["annotators"] == 2
    assert found["percent"].value > exact  # on the better side or not, grades apart
    assert 0 < found["alpha_ordinal"].value < 1
    assert found["copies"] == []


def test_the_length_alone_finds_seven_of_ten_in_ragtruth():
    path = needed("faithfulness", "ragtruth_qa_dev.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    verdicts, labels = [], []
    for row in rows:
        case = {"case_id": row["id"], "metric": "faithfulness"}
        verdicts.append({**case, "value": 1.0, "answer": row["answer"], "model": row["model"]})
        labels.append({**case, "label": not row["human_hallucinated"], "annotator": "ragtruth"})
    document = calibrate(read_verdicts(verdicts, "faithfulness"), read_labels(labels))
    assert document["baselines"]["length"]["auroc"] == pytest.approx(0.70, abs=0.005)
    assert (document["n"], document["positives"]) == (258, 208)
    assert document["verdict"] == "do not use"  # it calls everything good
    assert document["corrected"]["rogan_gladen"]["value"] is None
    assert document["corrected"]["labelled_only"]["value"] == pytest.approx(208 / 258)
