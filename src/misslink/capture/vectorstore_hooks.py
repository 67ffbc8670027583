"""Hooks on LangChain vector stores that record searches while a case runs."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
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
                self._install()
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._remove()

    def _install(self) -> None:
        for owner in _subclasses(self._root):
            for name in self._methods:
                original = vars(owner).get(name)
                is_wrapped = (owner, name) in self._wrapped
                if inspect.isfunction(original) and not is_wrapped:
                    wrapper = self._wrap(original, name)
                    setattr(owner, name, wrapper)
                    self._wrapped[owner, name] = original, wrapper

    def _remove(self) -> None:
        for (owner, name), (original, wrapper) in self._wrapped.items():
            if vars(owner).get(name) is wrapper:  # else somebody wrapped it again: theirs now
                setattr(owner, name, original)
        self._wrapped.clear()


def _subclasses(root: type) -> Iterator[type]:
    seen = {root}
    waiting = [root]
    while waiting:
        kind = waiting.pop()
        yield kind
        new: set[type] = set(kind.__subclasses__()) - seen
        seen |= new
        waiting += new


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


def _wrap_search(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    is_async = inspect.iscoroutinefunction(original)
    return _wrap_async(original, name) if is_async else _wrap_sync(original, name)


def _wrap_async(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(original)
    async def asearch(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder, injection = CURRENT_RECORDER.get(), CURRENT_INJECTION.get()
        if recorder is None and injection is None:
            return await original(self, *args, **kwargs)
        if is_example_search(sys._getframe(1)):  # noqa: SLF001 - only its caller tells what it is for
            injection = None
        call = recorder.begin_store_search(self, name, args, kwargs) if recorder else None
        results: Any = ()
        try:
            if injection is not None:
                results = injection.search(name, *query_and_name(self, name, args, kwargs))
            else:
                with suspend_injection():
                    results = await original(self, *args, **kwargs)
        finally:
            if recorder is not None:
                recorder.end_store_search(call, results)
        return results

    return asearch


def _wrap_sync(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    @wraps(original)
    def search(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder, injection = CURRENT_RECORDER.get(), CURRENT_INJECTION.get()
        if recorder is None and injection is None:
            return original(self, *args, **kwargs)
        if is_example_search(sys._getframe(1)):  # noqa: SLF001 - only its caller tells what it is for
            injection = None
        call = recorder.begin_store_search(self, name, args, kwargs) if recorder else None
        results: Any = ()
        try:
            if injection is not None:
                results = injection.search(name, *query_and_name(self, name, args, kwargs))
            else:
                with suspend_injection():
                    results = original(self, *args, **kwargs)
        finally:
            if recorder is not None:
                recorder.end_store_search(call, results)
        return results

    return search


_STORES = MethodPatch(VectorStore, _METHODS, _wrap_search)
