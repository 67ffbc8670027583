"""From which score on to call a case good, and how well that does on cases it was not fitted on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from misslink.stats.confusion import Confusion, confusion
from misslink.stats.folds import stratified_folds

__all__ = ["Nested", "best_threshold", "nested_threshold"]

Aim = Literal["f1", "precision", "sensitivity"]


@dataclass(frozen=True)
class Nested:
    """A threshold and what to expect of it.

    Parameters
    ----------
    threshold : float or None
        Fitted on all cases, for later use. None: none reaches what was wanted.
    of_folds : tuple of (float or None)
        Fitted without the cases of each fold; how far they lie apart shows how sure it is.
    measured : Confusion
        Each case called by the threshold of which it was no part; of folds whose threshold is
        None the cases are left out.
    """

    threshold: float | None
    of_folds: tuple[float | None, ...]
    measured: Confusion


def best_threshold(
    labels: Sequence[bool],
    scores: Sequence[float],
    *,
    aim: Aim = "f1",
    wanted: float | None = None,
    find: bool = True,
) -> float | None:
    """The threshold at which calling cases with that score or more good does best.

    Parameters
    ----------
    labels : sequence of bool
        By people, one a case: whether it is good. Truth values such as 0 and 1 do.
    scores : sequence of float
        By the judge, of the same cases.
    aim : "f1", "precision" or "sensitivity"
        The largest F1; or the largest sensitivity with at least the `wanted` precision; or the
        largest precision with at least the `wanted` sensitivity.
    wanted : float or None
        In (0, 1], for the last two only.
    find : bool
        Which label the aim is about: True for good cases, False for bad ones (score below the
        threshold).

    Returns
    -------
    float or None
        One of the scores, or the next float above the largest (all cases bad). Of several that do
        equally well the lowest. None where no threshold reaches what is wanted, or no case has
        the label that is to be found.

    Raises
    ------
    ValueError
        The lengths differ, a label is neither true nor false, a score is not finite, or `wanted`
        is not given where it is needed (or given where not).

    Examples
    --------
    >>> best_threshold([0, 1, 0, 1, 1], [0.1, 0.3, 0.4, 0.6, 0.9])
    0.3
    >>> best_threshold([0, 1, 0, 1, 1], [0.1, 0.3, 0.4, 0.6, 0.9], aim="precision", wanted=1.0)
    0.6
    """
    import numpy as np

    if (aim == "f1") != (wanted is None) or (wanted is not None and not 0 < wanted <= 1):
        raise ValueError(f"a wanted {aim} of {wanted} makes no sense: F1 takes none, others (0, 1]")
    if len(labels) != len(scores):
        raise ValueError(f"{len(labels)} labels and {len(scores)} scores do not pair up")
    good, score = np.array(labels, dtype=float), np.array(scores, dtype=float)
    if not np.isin(good, (0, 1)).all() or not np.isfinite(score).all():
        raise ValueError("labels are 0 or 1 and scores finite numbers")
    sought = good if find else 1 - good
    total = sought.sum()
    if not total:
        return None
    candidates = np.unique(score)
    candidates = np.append(candidates, np.nextafter(candidates[-1], math.inf))
    order = np.argsort(score, kind="stable")
    below = np.searchsorted(score[order], candidates, side="left")
    sought_below = np.concatenate([[0.0], np.cumsum(sought[order])])[below]
    called = len(score) - below if find else below
    hits = total - sought_below if find else sought_below
    precision = np.divide(hits, called, out=np.zeros(len(called)), where=called > 0)
    sensitivity = hits / total
    if wanted is None:
        return float(candidates[np.argmax(2 * hits / (called + total))])
    held, raised = (precision, sensitivity) if aim == "precision" else (sensitivity, precision)
    reached = np.flatnonzero((held >= wanted) & (called > 0))
    if not len(reached):
        return None
    return float(candidates[reached[np.argmax(raised[reached])]])


def nested_threshold(
    labels: Sequence[bool],
    scores: Sequence[float],
    *,
    aim: Aim = "f1",
    wanted: float | None = None,
    find: bool = True,
    folds: int = 5,
    seed: int = 0,
) -> Nested:
    """Fit a threshold on all folds but one and measure it there, for each fold in turn.

    Parameters
    ----------
    labels, scores, aim, wanted, find
        As for `best_threshold`.
    folds : int
        At least 2; fewer where the rarer label has fewer cases.
    seed : int
        Of the folds.

    Returns
    -------
    Nested
        Its `measured` counts good as positive; ``measured.turned`` is about bad cases.

    Raises
    ------
    ValueError
        As `best_threshold`, and with fewer than 2 cases of either label.

    Notes
    -----
    The interval of a rate read from `measured` treats the thresholds of the folds as one; with a
    hundred labels and more ``benchmarks/calibration_coverage.py`` finds no harm in that.

    References
    ----------
    Varma and Simon (2006), Bias in error estimation when using cross-validation for model
    selection.

    Examples
    --------
    >>> found = nested_threshold([0, 0, 0, 1, 1, 1], [1, 2, 3, 4, 5, 6], folds=3)
    >>> found.threshold, found.measured.n
    (4.0, 6)
    """
    import numpy as np

    threshold = best_threshold(labels, scores, aim=aim, wanted=wanted, find=find)
    fold = stratified_folds(labels, folds, seed=seed)
    good, score = np.array(labels, dtype=bool), np.array(scores, dtype=float)
    of_folds: list[float | None] = []
    said: list[bool] = []
    called: list[bool] = []
    for each in range(int(fold.max()) + 1):
        held = fold == each
        cut = best_threshold(
            good[~held].tolist(), score[~held].tolist(), aim=aim, wanted=wanted, find=find
        )
        of_folds.append(cut)
        if cut is not None:
            said += good[held].tolist()
            called += (score[held] >= cut).tolist()
    return Nested(threshold, tuple(of_folds), confusion(said, called))
