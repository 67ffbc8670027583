"""The base of the data models, and the values that several of them have."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

from misslink.registry import late_function

Grade = Annotated[int, Field(ge=0, le=(1 << 53) - 1)]  # each is a float of its own
Share = Annotated[float, Field(ge=0, le=1)]
share = lru_cache(1 << 14)(lambda value: value)  # one object for all equal ones, few are not


class FrozenModel(BaseModel):
    """Frozen, closed, and without NaN or infinity."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )

    def model_post_init(self, context: Any, /) -> None:  # noqa: ARG002
        """Share the names of the fields that were given: a set in each object is half of a run's memory."""
        names = self.__pydantic_fields_set__
        shared = _given_names.setdefault(frozenset(names), names)
        object.__setattr__(self, "__pydantic_fields_set__", shared)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with some fields replaced, which are not checked."""
        copied = super().model_copy(update=update, deep=deep)
        copied.model_post_init(None)
        return copied


_given_names: dict[frozenset[str], set[str]] = {}


class Reason(BaseModel):
    """A reason code and its parameters; `misslink.render.reasons` has the sentence of each code."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    code: str

    @property
    def parameters(self) -> dict[str, object]:
        return dict(self.model_extra or {})

    def __str__(self) -> str:
        """Return its sentence."""
        return late_function("describe_reason", str)(self)
