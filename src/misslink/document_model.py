"""What the typed documents of a run and the results of commands have in common.

A writer constructs the model with all of its fields. A reader gets what a partial run lacks filled
in, and other keys stay readable as attributes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, Self, TypeVar, get_origin

from pydantic import ConfigDict, ValidationError, model_validator
from pydantic_core.core_schema import ValidationInfo

from misslink.errors import InputError
from misslink.frozen_model import FrozenModel
from misslink.registry import late_function
from misslink.types import Estimate

NOT_COMPUTED = Estimate.missing("this run did not compute it")
Estimates = dict[str, Estimate]
_READING = "reading"  # the context of a validation that fills in what is absent


class Absent(NamedTuple):
    """Marks a field with the value that a reader takes where a document lacks it."""

    value: object


class Needed:
    """Marks a field without which a document cannot be read."""


class Document(FrozenModel):
    """A part of a run's documents: no field has a default, and none is written that is not here.

    Where it is read, a key that is absent, null or ``{}`` is null, else empty, 0 or an estimate
    that is missing: the first of these that the field can be.
    """

    model_config = ConfigDict(defer_build=True)

    @classmethod
    def read(cls, content: object) -> Self:
        """Read what a file has; raises ValidationError where a value does not fit."""
        return cls.model_validate(content, extra="allow", context=_READING)

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, data: Any, info: ValidationInfo) -> Any:
        if info.context != _READING or not isinstance(data, Mapping):
            return data
        given = {name: value for name, value in data.items() if value not in (None, {})}
        return {**_absent_values(cls), **given}

    def document(self) -> dict[str, Any]:
        """Return it as JSON values, as a file has it and ``--json`` prints it."""
        return self.model_dump(mode="json", by_alias=True)

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values of these fields."""
        return type(self)(**{**dict(self), **changes})


@cache
def _absent_values(model: type[Document]) -> dict[str, object]:
    """What a reader takes for each field that a document lacks, by its key."""
    values: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        marks = [mark for mark in field.metadata if isinstance(mark, Absent)]
        kind = get_origin(field.annotation) or field.annotation
        if marks:
            value = marks[0].value
        elif Needed in field.metadata:
            continue
        elif kind is Estimate:
            value = NOT_COMPUTED
        elif isinstance(kind, type) and issubclass(kind, Document):
            value = {}
        elif kind in (str, int, bool, tuple, dict):
            value = kind()
        else:
            value = None
        values[field.alias or name] = value
    return values


DocumentT = TypeVar("DocumentT", bound=Document)


class Result(Document):
    """A document that is the result of a command, and that a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return late_function("result_html", str)(self)


def parse_document(model: type[DocumentT], content: object, path: object) -> DocumentT:
    """Read a JSON object as a document; the InputError of a misfit names `path` and the field."""
    try:
        return model.read(content)
    except ValidationError as invalid:
        error = invalid.errors()[0]
        if error["type"] == "string_unicode":  # a key with half a character
            readable = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
            return parse_document(model, json.loads(readable), path)
        field = ".".join(map(str, error["loc"]))
        raise InputError(error["msg"], path=path, field=field or None) from None
