"""The 2 x 2 tables of misses and bad answers, each cell with the view of its cases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report.documents import count_in, estimate_in, mapping_in
from misslink.report.places import CORRECT, case_numbers, view
from misslink.report.wording import Shown, shown
from misslink.types import Run

__all__ = ["ROWS", "Cell", "Cross", "crosses"]

# Outcome of retrieval to row of a table; cases with another outcome are left out.
ROWS = {"miss": "miss", "partial": "hit", "hit": "hit"}


@dataclass(frozen=True)
class Cell:
    """How many cases a cell counts, and the view of them; "" where there is none to see."""

    count: int
    fragment: str


@dataclass(frozen=True)
class Cross:
    """A 2 x 2 table: miss or hit against a bad or a good answer, with the risks of each row."""

    bad: str
    good: str
    miss: tuple[Cell, Cell]
    hit: tuple[Cell, Cell]
    left_out: int
    risks: tuple[Shown, Shown]
    numbers: tuple[tuple[str, Shown], ...]


def crosses(run: Run) -> tuple[Cross, ...]:
    """The 2 x 2 table of unfaithful answers, and that of wrong ones where there is one."""
    link = mapping_in(run.summary.get("link"))
    found = [
        _cross(run, link, "answer", {"unfaithful": "unfaithful", "faithful": "faithful"}),
        _cross(run, mapping_in(link.get("wrong")), "correct", {"wrong": "no", "right": "yes"}),
    ]
    return tuple(cross for cross in found if cross is not None)


def _cross(
    run: Run, link: Mapping[str, JsonValue], key: str, columns: Mapping[str, str]
) -> Cross | None:
    """A table of the document; `columns` are its names, the bad one first, and the filter's."""
    table = mapping_in(link.get("table"))
    bad, good = columns
    numbers = case_numbers(run.cases)
    cells = {
        (row, column): _cell(
            count_in(table, f"{row}_{column}"), _outcomes(run, numbers, row, key, value), key, value
        )
        for row in ("miss", "hit")
        for column, value in columns.items()
    }
    if not any(cell.count for cell in cells.values()):
        return None
    effects = (
        ("Attributable share", "attributable_fraction"),
        ("Risk difference", "risk_difference"),
        ("Risk ratio", "risk_ratio"),
    )
    return Cross(
        bad=bad.capitalize(),
        good=good.capitalize(),
        miss=(cells["miss", bad], cells["miss", good]),
        hit=(cells["hit", bad], cells["hit", good]),
        left_out=count_in(table, "left_out"),
        risks=(
            shown("risk", estimate_in(link, "risk_given_miss")),
            shown("risk", estimate_in(link, "risk_given_hit")),
        ),
        numbers=tuple((label, shown(name, estimate_in(link, name))) for label, name in effects),
    )


def _outcomes(
    run: Run, numbers: Mapping[str, int], row: str, key: str, value: str
) -> dict[int, str]:
    """The cases that belong into a cell, with what retrieval came to."""
    return {
        numbers[link.case_id]: link.retrieval
        for link in run.links
        if (link.answer if key == "answer" else CORRECT[link.correct]) == value
        and ROWS.get(link.retrieval) == row
        and link.case_id in numbers
    }


def _cell(count: int, outcomes: Mapping[int, str], key: str, value: str) -> Cell:
    """A cell with its view: by filters where these say it exactly, else by the cases' numbers."""
    if not count or len(outcomes) != count:
        return Cell(count, "")  # a summary of other links: their cases would not be these
    kinds = set(outcomes.values())
    if len(kinds) == 1:
        return Cell(count, view(**{"retrieval": kinds.pop(), key: value}))
    return Cell(count, view(ids=sorted(outcomes)))
