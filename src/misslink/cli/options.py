"""Options that several commands share, including the judge options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial, wraps
from typing import Any, TypeAlias, get_type_hints

import typer
from pydantic import TypeAdapter, ValidationError
from typer.models import OptionInfo

from misslink.errors import InputError, did_you_mean
from misslink.judge.config import JudgeConfig
from misslink.pipeline.config import EvaluationConfig


def option(default: Any, flag: str, text: str, **more: Any) -> Any:
    """A Typer option: `option(None, "--out", "Folder to write.")`."""
    return typer.Option(default, flag, help=text, **more)


_FIELDS = {
    field.name: field
    for config in (JudgeConfig, EvaluationConfig)
    for field in fields(config)
    if "help" in field.metadata
}
_TYPES = {"bool": bool, "int": int, "float": float, "int | None": int | None}
_TYPES |= {"float | None": float | None}


def field_type(name: str) -> Any:
    """The type of the option of a field, which may be narrower than that of the field."""
    field = _FIELDS[name]
    return field.metadata.get("type") or _TYPES.get(str(field.type), str | None)


def field_option(name: str, **more: Any) -> Any:
    """The option of a field of `JudgeConfig` or `EvaluationConfig`; `more` replaces its settings."""
    field = _FIELDS[name]
    settings = {**field.metadata, "default": field.default, **more}
    default, text = settings.pop("default"), settings.pop("help")
    flag = settings.pop("flag", f"--{name.replace('_', '-')}")
    for key in ("type", "decides"):
        settings.pop(key, None)
    return option(default, flag, text, **settings)


OF_RUN = "the run's"  # the default of what an earlier run decides; no setting replaces it

JSON_OPTION: Any = option(False, "--json", "Print one JSON document.")
CACHE_OPTION: Any = option(
    None, "--cache", "Response cache of the judge, or none.", show_default=".misslink/cache.sqlite"
)
JUDGE_OPTION: Any = option(
    ..., "--judge", "Judge, such as openai:MODEL.", envvar="MISSLINK_JUDGE", show_default=False
)
CONCURRENCY_OPTION: Any = field_option("concurrency")
SEED_OPTION: Any = field_option("seed")
VERBOSE_OPTION: Any = option(False, "--verbose", "Print all metrics, warnings and notes, too.")
DRY_RUN_OPTION: Any = option(
    False, "--dry-run", "Print the number of judge calls and their cost; make none."
)
RUN_ARGUMENT: Any = typer.Argument(..., help="Run folder.")
OVERWRITE_OPTION: Any = option(False, "--overwrite", "Replace existing files.")
CRITERIA_OPTION: Any = option(None, "--criteria", "Criteria file, such as ship-criteria.yaml.")
KNOWN_ONLY_OPTION: Any = field_option("known_only")
MARKDOWN_OPTION: Any = option(None, "--markdown", "Markdown report to write; - prints it.")
HTML_OPTION: Any = option(None, "--html", "HTML page to write.")

# Commands that call the app or the judge of a run again; without a value they take the run's.
JUDGE_OF_RUN: Any = option(None, "--judge", "Judge, such as openai:MODEL.", show_default=OF_RUN)
APP_CONFIG_OF_RUN: Any = field_option("app_config", show_default=OF_RUN)
ID_KEY_OF_RUN: Any = field_option("id_key", show_default=OF_RUN)
INPUT_KEY_OF_RUN: Any = field_option("input_key", show_default=OF_RUN)

JudgeOptions: TypeAlias = Mapping[str, Any]
"""Values of the judge options, by the field names of JudgeConfig."""

OptionValues: TypeAlias = dict[str, Any]
"""Values of the options of an evaluation, by the field names of EvaluationConfig."""

_PANEL = "Judge options"
_judge_option = partial(field_option, rich_help_panel=_PANEL)
PROMPTS_OPTION: Any = _judge_option("prompts")
PRICE_OPTIONS: Any = _judge_option("price_in"), _judge_option("price_out")
REPEATS_OF_RUN: Any = _judge_option("repeats", default=None, min=1, show_default=OF_RUN)
# What has an option of its own. Settings and --judge-option have all fields of JudgeConfig but the key,
# which everybody could read on a command line.
CHECK_OPTIONS = ("base_url", "prompts")
CASE_OPTIONS = (*CHECK_OPTIONS, "repeats")  # of commands that judge the cases of a run
# Fields that a command on a run takes from there, whatever the settings are.
FIELDS_OF_RUN = (
    *("base_url", "prompts", "temperature", "max_tokens", "context_length"),
    *("repeats", "cascade_check"),
)
JUDGE_FIELDS = tuple(field.name for field in fields(JudgeConfig) if field.name != "api_key")


def _after_settings(context: typer.Context, given: list[str]) -> list[str]:
    """Options of the command line after those of the settings, which they would replace as a whole."""
    return [*(context.default_map or {}).get("judge_option", ()), *given]


_JUDGE_OPTION: Any = option(
    [],
    "--judge-option",
    "Judge setting, such as max-calls=500; repeatable.",
    metavar="NAME=VALUE",
    callback=_after_settings,
    show_default=False,
    rich_help_panel=_PANEL,
)


def with_judge_options(
    *names: str, **own: OptionInfo
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace a command's parameter ``given`` by judge options, and ``--judge-option``.

    Parameters
    ----------
    names : str
        Field names of `misslink.judge.config.JudgeConfig`, in the order of the help.
    own : OptionInfo
        Replaces the usual option of that name.

    Returns
    -------
    callable
        A decorator. The command receives the values as the mapping ``given``: those of `names`, and
        what ``--judge-option`` names.

    Raises
    ------
    KeyError
        There is no such option, or `own` has a name that is not in `names`.
    TypeError
        The command has no parameter ``given``.

    Examples
    --------
    >>> @with_judge_options("base_url")
    ... def ask(judge: str, *, given: JudgeOptions) -> None:
    ...     print(judge, dict(given))
    >>> list(inspect.signature(ask).parameters)
    ['judge', 'base_url', 'judge_option']
    >>> ask("heuristic", base_url=None, judge_option=["max-calls=3"])
    heuristic {'base_url': None, 'max_calls': 3}
    """
    if unknown := own.keys() - set(names):
        raise KeyError(*unknown)
    kind = inspect.Parameter.KEYWORD_ONLY
    options = {
        name: inspect.Parameter(
            name,
            kind,
            default=own.get(name) or _judge_option(name),
            annotation=field_type(name) | None if name in own else field_type(name),
        )
        for name in names
    }
    options["judge_option"] = inspect.Parameter(
        "judge_option", kind, default=_JUDGE_OPTION, annotation=list[str]
    )
    return partial(_replace_parameter, "given", options, read=_read_judge_options)


def _read_judge_options(values: Mapping[str, Any]) -> JudgeOptions:
    """The values of judge options by field; of two with one name the later."""
    given = {name: value for name, value in values.items() if name != "judge_option"}
    for text in values["judge_option"]:
        name, equals, value = text.partition("=")
        field = name.strip().replace("-", "_")
        if field not in JUDGE_FIELDS or not equals:
            known = [each.replace("_", "-") for each in JUDGE_FIELDS]
            hint = did_you_mean(name.strip(), known) or f"known: {', '.join(known)}"
            problem = f"there is no judge setting '{name}'" if equals else "write NAME=VALUE"
            raise InputError(f"{problem}; {hint}", field=f"--judge-option {text}")
        try:
            given[field] = TypeAdapter(field_type(field)).validate_python(value)
        except ValidationError:
            wanted = {bool: "true or false", int: "a whole number", int | None: "a whole number"}
            kind = wanted.get(field_type(field), "a number")
            raise InputError(f"'{value}' is not {kind}", field=f"--judge-option {name}") from None
    return given


def with_evaluation_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replace a command's parameter ``options`` by the options of an evaluation, but for the app."""
    names = [field.name for field in fields(EvaluationConfig) if field.name in _FIELDS]
    kind = inspect.Parameter.KEYWORD_ONLY
    options = {
        name: inspect.Parameter(name, kind, default=field_option(name), annotation=field_type(name))
        for name in names
    }
    return _replace_parameter("options", options, command)


def _replace_parameter(
    replaced: str,
    options: Mapping[str, inspect.Parameter],
    command: Callable[..., None],
    read: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
) -> Callable[..., None]:
    """Return the command with several parameters instead of one, which gets them as a dict."""
    hints = get_type_hints(command)
    if replaced not in hints:
        raise TypeError(f"{command.__name__} has no parameter {replaced}")
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        if parameter.name == replaced:
            parameters += options.values()
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))

    @wraps(command)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        values = {name: kwargs.pop(name) for name in options}
        command(*args, **kwargs, **{replaced: read(values)})

    # Typer reads both, and needs types rather than their names.
    wrapper.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        parameters, return_annotation=None
    )
    wrapper.__annotations__ = {item.name: item.annotation for item in parameters}
    return wrapper
