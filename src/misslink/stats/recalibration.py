"""Scores made into probabilities that hold: isotonic and Platt, cross-fitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from misslink.stats.folds import stratified_folds

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Isotonic", "Platt", "cross_fitted", "fit_isotonic", "fit_platt"]

_ROUNDS = 100  # of Newton's method; it needs about ten
_CLOSE = 1e-10


@dataclass(frozen=True)
class Isotonic:
    """A rising line through (score, probability) points, level beyond both ends."""

    scores: tuple[float, ...]
    probabilities: tuple[float, ...]

    def __call__(self, scores: Sequence[float]) -> list[float]:
        """The probability of each score."""
        import numpy as np

        found: list[float] = np.interp(scores, self.scores, self.probabilities).tolist()
        return found


@dataclass(frozen=True)
class Platt:
    """1 / (1 + exp(-(slope x score + intercept)))."""

    slope: float
    intercept: float

    def __call__(self, scores: Sequence[float]) -> list[float]:
        """The probability of each score."""
        import numpy as np
        from scipy.special import expit

        found: list[float] = expit(self.slope * np.array(scores) + self.intercept).tolist()
        return found


def fit_isotonic(labels: Sequence[bool], scores: Sequence[float]) -> Isotonic:
    """The rising step function nearest to the labels, joined up by straight lines.

    Parameters
    ----------
    labels : sequence of bool
        By people, one a case; truth values such as 0 and 1 do.
    scores : sequence of float
        By the judge, of the same cases.

    Returns
    -------
    Isotonic
        Makes no assumption on the shape but that it rises; wants a few hundred labels.

    Raises
    ------
    ValueError
        The lengths differ, a label is neither true nor false, a score is not finite, or one of
        the labels has no case.

    References
    ----------
    Zadrozny and Elkan (2002), Transforming classifier scores into accurate multiclass probability
    estimates.

    Examples
    --------
    >>> fit_isotonic([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9])([0.1, 0.5, 0.9])
    [0.0, 0.5, 1.0]
    """
    import numpy as np
    from scipy.optimize import isotonic_regression

    good, score = _checked(labels, scores)
    distinct, inverse, counts = np.unique(score, return_inverse=True, return_counts=True)
    shares = np.bincount(inverse, good) / counts
    fitted = isotonic_regression(shares, weights=counts.astype(float)).x
    # points inside a level stretch add nothing
    kept = np.ones(len(fitted), dtype=bool)
    kept[1:-1] = (fitted[1:-1] != fitted[:-2]) | (fitted[1:-1] != fitted[2:])
    return Isotonic(tuple(distinct[kept].tolist()), tuple(fitted[kept].tolist()))


def fit_platt(labels: Sequence[bool], scores: Sequence[float]) -> Platt:
    """A logistic curve through the labels.

    Parameters
    ----------
    labels, scores
        As for `fit_isotonic`.

    Returns
    -------
    Platt
        Two numbers, so that it does with few labels. The labels are pulled in a little, as Platt
        proposes, so that scores which part them fully do not make an endless slope.

    Raises
    ------
    ValueError
        As `fit_isotonic`.

    References
    ----------
    Platt (1999), Probabilistic outputs for support vector machines. Lin, Lin and Weng (2007), A
    note on Platt's probabilistic outputs.

    Examples
    --------
    >>> curve = fit_platt([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.4, 0.6, 0.8, 0.9])
    >>> curve.slope > 0
    True
    """
    import numpy as np
    from scipy.special import expit

    good, score = _checked(labels, scores)
    positives, negatives = good.sum(), (1 - good).sum()
    target = np.where(good > 0, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    centre, width = score.mean(), score.std() or 1.0
    design = np.column_stack([(score - centre) / width, np.ones(len(score))])

    def loss(at: NDArray[np.float64]) -> float:
        line = design @ at
        return float((np.logaddexp(0, line) - target * line).sum())

    at = np.array([0.0, np.log((positives + 1) / (negatives + 1))])
    for _ in range(_ROUNDS):
        chance = expit(design @ at)
        slope = design.T @ (chance - target)
        if np.abs(slope).max() <= _CLOSE * len(score):
            break
        bend = (design * (chance * (1 - chance))[:, None]).T @ design + 1e-12 * np.eye(2)
        step, size = np.linalg.solve(bend, slope), 1.0
        while loss(at - size * step) > loss(at) and size > _CLOSE:
            size /= 2
        at = at - size * step
    return Platt(float(at[0] / width), float(at[1] - at[0] * centre / width))


def cross_fitted(
    labels: Sequence[bool],
    scores: Sequence[float],
    *,
    method: Literal["isotonic", "platt"] = "platt",
    folds: int = 5,
    seed: int = 0,
) -> list[float]:
    """The probability of each case by a fit on the other folds: fit to be measured.

    Parameters
    ----------
    labels, scores
        As for `fit_isotonic`.
    method : "isotonic" or "platt"
    folds : int
        At least 2; fewer where the rarer label has fewer cases.
    seed : int
        Of the folds.

    Returns
    -------
    list of float
        In the order of the cases.

    Raises
    ------
    ValueError
        As `fit_isotonic`, and with fewer than 2 cases of either label.

    Examples
    --------
    >>> len(cross_fitted([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9]))
    4
    """
    import numpy as np

    good, score = _checked(labels, scores)
    fold = stratified_folds(good.tolist(), folds, seed=seed)
    fits: dict[str, Callable[..., Isotonic | Platt]] = {
        "isotonic": fit_isotonic,
        "platt": fit_platt,
    }
    found = np.empty(len(good))
    for each in range(int(fold.max()) + 1):
        held = fold == each
        fitted = fits[method](good[~held].tolist(), score[~held].tolist())
        found[held] = fitted(score[held].tolist())
    return [float(each) for each in found]


def _checked(
    labels: Sequence[bool], scores: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    import numpy as np

    if len(labels) != len(scores):
        raise ValueError(f"{len(labels)} labels and {len(scores)} scores do not pair up")
    good, score = np.array(labels, dtype=float), np.array(scores, dtype=float)
    if not np.isin(good, (0, 1)).all() or not np.isfinite(score).all():
        raise ValueError("labels are 0 or 1 and scores finite numbers")
    if len(np.unique(good)) <= 1:
        raise ValueError("all labels are alike: there is nothing to fit")
    return good, score
