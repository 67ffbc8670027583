"""A whole number shared out by weights."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["shared_out"]


def shared_out(n: int, weights: Mapping[str, float]) -> dict[str, int]:
    """Share out `n` by the largest remainders; equal ones in the order given.

    Parameters
    ----------
    n : int
        At least 0.
    weights : mapping of str to float
        At least 0, with a sum above 0.

    >>> shared_out(5, {"a": 2, "b": 1, "c": 0})
    {'a': 3, 'b': 2, 'c': 0}
    """
    total = sum(weights.values())
    exact = {name: n * weight / total for name, weight in weights.items()}
    whole = {name: int(share) for name, share in exact.items()}
    names = list(weights)
    rest = n - sum(whole.values())
    by_rest = sorted(names, key=lambda name: (whole[name] - exact[name], names.index(name)))
    for name in [name for name in by_rest if weights[name] > 0][:rest]:
        whole[name] += 1
    return whole
