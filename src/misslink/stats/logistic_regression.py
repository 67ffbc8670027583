"""Firth's logistic regression, for few cases and full separation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from misslink.stats.intervals import LEVEL, Floats
from misslink.types import Estimate

_NEWTON_STEPS = 100
_TOLERANCE = 1e-9
_MAX_STEP = 2.0  # the longest step of Newton's method, of log-odds per standard deviation
_MAX_LOG_ODDS = 60.0  # log-odds per standard deviation beyond which no end is looked for
_HALVINGS = 24
_METHOD = "firth, profile"


@dataclass(frozen=True)
class RegressionEffect:
    """How an outcome depends on one number.

    Parameters
    ----------
    coefficient : Estimate
        Change of the log-odds of the outcome per standard deviation of the number.
    p : float or None
        Of the penalised likelihood-ratio test of no effect. None: not computed.
    """

    coefficient: Estimate
    p: float | None


def firth_regression(
    outcome: Sequence[bool], number: Sequence[float], others: Sequence[Sequence[float]] = ()
) -> RegressionEffect:
    """Regress a yes-or-no outcome on a number, with others held constant.

    Parameters
    ----------
    outcome : sequence of bool
        One a case.
    number : sequence of float
        Of the same cases; standardised here.
    others : sequence of sequences of float
        Each of the same cases.

    Returns
    -------
    Effect
        Missing where the outcome or the number does not vary.

    Raises
    ------
    ValueError
        The lengths differ.

    Notes
    -----
    The likelihood is multiplied by the square root of the information's determinant, which takes
    out the bias of few cases and leaves every estimate finite, also where the number parts the
    outcomes fully. The interval inverts the profile of that likelihood.

    References
    ----------
    Firth (1993), Bias reduction of maximum likelihood estimates. Heinze and Schemper (2002), A
    solution to the problem of separation in logistic regression.

    Examples
    --------
    Of a yes-or-no number it is the log odds ratio with half a case more in each cell, here
    log(3.5^2 / 1.5^2) = 1.695; a standard deviation is half of the way from no to yes.

    >>> found = firth_regression([1, 1, 1, 0, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0])
    >>> round(found.coefficient.value / 0.5, 3)
    1.695
    """
    from scipy.special import chdtrc, chdtri

    n = len(outcome)
    if any(len(column) != n for column in (number, *others)):
        raise ValueError("outcome and numbers are not of the same cases")
    y = np.array(outcome, dtype=float)
    columns = [np.array(column, dtype=float) for column in (number, *others)]
    if not n or y.min() == y.max():
        reason = "there is no case" if not n else "the outcome is the same in every case"
        return RegressionEffect(Estimate.missing(reason, n=n, method=_METHOD), None)
    if columns[0].std() <= _TOLERANCE * max(1.0, float(np.abs(columns[0]).max())):
        reason = "the number is the same in every case"
        return RegressionEffect(Estimate.missing(reason, n=n, method=_METHOD), None)
    varying_columns = [columns[0], *(column for column in columns[1:] if column.std() > 0)]
    scaled = [(column - column.mean()) / column.std() for column in varying_columns]
    rows, times = np.unique(np.column_stack([*scaled, y]), axis=0, return_counts=True)
    table = _WeightedRows(np.column_stack([np.ones(len(rows)), rows[:, :-1]]), rows[:, -1], times)
    if np.linalg.matrix_rank(table.x) < table.x.shape[1]:
        reason = "the number is determined by another one"
        return RegressionEffect(Estimate.missing(reason, n=n, method=_METHOD), None)
    value, best = _fit_penalized(table, np.zeros(len(varying_columns) + 1), None)
    drop = float(chdtri(1, 1 - LEVEL)) / 2  # of the log-likelihood, at both ends
    start = value

    def below(coefficient: float) -> float:
        nonlocal start  # the next place is near
        start, height = _fit_penalized(table, start, coefficient)
        return best - drop - height

    low, high = (_profile_end(below, float(value[1]), side) for side in (-1.0, 1.0))
    p = float(chdtrc(1, max(2 * (best - _fit_penalized(table, value, 0.0)[1]), 0.0)))
    open_ended = None if low is not None and high is not None else "its interval has no end"
    coefficient = Estimate(
        value=float(value[1]), low=low, high=high, n=n, method=_METHOD, reason=open_ended
    )
    return RegressionEffect(coefficient, p)


@dataclass(frozen=True)
class _WeightedRows:
    """Distinct rows: their numbers, their outcome, and how many cases have them."""

    x: Floats
    y: Floats
    times: NDArray[np.int64]

    def chances(self, coefficients: Floats) -> Floats:
        """The chance of the outcome in each row."""
        from scipy.special import expit

        return expit(self.x @ coefficients)

    def information(self, chance: Floats) -> Floats:
        """Fisher's information."""
        return (self.x * (self.times * chance * (1 - chance))[:, None]).T @ self.x

    def likelihood(self, coefficients: Floats) -> float:
        """The penalised log-likelihood."""
        line = self.x @ coefficients
        sign, determinant = np.linalg.slogdet(self.information(self.chances(coefficients)))
        penalty = float(determinant) / 2 if sign > 0 else -np.inf
        return float(self.times @ (self.y * line - np.logaddexp(0, line))) + penalty


def _fit_penalized(table: _WeightedRows, start: Floats, held: float | None) -> tuple[Floats, float]:
    """The best coefficients, the second held where it is given, and their log-likelihood."""
    coefficients, x = start.copy(), table.x
    if held is not None:
        coefficients[1] = held
    free = np.array([place for place in range(len(coefficients)) if held is None or place != 1])
    level = table.likelihood(coefficients)
    for _ in range(_NEWTON_STEPS):
        chance = table.chances(coefficients)
        information = table.information(chance)
        inverse = np.linalg.pinv(information, hermitian=True)
        leverage = chance * (1 - chance) * ((x @ inverse) * x).sum(axis=1)
        score = x.T @ (table.times * (table.y - chance + leverage * (0.5 - chance)))
        step = np.zeros(len(coefficients))
        step[free] = np.linalg.lstsq(information[np.ix_(free, free)], score[free], rcond=None)[0]
        step *= min(1.0, _MAX_STEP / max(float(np.abs(step).max()), _TOLERANCE))
        moved, size = table.likelihood(coefficients + step), 1.0
        while moved < level and size > _TOLERANCE:
            size /= 2
            moved = table.likelihood(coefficients + size * step)
        if moved < level:
            break
        coefficients, gain, level = coefficients + size * step, moved - level, moved
        if gain < _TOLERANCE:
            break
    return coefficients, level


def _profile_end(below: Callable[[float], float], value: float, side: float) -> float | None:
    """Where the profile has dropped far enough, on one side of the value; None beyond all."""
    inside, outside = value, value + side / 4
    while below(outside) < 0:
        inside, outside = outside, value + 2 * (outside - value)
        if abs(outside) > _MAX_LOG_ODDS:
            return None
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if below(middle) > 0 else (middle, outside)
    return (inside + outside) / 2
