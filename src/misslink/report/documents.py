"""Reading a run's JSON documents: what is there in the expected shape, and nothing else.

They may be written by an older or a newer misslink, or by hand; what does not fit reads as absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from misslink.files.numbers import estimate_of, finite
from misslink.types import Estimate

__all__ = [
    "count_in",
    "estimate_in",
    "list_in",
    "mapping_in",
    "number_in",
    "rows_in",
    "text_in",
]


def estimate_in(summary: Mapping[str, JsonValue], *path: str, why: str = "") -> Estimate:
    """Read the estimate at `path` of a document; a missing one says why.

    Parameters
    ----------
    summary : mapping
    path : str
        Keys from the outside in.
    why : str
        The reason to give where nothing is found.
    """
    found: JsonValue = dict(summary)
    for key in path:
        found = mapping_in(found).get(key)
    if not isinstance(found, Mapping):
        return Estimate.missing(why or "this run did not compute it")
    return estimate_of(found)


def mapping_in(value: JsonValue) -> Mapping[str, JsonValue]:
    """`value` where it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_in(value: JsonValue) -> tuple[JsonValue, ...]:
    """The items of `value` where it is a JSON array, else none."""
    return tuple(value) if isinstance(value, list | tuple) else ()


def rows_in(value: JsonValue) -> tuple[Mapping[str, JsonValue], ...]:
    """The JSON objects in `value` where it is a JSON array, else none."""
    items: Iterable[JsonValue] = list_in(value)
    return tuple(item for item in items if isinstance(item, Mapping))


def text_in(mapping: Mapping[str, JsonValue], key: str) -> str:
    """The text at `key`; "" where there is none."""
    value = mapping.get(key)
    return value if isinstance(value, str) else ""


def number_in(mapping: Mapping[str, JsonValue], key: str) -> float | None:
    """The finite number at `key`; None where there is none."""
    return finite(mapping.get(key))


def count_in(mapping: Mapping[str, JsonValue], key: str) -> int:
    """The whole number at `key`; 0 where there is none."""
    value = mapping.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
