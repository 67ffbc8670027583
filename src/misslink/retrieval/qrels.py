"""Qrels: the judged documents of each query, with their grades."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise, repeat
from numbers import Integral
from typing import Any

import numpy as np

from misslink.errors import InputError
from misslink.io.numbers import shorten_repr
from misslink.io.tables import MAX_GRADE, RetrievalTable
from misslink.retrieval import arrays

_ALTERNATIVE = "a dict of documents with grades"  # to a list of ids


@dataclass(frozen=True, eq=False)
class Qrels:
    """Relevance judgments, one entry per judged document, those of a query together.

    A grade from the relevance level up is relevant, one from 0 to below it is judged and not
    relevant. A negative grade marks a document that was pooled and never judged: it counts as
    unjudged, like in trec_eval.

    Parameters
    ----------
    name : str
        What messages call them.
    queries : sequence of str
        Their ids, in order.
    start : array of int, shape (queries + 1,)
        Where the entries of each query start.
    grade : array of int, shape (entries,)
    source : list of mappings, or arrow array of text
        What they were built from: the grades by document of each query, or the document ids of
        the entries. See `judged` and `documents`.
    """

    name: str
    queries: Sequence[str]
    start: arrays.IntArray
    grade: arrays.IntArray
    source: Any

    @classmethod
    def of_mapping(cls, source: Mapping[Any, Any], name: str = "the qrels") -> Qrels:
        """Build them from ``{query: {document: grade}}``; a list or set means grade 1.

        Raises
        ------
        InputError
            There is no query, a grade is not a whole number or too large, or a document's id is
            neither text nor a whole number.
        """
        if not source:
            raise InputError("it has no queries", path=name)
        queries = text_queries(source, name)
        judged: list[Any] = list(source.values())
        if set(map(type, judged)) != {dict}:
            judged = list(map(_parse_grades, judged, source, repeat(name)))
        try:
            arrays.check_text(list(chain.from_iterable(judged)), name)  # faster than each by itself
        except TypeError:
            ids = zip(judged, queries, strict=True)
            judged = [with_text_ids(each, query, name, _ALTERNATIVE) for each, query in ids]
        lengths = np.fromiter(map(len, judged), np.int64, len(judged))
        listed = list(chain.from_iterable(map(dict.values, judged)))
        try:
            grades = np.array(listed)
            valid = grades.dtype.kind in "biuf" and bool(
                ((np.abs(grades) <= MAX_GRADE) & (grades == np.rint(grades))).all()
            )
        except ValueError:
            valid = False
        if listed and not valid:
            raise _grade_error(zip(queries, judged, strict=True), name)
        start = arrays.segment_offsets(lengths)
        return cls(name, queries, start, grades.astype(np.int64), judged)

    @classmethod
    def of_table(cls, table: RetrievalTable) -> Qrels:
        """Build them from a table, its rows in any order.

        Raises
        ------
        InputError
            A document is judged twice for a query.
        """
        import pyarrow as pa

        batches = list(table.batches())
        query_ids = pa.chunked_array([batch[0] for batch in batches]).combine_chunks()
        documents = pa.chunked_array([batch[1] for batch in batches]).combine_chunks()
        grades = np.concatenate([batch[2] for batch in batches if batch[2] is not None])
        first = arrays.group_starts(query_ids)
        # The few rows at which a query begins tell whether one comes again.
        encoded = query_ids.take(first).dictionary_encode()
        ids, order = encoded.dictionary, None
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        query = np.repeat(codes, np.diff(first, append=len(query_ids)))
        if len(ids) < len(first):
            order = np.argsort(query, kind="stable")
            query, documents, grades = query[order], documents.take(order), grades[order]
        start = arrays.segment_offsets(np.bincount(query, minlength=len(ids)))
        qrels = cls(table.name, ids.to_pylist(), start, grades.astype(np.int64), documents)
        hashed = np.sort(query << arrays.HASH_BITS | qrels.hashes)
        if (hashed[1:] == hashed[:-1]).any():  # or two documents have one hash
            encoded = documents.dictionary_encode()
            pair = query * len(encoded.dictionary) + encoded.indices.to_numpy()
            by_pair = np.argsort(pair, kind="stable")
            repeated = by_pair[1:][np.diff(pair[by_pair]) == 0]
            if len(repeated):
                row = int(repeated.min())
                raise table.error(
                    row if order is None else int(order[row]),
                    f"the document '{documents[row].as_py()}' is judged twice for query "
                    f"'{ids[int(query[row])].as_py()}'; keep one",
                )
        return qrels

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.start) - 1

    @cached_property
    def place(self) -> dict[str, int]:
        """Number of each query, from 0."""
        return dict(zip(self.queries, range(len(self)), strict=True))

    @cached_property
    def by_query(self) -> Mapping[str, Mapping[str, int]]:
        """Query to document to grade."""
        return dict(zip(self.queries, self.judged, strict=True))

    @cached_property
    def judged(self) -> list[dict[str, int]]:
        """The grades by document of each query."""
        if isinstance(self.source, list):
            return self.source
        pairs = list(zip(self.source.to_pylist(), self.grade.tolist(), strict=True))
        return [dict(pairs[start:end]) for start, end in pairwise(self.start.tolist())]

    @cached_property
    def documents(self) -> Any:
        """The document ids of the entries, as an arrow array of text."""
        if isinstance(self.source, list):
            return arrays.as_text_array(chain.from_iterable(self.source), self.name)
        return self.source

    @cached_property
    def hashes(self) -> arrays.IntArray:
        """Those of the documents, see `hash_texts`."""
        return arrays.hash_texts(self.documents)

    def find(self, ids: Sequence[str]) -> arrays.IntArray:
        """Return the number of each query, -1 without judgments."""
        return np.fromiter(map(self.place.get, ids, repeat(-1)), np.int64, len(ids))

    def entries(self, number: arrays.IntArray) -> tuple[arrays.IntArray, arrays.IntArray]:
        """Return the entries of queries with these numbers (-1: none), each with its query's place."""
        judged = np.flatnonzero(number >= 0)
        start = self.start[number[judged]]
        count = self.start[number[judged] + 1] - start
        return np.repeat(judged, count), arrays.segment_indices(start, count)


def text_queries(mapping: Mapping[Any, Any], name: str) -> list[str]:
    """Return the ids of queries as text; an InputError where two are the same."""
    try:
        arrays.check_text(mapping, name)
    except TypeError:
        queries = list(map(str, mapping))
        if len(set(queries)) < len(queries):
            raise InputError("two of its queries have the same id", path=name) from None
        arrays.check_text(queries, name)
        return queries
    return list(mapping)


def _parse_grades(documents: Any, query: object, name: str) -> dict[Any, int]:
    """Document to grade."""
    if isinstance(documents, Mapping):
        return dict(documents)
    if isinstance(documents, str):
        return {documents: 1}
    if not isinstance(documents, Iterable):
        raise InputError(
            f"query '{query}' has {documents!r}, neither grades by document nor a list of "
            "relevant documents",
            path=name,
        )
    # As a list first: what is no id need not be hashable.
    return dict.fromkeys(with_text_ids(list(documents), query, name, _ALTERNATIVE), 1)


def with_text_ids(documents: Any, query: object, name: str, alternative: str) -> Any:
    """Return documents, a list or a mapping, with whole numbers among their ids as text.

    What is no id, such as a pair, an object or None, is rejected; `alternative` is what could be
    given in place of a list of ids.
    """
    try:
        arrays.check_text(documents, name)
    except TypeError:
        documents = _as_text(documents, query, name, alternative)
        arrays.check_text(documents, name)
    return documents


def _as_text(documents: Any, query: object, name: str, alternative: str) -> Any:
    for document in documents:
        if isinstance(document, bool) or not isinstance(document, str | Integral):
            raise InputError(
                f"query '{query}' lists {shorten_repr(document)}, which is not a document id; give "
                f"a list of ids (text or whole numbers), or {alternative}",
                path=name,
            )
    if not isinstance(documents, Mapping):
        return [str(document) for document in documents]
    by_text = {str(document): value for document, value in documents.items()}
    if len(by_text) < len(documents):
        raise InputError(f"query '{query}' has two documents of the same id", path=name)
    return by_text


def _grade_error(by_query: Iterable[tuple[str, Mapping[str, Any]]], name: str) -> InputError:
    not_whole = "not a whole number; give a run as the run"

    def problem(grade: Any) -> str | None:
        if grade != round(grade):  # by itself, not as a float: it may have hundreds of digits
            return not_whole
        too_large = abs(grade) > MAX_GRADE
        return f"too large; grades go up to {MAX_GRADE:.0f}" if too_large else None

    return number_error("grade", by_query, problem, not_whole, name)


def number_error(
    kind: str,
    by_query: Iterable[tuple[str, Mapping[str, Any]]],
    problem: Callable[[Any], str | None],
    unreadable: str,
    name: str,
) -> InputError:
    """Return the error about the first number with a problem; `unreadable`: that of other things."""
    for query, documents in by_query:
        for document, number in documents.items():
            wrong: str | None = unreadable
            if not isinstance(number, str):
                with suppress(TypeError, ValueError, OverflowError):
                    wrong = problem(number)
            if wrong:
                return InputError(
                    f"the {kind} {shorten_repr(number)} of query '{query}', document "
                    f"'{document}' is {wrong}",
                    path=name,
                )
    return InputError(f"a {kind} is {unreadable}", path=name)
