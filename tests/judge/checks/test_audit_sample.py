"""Both calls are there, the draw is repeatable, and what cannot be asked about is not drawn."""

from __future__ import annotations

import pytest

from misslink.judge.checks.audit_variants import draw_audit_sample
from misslink.types import Case, Run, Trace, Verdict


def run_of(good, bad, skipped=0, metric="faithfulness"):
    labels = [True] * good + [False] * bad + [None] * skipped
    names = [f"c{n}" for n in range(len(labels))]
    return Run(
        manifest={},
        cases=tuple(Case(id=name, question=name) for name in names),
        traces=tuple(Trace(case_id=name, answer="It is.") for name in names),
        verdicts=tuple(
            Verdict(case_id=name, metric=metric, status="skipped", reason="-", judge="j")
            if label is None
            else Verdict(
                case_id=name, metric=metric, status="scored", value=label, label=label, judge="j"
            )
            for name, label in zip(names, labels, strict=True)
        ),
        links=(),
        summary={},
    )


@pytest.mark.parametrize(
    ("good", "bad", "size", "expected"),
    [
        (90, 10, 50, (40, 10)),  # the rarer call whole
        (90, 60, 50, (25, 25)),
        (3, 90, 51, (3, 48)),
        (3, 4, 50, (3, 4)),
        (9, 0, 4, (4, 0)),
        (9, 9, 1, (1, 0)),
        (9, 9, 5, (3, 2)),
    ],
)
def test_as_many_of_each_call_as_there_are(good, bad, size, expected):
    found = draw_audit_sample(run_of(good, bad, skipped=5), "faithfulness", size)
    assert (found.good, found.bad) == expected
    assert len({case.id for case in found.cases}) == sum(expected)


def test_the_seed_decides_and_the_order_of_the_run_does_not():
    run = run_of(40, 40)
    turned = run.model_copy(update={"cases": run.cases[::-1], "verdicts": run.verdicts[::-1]})
    first, again = (
        draw_audit_sample(run, "faithfulness", 10, 1),
        draw_audit_sample(turned, "faithfulness", 10, 1),
    )
    assert {case.id for case in first.cases} == {case.id for case in again.cases}
    assert draw_audit_sample(run, "faithfulness", 10, 2).cases != first.cases


def test_without_a_verdict_of_the_metric_cases_are_drawn_at_random():
    found = draw_audit_sample(run_of(20, 0), "helpfulness", 5)
    assert (len(found.cases), found.good, found.bad) == (5, 0, 0)


def test_cases_without_a_label_or_an_answer_are_not_drawn():
    assert draw_audit_sample(run_of(0, 0, skipped=8), "faithfulness", 5).cases == ()
    run = run_of(6, 6)
    silent = run.model_copy(update={"traces": tuple(Trace(case_id=c.id) for c in run.cases)})
    assert draw_audit_sample(silent, "faithfulness", 5).cases == ()
