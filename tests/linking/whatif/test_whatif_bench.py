"""Failures avoided are those that come; `benchmarks/linking/whatif.py` has more rounds."""

import pytest

from whatif import SCENARIOS, simulate


def lengthens(scenario):
    """Twice the passages, or chunks of ten times the text."""
    return scenario.option == "k" or (scenario.chunking and scenario.chunking.size > 100)


def outcomes(scenario, rounds):
    found = [simulate(scenario, 1_000 + seed) for seed in range(rounds)]
    if lengthens(scenario):
        codes = {each.forecast.reason_code.code for each in found}
        assert codes == {"longer_context_unchecked"}
    return found


@pytest.mark.slow
def test_a_larger_k_that_distracts_gets_no_positive_figure():
    scenario = next(s for s in SCENARIOS if s.option == "k" and s.distracts)
    (found,) = outcomes(scenario, 1)
    assert found.avoided < 0
    assert found.checked.value < 0


@pytest.mark.slow
def test_figures_cover_what_comes_and_never_promise_where_longer_context_distracts():
    covered = []
    for scenario in SCENARIOS:
        for each in outcomes(scenario, 3):
            figures = [one for one in (each.forecast, each.checked) if one.value is not None]
            covered += [one.low <= each.avoided <= one.high for one in figures]
            if scenario.distracts and lengthens(scenario):
                assert all(one.low <= 0 for one in figures), scenario.name
    assert len(covered) > 30
    assert sum(covered) >= 0.9 * len(covered)  # 95% less two standard errors
