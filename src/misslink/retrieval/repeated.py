"""What stands twice in a run or in qrels that came as JSON: told with its query, or kept once."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.tables import Purpose
from misslink.files.traces import ListedTwiceError, read_traces
from misslink.retrieval.given_runs import Dedupe
from misslink.types import Trace

__all__ = ["Pairs", "once_each", "traces_of", "whole_number"]


class Pairs(dict[str, Any]):
    """An object of JSON that names a field twice, of which a dict would keep the last.

    Parameters
    ----------
    pairs : list of pairs
        All of it, in order.
    """

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs

    @classmethod
    def of(cls, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """A plain dict where every field stands once; for ``json.loads(object_pairs_hook=...)``."""
        plain = dict(pairs)
        return plain if len(plain) == len(pairs) else cls(pairs)

    def repeated(self) -> str:
        """The first field that stands a second time."""
        seen: set[str] = set()
        for field, _ in self.pairs:
            if field in seen:
                return field
            seen.add(field)
        raise ValueError("no field stands twice")


def whole_number(digits: str) -> int | float:
    """A whole number of JSON, as infinite where Python reads none of so many digits."""
    most = sys.get_int_max_str_digits()
    if most and len(digits) > most:
        return float("-inf" if digits.startswith("-") else "inf")
    return int(digits)


def once_each(
    given: Mapping[str, Any], purpose: Purpose, path: Path, dedupe: Dedupe
) -> Mapping[str, Any]:
    """Qrels or a run from JSON, in which every query and document stands once.

    Parameters
    ----------
    given : mapping
        Read with `Pairs.of`.
    purpose : {'qrels', 'run'}
    path : Path
        For messages.
    dedupe : {'first'} or None
        Whether of a document that a run scores twice the higher score counts, or it is an error.

    Raises
    ------
    InputError
        A query stands twice, or a document does.
    """
    if isinstance(given, Pairs):
        raise InputError(f"the query '{given.repeated()}' stands twice; keep one", path=path)
    found = dict(given)
    for query, documents in given.items():
        if not isinstance(documents, Pairs):
            continue
        document = documents.repeated()
        if purpose == "qrels":
            raise InputError(
                f"the document '{document}' is judged twice for query '{query}'; keep one",
                path=path,
            )
        if dedupe is None:
            raise InputError(
                f"query '{query}' has the document '{document}' twice; a ranking names a document "
                "once (dedupe 'first' keeps the first)",
                path=path,
            )
        found[query] = _best(documents.pairs)
    return found


def traces_of(source: Any, dedupe: Dedupe) -> dict[str, Trace]:
    """Read traces as `misslink.files.traces.read_traces`; of a passage listed twice keep the first.

    Parameters
    ----------
    source : path, or iterable of Trace or mapping
    dedupe : {'first'} or None
        None: a passage that is listed twice is an error.

    Raises
    ------
    InputError
        As `read_traces`; a passage that is listed twice is told with its query.
    """
    try:
        return read_traces(source, dedupe=dedupe)
    except ListedTwiceError as problem:
        raise InputError(
            f"{problem.problem} (--dedupe first keeps the first)",
            path=problem.path,
            line=problem.line,
            field=problem.field,
        ) from None


def _best(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The higher score of each document; what is no number is left for who reads scores."""
    best: dict[str, Any] = {}
    for document, score in pairs:
        before = best.get(document)
        if (
            not isinstance(score, int | float)
            or document not in best
            or (isinstance(before, int | float) and score > before)
        ):
            best[document] = score
    return best
