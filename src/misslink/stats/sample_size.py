"""The number of labels that an interval of a given width needs."""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from misslink.stats.intervals import critical_value, wilson_interval

_MAX_LABELS = 10_000_000


def share_width(
    n: int, share: float, *, correlation: float = 0.0, judged: int | None = None
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
    z = critical_value()
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
    share: float, width: float, *, correlation: float = 0.0, judged: int | None = None
) -> int | None:
    """Return the fewest labels with which the interval of a share has at most a given width.

    Parameters
    ----------
    share, correlation, judged
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
        return share_width(n, share, correlation=correlation, judged=judged) <= width

    most = judged if judged is not None else _MAX_LABELS
    fewest = 1 + bisect.bisect_left(range(1, most + 1), x=True, key=is_narrow)
    return fewest if fewest <= most else None


def width_curve(
    labels: Sequence[int], share: float, *, correlation: float = 0.0, judged: int | None = None
) -> list[tuple[int, float]]:
    """Return the width of the interval for each number of labels.

    Parameters
    ----------
    labels : sequence of int
        Numbers of labels, each at least 1; those above `judged` are left out.
    share, correlation, judged
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
        (n, share_width(n, share, correlation=correlation, judged=judged))
        for n in labels
        if judged is None or n <= judged
    ]
