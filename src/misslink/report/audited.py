"""What the judge does when only what must not matter is changed: ``audit.json`` as rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report.documents import count_in, estimate_in, list_in, mapping_in, text_in
from misslink.report.wording import Shown, in_short, plural, shown, shown_difference
from misslink.types import Run

__all__ = ["AUDIT", "AuditRow", "Audits", "audits"]

AUDIT = "misslink judge audit RUN"
# What was changed, in the order of the table.
_CHANGES = {
    "padding": "answer padded with its passages",
    "passage_order": "passages in reverse order",
    "passage_shuffle": "passages shuffled",
    "again": "nothing: asked again",
    "answer_order": "two answers swapped",
}
_NAME = 60
_NOTHING = "nothing beyond chance"


@dataclass(frozen=True)
class AuditRow:
    """One change, and what it did to the verdicts of one metric.

    Parameters
    ----------
    metric, change : str
    n, left_out : int
        Verdicts that could be compared, and those that could not.
    flipped : Shown
        Share of them with the other label.
    direction : str
        Which way they turned, and what else is known of them; "" where nothing is.
    shift : Shown or None
        Mean change of the score; None where there is none, as of a preference.
    finding : str
        What can be told beyond chance.
    """

    metric: str
    change: str
    n: int
    left_out: int
    flipped: Shown
    direction: str
    shift: Shown | None
    finding: str


@dataclass(frozen=True)
class Audits:
    """All that was tried; ``facts`` say of whom and on how many cases."""

    facts: str
    rows: tuple[AuditRow, ...]
    notes: tuple[str, ...]


def audits(run: Run) -> Audits | None:
    """Read the audits of a run's judge; None where none was made.

    Parameters
    ----------
    run : Run
        What its audit holds in another shape reads as absent.
    """
    document = mapping_in(run.audit)
    rows = tuple(_rows(document))
    notes = tuple(one for one in list_in(document.get("notes")) if isinstance(one, str))
    if not rows and not notes:
        return None
    return Audits(_facts(run, document), rows, notes)


def _facts(run: Run, document: Mapping[str, JsonValue]) -> str:
    many = count_in(document, "cases")
    judge = in_short(text_in(document, "judge"), _NAME)
    said = f"The judge {judge} was asked again" if judge else "The judge was asked again"
    said += f" about {plural(many, 'case')} of the run" if many else ""
    said += ", with changes that must not matter."
    if judge and judge != run.manifest.get("judge"):
        said += " It is not the judge of this run."
    return said


def _rows(document: Mapping[str, JsonValue]) -> Iterator[AuditRow]:
    """Those with a finding first; else by change and metric."""
    found = [
        (metric, change, mapping_in(row))
        for metric, changes in mapping_in(document.get("metrics")).items()
        for change, row in mapping_in(changes).items()
    ]
    found += [
        ("preference", change, mapping_in(row))
        for change, row in mapping_in(document.get("preferences")).items()
        if mapping_in(row)
    ]
    order = {change: place for place, change in enumerate(_CHANGES)}
    found.sort(key=lambda one: (not text_in(one[2], "finding"), order.get(one[1], len(order))))
    for metric, change, row in found:
        yield _row(metric, change, row)


def _row(metric: str, change: str, row: Mapping[str, JsonValue]) -> AuditRow:
    flipped = shown("share", estimate_in(row, "flipped"))
    finding = text_in(row, "finding")
    return AuditRow(
        metric=in_short(metric, _NAME),
        change=_CHANGES.get(change, in_short(change.replace("_", " "), _NAME)),
        n=count_in(row, "n") or flipped.n,
        left_out=_left_out(mapping_in(row.get("left_out"))),
        flipped=flipped,
        direction=_direction(row),
        shift=shown_difference("share", estimate_in(row, "shift")) if "shift" in row else None,
        finding=finding or (_NOTHING if flipped.measured else ""),
    )


def _direction(row: Mapping[str, JsonValue]) -> str:
    """Which way labels turned, as shares of all that were asked."""
    ways = (("good", "to_good"), ("bad", "to_bad"))
    said = [(word, shown("share", estimate_in(row, name))) for word, name in ways]
    told = [f"{one.brief} to {word}" for word, one in said if one.measured]
    places = mapping_in(row.get("places"))
    if places:
        first, second = (count_in(places, name) for name in ("first", "second"))
        told.append(f"{first:,} for the one shown first, {second:,} for the second")
    claims = shown("share", estimate_in(row, "claims"))
    if claims.measured:
        told.append(f"of the answer's own claims {claims.brief} are called otherwise")
    if row.get("may_lower") is True:
        told.append("it may rightly turn bad here")
    return "; ".join(told)


def _left_out(reasons: Mapping[str, JsonValue]) -> int:
    return sum(count_in(reasons, reason) for reason in reasons)
