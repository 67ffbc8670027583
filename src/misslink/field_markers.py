"""Marks that a field of a data model has where it is defined, and the fields that have one.

``latency_s: Annotated[float | None, Varying] = None``
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, get_args

from pydantic import BaseModel


class Varying:
    """Two equal runs may differ in it: a time, a cost, an id, the last digits of a score."""


class LowerIsBetter:
    """It is good when it is low."""


@cache
def varying_fields(model: type[BaseModel]) -> dict[str, Any]:
    """Return the varying fields of a model and of the models in it, as ``exclude`` of a dump."""
    found: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if Varying in field.metadata:
            found[name] = True
            continue
        for inner, is_item in _models_in(field.annotation):
            if fields := varying_fields(inner):
                found[name] = {"__all__": fields} if is_item else fields
    return found


def _models_in(annotation: Any, *, is_item: bool = False) -> Iterator[tuple[type[BaseModel], bool]]:
    """The models of an annotation, and whether each is an item of a tuple."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation, is_item
    for argument in get_args(annotation):
        in_tuple = getattr(annotation, "__origin__", None) is tuple
        yield from _models_in(argument, is_item=is_item or in_tuple)


def marked_names(base: type[BaseModel], marker: type) -> frozenset[str]:
    """Return the names of the fields with a marker, in all models that derive from `base`."""
    own = {name for name, field in base.model_fields.items() if marker in field.metadata}
    return frozenset(own).union(*(marked_names(sub, marker) for sub in base.__subclasses__()))
