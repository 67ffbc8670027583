"""How many labels it takes for an interval of a wanted width."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from misslink.stats.proportions import critical, wilson

__all__ = ["labels_for_kappa", "labels_for_share", "share_width", "width_curve"]

_MOST = 10_000_000  # labels; nobody writes more


def share_width(
    n: int,
    share: float,
    *,
    correlation: float = 0.0,
    judged: int | None = None,
    level: float = 0.95,
) -> float:
    """How wide the interval of a share is with `n` labels.

    Parameters
    ----------
    n : int
        Labels, at least 1.
    share : float
        Expected, in [0, 1]: the rate to be estimated, or the judge's accuracy, or its
        sensitivity (`n` then counts the positive cases alone). 0.5 is the worst.
    correlation : float
        Of the judge's verdicts with people's labels, in [-1, 1]; it makes prediction-powered
        inference narrower. 0: the labels alone.
    judged : int or None
        All cases with a verdict, labelled or not, at least `n`; needed where `correlation` is
        not 0.
    level : float
        Of the interval, in (0, 1).

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
    z = critical(level)
    if not 0 <= share <= 1 or not -1 <= correlation <= 1 or n < 1:
        raise ValueError(f"no {n} labels, share {share} and correlation {correlation} can be")
    effective = float(n)
    if correlation:
        if judged is None or judged < n:
            raise ValueError(f"{judged} judged cases do not hold {n} labelled ones")
        unexplained = (1 - n / judged) * (1 - correlation**2) / n
        effective = 1 / (unexplained + 1 / judged)
    low, high = wilson(share, effective, z)
    return high - low


def labels_for_share(
    share: float,
    width: float,
    *,
    correlation: float = 0.0,
    judged: int | None = None,
    level: float = 0.95,
) -> int | None:
    """The fewest labels with which the interval of a share is no wider than wanted.

    Parameters
    ----------
    share, correlation, judged, level
        As for `share_width`.
    width : float
        Wanted, high - low, in (0, 1).

    Returns
    -------
    int or None
        None: not even a label on every judged case does it.

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
    _check_width(width)
    most = judged if judged is not None else _MOST

    def fits(n: int) -> bool:
        return share_width(n, share, correlation=correlation, judged=judged, level=level) <= width

    return _fewest(fits, most)


def labels_for_kappa(kappa: float, share: float, width: float, *, level: float = 0.95) -> int:
    """The labels with which the interval of Cohen's kappa is about as wide as wanted.

    Parameters
    ----------
    kappa : float
        Expected, in [0, 1).
    share : float
        Of good cases, in (0, 1), for people and judge alike.
    width : float
        Wanted, high - low, in (0, 1).
    level : float
        Of the interval, in (0, 1).

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
    z = critical(level)
    _check_width(width)
    if not 0 <= kappa < 1 or not 0 < share < 1:
        raise ValueError(f"a kappa of {kappa} with a share of {share} cannot be planned for")
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
    """The width of the interval for each number of labels: the curve to choose from.

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


def _check_width(width: float) -> None:
    if not 0 < width < 1:
        raise ValueError(f"a width lies between 0 and 1, not {width}")


def _fewest(fits: Callable[[int], bool], most: int) -> int | None:
    """The least number that fits, if all above it do too."""
    if most < 1 or not fits(most):
        return None
    short, enough = 0, most
    while enough - short > 1:
        middle = (short + enough) // 2
        short, enough = (short, middle) if fits(middle) else (middle, enough)
    return enough
