"""The share of attention on the context: small matrices by hand, then invariants."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from misslink.capture.attention import context_attention, even_attention
from misslink.errors import InputError

# Tokens: 0 start, 1 and 2 context, 3 question, 4 and 5 answer.
ROWS = np.array(
    [
        [1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.5, 0.5, 0.0, 0.0, 0.0, 0.0],
        [0.4, 0.3, 0.3, 0.0, 0.0, 0.0],
        [0.7, 0.1, 0.1, 0.1, 0.0, 0.0],
        [0.5, 0.2, 0.1, 0.1, 0.1, 0.0],
        [0.2, 0.1, 0.3, 0.2, 0.1, 0.1],
    ]
)
CONTEXT, ANSWER = [1, 2], [4, 5]


def test_averaged_weights_by_hand():
    assert context_attention(ANSWER, CONTEXT, ROWS) == pytest.approx((0.3 + 0.4) / 2)
    assert context_attention([4], [2], ROWS) == pytest.approx(0.1)
    assert context_attention([4], [0, 1, 2, 3], ROWS) == pytest.approx(0.9)


def test_layers_and_heads_are_averaged():
    # Beside ROWS, a head that looks at the token before, and one that looks at itself.
    before = np.eye(6, k=-1)
    before[0, 0] = 1.0
    whole = np.stack([np.stack([ROWS, before]), np.stack([np.eye(6), ROWS])])
    assert whole.shape == (2, 2, 6, 6)
    # Neither 4 nor 5 has a context token before it, and none is itself one: 2 of 4 heads count.
    assert context_attention(ANSWER, CONTEXT, whole) == pytest.approx(0.35 / 2)
    # Token 2 stands before the question's token 3, taken as the answer here.
    assert context_attention([3], CONTEXT, whole) == pytest.approx((0.2 + 1 + 0 + 0.2) / 4)


def test_an_ignored_sink_is_taken_out_and_the_rest_scaled():
    # Token 4: 0.3 of 0.5 that is not on token 0; token 5: 0.4 of 0.8.
    expected = (0.3 / 0.5 + 0.4 / 0.8) / 2
    assert context_attention(ANSWER, CONTEXT, ROWS, ignore=[0]) == pytest.approx(expected)


def test_an_ignored_context_token_is_context_no_more():
    expected = (0.1 / 0.8 + 0.3 / 0.9) / 2
    assert context_attention(ANSWER, CONTEXT, ROWS, ignore=[1]) == pytest.approx(expected)


def test_weights_before_averaging_and_after_give_the_same_also_without_the_sink():
    whole = np.stack([np.stack([ROWS, np.eye(6)])])
    for ignore in ([], [0]):
        assert context_attention(ANSWER, CONTEXT, whole, ignore=ignore) == pytest.approx(
            context_attention(ANSWER, CONTEXT, whole.mean(axis=(0, 1)), ignore=ignore)
        )


def test_a_token_that_looks_at_ignored_ones_only_is_left_out():
    rows = ROWS.copy()
    rows[4] = [1, 0, 0, 0, 0, 0]
    assert context_attention(ANSWER, CONTEXT, rows, ignore=[0]) == pytest.approx(0.4 / 0.8)
    assert context_attention([4], CONTEXT, rows, ignore=[0]) is None
    assert context_attention([4], CONTEXT, rows) == 0.0  # that is a zero, and not missing


@pytest.mark.parametrize(
    ("answer", "context", "ignore"), [([], [1], []), ([4], [], []), ([4], [1], [1])]
)
def test_nothing_to_measure_is_none(answer, context, ignore):
    assert context_attention(answer, context, ROWS, ignore=ignore) is None
    assert even_attention(answer, context, ignore=ignore) is None


def test_positions_count_once_in_any_order():
    assert context_attention([5, 4, 4], (2, 1, 2), ROWS) == context_attention(ANSWER, CONTEXT, ROWS)


def changed(value, at=(4, 1)):
    rows = ROWS.copy()
    rows[at] = value
    return rows


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (ROWS[4], "shape"),
        (ROWS[None], "shape"),
        (np.empty((0, 3, 6, 6)), "shape"),
        ([[1.0], [0.5, 0.5]], "shape"),
        (changed(np.nan), "not a finite number"),
        (changed(np.inf), "not a finite number"),
        (changed(-0.2), "negative"),
        (changed(0.9), r"sum to 1\.7 and not to 1"),
        (ROWS.T, "and not to 1"),  # keys and queries swapped
        (np.log(ROWS + 1e-9), "negative"),  # scores before the softmax
    ],
)
def test_what_are_no_attention_weights_is_refused(weights, message):
    with pytest.raises(InputError, match=message):
        context_attention(ANSWER, CONTEXT, weights)


def test_rows_that_are_not_read_may_be_anything():
    # Padding gives rows of NaN; only the answer's rows matter.
    weights = changed(np.nan, at=(0, 0))
    assert context_attention(ANSWER, CONTEXT, weights) == pytest.approx(0.35)


def test_half_precision_is_near_enough_to_1():
    weights = ROWS.astype(np.float16)
    assert context_attention(ANSWER, CONTEXT, weights) == pytest.approx(0.35, abs=1e-3)


@pytest.mark.parametrize(
    ("answer", "context", "ignore", "message"),
    [
        ([6], [1], [], "answer token 6 lies outside"),
        ([4], [-1], [], "context token -1 lies outside"),
        ([4], [1], [9], "ignored token 9 lies outside"),
        ([3, 4], [2, 3], [], "token 3 is both answer and context"),
    ],
)
def test_positions_that_cannot_be_are_refused(answer, context, ignore, message):
    with pytest.raises(InputError, match=message):
        context_attention(answer, context, ROWS, ignore=ignore)


@st.composite
def cases(draw):
    """Causal weights of random layers and heads, with a random split of their tokens."""
    layers, heads, length = (
        draw(st.integers(1, 3)),
        draw(st.integers(1, 3)),
        draw(st.integers(2, 9)),
    )
    scores = draw(
        arrays.arrays(np.float64, (layers, heads, length, length), elements=st.floats(-6, 6))
    )
    scores[..., np.triu_indices(length, 1)[0], np.triu_indices(length, 1)[1]] = -np.inf
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    cut = draw(st.integers(1, length - 1))
    answer = list(range(cut, length))
    context = draw(st.lists(st.integers(0, cut - 1), min_size=1, unique=True))
    return answer, context, weights


@given(cases())
def test_it_is_a_share_whether_a_sink_is_ignored_or_not(case):
    answer, context, weights = case
    assert 0 <= context_attention(answer, context, weights) <= 1
    without_sink = context_attention(answer, context, weights, ignore=[0])
    assert without_sink is None if context == [0] else 0 <= without_sink <= 1


@given(cases())
def test_parts_of_the_context_add_up_and_everything_is_1(case):
    answer, _, weights = case
    before = range(answer[0])
    parts = sum(context_attention(answer, [token], weights) for token in before)
    assert parts == pytest.approx(context_attention(answer, before, weights))
    # A single first answer token sees the tokens before it and itself.
    own = weights[:, :, answer[0], answer[0]].mean()
    assert context_attention(answer[:1], before, weights) == pytest.approx(1 - own)


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_layers_and_heads_does_not_matter(case, random):
    answer, context, weights = case
    layers, heads = list(range(weights.shape[0])), list(range(weights.shape[1]))
    random.shuffle(layers)
    random.shuffle(heads)
    shuffled = weights[layers][:, heads]
    assert context_attention(answer, context, shuffled) == pytest.approx(
        context_attention(answer, context, weights)
    )


@given(cases())
def test_even_attention_is_that_of_a_model_that_looks_at_everything_alike(case):
    answer, context, weights = case
    length = weights.shape[-1]
    even = np.tril(np.ones((length, length)))
    even /= even.sum(axis=1, keepdims=True)
    for ignore in ([], [0]):
        assert even_attention(answer, context, ignore=ignore) == pytest.approx(
            context_attention(answer, context, even, ignore=ignore)
        )
