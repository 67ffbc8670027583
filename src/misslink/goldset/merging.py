"""Several gold sets made one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from misslink.files.goldset import GoldSet
from misslink.goldset.differing import Change, differences
from misslink.text import fold
from misslink.types import Case

__all__ = ["Merged", "Prefer", "merged"]

Prefer = Literal["first", "last", "grades-max"]


@dataclass(frozen=True)
class Merged:
    """One gold set of several.

    Parameters
    ----------
    cases : tuple of Case
        In the order in which their ids come up.
    repeated : int
        Cases that several sets hold with the same content.
    settled : tuple of str
        Ids of which the sets said different things, settled as was asked.
    same_question : tuple of tuple of str
        Ids of different cases that ask the same, apart from capitals, blanks and punctuation.
    """

    cases: tuple[Case, ...]
    repeated: int
    settled: tuple[str, ...]
    same_question: tuple[tuple[str, ...], ...]


def merged(sets: Sequence[GoldSet], prefer: Prefer | None = None) -> Merged:
    """Merge gold sets by the ids of their cases.

    Parameters
    ----------
    sets : sequence of GoldSet
    prefer : {'first', 'last', 'grades-max'} or None
        What holds where two cases with one id say different things: the case of the first or of
        the last set, or, where they differ in grades alone, the highest grade of each passage.
        None: that is an error.

    Raises
    ------
    InputError
        Two cases with one id say different things and nothing settles it.
    """
    held: dict[str, tuple[Case, GoldSet]] = {}
    repeated = 0
    settled: dict[str, None] = {}
    for gold in sets:
        for case in gold.cases:
            if case.id not in held:
                held[case.id] = case, gold
                continue
            first, source = held[case.id]
            changes = differences([first], [case]).changed
            if not changes:
                repeated += 1
                continue
            held[case.id] = _settle(first, source, case, gold, changes, prefer), gold
            settled[case.id] = None
    cases = tuple(case for case, _ in held.values())
    return Merged(cases, repeated, tuple(settled), _same_question(cases))


def _settle(
    first: Case,
    source: GoldSet,
    case: Case,
    gold: GoldSet,
    changes: Sequence[Change],
    prefer: Prefer | None,
) -> Case:
    """The case that holds of two with one id."""
    if prefer == "first":
        return first
    if prefer == "last":
        return case
    fields = [change.field for change in changes]
    graded_alone = set(fields) <= {"relevant", "evidence"}
    if prefer == "grades-max" and graded_alone:
        return first.model_copy(
            update={
                "relevant": _highest(first.relevant, case.relevant),
                "evidence": _highest(first.evidence, case.evidence),
            }
        )
    where = source.place(case.id)
    way = (
        "grades-max settles grades alone; merge with --prefer first or last, or mend one of them"
        if prefer
        else f"say which holds with --prefer first, last{', grades-max' * graded_alone}, "
        "or mend one of them"
    )
    raise gold.error(
        case.id, fields[0], f"the case '{case.id}' says something else in {where}; {way}"
    )


def _highest(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    units = dict.fromkeys([*one, *other])
    return {unit: max(one.get(unit, 0), other.get(unit, 0)) for unit in units}


def _same_question(cases: Sequence[Case]) -> tuple[tuple[str, ...], ...]:
    asked: dict[str, list[str]] = {}
    for case in cases:
        words = fold(case.question)
        asked.setdefault("".join(filter(str.isalnum, words)) or words, []).append(case.id)
    return tuple(tuple(ids) for ids in asked.values() if len(ids) > 1)
