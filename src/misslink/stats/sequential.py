"""A difference of means that may be looked at as often as one likes, and stopped at any time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from misslink.types import Estimate

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "FEWEST",
    "TUNED_FOR",
    "Sequential",
    "balanced_units",
    "boundary",
    "sequential",
    "units_for",
]

# The interval is narrowest, relative to a fixed-size one, near this many units of both variants
# together; it has to be chosen without looking at the data. Differences of 5 to 10 points of a
# share near a half are found within 3,400 and 900 (benchmarks/sequential_test.md), and from 200
# to 20,000 the interval is at most 27 % wider than one that was tuned for that very size.
TUNED_FOR = 2000
# The boundary is that of a Gaussian random walk, which a mean is near from some units on; until
# each variant has so many, nothing is decided (benchmarks/sequential_test.md).
FEWEST = 50
_POWER_Z = 0.8416212335729143  # the normal quantile of 80 %
_MOST_UNITS = 1e9


@dataclass(frozen=True)
class Sequential:
    """A difference as it stands, valid at any time.

    Parameters
    ----------
    difference : Estimate
        Variant minus control, with the confidence sequence's interval of now; missing an interval
        until each side has `FEWEST` units.
    p : float or None
        Always valid: the chance that it is ever this small where there is no difference is at
        most its value.
    """

    difference: Estimate
    p: float | None


def sequential(
    control: NDArray[Any],
    variant: NDArray[Any],
    *,
    alpha: float = 0.05,
    tuned_for: float = TUNED_FOR,
    times: float = 1.0,
    is_share: bool = False,
) -> Sequential:
    """Compare two means of units, allowing for a look after every unit.

    Parameters
    ----------
    control, variant : array of float
        One number a unit, as `misslink.stats.unit_values` gives them.
    alpha : float
        In (0, 1): the chance that the interval of some look misses the true difference.
    tuned_for : float
        Units of both variants near which it is narrowest; to be chosen before looking.
    times : float
        Compare with so many times control's mean, as a relative margin needs.
    is_share : bool
        Values are of yes or no: to the spread of either side a yes and a no are added, so that
        none of 500 is not taken for never.

    Returns
    -------
    Sequential
        The mixture sequential probability ratio test with a normal mixture over the difference,
        the variance estimated: an asymptotic confidence sequence. Where one side has far fewer
        units, its variance is taken from below by that of both together.

    References
    ----------
    Robbins (1970), Statistical methods related to the law of the iterated logarithm. Johari,
    Koomen, Pekelis and Walsh (2022), Always valid inference: continuous monitoring of A/B tests.
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2021), Time-uniform central limit theory and
    asymptotic confidence sequences, theorem 2.2. Agresti and Caffo (2000), Simple and effective
    confidence intervals for proportions (the yes and the no).

    Examples
    --------
    >>> import numpy as np
    >>> found = sequential(np.arange(100) % 2, np.ones(100) - np.arange(100) % 5 // 4)
    >>> [round(x, 2) for x in (found.difference.value, found.difference.low, found.p)]
    [0.3, 0.05, 0.01]
    """
    method = "confidence sequence"
    count = len(control) + len(variant)
    if not len(control) or not len(variant):
        reason = "a variant has no unit with a value"
        return Sequential(Estimate.missing(reason, n=count, method=method), None)
    value = float(variant.mean()) - times * float(control.mean())
    error = 0.0
    if min(len(control), len(variant)) >= FEWEST:
        error = math.sqrt(_spread(control, variant, times, is_share))
    if not error:
        few = min(len(control), len(variant)) < FEWEST
        reason = f"each variant needs {FEWEST} units first" if few else "all units are alike"
        bare = Estimate(value=value, low=None, high=None, n=count, method=method, reason=reason)
        return Sequential(bare, None)
    units = balanced_units(len(control), len(variant))
    half = boundary(units, alpha=alpha, tuned_for=tuned_for) * error
    # The mixture's likelihood ratio, whose inverse is the p-value, in logarithms.
    eta = units / _scale(alpha, tuned_for)
    log_ratio = (value / error) ** 2 / 2 * eta / (1 + eta) - math.log1p(eta) / 2
    return Sequential(
        Estimate(value=value, low=value - half, high=value + half, n=count, method=method),
        math.exp(-max(log_ratio, 0.0)),
    )


def balanced_units(control: int, variant: int) -> float:
    """How many units in two equal halves would tell as much as these.

    >>> balanced_units(500, 500), round(balanced_units(900, 100))
    (1000.0, 360)
    """
    return 4 * control * variant / (control + variant)


def boundary(units: float, *, alpha: float = 0.05, tuned_for: float = TUNED_FOR) -> float:
    """How many standard errors the interval is wide to either side, at so many units.

    >>> round(boundary(2000), 2), round(boundary(200), 2), round(boundary(20_000), 2)
    (3.04, 3.86, 3.24)
    """
    scale = _scale(alpha, tuned_for)
    return math.sqrt((1 + scale / units) * (math.log1p(units / scale) - 2 * math.log(alpha)))


def units_for(
    effect: float,
    error: float,
    units: float,
    *,
    alpha: float = 0.05,
    tuned_for: float = TUNED_FOR,
) -> float | None:
    """Units at which a true difference has been seen in 80 % of repetitions, by a look there.

    Parameters
    ----------
    effect : float
        The difference; its sign does not matter.
    error : float
        The standard error of the difference at present, above 0.
    units : float
        At present, above 0, as `balanced_units` counts them.

    Returns
    -------
    float or None
        None: more than a milliard, or the effect is 0.
    """
    spread = error * math.sqrt(units)

    def is_seen(size: float) -> bool:
        least = boundary(size, alpha=alpha, tuned_for=tuned_for) + _POWER_Z
        return abs(effect) * math.sqrt(size) >= least * spread

    low, high = 1.0, 2.0
    while not is_seen(high):
        low, high = high, 2 * high
        if high > _MOST_UNITS:
            return None
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (low, middle) if is_seen(middle) else (middle, high)
    return float(math.ceil(high))


def _spread(control: NDArray[Any], variant: NDArray[Any], times: float, is_share: bool) -> float:
    """The variance of the difference of the means."""
    sides = control, variant
    own = [_variance(values, is_share) for values in sides]
    counts = [len(values) for values in sides]
    # Of what is rare, such as an asking again or a huge bill, a small side may have seen nothing
    # yet, and its own spread is then far too little while its mean is too low. The smaller it is
    # against the other side, the more of the spread common to both it has at least.
    small = counts.index(min(counts))
    pooled = sum((count - 1) * each for count, each in zip(counts, own, strict=True)) / (
        sum(counts) - len(counts)
    )
    uneven = 1 - counts[small] / counts[1 - small]
    own[small] = max(own[small], (1 - uneven) * own[small] + uneven * pooled)
    return times**2 * own[0] / counts[0] + own[1] / counts[1]


def _variance(values: NDArray[Any], is_share: bool) -> float:
    import numpy as np

    given = np.append(values, [0.0, 1.0]) if is_share else values
    return float(given.var(ddof=1))


def _scale(alpha: float, tuned_for: float) -> float:
    """The mixture's parameter as units: that whose width is least at `tuned_for`."""
    if not 0 < alpha < 1 or not 0 < tuned_for < math.inf:
        raise ValueError(f"alpha {alpha} lies between 0 and 1, and {tuned_for} units above 0")
    wide = -2 * math.log(alpha)
    return tuned_for / (wide + math.log(wide + 1))
