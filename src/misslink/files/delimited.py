"""Records of CSV and TSV with their lines: what separates them, and where each of them stands."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from misslink.errors import InputError

__all__ = ["delimiter_of", "records"]

_DELIMITERS = ",;\t"
# Characters of one field, such as an answer; the csv module allows 131,072.
_LONGEST = 10_000_000
# One at a time out of the text: an `io.StringIO` would hold four bytes of each character.
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")

Record = tuple[int, list[str]]


def delimiter_of(text: str) -> str:
    r"""Return what separates the fields: comma, semicolon or tab, whichever the names have most.

    Examples
    --------
    >>> delimiter_of("query_id;doc_id;score, in all\nq,1;d,1;0")
    ';'
    """
    names = next((line for line in _lines(text) if line.strip()), "")
    return max(_DELIMITERS, key=names.count)


def records(text: str, path: Path) -> Iterator[Record]:
    """Yield the fields of each record, the names first, with the line on which it begins.

    Empty lines are passed over; a quoted field may span lines. Nothing where there is no record.

    Parameters
    ----------
    text : str
    path : Path
        For messages.

    Raises
    ------
    InputError
        A quotation mark is not closed, or something stands behind a closed one; with the line.
    """
    before = csv.field_size_limit(_LONGEST)
    line = 1
    try:
        reader = csv.reader(_lines(text), delimiter=delimiter_of(text), strict=True)
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as problem:
        raise InputError(
            f"this is no CSV ({problem}); quote texts in full", path=path, line=line
        ) from None
    finally:
        csv.field_size_limit(before)


def _lines(text: str) -> Iterator[str]:
    """Each line with its end, as a file opened with ``newline=""`` yields them."""
    return (found[0] for found in _LINE.finditer(text))
