"""Settings of a project: `misslink.toml`, or `[tool.misslink]` in `pyproject.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    create_model,
)

from misslink.cli.options import CASE_OPTIONS, JUDGE_TYPES, OF_RUN
from misslink.errors import InputError, did_you_mean
from misslink.io.config_files import read_toml
from misslink.judge.config import JudgeConfig

CONFIG_FILE = "misslink.toml"
_KINDS = {
    "string_type": "a text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list of texts",
    "model_type": "a table",
    "greater_than": "more than 0",
}


class _Settings(BaseModel):
    """A key has the name, type and meaning of the option; options replace settings."""

    model_config = ConfigDict(
        strict=True, extra="forbid", alias_generator=lambda name: name.replace("_", "-")
    )

    app: str | None = None
    goldset: str | None = None
    corpus: str | None = None
    judge: str | None = None
    k: PositiveInt | None = None
    criteria: str | None = None
    labels: list[str] | None = None
    embedding: str | None = None
    cache: str | None = None
    concurrency: PositiveInt | None = None
    id_key: str | None = None
    input_key: str | None = None
    app_timeout: PositiveFloat | None = None
    seed: int | None = None


_JUDGE_FIELDS: Any = {
    name: (hint | None, None)
    for name, hint in JUDGE_TYPES.items()
    if name != "api_key"  # secrets belong in the environment
}
Settings = create_model("Settings", __base__=_Settings, **_JUDGE_FIELDS)


def config_file(folder: Path) -> tuple[str, Any] | None:
    """Return the name and the content of a folder's settings; None if it has none.

    Raises
    ------
    InputError
        misslink.toml cannot be read or is not TOML; the message names the line.
    """
    for name in (CONFIG_FILE, "pyproject.toml"):
        if not (folder / name).exists():
            continue
        try:
            data: Any = read_toml(folder / name)
        except InputError:
            if name == CONFIG_FILE:
                raise
            continue  # other programs report it
        tool = data.get("tool") if name != CONFIG_FILE else None
        own = data if name == CONFIG_FILE else isinstance(tool, dict) and tool.get("misslink")
        if own or name == CONFIG_FILE:
            return name, own
    return None


def _checked(data: Any, file: str) -> dict[str, Any]:
    try:
        settings = Settings.model_validate(data)
        judge_settings = settings.model_dump(include=set(_JUDGE_FIELDS), exclude_none=True)
        JudgeConfig(**judge_settings)  # checks the ranges
    except InputError as error:
        raise InputError(error.problem.replace("--", ""), path=file) from None
    except ValidationError as invalid:
        problem = invalid.errors()[0]
        key = ".".join(map(str, problem["loc"]))
        if problem["type"] == "extra_forbidden":
            keys = [str(field.alias) for field in Settings.model_fields.values()]
            hint = did_you_mean(key.replace("_", "-"), keys) or f"known: {', '.join(keys)}"
            raise InputError(f"there is no setting '{key}'; {hint}", path=file) from None
        kind = _KINDS.get(problem["type"], "another value")
        value = repr(problem["input"])[:60]
        raise InputError(f"this must be {kind} (it is {value})", path=file, field=key) from None
    return settings.model_dump(exclude_none=True)


def read_defaults(command: Any) -> dict[str, Any]:
    """Return the settings of the current folder as the default map of a click command.

    Raises
    ------
    InputError
        A key or a value is wrong; the message names the file and the key.
    """
    file = config_file(Path())
    return {} if file is None else _defaults(command, _checked(file[1], file[0]))


def _defaults(command: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    if hasattr(command, "commands"):
        children = command.commands.items()
        return {name: _defaults(child, settings) for name, child in children}
    by_run = {parameter.name for parameter in command.params if parameter.show_default == OF_RUN}
    ignored = {*by_run, *CASE_OPTIONS} if by_run else set()
    return {
        parameter.name: settings[parameter.name]
        for parameter in command.params
        if parameter.name in settings and parameter.name not in ignored
    }
