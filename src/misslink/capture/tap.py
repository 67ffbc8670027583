"""Vector stores overheard while a case runs.

LangChain reports retrievers, not vector stores: neither the score a passage was ranked by nor a
search that the app makes without a retriever is in any event. So the search methods of every
vector store class are wrapped while at least one case runs, and put back after the last; code that
runs outside of a case passes straight through. Where passages are injected, the store is not asked.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any

from langchain_core.vectorstores import VectorStore

from misslink.capture.handing import INJECTED, asked_of, stepping_aside
from misslink.capture.recorder import CURRENT, for_examples
from misslink.capture.wrapping import Wrapping

__all__ = ["listening"]

_SEARCHES = (
    "similarity_search",
    "similarity_search_with_score",
    "similarity_search_with_relevance_scores",
    "similarity_search_by_vector",
    "max_marginal_relevance_search",
)
_METHODS = (*_SEARCHES, *(f"a{name}" for name in _SEARCHES))


def listening() -> AbstractContextManager[None]:
    """Overhear every vector store class there is, until the last that listens is done."""
    return _STORES.in_place()


def _wrap(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    is_async = inspect.iscoroutinefunction(original)
    return _wrap_async(original, name) if is_async else _wrap_sync(original, name)


def _wrap_async(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(original)
    async def asearch(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder, injection = CURRENT.get(), INJECTED.get()
        if recorder is None and injection is None:
            return await original(self, *args, **kwargs)
        if for_examples(sys._getframe(1)):  # noqa: SLF001 - only its caller tells what it is for
            injection = None
        call = recorder.begin_store_search(self, name, args, kwargs) if recorder else None
        found: Any = ()
        try:
            if injection is not None:
                found = injection.search(name, *asked_of(self, name, args, kwargs))
            else:
                with stepping_aside():
                    found = await original(self, *args, **kwargs)
        finally:
            if recorder is not None:
                recorder.end_store_search(call, found)
        return found

    return asearch


def _wrap_sync(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(original)
    def search(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder, injection = CURRENT.get(), INJECTED.get()
        if recorder is None and injection is None:
            return original(self, *args, **kwargs)
        if for_examples(sys._getframe(1)):  # noqa: SLF001 - only its caller tells what it is for
            injection = None
        call = recorder.begin_store_search(self, name, args, kwargs) if recorder else None
        found: Any = ()
        try:
            if injection is not None:
                found = injection.search(name, *asked_of(self, name, args, kwargs))
            else:
                with stepping_aside():
                    found = original(self, *args, **kwargs)
        finally:
            if recorder is not None:
                recorder.end_store_search(call, found)
        return found

    return search


_STORES = Wrapping(VectorStore, _METHODS, _wrap)
