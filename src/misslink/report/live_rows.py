"""The figures of a live experiment as rows of text, the same on every face of the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from misslink.report.wording import MISSING, p_value, percent, shown
from misslink.types import Estimate
from misslink.watching.live_report.verdict import amount, difference_words

__all__ = [
    "GUARD_HEADS",
    "SHADOW_HEADS",
    "VARIANT_HEADS",
    "beside_heads",
    "beside_rows",
    "cuped_words",
    "difference_words",
    "disagreement_words",
    "guard_rows",
    "list_heads",
    "list_rows",
    "metric_heads",
    "metric_rows",
    "shadow_rows",
    "value_words",
    "variant_rows",
]

Rows = list[tuple[str, ...]]

VARIANT_HEADS = ("variant", "planned", "units", "requests", "fell back", "failed", "with feedback")
GUARD_HEADS = ("guardrail", "control", "variant", "difference, any time", "margin", "")
SHADOW_HEADS = ("shadow", "served", "shadow's", "difference")
_VERDICTS = {"variant": "better", "control": "worse", None: "open"}


def value_words(found: Mapping[str, Any], unit: str) -> str:
    """An estimate with its interval in its unit; the reason where there is none."""
    if found["value"] is None:
        return f"{MISSING}: {found['reason']}"
    if unit == "share":
        return shown("share", Estimate.model_validate(dict(found))).brief
    text = amount(found["value"], unit) + (" s" if unit == "seconds" else "")
    if found["low"] is None or found["high"] is None:
        return text
    return f"{text} [{amount(found['low'], unit)}, {amount(found['high'], unit)}]"


def disagreement_words(document: Mapping[str, Any]) -> list[str]:
    """Where offline and live disagree beyond chance: a sentence for each offline metric.

    Where several live metrics do, the primary one or the first of them is told.
    """
    sentences = []
    for each in document["comparisons"]:
        clear = [one for one in each["disagreements"] if one["is_clear"]]
        order = list(each["metrics"])
        chosen: dict[str, Mapping[str, Any]] = {}
        for one in sorted(clear, key=lambda one: order.index(one["live"])):
            chosen.setdefault(one["offline"], one)
        sentences += [_disagreeing(one, document["control"]) for one in chosen.values()]
    return sentences


def _disagreeing(one: Mapping[str, Any], control: str) -> str:
    offline = difference_words(one["offline_difference"], "share")
    live = difference_words(one["live_difference"], one["unit"])
    return (
        f"Offline and live disagree: offline {one['offline_winner']} has the better "
        f"{one['offline']}, live {one['live_winner']} the better {one['live']} "
        f"({one['variant']} minus {control}: {offline} and {live})."
    )


def variant_rows(document: Mapping[str, Any]) -> Rows:
    """Variants with their counts."""
    return [
        (
            one["name"],
            percent(one["planned"]) if one["planned"] else f"shadow {percent(one['shadow'])}",
            f"{one['units']:,}",
            f"{one['requests']:,}",
            f"{one['fell_back']:,}",
            f"{one['failed']:,}",
            value_words(one["with_feedback"], "share") if one["requests"] else "no request",
        )
        for one in document["variants"]
    ]


def metric_heads(control: str, variant: str) -> tuple[str, ...]:
    """Of `metric_rows`."""
    return ("metric", control, variant, "any time", "p (Holm)", "fixed")


def metric_rows(one: Mapping[str, Any]) -> Rows:
    """User metrics of a comparison."""
    rows: Rows = []
    for name, found in one["metrics"].items():
        unit = found["unit"]
        fixed = found["cuped"]["fixed"] if found["cuped"] else found["fixed"]
        rows.append(
            (
                name,
                value_words(found["control"], unit),
                value_words(found["variant"], unit),
                difference_words(found["always_valid"]["difference"], unit),
                f"{_bare(found['p_holm'])} {_VERDICTS[found['winner']]}".lstrip(),
                difference_words(fixed["difference"], unit),
            )
        )
    return rows


def cuped_words(one: Mapping[str, Any]) -> list[str]:
    """What the past explained, a sentence a metric."""
    sentences = []
    for name, found in one["metrics"].items():
        told = found["cuped"]
        if told is None:
            continue
        saved = told["variance_reduction"]
        gone = (
            ""
            if saved is None
            else f" takes {percent(saved)} of the variance"
            if saved > 0
            else " takes none of the variance"
        )
        without = f", {told['units_missing']:,} without" if told["units_missing"] else ""
        sentences.append(
            f"CUPED on {name}{gone} ({told['units_known']:,} units with a past{without})."
        )
    return sentences


def guard_rows(one: Mapping[str, Any]) -> Rows:
    """Guardrails of a comparison."""
    return [
        (
            guard["metric"],
            value_words(guard["control"], guard["unit"]),
            value_words(guard["variant"], guard["unit"]),
            difference_words(guard["difference"], guard["unit"]),
            _margin(guard),
            "" if guard["status"] == "no margin" else guard["status"],
        )
        for guard in one["guardrails"]
    ]


def list_heads(lists: Mapping[str, Any]) -> tuple[str, ...]:
    """Of `list_rows`."""
    first, second = lists["variants"]
    share = f"share of {second}"
    return ("interleaved", first, second, "ties", "no credit", share, "sign test", "any time")


def list_rows(lists: Mapping[str, Any]) -> Rows:
    """Preferences by unit and by query."""
    first, second = lists["variants"]
    rows: Rows = []
    for name in ("units", "queries"):
        found = lists[name]
        rows.append(
            (
                name,
                f"{found['wins'][first]:,}",
                f"{found['wins'][second]:,}",
                f"{found['ties']:,}",
                f"{found['without_credit']:,}",
                value_words(found["share"], "share"),
                p_value(found["p"]),
                p_value(found["p_sequential"]),
            )
        )
    return rows


def shadow_rows(one: Mapping[str, Any]) -> Rows:
    """What a shadow did beside the requests."""
    errors, latency = one["errors"], one["latency_s"]
    return [
        (
            f"{one['variant']}: errors",
            value_words(errors["served"], "share"),
            value_words(errors["shadow"], "share"),
            difference_words(errors["difference"], "share"),
        ),
        (
            "latency",
            value_words(latency["served"], "seconds"),
            value_words(latency["shadow"], "seconds"),
            difference_words(latency["difference"], "seconds"),
        ),
        (f"overlap@{one['k']}", "", value_words(one["overlap"], "share"), ""),
        ("dropped", "", value_words(one["dropped"], "share"), f"of {one['shadows']:,}"),
    ]


def beside_heads(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Of `beside_rows`."""
    return ("offline and live", *(one["name"] for one in document["variants"] if one["offline"]))


def beside_rows(document: Mapping[str, Any]) -> Rows:
    """Offline metrics and live ones side by side, a column for each variant that has a run."""
    chosen = [one for one in document["variants"] if one["offline"]]
    if not chosen:
        return []
    rows: Rows = [("judge", *(one["offline"]["judge"] for one in chosen))]
    for name in dict.fromkeys(n for one in chosen for n in one["offline"]["metrics"]):
        cells = (one["offline"]["metrics"].get(name) for one in chosen)
        rows.append(
            (
                f"offline {name}",
                *("not in this run" if c is None else value_words(c, "share") for c in cells),
            )
        )
    live: dict[str, dict[str, str]] = {}
    for one in document["comparisons"]:
        for name, found in one["metrics"].items():
            row = live.setdefault(name, {})
            row[document["control"]] = value_words(found["control"], found["unit"])
            row[one["variant"]] = value_words(found["variant"], found["unit"])
    for name, by_variant in live.items():
        cells_live = (by_variant.get(one["name"], MISSING) for one in chosen)
        rows.append((f"live {name}", *cells_live))
    return rows


def _bare(p: float | None) -> str:
    """A p-value without its letter."""
    return p_value(p).removeprefix("p = ").removeprefix("p ")


def _margin(guard: Mapping[str, Any]) -> str:
    if guard["margin"] is None:
        return "none given"
    if guard["is_relative"]:
        return f"+{percent(guard['margin'])} of control"
    unit = {"share": " points", "seconds": " s"}.get(guard["unit"], "")
    return f"+{amount(guard['margin'], guard['unit'])}{unit}"
