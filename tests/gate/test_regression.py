"""Whether a change is one for the worse: never decided by hardly anything, always told exactly."""

from __future__ import annotations

import pytest

from gated_run import decided, gated_run
from misslink.errors import InputError
from misslink.gate.baseline_diff import interval_can_exclude_zero

PAIRED = "name: recall_at_1, regression_max: 0.03, regression_test: paired"


def one(tmp_path, gate, run, baseline):
    (found,) = decided(tmp_path, [gate], run, baseline).outcomes
    return found


def renamed(run, kept):
    """The run as if only its first `kept` cases were those of the baseline."""
    found = [f"c{at}" if at < kept else f"new{at}" for at in range(len(run.cases))]
    return gated_run(
        "".join("1" if link.retrieval == "hit" else "0" for link in run.links), ids=found
    )


def test_so_few_pairs_that_no_loss_could_show_fail(tmp_path):
    """All of one, two and three lost: Wilson's interval of 3 of 3 reaches down to 44%."""
    assert [n for n in range(8) if interval_can_exclude_zero(n)] == [4, 5, 6, 7]
    for kept in (1, 3):
        found = one(tmp_path, PAIRED, renamed(gated_run("0" * 50), kept), gated_run("1" * 50))
        assert not found.passed
        assert f"only {kept} question" in found.reason
        assert "so nothing is decided" in found.reason
    better = one(tmp_path, PAIRED, renamed(gated_run("1" * 50), 3), gated_run("0" * 50))
    assert not better.passed, "also where they got better"


def test_fewest_cases_are_asked_of_the_pairs_too(tmp_path):
    run, before = renamed(gated_run("1" * 50), 9), gated_run("1" * 40 + "0" * 10)
    found = one(tmp_path, f"{PAIRED}, min_cases: 10", run, before)
    assert found.reason == "only 9 questions have a value of recall@1 in both runs, and 10 must"
    assert one(tmp_path, f"{PAIRED}, min_cases: 9", run, before).passed


def test_the_means_that_are_told_are_those_of_the_pairs(tmp_path):
    """Over all questions it rose from 33 to 80%; over the ten in both it fell from 100 to 0%."""
    run = renamed(gated_run("0" * 10 + "1" * 40), 10)
    found = one(tmp_path, PAIRED, run, gated_run("1" * 10 + "0" * 20))
    assert "recall@1 dropped from 100% to 0%: 100 points for the worse" in found.reason
    assert "(paired over 10 questions: \u2212100 points [\u2212100, " in found.reason


def test_a_number_of_which_nobody_said_what_is_worse_is_refused(tmp_path):
    run = gated_run("1111111100")
    summary = {**run.summary, "diagnosis": {"n": {"near_duplicates": 3}}}
    run = run.model_copy(update={"summary": summary})
    gate = "metric: diagnosis.n.near_duplicates, regression_max: 2"
    with pytest.raises(InputError, match="it is not known whether a rise of diagnosis"):
        one(tmp_path, gate, run, gated_run("1111111000"))


@pytest.mark.parametrize(
    ("path", "now", "before", "passed"),
    [
        ("coverage.faithfulness.skipped", 5, 2, False),
        ("coverage.faithfulness.skipped", 2, 5, True),
        ("coverage.faithfulness.scored", 2, 5, False),
        ("usage.calls", 90, 10, False),
    ],
)
def test_of_counts_the_direction_is_known(tmp_path, path, now, before, passed):
    def having(count):
        run = gated_run("1111111100")
        counts = {
            "coverage": {"faithfulness": {path.rpartition(".")[2]: count}},
            "usage": {"calls": count},
        }
        return run.model_copy(update={"summary": {**run.summary, **counts}})

    assert (
        one(tmp_path, f"metric: {path}, regression_max: 1", having(now), having(before)).passed
        is passed
    )


def test_a_run_is_never_its_own_baseline(tmp_path):
    run = gated_run("1111111100")
    with pytest.raises(InputError, match="the baseline is the run itself"):
        one(tmp_path, PAIRED, run, gated_run("1111111100"))
