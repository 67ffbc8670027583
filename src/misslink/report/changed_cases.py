"""The cases that changed between two runs, with both answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from misslink.failure_modes import FAILURE_MODES
from misslink.report.glossary import RETRIEVALS
from misslink.report.links import case_fragment, number_cases, view_fragment
from misslink.types import Link, Run, Trace

_MAX_CHANGED = 200  # cases whose answers stand on the page
_NO_ANSWER = "no answer"


@dataclass(frozen=True)
class CaseCount:
    """A count of cases, and where they are: "" where there is no report beside."""

    count: int
    href: str = ""


@dataclass(frozen=True)
class RunAnswer:
    """What one run made of a case; ``answer`` is "" where there is none, and ``why`` says why."""

    letter: str
    answer: str
    why: str
    failure: str
    retrieval: str
    href: str


@dataclass(frozen=True)
class ChangedCase:
    """A case that changed: what turned for the better and for the worse, and both answers."""

    anchor: str
    id: str
    question: str
    better: tuple[str, ...]
    worse: tuple[str, ...]
    failure: str
    a: RunAnswer
    b: RunAnswer


@dataclass(frozen=True)
class ModeTransitions:
    """Failure modes in A by failure modes in B: a row is (failure mode in A, a cell for each column, all of A)."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[CaseCount | None, ...], int], ...]
    totals: tuple[int, ...]
    n: int
    changed: int


def find_changed_cases(
    comparison: Mapping[str, Any],
    letter: str,
    runs: tuple[Run, Run],
    addresses: tuple[str, str],
) -> tuple[tuple[ChangedCase, ...], int, dict[tuple[str, str], CaseCount]]:
    """Return the cases that flipped or changed their failure mode, those that got worse first.

    Parameters
    ----------
    found : mapping
        One comparison, as `misslink.compare.compare_runs.compare_runs` has it.
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
    numbers = number_cases(runs[1].cases)
    cells = {}
    for metric, ways in comparison["flipped"].items():
        for way, ids in ways.items():
            cells[metric, way] = CaseCount(len(ids), _cases_link(addresses[1], numbers, ids))
            for case_id in ids:
                turned.setdefault(case_id, {"better": [], "worse": []})[way].append(metric)
    changes = {
        case_id: (move["from"], move["to"])
        for move in comparison["failures"]["changes"]
        if move["from"] != move["to"]
        for case_id in move["cases"]
    }
    ids = [case_id.id for case_id in runs[0].cases if case_id.id in turned or case_id.id in changes]
    empty: dict[str, list[str]] = {"better": [], "worse": []}
    ways_of = {case_id: turned.get(case_id, empty) for case_id in ids}
    ids.sort(key=lambda case_id: len(ways_of[case_id]["better"]) - len(ways_of[case_id]["worse"]))
    sides = [
        _RunIndex(letter, run, address)
        for letter, run, address in zip(("A", letter), runs, addresses, strict=True)
    ]
    questions = {case_id.id: case_id.question for case_id in runs[0].cases}
    changed = tuple(
        ChangedCase(
            anchor=f"{letter.lower()}-case-{place}",
            id=case_id,
            question=questions[case_id],
            better=tuple(ways_of[case_id]["better"]),
            worse=tuple(ways_of[case_id]["worse"]),
            failure=" to ".join(map(_mode_label, changes[case_id])) if case_id in changes else "",
            a=sides[0].answered(case_id),
            b=sides[1].answered(case_id),
        )
        for place, case_id in enumerate(ids[:_MAX_CHANGED], start=1)
    )
    return changed, len(ids) - len(changed), cells


def mode_transitions(
    transitions: Mapping[str, Any], run: Run, address: str
) -> ModeTransitions | None:
    """Cross the failure modes of two runs; None where no case has a link in both."""
    if not transitions["n"]:
        return None
    numbers = number_cases(run.cases)
    moves = {(move["from"], move["to"]): move for move in transitions["changes"]}
    before = [failure for failure in FAILURE_MODES if transitions["a"].get(failure)]
    after = [failure for failure in FAILURE_MODES if transitions["b"].get(failure)]

    def cell(was: str, now: str) -> CaseCount | None:
        move = moves.get((was, now))
        return move and CaseCount(move["n"], _cases_link(address, numbers, move["cases"]))

    return ModeTransitions(
        columns=tuple(map(_mode_label, after)),
        rows=tuple(
            (_mode_label(was), tuple(cell(was, now) for now in after), transitions["a"][was])
            for was in before
        ),
        totals=tuple(transitions["b"][now] for now in after),
        n=transitions["n"],
        changed=transitions["changed"],
    )


class _RunIndex:
    """A run, looked up case by case."""

    def __init__(self, letter: str, run: Run, address: str) -> None:
        self._letter, self._address = letter, address
        self._numbers = number_cases(run.cases)
        self._traces: dict[str, Trace] = {trace.case_id: trace for trace in run.traces}
        self._links: dict[str, Link] = {link.case_id: link for link in run.links}

    def answered(self, case_id: str) -> RunAnswer:
        """What the run made of a case."""
        trace, link = self._traces.get(case_id), self._links.get(case_id)
        answer = (trace.answer if trace else None) or ""
        why = _NO_ANSWER if trace is None or not trace.error else f"{_NO_ANSWER}: {trace.error}"
        return RunAnswer(
            letter=self._letter,
            answer=answer,
            why="" if answer else why,
            failure=_mode_label(link.failure or "inconclusive") if link else "",
            retrieval=RETRIEVALS.get(link.retrieval, link.retrieval) if link else "",
            href=f"{self._address}#{case_fragment(self._numbers[case_id])}"
            if self._address
            else "",
        )


def _cases_link(address: str, numbers: Mapping[str, int], ids: Sequence[str]) -> str:
    if not address or not ids:
        return ""
    return f"{address}#{view_fragment(ids=sorted(numbers[case_id] for case_id in ids))}"


def _mode_label(failure: str) -> str:
    return FAILURE_MODES[failure].label if failure in FAILURE_MODES else failure
