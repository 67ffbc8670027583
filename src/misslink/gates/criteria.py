"""Ship criteria: the gates of a criteria file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from misslink.comparison.run_metrics import select_cases
from misslink.errors import InputError, did_you_mean
from misslink.io.config_files import EntryPath, read_config_file
from misslink.render.format import metric_bounds
from misslink.types import Case, FailureMode, Reason, Run

_STRICT = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
_NonEmpty = Annotated[str, Field(min_length=1)]


class _CaseFilter(BaseModel):
    """The cases of a gate; every given condition must match."""

    model_config = _STRICT

    tag: dict[str, str] = Field(
        default={}, description="Tags that a case must have, each with its value."
    )
    tier: _NonEmpty | None = Field(default=None, description="Cases of this tier only.")
    category: _NonEmpty | None = Field(default=None, description="Cases of this category only.")


class NewFailures(_CaseFilter):
    """Cases that fail now and did not in the baseline."""

    failure: FailureMode | None = Field(
        default=None,
        description="Count this primary failure mode; by default all that are failures.",
    )
    retrieval: Literal["miss", "partial"] | None = Field(
        default=None,
        description="Count this retrieval outcome instead, whatever the answer.",
    )
    at_most: int = Field(default=0, ge=0, description="Maximum number of cases.")

    @model_validator(mode="after")
    def _check_one_axis(self) -> Self:
        if self.failure is not None and self.retrieval is not None:
            raise ValueError(
                "new_failures takes failure or retrieval, not both; write one gate for each"
            )
        return self


class Gate(_CaseFilter):
    """One requirement on a run."""

    name: _NonEmpty = Field(description="Name in every output; without metric it names the metric.")
    metric: _NonEmpty | None = Field(
        default=None,
        description="Such as recall@5, faithfulness, link.attributable_fraction, "
        "coverage.faithfulness. By default read from the name: retrieval_recall_at_5.",
    )
    threshold: float | None = Field(default=None, description="Minimum value.")
    at_most: float | None = Field(default=None, description="Maximum value.")
    regression_max: float | None = Field(
        default=None,
        ge=0,
        description="Margin of the loss against the baseline: 0.03 is 3 percentage points. For a "
        "metric that is good when low, a rise is a loss.",
    )
    regression_test: Literal["paired", "value"] = Field(
        default="value",
        description="value: the gate fails if the loss exceeds the margin. paired: only if the whole "
        "interval of the loss over the cases in both lies above it.",
    )
    severity: Literal["error", "warning"] = Field(
        default="error", description="A warning is reported and does not fail."
    )
    min_cases: int | None = Field(
        default=None,
        ge=1,
        description="Minimum number of cases with a value, and of pairs if pairs decide.",
    )
    on: Literal["value", "low", "high"] = Field(
        default="value",
        description="Number compared with the limit: the value, the low end of its 95% interval "
        "(threshold), or the high end (at_most).",
    )
    estimate: Literal["raw", "corrected"] = Field(
        default="raw",
        description="raw: by the judge. corrected: corrected by the run's calibration, for "
        "fully_faithful, correct and other shares of good answers.",
    )
    new_failures: NewFailures | None = Field(
        default=None, description="Instead of a metric: cases that fail now and did not before."
    )

    @model_validator(mode="before")
    @classmethod
    def _select_new_failures(cls, given: Any) -> Any:
        """Allow the case filter of new_failures next to it, too."""
        if not isinstance(given, dict) or not isinstance(given.get("new_failures"), dict):
            return given
        outer = {key: value for key, value in given.items() if key in _CaseFilter.model_fields}
        for key, value in outer.items():
            if given["new_failures"].get(key, value) != value:
                raise ValueError(f"'{key}' is both in new_failures and next to it; remove one")
        remaining = {key: value for key, value in given.items() if key not in outer}
        return {**remaining, "new_failures": {**given["new_failures"], **outer}}

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        limits = (self.threshold, self.at_most, self.regression_max, self.min_cases)
        if self.new_failures is not None:
            if self.metric is not None or any(limit is not None for limit in limits):
                raise ValueError(
                    "new_failures cannot be combined with a metric or another limit. Put at_most "
                    "inside it, and the metric in a separate gate"
                )
            for key in ("on", "regression_test", "estimate"):
                if key in self.model_fields_set:
                    raise ValueError(f"new_failures is a count and takes no {key}; remove it")
            return self
        if all(limit is None for limit in limits):
            raise ValueError(
                "it has no limit; give a threshold, at_most, regression_max or new_failures"
            )
        low, high = self.threshold, self.at_most
        if low is not None and high is not None and low > high:
            raise ValueError(f"no value is at least {low:g} and at most {high:g}; fix one")
        if "regression_test" in self.model_fields_set and self.regression_max is None:
            raise ValueError("regression_test needs regression_max; add it")
        if self.on == "low" and self.threshold is None:
            raise ValueError("on: low is for a threshold; add one, or write on: high for at_most")
        if self.on == "high" and self.at_most is None:
            raise ValueError("on: high is for at_most; add it, or write on: low for a threshold")
        return self


class _CriteriaDocument(BaseModel):
    """Ship criteria of misslink gate."""

    model_config = _STRICT

    schema_of: str | None = Field(default=None, alias="$schema")
    name: _NonEmpty | None = Field(
        default=None, description="Name of the criteria; part of the comment's marker line."
    )
    gates: list[Gate] | dict[str, Gate] = Field(
        description="At least one gate; a list, or a mapping of names to gates."
    )


def criteria_schema() -> dict[str, Any]:
    """The JSON schema of a criteria file, for editors."""
    model = _CriteriaDocument.model_json_schema()
    del model["$defs"]["Gate"]["required"]  # it may be the key, or that of the metric
    draft = "https://json-schema.org/draft/2020-12/schema"
    schema: dict[str, Any] = _drop_null({"$schema": draft, **model, "title": "Gates"})
    return schema


def _drop_null(schema: Any) -> Any:
    """The schema without null, which stands for an absent key; an empty key is an error."""
    if isinstance(schema, list):
        return [_drop_null(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {
        key: _drop_null(value)
        for key, value in schema.items()
        if not (key == "default" and value is None)
    }
    types = [item for item in result.get("anyOf", ()) if item != {"type": "null"}]
    if len(types) == 1:
        del result["anyOf"]
        return {**types[0], **result}
    return {**result, "anyOf": types} if types else result


_MAX_LISTED = 5  # names
_MAX_NAME_LENGTH = 80  # characters of one


def select_gate_cases(run: Run, gate: Gate | NewFailures) -> Run:
    """The run with only the cases of a gate."""
    if not describe_filter(gate):
        return run
    return select_cases(run, {case.id for case in run.cases if matches_filter(case, gate)})


def matches_filter(case: Case, gate: Gate | NewFailures) -> bool:
    """Whether a case matches the filter of a gate."""
    return (
        all(case.tags.get(name) == value for name, value in gate.tag.items())
        and gate.tier in {None, case.tier}
        and gate.category in {None, case.category}
    )


def describe_filter(gate: Gate | NewFailures) -> str:
    """The filter in words; "" for all cases."""
    conditions = {f"tag {name}": value for name, value in gate.tag.items()}
    conditions |= {} if gate.tier is None else {"tier": gate.tier}
    conditions |= {} if gate.category is None else {"category": gate.category}
    return " and ".join(f"{name} '{value}'" for name, value in conditions.items())


def no_case_reason(gate: Gate | NewFailures) -> Reason:
    """Why a gate without cases fails: each name of its filter is known, and no case has them all."""
    if selection := describe_filter(gate):
        return Reason(code="no_case_selected", selection=selection)
    return Reason(code="no_case_in_run")


def _filter_hints(gate: Gate | NewFailures, run: Run) -> Iterator[str]:
    """A suggestion, or "", for each name that no case of the run has."""
    tags = sorted({name for case in run.cases for name in case.tags})
    for name, value in gate.tag.items():
        if name not in tags:
            yield _suggest_name(name, tags, "its tags are")
            continue
        values = sorted({case.tags[name] for case in run.cases if name in case.tags})
        if value not in values:
            yield _suggest_name(value, values, f"tag {name} is")
    for axis in ("tier", "category"):
        name = getattr(gate, axis)
        names = sorted({getattr(case, axis) for case in run.cases} - {None})
        if name is not None and name not in names:
            yield _suggest_name(name, names, f"{axis} is")


def _suggest_name(name: str, names: list[str], label: str) -> str:
    listed = " or ".join(repr(candidate[:_MAX_NAME_LENGTH]) for candidate in names[:_MAX_LISTED])
    more = f" or one of {len(names) - _MAX_LISTED:,} more" if len(names) > _MAX_LISTED else ""
    hint = did_you_mean(name, names, written=lambda candidate: candidate[:_MAX_NAME_LENGTH])
    return hint or (f"{label} {listed}{more}" if names else "")


_TEXT_KEYS = frozenset(
    {"name", "metric", "tag", "tier", "category", "failure", "retrieval", "$schema"}
)
_PYDANTIC_TERMS = {
    "valid number": "number such as 0.85",
    "valid dictionary": "mapping",
    "valid integer": "whole number",
    "valid string": "text",
    "greater than or equal to": "at least",
}
_RANGE_TOLERANCE = 1e-9  # a limit on changes must be this much below the range
_ErrorAt = Callable[..., InputError]  # of a problem, the place in the file, and the field
_EXAMPLE = "gates: [{name: retrieval_recall_at_5, threshold: 0.85}]"


@dataclass(frozen=True)
class ShipCriteria:
    """The gates of a file.

    Parameters
    ----------
    name : str
        As the file says, else the file's own without its ending.
    path : Path
    gates : sequence of Gate
        At least one; no two have one name.
    lines : mapping of str to int or None
        Where each gate begins, by its name.
    """

    name: str
    path: Path
    gates: tuple[Gate, ...]
    lines: Mapping[str, int | None]

    def error(self, gate: Gate, problem: str) -> InputError:
        """An error that names the file, the line and the gate."""
        return InputError(
            f"gate '{gate.name}': {problem}", path=self.path, line=self.lines[gate.name]
        )


def reject_unknown_slice(criteria: ShipCriteria, gate: Gate, run: Run) -> None:
    """Raise InputError for a filter with a name that no case of the run has."""
    for selection in (gate, gate.new_failures or gate):
        hint = next(_filter_hints(selection, run), None) if run.cases else None
        if hint is not None:
            problem = f"no question of the run has {describe_filter(selection)}"
            raise criteria.error(gate, f"{problem}; {hint}" if hint else problem)


def read_criteria(path: str | Path) -> ShipCriteria:
    """Read a criteria file, in YAML, JSON or TOML.

    ``gates`` is a list of gates, or a mapping of names to them. A gate of ``new_failures`` or of a
    ``metric`` needs no name.

    Raises
    ------
    InputError
        The file cannot be read or has no gate, or a gate is invalid or a duplicate; the message
        names the file, the line and the gate.
    """
    path = Path(path)
    source = read_config_file(path, _TEXT_KEYS)

    def error(problem: str, *spot: str | int, field: str | None = None) -> InputError:
        return InputError(problem, path=path, line=source.line(spot) if spot else None, field=field)

    gates: list[Gate] = []
    lines: dict[str, int | None] = {}
    for which, body, spot in _gate_bodies(source.data, error):
        gate = _parse_gate(_named_body(which, body, spot, error), spot, error)
        if gate.name in lines:
            first = lines[gate.name]
            raise error(f"gate '{gate.name}' repeats the one in line {first}; rename one", *spot)
        lines[gate.name] = source.line(spot)
        gates.append(gate)
    name = source.data.get("name")
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise error("name must be a text", "name")
    return ShipCriteria(name or path.stem, path, tuple(gates), lines)


def _gate_bodies(data: Any, error: _ErrorAt) -> Iterator[tuple[str, dict[str, Any], EntryPath]]:
    """What each gate is called in messages, its mapping, and its position."""
    example = f"write for example  {_EXAMPLE}"
    if data is None:
        raise error(f"the file is empty; {example}")
    if not isinstance(data, dict):
        raise error(f"the file is not a mapping; {example}", 0)
    for key in data:
        if key not in {"gates", "name", "$schema"}:
            hint = did_you_mean(key, ["gates", "name"]) or "write all gates under 'gates:'"
            raise error(f"a criteria file has no '{key}'; {hint}", key)
    gates = data.get("gates")
    if not gates:
        raise error(f"it has no gate, so every run would pass; {example}", "gates")
    if not isinstance(gates, list | dict):
        problem = "gates must be a list of gates, or a mapping of names to gates"
        raise error(f"{problem}; {example}", "gates")
    listed = isinstance(gates, list)
    for key, body in gates.items() if isinstance(gates, dict) else enumerate(gates):
        which = f"gate {key + 1}" if listed else f"gate '{key}'"
        if not isinstance(body, dict):
            example = "{name: ..., ...}" if listed else f"{key}: {{threshold: 0.85}}"
            raise error(f"{which} is not a mapping; write {example}", "gates", key)
        yield which, body, ("gates", key)


def _named_body(
    which: str, body: dict[str, Any], spot: EntryPath, error: _ErrorAt
) -> dict[str, Any]:
    """The mapping of a gate with its name."""
    within = body.get("new_failures")
    within = within if isinstance(within, dict) else {}
    parts = {(): body, ("tag",): body.get("tag"), ("new_failures",): within}
    for inside, part in parts.items():
        for key, value in part.items() if isinstance(part, dict) else ():  # no limit, no filter
            if value is None:
                problem = f"{which}: '{key}' is empty; give a value or remove it"
                raise error(problem, *spot, *inside, key, field=key)
    name = spot[-1]
    if isinstance(name, str):
        if body.get("name", name) != name:
            raise error(f"{which} is called '{body['name']}' inside; remove one name", *spot)
        if name == "new_failures" and "new_failures" not in body:
            inner = {key: body[key] for key in body if key not in {"severity", "name"}}
            body = {**{key: body[key] for key in body if key not in inner}, "new_failures": inner}
        return {**body, "name": name}
    conditions = [within[key] for key in ("failure", "retrieval") if key in within]
    default = "_".join(["new_failures", *map(str, conditions)])
    gate_name = body.get("name") or (default if "new_failures" in body else body.get("metric"))
    if not gate_name:
        raise error(f"{which} has no name; add one", *spot)
    return {**body, "name": gate_name}


def _parse_gate(body: dict[str, Any], spot: EntryPath, error: _ErrorAt) -> Gate:
    which = f"gate '{body['name']}'"
    try:
        gate = Gate.model_validate(body)
    except ValidationError as invalid:
        problems = invalid.errors()
        unknown = [problem for problem in problems if problem["type"] == "extra_forbidden"]
        problem = [*unknown, *problems][0]
        place = problem["loc"]
        if unknown:
            fields = (Gate if len(place) == 1 else NewFailures).model_fields
            key = str(place[-1])
            if key.startswith(("at_le", "min_")):  # the nearest name would be its opposite
                hint = "a minimum is called 'threshold'"
            else:
                hint = did_you_mean(key, fields) or f"known: {', '.join(fields)}"
            raise error(f"{which}: there is no '{place[-1]}'; {hint}", *spot, *place) from None
        field = ".".join(map(str, place)) or None
        message = f"{which}: {_validation_message(problem)}"
        raise error(message, *spot, *place, field=field) from None
    if limit := _limit_problem(gate):
        field, message = limit
        raise error(f"{which}: {message}", *spot, *filter(None, [field]), field=field)
    return gate


def _validation_message(error: Any) -> str:
    if error["type"] == "value_error":
        return str(error["msg"].removeprefix("Value error, "))
    value = error["input"]
    text = "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, list) else ""
    text = text or repr(value)[:60]
    problem = error["msg"].removeprefix("Input ")
    for strange, plain in _PYDANTIC_TERMS.items():
        problem = problem.replace(strange, plain)
    hint = ""
    if error["type"] == "literal_error" and isinstance(value, str):
        choices = [
            part.strip("'") for part in error["ctx"]["expected"].replace(" or ", ", ").split(", ")
        ]
        hint = did_you_mean(value, choices)
    return f"this {problem} (it is {text})" + (f"; {hint}" if hint else "")


def _limit_problem(gate: Gate) -> tuple[str | None, str] | None:
    """The field and the problem of a limit that every value of the metric meets or violates."""
    metric = gate.metric or gate.name
    within = None if gate.new_failures else metric_bounds(metric)
    if within is None:
        return None
    least, most = within
    for field in ("threshold", "at_most", "regression_max"):
        limit, change = getattr(gate, field), field == "regression_max"
        low, high = (0, most - _RANGE_TOLERANCE) if change else (least, most)
        if limit is None or low <= limit <= high:
            continue
        span = f"between {least:g} and {most:g}" if least > -math.inf else f"at most {most:g}"
        if most < limit <= 100:
            return field, f"{limit:g} is not {span}; write {limit / 100:g} for {limit:g}%"
        if change:
            return field, f"a change of {limit:g} is never exceeded; write 0.03 for 3 points"
        return field, f"{limit:g} is not {span}; fix it"
    limits = (gate.threshold, gate.at_most, gate.regression_max, gate.min_cases)
    if limits in {(low, high, None, None) for low in (None, least) for high in (None, most)}:
        span = f"between {least:g} and {most:g}"
        return None, f"every run passes, as {metric} is always {span}; fix its limits"
    return None
