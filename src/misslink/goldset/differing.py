"""What changed between two versions of a gold set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from misslink.types import Case

__all__ = ["Change", "Differences", "differences", "says_the_same"]

_FIELDS = tuple(name for name in Case.model_fields if name != "id")


@dataclass(frozen=True)
class Change:
    """One field of one case that says something else.

    Parameters
    ----------
    case_id, field : str
    before, after : JSON values
        None, or what is empty, where the field says nothing.
    """

    case_id: str
    field: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Differences:
    """Two versions of a gold set held against each other, by the ids of their cases.

    Parameters
    ----------
    added, removed : tuple of str
        Ids, in the order of the version that has them.
    changed : tuple of Change
        In the order of the first version, then of a case's fields.
    same : int
        Cases that say the same in both.
    renamed : mapping of str to str
        Of what was removed and added: the same content under another id, old to new. They stand
        in `added` and `removed`, too.
    """

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[Change, ...]
    same: int
    renamed: Mapping[str, str]

    def __bool__(self) -> bool:
        """Whether there is any difference."""
        return bool(self.added or self.removed or self.changed)

    @property
    def flipped(self) -> tuple[tuple[str, str, int | None, int | None], ...]:
        """Case, passage or evidence, grade before and after: None where it was not judged."""
        found = []
        for one in self.changed:
            if one.field in {"relevant", "evidence"}:
                for unit in dict.fromkeys([*one.before, *one.after]):
                    grades = one.before.get(unit), one.after.get(unit)
                    if grades[0] != grades[1]:
                        found.append((one.case_id, unit, *grades))
        return tuple(found)


def differences(before: Iterable[Case], after: Iterable[Case]) -> Differences:
    """Compare two versions of a gold set.

    The order of cases, of passages, of alternative sets and of reference answers says nothing.

    Parameters
    ----------
    before, after : iterable of Case
        With unique ids; either may be empty.

    Returns
    -------
    Differences
    """
    old = {case.id: case for case in before}
    new = {case.id: case for case in after}
    changed: list[Change] = []
    same = 0
    for case_id, case in old.items():
        if case_id not in new:
            continue
        fields = [
            Change(case_id, name, was, now)
            for name, was, now in _fields(case, new[case_id])
            if was != now
        ]
        changed += fields
        same += not fields
    added = tuple(case_id for case_id in new if case_id not in old)
    removed = tuple(case_id for case_id in old if case_id not in new)
    by_content = {_content(new[case_id]): case_id for case_id in added}
    renamed = {
        case_id: by_content[_content(old[case_id])]
        for case_id in removed
        if _content(old[case_id]) in by_content
    }
    return Differences(added, removed, tuple(changed), same, renamed)


def says_the_same(one: Case, other: Case) -> bool:
    """Whether two cases say the same, whatever their ids."""
    return all(was == now for _, was, now in _fields(one, other))


def _fields(one: Case, other: Case) -> Iterable[tuple[str, Any, Any]]:
    """Each field with what both say, as JSON, with what has no order sorted."""
    both = _plain(one), _plain(other)
    for name in _FIELDS:
        yield name, both[0][name], both[1][name]


def _plain(case: Case) -> dict[str, Any]:
    found = case.model_dump(mode="json")
    found["references"] = sorted(found["references"])
    found["relevant_any"] = sorted(sorted(ids) for ids in found["relevant_any"])
    return found


def _content(case: Case) -> str:
    """What a case says, as a text that equal cases share."""
    plain = _plain(case)
    return repr(
        [
            sorted(plain[name].items()) if isinstance(plain[name], dict) else plain[name]
            for name in _FIELDS
        ]
    )
