"""Reads typed fields from a run's JSON documents; a field of another type reads as absent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from misslink.io.numbers import as_finite, parse_estimate
from misslink.render.format import FormattedEstimate, format_estimate
from misslink.types import Estimate


class JsonFields:
    """A JSON object; any other value reads as an empty one."""

    def __init__(self, value: object = None) -> None:
        if isinstance(value, JsonFields):
            value = value.values
        self.values: Mapping[str, JsonValue] = value if isinstance(value, Mapping) else {}

    def __bool__(self) -> bool:
        return bool(self.values)

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def object(self, *path: str) -> JsonFields:
        """The object at `path`, keys from the outside in."""
        fields = self
        for key in path:
            fields = JsonFields(fields.values.get(key))
        return fields

    def objects(self, *path: str) -> dict[str, JsonFields]:
        """Every field of the object at `path`, read as an object."""
        return {key: JsonFields(value) for key, value in self.object(*path).values.items()}

    def array(self, key: str) -> tuple[JsonValue, ...]:
        """The items of the array at `key`."""
        value = self.values.get(key)
        return tuple(value) if isinstance(value, list | tuple) else ()

    def rows(self, key: str) -> tuple[JsonFields, ...]:
        """The objects in the array at `key`."""
        return tuple(JsonFields(item) for item in self.array(key) if isinstance(item, Mapping))

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts in the array at `key`."""
        return tuple(item for item in self.array(key) if isinstance(item, str))

    def text(self, key: str) -> str:
        """The text at `key`; "" if there is none."""
        value = self.values.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> float | None:
        """The finite number at `key`."""
        return as_finite(self.values.get(key))

    def count(self, key: str) -> int:
        """The whole number at `key`; 0 if there is none."""
        value = self.values.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    def estimate(self, *path: str, why: str = "") -> Estimate:
        """The estimate at `path`; a missing one has the reason `why`."""
        value = self.object(*path[:-1]).values.get(path[-1])
        if isinstance(value, Mapping):
            return parse_estimate(value)
        return Estimate.missing(why or "this run did not compute it")

    def formatted(self, *path: str, name: str = "", why: str = "") -> FormattedEstimate:
        """The estimate at `path` as text, in the unit of the metric `name` or of the last key."""
        return format_estimate(name or path[-1], self.estimate(*path, why=why))
