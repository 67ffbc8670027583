"""Average run lengths of control charts, and the limits that keep a chance of false alarms.

With limits from textbooks a chart whose centre and standard deviation were estimated from few
readings gives false alarms much more often than it says (Jones, Champ and Rigdon 2001, "The
performance of exponentially weighted moving average charts with estimated parameters",
Technometrics 43). `solve_limits` widens them for the number of readings learnt from.
``canary_limits.py`` writes the table that misslink uses.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from misslink.errors import InputError
from misslink.stats.control_charts import ChartLimits

_NODES = 40  # of Gauss and Legendre; average run lengths of 500 agree to 6 digits with 80
_CENTER_NODES = 9  # where the centre may have been estimated, by Gauss and Hermite
_SPREAD_NODES = 16  # what the standard deviation may have been estimated at, by Gauss and Legendre
_MAX_LIMIT = 20.0  # standard deviations; a chart with such limits sees nothing
_MAX_RUN_LENGTH = 1e12  # readings; a float's solution of longer run lengths is noise


def ewma_run_length(limit: float, *, weight: float = 0.2, shift: Any = 0.0, sd: Any = 1.0) -> Any:
    """Average run length of a two-sided EWMA chart with constant limits.

    The integral equation of Crowder (1987, Technometrics 29), solved by Gauss-Legendre
    quadrature; readings are independent and normal.

    Parameters
    ----------
    limit : float
        L, in standard deviations of the EWMA, above 0.
    weight : float
        Lambda, above 0 and at most 1.
    shift, sd : float or array of float
        Mean and standard deviation of the readings, in units of what was learnt: 0 and 1 in
        control with known parameters. Arrays of one shape give an array of it.

    Returns
    -------
    float or array
        Readings until the first signal, at least 1; what is too long for floats is infinite.
    """
    bound = limit * (weight / (2 - weight)) ** 0.5
    points, weights = np.polynomial.legendre.leggauss(max(_NODES, round(_NODES * limit / 3)))
    places, weights = bound * points, bound * weights

    def kernel(start: Any, shift: Any, sd: Any) -> Any:
        step = (places - (1 - weight) * start) / weight
        return weights * _normal_density((step - shift) / sd) / (sd * weight)

    return _average_run_length(kernel, places, shift, sd)


def cusum_run_length(
    threshold: float, *, slack: float = 0.5, shift: Any = 0.0, sd: Any = 1.0
) -> Any:
    """Average run length of a two-sided CUSUM chart that starts at 0.

    The integral equation of Page (1954) for each side, and 1/ARL = 1/ARL(up) + 1/ARL(down) (van
    Dobben de Bruyn 1968); readings are independent and normal.

    Parameters
    ----------
    threshold : float
        h, in standard deviations, above 0.
    slack : float
        k, at least 0.
    shift, sd
        As for `ewma_run_length`.

    Examples
    --------
    >>> round(cusum_run_length(5.0, slack=0.5)), round(cusum_run_length(5.0, slack=0.5, shift=1), 1)
    (465, 10.4)
    """
    up = _cusum_side_run_length(threshold, slack, np.asarray(shift, dtype=float), sd)
    down = _cusum_side_run_length(threshold, slack, -np.asarray(shift, dtype=float), sd)
    rate = 1 / up + 1 / down
    both = np.divide(1.0, rate, out=np.full_like(rate, np.inf), where=rate > 0)
    return float(both) if both.ndim == 0 else both


def _cusum_side_run_length(threshold: float, slack: float, shift: Any, sd: Any) -> Any:
    from scipy.special import ndtr

    # A wider range needs more nodes: the kernel is about one standard deviation wide.
    points, weights = np.polynomial.legendre.leggauss(_NODES + 2 * int(threshold))
    places, weights = threshold * (points + 1) / 2, threshold * weights / 2
    # 0 is a state of its own, for the CUSUM falls back to it with a probability above 0.
    places, weights = np.append(places, 0.0), np.append(weights, 0.0)

    def kernel(start: Any, shift: Any, sd: Any) -> Any:
        rows = weights * _normal_density((places - start + slack - shift) / sd) / sd
        falls = ndtr((slack - start - shift) / sd)
        rows[..., -1] = falls[..., 0]
        return rows

    return _average_run_length(kernel, places, shift, sd)


@lru_cache(maxsize=64)
def solve_limits(
    learnt_from: int,
    false_alarm_every: float,
    *,
    chance: float,
    weight: float = 0.2,
    slack: float = 0.75,
) -> ChartLimits:
    """Limits at which each chart alone has a given chance of a false alarm, to either side.

    How often a chart gives a false alarm depends on how well it was learnt, which nobody knows.
    So the limits are those at which the chance of a false alarm within `false_alarm_every`
    readings is right over all that could have been learnt: for normal readings the mean is off by
    N(0, 1 / n) and the variance by a chi-squared of n - 1 degrees of freedom. (Average run
    lengths will not do here: their mean over what could have been learnt is infinite for few
    readings, because of those that were learnt much too wide.)

    Parameters
    ----------
    learnt_from : int
        How many readings the centre and the standard deviation come from, at least 3.
    false_alarm_every : float
        Readings, above 1.
    chance : float
        Above 0 and below 1.
    weight, slack : float
        As in `Limits`.

    Raises
    ------
    InputError
        So few readings cannot be learnt from for so rare false alarms.
    """
    from scipy.special import ndtr

    shift, sd, chances = _parameter_grid(learnt_from)

    def limit(length: Callable[[float], Any]) -> float:
        def surplus(limit: float) -> float:
            within = -np.expm1(-false_alarm_every / length(limit))
            return float((chances * within).sum()) - chance

        return _solve_limit(surplus, learnt_from, false_alarm_every)

    return ChartLimits(
        ewma=limit(lambda x: ewma_run_length(x, weight=weight, shift=shift, sd=sd)),
        cusum=limit(lambda x: cusum_run_length(x, slack=slack, shift=shift, sd=sd)),
        jump=limit(
            lambda x: 1 / (ndtr((shift - x) / sd) + ndtr((-shift - x) / sd) + 1 / _MAX_RUN_LENGTH)
        ),
        weight=weight,
        slack=slack,
    )


def _parameter_grid(n: int) -> tuple[Any, Any, Any]:
    """Mean and spread of the readings in units of what may have been learnt, with its chances."""
    from scipy.special import chdtri

    centres, of_centre = np.polynomial.hermite_e.hermegauss(_CENTER_NODES)
    # The charts have two sides, so a centre that is as far off to the other side does the same.
    centres, of_centre = centres[_CENTER_NODES // 2 :], of_centre[_CENTER_NODES // 2 :]
    of_centre[1:] *= 2
    places, of_spread = np.polynomial.legendre.leggauss(_SPREAD_NODES)
    spreads = np.sqrt(chdtri(n - 1, (1 - places) / 2) / (n - 1))
    off, spread = np.meshgrid(centres / math.sqrt(n), spreads)
    return off / spread, 1 / spread, np.outer(of_spread / 2, of_centre / of_centre.sum())


def _solve_limit(surplus: Callable[[float], float], learnt_from: int, every: float) -> float:
    from scipy.optimize import brentq

    low, high = 0.05, 4.0
    while surplus(high) > 0:
        low, high = high, min(1.5 * high, _MAX_LIMIT)
        if low == _MAX_LIMIT:
            raise InputError(
                f"{learnt_from} runs are too few to learn from for a false alarm only every "
                f"{every:g} runs; learn from more of them, or bear more false alarms"
            )
    return float(brentq(surplus, low, high, xtol=1e-4))


def _average_run_length(
    kernel: Callable[[Any, Any, Any], Any], places: Any, shift: Any, sd: Any
) -> Any:
    """Average run length from 0 of the chart whose transitions between `places` are given."""
    shifts, sds = np.broadcast_arrays(np.asarray(shift, dtype=float), np.asarray(sd, dtype=float))
    shape = shifts.shape
    wide_shift, wide_sd = shifts.reshape(-1, 1, 1), sds.reshape(-1, 1, 1)
    moves = kernel(places[:, None], wide_shift, wide_sd)
    size = len(places)
    lengths = np.linalg.solve(np.eye(size) - moves, np.ones((len(moves), size, 1)))
    from_zero = 1 + (kernel(np.zeros((1, 1)), wide_shift, wide_sd) @ lengths)[:, 0, 0]
    # A chart that as good as never signals has a matrix as good as singular.
    from_zero = np.where(
        (from_zero >= 1) & (from_zero < _MAX_RUN_LENGTH), from_zero, np.inf
    ).reshape(shape)
    return float(from_zero) if shape == () else from_zero


def _normal_density(z: Any) -> Any:
    return np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi)


def chart_alarm_probability(measures: int, share: float = 1.0) -> float:
    """Return the chance of a false alarm, to either side, that one chart of a measure may have.

    Parameters
    ----------
    measures : int
        How many measures share the false alarms, at least 1.
    share : float
        Of a measure's false alarms, what each of its charts may have, above 0 and at most 1.

    Returns
    -------
    float
        Within as many readings as shall pass between two false alarms on average.

    Examples
    --------
    Alarms are for the worse, one side of each chart. One of random times comes within their mean
    distance with a chance of 63%.

    >>> round(chart_alarm_probability(1) / 2, 2), round(1 - math.exp(-1), 2)
    (0.43, 0.63)
    """
    return -math.expm1(-2 * share / measures)
