"""Passages handed to an app in place of what its searches would find, and where that is known.

Which passages are handed out stands in a context variable, so that cases under way at once do not
mix. `misslink.capture.injection` answers retrievers with them, `misslink.capture.tap` stores.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from misslink.text import valid_text
from misslink.types import Passage

if TYPE_CHECKING:
    from langchain_core.documents import Document

__all__ = ["INJECTED", "Injection", "Search", "asked_of", "stepping_aside"]

INJECTED: ContextVar[Injection | None] = ContextVar("misslink_injected", default=None)


@dataclass(frozen=True)
class Search:
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
        searches: Sequence[Search] = (),
    ) -> None:
        self._passages = tuple(passages)
        self._id_key = id_key
        self._searches = tuple(searches)
        self._waiting = list(searches)
        self._lock = threading.Lock()
        self.asked = 0

    def documents(self, query: str = "", name: str = "") -> list[Document]:
        """Answer a retriever; the documents are new each time, as an app may write into them."""
        return [self._document(passage) for passage in self._found(query, name)]

    def search(self, method: str, query: str = "", name: str = "") -> list[Any]:
        """Answer a search method of a vector store, with scores where it gives scores.

        A passage without a score has that of the place before it, or of the next that has one;
        where none has any, it is as near as can be: a relevance of 1, a distance of 0.
        """
        passages = self._found(query, name)
        found = [self._document(passage) for passage in passages]
        if "_with_" not in method:
            return found
        known = [passage.score for passage in passages]
        nearest = 1.0 if "relevance" in method else 0.0
        score = next((one for one in known if one is not None), nearest)
        scores = [score := score if one is None else one for one in known]
        return list(zip(found, scores, strict=True))

    def _found(self, query: str, name: str) -> tuple[Passage, ...]:
        with self._lock:
            self.asked += 1
            search = self._next(valid_text(query), name)
            if search is None:
                return self._passages
            if search in self._waiting:
                self._waiting.remove(search)
            return search.passages

    def _next(self, query: str, name: str) -> Search | None:
        """The search that is meant: one not made yet before one that was."""
        both = (self._waiting, [one for one in self._searches if one not in self._waiting])
        for searches in both:
            for one in searches:
                if (one.query, one.name) == (query, name):
                    return one
        for searches in both:
            for one in searches:
                if one.query == query:
                    return one
        waiting = self._waiting
        return next((one for one in waiting if one.name == name), waiting[0] if waiting else None)

    def _document(self, passage: Passage) -> Document:
        from langchain_core.documents import Document

        metadata: dict[str, Any] = copy.deepcopy(dict(passage.metadata))
        if self._id_key is not None:
            metadata.setdefault(self._id_key, passage.id)
        return Document(page_content=passage.text, id=passage.id, metadata=metadata)


@contextmanager
def stepping_aside() -> Iterator[None]:
    """Let searches through that are not for passages."""
    token = INJECTED.set(None)
    try:
        yield
    finally:
        INJECTED.reset(token)


def asked_of(
    store: Any, method: str, arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> tuple[str, str]:
    """What a vector store's search is for, and its name, as a `Search` and a trace have them."""
    query = arguments[0] if arguments else keywords.get("query", "")
    return query if isinstance(query, str) else "(a vector)", f"{type(store).__name__}.{method}"
