"""Folds of labelled cases, so that nothing is measured on what it was fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["stratified_folds"]

_FEWEST = 2  # folds; with one there is nothing left to fit on


def stratified_folds(labels: Sequence[bool], folds: int = 5, *, seed: int = 0) -> NDArray[np.int64]:
    """Deal the cases of each label out to folds, as evenly as can be.

    Parameters
    ----------
    labels : sequence of bool
        One a case; truth values such as 0 and 1 do.
    folds : int
        How many, at least 2; fewer are made where the rarer label has fewer cases.
    seed : int
        Of the shuffle.

    Returns
    -------
    array of int
        The fold of each case, from 0. Every fold leaves both labels to fit on.

    Raises
    ------
    ValueError
        Fewer than 2 folds, or fewer than 2 cases of either label.

    Examples
    --------
    >>> sorted(stratified_folds([1, 1, 0, 0], 2).tolist())
    [0, 0, 1, 1]
    """
    import numpy as np

    good = np.array(labels, dtype=bool)
    rarer = int(min(good.sum(), (~good).sum()))
    if folds < _FEWEST:
        raise ValueError(f"{folds} folds leave nothing to fit on")
    if rarer < _FEWEST:
        raise ValueError(
            f"the rarer label has {rarer} cases; fitting and measuring needs 2 or more"
        )
    folds = min(folds, rarer)
    generator = np.random.default_rng(seed)
    found = np.empty(len(good), dtype=np.int64)
    dealt = 0  # the second label goes on where the first ended, so that folds are of one size
    for side in (good, ~good):
        places = generator.permutation(np.flatnonzero(side))
        found[places] = (dealt + np.arange(len(places))) % folds
        dealt += len(places)
    return found
