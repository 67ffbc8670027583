"""Compare two versions of a gold set, and merge several gold sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from misslink.io.goldset import GoldSet
from misslink.text.normalization import fold
from misslink.types import Case

MergePreference = Literal["first", "last", "grades-max"]
_FIELDS = tuple(name for name in Case.model_fields if name != "id")
_GRADED = {"relevant", "evidence"}


@dataclass(frozen=True)
class FieldChange:
    """One changed field of one case; `before` and `after` are JSON values."""

    case_id: str
    field: str
    before: Any
    after: Any


@dataclass(frozen=True)
class GoldSetDiff:
    """The differences of two versions of a gold set, by the ids of their cases.

    Parameters
    ----------
    added, removed : tuple of str
        Ids, in the order of their version.
    changed : tuple of FieldChange
        In the order of the first version, then of a case's fields.
    same : int
        Number of unchanged cases.
    renamed : mapping of str to str
        Removed and added ids with the same content, old to new. They are in `added` and `removed`
        too.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[FieldChange, ...]
    same: int
    renamed: Mapping[str, str]

    def __bool__(self) -> bool:
        """Whether there is any difference."""
        return bool(self.added or self.removed or self.changed)

    @property
    def flipped(self) -> tuple[tuple[str, str, int | None, int | None], ...]:
        """Case, passage or evidence, and its grades before and after; None if it had none."""
        return tuple(
            (change.case_id, unit, change.before.get(unit), change.after.get(unit))
            for change in self.changed
            if change.field in _GRADED
            for unit in dict.fromkeys([*change.before, *change.after])
            if change.before.get(unit) != change.after.get(unit)
        )


def diff_cases(before: Iterable[Case], after: Iterable[Case]) -> GoldSetDiff:
    """Compare two versions of a gold set.

    The order of cases, of passages, of alternative sets and of references is ignored.

    Parameters
    ----------
    before, after : iterable of Case
        With unique ids; either may be empty.
    """
    old = {case.id: case for case in before}
    new = {case.id: case for case in after}
    changes = {
        case_id: _field_changes(case, new[case_id])
        for case_id, case in old.items()
        if case_id in new
    }
    added = tuple(case_id for case_id in new if case_id not in old)
    removed = tuple(case_id for case_id in old if case_id not in new)
    by_content = {_content_key(new[case_id]): case_id for case_id in added}
    renamed = {
        case_id: by_content[key]
        for case_id in removed
        if (key := _content_key(old[case_id])) in by_content
    }
    changed = tuple(change for several in changes.values() for change in several)
    same = sum(not several for several in changes.values())
    return GoldSetDiff(added, removed, changed, same, renamed)


def same_content(first: Case, second: Case) -> bool:
    """Return whether two cases are equal except for their ids."""
    return not _field_changes(first, second)


def _field_changes(first: Case, second: Case) -> list[FieldChange]:
    old, new = _canonical_fields(first), _canonical_fields(second)
    return [
        FieldChange(first.id, name, old[name], new[name])
        for name in _FIELDS
        if old[name] != new[name]
    ]


def _canonical_fields(case: Case) -> dict[str, Any]:
    """The fields as JSON, with unordered ones sorted."""
    fields = case.model_dump(mode="json")
    fields["references"] = sorted(fields["references"])
    fields["relevant_any"] = sorted(sorted(ids) for ids in fields["relevant_any"])
    return fields


def _content_key(case: Case) -> str:
    """A text that is equal for cases with the same content."""
    fields = (_canonical_fields(case)[name] for name in _FIELDS)
    return repr([sorted(f.items()) if isinstance(f, dict) else f for f in fields])


@dataclass(frozen=True)
class MergedGoldSet:
    """A gold set merged from several.

    Parameters
    ----------
    cases : tuple of Case
        In the order in which their ids occur.
    repeated : int
        Number of cases that are equal in several sets.
    settled : tuple of str
        Ids with different content, resolved by the preference.
    same_question : tuple of tuple of str
        Ids of different cases with the same question, except for case, blanks and punctuation.
    """

    cases: tuple[Case, ...]
    repeated: int
    settled: tuple[str, ...]
    same_question: tuple[tuple[str, ...], ...]


def merge_goldsets(sets: Sequence[GoldSet], prefer: MergePreference | None = None) -> MergedGoldSet:
    """Merge gold sets by case id; `prefer` resolves conflicts, else they raise InputError."""
    merged: dict[str, tuple[Case, GoldSet]] = {}
    repeated = 0
    settled: dict[str, None] = {}
    for gold in sets:
        for case in gold.cases:
            if case.id not in merged:
                merged[case.id] = case, gold
                continue
            first, source = merged[case.id]
            changed = {change.field for change in _field_changes(first, case)}
            if not changed:
                repeated += 1
                continue
            settled[case.id] = None
            kept = {"first": first, "last": case}.get(prefer or "")
            if prefer == "grades-max" and changed <= _GRADED:
                kept = _with_highest_grades(first, case)
            if kept is None:
                raise gold.error(
                    case.id,
                    next(name for name in _FIELDS if name in changed),
                    f"The case '{case.id}' differs from {source.item(case.id).place}. "
                    + _preference_hint(prefer, only_grades=changed <= _GRADED),
                )
            merged[case.id] = kept, gold
    cases = tuple(case for case, _ in merged.values())
    questions: dict[str, list[str]] = {}
    for case in cases:
        words = fold(case.question)
        questions.setdefault("".join(filter(str.isalnum, words)) or words, []).append(case.id)
    same_question = tuple(tuple(ids) for ids in questions.values() if len(ids) > 1)
    return MergedGoldSet(cases, repeated, tuple(settled), same_question)


def _with_highest_grades(first: Case, second: Case) -> Case:
    def highest(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        units = dict.fromkeys([*one, *other])
        return {unit: max(one.get(unit, 0), other.get(unit, 0)) for unit in units}

    relevant = highest(first.relevant, second.relevant)
    evidence = highest(first.evidence, second.evidence)
    return first.model_copy(update={"relevant": relevant, "evidence": evidence})


def _preference_hint(prefer: MergePreference | None, *, only_grades: bool) -> str:
    if prefer:
        return "grades-max resolves only grades. Use --prefer first or last, or correct one."
    options = "first, last, grades-max" if only_grades else "first, last"
    return f"Choose with --prefer {options}, or correct one."
