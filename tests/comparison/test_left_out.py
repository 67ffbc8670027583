"""Why a case has no value of a metric: the reason is that of the very axis that is asked of."""

import pytest

from gated_run import gated_run
from misslink.comparison.missing_values import count_missing_values
from misslink.comparison.run_metrics import metric_value


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ("link.failures.retrieval_miss", "its failure mode is inconclusive"),
        ("link.answers.unfaithful", "it has no such value"),
        ("fully_faithful", "failed: unreadable"),
    ],
)
def test_a_case_that_is_undecided_is_left_out_for_its_own_reason(metric, reason):
    whole, undecided = gated_run("1111"), gated_run("1111", "111u")
    sides = [(run, metric_value(run, metric)) for run in (whole, undecided)]
    found = count_missing_values(*sides, [case.id for case in whole.cases])
    assert (found["in_a"], found["in_b"], found["in_both"]) == (0, 1, 0)
    assert found["reasons"] == [{"run": "b", "reason": reason, "cases": 1}]


def test_a_case_without_a_link_says_that():
    whole, bare = gated_run("1111"), gated_run("1111")
    bare = bare.model_copy(update={"links": bare.links[1:]})
    sides = [(run, metric_value(run, "link.failures.passed")) for run in (whole, bare)]
    found = count_missing_values(*sides, ["c0", "c1"])
    assert found["reasons"] == [{"run": "b", "reason": "it has no failure mode", "cases": 1}]
