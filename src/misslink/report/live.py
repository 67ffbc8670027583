"""The page of a live experiment: what to do, what users say, and what else came of it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from misslink.report import live_rows as rows_of
from misslink.report.live_chart import LiveChart, live_chart

__all__ = ["Against", "LivePage", "LiveTable", "build", "render"]

_WARNED = ("stop",)


@dataclass(frozen=True)
class LiveTable:
    """A table of texts: its name for those who cannot see it, heads and rows."""

    name: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Against:
    """One variant held against control."""

    variant: str
    control: str
    metrics: LiveTable | None
    words: tuple[tuple[str, str], ...]
    cuped: tuple[str, ...]
    guards: LiveTable | None
    primary: str
    chart: LiveChart | None
    table: LiveTable | None


@dataclass(frozen=True)
class LivePage:
    """All of the page; texts are as their writers left them, so escape them."""

    title: str
    facts: tuple[tuple[str, str], ...]
    disagreements: tuple[str, ...]
    finding: str
    is_warning: bool
    variants: LiveTable
    ratio: str
    is_broken: bool
    comparisons: tuple[Against, ...]
    lists: LiveTable | None
    shadows: tuple[LiveTable, ...]
    beside: LiveTable | None
    notes: tuple[str, ...]
    alpha: str


def build(document: Mapping[str, Any]) -> LivePage:
    """Turn what ``misslink live report --json`` prints into what people read."""
    verdict, lists = document["verdict"], document["interleaving"]
    beside = rows_of.beside_rows(document)
    return LivePage(
        title=document["experiment"],
        facts=tuple(
            (name, value)
            for name, value in (
                ("Control", document["control"]),
                ("Decided by", document["primary"] or "no feedback yet"),
                ("From", _date(document["from"])),
                ("To", _date(document["to"])),
            )
            if value
        ),
        disagreements=tuple(rows_of.disagreement_words(document)),
        finding=verdict["sentence"],
        is_warning=verdict["decision"] in _WARNED,
        variants=_table("Variants", rows_of.VARIANT_HEADS, rows_of.variant_rows(document)),
        ratio=document["sample_ratio"]["sentence"],
        is_broken=document["sample_ratio"]["broken"],
        comparisons=tuple(_against(one, document) for one in document["comparisons"]),
        lists=None
        if lists is None
        else _table("Interleaved", rows_of.list_heads(lists), rows_of.list_rows(lists)),
        shadows=tuple(
            _table(
                f"{one['variant']} in the shadow", rows_of.SHADOW_HEADS, rows_of.shadow_rows(one)
            )
            for one in document["shadows"]
        ),
        beside=_table("Offline and live", rows_of.beside_heads(document), beside)
        if beside
        else None,
        notes=tuple(document["notes"]),
        alpha=f"{100 * (1 - document['alpha']):g} %",
    )


def render(page: LivePage) -> str:
    """Turn the page into HTML: everything escaped, no script at all."""
    from misslink.report.html import asset, fill

    style = "".join(map(asset, ("report.css", "trend.css", "live.css")))
    return fill("live.jinja", page, style=style)


def _against(one: Mapping[str, Any], document: Mapping[str, Any]) -> Against:
    control, variant = document["control"], one["variant"]
    primary = document["primary"] or ""
    unit = one["metrics"][primary]["unit"] if primary in one["metrics"] else "number"
    steps = [row for row in one["over_time"] if row["difference"]["low"] is not None]
    return Against(
        variant=variant,
        control=control,
        metrics=_table(
            f"User metrics of {variant}",
            rows_of.metric_heads(control, variant),
            rows_of.metric_rows(one),
        )
        if one["metrics"]
        else None,
        words=tuple((name, found["words"]) for name, found in one["metrics"].items()),
        cuped=tuple(rows_of.cuped_words(one)),
        guards=_table(f"Guardrails of {variant}", rows_of.GUARD_HEADS, rows_of.guard_rows(one))
        if one["guardrails"]
        else None,
        primary=primary,
        chart=live_chart(one["over_time"], unit),
        table=_table(
            f"{primary} over time",
            ("units", "difference, any time"),
            [
                (f"{row['units']:,}", rows_of.difference_words(row["difference"], unit))
                for row in reversed(steps)
            ],
        )
        if steps
        else None,
    )


def _table(name: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> LiveTable:
    return LiveTable(name, tuple(heads), tuple(map(tuple, rows)))


def _date(at: str | None) -> str:
    if at is None:
        return ""
    moment = dt.datetime.fromisoformat(at)
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"
