"""Several samples in one verdict: worked out by hand, then held against brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.judge.judge_case import combine_samples
from misslink.judge.judged_metric import Finding, failed_finding, skipped_finding
from misslink.types import Claim, Verdict


def scored(value, label=None, **more):
    return Finding("scored", value=value, label=label, **more)


def test_one_sample_stays_as_it_is():
    only = scored(0.3, label=False, reason="one of three")
    assert combine_samples([only]) == (only, 0)
    assert combine_samples([failed_finding("not JSON")]) == (failed_finding("not JSON"), 0)


def test_three_samples_by_hand():
    claims = [(Claim(text=text, support="supported"),) for text in "abc"]
    samples = [
        scored(0.5, label=False, probability=0.4, claims=claims[0], parts={"recall": 0.2, "x": 1}),
        scored(1.0, label=True, probability=0.8, claims=claims[1], parts={"recall": 0.4}),
        scored(0.9, label=True, probability=None, claims=claims[2], parts={"recall": None}),
    ]
    found, place = combine_samples(samples)
    assert place == 1  # the first with the most frequent label
    assert found.claims == claims[1]
    assert found.label is True
    assert found.value == pytest.approx(0.8)
    assert found.probability == pytest.approx(0.6)  # of the two that give one
    assert found.parts == {"recall": pytest.approx(0.3), "x": 1}
    assert found.repeats.values == (0.5, 1.0, 0.9)
    assert found.repeats.labels == (False, True, True)
    # Deviations -0.3, 0.2, 0.1: squares sum to 0.14, over n - 1 = 2.
    assert found.repeats.spread == pytest.approx(math.sqrt(0.07))
    assert found.repeats.flipped == pytest.approx(1 / 3)
    assert found.reason is None


def test_a_tie_is_bad_and_half_of_it_flipped():
    found, place = combine_samples([scored(1.0, label=True), scored(0.0, label=False)])
    assert (found.label, found.value, place) == (False, 0.5, 1)
    assert found.repeats.flipped == 0.5


def test_a_failed_sample_is_in_no_mean_and_its_reason_is_kept():
    samples = [
        failed_finding("not JSON"),
        scored(0.4, label=False, reason="2 of 5"),
        scored(0.6, label=False),
    ]
    found, place = combine_samples(samples)
    assert (found.status, found.value, found.label, place) == ("scored", 0.5, False, 1)
    assert found.reason == "2 of 5; 1 of 3 samples have no value (failed: not JSON)"
    assert found.repeats.values == (None, 0.4, 0.6)
    assert found.repeats.labels == (None, False, False)
    assert found.repeats.spread == pytest.approx(math.sqrt(0.02))
    assert found.repeats.flipped == 0.0


def test_one_value_among_samples_without_one_has_no_spread_and_cannot_flip():
    found, place = combine_samples(
        [skipped_finding("the budget is spent"), scored(1.0, label=True), failed_finding("cut off")]
    )
    assert (found.value, found.label, place) == (1.0, True, 1)
    assert found.repeats.spread is None
    assert found.repeats.flipped is None
    assert found.reason == "2 of 3 samples have no value (skipped: the budget is spent)"


@pytest.mark.parametrize(
    ("samples", "status", "place"),
    [
        ([failed_finding("a"), skipped_finding("b"), skipped_finding("c")], "skipped", 1),
        ([skipped_finding("a"), failed_finding("b"), failed_finding("c")], "failed", 1),
        ([skipped_finding("a"), failed_finding("b")], "failed", 1),
        ([skipped_finding("a"), skipped_finding("b")], "skipped", 0),
    ],
)
def test_without_any_value_the_most_frequent_status_stands(samples, status, place):
    found, at = combine_samples(samples)
    assert (found.status, at, found.value, found.label) == (status, place, None, None)
    assert found.reason == samples[place].reason
    assert found.repeats.values == (None,) * len(samples)
    assert found.repeats.flipped is None


def test_a_vote_needs_a_value():
    odd = Finding("failed", label=True, reason="said and withdrawn")
    found, _ = combine_samples([odd, odd, scored(0.0, label=False)])
    assert found.label is False
    assert found.repeats.labels == (None, None, False)


def test_scores_without_labels_have_no_label_and_no_flips():
    found, place = combine_samples([scored(0.2), scored(0.8)])
    assert (found.label, found.value, place) == (None, 0.5, 0)
    assert found.repeats.flipped is None


def test_no_sample_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        combine_samples([])


shares = st.floats(0, 1)
findings = st.one_of(
    st.builds(
        scored,
        shares,
        st.sampled_from([True, False, None]),
        probability=st.one_of(st.none(), shares),
        parts=st.one_of(st.none(), st.dictionaries(st.sampled_from("pr"), shares)),
    ),
    st.sampled_from([failed_finding("not JSON"), skipped_finding("no claims")]),
)


@given(st.lists(findings, min_size=2, max_size=7))
def test_whatever_the_samples_the_verdict_is_whole(samples):
    found, place = combine_samples(samples)
    # A Verdict refuses a value outside [0, 1], NaN, and a missing value without a reason.
    Verdict(
        case_id="1",
        metric="m",
        judge="j",
        status=found.status,
        value=found.value,
        label=found.label,
        probability=found.probability,
        parts=found.parts or {},
        reason=found.reason,
        repeats=found.repeats,
    )
    assert samples[place].status == found.status
    values = [sample.value for sample in samples if sample.value is not None]
    assert (found.value is None) == (not values)
    if values:
        assert min(values) <= found.value <= max(values)
        assert found.value == pytest.approx(np.mean(values))
    if len(values) > 1:
        assert found.repeats.spread == pytest.approx(np.std(values, ddof=1), abs=1e-12)
    labels = [s.label for s in samples if s.value is not None and s.label is not None]
    if labels:
        assert found.label in labels
        assert labels.count(found.label) >= labels.count(not found.label)
    if len(labels) > 1:
        differing = labels.count(not found.label)
        assert found.repeats.flipped == pytest.approx(differing / len(labels))
        assert found.repeats.flipped <= 0.5


@given(st.lists(findings, min_size=2, max_size=5))
def test_the_order_of_the_samples_changes_neither_value_nor_label(samples):
    numbers = {
        (
            found.status,
            found.value,
            found.label,
            found.probability,
            found.repeats.spread,
            found.repeats.flipped,
        )
        for found, _ in map(combine_samples, itertools.islice(itertools.permutations(samples), 24))
    }
    assert len(numbers) == 1


@given(findings, st.integers(2, 6))
def test_samples_that_agree_have_the_verdict_of_one(sample, times):
    found, place = combine_samples([sample] * times)
    assert (found.value, found.label, found.probability) == (
        sample.value,
        sample.label,
        sample.probability,
    )
    assert (found.reason, place) == (sample.reason, 0)
    assert found.repeats.spread in {None, 0.0}
    assert found.repeats.flipped in {None, 0.0}
