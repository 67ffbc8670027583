"""Variants of a live experiment held against control, metric by metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from misslink.errors import InputError
from misslink.stats.cuped import cuped
from misslink.stats.paired import holm
from misslink.stats.sequential import Sequential, balanced_units, sequential, units_for
from misslink.stats.unit_values import mean_of_units, welch
from misslink.watching.live_report.metrics import Guardrail, Measured
from misslink.watching.live_report.units import Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Past", "Setting", "compared", "guarded", "over_time", "with_holm"]

_LOOKS = 60  # points of the drawing
_DAY_S = 86_400.0
_BEHOLD = 0.05  # of control's value: the effect that is looked for unless another is given

Past = Callable[[str, Unit], float | None]


@dataclass(frozen=True)
class Setting:
    """How variants are compared.

    Parameters
    ----------
    control : str
    alpha : float
        In (0, 1).
    tuned_for : float
        Units near which the sequential interval is narrowest.
    detect : float or None
        The difference of the primary metric worth finding. None: 5 % of control's value.
    past : callable or None
        A covariate of a unit for a metric; None: the pre-period in the log itself.
    """

    control: str
    alpha: float
    tuned_for: float
    detect: float | None
    past: Past | None

    def sequential(
        self, control: NDArray[Any], variant: NDArray[Any], is_share: bool, times: float = 1.0
    ) -> Sequential:
        """`misslink.stats.sequential.sequential` by this setting."""
        return sequential(
            control,
            variant,
            alpha=self.alpha,
            tuned_for=self.tuned_for,
            times=times,
            is_share=is_share,
        )


def compared(
    measured: Measured, units: Sequence[Unit], variant: str, setting: Setting, *, tests: int = 1
) -> dict[str, Any]:
    """Hold one metric of a variant against control's.

    Parameters
    ----------
    measured : Measured
    units : sequence of Unit
    variant : str
    setting : Setting
    tests : int
        How many differences Holm's correction is over, from 1: what a difference takes to be seen
        is reckoned with the strictest level of them.

    Returns
    -------
    dict
        ``p_holm`` and ``winner`` are left to `with_holm`.
    """
    import numpy as np

    names = np.array([unit.variant for unit in units])
    control, at_control = measured.values(names == setting.control)
    treated, at_treated = measured.values(names == variant)
    level = 1 - setting.alpha
    bounds = measured.metric.bounds
    fixed, p = welch(control, treated, level=level)
    is_share = measured.metric.unit == "share"
    raw = setting.sequential(control, treated, is_share)
    adjusted = _adjusted(measured, units, setting, (control, at_control), (treated, at_treated))
    decisive = raw if adjusted is None else adjusted[1]
    sides = (control, treated) if adjusted is None else adjusted[2]
    return {
        "better": measured.metric.better,
        "unit": measured.metric.unit,
        "words": measured.metric.words,
        "control": mean_of_units(control, level=level, bounds=bounds).model_dump(),
        "variant": mean_of_units(treated, level=level, bounds=bounds).model_dump(),
        "fixed": {"difference": fixed.model_dump(), "p": p},
        "always_valid": {
            "difference": decisive.difference.model_dump(),
            "p": decisive.p,
            "unadjusted": raw.difference.model_dump(),
        },
        "cuped": None if adjusted is None else adjusted[0],
        "needed": _needed(sides, (control, treated), units, setting, tests),
    }


def with_holm(comparisons: Sequence[dict[str, Any]], alpha: float) -> None:
    """Enter ``p_holm`` and ``winner`` into metrics, corrected over all of them."""
    metrics = [one for each in comparisons for one in each["metrics"].values()]
    corrected = holm([one["always_valid"]["p"] for one in metrics])
    for one, p in zip(metrics, corrected, strict=True):
        one["p_holm"] = p
        one["winner"] = None
        if p is not None and p <= alpha:
            is_more = one["always_valid"]["difference"]["value"] > 0
            one["winner"] = "variant" if is_more == (one["better"] == "high") else "control"


def guarded(
    measured: Measured,
    units: Sequence[Unit],
    variant: str,
    setting: Setting,
    guard: Guardrail | None,
) -> dict[str, Any]:
    """Hold a guardrail's metric against its margin: a test of non-inferiority, always valid.

    Raises
    ------
    InputError
        More is better of this metric.
    """
    import numpy as np

    if guard is not None and measured.metric.better != "low":
        raise InputError(
            f"of {guard.metric} more is better, so at_most is no guardrail for it; take one of "
            "latency, errors, cost or reformulations"
        )
    names = np.array([unit.variant for unit in units])
    control, _ = measured.values(names == setting.control)
    treated, _ = measured.values(names == variant)
    is_share = measured.metric.unit == "share"
    found = setting.sequential(control, treated, is_share)
    margin, against = None if guard is None else guard.margin, found.difference
    if guard is not None and guard.is_relative:
        against = setting.sequential(control, treated, is_share, 1 + guard.margin).difference
        margin = 0.0
    level = 1 - setting.alpha
    bounds = measured.metric.bounds
    return {
        "metric": measured.metric.name,
        "unit": measured.metric.unit,
        "words": measured.metric.words,
        "margin": None if guard is None else guard.margin,
        "is_relative": guard is not None and guard.is_relative,
        "control": mean_of_units(control, level=level, bounds=bounds).model_dump(),
        "variant": mean_of_units(treated, level=level, bounds=bounds).model_dump(),
        "difference": found.difference.model_dump(),
        "status": _status(against.low, against.high, margin),
    }


def over_time(
    measured: Measured, units: Sequence[Unit], variant: str, setting: Setting
) -> list[dict[str, Any]]:
    """The sequential interval as it stood after more and more units, without CUPED."""
    import numpy as np

    both = [unit for unit in units if unit.variant in (setting.control, variant)]
    if not both:
        return []
    names = np.array([unit.variant for unit in units])
    since = np.array([unit.since for unit in units])
    steps = np.unique(np.linspace(1, len(both), min(_LOOKS, len(both))).round().astype(int))
    rows = []
    for count in steps.tolist():
        is_last = count == len(both)
        until = math.inf if is_last else both[count - 1].since
        control, _ = measured.values((names == setting.control) & (since <= until), until)
        treated, _ = measured.values((names == variant) & (since <= until), until)
        found = setting.sequential(control, treated, measured.metric.unit == "share")
        rows.append(
            {
                "units": count,
                "at": both[count - 1].since,
                "difference": found.difference.model_dump(),
            }
        )
    return rows


def _adjusted(
    measured: Measured,
    units: Sequence[Unit],
    setting: Setting,
    control: tuple[NDArray[Any], NDArray[Any]],
    treated: tuple[NDArray[Any], NDArray[Any]],
) -> tuple[dict[str, Any], Any, tuple[NDArray[Any], NDArray[Any]]] | None:
    """CUPED, where something of the past is known: what it did, and the difference by it."""

    def past(places: NDArray[Any]) -> list[float | None]:
        if setting.past is None:
            return [measured.before[place] for place in places]
        return [setting.past(measured.metric.name, units[place]) for place in places]

    if not len(control[0]) or not len(treated[0]):
        return None
    found = cuped(control[0], treated[0], past(control[1]), past(treated[1]))
    if found is None:
        return None
    level = 1 - setting.alpha
    fixed, p = welch(found.control, found.variant, level=level)
    told = {
        "theta": found.theta,
        "variance_reduction": found.reduction,
        "units_known": found.known,
        "units_missing": found.missing,
        "fixed": {"difference": fixed.model_dump(), "p": p},
    }
    valid = setting.sequential(found.control, found.variant, measured.metric.unit == "share")
    return told, valid, (found.control, found.variant)


def _needed(
    sides: tuple[NDArray[Any], NDArray[Any]],
    plain: tuple[NDArray[Any], NDArray[Any]],
    units: Sequence[Unit],
    setting: Setting,
    tests: int,
) -> dict[str, Any] | None:
    """How many more units a difference worth finding takes, at the present rate and split."""
    control, treated = sides
    if min(len(control), len(treated)) < 2:  # noqa: PLR2004 -- one unit has no spread
        return None
    spread = float(control.var(ddof=1)) / len(control) + float(treated.var(ddof=1)) / len(treated)
    effect = _BEHOLD * abs(float(plain[0].mean())) if setting.detect is None else setting.detect
    now = balanced_units(len(control), len(treated))
    total = None
    if spread and effect:
        total = units_for(
            effect, math.sqrt(spread), now, alpha=setting.alpha / tests, tuned_for=setting.tuned_for
        )
    if total is None:
        return None
    count = len(control) + len(treated)
    more = max(0, math.ceil(count * (total / now - 1)))
    days = (units[-1].since - units[0].since) / _DAY_S
    return {
        "effect": effect,
        "units_now": count,
        "more_units": more,
        "more_days": more * days / count if days > 0 else None,
    }


def _status(low: float | None, high: float | None, margin: float | None) -> str:
    if margin is None:
        return "no margin"
    if low is None or high is None:
        return "open"
    if high <= margin:
        return "holds"
    return "broken" if low > margin else "open"
