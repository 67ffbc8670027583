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


def test_a_larger_k_that_distracts_gets_no_positive_figure():
    scenario = next(s for s in SCENARIOS if s.option == "k" and s.distracts)
    (found,) = outcomes(scenario, 1)
    assert found.avoided < 0
    assert found.checked.value < 0


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: f"{s.name} {s.distracts}")
def test_figures_cover_what_comes_and_never_promise_where_longer_context_distracts(scenario):
    found = outcomes(scenario, 12)
    figures = [
        (figure, each.avoided)
        for each in found
        for figure in (each.forecast, each.checked)
        if figure.value is not None
    ]
    covered = sum(figure.low <= came <= figure.high for figure, came in figures)
    assert covered >= 0.85 * len(figures)
    if scenario.distracts and lengthens(scenario):
        assert all(figure.low <= 0 for figure, _ in figures)
