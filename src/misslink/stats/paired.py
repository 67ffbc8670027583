"""Two systems on the same cases: the difference, its p-value, and what could have been seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from misslink.stats.means import mean
from misslink.stats.proportions import critical, wilson
from misslink.stats.randomisation import sign_flips
from misslink.types import Estimate

__all__ = ["Paired", "detectable_after", "detectable_shift", "holm", "paired_difference"]

_ROUNDING = 1e-9  # an nDCG of 1.0000000000000002 is 1
_DECIMALS = 12  # 0.6 - 0.4 and 0.4 - 0.2 are one size
_SIZE, _POWER = 0.05, 0.80  # the customary ones, for what is rejected and could be detected
_FEWEST = 2  # one difference has no spread


@dataclass(frozen=True)
class Paired:
    """How much better b is than a, case by case.

    Parameters
    ----------
    difference : Estimate
        Mean of b - a; n is the number of cases in which both have a value.
    p : float or None
        Two-sided, of the sign-flip test that the differences are symmetric around 0. None: no
        case has both values.
    detectable : float or None
        The mean difference that this many cases, with differences as spread as these, show at
        the 5 % level in 80 % of repetitions. None: the differences have no spread to go by.
    groups : int or None
        How many clusters the cases come in. None: each stands for itself.
    """

    difference: Estimate
    p: float | None
    detectable: float | None
    groups: int | None = None


def paired_difference(
    a: Sequence[float | None],
    b: Sequence[float | None],
    *,
    seed: int = 0,
    bounds: tuple[float, float] | None = (0.0, 1.0),
) -> Paired:
    """Compare two systems over the cases in which both have a value; the order does not matter.

    Parameters
    ----------
    a, b : sequence of float or None, of equal length
        A value for each case, in the same order of cases. None: the system has none there.
    seed : int
        Of the interval, and of the sign flips where they are drawn.
    bounds : pair of float or None
        What the values can be at least and at most. None: they are not bounded, and differences
        that are all alike then have no interval.

    Returns
    -------
    Paired
        The difference is that of `misslink.stats.mean`, bounded by the largest difference seen:
        a Bayesian bootstrap in which a gain and a loss of that size count as half a case more.
        ``benchmarks/interval_coverage.py`` shows why: where few cases differ it covers what the
        plain bootstrap does not. If no case differs (``wilson bound``), at most as many could as
        Wilson's interval for none of n allows, each by the whole range.
        The test goes through every outcome of the flips where there are at most 10,000 (always
        so if at most 13 cases differ; for yes-or-no values it is McNemar's exact test), else
        through 10,000 random ones, the observed counted among them.

    Raises
    ------
    ValueError
        The lengths differ, or a value is not finite or not within `bounds`.

    References
    ----------
    Fisher (1935), The design of experiments, section 21. Smucker, Allan and Carterette (2007), A
    comparison of statistical significance tests for information retrieval evaluation. Phipson
    and Smyth (2010), Permutation p-values should never be zero.

    Examples
    --------
    >>> found = paired_difference([0, 0, 1, 0, None, 0], [1, 1, 1, 1, 1, 0])
    >>> found.difference.value, found.difference.n, found.p
    (0.6, 5, 0.25)
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} values are not of the same cases")
    both = zip(a, b, strict=True)
    pairs = [(float(x), float(y)) for x, y in both if x is not None and y is not None]
    least, most = bounds or (-math.inf, math.inf)
    for value in (value for pair in pairs for value in pair):
        if not math.isfinite(value):
            raise ValueError("differences are taken of finite numbers; a missing value is None")
        if not least - _ROUNDING <= value <= most + _ROUNDING:
            raise ValueError(f"a value of {value} is not within {bounds}")
    span = most - least if bounds else None
    differences = sorted(round(y - x, _DECIMALS) for x, y in pairs)
    if not differences:
        return Paired(Estimate.missing("no case has a value in both"), None, None)
    return Paired(
        difference=_difference(differences, span, seed),
        p=sign_flips(differences, seed=seed),
        detectable=_detectable(differences),
    )


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """P-values corrected for how many were computed, in their order; a missing one stays so.

    Parameters
    ----------
    ps : sequence of float or None
        In [0, 1]. None: no test was made, so it does not count.

    Returns
    -------
    list of float or None
        The smallest times their number, the next times one fewer and so on, never falling and at
        most 1. Rejecting below 5 % then errs anywhere in 5 % of repetitions at most.

    Raises
    ------
    ValueError
        A p-value is not in [0, 1].

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.

    Examples
    --------
    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    tested = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    corrected: list[float | None] = [None] * len(ps)
    largest = 0.0
    for before, (p, place) in enumerate(tested):
        if not 0 <= p <= 1:
            raise ValueError(f"a p-value lies between 0 and 1, not {p}")
        largest = max(largest, min(1.0, p * (len(tested) - before)))
        corrected[place] = largest
    return corrected


def detectable_after(found: Paired, ps: Sequence[float | None]) -> float | None:
    """What these cases could have shown, at the level where Holm's procedure stopped.

    Parameters
    ----------
    found : Paired
        One of the comparisons that were made.
    ps : sequence of float or None
        The p-values of all of them, corrected by `holm`. None: no test was made.

    Returns
    -------
    float or None
        As `Paired.detectable`, but at 5 % divided by how many tests are not rejected (at 5 % itself
        where all are): what a difference has to pass to be the next one. None where the
        differences have no spread to go by.

    References
    ----------
    Holm (1979), A simple sequentially rejective multiple test procedure.

    Examples
    --------
    >>> found = paired_difference([0.5, 0.5, 0.5, 0.5], [0.5, 0.75, 0.5, 1.0])
    >>> round(found.detectable, 2), round(detectable_after(found, [0.5, 0.9, 1.0, None]), 2)
    (0.51, 0.75)
    """
    if found.detectable is None:
        return None
    tests = [p for p in ps if p is not None]
    left = sum(p >= _SIZE for p in tests)
    units = found.difference.n if found.groups is None else found.groups
    level = _SIZE / max(1, left)
    return found.detectable * _shift(units - 1, level) / detectable_shift(units)


def detectable_shift(units: int) -> float:
    """How many standard errors a difference is off 0 that is seen at 5 % in 80 % of repetitions.

    Parameters
    ----------
    units : int
        Independent differences, at least 2.

    Examples
    --------
    >>> round(detectable_shift(1000), 2)
    2.8
    """
    return _shift(units - 1, _SIZE)


def _shift(freedom: int, level: float) -> float:
    """How many standard errors a difference lies from 0 that a t test sees with the usual power."""
    from scipy.special import nctdtrinc, stdtrit

    return float(nctdtrinc(freedom, 1 - _POWER, stdtrit(freedom, 1 - level / 2)))


def _difference(differences: list[float], span: float | None, seed: int) -> Estimate:
    largest = max(abs(differences[0]), abs(differences[-1]))
    n = len(differences)
    if span is not None and not largest:
        _, most = wilson(0.0, n, critical(0.95))
        ends = span * most
        return Estimate(value=0.0, low=-ends, high=ends, n=n, method="wilson bound")
    bounds: tuple[float, float] | None = (-largest, largest)
    if differences[0] == differences[-1]:
        bounds = None if span is None else (-span, span)
    found = mean(differences, seed=seed, bounds=bounds)
    return found.model_copy(update={"value": math.fsum(differences) / n})  # not scaled and back


def _detectable(differences: list[float]) -> float | None:
    """By the power of the paired t test; its noncentral t knows that the spread is estimated."""
    n = len(differences)
    if n < _FEWEST or differences[0] == differences[-1]:
        return None
    centre = math.fsum(differences) / n
    spread = math.sqrt(math.fsum((each - centre) ** 2 for each in differences) / (n - 1))
    return detectable_shift(n) * spread / math.sqrt(n)
