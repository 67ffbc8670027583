"""Options that several commands share, including the judge options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeAlias, get_type_hints

import typer
from typer.models import OptionInfo

from misslink.judge.config import JudgeConfig


def option(default: Any, flag: str, text: str, **more: Any) -> Any:
    """A Typer option: `option(None, "--out", "Folder to write.")`."""
    return typer.Option(default, flag, help=text, **more)


OF_RUN = "the run's"  # the default of what an earlier run decides; no setting replaces it

JSON_OPTION: Any = option(False, "--json", "Print one JSON document.")
CACHE_OPTION: Any = option(
    None, "--cache", "Response cache of the judge.", show_default=".misslink/cache.sqlite"
)
JUDGE_OPTION: Any = option(
    ..., "--judge", "Judge, such as openai:MODEL.", envvar="MISSLINK_JUDGE", show_default=False
)
CONCURRENCY_OPTION: Any = option(8, "--concurrency", "Cases in flight at once.", min=1)
SEED_OPTION: Any = option(0, "--seed", "Random seed for samples and intervals.", min=0)
VERBOSE_OPTION: Any = option(False, "--verbose", "Print all metrics, warnings and notes, too.")
DRY_RUN_OPTION: Any = option(
    False, "--dry-run", "Print the number of judge calls and their cost; make none."
)
RUN_ARGUMENT: Any = typer.Argument(..., help="Run folder.")
OVERWRITE_OPTION: Any = option(False, "--overwrite", "Replace existing files.")
CRITERIA_OPTION: Any = option(None, "--criteria", "Criteria file, such as ship-criteria.yaml.")
KNOWN_ONLY_OPTION: Any = option(False, "--known-only", "Ignore labels of unknown cases.")
LABELS = ("--labels", "Human labels to calibrate the judge (CSV, JSONL); repeatable.")
CORPUS = ("--corpus", "Corpus of the app: JSONL, CSV, folder or chroma:FOLDER.")
MARKDOWN_OPTION: Any = option(None, "--markdown", "Markdown report to write; - prints it.")
HTML_OPTION: Any = option(None, "--html", "HTML page to write.")

# Commands that call an app.
_ID_KEY = ("--id-key", "Metadata key of the passage id.")
_INPUT_KEY = ("--input-key", "Input key of the app for the question.")
_APP_CONFIG = ("--app-config", "Call-time settings of the app (YAML, JSON, TOML).")
APP_CONFIG_OPTION: Any = option(None, *_APP_CONFIG, show_default=False)
APP_CONFIG_OF_RUN: Any = option(None, *_APP_CONFIG, show_default="the run's")
ID_KEY_OPTION: Any = option(None, *_ID_KEY)
INPUT_KEY_OPTION: Any = option(None, *_INPUT_KEY)

# Commands that call the app or the judge of a run again; without a value they take the run's.
JUDGE_OF_RUN: Any = option(None, "--judge", "Judge, such as openai:MODEL.", show_default=OF_RUN)
ID_KEY_OF_RUN: Any = option(None, *_ID_KEY, show_default=OF_RUN)
INPUT_KEY_OF_RUN: Any = option(None, *_INPUT_KEY, show_default=OF_RUN)

JudgeOptions: TypeAlias = Mapping[str, Any]
"""Values of the judge options, by the field names of JudgeConfig."""

_PARAMETER = "given"

# Groups of judge options, in the order of the help.
MODEL_OPTIONS = ("base_url", "prompts", "temperature", "max_tokens")
CASE_OPTIONS = (  # of commands that judge the cases of a run
    *("base_url", "temperature", "max_tokens", "context_length", "prompts"),
    *("repeats", "cascade_check"),
)
PACE_OPTIONS = ("timeout", "retries", "deadline", "rpm", "tpm")
PRICE_OPTIONS = ("price_in", "price_out")
CAP_OPTIONS = ("max_calls", "max_cost")


# Help of each judge option, and what it shows in place of a default of None. Name, type and default
# are those of the field of `JudgeConfig`.
_JUDGE_HELP: dict[str, tuple[str, str | bool]] = {
    "base_url": ("Base URL of the judge's server.", "OPENAI_BASE_URL"),
    "temperature": ("Sampling temperature.", "0"),
    "max_tokens": ("Maximum tokens of a reply.", "4096"),
    "context_length": ("Tokens of prompt and reply.", "from the server"),
    "prompts": ("Folder of prompts that replace built-in ones, or a language: de.", True),
    "repeats": ("Samples per question.", True),
    "cascade_check": ("Share of a cascade's cheap decisions that both judges get.", True),
    "retry_refused": ("Ask again what the judge refused to answer.", True),
    "timeout": ("Seconds per judge call.", True),
    "retries": ("Retries per failed judge call.", True),
    "deadline": ("Seconds for all judge calls; later ones are skipped.", True),
    "rpm": ("Maximum requests per minute.", True),
    "tpm": ("Maximum tokens per minute.", True),
    "price_in": ("Price of a million prompt tokens.", True),
    "price_out": ("Price of a million completion tokens.", True),
    "batch_price": ("Batch price, as a share of the live price.", True),
    "max_calls": ("Maximum judge calls, failed ones included.", True),
    "max_cost": ("Maximum cost; needs prices.", True),
}
JUDGE_TYPES: dict[str, Any] = get_type_hints(JudgeConfig) | {"prompts": str | None}


def _judge_option(name: str, **more: Any) -> Any:
    """The option of a field of `JudgeConfig`."""
    text, shown = _JUDGE_HELP[name]
    default = more.pop("default", getattr(JudgeConfig, name))
    settings = {"rich_help_panel": "Judge options", "show_default": shown, **more}
    return option(default, f"--{name.replace('_', '-')}", text, **settings)


PROMPTS_OPTION: Any = _judge_option("prompts")
REPEATS_OF_RUN: Any = _judge_option("repeats", default=None, min=1, show_default=OF_RUN)
CASCADE_CHECK_OF_RUN: Any = _judge_option("cascade_check", default=None, show_default=OF_RUN)
# Commands that judge the cases of a run again.
RERUN_OPTIONS = (*CASE_OPTIONS, *PACE_OPTIONS, *PRICE_OPTIONS, *CAP_OPTIONS)
# Commands that ask the judge about something else than the cases of a run.
CHECK_OPTIONS = (*MODEL_OPTIONS, *PACE_OPTIONS, *PRICE_OPTIONS, *CAP_OPTIONS)


def with_judge_options(
    *names: str, **own: OptionInfo
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace a command's parameter ``given`` by judge options.

    Parameters
    ----------
    names : str
        Field names of `misslink.judge.config.JudgeConfig`, in the order of the help.
    own : OptionInfo
        Replaces the usual option of that name.

    Returns
    -------
    callable
        A decorator. The command receives the option values as the mapping ``given``.

    Raises
    ------
    KeyError
        There is no such option, or `own` has a name that is not in `names`.
    TypeError
        The command has no parameter ``given``.

    Examples
    --------
    >>> @with_judge_options("base_url", *CAP_OPTIONS)
    ... def ask(judge: str, *, given: JudgeOptions) -> None:
    ...     print(judge, dict(given))
    >>> list(inspect.signature(ask).parameters)
    ['judge', 'base_url', 'max_calls', 'max_cost']
    >>> ask("heuristic", base_url=None, max_calls=3, max_cost=None)
    heuristic {'base_url': None, 'max_calls': 3, 'max_cost': None}
    """
    if unknown := own.keys() - set(names):
        raise KeyError(*unknown)
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=own.get(name) or _judge_option(name),
            annotation=JUDGE_TYPES[name] | None if name in own else JUDGE_TYPES[name],
        )
        for name in names
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command)
        if _PARAMETER not in hints:
            raise TypeError(f"{command.__name__} has no parameter {_PARAMETER}")
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            if parameter.name == _PARAMETER:
                parameters += options
            else:
                parameters.append(parameter.replace(annotation=hints[parameter.name]))

        @wraps(command)
        def wrapper(*args: Any, **kwargs: Any) -> None:
            given = {name: kwargs.pop(name) for name in names}
            command(*args, **kwargs, **{_PARAMETER: given})

        # Typer reads both, and needs types rather than their names.
        wrapper.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            parameters, return_annotation=None
        )
        wrapper.__annotations__ = {item.name: item.annotation for item in parameters}
        return wrapper

    return decorate
