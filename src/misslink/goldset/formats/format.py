"""What a format of gold sets is, and what comes of bringing one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from misslink.errors import InputError
from misslink.files.goldset import GoldSet
from misslink.files.jsonl import parse
from misslink.registry import Registry
from misslink.types import Case, Trace

__all__ = ["Brought", "Collected", "Format", "Options", "formats"]

formats = Registry(
    "gold set format", ("misslink.goldset.formats",), "misslink.goldset_formats", ("auto",)
)


@dataclass(frozen=True)
class Options:
    """What may be said of a source or a target beside its path.

    Parameters
    ----------
    qrels : Path or None
        Of formats that keep judgements apart.
    split : str or None
        Of formats that have several.
    columns : mapping of str to str
        Field to column, of formats with columns of any name.
    corpus : Path or None
        The passages, of formats that want them beside the questions.
    overwrite : bool
        Whether files that are there may be replaced.
    read : sequence of Path
        Files that are never replaced: what is taken out is read from them.
    """

    qrels: Path | None = None
    split: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    corpus: Path | None = None
    overwrite: bool = False
    read: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Brought:
    """What another tool's gold set holds.

    Parameters
    ----------
    cases : sequence of Case
    traces : sequence of Trace
        Of formats that hold what an app did.
    left_out : mapping of str to int
        What could not be brought, and how often.
    notes : sequence of str
    """

    cases: tuple[Case, ...]
    traces: tuple[Trace, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Format(Protocol):
    """A format of gold sets; a class with these methods is registered under its name."""

    title: str

    def is_it(self, source: Path, row: Mapping[str, Any] | None, /) -> bool:
        """Whether a folder, or a file by its first row (None: it has none), is of this format."""
        ...

    def bring(self, source: Path, options: Options, /) -> Brought:
        """Read a source; InputError names the file and the line of what is wrong."""
        ...

    def take_out(self, gold: GoldSet, target: Path, options: Options, /) -> dict[str, int]:
        """Write a gold set and return what the format could not hold, and of how many cases."""
        ...


class Collected:
    """Cases and traces of one source, each id once.

    Parameters
    ----------
    path : Path
        What messages name.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left_out: Counter[str] = Counter()
        self._cases: dict[str, Case] = {}
        self._lines: dict[str, int | None] = {}
        self._traces: dict[str, Trace] = {}

    def add(
        self, data: Mapping[str, Any], line: int | None, trace: Mapping[str, Any] | None = None
    ) -> Case | None:
        """Add a case by its fields, and what an app did for it.

        Returns
        -------
        Case or None
            None where the source gives no ids and the question is there already.

        Raises
        ------
        InputError
            A field is wrong, or an id is used twice.
        """
        given = {name: value for name, value in data.items() if value not in (None, "", [], {})}
        case = parse(Case, given, self.path, line)
        if case.id in self._cases:
            if "id" not in given:
                self.left_out["questions that stand there twice"] += 1
                return None
            first = self._lines[case.id]
            where = "" if first is None else f" (first on line {first})"
            raise InputError(
                f"the id '{case.id}' is used twice{where}; ids name one case each",
                path=self.path,
                line=line,
                field="id",
            )
        self._cases[case.id] = case
        self._lines[case.id] = line
        if trace:
            self._traces[case.id] = parse(Trace, {"case_id": case.id, **trace}, self.path, line)
        return case

    def brought(self, *notes: str) -> Brought:
        """All of it.

        Raises
        ------
        InputError
            There is no case.
        """
        if not self._cases:
            told = ", ".join(f"{count:,} {why}" for why, count in self.left_out.items())
            raise InputError(f"there is no question in it{told and f' ({told})'}", path=self.path)
        return Brought(
            tuple(self._cases.values()), tuple(self._traces.values()), dict(self.left_out), notes
        )
