"""Judged runs with a calibration, made up from marks: what the judge says, and what people say."""

from misslink.calibration import calibrate, verdicts_from_run
from misslink.calibration.stored_calibration import merge_calibration
from misslink.io.labels import read_labels
from misslink.types import Case, PromptRef, Run, Trace, Verdict

PROMPT = PromptRef(name="examination", version=1, sha256="ab" * 32)


def judged_run(said, *, metric="faithfulness", judge="openai:m", prompt=PROMPT, answer="It is so."):
    """A run of a case for each mark in `said`: '1' and '0' as the judge calls it, 'f' failed."""
    ids = [f"c{at}" for at in range(len(said))]
    return Run(
        manifest={"judge": judge, "k": 1, "seed": 0},
        cases=tuple(Case(id=one, question=f"{one}?", relevant=["p"]) for one in ids),
        traces=tuple(Trace(case_id=one, answer=f"{answer} {one}") for one in ids),
        verdicts=tuple(
            _verdict(one, mark, metric, judge, prompt) for one, mark in zip(ids, said, strict=True)
        ),
        links=(),
        summary={},
    )


def labels_of(said, *, metric="faithfulness", annotator="ada", **more):
    """Labels by one person: '1' and '0' by case, '-' not labelled."""
    return [
        {"case_id": f"c{at}", "metric": metric, "label": int(mark), "annotator": annotator, **more}
        for at, mark in enumerate(said)
        if mark != "-"
    ]


def held(run, said, metric="faithfulness", **more):
    """The run's calibration by these labels."""
    labels = read_labels(labels_of(said, metric=metric, **more))
    return calibrate(verdicts_from_run(run, metric, "run", labels.cases), labels).document()


def keeping(run, *documents):
    """The run with these calibrations, or with none."""
    kept = run.calibration
    for document in documents:
        kept = merge_calibration(kept, document)
    return run.model_copy(update={"calibration": kept})


def _verdict(case_id, mark, metric, judge, prompt):
    given = {"case_id": case_id, "metric": metric, "judge": judge, "prompt": prompt}
    if mark == "f":
        return Verdict(**given, status="failed", reason="unreadable")
    return Verdict(**given, status="scored", value=float(mark), label=mark == "1")
