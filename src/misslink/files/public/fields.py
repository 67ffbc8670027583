"""Fields of files that others made: there, of the kind they should be, or one sentence."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.labels import as_id
from misslink.text import valid_text
from misslink.types import Passage

__all__ = ["Entry", "passages", "split_of"]

_SPLITS = ("train", "dev", "test")
_SHOWN = 6  # field names of a file that is something else


@dataclass(frozen=True)
class Entry:
    """One entry of a file, with its place."""

    row: Mapping[str, Any]
    path: Path
    line: int | None

    def has(self, *fields: str) -> bool:
        """Whether all these fields are there, filled or not."""
        return all(field in self.row for field in fields)

    def wrong(self, problem: str, field: str | None = None) -> InputError:
        """Return an error that names this place."""
        return InputError(problem, path=self.path, line=self.line, field=field)

    def unknown(self, name: str, forms: str) -> InputError:
        """Return the error that this is no entry of the set `name`; `forms` says what is."""
        found = [str(field) for field in self.row][:_SHOWN]
        more = ", ..." if len(self.row) > _SHOWN else ""
        told = f"it has the fields {', '.join(found)}{more}" if found else "it has no field"
        return self.wrong(f"this is not of {name} ({told}); give {forms}")

    def text(self, field: str, *, blank: bool = False) -> str:
        """Return a text; an empty one only where it may be."""
        found = self._there(field)
        if not isinstance(found, str):
            raise self.wrong(f"this should be text, not {_kind(found)}", field)
        if not blank and not found.strip():
            raise self.wrong("this text is empty; take the entry out", field)
        return valid_text(found)

    def id(self, field: str) -> str:
        """Return an id: text, or a whole number as its digits."""
        found = as_id(self._there(field))
        if found is None:
            raise self.wrong(
                f"an id is text or a whole number, not {_kind(self.row[field])}", field
            )
        return found

    def word(self, field: str) -> str | None:
        """Return what stands there as a word; None where nothing does."""
        found = self.row.get(field)
        if found is None or isinstance(found, list | dict):
            return None
        return valid_text(str(found)).strip() or None

    def whole(self, field: str, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`."""
        return self.whole_of(self._there(field), field, low, high)

    def whole_of(self, found: object, field: str, low: int, high: int) -> int:
        """Return what was found in a field as such a number."""
        number = as_id(found)
        try:
            value = int(number) if number is not None else None
        except ValueError:
            value = None
        if value is None or not low <= value <= high:
            told = _kind(found) if number is None else repr(number[:_SHOWN_TEXT])
            raise self.wrong(f"{told} is no whole number from {low} to {high}", field)
        return value

    def truth(self, field: str) -> bool:
        """Return a truth value."""
        found = self._there(field)
        if not isinstance(found, bool):
            raise self.wrong(f"this should be true or false, not {_kind(found)}", field)
        return found

    def objects(self, field: str) -> list[Entry]:
        """Return a list of objects, each as an entry at this place."""
        found = self._there(field)
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise self.wrong("this should be a list of objects", field)
        return [Entry(one, self.path, self.line) for one in found]

    def object(self, field: str) -> Entry:
        """Return an object as an entry at this place."""
        found = self._there(field)
        if not isinstance(found, dict):
            raise self.wrong(f"this should be an object, not {_kind(found)}", field)
        return Entry(found, self.path, self.line)

    def texts(self, field: str) -> list[str]:
        """Return a list of texts, which may be empty."""
        found = self._there(field)
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            raise self.wrong("this should be a list of texts", field)
        return [valid_text(one) for one in found]

    def _there(self, field: str) -> Any:
        if field not in self.row:
            raise self.wrong("this field is missing; download the file again", field)
        return self.row[field]


_SHOWN_TEXT = 40


def passages(owner: str, texts: Sequence[str]) -> tuple[Passage, ...]:
    """Number texts as passages of `owner`: their ids are the same wherever it occurs."""
    return tuple(
        Passage(id=f"{owner}-p{rank}", text=text, rank=rank)
        for rank, text in enumerate(texts, start=1)
    )


def split_of(path: Path, splits: Collection[str] = _SPLITS) -> str | None:
    """Return the split that a file's name tells; None where it tells none, or several.

    >>> split_of(Path("clapnq_dev_answerable.jsonl")), split_of(Path("all.jsonl"))
    ('dev', None)
    """
    words = path.stem.casefold().replace("-", "_").replace(".", "_").split("_")
    found = [split for split in splits if split in words]
    return found[0] if len(found) == 1 else None


def _kind(found: object) -> str:
    if found is None:
        return "null"
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, dict):
        return "an object"
    if isinstance(found, list):
        return "a list"
    return "text" if isinstance(found, str) else "a number"
