"""Which cases of several runs can be held against each other, and what keeps others from it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from misslink.errors import InputError
from misslink.types import Case, Run

__all__ = ["Named", "Pairing", "Wanted", "pair"]

Wanted = Literal["common"] | Collection[str] | None
_TOLD = 3  # ids that a message names
_ID_LENGTH = 60
_WAY_OUT = (
    "compare runs over one gold set, or say which cases to take: --cases common, or --cases FILE "
    "with an id on each line"
)


@dataclass(frozen=True)
class Named:
    """A run and what it is called, such as its folder."""

    name: str
    run: Run


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


def pair(runs: Sequence[Named], wanted: Wanted = None) -> Pairing:
    """Pair the cases of `runs` by their ids.

    Parameters
    ----------
    runs : sequence of Named
        Two or more.
    wanted : 'common', collection of str, or None
        None: every case, and the gold sets must be the same. 'common': those that ask the same in
        every run. Else the ids of the cases to take.

    Raises
    ------
    InputError
        The gold sets differ and nobody said which cases to take; a case that was asked for is not
        in every run, or asks something else in one; no case is left.
    """
    first, *others = runs
    if wanted is None:
        for other in others:
            _refuse_other(first, other)
        ids = tuple(case.id for case in first.run.cases)
    elif wanted == "common":
        ids = _common(runs)
    else:
        ids = _named(runs, frozenset(wanted))
    if not ids:
        names = " and ".join(named.name for named in runs)
        raise InputError(
            f"{names} share no case that asks the same; compare runs over one gold set"
        )
    kept = frozenset(ids)
    return Pairing(
        ids,
        tuple(_left_out(first.run, other.run, kept) for other in others),
        tuple(_notes(first.run, other.run, kept) for other in others),
    )


def _refuse_other(first: Named, other: Named) -> None:
    """Raise InputError where the gold sets of two runs differ."""
    a, b = _cases(first.run), _cases(other.run)
    found = [
        (f"only in {first.name}", [name for name in a if name not in b]),
        (f"only in {other.name}", [name for name in b if name not in a]),
        ("asking something else", [n for n in a if n in b and not _asks_same(a[n], b[n])]),
        (
            "listing other relevant passages",
            [n for n in a if n in b and not _needs_same(a[n], b[n])],
        ),
        (
            "expecting another answer",
            [n for n in a if n in b and not _expects_same(a[n], b[n])],
        ),
    ]
    told = [f"{len(ids)} {what} ({_some(ids)})" for what, ids in found if ids]
    if told:
        raise InputError(
            f"{first.name} and {other.name} are runs over different gold sets, cases "
            f"{', '.join(told)}; {_WAY_OUT}"
        )


def _common(runs: Sequence[Named]) -> tuple[str, ...]:
    first, *others = [_cases(named.run) for named in runs]
    return tuple(
        name
        for name, case in first.items()
        if all(name in cases and _asks_same(case, cases[name]) for cases in others)
    )


def _named(runs: Sequence[Named], wanted: frozenset[str]) -> tuple[str, ...]:
    first = _cases(runs[0].run)
    for named in runs:
        cases = _cases(named.run)
        if absent := sorted(wanted - cases.keys()):
            raise InputError(
                f"{named.name} has no case {_some(absent)} of those to compare; take ids that "
                "are in every run, or --cases common"
            )
        if other := [name for name in sorted(wanted) if not _asks_same(first[name], cases[name])]:
            raise InputError(
                f"the case {_some(other)} asks something else in {named.name} than in "
                f"{runs[0].name}; leave it out of --cases"
            )
    return tuple(name for name in first if name in wanted)


def _left_out(first: Run, other: Run, kept: frozenset[str]) -> dict[str, int]:
    a, b = _cases(first), _cases(other)
    shared = [name for name in a if name in b and name not in kept]
    asks_else = sum(not _asks_same(a[name], b[name]) for name in shared)
    counts = {
        "only_in_a": sum(name not in b for name in a),
        "only_in_b": sum(name not in a for name in b),
        "asks_something_else": asks_else,
        "not_selected": len(shared) - asks_else,
    }
    return {reason: count for reason, count in counts.items() if count}


def _notes(first: Run, other: Run, kept: frozenset[str]) -> tuple[str, ...]:
    a, b = _cases(first), _cases(other)
    notes = []
    if others := sum(not _needs_same(a[name], b[name]) for name in kept):
        notes.append(
            f"{_cases_are(others)} compared with other relevant passages in each run: level 1 is "
            "measured in each against its own"
        )
    if others := sum(not _expects_same(a[name], b[name]) for name in kept):
        notes.append(f"{_cases_are(others)} compared with another expected answer in each run")
    return tuple(notes)


def _cases(run: Run) -> dict[str, Case]:
    return {case.id: case for case in run.cases}


def _asks_same(a: Case, b: Case) -> bool:
    return a.question.strip() == b.question.strip()


def _needs_same(a: Case, b: Case) -> bool:
    return (a.relevant, a.evidence, set(map(frozenset, a.relevant_any))) == (
        b.relevant,
        b.evidence,
        set(map(frozenset, b.relevant_any)),
    )


def _expects_same(a: Case, b: Case) -> bool:
    return (set(a.references), a.answerable) == (set(b.references), b.answerable)


def _cases_are(count: int) -> str:
    return "1 case is" if count == 1 else f"{count} cases are"


def _some(ids: Sequence[str]) -> str:
    """The first few ids, on one line whatever is in them."""
    told = ", ".join(repr(name[:_ID_LENGTH]) for name in ids[:_TOLD])
    return f"{told} and {len(ids) - _TOLD} more" if len(ids) > _TOLD else told
