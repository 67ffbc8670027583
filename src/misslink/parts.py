"""The items of a run's files: held in memory, or of a large file read where needed.

A run of some thousand cases is held whole. Of a larger file only what statistics read is held: the
light form of a verdict or a link, which its model gives as ``light()``.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import sys
import tempfile
import threading
import weakref
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import IO, Any, Generic, TypeVar, overload

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from misslink.errors import InputError

HELD_BYTES = 256 * 2**20  # of the items of one file; of a larger one none are held
_ITEM_BYTES = 1_000  # that an item takes beside its text
_RECENT = 256  # items that were read last; a page reads the same case several times

case_id: Callable[[Any], str] = attrgetter("case_id")  # of the case that an item is of, or is
Item = TypeVar("Item")
Model = TypeVar("Model", bound=BaseModel)


def _close(file: IO[bytes]) -> None:
    with contextlib.suppress(OSError):  # a full disk, which was reported where it was written to
        file.close()


class PartStore(Generic[Model]):
    """Items of one model, and the open file, of so many `lines`, that has the text of those not held."""

    def __init__(self, model: type[Model], file: IO[bytes], lines: int | None = None) -> None:
        self._model, self._file, self._lock = model, file, threading.Lock()
        self._dumped = lines is None  # by a writer: each text is what `dump_line` gives
        # Of a file that is there already it is known at once whether it is held.
        self._expected = (lines and os.fstat(file.fileno()).st_size + _ITEM_BYTES * lines) or 0
        self._light: Callable[[Model], Any] | None = getattr(model, "light", None)
        self._bounds = array("q")  # start and end of each item's text; one without a text is held
        self.read = 0  # how many of the first items are read where needed
        self._recent: dict[int, Model] = {}
        self.path = Path(file.name) if isinstance(file.name, str) else None
        self.entries: list[Any] = []  # the item where it is held, else its light form
        self.keys: list[str] = []  # case ids
        weakref.finalize(self, _close, file)

    def add(self, item: Model, start: int, end: int) -> bool:
        """Add an item, and where its text is. Return whether the file is too large to be held."""
        self.keys.append(sys.intern(case_id(item)))  # one string in all parts, and in two runs
        self.entries.append(item)
        self._bounds.extend((start, end))
        if max(self._expected, end + _ITEM_BYTES * len(self.keys)) <= HELD_BYTES:
            return False
        first, self.read = self.read, len(self.keys)
        for place in range(first, self.read):
            if self._text_at(place):
                self.entries[place] = self._light and self._light(self.entries[place])
        return True

    def _text_at(self, place: int) -> tuple[int, int] | None:
        """Start and end of an item's text; None where the item is held."""
        if place >= self.read:
            return None
        start, end = self._bounds[2 * place : 2 * place + 2]
        return (start, end) if start < end else None

    def item(self, place: int) -> Model:
        """Return an item.

        Raises
        ------
        InputError
            Its file was changed since it was opened.
        """
        if (at := self._text_at(place)) is None:
            held: Model = self.entries[place]
            return held
        with self._lock:
            if (found := self._recent.get(place)) is None:
                try:
                    found = self._model.model_validate_json(self._read_text(*at))
                except ValidationError:
                    raise InputError(
                        "this file was changed while it was read; run the command again",
                        path=self._file.name,
                    ) from None
                if len(self._recent) >= _RECENT:
                    self._recent.clear()
                self._recent[place] = found
            return found

    def line(self, place: int) -> bytes:
        """The text of an item."""
        start, end = self._bounds[2 * place : 2 * place + 2]
        if start == end or (place >= self.read and not self._dumped):
            return dump_line(self.entries[place])
        with self._lock:
            return self._read_text(start, end).rstrip(b"\n")

    def _read_text(self, start: int, end: int) -> bytes:
        self._file.seek(start)
        return self._file.read(end - start)


def dump_line(item: BaseModel) -> bytes:
    """An item as a line of a file, without its end; a lone surrogate is replaced."""
    try:
        return item.model_dump_json().encode()
    except PydanticSerializationError:
        return repr(item).encode("utf-8", "surrogatepass")


def lines_of(items: Sequence[Any]) -> Iterable[bytes]:
    """Of each item its text."""
    return items.lines() if isinstance(items, Part) else map(dump_line, items)


class Part(Sequence[Model]):
    """Items of a store, by their places in it."""

    judged: Part[Model] | None = None  # of links with the word of people, those of the judge

    def __init__(
        self,
        store: PartStore[Model],
        places: Sequence[int] | None = None,
        changes: Mapping[int, Model] | None = None,
    ) -> None:
        self._store = store
        self._places = range(len(store.keys)) if places is None else places
        self._changes = changes or {}  # by place

    @property
    def case_ids(self) -> list[str]:
        """Of each item the id of its case."""
        return self._each(self._store.keys)

    @cached_property
    def places(self) -> dict[str, int]:
        """Of each case the index of its last item."""
        return {key: index for index, key in enumerate(self.case_ids)}

    @property
    def light(self) -> list[Any]:
        """Of each item what is held of it: all of it, or its light form."""
        held = self._each(self._store.entries)
        if not self._changes:
            return held
        changed = map(self._changes.get, self._places)
        return [old if new is None else new for old, new in zip(held, changed, strict=True)]

    def lines(self) -> Iterator[bytes]:
        """Of each item its text, without the line's end."""
        for place in self._places:
            changed = self._changes.get(place)
            yield self._store.line(place) if changed is None else dump_line(changed)

    def is_file(self, path: Path) -> bool:
        """Whether it is all of this file."""
        whole = len(self) == len(self._store.keys) and not self._changes
        return self._store.path == path and whole

    def _each(self, values: list[Any]) -> list[Any]:
        whole = isinstance(self._places, range) and len(self._places) == len(values)
        return values if whole else [values[place] for place in self._places]

    def select(self, indexes: Iterable[int]) -> Part[Model]:
        """Only the items at these indexes."""
        places = array("q", map(self._places.__getitem__, indexes))
        return Part(self._store, places, self._changes)

    def replace(self, items: Mapping[int, Model]) -> Part[Model]:
        """The same with other items at these indexes, which are held."""
        changes = {self._places[index]: item for index, item in items.items()}
        return Part(self._store, self._places, {**self._changes, **changes})

    @overload
    def __getitem__(self, index: int) -> Model: ...
    @overload
    def __getitem__(self, index: slice) -> Part[Model]: ...
    def __getitem__(self, index: int | slice) -> Model | Part[Model]:
        if isinstance(index, slice):
            return Part(self._store, self._places[index], self._changes)
        return self._item(self._places[index])

    def __iter__(self) -> Iterator[Model]:
        some_read = self._changes or self._store.read
        return map(self._item if some_read else self._store.entries.__getitem__, self._places)

    def _item(self, place: int) -> Model:
        changed = self._changes.get(place)
        return self._store.item(place) if changed is None else changed

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
    record : Path or None
        Where each whole shard has a line: its key, the hash of its text, and where it ends. Those that
        an interrupted run wrote are taken as they are.
    """

    def __init__(
        self, model: type[Model], path: Path | None = None, record: Path | None = None
    ) -> None:
        self._model, self._named, self._record, self._end = model, path is not None, record, 0
        self._lines: list[str] = []  # of the record
        self._before: list[str] = []  # of an interrupted run, not yet looked at
        self.is_whole = record is not None  # every shard so far
        with self._errors():
            if path and record and path.is_file() and record.is_file():
                self._before = record.read_text(encoding="utf-8", errors="replace").split("\n")
            elif path:
                path.write_bytes(b"")
            # Open for as long as its items are.
            self._file: IO[bytes] = path.open("r+b") if path else tempfile.TemporaryFile()  # noqa: SIM115
        self._store = PartStore(model, self._file)

    def add(self, *items: Model) -> None:
        """Write items.

        Raises
        ------
        InputError
            The disk is full.
        """
        texts = list(map(self._text_of, items))
        with self._errors():
            self._file.write(b"".join(texts))
        for item, text in zip(items, texts, strict=True):
            self._place(item, len(text))

    def _text_of(self, item: Model) -> bytes:
        try:
            return item.model_dump_json().encode() + b"\n"
        except PydanticSerializationError:  # a lone surrogate, which UTF-8 cannot carry
            if self._named:
                raise
            return b""

    def _place(self, item: Model, length: int) -> None:
        start, self._end = self._end, self._end + length
        self._store.add(item, start, self._end)

    def add_all(self, items: Iterable[Model]) -> None:
        """Write several items."""
        for item in items:
            self.add(item)

    def has_shard(self, key: str) -> bool:
        """Whether the next shard is there already, whole and with this key; then it is taken.

        Where one is not, what follows it is removed.
        """
        start, line = self._end, self._before.pop(0) if self._before else ""
        known, _, end = line.rpartition(" ")
        with self._errors():
            if line.startswith(f"{key} ") and end.isdigit():
                text = self._file.read(max(0, int(end) - start))
                if known == _record_of(key, text):
                    for item in text.splitlines(keepends=True):
                        self._place(self._model.model_validate_json(item), len(item))
                    self._lines.append(line)
                    return True
            self._before = []
            self._file.seek(start)
            self._file.truncate()
            if self._record:
                text = "".join(f"{line}\n" for line in self._lines).encode()
                self._record.write_bytes(text)
        return False

    def add_shard(self, key: str, items: Iterable[Model], *, whole: bool) -> None:
        """Write a shard; where it is not `whole`, it and those after it are made again the next time.

        Raises
        ------
        InputError
            The disk is full.
        """
        start = self._end
        self.add(*items)
        self.is_whole = self.is_whole and whole
        if self._record is None or not self.is_whole:
            return
        with self._errors():
            self._file.flush()
            self._file.seek(start)
            self._lines.append(f"{_record_of(key, self._file.read())} {self._end}")
            with self._record.open("a", encoding="utf-8") as record:
                record.write(f"{self._lines[-1]}\n")

    @property
    def content(self) -> str:
        """A hash of all whole shards."""
        return hashlib.sha256("\n".join(self._lines).encode()).hexdigest()

    def part(self) -> Part[Model]:
        """Return what was written."""
        with self._errors():
            self._file.flush()
            self._file.truncate(self._end)
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


def _record_of(key: str, text: bytes) -> str:
    return f"{key} {hashlib.sha256(text).hexdigest()}"


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


class CaseValues(Mapping[str, float | None]):
    """A number or None of each case, as a column: a dict of floats takes ten times the memory."""

    def __init__(self, values: Mapping[str, float | None], places: Mapping[str, int]) -> None:
        if values.keys() != places.keys():
            places = {name: place for place, name in enumerate(values)}
        self._places = places
        known = map(values.__getitem__, places)
        self._column = array("d", [math.nan if value is None else value for value in known])

    def __getitem__(self, name: str) -> float | None:
        value = self._column[self._places[name]]
        return None if math.isnan(value) else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return repr(dict(self))


def case_ids(items: Sequence[Any]) -> list[str]:
    """Of each item the id of its case."""
    return items.case_ids if isinstance(items, Part) else list(map(case_id, items))


def by_case(items: Sequence[Item]) -> Mapping[str, Item]:
    """The items by case id; of two of a case the last."""
    if isinstance(items, Part):
        return LazyMapping(items.places, items.__getitem__)
    return {case_id(item): item for item in items}


def places_of(items: Sequence[Any]) -> dict[str, int]:
    """Of each case the index of its last item."""
    if isinstance(items, Part):
        return items.places
    return {name: index for index, name in enumerate(case_ids(items))}


def light_items(items: Sequence[Item]) -> Sequence[Any]:
    """Of each item what is held of it."""
    return items.light if isinstance(items, Part) else items


def group_by_case(items: Sequence[Item]) -> Mapping[str, Sequence[Item]]:
    """All items of each case, by its id."""
    return LazyMapping(places_by_case(items), lambda places: items_of(items, places))


def places_by_case(items: Sequence[Item]) -> dict[str, Sequence[int]]:
    """The places of all items of each case, by its id."""
    places, end = dict[str, Sequence[int]](), 0
    for name, one_after_another in groupby(case_ids(items)):
        start, end = end, end + sum(1 for _ in one_after_another)
        found = range(start, end)  # a third of the memory of a list
        places[name] = [*places[name], *found] if name in places else found
    return places


def items_of(items: Sequence[Item], places: Iterable[int]) -> Sequence[Item]:
    """Only the items at these places."""
    if isinstance(items, Part):
        return items.select(places)
    return tuple(items[place] for place in places)


def replace_items(items: Sequence[Item], changes: Mapping[int, Item]) -> Sequence[Item]:
    """The items, with others at these places."""
    if isinstance(items, Part):
        return items.replace(changes)
    return tuple(changes.get(place, item) for place, item in enumerate(items))


def last_of_each(items: Sequence[Item]) -> Sequence[Item]:
    """One item of each case, the last; `items` itself where none has two."""
    ids = case_ids(items)
    last = {name: place for place, name in enumerate(ids)}
    return items if len(last) == len(ids) else [items[place] for place in last.values()]


def select_items(items: Sequence[Item], ids: Container[str]) -> Sequence[Item]:
    """Only the items of these cases."""
    return items_of(items, (at for at, name in enumerate(case_ids(items)) if name in ids))


def stored(model: type[Model], items: Iterable[Model]) -> Part[Model]:
    """The items in a file without a name, so that not all of them are held."""
    writer = PartWriter(model)
    writer.add_all(items)
    return writer.part()
