"""The base of the data models, and the values that several of them have."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

Grade = Annotated[int, Field(ge=0, le=(1 << 53) - 1)]  # each is a float of its own
Share = Annotated[float, Field(ge=0, le=1)]


class FrozenModel(BaseModel):
    """Frozen, closed, and without NaN or infinity."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )


class Reason(BaseModel):
    """A reason code and its parameters; `misslink.render.reasons` has the sentence of each code."""

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    code: str

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.model_extra or {})
