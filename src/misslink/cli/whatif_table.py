"""What-if as a table for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from misslink.cli.output import plain, say, shown

__all__ = ["print_whatif"]


def print_whatif(document: Mapping[str, Any], written: Mapping[str, Any] | None) -> None:
    """Print the options, best first, a sentence on each, and what was written beside."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    recall = f"recall@{document['k']}"
    today = document["today"][recall]
    title = f"What if: {recall} today {shown(today)}, {document['context_passages']} passages"
    table = Table(title=Text(title), title_justify="left")
    for column in ("option", recall, "p (Holm)", "tokens", "unfaithful avoided", "misses"):
        table.add_column(column)
    for option in document["options"]:
        found = option["metrics"][recall]
        p = "" if found["p_holm"] is None else f"{found['p_holm']:.2g}"
        table.add_row(
            Text(plain(option["name"])),
            Text("not measured" if found["b"]["value"] is None else shown(found["b"])),
            p,
            _count(option["context_tokens"]["b"], 0),
            _count(option["unfaithful_avoided"], 1),
            f"-{option['misses_mended']} +{option['new_misses']}",
        )
    if table.row_count:
        console.print(table)
    lines = [f"{option['name']}: {option['finding']}" for option in document["options"]]
    lines += [f"{one['name']}: not tried, {one['reason']}." for one in document["skipped"]]
    lines += document["notes"]
    for line in [*lines, *_checked(document["forecast_error"]), *_triplets(written)]:
        say(console, line)


def _count(estimate: Mapping[str, Any], digits: int) -> str:
    if estimate["value"] is None:
        return "not known"
    low, high = ("?" if estimate[e] is None else f"{estimate[e]:.0f}" for e in ("low", "high"))
    return f"{estimate['value']:.{digits}f} [{low}, {high}]"


def _checked(found: Mapping[str, Any] | None) -> list[str]:
    if found is None:
        return []
    if not found["checked"]:
        return [f"The forecast was not checked: {found['error']['reason']}."]
    error = found["error"]
    low, high = ("?" if error[end] is None else f"{error[end]:+.2f}" for end in ("low", "high"))
    return [
        (
            f"Checked on {found['checked']} of the {found['affected']} cases that "
            f"{found['option']} affects: {found['forecast']:.1f} unfaithful answers avoided were "
            f"forecast, {found['measured']} came; the error a case is "
            f"{error['value']:+.2f} [{low}, {high}]."
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
