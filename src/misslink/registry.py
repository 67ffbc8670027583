"""Metrics, judges, engines, exporters and importers, registered by name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

from misslink.errors import InputError, known_names

T = TypeVar("T")


class Registry:
    """Registered objects of one kind, by name.

    Parameters
    ----------
    kind : str
        What messages call an entry.
    packages : sequence of str
        Packages whose modules register the built-in ones.
    group : str
        Entry-point group through which other packages add theirs.
    other_forms : sequence of str
        What messages list besides the names, such as ``FILE.py:NAME``; not looked up here.
    """

    def __init__(
        self, kind: str, packages: tuple[str, ...], group: str, other_forms: tuple[str, ...] = ()
    ) -> None:
        self.kind = kind
        self.other_forms = other_forms
        self.group = group
        self._packages = packages
        self._entries: dict[str, Any] = {}
        self._details: dict[str, dict[str, str]] = {}
        self._loaded = False

    def register(self, name: str, **details: str) -> Callable[[T], T]:
        """Register the decorated object under `name`.

        `details` describe it, such as the ``file`` that an exporter writes in a run folder.
        """

        def enter(entry: T) -> T:
            earlier = self._entries.setdefault(name, entry)
            both = _qualified_name(earlier), _qualified_name(entry)
            if both[0] != both[1]:
                raise InputError(
                    f"two {self.kind}s are called '{name}' ({', '.join(both)}); rename one of them"
                )
            self._entries[name] = entry
            self._details[name] = details
            return entry

        return enter

    def __contains__(self, name: str) -> bool:
        """Whether something is registered as `name`."""
        self._load()
        return name in self._entries

    def names(self) -> list[str]:
        """All names, sorted."""
        self._load()
        return sorted(self._entries)

    def details(self, name: str) -> dict[str, str]:
        """Return the details with which the entry was registered; raises as `get`."""
        self.get(name)
        return self._details.get(name, {})

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
        known = known_names(name, [*self.names(), *self.other_forms])
        raise InputError(f"unknown {self.kind} '{name}'; {known}")

    def _load(self) -> None:
        if self._loaded:
            return
        for name in self._packages:
            package = importlib.import_module(name)
            for module in pkgutil.walk_packages(package.__path__, f"{name}."):
                importlib.import_module(module.name)
        for entry in _entry_points().select(group=self.group):
            try:
                entry.load()
            except Exception as error:
                raise InputError(
                    f"the plugin '{entry.value}' cannot be imported "
                    f"({type(error).__name__}: {error}); fix or uninstall it"
                ) from error
        self._loaded = True


@cache
def _entry_points() -> Any:  # of a class that depends on the version of Python
    """Of all packages: to find them reads a file of each, and there are eight registries."""
    return entry_points()


def _qualified_name(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '?')}.{getattr(thing, '__qualname__', thing)}"


rank_metrics = Registry("rank metric", ("misslink.retrieval",), "misslink.metrics")
judged_metrics = Registry("judged metric", ("misslink.metrics",), "misslink.metrics")
judges = Registry(
    "judge", ("misslink.judge.backends",), "misslink.judges", ("cascade", "FILE.py:NAME", "none")
)
reply_stores = Registry("reply store", ("misslink.judge.middleware",), "misslink.reply_stores")
engines = Registry("engine", ("misslink.engines",), "misslink.engines")
exporters = Registry("exporter", ("misslink.report",), "misslink.exporters")
annotation_sessions = Registry(
    "annotation session",
    ("misslink.annotation", "misslink.goldset.pooling"),
    "misslink.annotation_sessions",
)
importers = Registry("importer", ("misslink.io.label_sets",), "misslink.importers")


def rank_metric_key(name: str) -> str | None:
    """Return the name under which a rank metric is registered; None for any other name.

    Examples
    --------
    >>> rank_metric_key("recall@5"), rank_metric_key("mrr"), rank_metric_key("faithfulness")
    ('recall@{k}', 'mrr', None)
    """
    base = name.partition("@")[0]
    keys = (base, f"{base}@{{k}}", f"{base}@{{p}}")
    return next((key for key in keys if key in rank_metrics), None)


# Functions of later layers that methods of the data models call, by their modules.
_LATE_FUNCTIONS = {
    "apply_labels": "misslink.calibration.labelled_failures",
    "describe_reason": "misslink.render.reasons",
    "describe_run": "misslink.report.findings",
    "first_step": "misslink.report.summary",
    "run_frame": "misslink.render.run_frame",
    "run_html": "misslink.report.notebook",
    "result_html": "misslink.report.notebook",
    "run_metrics": "misslink.comparison.run_metrics",
    "read_complete_run": "misslink.io.run_folder",
}


def late_function(name: str, _returns: type[T]) -> Callable[..., T]:
    """Return a function that a later layer provides for the methods of the data models."""
    function: Callable[..., T] = _imported(name)
    return function


@cache  # every reason of every verdict asks for its sentence
def _imported(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(importlib.import_module(_LATE_FUNCTIONS[name]), name)
    return function
