"""Vector stores overheard while a case runs.

LangChain reports retrievers, not vector stores: neither the score a passage was ranked by nor a
search that the app makes without a retriever is in any event. So the search methods of every
vector store class are wrapped while at least one case runs, and put back after the last; code that
runs outside of a case passes straight through.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from langchain_core.vectorstores import VectorStore

from misslink.capture.recorder import CURRENT

__all__ = ["listening"]

_SEARCHES = (
    "similarity_search",
    "similarity_search_with_score",
    "similarity_search_with_relevance_scores",
    "similarity_search_by_vector",
    "max_marginal_relevance_search",
)
_METHODS = (*_SEARCHES, *(f"a{name}" for name in _SEARCHES))


class _Tap:
    """The wrapped methods and how many cases need them; one for the process, as classes are."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.wrapped: dict[tuple[type, str], tuple[Any, Any]] = {}

    def install(self) -> None:
        for owner in _classes(VectorStore):
            for name in _METHODS:
                original = vars(owner).get(name)
                known = (owner, name) in self.wrapped
                if inspect.isfunction(original) and not known:
                    wrapper = _wrap(original, name)
                    setattr(owner, name, wrapper)
                    self.wrapped[owner, name] = original, wrapper

    def remove(self) -> None:
        for (owner, name), (original, wrapper) in self.wrapped.items():
            if vars(owner).get(name) is wrapper:  # else somebody wrapped it again: theirs now
                setattr(owner, name, original)
        self.wrapped.clear()


_TAP = _Tap()


@contextmanager
def listening() -> Iterator[None]:
    """Overhear every vector store class there is, until the last that listens is done."""
    with _TAP.lock:
        _TAP.users += 1
        _TAP.install()
    try:
        yield
    finally:
        with _TAP.lock:
            _TAP.users -= 1
            if not _TAP.users:
                _TAP.remove()


def _classes(root: type) -> Iterator[type]:
    seen = {root}
    waiting = [root]
    while waiting:
        one = waiting.pop()
        yield one
        new: set[type] = set(one.__subclasses__()) - seen
        seen |= new
        waiting += new


def _wrap(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(original):

        @wraps(original)
        async def asearch(self: Any, *args: Any, **kwargs: Any) -> Any:
            recorder = CURRENT.get()
            if recorder is None:
                return await original(self, *args, **kwargs)
            call = recorder.begin_store_search(self, name, args, kwargs)
            found: Any = ()
            try:
                found = await original(self, *args, **kwargs)
            finally:
                recorder.end_store_search(call, found)
            return found

        return asearch

    @wraps(original)
    def search(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder = CURRENT.get()
        if recorder is None:
            return original(self, *args, **kwargs)
        call = recorder.begin_store_search(self, name, args, kwargs)
        found: Any = ()
        try:
            found = original(self, *args, **kwargs)
        finally:
            recorder.end_store_search(call, found)
        return found

    return search
