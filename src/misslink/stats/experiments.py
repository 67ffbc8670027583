"""Statistics of A/B experiments: unit means, CUPED, sequential tests and sample ratio checks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from misslink.stats.intervals import (
    Floats,
    critical_value,
    interval_estimate,
    student_quantile,
    wilson_interval,
    without_interval,
)
from misslink.types import Estimate, Reason


def unit_values(
    numerators: Sequence[float] | Floats, denominators: Sequence[float] | Floats | None = None
) -> Floats:
    """Turn a ratio over units into one number a unit (the delta method).

    Parameters
    ----------
    numerators : sequence of float, one a unit
        Such as thumbs up.
    denominators : sequence of float, one a unit, or None
        Such as requests, from 0; a unit of 0 has no say. None: 1 each, and the metric is a mean.

    Returns
    -------
    array of float, one a unit
        Their mean is sum(numerators) / sum(denominators), and their variance divided by how many
        they are is the ratio's variance: R + (numerator - R * denominator) / mean denominator, with
        the jackknife's deviations, so that one unit of very many requests does not hide its own
        deviation. Empty if all denominators are 0.

    Raises
    ------
    ValueError
        The lengths differ, a number is not finite, or a denominator is below 0.

    References
    ----------
    Deng, Knoblich and Lu (2018), Applying the delta method in metric analytics: a practical guide
    with novel ideas. Miller (1974), The jackknife: a review (ratios).

    Examples
    --------
    >>> unit_values([1, 3], [2, 2]).tolist(), round(float(unit_values([1, 0, 1]).mean()), 3)
    ([0.5, 1.5], 0.667)
    """
    above = np.asarray(numerators, dtype=np.float64)
    below = np.ones_like(above) if denominators is None else np.asarray(denominators, np.float64)
    if above.shape != below.shape:
        raise ValueError(f"{len(above)} numerators and {len(below)} denominators differ in number")
    if not (np.isfinite(above).all() and np.isfinite(below).all() and (below >= 0).all()):
        raise ValueError("units are counted in finite numbers, denominators from 0")
    total = float(below.sum())
    if not total:
        return np.empty(0)
    ratio = float(above.sum()) / total
    count = len(below)
    pull = (above - ratio * below) * (count / total)
    # A unit that holds much of the total draws the ratio towards itself and hides how far it is
    # off; compared with the others it shows. Of equal denominators this changes nothing.
    others = 1 - below / total
    pull *= np.divide(1 - 1 / count, others, out=np.ones_like(others), where=others > 0)
    return ratio + pull - pull.mean()


def unit_mean(
    values: Floats, *, level: float = 0.95, bounds: tuple[float, float] | None = None
) -> Estimate:
    """Return the mean of `unit_values` with Student's interval, its ends within `bounds`.

    Missing without units. One unit or equal ones have no spread: a bounded mean then has Wilson's
    interval (``wilson bound``), any other none.
    """
    count = len(values)
    if not count:
        return Estimate.missing(Reason(code="no_unit_value"), method="delta")
    centre = float(values.mean())
    least, most = bounds or (-math.inf, math.inf)
    spread = float(values.var(ddof=1)) if count > 1 else 0.0
    if spread:
        half = student_quantile(level, count - 1) * math.sqrt(spread / count)
        ends = centre - half, centre + half
        return interval_estimate(centre, *ends, n=count, method="delta", bounds=(least, most))
    if not math.isfinite(most - least):
        reason = Reason(code="units_without_spread")
        return without_interval(centre, reason, n=count, method="delta")
    inside = min(max((centre - least) / (most - least), 0.0), 1.0)
    low, high = (
        least + (most - least) * end
        for end in wilson_interval(inside, count, critical_value(level))
    )
    return interval_estimate(centre, low, high, n=count, method="wilson bound")


def welch_test(
    control: Floats, variant: Floats, *, level: float = 0.95
) -> tuple[Estimate, float | None]:
    """Return the difference of two means of units, variant minus control, with its p-value.

    Parameters
    ----------
    control, variant : array of float
        As `unit_values` returns them.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    Estimate, float or None
        By Welch's test, for one planned look: for repeated looks see `sequential_test`. Missing
        if a side has no unit; without an interval and a p-value if one has a single unit, or all
        are equal in both.

    References
    ----------
    Welch (1947), The generalization of Student's problem when several different population
    variances are involved.
    """
    sides, method = (control, variant), "welch"
    sizes = len(control), len(variant)
    count = sum(sizes)
    if not min(sizes):
        return Estimate.missing(Reason(code="variant_without_value"), n=count, method=method), None
    difference = float(variant.mean() - control.mean())
    parts = [float(side.var(ddof=1)) / len(side) if len(side) > 1 else 0.0 for side in sides]
    error = math.sqrt(sum(parts))
    if min(sizes) < 2 or not error:
        single = min(sizes) < 2
        reason = Reason(code="one_unit") if single else Reason(code="equal_units")
        return without_interval(difference, reason, n=count, method=method), None
    from scipy.special import stdtr

    spread = sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    freedom = sum(parts) ** 2 / spread
    half = student_quantile(level, freedom) * error
    p = min(1.0, 2 * float(stdtr(freedom, -abs(difference) / error)))
    low, high = difference - half, difference + half
    return Estimate(value=difference, low=low, high=high, n=count, method=method), p


@dataclass(frozen=True)
class CupedResult:
    """Values of units, less what their past explains.

    Parameters
    ----------
    control, variant : array of float
        In the order given.
    theta : float
        How much a value rises with the covariate, pooled within the variants.
    reduction : float or None
        Share of the difference's variance that is gone. None: a side has fewer than two units, or
        the values have no spread.
    known : int
        Units with a covariate.
    missing : int
        Units without; their mean is estimated separately.
    """

    control: Floats
    variant: Floats
    theta: float
    reduction: float | None
    known: int
    missing: int


def cuped(
    control: Floats,
    variant: Floats,
    before_control: Sequence[float | None],
    before_variant: Sequence[float | None],
) -> CupedResult | None:
    """Adjust the values of units by a covariate from before the experiment.

    Parameters
    ----------
    control, variant : array of float
        One number a unit, as `misslink.stats.experiments` gives them.
    before_control, before_variant : sequence of float or None
        The covariate of each; None: nothing is known of that unit.

    Returns
    -------
    Adjusted or None
        The difference of the adjusted means is the coefficient of the variant in the least-squares
        regression of the values on variant, covariate and, where it is missing for some, a
        yes-or-no column for that. None: the covariate is known of none or the same for all.

    Raises
    ------
    ValueError
        The lengths differ, or a covariate is not finite.

    References
    ----------
    Deng, Xu, Kohavi and Walker (2013), Improving the sensitivity of online controlled experiments
    by utilizing pre-experiment data.
    """
    if len(control) != len(before_control) or len(variant) != len(before_variant):
        raise ValueError("values and covariates are not of the same units")
    covariates = [*before_control, *before_variant]
    past = np.array([np.nan if value is None else float(value) for value in covariates])
    is_known = np.array([value is not None for value in covariates], dtype=bool)
    known_past = past[is_known]
    if not np.isfinite(known_past).all():
        raise ValueError("a covariate is a finite number; a missing one is None")
    if not len(known_past) or float(np.ptp(known_past)) <= 1e-12 * float(np.abs(known_past).max()):
        return None
    columns = [np.where(is_known, past, known_past.mean()) - known_past.mean()]
    if not is_known.all():
        columns.append((~is_known).astype(np.float64))
    design = np.column_stack(columns)
    values = np.concatenate([control, variant])
    # Slopes within the variants, so that the treatment itself does not enter them.
    inner, outer = design.copy(), values.copy()
    for side in (slice(None, len(control)), slice(len(control), None)):
        if len(outer[side]):
            inner[side] -= inner[side].mean(axis=0)
            outer[side] -= outer[side].mean()
    slopes = np.linalg.lstsq(inner, outer, rcond=None)[0]
    fitted = values - (design - design.mean(axis=0)) @ slopes
    first, second = fitted[: len(control)], fitted[len(control) :]
    reduction = None
    if min(len(control), len(variant)) >= 2:
        was, now = (
            sum(float(side.var(ddof=1)) / len(side) for side in pair)
            for pair in ((control, variant), (first, second))
        )
        reduction = 1 - now / was if was else None
    return CupedResult(
        control=first,
        variant=second,
        theta=float(slopes[0]),
        reduction=reduction,
        known=int(is_known.sum()),
        missing=int((~is_known).sum()),
    )


# The interval is narrowest, relative to a fixed-size one, near this many units of both variants
# together; it has to be chosen without looking at the data. Differences of 5 to 10 points of a
# share near a half are found within 3,400 and 900 (benchmarks/live/sequential_test.md), and from 200
# to 20,000 the interval is at most 27% wider than one that was tuned for that very size.
TUNED_FOR = 2000
# The boundary is that of a Gaussian random walk, which a mean is near from some units on; until
# each variant has so many, nothing is decided (benchmarks/live/sequential_test.md).
MIN_SEQUENTIAL_UNITS = 50
_POWER_Z = 0.8416212335729143  # the normal quantile of 80%
_MAX_UNITS = 1e9


def sequential_test(
    control: Floats,
    variant: Floats,
    *,
    alpha: float = 0.05,
    tuned_for: float = TUNED_FOR,
    times: float = 1.0,
    is_share: bool = False,
) -> tuple[Estimate, float | None]:
    """Compare two means of units, allowing for a look after every unit.

    Parameters
    ----------
    control, variant : array of float
        One number a unit, as `misslink.stats.experiments` gives them.
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
    difference : Estimate
        Variant minus control, with the confidence sequence's interval of now; without an interval
        until each side has `MIN_SEQUENTIAL_UNITS` units.
    p : float or None
        Always valid: the chance that it is ever this small where there is no difference is at most
        its value.

    Notes
    -----
    The mixture sequential probability ratio test with a normal mixture over the difference, the
    variance estimated: an asymptotic confidence sequence. Where one side has far fewer units, its
    variance is taken from below by that of both together.

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
    >>> difference, p = sequential_test(np.arange(100) % 2, np.ones(100) - np.arange(100) % 5 // 4)
    >>> [round(x, 2) for x in (difference.value, difference.low, p)]
    [0.3, 0.05, 0.01]
    """
    method = "confidence sequence"
    count = len(control) + len(variant)
    if not len(control) or not len(variant):
        reason = Reason(code="variant_without_value")
        return Estimate.missing(reason, n=count, method=method), None
    value = float(variant.mean()) - times * float(control.mean())
    error = 0.0
    if min(len(control), len(variant)) >= MIN_SEQUENTIAL_UNITS:
        error = math.sqrt(_difference_variance(control, variant, times, is_share))
    if not error:
        few = min(len(control), len(variant)) < MIN_SEQUENTIAL_UNITS
        reason = (
            Reason(code="few_units", needed=MIN_SEQUENTIAL_UNITS)
            if few
            else Reason(code="equal_units")
        )
        return without_interval(value, reason, n=count, method=method), None
    units = balanced_units(len(control), len(variant))
    half = sequential_boundary(units, alpha=alpha, tuned_for=tuned_for) * error
    # The mixture's likelihood ratio, whose inverse is the p-value, in logarithms.
    eta = units / _mixture_scale(alpha, tuned_for)
    log_ratio = (value / error) ** 2 / 2 * eta / (1 + eta) - math.log1p(eta) / 2
    difference = Estimate(value=value, low=value - half, high=value + half, n=count, method=method)
    return difference, math.exp(-max(log_ratio, 0.0))


def balanced_units(control: int, variant: int) -> float:
    """How many units in two equal halves would tell as much as these.

    >>> balanced_units(500, 500), round(balanced_units(900, 100))
    (1000.0, 360)
    """
    return 4 * control * variant / (control + variant)


def sequential_boundary(
    units: float, *, alpha: float = 0.05, tuned_for: float = TUNED_FOR
) -> float:
    """How many standard errors the interval is wide to either side, at so many units.

    >>> round(sequential_boundary(2000), 2), round(sequential_boundary(200), 2), round(sequential_boundary(20_000), 2)
    (3.04, 3.86, 3.24)
    """
    scale = _mixture_scale(alpha, tuned_for)
    return math.sqrt((1 + scale / units) * (math.log1p(units / scale) - 2 * math.log(alpha)))


def units_needed(
    effect: float, error: float, units: float, *, alpha: float = 0.05, tuned_for: float = TUNED_FOR
) -> float | None:
    """Units at which a true difference has been seen in 80% of repetitions, by a look there.

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
        None: more than a billion, or the effect is 0.
    """
    spread = error * math.sqrt(units)

    def is_seen(size: float) -> bool:
        least = sequential_boundary(size, alpha=alpha, tuned_for=tuned_for) + _POWER_Z
        return abs(effect) * math.sqrt(size) >= least * spread

    low, high = 1.0, 2.0
    while not is_seen(high):
        low, high = high, 2 * high
        if high > _MAX_UNITS:
            return None
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (low, middle) if is_seen(middle) else (middle, high)
    return float(math.ceil(high))


def _difference_variance(control: Floats, variant: Floats, times: float, is_share: bool) -> float:
    """The variance of the difference of the means."""
    sides = [np.append(v, [0.0, 1.0]) if is_share else v for v in (control, variant)]
    own = [float(side.var(ddof=1)) for side in sides]
    counts = [len(control), len(variant)]
    # Of rare events a small side may have seen none yet, and its own spread is then far too little
    # while its mean is too low. The smaller it is against the other side, the more of the spread
    # common to both it has at least.
    small = counts.index(min(counts))
    pooled = sum((count - 1) * each for count, each in zip(counts, own, strict=True)) / (
        sum(counts) - len(counts)
    )
    uneven = 1 - counts[small] / counts[1 - small]
    own[small] = max(own[small], (1 - uneven) * own[small] + uneven * pooled)
    return times**2 * own[0] / counts[0] + own[1] / counts[1]


def _mixture_scale(alpha: float, tuned_for: float) -> float:
    """The mixture's parameter as units: that whose width is least at `tuned_for`."""
    if not 0 < alpha < 1 or not 0 < tuned_for < math.inf:
        raise ValueError(
            f"alpha must be between 0 and 1, not {alpha}, and tuned_for above 0, not {tuned_for}"
        )
    wide = -2 * math.log(alpha)
    return tuned_for / (wide + math.log(wide + 1))


MISMATCH_BELOW = 0.001
# The alternatives that are mixed over: by how much one variant's odds are off, in logarithms. The
# middles of 200 equal parts of a normal distribution that a share near a half would have after
# 100 units. None of them is the plan itself.
_TILTS = tuple(NormalDist(0.0, 0.2).inv_cdf((part + 0.5) / 200) for part in range(200))
_NO_SPREAD = 1e-9  # a relative spread below it is rounding
_CHUNK_STRATA = 10_000  # strata that are reckoned with at once


@dataclass(frozen=True)
class AllocationStratum:
    """Units that came while one plan was in force.

    Parameters
    ----------
    planned : mapping of str to float
        Shares, adding up to 1.
    observed : mapping of str to int
        Units first seen in each variant; one that is missing had none.
    """

    planned: Mapping[str, float]
    observed: Mapping[str, int]


@dataclass(frozen=True)
class SampleRatioTest:
    """What the counts say of the plan.

    Parameters
    ----------
    p : float or None
        Of one look. None: no unit, or fewer than two variants were planned.
    p_sequential : float or None
        Valid however often it is looked at.
    method : str
        ``exact binomial`` (two variants, one plan), ``chi-square``, ``impossible`` (units in a
        variant that was not planned), or ``none``.
    expected : mapping of str to float
        Units that the plan led to expect.
    """

    p: float | None
    p_sequential: float | None
    method: str
    expected: Mapping[str, float]

    @property
    def is_broken(self) -> bool:
        """Whether nothing else of the experiment can be trusted.

        By the p-value of one look, which sees a fault sooner: of sound experiments that are looked
        at on each of 90 days about 1 in 80 is called broken (simulated, two equal variants).
        """
        return self.p is not None and self.p < MISMATCH_BELOW


def sample_ratio_test(strata: Sequence[AllocationStratum]) -> SampleRatioTest:
    """Test the counts of units against the planned split, which may have changed on the way.

    Parameters
    ----------
    strata : sequence of Stratum
        None or empty ones are fine.

    Returns
    -------
    SampleRatio
        Where the split changed, the differences from what each plan led to expect are added up,
        and so are their variances.

    Raises
    ------
    ValueError
        Shares are below 0 or do not add up to 1, or a count is below 0.

    References
    ----------
    Fabijan et al. (2019), Diagnosing sample ratio mismatch in online controlled experiments.

    Examples
    --------
    >>> found = sample_ratio_test([AllocationStratum({"A": 0.5, "B": 0.5}, {"A": 821, "B": 1000})])
    >>> found.is_broken, round(found.p, 6), found.method
    (True, 3e-05, 'exact binomial')
    """
    names = list(dict.fromkeys(name for s in strata for name in (*s.planned, *s.observed)))
    planned = np.array([[s.planned.get(name, 0.0) for name in names] for s in strata], ndmin=2)
    observed = np.array([[s.observed.get(name, 0) for name in names] for s in strata], ndmin=2)
    if not names:
        return SampleRatioTest(None, None, "none", {})
    for stratum, shares in zip(strata, planned, strict=True):
        if (shares < 0).any() or abs(math.fsum(shares) - 1) > 1e-6:
            raise ValueError(f"the planned shares {dict(stratum.planned)} do not add up to 1")
    if (observed < 0).any():
        raise ValueError("counts of units must be at least 0")
    totals = observed.sum(axis=1)
    expected = dict(zip(names, (totals @ planned).tolist(), strict=True))
    if observed[planned == 0].any():
        return SampleRatioTest(0.0, 0.0, "impossible", expected)
    tested = (totals > 0) & ((planned > 0).sum(axis=1) >= 2)
    if not tested.any():
        return SampleRatioTest(None, None, "none", expected)
    live = planned[tested].any(axis=0)
    planned, observed, totals = planned[tested][:, live], observed[tested][:, live], totals[tested]
    p_sequential = math.exp(-max(0.0, sequential_log_ratio(planned, observed)))
    if planned.shape[1] == 2 and np.ptp(planned[:, 0]) == 0:
        from scipy.stats import binomtest

        test = binomtest(int(observed[:, 0].sum()), int(totals.sum()), planned[0, 0])
        return SampleRatioTest(float(test.pvalue), p_sequential, "exact binomial", expected)
    from scipy.special import chdtrc

    # By the summed multinomial covariance; with one plan it is Pearson's.
    gap = observed.sum(axis=0) - totals @ planned
    scales, axes = np.linalg.eigh(
        np.diag(totals @ planned) - planned.T @ (totals[:, None] * planned)
    )
    free = scales > _NO_SPREAD * scales.max()  # the counts of a plan add up, so not all directions
    away = gap @ axes[:, free] / np.sqrt(scales[free])
    p = float(chdtrc(int(free.sum()), float(away @ away)))
    return SampleRatioTest(p, p_sequential, "chi-square", expected)


def sequential_log_ratio(planned: Floats, counts: NDArray[np.int64]) -> float:
    """Return the log likelihood ratio of other splits against the planned ones.

    A mixture over one variant's odds being so many times the planned, the same in all strata, so
    that a ramp that grew evenly, with a plan for nearly every unit, does not hide it: its inverse
    is an always-valid p-value.

    Parameters
    ----------
    planned, counts : array of shape (strata, variants)
        Two variants or more, each planned in some stratum.

    References
    ----------
    Lindon and Malek (2022), Anytime-valid inference for multinomial count data (a mixture over
    splits around the plan).
    """
    totals, variants = counts.sum(axis=1), planned.shape[1]
    tilted = range(variants if variants > 2 else 1)  # of two, one speaks for the other
    tilts = np.array(_TILTS)
    ratios = np.multiply.outer(counts.sum(axis=0)[: len(tilted)], tilts)
    for start in range(0, len(counts), _CHUNK_STRATA):
        part = slice(start, start + _CHUNK_STRATA)
        for place in tilted:
            evened = np.log1p(np.multiply.outer(planned[part, place], np.expm1(tilts)))
            ratios[place] -= totals[part] @ evened
    most = float(ratios.max())
    return most + math.log(float(np.exp(ratios - most).mean()))
