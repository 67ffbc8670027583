"""A comparison of runs as data for people: a page, markdown and the terminal read the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

from misslink.report.compared_finding import finding, lacking
from misslink.report.compared_rows import ALIKE, CorrectedRow, Row, corrected_row, row_of
from misslink.report.flips import Cell, FlippedCase, Moves, flipped_cases, moves
from misslink.report.forest import Forest, forest
from misslink.report.preferred import Preferred, preferred
from misslink.types import Run

__all__ = ["Comparison", "ComparisonPage", "build", "render"]


@dataclass(frozen=True)
class Comparison:
    """One further run held against the first.

    Parameters
    ----------
    letter, name : str
    paired : int
    finding : str
        The outcome in a sentence or two.
    notes : tuple of str
    rows, alike, unmeasured : tuple of Row
        Beyond chance first, the biggest change first; apart from them those that are the same in
        every case, and those without a value.
    corrected : tuple of CorrectedRow
        Shares of good answers as people would call them.
    forest : Forest or None
    causes : Moves or None
    cases : tuple of FlippedCase
    more : int
        How many more cases changed than are shown.
    preferred : Preferred or None
    """

    letter: str
    name: str
    paired: int
    finding: str
    notes: tuple[str, ...]
    rows: tuple[Row, ...]
    alike: tuple[Row, ...]
    unmeasured: tuple[Row, ...]
    corrected: tuple[CorrectedRow, ...]
    forest: Forest | None
    causes: Moves | None
    cases: tuple[FlippedCase, ...]
    more: int
    preferred: Preferred | None


@dataclass(frozen=True)
class ComparisonPage:
    """Everything that is shown of a comparison; ``runs`` are letter, name and link ("" if none).

    ``tested`` is how many tests were made, ``left`` how many of them Holm's procedure leaves.
    """

    title: str
    runs: tuple[tuple[str, str, str], ...]
    tested: int
    left: int
    comparisons: tuple[Comparison, ...]


def build(
    document: Mapping[str, Any],
    runs: Mapping[str, Run],
    reports: Mapping[str, str] | None = None,
) -> ComparisonPage:
    """Turn what `misslink.deciding.compare.compare` found into what people read.

    Parameters
    ----------
    document : mapping
    runs : mapping of str to Run
        By name, for questions and answers.
    reports : mapping of str to str or None
        Run name to the address of its report, seen from the page; a run without one has no links.
    """
    links = reports or {}
    found = document["comparisons"]
    names = [document["a"], *(one["b"] for one in found)]
    tests = [m for one in found for m in one["metrics"].values() if m["p"] is not None]
    return ComparisonPage(
        title=" against ".join([", ".join(names[1:]), names[0]]),
        runs=tuple(
            (letter, name, links.get(name, ""))
            for letter, name in zip(ascii_uppercase, names, strict=False)
        ),
        tested=len(tests),
        left=max(1, sum(test["winner"] is None for test in tests)),
        comparisons=tuple(
            _comparison(letter, document["a"], one, runs, links, len(tests))
            for letter, one in zip(ascii_uppercase[1:], found, strict=False)
        ),
    )


def render(page: ComparisonPage) -> str:
    """Turn the page into HTML: everything escaped, no script at all."""
    from misslink.report.html import asset, fill

    return fill("comparison.jinja", page, style=asset("report.css") + asset("comparison.css"))


def _comparison(
    letter: str,
    first: str,
    found: Mapping[str, Any],
    runs: Mapping[str, Run],
    links: Mapping[str, str],
    tested: int,
) -> Comparison:
    rows = [
        row_of(name, metric, found["paired"], letter) for name, metric in found["metrics"].items()
    ]
    measured = sorted(
        (row for row in rows if row.difference.measured),
        key=lambda row: (
            row.verdict not in ("better", "worse"),
            -abs(found["metrics"][row.name]["difference"]["value"]),
        ),
    )
    a, b = runs[first], runs[found["b"]]
    addresses = links.get(first, ""), links.get(found["b"], "")
    cases, more, cells = flipped_cases(found, letter, (a, b), addresses)
    return Comparison(
        letter=letter,
        name=found["b"],
        paired=found["paired"],
        finding=finding(letter, measured, found["lacking"], found["paired"], tested),
        notes=(*lacking(letter, found["lacking"]), *found["notes"]),
        rows=tuple(_with_flips(row, cells) for row in measured if row.verdict != ALIKE),
        alike=tuple(row for row in measured if row.verdict == ALIKE),
        unmeasured=tuple(row for row in rows if not row.difference.measured),
        corrected=tuple(
            row
            for name, metric in found["metrics"].items()
            if (row := corrected_row(name, metric.get("corrected")))
        ),
        forest=forest(
            [
                (row.name, row.verdict, found["metrics"][row.name])
                for row in measured
                if row.verdict != ALIKE
            ]
        ),
        causes=moves(found["causes"], b, addresses[1]),
        cases=cases,
        more=more,
        preferred=preferred(letter, found["preference"]),
    )


def _with_flips(row: Row, cells: Mapping[tuple[str, str], Cell]) -> Row:
    return replace(
        row, better=cells.get((row.name, "better")), worse=cells.get((row.name, "worse"))
    )
