"""Pair the cases of several runs by their ids."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from misslink.errors import InputError
from misslink.types import Case, Run

CaseSelection = Literal["common"] | Collection[str] | None
_MAX_LISTED = 3  # ids that a message names
_ID_LENGTH = 60
_PAIRING_FIX = (
    "compare runs over one gold set, or say which cases to take: --cases common, or --cases FILE "
    "with an id on each line"
)


@dataclass(frozen=True)
class NamedRun:
    """A run, its folder, and a short name for people (default: the folder)."""

    name: str
    run: Run
    label: str = ""

    @property
    def title(self) -> str:
        """What people call it."""
        return self.label or self.name


@dataclass(frozen=True)
class Pairing:
    """The cases that all runs are compared on.

    Parameters
    ----------
    ids : tuple of str
        In the order of the first run's gold set.
    left_out : tuple of dict of str to int
        For each further run, by reason, how many cases of it and of the first one are left out.
    notes : tuple of tuple of str
        For each further run, what its readers must know of the cases that are compared.
    """

    ids: tuple[str, ...]
    left_out: tuple[dict[str, int], ...]
    notes: tuple[tuple[str, ...], ...]


def pair_cases(runs: Sequence[NamedRun], selection: CaseSelection = None) -> Pairing:
    """Pair the cases of `runs` by id: all cases, the common cases, or the requested ids."""
    first, *other_runs = runs
    if selection is None:
        for other in other_runs:
            _reject_other_gold(first, other)
        ids = tuple(case.id for case in first.run.cases)
    elif selection == "common":
        ids = _common_ids(runs)
    else:
        ids = _requested_ids(runs, frozenset(selection))
    if not ids:
        names = " and ".join(named.name for named in runs)
        raise InputError(
            f"{names} share no case that asks the same; compare runs over one gold set"
        )
    selected = frozenset(ids)
    return Pairing(
        ids,
        tuple(_count_left_out(first.run, other.run, selected) for other in other_runs),
        tuple(_difference_notes(first.run, other.run, selected) for other in other_runs),
    )


def _reject_other_gold(first: NamedRun, other: NamedRun) -> None:
    """Raise InputError where the gold sets of two runs differ."""
    a, b = _cases_by_id(first.run), _cases_by_id(other.run)
    differences = [
        (f"only in {first.name}", [name for name in a if name not in b]),
        (f"only in {other.name}", [name for name in b if name not in a]),
        ("asking something else", [n for n in a if n in b and not _same_question(a[n], b[n])]),
        (
            "listing other relevant passages",
            [n for n in a if n in b and not _same_relevant(a[n], b[n])],
        ),
        ("expecting another answer", [n for n in a if n in b and not _same_reference(a[n], b[n])]),
    ]
    descriptions = [
        f"{len(ids)} {description} ({_sample_ids(ids)})" for description, ids in differences if ids
    ]
    if descriptions:
        raise InputError(
            f"{first.name} and {other.name} are runs over different gold sets, cases "
            f"{', '.join(descriptions)}; {_PAIRING_FIX}"
        )


def _common_ids(runs: Sequence[NamedRun]) -> tuple[str, ...]:
    first, *other_cases = [_cases_by_id(named.run) for named in runs]
    return tuple(
        name
        for name, case in first.items()
        if all(name in cases and _same_question(case, cases[name]) for cases in other_cases)
    )


def _requested_ids(runs: Sequence[NamedRun], ids: frozenset[str]) -> tuple[str, ...]:
    first = _cases_by_id(runs[0].run)
    for named in runs:
        cases = _cases_by_id(named.run)
        if absent := sorted(ids - cases.keys()):
            raise InputError(
                f"{named.name} has no case {_sample_ids(absent)} of those to compare; take ids that "
                "are in every run, or --cases common"
            )
        if other := [name for name in sorted(ids) if not _same_question(first[name], cases[name])]:
            raise InputError(
                f"the case {_sample_ids(other)} asks something else in {named.name} than in "
                f"{runs[0].name}; leave it out of --cases"
            )
    return tuple(name for name in first if name in ids)


def _count_left_out(first: Run, other: Run, selected: frozenset[str]) -> dict[str, int]:
    a, b = _cases_by_id(first), _cases_by_id(other)
    shared = [name for name in a if name in b and name not in selected]
    other_question_count = sum(not _same_question(a[name], b[name]) for name in shared)
    counts = {
        "only_in_a": sum(name not in b for name in a),
        "only_in_b": sum(name not in a for name in b),
        "asks_something_else": other_question_count,
        "not_selected": len(shared) - other_question_count,
    }
    return {reason: count for reason, count in counts.items() if count}


def _difference_notes(first: Run, other: Run, selected: frozenset[str]) -> tuple[str, ...]:
    a, b = _cases_by_id(first), _cases_by_id(other)
    notes = []
    if count := sum(not _same_relevant(a[name], b[name]) for name in selected):
        notes.append(
            f"{_case_count(count)} compared with other relevant passages in each run: level 1 is "
            "measured in each against its own"
        )
    if count := sum(not _same_reference(a[name], b[name]) for name in selected):
        notes.append(f"{_case_count(count)} compared with another expected answer in each run")
    return tuple(notes)


def _cases_by_id(run: Run) -> dict[str, Case]:
    return {case.id: case for case in run.cases}


def _same_question(a: Case, b: Case) -> bool:
    return a.question.strip() == b.question.strip()


def _same_relevant(a: Case, b: Case) -> bool:
    return (a.relevant, a.evidence, set(map(frozenset, a.relevant_any))) == (
        b.relevant,
        b.evidence,
        set(map(frozenset, b.relevant_any)),
    )


def _same_reference(a: Case, b: Case) -> bool:
    return (set(a.references), a.answerable) == (set(b.references), b.answerable)


def _case_count(count: int) -> str:
    return "1 case is" if count == 1 else f"{count} cases are"


def _sample_ids(ids: Sequence[str]) -> str:
    """The first few ids, on one line whatever is in them."""
    listed = ", ".join(repr(name[:_ID_LENGTH]) for name in ids[:_MAX_LISTED])
    return f"{listed} and {len(ids) - _MAX_LISTED} more" if len(ids) > _MAX_LISTED else listed
