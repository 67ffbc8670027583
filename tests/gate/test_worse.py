"""Groups and lists of what got worse rest on the cases that were compared."""

from __future__ import annotations

from gated_run import decided, gated_run
from misslink.gate.ci_reports import regressed_cases, regressed_groups

GATE = "name: recall_at_1, regression_max: 0.03"


def test_a_case_that_asks_something_else_now_is_in_no_group_and_has_no_before(tmp_path):
    """Cases 0 to 4 ask otherwise now: of the compared 5 to 9 the odd ones 5 and 7 got worse."""
    others = {at: f"Another {at}?" for at in range(5)}
    run, before = gated_run("0000000011", questions=others), gated_run("1" * 10)
    decision = decided(tmp_path, [GATE, "new_failures: {}"], run, before)
    by_mean, by_count = decision.outcomes
    found = {
        name: (cases, before, now)
        for name, cases, before, now in regressed_groups(decision, by_mean)
    }
    assert found == {
        "category: odd": (3, 1.0, 1 / 3),
        "category: even": (2, 1.0, 0.5),
        "tier: A": (2, 1.0, 0.5),
    }
    assert [one.case.id for one in regressed_cases(decision, by_mean)] == ["c5", "c6", "c7"]
    assert {one.before for one in regressed_cases(decision, by_count) if one.case.id < "c5"} == {""}
