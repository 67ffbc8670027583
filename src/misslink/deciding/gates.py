"""What may be demanded of a run: the gates of a criteria file, as they are written."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from misslink.types import Cause

__all__ = ["Gate", "NewFailures", "criteria_schema"]

_CONFIG = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
_Text = Annotated[str, Field(min_length=1)]


class _Selection(BaseModel):
    """Which cases a gate is about; all of what is said must fit."""

    model_config = _CONFIG

    tag: dict[str, str] = Field(default={}, description="Name of a tag to the value it must have.")
    tier: _Text | None = Field(default=None, description="Cases of this tier only.")
    category: _Text | None = Field(default=None, description="Cases of this category only.")


class NewFailures(_Selection):
    """Cases that fail now and did not in the baseline."""

    cause: Cause | None = Field(
        default=None, description="With this primary cause; without it, with any that is a failure."
    )
    retrieval: Literal["miss", "partial"] | None = Field(
        default=None,
        description="In place of a cause: with this outcome of retrieval, whatever the answer.",
    )
    at_most: int = Field(default=0, ge=0, description="So many are allowed.")

    @model_validator(mode="after")
    def _is_of_one_thing(self) -> Self:
        if self.cause is not None and self.retrieval is not None:
            raise ValueError("new_failures are by cause or by retrieval; make a gate of each")
        return self


class Gate(_Selection):
    """One thing that is demanded of a run."""

    name: _Text = Field(description="Told where the gate is; a metric may be read from it.")
    metric: _Text | None = Field(
        default=None,
        description="Such as recall@5, faithfulness, link.attributable_fraction, "
        "coverage.faithfulness. Without it the name says: retrieval_recall_at_5.",
    )
    threshold: float | None = Field(default=None, description="The value may not be below.")
    at_most: float | None = Field(default=None, description="The value may not be above.")
    regression_max: float | None = Field(
        default=None,
        ge=0,
        description="How far the value may change for the worse against the baseline: 0.03 is 3 "
        "points. What is worse is the metric's own: of a metric that is good when low, a rise.",
    )
    regression_test: Literal["paired", "value"] = Field(
        default="value",
        description="value: the change alone decides. paired: over the cases in both, and only "
        "where the interval of the change leaves out 0.",
    )
    severity: Literal["error", "warning"] = Field(
        default="error", description="A warning is told and does not fail."
    )
    min_cases: int | None = Field(
        default=None,
        ge=1,
        description="So many cases must have a value, and where pairs decide, so many pairs; "
        "else the gate fails.",
    )
    on: Literal["value", "low", "high"] = Field(
        default="value",
        description="What is held against the limit: the value, for a threshold the low end of "
        "its 95 % interval, for at_most the high end.",
    )
    estimate: Literal["raw", "corrected"] = Field(
        default="raw",
        description="raw: as the judge calls it. corrected: as people would, by the calibration "
        "that the run keeps; of faithful, correct and other shares of good answers.",
    )
    new_failures: NewFailures | None = Field(
        default=None, description="In place of a metric: cases that fail now and did not before."
    )

    @model_validator(mode="before")
    @classmethod
    def _select_new_failures(cls, given: Any) -> Any:
        """Of new failures, the cases may be chosen beside them as well as among them."""
        if not isinstance(given, dict) or not isinstance(given.get("new_failures"), dict):
            return given
        beside = {key: value for key, value in given.items() if key in _Selection.model_fields}
        for key, value in beside.items():
            if given["new_failures"].get(key, value) != value:
                raise ValueError(f"'{key}' stands beside new_failures and in it; keep one")
        rest = {key: value for key, value in given.items() if key not in beside}
        return {**rest, "new_failures": {**given["new_failures"], **beside}}

    @model_validator(mode="after")
    def _demands_what_can_be_held(self) -> Self:
        limits = (self.threshold, self.at_most, self.regression_max, self.min_cases)
        if self.new_failures is not None:
            if self.metric is not None or any(limit is not None for limit in limits):
                raise ValueError(
                    "new_failures stands alone; give its at_most inside it, and the metric a gate "
                    "of its own"
                )
            for key in ("on", "regression_test", "estimate"):
                if key in self.model_fields_set:
                    raise ValueError(f"new_failures is a count, and {key} says nothing of it")
            return self
        if all(limit is None for limit in limits):
            raise ValueError(
                "it demands nothing; give a threshold, at_most, regression_max or new_failures"
            )
        low, high = self.threshold, self.at_most
        if low is not None and high is not None and low > high:
            raise ValueError(f"no value is at least {low:g} and at most {high:g}; mend one")
        if "regression_test" in self.model_fields_set and self.regression_max is None:
            raise ValueError("regression_test needs regression_max; add it")
        if self.on == "low" and self.threshold is None:
            raise ValueError("on: low is for a threshold; add one, or write on: high for at_most")
        if self.on == "high" and self.at_most is None:
            raise ValueError("on: high is for at_most; add it, or write on: low for a threshold")
        return self


class _File(BaseModel):
    """Ship criteria of misslink gate."""

    model_config = _CONFIG

    schema_of: str | None = Field(default=None, alias="$schema")
    name: _Text | None = Field(
        default=None, description="Of the whole; the marker line of the comment carries it."
    )
    gates: list[Gate] | dict[str, Gate] = Field(description="At least one; or name to gate.")


def criteria_schema() -> dict[str, Any]:
    """The JSON schema of a criteria file, for editors; it lies in the package too."""
    found = _File.model_json_schema()
    del found["$defs"]["Gate"]["required"]  # the name may stand before it, or be its metric's
    said = {"$schema": "https://json-schema.org/draft/2020-12/schema", **found, "title": "Gates"}
    without: dict[str, Any] = _without_null(said)
    return without


def _without_null(schema: Any) -> Any:
    """The schema, without the null that stands for a key left out: an empty key is refused."""
    if isinstance(schema, list):
        return [_without_null(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {
        key: _without_null(value)
        for key, value in schema.items()
        if not (key == "default" and value is None)
    }
    either = [item for item in kept.get("anyOf", ()) if item != {"type": "null"}]
    if len(either) == 1:
        del kept["anyOf"]
        return {**either[0], **kept}
    return {**kept, "anyOf": either} if either else kept
