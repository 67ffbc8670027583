"""What other retrieval would have brought on the same questions, and what that would save."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report.documents import (
    count_in,
    estimate_in,
    list_in,
    mapping_in,
    number_in,
    rows_in,
    text_in,
)
from misslink.report.wording import (
    Shown,
    p_value,
    plain_number,
    plural,
    shown,
    shown_difference,
)
from misslink.types import Run

__all__ = ["Change", "OptionRow", "WhatIf", "whatif"]

NO_DIFFERENCE = "no detectable difference"


@dataclass(frozen=True)
class Change:
    """One metric, today and under an option; ``verdict`` says who is better, ``p`` why.

    ``at`` is the cut-off under the option where it is another than today's; else "".
    """

    at: str
    today: Shown
    option: Shown
    difference: Shown
    verdict: str
    p: str


@dataclass(frozen=True)
class OptionRow:
    """One way to retrieve otherwise: its main metric, what it costs, what it would save."""

    name: str
    what: str
    main: Change | None
    changes: tuple[Change, ...]
    tokens: tuple[Shown, Shown]
    avoided: Shown
    moved: str
    finding: str


@dataclass(frozen=True)
class WhatIf:
    """All options, best first."""

    facts: str
    metric: str
    heading: str
    options: tuple[OptionRow, ...]
    error: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def whatif(run: Run) -> WhatIf | None:
    """What other retrieval would change; None where it was not asked."""
    document = run.whatif or {}
    rows = rows_in(document.get("options"))
    if not rows:
        return None
    today = mapping_in(document.get("today"))
    metric = next((name for name in today if name.startswith("recall")), next(iter(today), ""))
    return WhatIf(
        facts=_facts(document),
        metric=metric,
        heading=_heading(document, metric),
        options=tuple(_option(row, today, metric) for row in rows),
        error=_error(mapping_in(document.get("forecast_error"))),
        notes=(
            *(
                f"{text_in(one, 'name')} was not tried: {text_in(one, 'reason')}."
                for one in rows_in(document.get("skipped"))
            ),
            *(note for note in list_in(document.get("notes")) if isinstance(note, str)),
        ),
    )


def _facts(document: Mapping[str, JsonValue]) -> str:
    size = count_in(mapping_in(document.get("corpus")), "passages")
    if not size:
        return "No corpus was given, so the options are those that the run's own ranks can tell."
    return f"Searched were the same {plural(size, 'passage')} with the same questions."


def _heading(document: Mapping[str, JsonValue], metric: str) -> str:
    """What the main metric is of; "" where the run's k is not the width of its context."""
    passages = count_in(document, "context_passages")
    if not passages or metric != f"recall@{passages}":
        return ""
    return f"Recall in the context (today {plural(passages, 'passage')})"


def _option(row: Mapping[str, JsonValue], today: Mapping[str, JsonValue], metric: str) -> OptionRow:
    changes = {
        name: _change(name, mapping_in(found), today)
        for name, found in mapping_in(row.get("metrics")).items()
    }
    tokens = mapping_in(row.get("context_tokens"))
    return OptionRow(
        name=text_in(row, "name"),
        what=text_in(row, "what"),
        main=changes.get(metric),
        changes=tuple(changes.values()),
        tokens=(
            shown("context_tokens", estimate_in(tokens, "today")),
            shown("context_tokens", estimate_in(tokens, "b")),
        ),
        avoided=shown("unfaithful_avoided", estimate_in(row, "unfaithful_avoided")),
        moved=_moved(row),
        finding=text_in(row, "finding"),
    )


def _moved(row: Mapping[str, JsonValue]) -> str:
    if row.get("misses_mended") is None or row.get("new_misses") is None:
        return "misses mended: not known"
    mended, made = count_in(row, "misses_mended"), count_in(row, "new_misses")
    return f"{plural(mended, 'miss', 'misses')} mended, {made:,} new"


def _change(name: str, found: Mapping[str, JsonValue], today: Mapping[str, JsonValue]) -> Change:
    p_holm = number_in(found, "p_holm")
    winner = found.get("winner")
    if winner == "option":
        verdict = "better"
    elif winner == "today":
        verdict = "worse"
    else:
        verdict = NO_DIFFERENCE if p_holm is not None else "not tested"
    at = count_in(found, "at")
    other = at and name.partition("@")[2] != str(at)
    # Of fewer cases than the run has, today's value is that of the same cases.
    paired = estimate_in(found, "a") if "a" in found else estimate_in(today, name)
    return Change(
        at=f"at {at} under the option" if other else "",
        today=shown(name, paired),
        option=shown(name, estimate_in(found, "b")),
        difference=shown_difference(name, estimate_in(found, "difference")),
        verdict=verdict,
        p=p_value(p_holm),
    )


def _error(found: Mapping[str, JsonValue]) -> tuple[tuple[str, str], ...]:
    """The forecast of one option held against answers written anew, as labels and texts."""
    if not found:
        return ()
    error = estimate_in(found, "error", why="no case was checked")
    checked = count_in(found, "checked")
    if not checked:
        return (("Not checked", error.reason or "no case was checked"),)
    forecast, came = number_in(found, "forecast"), number_in(found, "measured")
    rows = (
        ("Option", text_in(found, "option")),
        ("Cases checked", f"{checked:,} of {count_in(found, 'affected'):,} that it affects"),
        ("Avoided by the forecast", "" if forecast is None else plain_number(round(forecast, 1))),
        ("Avoided in fact", "" if came is None else plain_number(came)),
        ("Forecast less fact, a case", shown_difference("error", error).text),
    )
    return tuple((label, text) for label, text in rows if text)
