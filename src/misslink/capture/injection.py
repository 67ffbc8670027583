"""Passages injected into an app in place of its search results."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from misslink.text.normalization import valid_text
from misslink.types import VECTOR_QUERY, Passage

if TYPE_CHECKING:
    from langchain_core.documents import Document


CURRENT_INJECTION: ContextVar[Injection | None] = ContextVar("misslink_injected", default=None)


@dataclass(frozen=True)
class InjectedSearch:
    """One of several searches that an app makes for one question, and what it is to find.

    Parameters
    ----------
    query : str
    name : str
        Of the retriever or the vector store, as a trace names it.
    passages : sequence of Passage
        Best first; empty: it finds nothing.
    """

    query: str
    name: str
    passages: tuple[Passage, ...]


class Injection:
    """The passages that an app is handed, and how often it asked for any.

    Parameters
    ----------
    passages : sequence of Passage
        What any search finds, best first. Empty: the app finds nothing.
    id_key : str or None
        The metadata key under which the app's own documents carry their id.
    searches : sequence of Search
        What each of several searches finds instead, in the order in which they were made. A
        search is known by its query and whom it asks, else by its query, else by whom it asks,
        else by its place; asked once more it finds the same. One that is none of them, as of an
        app that this time searches more often, finds `passages`.
    """

    def __init__(
        self,
        passages: Sequence[Passage],
        id_key: str | None = None,
        searches: Sequence[InjectedSearch] = (),
    ) -> None:
        self._passages = tuple(passages)
        self._id_key = id_key
        self._searches = tuple(searches)
        self._waiting = list(searches)
        self._lock = threading.Lock()
        self.asked = 0

    def documents(self, query: str = "", name: str = "") -> list[Document]:
        """Answer a retriever; the documents are new each time, as an app may write into them."""
        return [self._document(passage) for passage in self._search_passages(query, name)]

    def search(self, method: str, query: str = "", name: str = "") -> list[Any]:
        """Answer a search method of a vector store, with scores where it gives scores.

        A passage without a score has that of the place before it, or of the next that has one;
        where none has any, it is as near as can be: a relevance of 1, a distance of 0.
        """
        passages = self._search_passages(query, name)
        documents = [self._document(passage) for passage in passages]
        if "_with_" not in method:
            return documents
        known_scores = [passage.score for passage in passages]
        nearest = 1.0 if "relevance" in method else 0.0
        score = next((score for score in known_scores if score is not None), nearest)
        scores = [
            score := score if known_score is None else known_score for known_score in known_scores
        ]
        return list(zip(documents, scores, strict=True))

    def _search_passages(self, query: str, name: str) -> tuple[Passage, ...]:
        with self._lock:
            self.asked += 1
            search = self._next(valid_text(query), name)
            if search is None:
                return self._passages
            if search in self._waiting:
                self._waiting.remove(search)
            return search.passages

    def _next(self, query: str, name: str) -> InjectedSearch | None:
        """The search that is meant: one not made yet before one that was."""
        both = (self._waiting, [search for search in self._searches if search not in self._waiting])
        for searches in both:
            for search in searches:
                if (search.query, search.name) == (query, name):
                    return search
        for searches in both:
            for search in searches:
                if search.query == query:
                    return search
        waiting = self._waiting
        return next(
            (search for search in waiting if search.name == name), waiting[0] if waiting else None
        )

    def _document(self, passage: Passage) -> Document:
        from langchain_core.documents import Document

        metadata: dict[str, Any] = copy.deepcopy(dict(passage.metadata))
        if self._id_key is not None:
            metadata.setdefault(self._id_key, passage.id)
        return Document(page_content=passage.text, id=passage.id, metadata=metadata)


@contextmanager
def suspend_injection() -> Iterator[None]:
    """Let searches through that are not for passages."""
    token = CURRENT_INJECTION.set(None)
    try:
        yield
    finally:
        CURRENT_INJECTION.reset(token)


def query_and_name(
    store: Any, method: str, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[str, str]:
    """What a vector store's search is for, and its name, as a `Search` and a trace have them."""
    query = arguments[0] if arguments else keywords.get("query", "")
    return query if isinstance(query, str) else VECTOR_QUERY, f"{type(store).__name__}.{method}"
