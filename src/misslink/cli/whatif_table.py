"""What-if as a table for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from misslink.cli.output import cell, say, shown
from misslink.stats.written import p_value, points
from misslink.types import Estimate

__all__ = ["print_whatif"]


def print_whatif(document: Mapping[str, Any], written: Mapping[str, Any] | None) -> None:
    """Print the options, best first, a sentence on each, and what was written beside."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    recall = f"recall@{document['k']}"
    passages = document["context_passages"]
    today = shown(document["today"][recall], recall)
    title = f"What if: {recall} today {today}, {passages} passages"
    table = Table(title=cell(console, title), title_justify="left")
    in_context = f"recall in the context (today {passages} passages)"
    # Where the run's k is not the width of its context, the metric is scaled, not that of it.
    heading = in_context if document["k"] == passages else f"{recall} (today {passages} passages)"
    p_values = "p, Holm over the options, metric by metric"
    for column in ("option", heading, p_values, "tokens", "unfaithful avoided", "misses"):
        table.add_column(column)
    for option in document["options"]:
        found = option["metrics"][recall]
        table.add_row(
            cell(console, option["name"]),
            cell(console, _value(recall, found, document["today"][recall])),
            "" if found["p_holm"] is None else p_value(found["p_holm"]).removeprefix("p = "),
            _count(option["context_tokens"]["b"], 0),
            cell(console, _count(option["unfaithful_avoided"], 1)),
            _moved(option),
        )
    if table.row_count:
        console.print(table)
    lines = [f"{option['name']}: {option['finding']}" for option in document["options"]]
    lines += [*_not_tried(document["skipped"]), *document["notes"]]
    for line in [*lines, *_checked(document["forecast_error"]), *_triplets(written)]:
        say(console, line)


def _value(metric: str, found: Mapping[str, Any], today: Mapping[str, Any]) -> str:
    """The option's value; today's beside it where it is over fewer cases than the title's."""
    if found["b"]["value"] is None:
        return "not measured"
    said = shown(found["b"], metric)
    if found["a"]["n"] == today["n"]:
        return said
    return f"{said}, today {shown(found['a'], metric)} of the same {found['a']['n']} cases"


def _count(estimate: Mapping[str, Any], digits: int) -> str:
    if estimate["value"] is None:
        return "not known"
    low, high = ("?" if estimate[e] is None else _number(estimate[e], 0) for e in ("low", "high"))
    return f"{_number(estimate['value'], digits)} [{low}, {high}]"


def _number(value: float, digits: int) -> str:
    """A count without a needless decimal or a sign before 0."""
    return f"{round(value, digits) + 0.0:.{digits}f}".removesuffix(".0")


def _moved(option: Mapping[str, Any]) -> str:
    mended, made = option["misses_mended"], option["new_misses"]
    if mended is None or made is None:
        return "not known"
    return f"-{mended} +{made}" if mended or made else "0"


def _not_tried(skipped: Sequence[Mapping[str, str]]) -> list[str]:
    """A line a reason, with all the options that it keeps from being tried."""
    names: dict[str, list[str]] = {}
    for one in skipped:
        names.setdefault(one["reason"], []).append(one["name"])
    return [f"{', '.join(several)}: not tried, {why}." for why, several in names.items()]


def _checked(found: Mapping[str, Any] | None) -> list[str]:
    if found is None:
        return []
    if not found["checked"]:
        return [f"The forecast was not checked: {found['error']['reason']}."]
    return [
        (
            f"Checked on {found['checked']} of the {found['affected']} cases that "
            f"{found['option']} affects: {_number(found['forecast'], 1)} unfaithful answers "
            f"avoided were forecast, {found['measured']} came; the error a case is "
            f"{points(Estimate.model_validate(found['error']))}."
        )
    ]


def _triplets(written: Mapping[str, Any] | None) -> list[str]:
    if written is None:
        return []
    said = [f"{written['triplets']} triplets written to {written['file']}."]
    return said + [
        f"Left out: {count} missed passages: {reason}."
        for reason, count in written["left_out"].items()
    ]
