"""Hooks on LangChain vector stores that record searches while a case runs."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import wraps
from itertools import product
from types import FrameType
from typing import Any

from langchain_core.vectorstores import VectorStore

from misslink.capture.context_injection import CURRENT_INJECTION, query_and_name, suspend_injection
from misslink.capture.recorder import CURRENT_RECORDER, is_example_search

MethodWrapper = Callable[[Callable[..., Any], str], Callable[..., Any]]


class MethodPatch:
    """Wrapped methods and how many users need them; one for the process, as classes are.

    Parameters
    ----------
    root : type
        It and every subclass that defines one of the methods itself.
    methods : sequence of str
    wrap : callable
        Takes a method and its name, and returns the wrapper, which must call straight through outside
        of a case.
    """

    def __init__(self, root: type, methods: Sequence[str], wrap: MethodWrapper) -> None:
        self._root = root
        self._methods = tuple(methods)
        self._wrap = wrap
        self._lock = threading.Lock()
        self._users = 0
        self._wrapped: dict[tuple[type, str], tuple[Any, Any]] = {}

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Wrap what there is by now; the last user puts everything back."""
        with self._lock:
            self._users += 1
        try:
            with self._lock:
                for owner, name in product(_subclasses(self._root), self._methods):
                    original = vars(owner).get(name)
                    if inspect.isfunction(original) and (owner, name) not in self._wrapped:
                        wrapper = self._wrap(original, name)
                        setattr(owner, name, wrapper)
                        self._wrapped[owner, name] = original, wrapper
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._restore()

    @property
    def is_in_place(self) -> bool:
        """Whether it has a user."""
        return self._users > 0

    def _restore(self) -> None:
        for (owner, name), (original, wrapper) in self._wrapped.items():
            if vars(owner).get(name) is wrapper:  # else somebody wrapped it again: theirs now
                setattr(owner, name, original)
        self._wrapped.clear()


def _subclasses(root: type) -> set[type]:
    return {root}.union(*map(_subclasses, root.__subclasses__()))


_SEARCHES = (
    "similarity_search",
    "similarity_search_with_score",
    "similarity_search_with_relevance_scores",
    "similarity_search_by_vector",
    "max_marginal_relevance_search",
)
_METHODS = (*_SEARCHES, *(f"a{name}" for name in _SEARCHES))


def record_searches() -> AbstractContextManager[None]:
    """Wrap every vector store class that exists, until the last user is done."""
    return _STORES.in_place()


def is_recording() -> bool:
    """Whether a case is running."""
    return _STORES.is_in_place


@dataclass
class _Search:
    """A search while it runs; the store is asked only where `results` is None."""

    results: Any = None


@contextmanager
def _observed(
    store: Any, name: str, args: tuple[Any, ...], keywords: dict[str, Any], caller: FrameType
) -> Iterator[_Search]:
    """Record a search of the current case, and answer it where passages are injected."""
    recorder, injection, search = CURRENT_RECORDER.get(), CURRENT_INJECTION.get(), _Search()
    if recorder is None and injection is None:
        yield search
        return
    if is_example_search(caller):
        injection = None
    call = recorder.begin_store_search(store, name, args, keywords, caller) if recorder else None
    try:
        if injection is not None:
            search.results = injection.search(name, *query_and_name(store, name, args, keywords))
        with suspend_injection():
            yield search
    finally:
        if recorder is not None:
            recorder.end_store_search(call, search.results or ())


def _wrap_search(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(original):

        @wraps(original)
        async def asearch(self: Any, *args: Any, **kwargs: Any) -> Any:
            # Only its caller tells what a search is for.
            with _observed(self, name, args, kwargs, sys._getframe(1)) as search:  # noqa: SLF001
                if search.results is None:
                    search.results = await original(self, *args, **kwargs)
            return search.results

        return asearch

    @wraps(original)
    def search_store(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _observed(self, name, args, kwargs, sys._getframe(1)) as search:  # noqa: SLF001
            if search.results is None:
                search.results = original(self, *args, **kwargs)
        return search.results

    return search_store


_STORES = MethodPatch(VectorStore, _METHODS, _wrap_search)
