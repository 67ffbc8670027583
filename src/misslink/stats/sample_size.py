"""The number of labels that an interval of a given width needs."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

from misslink.stats.intervals import critical_value, wilson_interval

_MAX_LABELS = 10_000_000


def share_width(
    n: int,
    share: float,
    *,
    correlation: float = 0.0,
    judged: int | None = None,
    level: float = 0.95,
) -> float:
    """Return the width of the interval of a share with `n` labels.

    Parameters
    ----------
    n : int
        Labels, at least 1.
    share : float
        Expected, in [0, 1]: the rate to be estimated, or the judge's accuracy, or its
        sensitivity (`n` then counts the positive cases alone). 0.5 is the worst.
    correlation : float
        Correlation of the judge's verdicts with human labels, in [-1, 1]; it makes
        prediction-powered inference narrower. 0: the labels alone.
    judged : int or None
        All cases with a verdict, labelled or not, at least `n`; required if `correlation` is
        not 0.
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    float
        high - low of Wilson's interval; with a correlation rho of the one with
        1 / ((1 - n / judged) (1 - rho^2) / n + 1 / judged) labels.

    Raises
    ------
    ValueError
        A number is outside its range.

    Examples
    --------
    >>> round(share_width(100, 0.5), 2)
    0.19
    >>> round(share_width(100, 0.5, correlation=0.8, judged=2000), 2)
    0.12
    """
    z = critical_value(level)
    if not 0 <= share <= 1 or not -1 <= correlation <= 1 or n < 1:
        raise ValueError(f"{n} labels, share {share} or correlation {correlation} is out of range")
    effective = float(n)
    if correlation:
        if judged is None or judged < n:
            raise ValueError(f"{judged} judged cases are fewer than {n} labelled ones")
        unexplained = (1 - n / judged) * (1 - correlation**2) / n
        effective = 1 / (unexplained + 1 / judged)
    low, high = wilson_interval(share, effective, z)
    return high - low


def labels_for_share(
    share: float,
    width: float,
    *,
    correlation: float = 0.0,
    judged: int | None = None,
    level: float = 0.95,
) -> int | None:
    """Return the fewest labels with which the interval of a share has at most a given width.

    Parameters
    ----------
    share, correlation, judged, level
        As for `share_width`.
    width : float
        Largest high - low, in (0, 1).

    Returns
    -------
    int or None
        None: not even a label on every judged case suffices.

    Raises
    ------
    ValueError
        A number is outside its range.

    References
    ----------
    Piegorsch (2004), Sample sizes for improved binomial confidence intervals.

    Examples
    --------
    >>> labels_for_share(0.5, 0.1), labels_for_share(0.5, 0.1, correlation=0.8, judged=5000)
    (381, 144)
    """
    if not 0 < width < 1:
        raise ValueError(f"a width is between 0 and 1, not {width}")

    def is_narrow(n: int) -> bool:
        return share_width(n, share, correlation=correlation, judged=judged, level=level) <= width

    most = judged if judged is not None else _MAX_LABELS
    fewest = 1 + bisect.bisect_left(range(1, most + 1), x=True, key=is_narrow)
    return fewest if fewest <= most else None


def labels_for_kappa(kappa: float, share: float, width: float, *, level: float = 0.95) -> int:
    """Return the labels with which the interval of Cohen's kappa has about a given width.

    Parameters
    ----------
    kappa : float
        Expected, in [0, 1).
    share : float
        Share of good cases, in (0, 1), by annotators and judge alike.
    width : float
        Wanted high - low, in (0, 1).
    level : float
        Confidence level in (0, 1).

    Returns
    -------
    int
        (2 z / width)^2 times the large-sample variance of one case.

    Raises
    ------
    ValueError
        A number is outside its range.

    References
    ----------
    Donner and Eliasziw (1992), A goodness-of-fit approach to inference procedures for the kappa
    statistic: confidence interval construction, significance-testing and sample size estimation.

    Examples
    --------
    >>> labels_for_kappa(0.6, 0.8, 0.2), labels_for_kappa(0.6, 0.5, 0.2)
    (392, 246)
    """
    z = critical_value(level)
    if not 0 <= kappa < 1 or not 0 < share < 1 or not 0 < width < 1:
        raise ValueError(f"kappa {kappa}, share {share} or width {width} is out of range")
    rare = 2 * share * (1 - share)
    variance = (1 - kappa) * ((1 - kappa) * (1 - 2 * kappa) + kappa * (2 - kappa) / rare)
    return math.ceil(variance * (2 * z / width) ** 2)


def width_curve(
    labels: Sequence[int],
    share: float,
    *,
    correlation: float = 0.0,
    judged: int | None = None,
    level: float = 0.95,
) -> list[tuple[int, float]]:
    """Return the width of the interval for each number of labels.

    Parameters
    ----------
    labels : sequence of int
        Numbers of labels, each at least 1; those above `judged` are left out.
    share, correlation, judged, level
        As for `share_width`.

    Returns
    -------
    list of (int, float)
        Labels and width.

    Raises
    ------
    ValueError
        A number is outside its range.

    Examples
    --------
    >>> [(n, round(width, 2)) for n, width in width_curve([50, 200], 0.8)]
    [(50, 0.22), (200, 0.11)]
    """
    return [
        (n, share_width(n, share, correlation=correlation, judged=judged, level=level))
        for n in labels
        if judged is None or n <= judged
    ]
