"""Qrels and runs as tables: which column is which, and what may stand in each."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from misslink.errors import InputError
from misslink.files.numbers import shortened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "AT_ONCE",
    "LARGEST_GRADE",
    "Batch",
    "Columns",
    "Purpose",
    "Table",
    "as_numbers",
    "as_text",
    "columns_of",
    "has_header",
]

Purpose = Literal["qrels", "run"]
Batch = tuple[Any, Any, "NDArray[np.float64] | None"]

AT_ONCE = 1 << 18  # rows of a batch
LARGEST_GRADE = float((1 << 53) - 1)  # no other whole number is read as the float of one up to it
_QUERY = ("query_id", "qid", "q_id", "topic_id", "case_id", "queryid", "topic", "query")
_DOCUMENT = (
    *("doc_id", "docno", "docid", "pid", "passage_id", "corpus_id", "document_id", "did"),
    *("doc", "document", "passage"),
)
_GRADE = ("relevance", "grade", "label", "rel", "qrel")
_SCORE = ("score", "sim", "similarity")
_RANK = ("rank", "position")


@dataclass(frozen=True)
class Columns:
    """Which column is which, by the names in use.

    Parameters
    ----------
    query, document : str
    number : str or None
        Grades of qrels, scores or ranks of a run. None: a run in the order of its rows.
    kind : {'grade', 'score', 'rank', 'order'}
    """

    query: str
    document: str
    number: str | None
    kind: Literal["grade", "score", "rank", "order"]

    @property
    def names(self) -> list[str]:
        """Those that are read."""
        return [self.query, self.document, *([self.number] if self.number else [])]


@dataclass(frozen=True)
class Table:
    """A qrels or run, one row a judged or retrieved document.

    Parameters
    ----------
    name : str
        The file, or 'the run'.
    kind : {'grade', 'score', 'rank', 'order'}
        What the number of a row is.
    batches : callable
        Yields the rows anew at each call, in order: query ids and document ids as arrow arrays of
        text, and the numbers (None in a run in the order of its rows).
    line : callable
        Line of the file for a row as it was given, from 0; None where it has no lines.
    given : callable
        Of a row in the order of `batches` the row as it was given.
    """

    name: str
    kind: Literal["grade", "score", "rank", "order"]
    batches: Callable[[], Iterator[Batch]]
    line: Callable[[int], int | None]
    given: Callable[[int], int] = int

    def error(self, row: int | None, problem: str) -> InputError:
        """Return an error that names the file and the line of a row."""
        place = None if row is None else self.given(row)
        line = None if place is None else self.line(place)
        if place is not None and line is None:
            problem = f"row {place + 1}: {problem}"
        return InputError(problem, path=self.name, line=line)


def columns_of(header: Sequence[object], purpose: Purpose, name: str) -> Columns:
    """Find the columns by their names, in any case, hyphens and blanks as underscores.

    Raises
    ------
    InputError
        One that is needed is not there, or qrels were given as a run or the other way round.
    """
    written = [re.sub(r"[\s-]+", "_", str(own).strip().lower()) for own in header]
    known = {name: str(own) for name, own in zip(written, header, strict=True)}
    used = {*_QUERY, *_DOCUMENT, *_GRADE, *_SCORE, *_RANK}
    if twice := [own for own in written if own in used and written.count(own) > 1]:
        raise InputError(f"two columns are called '{known[twice[0]]}'; keep one", path=name)

    def first(names: Iterable[str]) -> str | None:
        return next((known[each] for each in names if each in known), None)

    query, document = first(_QUERY), first(_DOCUMENT)
    grade, score, rank = first(_GRADE), first(_SCORE), first(_RANK)
    listed = ", ".join(map(str, header)) or "none"
    for what, found, names in (("query", query, _QUERY), ("document", document, _DOCUMENT)):
        if found is None:
            raise InputError(
                f"no column holds the {what} ids (call it {names[0]}); it has: {listed}", path=name
            )
    if purpose == "qrels":
        if grade is None and rank is not None:
            raise InputError(
                f"this is a run (it has the column '{rank}' and no grades); give it as the run, "
                "and here the qrels",
                path=name,
            )
        grade = grade or score  # BEIR calls its grades so
        if grade is None:
            raise InputError(
                f"no column holds the grades (call it {_GRADE[0]}); it has: {listed}", path=name
            )
        return Columns(str(query), str(document), grade, "grade")
    if score is None and rank is None and grade is not None:
        raise InputError(
            f"these are qrels (they have the column '{grade}' and neither score nor rank); give "
            "them as qrels, and here the run",
            path=name,
        )
    if score is not None:
        return Columns(str(query), str(document), score, "score")
    kind: Literal["rank", "order"] = "order" if rank is None else "rank"
    return Columns(str(query), str(document), rank, kind)


def has_header(line: str) -> bool:
    """Whether a line names the columns of a table."""
    fields = {re.sub(r"[\s-]+", "_", own.strip(' "').lower()) for own in re.split(r"[\t,;]", line)}
    return bool(fields & set(_QUERY)) and bool(fields & set(_DOCUMENT))


def as_text(given: Any, table: Table, row: int, column: str) -> Any:
    """Ids as an arrow array of text; whole numbers are written out.

    Raises
    ------
    InputError
        An id is missing or empty, or is no text and no whole number.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    if pa.types.is_dictionary(given.type):
        given = given.dictionary_decode()
    if given.null_count:
        missing = pc.index(given.is_null(), True).as_py()
        raise table.error(row + missing, f"the column '{column}' is empty here; give an id")
    if pa.types.is_floating(given.type):  # whole numbers, once something beside them was missing
        try:
            given = given.cast(pa.int64())
        except pa.ArrowInvalid:
            raise table.error(None, f"the ids in '{column}' are no whole numbers") from None
    if not pa.types.is_large_string(given.type):
        try:
            given = given.cast(pa.large_string())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise table.error(None, f"the column '{column}' holds no ids of text") from None
    if not len(given):
        return given
    ends = np.frombuffer(given.buffers()[1], dtype=np.int64)  # where each text ends in the buffer
    ends = ends[given.offset : given.offset + len(given) + 1]
    empty = ends[1:] == ends[:-1]
    if empty.any():
        place = row + int(np.argmax(empty))
        raise table.error(place, f"the column '{column}' is empty here; give an id")
    return given


def as_numbers(given: Any, table: Table, row: int, columns: Columns) -> NDArray[np.float64]:
    """Finite numbers, and whole ones where they are grades; no grade or rank from 2^53 up.

    Raises
    ------
    InputError
        One is not.
    """
    import numpy as np

    try:
        raw = given.to_numpy(zero_copy_only=False) if hasattr(given, "type") else given.to_numpy()
        values = np.asarray(raw, dtype=np.float64)
    except OverflowError:  # a whole number of hundreds of digits
        at, value = next((at, each) for at, each in enumerate(raw) if not _is_a_float(each))
        raise table.error(row + at, _beyond(columns.kind, value)) from None
    except (TypeError, ValueError) as problem:
        raise table.error(
            None, f"the column '{columns.number}' holds something that is no number ({problem})"
        ) from None
    good = np.isfinite(values)
    if columns.kind == "grade":
        good &= values == np.rint(values)
    if columns.kind != "score":  # above it two ranks or grades would silently be one
        good &= np.abs(values) <= LARGEST_GRADE
    if not good.all():
        at = int(np.argmin(good))
        if np.isfinite(values[at]) and values[at] == np.rint(values[at]):
            raise table.error(row + at, _beyond(columns.kind, raw[at]))
        what = "whole number" if np.isfinite(values[at]) else "finite number"
        if what[0] == "w" and str(columns.number).strip().lower() in _SCORE:
            raise table.error(
                row + at,
                f"this looks like a run: its '{columns.number}' is {values[at]:g} here, and grades "
                "are whole numbers; give it as the run, and here the qrels",
            )
        raise table.error(row + at, f"the {columns.kind} {values[at]:g} is no {what}")
    return values


def _beyond(kind: str, value: object) -> str:
    told = shortened(value.item() if hasattr(value, "item") else value)
    if kind == "score":
        return f"the {kind} {told} is no finite number"
    return f"the {kind} {told} is too large; {kind}s go up to {LARGEST_GRADE:.0f}"


def _is_a_float(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except OverflowError:
        return False
    except (TypeError, ValueError):
        return True  # what else is wrong with it is told once this is put right
    return True
