"""Ship criteria: what a run must reach, and must not lose, before it may ship."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from misslink.deciding.gates import Gate, NewFailures
from misslink.deciding.naming import bounds
from misslink.errors import InputError, did_you_mean
from misslink.files.located import Located, Spot, read_located

__all__ = ["Criteria", "read_criteria"]

_TEXTS = frozenset({"name", "metric", "tag", "tier", "category", "cause", "retrieval", "$schema"})
_SAID = {
    "valid number": "number such as 0.85",
    "valid dictionary": "mapping",
    "valid integer": "whole number",
    "valid string": "text",
    "greater than or equal to": "at least",
}
_NONE_LEFT = 1e-9  # as much less than the whole range a change must be allowed to be
_EXAMPLE = "gates: [{name: retrieval_recall_at_5, threshold: 0.85}]"


@dataclass(frozen=True)
class Criteria:
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

    def refusal(self, gate: Gate, problem: str) -> InputError:
        """The error to raise of a gate: it names the file, the line and the gate."""
        return InputError(
            f"gate '{gate.name}': {problem}", path=self.path, line=self.lines[gate.name]
        )


def read_criteria(path: str | Path) -> Criteria:
    """Read a criteria file, in YAML or JSON.

    ``gates`` is a list of gates, or a mapping of names to them. A gate of ``new_failures`` or of a
    ``metric`` needs no name.

    Raises
    ------
    InputError
        The file cannot be read, holds no gate, or a gate has an unknown key, a value that cannot
        be, demands nothing or is there twice. The message names the file, the line and the gate.
    """
    path = Path(path)
    found = read_located(path, _TEXTS)
    gates: list[Gate] = []
    lines: dict[str, int | None] = {}
    for body, spot in _bodies(path, found):
        line = found.line(spot)
        gate = _gate(path, found, body, spot)
        if gate.name in lines:
            raise InputError(
                f"gate '{gate.name}' is there twice, the first time in line {lines[gate.name]}; "
                "give one another name",
                path=path,
                line=line,
            )
        lines[gate.name] = line
        gates.append(gate)
    name = found.data.get("name")
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise InputError("the name is a text", path=path, line=found.line(("name",)))
    return Criteria(name or path.stem, path, tuple(gates), lines)


def _bodies(path: Path, found: Located) -> list[tuple[dict[str, Any], Spot]]:
    """What stands for each gate, its name in it, and where."""
    data = found.data
    if data is None:
        raise InputError(f"there is nothing in it; write for example  {_EXAMPLE}", path=path)
    if not isinstance(data, dict):
        raise InputError(f"this is no mapping; write for example  {_EXAMPLE}", path=path, line=1)
    for key in data:
        if key not in {"gates", "name", "$schema"}:
            hint = did_you_mean(key, ["gates", "name"]) or "all gates stand under 'gates:'"
            raise InputError(
                f"a criteria file has no '{key}'; {hint}", path=path, line=found.line((key,))
            )
    gates, line = data.get("gates"), found.line(("gates",))
    if not gates or not isinstance(gates, list | dict):
        problem = "it has no gate, and so would pass whatever the run"
        if gates:
            problem = "gates is a list of gates, or a mapping of names to them"
        raise InputError(f"{problem}; write for example  {_EXAMPLE}", path=path, line=line)
    entries: list[tuple[str | None, Any, Spot]] = (
        [(None, body, ("gates", at)) for at, body in enumerate(gates)]
        if isinstance(gates, list)
        else [(name, body, ("gates", name)) for name, body in gates.items()]
    )
    return [(_named(path, found, *entry), entry[2]) for entry in entries]


def _named(path: Path, found: Located, key: str | None, body: Any, spot: Spot) -> dict[str, Any]:
    which = f"gate '{key}'" if key is not None else f"gate {int(spot[-1]) + 1}"
    line = found.line(spot)
    if not isinstance(body, dict):
        written = f"{key}: {{threshold: 0.85}}" if key is not None else "{name: ..., ...}"
        raise InputError(
            f"{which} is no mapping of what it demands; write {written}", path=path, line=line
        )
    _refuse_empty(path, found, which, body, spot)
    if key is not None:
        if body.get("name", key) != key:
            raise InputError(
                f"{which} is called '{body['name']}' inside; remove one name", path=path, line=line
            )
        if key == "new_failures" and "new_failures" not in body:
            outer = {name: body[name] for name in ("severity", "name") if name in body}
            inner = {name: value for name, value in body.items() if name not in outer}
            return {**outer, "name": key, "new_failures": inner}
        return {**body, "name": key}
    if body.get("name") is None:
        within = body.get("new_failures")
        within = within if isinstance(within, dict) else {}
        what = [within[key] for key in ("cause", "retrieval") if key in within]
        default = "_".join(["new_failures", *map(str, what)])
        name = default if "new_failures" in body else body.get("metric")
        if not name:
            raise InputError(f"{which} has no name; add one", path=path, line=line)
        return {**body, "name": name}
    return body


def _refuse_empty(path: Path, found: Located, which: str, body: dict[str, Any], spot: Spot) -> None:
    """Refuse a key with nothing behind it: a limit would not be held, a selection not be made."""
    for key, value in body.items():
        if value is None:
            raise InputError(
                f"{which}: '{key}' is empty; give a value or remove it",
                path=path,
                line=found.line((*spot, key)),
                field=key,
            )
        if isinstance(value, dict):
            _refuse_empty(path, found, which, value, (*spot, key))


def _gate(path: Path, found: Located, body: dict[str, Any], spot: Spot) -> Gate:
    which = f"gate '{body['name']}'"
    inner = body.get("new_failures")
    for part, model in ((body, Gate), (inner, NewFailures)):
        for key in part if isinstance(part, dict) else ():
            if key not in model.model_fields:
                hint = did_you_mean(key, model.model_fields)
                known = hint or f"known: {', '.join(model.model_fields)}"
                raise InputError(
                    f"{which}: there is no '{key}'; {known}",
                    path=path,
                    line=found.line((*spot, key) if part is body else (*spot, "new_failures", key)),
                )
    try:
        gate = Gate.model_validate(body)
    except ValidationError as invalid:
        error = invalid.errors()[0]
        place = tuple(error["loc"])
        line = found.line((*spot, *place))
        field = ".".join(map(str, place)) or None
        raise InputError(f"{which}: {_told(error)}", path=path, line=line, field=field) from None
    _check_range(path, found, gate, spot)
    return gate


def _told(error: Any) -> str:
    if error["type"] == "value_error":
        return str(error["msg"].removeprefix("Value error, "))
    given = error["input"]
    shown = "a mapping" if isinstance(given, dict) else "a list" if isinstance(given, list) else ""
    shown = shown or repr(given)[:60]
    problem = error["msg"].removeprefix("Input ")
    for strange, said in _SAID.items():
        problem = problem.replace(strange, said)
    hint = ""
    if error["type"] == "literal_error" and isinstance(given, str):
        known = [
            part.strip("'") for part in error["ctx"]["expected"].replace(" or ", ", ").split(", ")
        ]
        hint = did_you_mean(given, known)
    return f"this {problem} (it is {shown})" + (f"; {hint}" if hint else "")


def _check_range(path: Path, found: Located, gate: Gate, spot: Spot) -> None:
    """Refuse a limit that no value of the metric passes or fails."""
    metric = gate.metric or gate.name
    within = None if gate.new_failures else bounds(metric)
    if within is None:
        return
    least, most = within
    for field in ("threshold", "at_most", "regression_max"):
        limit = getattr(gate, field)
        change = field == "regression_max"
        # A change is given in points, also of what may be below 0.
        if limit is None or (0 if change else least) <= limit <= most - (change and _NONE_LEFT):
            continue
        span = f"between {least:g} and {most:g}" if least > -math.inf else f"at most {most:g}"
        problem = f"{limit:g} is not {span}; mend it"
        if most < limit <= 100:  # noqa: PLR2004
            problem = problem.replace("mend it", f"write {limit / 100:g} for {limit:g} %")
        elif change:
            problem = f"a change of {limit:g} is never exceeded; write 0.03 for 3 points"
        raise InputError(
            f"gate '{gate.name}': {problem}",
            path=path,
            line=found.line((*spot, field)),
            field=field,
        )
    limits = (gate.threshold, gate.at_most, gate.regression_max, gate.min_cases)
    if limits in {(low, high, None, None) for low in (None, least) for high in (None, most)}:
        raise InputError(
            f"gate '{gate.name}': it demands nothing, as every {metric} is between {least:g} and "
            f"{most:g}; mend its limits",
            path=path,
            line=found.line(spot),
        )
