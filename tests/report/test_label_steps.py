"""What people have still to say of the judge, as next steps."""

from __future__ import annotations

import pytest

from example_run import HOSTILE, verdict
from misslink.report.links import number_cases
from misslink.report.next_steps import label_steps, next_steps
from misslink.types import Case, Link, Run
from people_documents import correctness_calibration
from proven_run import proven_run


def _run(calibration=None, verdicts=2, **manifest):
    cases = tuple(Case(id=str(n), question="Which?") for n in range(1, 3))
    return Run(
        manifest={"judge": "openai:m", **manifest},
        cases=cases,
        traces=(),
        verdicts=tuple(verdict(case.id, "faithfulness", 1.0) for case in cases[:verdicts]),
        links=tuple(
            Link(case_id=one.id, retrieval="hit", answer="faithful", failure="passed", reason="-")
            for one in cases
        ),
        summary={},
        calibration=calibration,
    )


def _steps(run):
    return label_steps(run, number_cases(run.cases))


def _short(name, value, met="caution", trust=100, says="Too few."):
    return {"name": name, "value": value, "trust": trust, "met": met, "says": says}


def test_a_judge_that_nobody_labelled_is_labelled_and_then_calibrated():
    (step,) = _steps(_run())
    assert step.action == (
        "Label about 100 answers (`misslink annotate RUN`) and compare the judge with them "
        "(`misslink calibrate RUN`)."
    )
    assert "2 cases rest on a judge" in step.why
    assert (step.cases, step.fragment) == ((), "trust")


@pytest.mark.parametrize(
    "run", [_run(judge="none"), _run(judge=None), _run(verdicts=0), _run({"metric": "correctness"})]
)
def test_where_nothing_is_missing_nothing_is_advised(run):
    assert _steps(run) == ()


def test_ties_come_before_more_labels_with_their_cases():
    queue = [
        {"case_id": "2", "claim": None, "labels": {"ada": 1, "ben": 0}, "settled": False},
        {"case_id": "2", "claim": 1, "labels": {"ada": 1, "ben": 0}, "settled": False},
        {"case_id": "1", "claim": None, "labels": {"a": 1, "b": 0, "c": 0}, "settled": True},
    ]
    held = {"metric": "faithfulness", "n": 40, "human": {"queue": queue}}
    ties, more = _steps(_run({**held, "checks": [_short("labels", 40)]}))

    assert "`misslink annotate RUN --adjudicate`" in ties.action
    assert ties.why.startswith("Of 2 labelled items (faithfulness) people say")
    assert (ties.cases, ties.fragment) == ((2,), "ids=2")
    assert more.action.startswith("Label about 60 more cases of faithfulness")


def test_ties_of_cases_that_the_run_does_not_hold_lead_to_the_judge():
    queue = [{"case_id": HOSTILE[0], "labels": {"ada": 1, "ben": 0}, "settled": False}]
    (step,) = _steps(_run({"metric": "faithfulness", "human": {"queue": queue}}))
    assert (step.cases, step.fragment) == ((), "trust")


def test_a_rare_label_takes_as_many_as_are_expected_to_hold_it():
    """14 of 40 are bad; 6 more of them are in 6 * 40 / 14 = 17.1 cases, but 60 are wanted."""
    (step,) = _steps(_run(correctness_calibration()))
    assert step.action.startswith("Label about 60 more cases of correctness (`misslink annotate")
    assert step.why == (
        "40 labelled cases; at least 100 is needed to trust it. "
        "14 cases have the rarer label; at least 20 is needed to trust it."
    )
    rare = {"metric": "m", "n": 200, "checks": [_short("rarer_label", 5, trust=20)]}
    (step,) = _steps(_run(rare))
    assert step.action.startswith("Label about 600 more cases of m")  # 15 * 200 / 5


def test_the_metric_that_lacks_most_is_named():
    other = {"metric": "correctness", "n": 10, "checks": [_short("labels", 10)]}
    held = {"metric": "faithfulness", "n": 70, "checks": [_short("labels", 70)]}
    (step,) = _steps(_run({**held, "others": {"correctness": other}}))
    assert step.action.startswith("Label about 90 more cases of correctness")


@pytest.mark.parametrize(
    "checks",
    [
        None,
        [_short("labels", 120, met="trust")],
        [_short("kappa", 0.1)],
        [_short("labels", None)],
        [_short("rarer_label", 0)],
    ],
)
def test_no_number_is_made_up_where_labels_are_enough_or_nothing_is_known(checks):
    assert _steps(_run({"metric": "faithfulness", "n": 120, "checks": checks})) == ()


def test_what_mends_cases_goes_first_and_three_are_the_most():
    steps = next_steps(proven_run())
    assert len(steps) == 3
    assert not any("annotate" in step.action for step in steps)
    (step,) = next_steps(_run())
    assert "misslink annotate RUN" in step.action
