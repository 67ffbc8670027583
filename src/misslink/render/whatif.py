"""The sentence on a what-if option."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from misslink.render.format import format_p_value, format_points_interval, format_whole_points
from misslink.types import Estimate


def describe_option(
    metric: str,
    compared: Mapping[str, Any],
    avoided: Estimate,
    bad: int,
    unknown: str | None,
    retrieved: int | None,
) -> str:
    """Return one sentence on an option: the change of its metric, and what it would avoid."""
    difference, before, after = (
        Estimate.model_validate(compared[name]) for name in ("difference", "a", "b")
    )
    # Of misses that are all unknown none could be retrieved: no change says nothing.
    blind = unknown and retrieved is None and not difference.value
    if blind or difference.value is None or before.value is None or after.value is None:
        return f"{metric} was not measured: {unknown or difference.reason or after.reason}."
    gap = f"{format_points_interval(difference)}{_p_value_text(compared)}"
    if compared["winner"] is None:
        power = _power_text(compared, difference.n)
        finding = f"Not enough data to tell whether {metric} changes: {gap}{power}"
        return f"{finding}; {unknown}." if unknown else f"{finding}."
    verb = "rises" if compared["winner"] == "option" else "falls"
    old, new = format_whole_points(before.value), format_whole_points(after.value)
    savings = unknown or _savings_text(avoided, bad)
    return f"{metric} {verb} from {old} to {new}%, {gap}; {savings}."


def _savings_text(avoided: Estimate, bad: int) -> str:
    """What an option avoids; an interval that includes 0 promises nothing."""
    if avoided.value is None or avoided.low is None or avoided.high is None:
        return f"failures avoided are not known: {avoided.reason}"
    low, high = round(avoided.low), round(avoided.high)
    size = f"{round(abs(avoided.value), 1) + 0.0:g}"
    if avoided.low > 0:
        return f"about {size} [{low}, {high}] fewer failures, of {bad} now"
    if avoided.high < 0:
        return f"about {size} [{-high}, {-low}] more failures, on top of the {bad} now"
    return f"not enough data to tell whether it avoids failures, of {bad} now"


def _p_value_text(compared: Mapping[str, Any]) -> str:
    """The p-value alone, and corrected where several options were tested."""
    p, corrected, tests = compared["p"], compared["p_holm"], compared["tests"]
    if p is None or corrected is None:
        return ""
    if tests == 1:
        return f" ({format_p_value(p)})"
    after = format_p_value(corrected).removeprefix("p ").removeprefix("= ")
    return f" ({format_p_value(p)} alone, {after} after Holm over {tests} options)"


def _power_text(compared: Mapping[str, Any], n: int) -> str:
    cases = "1 case" if n == 1 else f"{n} cases"
    if compared["detectable"] is None:
        return f" over {cases}"
    if compared["detectable"] > 1:
        return f"; {cases} are too few to show any difference"
    corrected = "" if compared["tests"] == 1 else ", corrected"
    points = format_whole_points(compared["detectable"])
    return f"; {cases} show a difference from {points} points on (80% power{corrected})"
