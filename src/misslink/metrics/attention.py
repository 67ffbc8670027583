"""Context utilization by attention, for models with open weights."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from misslink.errors import InputError


def attention_share(attention: Any, context_positions: Iterable[int]) -> float | None:
    """Return the share of an answer's attention that is on the context.

    Parameters
    ----------
    attention : array of float, shape (..., answer tokens, tokens)
        Attention of each answer token on all tokens, 0 or more. Layers and heads may come first;
        they are averaged.
    context_positions : iterable of int
        Positions of the context's tokens among all tokens, from 0.

    Returns
    -------
    float or None
        The attention on the context over all attention, in [0, 1]. None if there is no attention at
        all: not measured is not 0.

    Raises
    ------
    InputError
        The array has fewer than two axes or a value that is no attention, or a position is outside.

    Examples
    --------
    >>> attention_share([[0.1, 0.6, 0.3], [0.0, 0.2, 0.8]], [1])
    0.4
    """
    import numpy as np

    weights = np.asarray(attention, dtype=np.float64)
    if weights.ndim < 2:
        raise InputError(
            f"the attention has the shape {weights.shape}; give answer tokens by all tokens, such as "
            "torch.stack(attentions)[:, 0, :, answer, :]"
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError("the attention has a value that is negative or no number")
    tokens, positions = weights.shape[-1], sorted({*context_positions})
    if outside := [place for place in positions if not 0 <= place < tokens]:
        raise InputError(f"context position {outside[0]} is outside of the {tokens} tokens")
    matrix = weights.mean(axis=tuple(range(weights.ndim - 2))) if weights.size else weights
    total = matrix.sum()
    return float(matrix[..., positions].sum() / total) if total else None
