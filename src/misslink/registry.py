"""Where metrics, judges, engines and exporters are found by name.

A new one is one new file with one ``@register`` line: in the package, where its room is imported
the first time somebody asks, or in anybody else's package, found by its entry point.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any, TypeVar

from misslink.errors import InputError, known_names

__all__ = [
    "Registry",
    "engines",
    "exporters",
    "importers",
    "judged_metrics",
    "judges",
    "rank_metrics",
]

T = TypeVar("T")


class Registry:
    """Names to things of one kind.

    Parameters
    ----------
    kind : str
        What one entry is called in messages.
    rooms : sequence of str
        Packages whose modules register the built-in ones.
    group : str
        Entry-point group through which other packages add theirs.
    also : sequence of str
        What may stand in a name's place and is told beside the names, but never looked up here.
    """

    def __init__(
        self, kind: str, rooms: tuple[str, ...], group: str, also: tuple[str, ...] = ()
    ) -> None:
        self.kind = kind
        self.also = also
        self.group = group
        self._rooms = rooms
        self._entries: dict[str, Any] = {}
        self._loaded = False

    def register(self, name: str) -> Callable[[T], T]:
        """Enter the decorated object under `name`."""

        def enter(thing: T) -> T:
            known = self._entries.setdefault(name, thing)
            if known is not thing and _origin(known) != _origin(thing):
                raise InputError(
                    f"two {self.kind}s are called '{name}' ({_origin(known)}, {_origin(thing)}); "
                    "rename one of them"
                )
            self._entries[name] = thing
            return thing

        return enter

    def names(self) -> list[str]:
        """All names, sorted."""
        self._load()
        return sorted(self._entries)

    def get(self, name: str) -> Any:
        """Return what is registered as `name`.

        Raises
        ------
        InputError
            Nothing is; the message gives the nearest known name.
        """
        self._load()
        if name in self._entries:
            return self._entries[name]
        known = known_names(name, [*self.names(), *self.also])
        raise InputError(f"unknown {self.kind} '{name}'; {known}")

    def _load(self) -> None:
        if self._loaded:
            return
        for room in self._rooms:
            package = importlib.import_module(room)
            for module in pkgutil.walk_packages(package.__path__, f"{room}."):
                importlib.import_module(module.name)
        for entry in entry_points(group=self.group):
            try:
                entry.load()
            except Exception as error:
                raise InputError(
                    f"the plugin '{entry.value}' cannot be imported "
                    f"({type(error).__name__}: {error}); mend or uninstall it"
                ) from error
        self._loaded = True


def _origin(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '?')}.{getattr(thing, '__qualname__', thing)}"


rank_metrics = Registry("rank metric", ("misslink.retrieval",), "misslink.metrics")
judged_metrics = Registry(
    "judged metric", ("misslink.generation", "misslink.answer"), "misslink.metrics"
)
judges = Registry(
    "judge", ("misslink.judging",), "misslink.judges", ("cascade", "FILE.py:NAME", "none")
)
engines = Registry("engine", ("misslink.engines",), "misslink.engines")
exporters = Registry("exporter", ("misslink.report",), "misslink.exporters")
importers = Registry("importer", ("misslink.files.public",), "misslink.importers")
