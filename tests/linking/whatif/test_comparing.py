"""What is said of an option, as certain as the interval is."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from misslink.linking.whatif.comparison import (
    OptionResult,
    RetrievalBaseline,
    UnknownMisses,
    baseline_metrics,
    compare_metrics,
    context_tokens,
    option_finding,
)
from misslink.types import Estimate, Trace
from town import passage, run_of


def estimate(value, low, high):
    return Estimate(value=value, low=low, high=high, n=40, method="made")


def said(
    saved, *, p=1.2e-05, p_holm=9.2e-05, tests=7, difference=(0.2, 0.1, 0.3), winner="option",
    detectable=0.08, unknown=None,
):  # fmt: skip
    compared = {
        "a": estimate(0.6, 0.5, 0.7).model_dump(),
        "b": estimate(0.8, 0.7, 0.9).model_dump(),
        "difference": estimate(*difference).model_dump(),
        "p": p,
        "p_holm": p_holm,
        "tests": tests,
        "detectable": detectable,
        "winner": winner,
    }
    return option_finding("recall@5", compared, saved, 22, unknown)


RISES = (
    "recall@5 rises from 60 to 80 %, +20 points [10, 30] (p < 0.001 alone, < 0.001 after Holm "
    "over 7 options); "
)
AS_THEY_ARE = "it may leave the unfaithful answers, 22 now, as they are"


@pytest.mark.parametrize(
    ("saved", "end"),
    [
        ((7.0, 4, 9), "about 7 [4, 9] fewer unfaithful answers, of 22 now."),
        ((7.5, 4, 9), "about 7.5 [4, 9] fewer unfaithful answers, of 22 now."),
        ((-2.4, -4, -1), "about 2.4 [1, 4] more unfaithful answers, on top of the 22 now."),
        (
            (-0.7, -4, 1),
            f"{AS_THEY_ARE}: the forecast runs from 4 more to 1 fewer.",
        ),
        (
            (2.0, -0.0, 3),
            f"{AS_THEY_ARE}: the forecast runs from none fewer to 3 fewer.",
        ),
        ((0, 0, 0), f"{AS_THEY_ARE}."),
    ],
)
def test_what_is_saved_is_said_as_certain_as_its_interval_is(saved, end):
    assert said(estimate(*saved)) == RISES + end


def test_what_was_not_forecast_says_why():
    assert said(Estimate.missing("nobody judged")) == (
        RISES + "what that saves is not known: nobody judged."
    )


def test_no_detectable_difference_has_no_minus_zero_and_says_what_could_be_seen():
    found = said(
        estimate(1, 0, 3),
        difference=(-0.001, -0.04, 0.003),
        winner=None,
        p=0.4,
        p_holm=0.4,
        tests=1,
    )
    assert found == (
        "No detectable difference in recall@5: 0 points [\u22124, 0] (p = 0.40); 40 cases could "
        "show one of 8 points at 80 % power."
    )


def test_a_difference_that_the_correction_hides_shows_both_p_values():
    found = said(
        estimate(1, 0, 3), difference=(0.25, 0.05, 0.45), winner=None, p=0.0625, p_holm=0.4375,
        detectable=0.38,
    )  # fmt: skip
    assert found == (
        "No detectable difference in recall@5: +25 points [5, 45] (p = 0.062 alone, 0.44 after "
        "Holm over 7 options); at the corrected level 40 cases could show one of 38 points at "
        "80 % power."
    )


def test_what_is_not_known_stands_in_place_of_a_forecast():
    unknown = UnknownMisses(8, 20, ("nobody asked deeper",))
    assert said(estimate(5, 3, 7), unknown=unknown) == (
        RISES + "not known for 8 of 20 cases: nobody asked deeper."
    )


def test_what_could_be_seen_is_at_the_level_that_the_correction_leaves():
    """The power of the paired t test, by statsmodels; four options, one of which is found."""
    places = [1, 2, 3, 1, 2, 3, 1, 1, *[None] * 10, 5, 6]
    run = run_of(places)
    today = RetrievalBaseline.from_run(run)
    scores, _ = baseline_metrics(today, 0)

    def gaining(*better):
        moved = [1 if at in better else place for at, place in enumerate(places)]
        return OptionResult(run.cases, run_of(moved).traces, 3)

    options = [gaining(*range(8, 20)), gaining(8), gaining(8, 9), gaining(9, 10, 11)]
    rows = [one["recall@3"] for one in compare_metrics(today, scores, options, 0)]
    assert [row["winner"] for row in rows] == ["option", None, None, None]
    for row, gains in zip(rows[1:], (1, 2, 3), strict=True):
        spread = np.std([1] * gains + [0] * (20 - gains), ddof=1)
        effect = TTestPower().solve_power(nobs=20, alpha=0.05 / 3, power=0.8)
        assert row["detectable"] == pytest.approx(effect * spread, rel=1e-3)
        assert row["tests"] == 4


def bare(run):
    """The run, if no text of a passage had been seen."""

    def without(passages):
        return tuple(one.model_copy(update={"text": ""}) for one in passages)

    traces = tuple(t.model_copy(update={"retrieved": without(t.retrieved)}) for t in run.traces)
    return run.model_copy(update={"traces": traces})


@pytest.mark.parametrize("texts", [True, False])
def test_a_passage_without_text_costs_what_the_others_do_and_never_nothing(texts):
    """Of one passage with a text and one without; without a text today nobody knows of the two."""
    run = run_of([1])
    today = RetrievalBaseline.from_run(run if texts else bare(run))
    seen = passage(7, text="x" * 40)
    trace = Trace(case_id="c0", retrieved=(seen, passage(8, 2, text="")))
    found = context_tokens(today, OptionResult(today.cases, (trace,), 2), seed=0)["b"]
    usual = sum(len(one.text) for one in run.traces[0].retrieved) / 3 / 4
    assert found["value"] == (pytest.approx(10 + usual) if texts else None)
