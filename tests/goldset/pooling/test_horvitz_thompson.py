"""Totals from a stratified sample, held against formulas of others and against simulation."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from misslink.goldset.pooling.recall import (
    RankBand,
    SampledCell,
    estimate_total,
    group_into_bands,
    project_draws,
)


def test_one_band_without_a_known_part_is_clopper_and_pearsons_interval():
    """A cell so large that nothing of it is known."""
    found = estimate_total([RankBand([SampledCell(10**9, 40, 3)])])
    low, high = proportion_confint(3, 40, method="beta")
    assert (found.value, found.n) == (3 / 40 * 10**9, 40)
    assert found.low == pytest.approx(low * 10**9, rel=1e-6)
    assert found.high == pytest.approx(high * 10**9, rel=1e-6)


def test_the_value_is_horvitz_and_thompsons():
    cells = [SampledCell(100, 5, 2), SampledCell(7, 7, 3), SampledCell(1000, 4, 0)]
    inclusion = [5 / 100, 7 / 7, 4 / 1000]
    by_hand = sum(cell.relevant / chance for cell, chance in zip(cells, inclusion, strict=True))
    assert estimate_total(group_into_bands(enumerate(cells))).value == pytest.approx(by_hand)


def test_a_band_that_is_known_entirely_leaves_no_doubt():
    found = estimate_total([RankBand([SampledCell(8, 8, 3), SampledCell(5, 5, 0)])])
    assert (found.low, found.value, found.high) == (3, 3, 3)


def test_nothing_found_still_leaves_doubt_and_what_was_found_is_the_least():
    found = estimate_total([RankBand([SampledCell(100, 10, 0)])])
    assert (found.low, found.value) == (0, 0)
    assert found.high > 20
    some = estimate_total([RankBand([SampledCell(100, 10, 2)])])
    assert some.low >= 2


def test_four_times_the_draws_halve_the_doubt_and_never_pass_what_there_is():
    bands = [RankBand([SampledCell(10**6, 50, 20)])]
    once, more = estimate_total(bands), estimate_total(project_draws(bands, 4))
    assert more.value == once.value
    assert (more.high - more.low) / (once.high - once.low) == pytest.approx(0.5, rel=0.05)
    (all_of_it,) = project_draws([RankBand([SampledCell(30, 10, 2)])], 16)
    assert (all_of_it.labelled, all_of_it.relevant) == (30, 6)


def test_no_band_at_all_is_a_total_of_0():
    found = estimate_total([])
    assert (found.low, found.value, found.high, found.n) == (0, 0, 0, 0)


def test_there_are_never_more_than_there_are_passages():
    found = estimate_total([RankBand([SampledCell(12, 10, 10)])])
    assert found.high == 12


@pytest.mark.parametrize("relevant", [3, 20, 80])
def test_the_interval_holds_the_truth_in_95_of_100_draws_and_the_value_is_right_on_average(
    relevant,
):
    generator = np.random.default_rng(relevant)
    truth = [generator.permutation(200) < relevant for _ in range(4)]
    draws, inside, values = 400, 0, []
    for _ in range(draws):
        cells = [
            (band, SampledCell(100, 8, int(generator.permutation(of[band * 100 : band * 100 + 100])[:8]
                                    .sum())))
            for of in truth
            for band in (0, 1)
        ]  # fmt: skip
        found = estimate_total(group_into_bands(cells))
        values.append(found.value)
        inside += found.low <= 4 * relevant <= found.high
    assert inside / draws >= 0.92
    error = np.std(values) / np.sqrt(draws)
    assert abs(np.mean(values) - 4 * relevant) < 4 * error
