"""Results of what-if: other retrieval options on the same questions."""

from __future__ import annotations

from dataclasses import dataclass

from misslink.render.format import (
    FormattedEstimate,
    format_difference,
    format_estimate,
    format_number,
    format_p_value,
    pluralize,
)
from misslink.render.json_fields import JsonFields
from misslink.types import Run

_VERDICTS = {"option": "better", "today": "worse"}


@dataclass(frozen=True)
class OptionEffect:
    """One metric today and with an option; ``verdict`` says which is better.

    ``at`` is the cutoff with the option if it differs from today's; else "".
    """

    at: str
    today: FormattedEstimate
    option: FormattedEstimate
    difference: FormattedEstimate
    verdict: str
    p: str


@dataclass(frozen=True)
class OptionRow:
    """One retrieval option: its main metric, what it costs, what it would save."""

    name: str
    what: str
    main: OptionEffect | None
    changes: tuple[OptionEffect, ...]
    tokens: tuple[FormattedEstimate, FormattedEstimate]
    avoided: FormattedEstimate
    moved: str
    finding: str


@dataclass(frozen=True)
class WhatIfTable:
    """All options, best first."""

    facts: str
    metric: str
    heading: str
    options: tuple[OptionRow, ...]
    error: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def read_whatif(run: Run) -> WhatIfTable | None:
    """Read what other retrieval options would change; None if this was not evaluated."""
    document = JsonFields(run.whatif)
    rows = document.rows("options")
    if not rows:
        return None
    today = document.object("today")
    metric = next((name for name in today if name.startswith("recall")), next(iter(today), ""))
    corpus = document.object("corpus").count("passages")
    facts = "No corpus was given, so the options are those that the run's own ranks can tell."
    if corpus:
        facts = f"Searched were the same {pluralize(corpus, 'passage')} with the same questions."
    # Without a heading the run's k is not the number of passages in its prompt.
    width = document.count("context_passages")
    in_context = width and metric == f"recall@{width}"
    skipped = (
        f"{row.text('name')} was not tried: {row.text('reason')}."
        for row in document.rows("skipped")
    )
    return WhatIfTable(
        facts=facts,
        metric=metric,
        heading=f"Recall in the context (today {pluralize(width, 'passage')})"
        if in_context
        else "",
        options=tuple(_option_row(row, today, metric) for row in rows),
        error=_forecast_error(document.object("forecast_error")),
        notes=(*skipped, *document.texts("notes")),
    )


def _option_row(row: JsonFields, today: JsonFields, metric: str) -> OptionRow:
    effects = {
        name: _option_effect(name, fields, today) for name, fields in row.objects("metrics").items()
    }
    moved = "misses fixed: not known"
    if row.values.get("misses_mended") is not None and row.values.get("new_misses") is not None:
        fixed = pluralize(row.count("misses_mended"), "miss", "misses")
        moved = f"{fixed} fixed, {row.count('new_misses'):,} new"
    return OptionRow(
        name=row.text("name"),
        what=row.text("what"),
        main=effects.get(metric),
        changes=tuple(effects.values()),
        tokens=(
            row.formatted("context_tokens", "today", name="context_tokens"),
            row.formatted("context_tokens", "b", name="context_tokens"),
        ),
        avoided=row.formatted("unfaithful_avoided"),
        moved=moved,
        finding=row.text("finding"),
    )


def _option_effect(name: str, fields: JsonFields, today: JsonFields) -> OptionEffect:
    p_holm, cutoff = fields.number("p_holm"), fields.count("at")
    untested = "not tested" if p_holm is None else "no detectable difference"
    other = cutoff and name.partition("@")[2] != str(cutoff)
    # Where the option has fewer cases than the run, today's value is that of the same cases.
    paired = fields.estimate("a") if "a" in fields else today.estimate(name)
    return OptionEffect(
        at=f"at {cutoff} under the option" if other else "",
        today=format_estimate(name, paired),
        option=fields.formatted("b", name=name),
        difference=format_difference(name, fields.estimate("difference")),
        verdict=_VERDICTS.get(fields.text("winner"), untested),
        p=format_p_value(p_holm),
    )


def _forecast_error(fields: JsonFields) -> tuple[tuple[str, str], ...]:
    """The forecast of one option compared with regenerated answers, as labels and texts."""
    if not fields:
        return ()
    error = fields.estimate("error", why="no case was checked")
    checked = fields.count("checked")
    if not checked:
        return (("Not checked", error.reason or "no case was checked"),)
    forecast, measured = fields.number("forecast"), fields.number("measured")
    rows = (
        ("Option", fields.text("option")),
        ("Cases checked", f"{checked:,} of {fields.count('affected'):,} that it affects"),
        ("Avoided by the forecast", "" if forecast is None else format_number(round(forecast, 1))),
        ("Avoided in fact", "" if measured is None else format_number(measured)),
        ("Forecast less fact, a case", format_difference("error", error).text),
    )
    return tuple((label, text) for label, text in rows if text)
