"""Who wins how often: the statistics of two runs against each other, by hand."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from misslink.judge.checks.pairwise import PairOutcome, summarize_preferences
from misslink.stats import proportion


def test_the_numbers_by_hand():
    outcomes = [PairOutcome(str(n), "b", ("b", "b")) for n in range(8)]
    outcomes += [PairOutcome(str(n), "a", ("a", "a")) for n in range(8, 10)]
    outcomes += [PairOutcome("10", "tie", ("b", "a")), PairOutcome("11", "tie", ("tie", "tie"))]
    outcomes += [PairOutcome("12", "tie", reason="the answers are identical")]
    outcomes += [PairOutcome("13", None, ("a", None), reason="cut off")]
    found = summarize_preferences(outcomes)
    assert (found["cases"], found["paired"], found["identical"]) == (14, 13, 1)
    assert found["wins"] == {"a": 2, "b": 8, "tie": 3}
    assert found["preference"] == proportion(8, 10).model_dump()
    assert found["p"] == pytest.approx(2 * (1 + 10 + 45) / 2**10)  # 2 or fewer of 10, both tails
    assert found["position_flips"] == proportion(1, 12).model_dump()
    assert found["positions"] == {"first": 0, "second": 1}
    assert found["left_out"] == {"cut off": 1}
    assert found["per_case"]["10"] == {
        "winner": "tie",
        "orders": ["b", "a"],
        "probability": None,
        "reason": None,
    }
    json.dumps(found, allow_nan=False)


def test_no_outcome_is_no_number():
    found = summarize_preferences([])
    assert (found["cases"], found["p"], found["per_case"]) == (0, None, {})
    assert found["preference"]["value"] is None


sides = st.sampled_from(["a", "b", "tie", None])


@given(st.lists(st.tuples(sides, sides), max_size=12))
def test_swapping_the_runs_mirrors_everything(orders):
    def outcomes(of):
        found = []
        for n, (ab, ba) in enumerate(of):
            winner = None if None in (ab, ba) else ab if ab == ba else "tie"
            found.append(PairOutcome(str(n), winner, (ab, ba), reason=None if winner else "lost"))
        return found

    other = {"a": "b", "b": "a", "tie": "tie", None: None}
    found = summarize_preferences(outcomes(orders))
    # With the runs swapped, what was the second order becomes the first.
    mirrored = summarize_preferences(outcomes([(other[ba], other[ab]) for ab, ba in orders]))
    assert mirrored["wins"] == {
        "a": found["wins"]["b"],
        "b": found["wins"]["a"],
        "tie": found["wins"]["tie"],
    }
    assert mirrored["position_flips"] == found["position_flips"]
    assert mirrored["positions"] == found["positions"]
    assert mirrored["p"] == pytest.approx(found["p"]) if found["p"] else mirrored["p"] is None
    if found["preference"]["value"] is not None:
        share = mirrored["preference"]["value"]
        assert share == pytest.approx(1 - found["preference"]["value"])
        decided = found["preference"]["n"]
        fewer = min(found["wins"]["a"], found["wins"]["b"])
        assert found["p"] == pytest.approx(min(1.0, 2 * binom.cdf(fewer, decided, 0.5)))
