"""Judgements (qrels) as columns: which documents of which query were judged, and how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misslink.errors import InputError
from misslink.files.numbers import shortened
from misslink.files.tables import LARGEST_GRADE, Table
from misslink.retrieval.keys import Keys, keys_of, pair_keys
from misslink.retrieval.segments import firsts_of, offsets

__all__ = ["Judgements", "refuse_other_ids"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Judgements:
    """Qrels, one entry a judged document, those of a query together.

    A grade from the relevance level up is relevant, one from 0 to below it is judged and not
    relevant. A negative grade stands for a document that was pooled and never judged: it counts
    as unjudged, as trec_eval has it.

    Parameters
    ----------
    name : str
        What they are called in messages.
    start : array of int, shape (queries + 1,)
        Where the entries of each query start.
    grade : array of int, shape (entries,)
    given : mapping or None
        Query to document to grade, where they came so.
    columns : pair of arrow arrays or None
        The queries' ids and the entries' document ids, where they came so.
    """

    name: str
    start: Ints
    grade: Ints
    given: Mapping[str, Mapping[str, int]] | None = None
    columns: tuple[Any, Any] | None = None

    @classmethod
    def of_mapping(cls, source: Mapping[Any, Any], name: str = "the qrels") -> Judgements:
        """From ``{query: {document: grade}}``; a list or set of documents means grade 1.

        Raises
        ------
        InputError
            There is no query, a grade is no whole number or too large, or a document's id is no
            text and no whole number.
        """
        if not source:
            raise InputError("there is no query in it", path=name)
        given = {
            query if type(query) is str else str(query): _graded(documents, query, name)
            for query, documents in source.items()
        }
        if len(given) < len(source):
            raise InputError("two of its queries have the same id", path=name)
        lengths = np.fromiter(map(len, given.values()), np.int64, len(given))
        listed = list(chain.from_iterable(documents.values() for documents in given.values()))
        try:
            grades = np.array(listed, dtype=np.float64)
            whole = (np.abs(grades) <= LARGEST_GRADE) & (grades == np.rint(grades))
        except (TypeError, ValueError, OverflowError):
            whole = np.zeros(1, dtype=np.bool_)
        if not whole.all() or str in set(map(type, listed)):
            raise _no_grade(given, name)
        return cls(name, offsets(lengths), grades.astype(np.int64), given=given)

    @classmethod
    def of_table(cls, table: Table) -> Judgements:
        """From a table, its rows in any order.

        Raises
        ------
        InputError
            A document is judged twice for a query.
        """
        import pyarrow as pa

        batches = list(table.batches())
        asked = pa.chunked_array([batch[0] for batch in batches]).combine_chunks()
        documents = pa.chunked_array([batch[1] for batch in batches]).combine_chunks()
        grades = np.concatenate([batch[2] for batch in batches if batch[2] is not None])
        first = firsts_of(asked)
        # Whether a query comes again is seen from the few rows at which one begins.
        encoded = asked.take(pa.array(first)).dictionary_encode()
        ids, order = encoded.dictionary, None
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        query = np.repeat(codes, np.diff(first, append=len(asked)))
        if len(ids) < len(first):
            order = np.argsort(query, kind="stable")
            query, documents, grades = query[order], documents.take(pa.array(order)), grades[order]
        start = offsets(np.bincount(query, minlength=len(ids)))
        made = cls(table.name, start, grades.astype(np.int64), columns=(ids, documents))
        _once_each(made, query, table, order)
        return made

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.start) - 1

    @cached_property
    def queries(self) -> list[str]:
        """Their ids, in the order given."""
        if self.given is not None:
            return list(self.given)
        names: list[str] = self.ids.to_pylist()
        return names

    @cached_property
    def place(self) -> dict[str, int]:
        """Query id to its number from 0."""
        return {query: number for number, query in enumerate(self.queries)}

    @cached_property
    def by_query(self) -> Mapping[str, Mapping[str, int]]:
        """Query to document to grade."""
        if self.given is not None:
            return self.given
        pairs = list(zip(self.documents.to_pylist(), self.grade.tolist(), strict=True))
        edges = self.start.tolist()
        return {
            query: dict(pairs[edges[number] : edges[number + 1]])
            for number, query in enumerate(self.queries)
        }

    @property
    def ids(self) -> Any:
        """The queries as an arrow array."""
        return self._arrow[0]

    @property
    def documents(self) -> Any:
        """The documents, one an entry, as an arrow array."""
        return self._arrow[1]

    @cached_property
    def document_keys(self) -> Keys:
        """A number of 64 bits for each entry: of its query and document together."""
        query = np.repeat(np.arange(len(self)), np.diff(self.start))
        return pair_keys(query, keys_of(self.documents))

    def find(self, ids: Any) -> Ints:
        """Number of each query, -1 for one that was not judged.

        Parameters
        ----------
        ids : pyarrow.LargeStringArray
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        order, keys = self._query_keys
        wanted = keys_of(ids)
        found: Ints = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        known = keys[found] == wanted
        found = np.where(known, order[found], -1)
        same = pc.equal(ids.filter(pa.array(known)), self.ids.take(pa.array(found[known])))
        if len(same) and not pc.all(same).as_py():  # two ids with one key
            return np.array([self.place.get(one, -1) for one in ids.to_pylist()], dtype=np.int64)
        return found

    @cached_property
    def _query_keys(self) -> tuple[Ints, Keys]:
        keys = keys_of(self.ids)
        order = np.argsort(keys, kind="stable")
        return order, keys[order]

    @cached_property
    def _arrow(self) -> tuple[Any, Any]:
        if self.columns is not None:
            return self.columns
        import pyarrow as pa

        listed = chain.from_iterable(self.by_query.values())
        return (
            pa.array(self.queries, pa.large_string()),
            pa.array(listed, pa.large_string(), size=len(self.grade)),
        )


def _graded(documents: Any, query: object, name: str) -> Mapping[str, int]:
    """Document to grade, ids as text."""
    if isinstance(documents, str):
        return {documents: 1}
    if not isinstance(documents, Mapping):
        if not isinstance(documents, Iterable):
            raise InputError(
                f"query '{query}' has {documents!r}, neither grades by document nor a list of "
                "relevant documents",
                path=name,
            )
        listed = list(documents)
        refuse_other_ids(listed, query, name, "a dict of documents with grades")
        documents = dict.fromkeys(listed, 1)
    if set(map(type, documents)) <= {str}:
        return dict(documents) if type(documents) is not dict else documents
    refuse_other_ids(documents, query, name, "a dict of documents with grades")
    as_text = {str(document): grade for document, grade in documents.items()}
    if len(as_text) < len(documents):
        raise InputError(f"query '{query}' has two documents of the same id", path=name)
    return as_text


def refuse_other_ids(ids: Iterable[object], query: object, name: str, instead: str) -> None:
    """Refuse what is no id, such as a pair, an object or nothing.

    Parameters
    ----------
    ids : iterable
    query : object
        Whose they are.
    name : str
        What the qrels or the run are called in messages.
    instead : str
        What may be given in place of a list of ids.

    Raises
    ------
    InputError
        One is no text and no whole number.
    """
    for one in ids:
        if isinstance(one, bool) or not isinstance(one, str | Integral):
            raise InputError(
                f"query '{query}' lists {shortened(one)}, which is no document's id; give a list "
                f"of ids (text or whole numbers), or {instead}",
                path=name,
            )


def _no_grade(given: Mapping[str, Mapping[str, Any]], name: str) -> InputError:
    for query, documents in given.items():
        for document, grade in documents.items():
            try:
                # By itself, not as a float: a whole number may have hundreds of digits.
                whole = grade == round(grade)
            except (TypeError, ValueError, OverflowError):
                whole = False
            if whole and abs(grade) > LARGEST_GRADE:
                return InputError(
                    f"the grade {shortened(grade)} of query '{query}', document '{document}' is "
                    f"too large; grades go up to {LARGEST_GRADE:.0f}",
                    path=name,
                )
            if isinstance(grade, str) or not whole:
                return InputError(
                    f"the grade {shortened(grade)} of query '{query}', "
                    f"document '{document}' is no whole number; a run is given as the run",
                    path=name,
                )
    return InputError("a grade is no whole number", path=name)


def _once_each(made: Judgements, query: Ints, table: Table, order: Ints | None) -> None:
    """Refuse a document that is judged twice for its query."""
    keys = made.document_keys
    ordered = np.sort(keys)
    if not (ordered[1:] == ordered[:-1]).any():
        return
    by_key = np.argsort(keys, kind="stable")
    equal = np.flatnonzero(keys[by_key][1:] == keys[by_key][:-1])
    for first, second in zip(by_key[equal].tolist(), by_key[equal + 1].tolist(), strict=True):
        document = made.documents[second].as_py()
        if query[first] == query[second] and made.documents[first].as_py() == document:
            row = second if order is None else int(order[second])
            raise table.error(
                row,
                f"the document '{document}' is judged twice for query "
                f"'{made.ids[int(query[second])].as_py()}'; keep one",
            )
