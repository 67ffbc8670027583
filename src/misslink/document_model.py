"""What the typed documents of a run and the results of commands have in common.

What a partial run lacks has a default, and other keys stay readable as attributes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, PrivateAttr, ValidationError, model_validator

from misslink.errors import InputError
from misslink.registry import late_function
from misslink.types import Estimate

NOT_COMPUTED = Estimate.missing("this run did not compute it")
Estimates = dict[str, Estimate]


class Document(BaseModel):
    """A part of a run's documents; a key that is absent, null or ``{}`` has its default."""

    model_config = ConfigDict(frozen=True, defer_build=True, extra="allow", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _drop_empty(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        return {name: value for name, value in data.items() if value not in (None, {})}


DocumentT = TypeVar("DocumentT", bound=Document)


class Result(Document):
    """A document that is the result of a command, and that a notebook shows as a table."""

    _printed: Mapping[str, Any] = PrivateAttr(default_factory=dict)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Read what a command computed."""
        result = cls.model_validate(document)
        result._printed = document  # noqa: SLF001 (its own)
        return result

    def document(self) -> dict[str, Any]:
        """Return the result as ``--json`` prints it."""
        return dict(self._printed)

    def _repr_html_(self) -> str:
        return late_function("result_html", str)(self)


def parse_document(model: type[DocumentT], content: object, path: object) -> DocumentT:
    """Read a JSON object as a document; the InputError of a misfit names `path` and the field."""
    try:
        return model.model_validate(content)
    except ValidationError as invalid:
        error = invalid.errors()[0]
        if error["type"] == "string_unicode":  # a key with half a character
            readable = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
            return parse_document(model, json.loads(readable), path)
        field = ".".join(map(str, error["loc"]))
        raise InputError(error["msg"], path=path, field=field or None) from None
