"""The figures of a run, and which canaries have degraded."""

from __future__ import annotations

import pytest

from canary_runs import hung, result
from misslink.canary.results import find_degraded, run_figures


def test_health_is_a_share_of_what_was_measured_with_its_interval():
    found = run_figures([result("a"), result("b", healthy=False), result("c", None), hung("d")])
    assert (found.health.value, found.health.n, found.health.method) == (0.5, 2, "wilson")
    assert (found.answered.value, found.answered.n) == (0.75, 4)
    assert found.values["errors"] == 0.25


def test_latency_has_linear_quantiles():
    latency = run_figures([result(str(s), latency_s=s) for s in (0.3, 1.7, 0.2, 9.0)]).latency
    expected = {"median": 1.0, "p95": 1.7 + 0.85 * 7.3, "n": 4}
    assert latency == pytest.approx(expected)


def test_without_results_everything_is_missing_with_a_reason():
    found = run_figures([])
    assert found.health.reason == "there is no canary"
    assert all(value is None for value in found.values.values())


@pytest.mark.parametrize(
    ("before", "is_degraded"),
    [
        ([True], True),
        ([False], False),
        ([], False),
        ([False, True, True], True),  # usually healthy
        ([False, True, False], False),
        ([None, True], True),  # not measured last time, healthy before
        ([None], False),
        ([False] * 6 + [True] * 20, False),  # what was long ago is not usual any more
    ],
)
def test_degraded_is_what_was_healthy_or_usually_is(before, is_degraded):
    history = {"a": [result("a", healthy) for healthy in before]}
    lost = find_degraded([result("a", healthy=False, owner="ops")], history)
    assert [one.id for one in lost] == ["a"] * is_degraded
    assert all(one.owner == "ops" for one in lost)


@pytest.mark.parametrize("healthy", [True, None])
def test_what_is_healthy_or_was_not_measured_has_not_degraded(healthy):
    assert find_degraded([result("a", healthy)], {"a": [result("a")]}) == ()
