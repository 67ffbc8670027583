"""The conclusion of a live experiment in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from misslink.render.format import format_p_value, pluralize
from misslink.stats.experiments import AllocationStratum, SampleRatioTest

_DAY = 1.0
UNIT_SIGNS = {"share": " points", "seconds": " s"}
_WHOLE = 10  # points of a share from which decimals do not count
_ANOMALY_NOTES = {
    "units_in_several_variants": "users were in several variants; each counts in its first one",
    "requests_after_move": "requests of such users in another variant are left out",
    "requests_before_ramp": "requests came before the ramp opened, when all users got control; they "
    "are the pre-period",
    "requests_not_assigned": "requests were not assigned by the split (excluded, overridden or "
    "without a user id) and are left out",
    "requests_without_feedback": "requests have no feedback; they count neither as good nor as bad",
    "feedback_to_unknown_request": "pieces of feedback are about requests that are not in the log",
    "feedback_of_unknown_users": "pieces of feedback are from no user of the experiment and are left out",
    "feedback_left_out": "pieces of feedback are about requests that do not count and are left out",
    "feedback_changed_later": "pieces of feedback were replaced by later ones",
    "feedback_before_its_request": "pieces of feedback are dated more than a minute before their "
    "request",
    "clock_went_back": "times the clock went back by more than a minute; times may be wrong",
    "rows_lost": "rows were lost by the writers of this log, from all of its experiments",
}


def anomaly_notes(odd: Mapping[str, int]) -> list[str]:
    """The oddities of a log as sentences, each with its count."""
    return [f"{odd[name]:,} {words}." for name, words in _ANOMALY_NOTES.items() if odd.get(name)]


def format_amount(value: float, unit: str) -> str:
    """A value of a live metric without its unit's sign, such as "62" of a share.

    >>> format_amount(0.616, "share"), format_amount(0.0042, "share"), format_amount(0.8149, "seconds")
    ('62', '0.4', '0.815')
    """
    if unit == "share":
        points = 100 * value
        text = f"{points:.1f}".removesuffix(".0") if abs(points) < _WHOLE else f"{points:.0f}"
    elif unit in ("rate", "seconds") and abs(value) < 1000:
        text = f"{value:.3f}"
    else:
        text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    text = text if text.strip("-0.") else text.lstrip("-")
    return text.replace("-", "\u2212")


def describe_difference(difference: Mapping[str, Any], unit: str) -> str:
    """A difference with its interval, such as "+8 points [3, 13]"."""
    if difference["value"] is None:
        return f"not measured: {difference['reason']}"
    bare = format_amount(difference["value"], unit)
    is_none = not bare.strip("0.\u2212")
    plus = "+" if difference["value"] > 0 and not is_none else ""
    text = f"{plus}{bare}{UNIT_SIGNS.get(unit, '')}"
    if difference["low"] is None or difference["high"] is None:
        return f"{text} (no interval: {difference['reason']})"
    return f"{text} [{format_amount(difference['low'], unit)}, {format_amount(difference['high'], unit)}]"


def verdict(
    comparisons: Sequence[Mapping[str, Any]],
    *,
    control: str,
    primary: str | None,
    is_broken: bool,
    ratio_words: str,
    other_evidence: str | None,
) -> dict[str, object]:
    """Decide, by the primary metric, the guardrails and the sample ratio.

    Parameters
    ----------
    comparisons : sequence of mapping
        One a variant.
    control : str
    primary : str or None
        The metric that decides; None: there is no user metric.
    is_broken : bool
        Whether units did not come in the planned shares.
    ratio_words : str
        How they came.
    other_evidence : str or None
        What shadows or interleaved lists show, where nothing was split.

    Returns
    -------
    dict
        ``decision`` (``stop``, ``ship``, ``keep``, ``go_on`` or ``none``), ``variant``,
        ``headline``, ``detail``, and both as ``sentence``.
    """
    if is_broken:
        detail = f"The sample ratio is broken: {ratio_words}. Find the reason before you read on."
        return _verdict("stop", None, "Stop.", detail)
    if not comparisons:
        nothing = "Nothing to compare: only one variant has been seen."
        return _verdict("none", None, other_evidence or nothing)
    decided = [_variant_verdict(comparison, control, primary) for comparison in comparisons]
    shipped = [comparison for comparison in decided if comparison["decision"] == "ship"]
    if shipped:  # the one with the greatest difference
        gains = {
            comparison["variant"]: abs(
                comparison["metrics"][primary]["always_valid"]["difference"]["value"]
            )
            for comparison in comparisons
            if comparison["metrics"].get(primary, {}).get("winner") == "variant"
        }
        return max(shipped, key=lambda comparison: gains[comparison["variant"]])
    # While one variant is open, it may still be better than control.
    return next(
        (comparison for comparison in decided if comparison["decision"] == "go_on"), decided[0]
    )


def _variant_verdict(
    comparison: Mapping[str, Any], control: str, primary: str | None
) -> dict[str, object]:
    variant, keep, no_winner = comparison["variant"], f"Keep {control}.", "No winner yet."
    broken = next(
        (guard for guard in comparison["guardrails"] if guard["status"] == "broken"), None
    )
    if broken:
        words = describe_difference(broken["difference"], broken["unit"])
        detail = f"With {variant}, {broken['metric']} is worse than allowed: {words}."
        return _verdict("keep", control, keep, detail)
    if primary is None or primary not in comparison["metrics"]:
        detail = f"There is no feedback to compare {variant} with {control}."
        return _verdict("go_on", variant, no_winner, detail)
    result = comparison["metrics"][primary]
    words = f"{primary} {describe_difference(result['always_valid']['difference'], result['unit'])}"
    tested = f"{words}, {format_p_value(result['p_holm'])} at any time, after Holm"
    if result["winner"] == "control":
        return _verdict("keep", control, keep, f"{variant} is worse: {tested}.")
    if result["winner"] == "variant":
        still = [guard["metric"] for guard in comparison["guardrails"] if guard["status"] == "open"]
        if still:
            headline = f"{variant} is better, but do not ship it yet."
            detail = f"Guardrails are still open: {', '.join(still)}. {tested}."
            return _verdict("go_on", variant, headline, detail)
        return _verdict(
            "ship", variant, f"Ship {variant}.", f"It is better than {control}: {tested}."
        )
    so_far = f"{variant} against {control} so far: {words}."
    needed = result["needed"]
    if needed is None:
        return _verdict("go_on", variant, no_winner, so_far)
    effect = format_amount(needed["effect"], result["unit"]) + UNIT_SIGNS.get(result["unit"], "")
    if not needed["more_units"]:
        detail = f"A difference of {effect} would have been seen by now in 4 of 5 experiments."
        return _verdict("keep", control, keep, f"{detail} {so_far}")
    headline = f"{no_winner} Keep going for about {_about(needed['more_units'])} more users."
    days = ""
    if needed["more_days"] is not None:
        about = "under a day"
        if needed["more_days"] >= _DAY:
            about = f"about {pluralize(round(needed['more_days']), 'day')}"
        days = f" ({about} at this rate)"
    detail = f"Then a difference of {effect} is seen with 80% power{days}. {so_far}"
    return _verdict("go_on", variant, headline, detail)


def _about(count: int) -> str:
    """Two significant digits of a forecast.

    >>> _about(21_208), _about(7)
    ('21,000', '7')
    """
    return f"{int(float(f'{count:.1e}')):,}"


def _verdict(
    decision: str, variant: str | None, headline: str, detail: str = ""
) -> dict[str, object]:
    return {
        "decision": decision,
        "variant": variant,
        "headline": headline,
        "detail": detail,
        "sentence": f"{headline} {detail}".rstrip(),
    }


def describe_sample_ratio(ratio: SampleRatioTest, strata: Sequence[AllocationStratum]) -> str:
    """How units came, against how they were planned to."""
    observed: Counter[str] = Counter()
    for stratum in strata:
        observed.update(stratum.observed)
    if not observed:
        return "no user has been assigned yet"
    counts = ", ".join(
        f"{name} {observed[name]:,} (expected {expected:,.0f})"
        for name, expected in ratio.expected.items()
    )
    if ratio.p is None:
        return f"{counts}; only one variant was open, so there is no ratio to test"
    return f"{counts}; {format_p_value(ratio.p)}"


def describe_other_evidence(
    lists: Mapping[str, Any] | None, shadows: Sequence[Mapping[str, Any]], alpha: float
) -> str | None:
    """What interleaved lists and shadows say, where nothing was split."""
    if lists is not None:
        return _preferred(lists, alpha)
    if not shadows:
        return None
    words = []
    for shadow in shadows:
        errors = describe_difference(shadow["errors"]["difference"], "share")
        latency = describe_difference(shadow["latency_s"]["difference"], "seconds")
        words.append(f"{shadow['variant']} in the shadow: errors {errors}, latency {latency}")
    return "; ".join(words) + ". Users do not see a shadow's answers, so there are no user metrics."


def _preferred(lists: Mapping[str, Any], alpha: float) -> str:
    units = lists["units"]
    first, second = lists["variants"]
    wins = f"{first} {units['wins'][first]:,}, {second} {units['wins'][second]:,} units"
    if units["p"] is None:
        return "Users have not preferred either interleaved retriever yet."
    tested = f"always-valid {format_p_value(units['p_sequential'])}"
    if units["p_sequential"] > alpha:
        return f"Users have preferred neither retriever beyond chance: {wins}, {tested}."
    better = max(lists["variants"], key=lambda name: units["wins"][name])
    return f"Users preferred {better}: {wins}, {tested}."
