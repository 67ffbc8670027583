"""Settings of a judge: address, speed, retries, limits, and prices."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from misslink.errors import InputError

DEFAULT_CACHE = Path(".misslink/cache.sqlite")
NO_KEY_NEEDED = "no-key-needed"  # what a server of your own is sent: clients insist on a key
_MILLION = 1_000_000
_MOST_REPEATS = 1000  # all samples of a question are under way at once; the spread needs far fewer


_FILE_SPEC = re.compile(r"(?P<target>.+\.py)(?::(?P<name>.*))?", re.DOTALL)
_MODULE_SPEC = re.compile(r"(?P<target>[^\W\d]\w*(?:\.[^\W\d]\w*)+):(?P<name>.*)", re.DOTALL)


def option_field(default: Any, text: str, **more: Any) -> Any:
    """A field that is an option of commands, with its help; `more` goes to `typer.Option`."""
    return field(default=default, metadata={"help": text, **more})


@dataclass(frozen=True)
class Price:
    """What tokens cost, in USD per million of them."""

    prompt: float
    completion: float

    def cost(self, prompt_tokens: int, completion_tokens: int) -> float:
        """What so many tokens cost."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / _MILLION


@dataclass(frozen=True)
class JudgeConfig:
    """Settings of a judge: address, speed, retries, limits, and prices.

    Parameters
    ----------
    base_url, api_key : str or None
        Of a judge behind a server. None: the judge's own environment variables.
    temperature : float or None
        None: the judge's default, 0.
    max_tokens : int or None
        The longest reply, in tokens. None: the judge's default.
    context_length : int or None
        How many tokens prompt and reply may have together. None: what the server says; where it
        says nothing, prompts are sent unchanged.
    timeout : float
        Seconds for one call, after which it is retried.
    retries : int
        Retries per failed judge call.
    deadline : float or None
        Seconds for all judging of a run; no question is sent afterwards.
    rpm : int or None
        Maximum calls per minute, failed ones included.
    tpm : int or None
        Maximum tokens per minute. A call reserves its prompt and `max_tokens` for the reply; after
        ten replies twice the longest of them.
    max_calls : int or None
        Maximum number of calls, failed ones included. Requests that a server refuses for their
        format do not count.
    max_cost : float or None
        Maximum cost in USD; needs both prices.
    price_in, price_out : float or None
        Price of a million prompt tokens and completion tokens, in USD.
    batch_price : float
        For the engine 'batch': the price of a token there as a share of these prices, in [0, 1].
        OpenAI charges half (https://platform.openai.com/docs/guides/batch).
    repeats : int
        Samples of each question, at most 1,000.
    cascade_check : float
        For a cascade: the share of the cheap judge's decisions that the expensive judge checks,
        sampled at random, in [0, 1].
    retry_refused : bool
        Ask questions again that the judge refused in an earlier run.
    prompts : str, Path or None
        A folder whose prompts take precedence over the built-in ones of the same name, or the name
        of a built-in folder of another language, such as ``de``.

    Raises
    ------
    InputError
        A number is out of range or not finite, or a cost is limited without prices.
    """

    base_url: str | None = option_field(
        None, "Base URL of the judge's server.", show_default="OPENAI_BASE_URL"
    )
    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = option_field(None, "Sampling temperature.", show_default="0")
    max_tokens: int | None = option_field(None, "Maximum tokens of a reply.", show_default="4096")
    context_length: int | None = option_field(
        None, "Tokens of prompt and reply.", show_default="from the server"
    )
    timeout: float = option_field(300.0, "Seconds per judge call.")
    retries: int = option_field(5, "Retries per failed judge call.")
    deadline: float | None = option_field(
        None, "Seconds for all judge calls; later ones are skipped."
    )
    rpm: int | None = option_field(None, "Maximum requests per minute.")
    tpm: int | None = option_field(None, "Maximum tokens per minute.")
    max_calls: int | None = option_field(None, "Maximum judge calls, failed ones included.")
    max_cost: float | None = option_field(None, "Maximum cost in USD; needs prices.")
    price_in: float | None = option_field(None, "USD for a million prompt tokens.")
    price_out: float | None = option_field(None, "USD for a million completion tokens.")
    batch_price: float = option_field(0.5, "Batch price, as a share of the live price.")
    repeats: int = option_field(1, "Samples per question.")
    cascade_check: float = option_field(
        0.05, "Share of a cascade's cheap decisions that both judges get."
    )
    retry_refused: bool = option_field(False, "Ask again what the judge refused to answer.")
    prompts: str | Path | None = option_field(
        None, "Folder of prompts that replace built-in ones, or a language: de."
    )

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, float) and math.isinf(value):
                raise InputError(f"{name} is {value}; it must be a finite number")
        if self.repeats > _MOST_REPEATS:
            raise InputError(f"repeats is {self.repeats}; it must be at most {_MOST_REPEATS}")
        positive = "max_tokens", "context_length", "timeout", "deadline", "rpm", "tpm", "repeats"
        for name in positive:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} is {value}; it must be more than 0")
        for name in ("retries", "max_calls", "max_cost", "price_in", "price_out", "temperature"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InputError(f"{name} is {value}; it must not be below 0")
        for name in ("cascade_check", "batch_price"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise InputError(f"{name} is {share:g}; it is a share, from 0 to 1")
        if (self.price_in is None) != (self.price_out is None):
            raise InputError("give both prices, price_in and price_out, or neither")
        if self.max_cost is not None and self.price is None:
            raise InputError("max_cost needs prices: add price_in and price_out")

    @property
    def price(self) -> Price | None:
        """What tokens cost, where that is known."""
        if self.price_in is None or self.price_out is None:
            return None
        return Price(self.price_in, self.price_out)


DEFAULTS = JudgeConfig()


def is_custom_judge(spec: str) -> bool:
    """Whether `spec` names a judge in a file or module, and no registered one.

    A file ends with ``.py``, a module has a dot in it; no registered judge's name has either.
    """
    return split_spec(spec) is not None


def split_spec(spec: str) -> tuple[str, str] | None:
    """Return file or module, and name, of a judge of the user's own; None of a registered one."""
    match = _FILE_SPEC.fullmatch(spec.strip()) or _MODULE_SPEC.fullmatch(spec.strip())
    return match and (match["target"], (match["name"] or "").strip())
