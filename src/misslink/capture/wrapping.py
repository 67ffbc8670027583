"""Methods of every class of a kind, wrapped while somebody needs them and put back afterwards."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = ["Wrapping"]

Wrapper = Callable[[Callable[..., Any], str], Callable[..., Any]]


class Wrapping:
    """The wrapped methods and how many need them; one for the process, as classes are.

    Parameters
    ----------
    root : type
        It and every class derived from it, where they define one of the methods themselves.
    methods : sequence of str
    wrap : callable
        Takes a method and its name, and returns what stands in its place. It must pass straight
        through in code that nobody watches.
    """

    def __init__(self, root: type, methods: Sequence[str], wrap: Wrapper) -> None:
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
        for owner in _classes(self._root):
            for name in self._methods:
                original = vars(owner).get(name)
                known = (owner, name) in self._wrapped
                if inspect.isfunction(original) and not known:
                    wrapper = self._wrap(original, name)
                    setattr(owner, name, wrapper)
                    self._wrapped[owner, name] = original, wrapper

    def _remove(self) -> None:
        for (owner, name), (original, wrapper) in self._wrapped.items():
            if vars(owner).get(name) is wrapper:  # else somebody wrapped it again: theirs now
                setattr(owner, name, original)
        self._wrapped.clear()


def _classes(root: type) -> Iterator[type]:
    seen = {root}
    waiting = [root]
    while waiting:
        one = waiting.pop()
        yield one
        new: set[type] = set(one.__subclasses__()) - seen
        seen |= new
        waiting += new
