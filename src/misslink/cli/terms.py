"""How a judge is asked: the options of every command that asks one, each said once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeAlias, get_type_hints

import typer
from typer.models import OptionInfo

__all__ = [
    "AUDIT_OF_RUN",
    "CAPS",
    "CASES",
    "MODEL",
    "PACE",
    "PRICES",
    "PROMPTS",
    "REPEATS_OF_RUN",
    "Given",
    "asks_judge",
]

Given: TypeAlias = Mapping[str, Any]
"""What the command line says of the terms, by their names; None where it says nothing."""

_PANEL = "How the judge is asked"
_PARAMETER = "given"

# Options that go together, in the order of the help.
MODEL = ("base_url", "prompts", "temperature", "max_tokens")
CASES = (  # of commands that judge the cases of a run
    *("base_url", "temperature", "max_tokens", "context_length", "prompts"),
    *("repeats", "audit"),
)
PACE = ("timeout", "retries", "deadline", "rpm", "tpm")
PRICES = ("price_in", "price_out")
CAPS = ("max_calls", "max_cost")


def _option(default: Any, flag: str, text: str, **more: Any) -> Any:
    return typer.Option(default, flag, help=text, rich_help_panel=_PANEL, **more)


PROMPTS: Any = _option(
    None, "--prompts", "Folder of prompts that go before the built-in ones, or a language: de."
)
_REPEATS = ("--repeats", "How often each question is put.")
_AUDIT = (
    "--audit",
    "Of a cascade: share of what the cheap judge decided that both are asked.",
)

# By the names of `misslink.judging.terms.Terms`; that None says nothing goes without saying here.
_OPTIONS: dict[str, tuple[type, OptionInfo]] = {
    "base_url": (
        str,
        _option(None, "--base-url", "Of a judge behind a server.", show_default="OPENAI_BASE_URL"),
    ),
    "temperature": (float, _option(None, "--temperature", "Of the judge.", show_default="0")),
    "max_tokens": (int, _option(None, "--max-tokens", "Longest reply.", show_default="4096")),
    "context_length": (
        int,
        _option(
            None,
            "--context-length",
            "Tokens of prompt and reply.",
            show_default="what the server says",
        ),
    ),
    "prompts": (str, PROMPTS),
    "repeats": (int, _option(1, *_REPEATS)),
    "audit": (float, _option(0.05, *_AUDIT)),
    "timeout": (float, _option(300.0, "--timeout", "Seconds for one call.")),
    "retries": (
        int,
        _option(5, "--retries", "How often a call that brought nothing is repeated."),
    ),
    "deadline": (
        float,
        _option(None, "--deadline", "Seconds for all judging; the rest is skipped."),
    ),
    "rpm": (int, _option(None, "--rpm", "Requests a minute, never exceeded.")),
    "tpm": (int, _option(None, "--tpm", "Tokens a minute, held before each call.")),
    "price_in": (float, _option(None, "--price-in", "Of a million prompt tokens.")),
    "price_out": (float, _option(None, "--price-out", "Of a million completion tokens.")),
    "batch_price": (
        float,
        _option(
            0.5,
            "--batch-price",
            "Of --engine batch: what a token costs there, as a share of these prices.",
        ),
    ),
    "max_calls": (
        int,
        _option(
            None,
            "--max-calls",
            "Stop before the judge is called more often, tries in vain included.",
        ),
    ),
    "max_cost": (
        float,
        _option(None, "--max-cost", "Stop before more is spent; needs prices."),
    ),
}

# Of commands that ask the app and the judge of a run again.
REPEATS_OF_RUN: Any = _option(None, *_REPEATS, min=1, show_default="the run's")
AUDIT_OF_RUN: Any = _option(None, *_AUDIT, show_default="the run's")


def asks_judge(
    *names: str, **own: OptionInfo
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command options on how the judge is asked, in place of its parameter ``given``.

    Parameters
    ----------
    names : str
        Of `misslink.judging.terms.Terms`, in the order of the help.
    own : OptionInfo
        What the command has in place of the usual option of that name.

    Returns
    -------
    callable
        Makes of a command what Typer reads the options from. The command is called with what
        they say as ``given``, by the names of `Terms`, which it makes of it when it needs them:
        this file is read for every ``--help``, that one need not be.

    Raises
    ------
    KeyError
        There is no such option, or `own` has one that is not among the names.
    TypeError
        The command has no parameter ``given``.

    Examples
    --------
    >>> @asks_judge("base_url", *CAPS)
    ... def ask(judge: str, *, given: Given) -> None:
    ...     print(judge, dict(given))
    >>> list(inspect.signature(ask).parameters)
    ['judge', 'base_url', 'max_calls', 'max_cost']
    >>> ask("embedded", base_url=None, max_calls=3, max_cost=None)
    embedded {'base_url': None, 'max_calls': 3, 'max_cost': None}
    """
    if strange := own.keys() - set(names):
        raise KeyError(*strange)
    options = [_parameter(name, own.get(name)) for name in names]

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command)
        if _PARAMETER not in hints:
            raise TypeError(f"{command.__name__} has no parameter {_PARAMETER}")
        parameters: list[inspect.Parameter] = []
        for one in inspect.signature(command).parameters.values():
            if one.name == _PARAMETER:
                parameters += options
            else:
                parameters.append(one.replace(annotation=hints[one.name]))

        @wraps(command)
        def called(*args: Any, **said: Any) -> None:
            given = {name: said.pop(name) for name in names}
            command(*args, **said, **{_PARAMETER: given})

        # Typer asks both, and for types rather than for their names.
        called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            parameters, return_annotation=None
        )
        called.__annotations__ = {one.name: one.annotation for one in parameters}
        return called

    return with_options


def _parameter(name: str, own: OptionInfo | None) -> inspect.Parameter:
    kind, usual = _OPTIONS[name]
    option = own or usual
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=option,
        annotation=kind | None if option.default is None else kind,
    )
