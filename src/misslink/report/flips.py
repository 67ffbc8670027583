"""The cases that changed between two runs, with both answers and the ways to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from misslink.report.glossary import CAUSES, RETRIEVALS
from misslink.report.places import case, case_numbers, view
from misslink.types import Link, Run, Trace

__all__ = ["Answered", "Cell", "FlippedCase", "Moves", "flipped_cases", "moves"]

_MOST = 200  # cases whose answers stand on the page
_NO_ANSWER = "no answer"


@dataclass(frozen=True)
class Cell:
    """A count of cases, and where they are: "" where there is no report beside."""

    count: int
    href: str = ""


@dataclass(frozen=True)
class Answered:
    """What one run made of a case; ``answer`` is "" where there is none, and ``why`` says why."""

    letter: str
    answer: str
    why: str
    cause: str
    retrieval: str
    href: str


@dataclass(frozen=True)
class FlippedCase:
    """A case that changed: what turned for the better and for the worse, and both answers."""

    anchor: str
    id: str
    question: str
    better: tuple[str, ...]
    worse: tuple[str, ...]
    cause: str
    a: Answered
    b: Answered


@dataclass(frozen=True)
class Moves:
    """Causes in A by causes in B: a row is (cause in A, a cell for each column, all of A)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell | None, ...], int], ...]
    totals: tuple[int, ...]
    n: int
    changed: int


def flipped_cases(
    found: Mapping[str, Any],
    letter: str,
    runs: tuple[Run, Run],
    addresses: tuple[str, str],
) -> tuple[tuple[FlippedCase, ...], int, dict[tuple[str, str], Cell]]:
    """Return the cases that flipped or changed their cause, those that got worse first.

    Parameters
    ----------
    found : mapping
        One comparison, as `misslink.deciding.compare.compare` has it.
    letter : str
        Of the further run.
    runs : pair of Run
    addresses : pair of str
        Of the runs' reports, "" where there is none.

    Returns
    -------
    tuple
        The cases, at most 200; how many more there are; and by metric and direction how many
        cases flipped.
    """
    turned: dict[str, dict[str, list[str]]] = {}
    numbers = case_numbers(runs[1].cases)
    cells = {}
    for metric, ways in found["flipped"].items():
        for way, ids in ways.items():
            cells[metric, way] = Cell(len(ids), _view(addresses[1], numbers, ids))
            for one in ids:
                turned.setdefault(one, {"better": [], "worse": []})[way].append(metric)
    changes = {
        one: (move["from"], move["to"])
        for move in found["causes"]["changes"]
        if move["from"] != move["to"]
        for one in move["cases"]
    }
    ids = [one.id for one in runs[0].cases if one.id in turned or one.id in changes]
    empty: dict[str, list[str]] = {"better": [], "worse": []}
    ways_of = {one: turned.get(one, empty) for one in ids}
    ids.sort(key=lambda one: len(ways_of[one]["better"]) - len(ways_of[one]["worse"]))
    sides = [
        _Side(letter, run, address)
        for letter, run, address in zip(("A", letter), runs, addresses, strict=True)
    ]
    questions = {one.id: one.question for one in runs[0].cases}
    shown = tuple(
        FlippedCase(
            anchor=f"{letter.lower()}-case-{place}",
            id=one,
            question=questions[one],
            better=tuple(ways_of[one]["better"]),
            worse=tuple(ways_of[one]["worse"]),
            cause=" to ".join(map(_label, changes[one])) if one in changes else "",
            a=sides[0].answered(one),
            b=sides[1].answered(one),
        )
        for place, one in enumerate(ids[:_MOST], start=1)
    )
    return shown, len(ids) - len(shown), cells


def moves(found: Mapping[str, Any], run: Run, address: str) -> Moves | None:
    """Cross the causes of two runs; None where no case has a link in both."""
    if not found["n"]:
        return None
    numbers = case_numbers(run.cases)
    by = {(move["from"], move["to"]): move for move in found["changes"]}
    before = [cause for cause in CAUSES if found["a"].get(cause)]
    after = [cause for cause in CAUSES if found["b"].get(cause)]

    def cell(was: str, now: str) -> Cell | None:
        move = by.get((was, now))
        return move and Cell(move["n"], _view(address, numbers, move["cases"]))

    return Moves(
        columns=tuple(map(_label, after)),
        rows=tuple(
            (_label(was), tuple(cell(was, now) for now in after), found["a"][was]) for was in before
        ),
        totals=tuple(found["b"][now] for now in after),
        n=found["n"],
        changed=found["changed"],
    )


class _Side:
    """A run, looked up case by case."""

    def __init__(self, letter: str, run: Run, address: str) -> None:
        self._letter, self._address = letter, address
        self._numbers = case_numbers(run.cases)
        self._traces: dict[str, Trace] = {trace.case_id: trace for trace in run.traces}
        self._links: dict[str, Link] = {link.case_id: link for link in run.links}

    def answered(self, one: str) -> Answered:
        """What the run made of a case."""
        trace, link = self._traces.get(one), self._links.get(one)
        answer = (trace.answer if trace else None) or ""
        why = _NO_ANSWER if trace is None or not trace.error else f"{_NO_ANSWER}: {trace.error}"
        return Answered(
            letter=self._letter,
            answer=answer,
            why="" if answer else why,
            cause=_label(link.cause) if link else "",
            retrieval=RETRIEVALS.get(link.retrieval, link.retrieval) if link else "",
            href=f"{self._address}#{case(self._numbers[one])}" if self._address else "",
        )


def _view(address: str, numbers: Mapping[str, int], ids: Sequence[str]) -> str:
    if not address or not ids:
        return ""
    return f"{address}#{view(ids=sorted(numbers[one] for one in ids))}"


def _label(cause: str) -> str:
    return CAUSES[cause].label if cause in CAUSES else cause
