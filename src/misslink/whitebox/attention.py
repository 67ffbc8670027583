"""The share of attention that an answer's tokens put on the context: pure functions of numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from misslink.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

__all__ = ["context_attention", "even_attention"]

_AVERAGED, _WHOLE = 2, 4  # dimensions: [query, key], or [layer, head, query, key]
_TOLERANCE = 5e-3  # half-precision weights, added up, miss 1 by this much
_NOTHING = 1e-6  # what rounding leaves of a row whose whole weight is ignored


def context_attention(
    answer_tokens: Iterable[int],
    context_tokens: Iterable[int],
    attention: ArrayLike,
    *,
    ignore: Iterable[int] = (),
) -> float | None:
    """White-box context utilization: the share of attention that the answer puts on the context.

    For answer tokens A, context tokens C, ignored tokens I, L layers and H heads::

        a[t, j] = sum over l, h of attention[l, h, t, j] / (L H)
        U = mean over t in A of  (sum over j in C - I of a[t, j]) / (sum over j not in I of a[t, j])

    Parameters
    ----------
    answer_tokens : iterable of int
        Positions of the answer's tokens, from 0, on the query axis; each counts once.
    context_tokens : iterable of int
        Positions of the context's tokens, from 0, on the key axis; each counts once.
    attention : array of float, [layers, heads, query, key] or [query, key]
        Attention weights after the softmax, of all layers and heads or averaged over them: a row is
        a distribution over the keys that its query may see (under a causal mask those up to itself,
        the others 0). Only the answer's rows are read.
    ignore : iterable of int
        Keys to leave out, the rest of each row being scaled to 1. Models park attention that they
        have no use for on the first token ("attention sink"): ``ignore=[0]`` takes that out.

    Returns
    -------
    float or None
        In [0, 1]. None where there is nothing to measure: no answer token, no context token that is
        not ignored, or no answer token that looks at anything but ignored ones.

    Raises
    ------
    InputError
        The shape is another, a position lies outside it or is both answer and context, or a weight
        is negative or not finite, or a row does not sum to 1 within 0.005.

    Notes
    -----
    Attention is not attribution: a weight says what a head read from, not whether that changed the
    answer, and the mean over layers hides heads that work against each other. The value grows with
    the context's share of all tokens, so it compares answers over contexts of like length; beside
    it belongs `even_attention`, what a model that looks at everything alike would give.

    References
    ----------
    Bahdanau, Cho and Bengio (2015), Neural machine translation by jointly learning to align and
    translate, for attention weights as what is looked at. Jain and Wallace (2019), Attention is not
    explanation, for the limits. Xiao et al. (2024), Efficient streaming language models with
    attention sinks, for the first token.

    Examples
    --------
    Token 0 is the context, token 1 the question, tokens 2 and 3 the answer.

    >>> weights = [[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.6, 0.2, 0.2, 0], [0.2, 0.2, 0.2, 0.4]]
    >>> round(context_attention([2, 3], [0], weights), 12)
    0.4
    """
    import numpy as np

    try:
        weights = np.asarray(attention)
    except (TypeError, ValueError):  # rows of different lengths, a tensor numpy cannot read
        weights = np.empty(0)
    if weights.ndim not in (_AVERAGED, _WHOLE) or 0 in weights.shape:
        raise InputError(
            f"attention weights of shape {list(weights.shape)} cannot be read; "
            "give [layers, heads, query, key], or [query, key] if they are averaged"
        )
    queries, keys = weights.shape[-2:]
    answer = _positions("answer", answer_tokens, queries)
    context = _positions("context", context_tokens, keys)
    ignored = _positions("ignored", ignore, keys)
    both = set(answer) & set(context)
    if both:
        raise InputError(f"token {min(both)} is both answer and context; give each to one of them")
    rows = _averaged(weights[..., answer, :].astype(np.float64))
    seen = np.ones(keys, dtype=bool)
    seen[ignored] = False
    of_context = np.zeros(keys, dtype=bool)
    of_context[context] = True
    of_context &= seen
    if not answer or not of_context.any():
        return None
    on_context = rows[:, of_context].sum(axis=1)
    on_all = on_context + rows[:, seen & ~of_context].sum(axis=1)
    looking = on_all > _NOTHING
    if not looking.any():
        return None
    return float(np.mean(on_context[looking] / on_all[looking]))


def even_attention(
    answer_tokens: Iterable[int], context_tokens: Iterable[int], *, ignore: Iterable[int] = ()
) -> float | None:
    """What `context_attention` gives for a causal model that looks at every token alike.

    Parameters
    ----------
    answer_tokens, context_tokens, ignore : iterable of int
        As there.

    Returns
    -------
    float or None
        In [0, 1]: the mean over answer tokens of the context's share of the tokens up to them.
        None where there is nothing to measure.

    Examples
    --------
    >>> even_attention([3], [0, 1])
    0.5
    """
    ignored = set(ignore)
    context = set(context_tokens) - ignored
    shares = []
    for token in set(answer_tokens):
        seen = set(range(token + 1)) - ignored
        if seen:
            shares.append(len(context & seen) / len(seen))
    return sum(shares) / len(shares) if shares and context else None


def _positions(what: str, tokens: Iterable[int], length: int) -> list[int]:
    places = sorted(set(tokens))
    for place in places:
        if not 0 <= place < length:
            raise InputError(
                f"the {what} token {place} lies outside the attention weights; "
                f"positions go from 0 to {length - 1}"
            )
    return places


def _averaged(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over layers and heads of rows that are checked to be distributions."""
    import numpy as np

    if not np.isfinite(rows).all():
        raise InputError("an attention weight is not a finite number; load the model in float32")
    if (rows < 0).any():
        raise InputError("an attention weight is negative; give the weights after the softmax")
    sums = rows.sum(axis=-1)
    if sums.size and np.abs(sums - 1).max() > _TOLERANCE:
        wrong = float(sums.flat[np.abs(sums - 1).argmax()])
        raise InputError(
            f"the attention weights of an answer token sum to {wrong:.4g} and not to 1; "
            "give them after the softmax and without dropout, keys last"
        )
    averaged: NDArray[np.float64] = rows.mean(axis=(0, 1)) if rows.ndim == _WHOLE else rows
    return averaged
