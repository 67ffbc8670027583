"""Gold sets: questions with what a good answer needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from misslink.errors import InputError, did_you_mean
from misslink.files.jsonl import as_items, parse, read_objects
from misslink.types import Case

__all__ = ["GoldSet", "read_goldset"]


@dataclass(frozen=True)
class GoldSet:
    """Cases, and where each of them stands.

    Parameters
    ----------
    cases : sequence of Case
    name : str
        The file, or 'given in Python'.
    lines : mapping of str to int
        Case id to line of the file.
    """

    cases: tuple[Case, ...]
    name: str
    lines: Mapping[str, int] = field(default_factory=dict)

    def error(self, case_id: str, field: str, problem: str) -> InputError:
        """Return an error that names the file, the line and the field of a case."""
        return InputError(problem, path=self.name, line=self.lines.get(case_id), field=field)

    def only(self, ids: Iterable[str]) -> GoldSet:
        """Return the gold set of these cases alone, in its own order.

        Raises
        ------
        InputError
            It holds no case of one of them.
        """
        known = {case.id for case in self.cases}
        wanted = set(ids)
        for unknown in sorted(wanted - known):
            hint = did_you_mean(unknown, known)
            problem = f"there is no case with the id '{unknown}'; {hint or 'give one of its ids'}"
            raise InputError(problem, path=self.name)
        return replace(self, cases=tuple(case for case in self.cases if case.id in wanted))


def read_goldset(source: str | Path | Iterable[Case | Mapping[str, Any]]) -> GoldSet:
    """Read a gold set.

    Parameters
    ----------
    source : path, or iterable of Case or mapping
        A file holds one JSON object a line, or one JSON array.

    Raises
    ------
    InputError
        A line is not JSON, lacks its question, names an unknown field or repeats an id; or there
        is no case at all.
    """
    if isinstance(source, str | Path):
        name = str(source)
        items: Iterable[tuple[int | None, Any]] = read_objects(Path(source))
    else:
        name = "the gold set"
        items = ((None, item) for item in as_items(source, name))
    cases: dict[str, Case] = {}
    lines: dict[str, int] = {}
    for line, item in items:
        case = item if isinstance(item, Case) else parse(Case, item, name, line)
        if case.id in cases:
            first = f" (first on line {lines[case.id]})" if case.id in lines else ""
            named = isinstance(item, Case) or item.get("id") is not None
            problem = (
                f"the id '{case.id}' is used twice{first}; ids name one case each"
                if named
                else f"this question stands twice{first}; drop one, or give each an id"
            )
            field = "id" if named else "question"
            raise InputError(problem, path=name, line=line, field=field)
        cases[case.id] = case
        if line is not None:
            lines[case.id] = line
    if not cases:
        raise InputError("there is no case in it", path=name)
    return GoldSet(tuple(cases.values()), name, lines)
