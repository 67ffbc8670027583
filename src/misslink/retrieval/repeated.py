"""What stands twice in a run or in qrels that came as JSON: told with its query, or kept once."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.frames import Purpose
from misslink.files.jsonl import as_items, read_objects
from misslink.files.traces import read_traces
from misslink.retrieval.given_runs import Dedupe
from misslink.text import content_id
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
    is_file = isinstance(source, str | Path)
    if not is_file:
        source = as_items(source, "the traces")
    try:
        return read_traces(source)
    except InputError as problem:
        if problem.field != "retrieved":
            raise
        path = str(source) if is_file else "the traces"
        rows = read_objects(Path(source)) if is_file else ((None, item) for item in source)
        changed: list[Any] = []
        lines: dict[str, int | None] = {}
        for line, item in rows:
            once, twice = _once(item)
            if twice is not None and dedupe is None:
                raise InputError(
                    f"query '{_case(item)}' has the passage '{twice}' twice; a ranking names a "
                    "passage once (--dedupe first keeps the first)",
                    path=path,
                    line=line,
                    field="retrieved",
                ) from None
            if (case := _case(item)) in lines:
                raise InputError(
                    f"the case '{case}' has two traces; keep one",
                    path=path,
                    line=line,
                    field="case_id",
                ) from None
            lines[case] = line
            try:
                changed += read_traces([once]).values()
            except InputError as other:
                raise InputError(other.problem, path=path, line=line, field=other.field) from None
        return read_traces(changed)


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


def _case(item: Any) -> str:
    return item.case_id if isinstance(item, Trace) else str(item.get("case_id"))


def _once(item: Any) -> tuple[Any, str | None]:
    """A trace that lists every passage where it comes first, and the first one listed twice."""
    if isinstance(item, Trace) or not isinstance(item, Mapping):
        return item, None
    listed = item.get("retrieved")
    if not isinstance(listed, list | tuple):
        return item, None
    passages = list(listed)
    if all(isinstance(each, dict) and isinstance(each.get("rank"), int) for each in passages):
        passages.sort(key=lambda each: each["rank"])
    first: dict[str, Any] = {}
    twice = None
    for at, passage in enumerate(passages):
        name = _name(passage)
        if name is None:
            name = f"\0{at}"  # malformed, which is told by who reads it
        elif name in first:
            twice = name if twice is None else twice
        first.setdefault(name, passage)
    return {**item, "retrieved": list(first.values())}, twice


def _name(passage: Any) -> str | None:
    """The id of a passage as `read_traces` gives it: its own, or that of its text."""
    if isinstance(passage, Mapping):
        own = passage.get("id")
        text = passage.get("text", passage.get("page_content"))
        if own is None or own == "":
            return content_id(text) if isinstance(text, str) else None
    else:
        own = passage
    return str(own) if isinstance(own, str | int) and not isinstance(own, bool) else None
