"""The items of a run's files: the first ones are held in memory, the others read where needed.

A run of a few thousand cases is held whole. Of a larger one what statistics read is held too: the
light form of a verdict, which its model gives as ``light()``.
"""

from __future__ import annotations

import contextlib
import tempfile
import threading
import weakref
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Generic, TypeVar, overload

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from misslink.errors import InputError

HELD_BYTES = 64 * 2**20  # of the text of one file: what begins before is held
_RECENT = 256  # items that were read last; a page reads the same case several times

Item = TypeVar("Item")
Model = TypeVar("Model", bound=BaseModel)


def _close(file: IO[bytes]) -> None:
    with contextlib.suppress(OSError):  # a full disk, which was reported where it was written to
        file.close()


class PartStore(Generic[Model]):
    """Items of one model, and the open file that has the text of those that are not held."""

    def __init__(self, model: type[Model], file: IO[bytes]) -> None:
        self._model, self._file, self._lock = model, file, threading.Lock()
        self._light: Callable[[Model], Any] | None = getattr(model, "light", None)
        self._bounds = array("q")  # start and end of each item's text; -1: it is held
        self._recent: dict[int, Model] = {}
        self.path = Path(file.name) if isinstance(file.name, str) else None
        self.entries: list[Any] = []  # the item where it is held, else its light form
        self.keys: list[str] = []  # case ids
        weakref.finalize(self, _close, file)

    def add(self, item: Model, start: int, end: int) -> bool:
        """Add an item, and where its text is; without a text it is held. Return whether it is not."""
        key = case_id(item)
        self.keys.append(self.keys[-1] if self.keys and self.keys[-1] == key else key)
        held = start < HELD_BYTES or start == end
        self.entries.append(item if held else self._light and self._light(item))
        self._bounds.extend((-1, -1) if held else (start, end))
        return not held

    def item(self, place: int) -> Model:
        """Return an item.

        Raises
        ------
        InputError
            Its file was changed since it was opened.
        """
        start, end = self._bounds[2 * place : 2 * place + 2]
        if start < 0:
            held: Model = self.entries[place]
            return held
        with self._lock:
            if (found := self._recent.get(place)) is None:
                self._file.seek(start)
                try:
                    found = self._model.model_validate_json(self._file.read(end - start))
                except ValidationError:
                    raise InputError(
                        "this file was changed while it was read; run the command again",
                        path=self._file.name,
                    ) from None
                if len(self._recent) >= _RECENT:
                    self._recent.clear()
                self._recent[place] = found
            return found


class Part(Sequence[Model]):
    """Items of a store, by their places in it."""

    def __init__(self, store: PartStore[Model], places: Sequence[int] | None = None) -> None:
        self._store = store
        self._places = range(len(store.keys)) if places is None else places

    @property
    def case_ids(self) -> list[str]:
        """Of each item the id of its case."""
        return self._each(self._store.keys)

    @property
    def light(self) -> list[Any]:
        """Of each item what is held of it: all of it, or its light form."""
        return self._each(self._store.entries)

    def is_file(self, path: Path) -> bool:
        """Whether it is all of this file."""
        return self._store.path == path and len(self) == len(self._store.keys)

    def _each(self, values: list[Any]) -> list[Any]:
        whole = isinstance(self._places, range) and len(self._places) == len(values)
        return values if whole else [values[place] for place in self._places]

    def at(self, indexes: Iterable[int]) -> Part[Model]:
        """Only the items at these indexes."""
        return Part(self._store, array("q", map(self._places.__getitem__, indexes)))

    @overload
    def __getitem__(self, index: int) -> Model: ...
    @overload
    def __getitem__(self, index: slice) -> Part[Model]: ...
    def __getitem__(self, index: int | slice) -> Model | Part[Model]:
        if isinstance(index, slice):
            return Part(self._store, self._places[index])
        return self._store.item(self._places[index])

    def __iter__(self) -> Iterator[Model]:
        return map(self._store.item, self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Part | tuple | list):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Part({len(self)} items)"


class PartWriter(Generic[Model]):
    """Writes items to a file as they are made, one JSON object a line.

    Parameters
    ----------
    model : type
    path : Path or None
        None: a file without a name, which goes when its items do.
    """

    def __init__(self, model: type[Model], path: Path | None = None) -> None:
        self._named, self._end = path is not None, 0
        with self._errors():
            # Open for as long as its items are.
            self._file: IO[bytes] = path.open("w+b") if path else tempfile.TemporaryFile()  # noqa: SIM115
        self._store = PartStore(model, self._file)

    def add(self, item: Model) -> None:
        """Write an item.

        Raises
        ------
        InputError
            The disk is full.
        """
        try:
            text = item.model_dump_json().encode() + b"\n"
        except PydanticSerializationError:  # a lone surrogate, which UTF-8 cannot carry
            if self._named:
                raise
            text = b""
        with self._errors():
            self._file.write(text)
        start, self._end = self._end, self._end + len(text)
        self._store.add(item, start, self._end)

    def add_all(self, items: Iterable[Model]) -> None:
        """Write several items."""
        for item in items:
            self.add(item)

    def part(self) -> Part[Model]:
        """Return what was written."""
        with self._errors():
            self._file.flush()
        return Part(self._store)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(
                f"the run cannot be written ({error.strerror or error}); make room, or choose "
                "another --out, and run the same command again"
            ) from None


class LazyMapping(Mapping[str, Item]):
    """A mapping whose values are made where needed, of what `sources` has by each name."""

    def __init__(self, sources: Mapping[str, Any], make: Callable[[Any], Item]) -> None:
        self._sources, self._make = sources, make

    def __getitem__(self, name: str) -> Item:
        return self._make(self._sources[name])

    def __contains__(self, name: object) -> bool:
        return name in self._sources

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


class Again(Generic[Item]):
    """What can be gone through several times, and is made each time."""

    def __init__(self, make: Callable[[], Iterable[Item]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[Item]:
        return iter(self._make())


def case_id(item: Any) -> str:
    """The id of the case that an item is of, or that it is."""
    name: str = item.case_id if hasattr(item, "case_id") else item.id
    return name


def case_ids(items: Sequence[Any]) -> list[str]:
    """Of each item the id of its case."""
    return items.case_ids if isinstance(items, Part) else list(map(case_id, items))


def by_case(items: Sequence[Item]) -> Mapping[str, Item]:
    """The items by case id; of two of a case the last."""
    if isinstance(items, Part):
        places = {key: place for place, key in enumerate(items.case_ids)}
        return LazyMapping(places, items.__getitem__)
    return {case_id(item): item for item in items}


def light_items(items: Sequence[Item]) -> Sequence[Any]:
    """Of each item what is held of it."""
    return items.light if isinstance(items, Part) else items


def group_by_case(items: Sequence[Item]) -> Mapping[str, Sequence[Item]]:
    """All items of each case, by its id."""
    if isinstance(items, Part):
        indexes: dict[str, list[int]] = {}
        for index, key in enumerate(items.case_ids):
            indexes.setdefault(key, []).append(index)
        return LazyMapping(indexes, items.at)
    groups: dict[str, list[Item]] = {}
    for item in items:
        groups.setdefault(case_id(item), []).append(item)
    return groups


def last_of_each(items: Sequence[Item]) -> Sequence[Item]:
    """One item of each case, the last; `items` itself where none has two."""
    ids = case_ids(items)
    last = {name: place for place, name in enumerate(ids)}
    return items if len(last) == len(ids) else [items[place] for place in last.values()]


def select_items(items: Sequence[Item], ids: Container[str]) -> Sequence[Item]:
    """Only the items of these cases."""
    if isinstance(items, Part):
        return items.at(place for place, name in enumerate(items.case_ids) if name in ids)
    return tuple(item for item in items if case_id(item) in ids)
