"""On what terms a judge is asked: where it is, how fast, how often, for how much."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from pathlib import Path

from misslink.errors import InputError

__all__ = ["Price", "Terms"]

_MILLION = 1_000_000
_MOST_REPEATS = 1000  # all samples of a question are under way at once; the spread needs far fewer


@dataclass(frozen=True)
class Price:
    """What tokens cost, in money per million of them, whatever the currency."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """What so many tokens cost."""
        return (self.prompt * prompt_tokens + self.completion * completion_tokens) / _MILLION


@dataclass(frozen=True)
class Terms:
    """On what terms a judge is asked.

    Parameters
    ----------
    base_url, api_key : str or None
        Of a judge behind a server; each by default from the judge's own environment variables.
    temperature : float or None
        None: the judge's default, 0.
    max_tokens : int or None
        The longest reply that is paid for. None: the judge's default.
    context_length : int or None
        How many tokens prompt and reply may have together. None: what the server says; where it
        does not say, a prompt is sent as it is.
    timeout : float
        Seconds for one call from its own beginning, after which it is tried again.
    retries : int
        How often a call that brought nothing is repeated.
    deadline : float or None
        Seconds for all judging of a run; then no further question is put.
    rpm : int or None
        Calls a minute that are never exceeded, tries in vain included.
    tpm : int or None
        Tokens a minute. Before a call as many are held as its prompt and reply may need: for the
        reply `max_tokens`, and after ten replies twice the longest of them. A minute is exceeded
        only by what outgrows that.
    max_calls : int or None
        How many calls are made at most, tries in vain included. Requests that a server refuses
        for their wording (a few at the start, by which it is found out what it takes) count too
        where they are known; those of the question that reaches the cap may pass it by up to
        three. They cost nothing: never are more than so many answered.
    max_cost : float or None
        How much is spent at most; needs both prices.
    price_in, price_out : float or None
        Of a million prompt tokens and completion tokens, in any currency.
    batch_price : float
        Of the engine 'batch': what a token costs there as a share of these prices, in [0, 1].
        Half of them is what OpenAI asks (https://platform.openai.com/docs/guides/batch).
    repeats : int
        How often each question is put, at most 1,000 times.
    audit : float
        Of a cascade: the share of what the cheap judge decided that the other one is asked too,
        drawn at random, in [0, 1].
    prompts : str, Path or None
        A folder whose prompts go before the built-in ones of the same name, or the name of a
        built-in folder of another language, such as ``de``.

    Raises
    ------
    InputError
        A number is out of range or not finite, or a cost is limited without prices.
    """

    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = None
    max_tokens: int | None = None
    context_length: int | None = None
    timeout: float = 300.0
    retries: int = 5
    deadline: float | None = None
    rpm: int | None = None
    tpm: int | None = None
    max_calls: int | None = None
    max_cost: float | None = None
    price_in: float | None = None
    price_out: float | None = None
    batch_price: float = 0.5
    repeats: int = 1
    audit: float = 0.05
    prompts: str | Path | None = None

    def __post_init__(self) -> None:
        _refuse_what_never_ends(self)
        positive = (
            *("max_tokens", "context_length", "timeout", "deadline", "rpm", "tpm"),
            *("repeats",),
        )
        for name in positive:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{_option(name)} is {value}; it must be more than 0")
        for name in ("retries", "max_calls", "max_cost", "price_in", "price_out", "temperature"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise InputError(f"{_option(name)} is {value}; it must not be below 0")
        for name in ("audit", "batch_price"):
            share = getattr(self, name)
            if not 0 <= share <= 1:
                raise InputError(f"{_option(name)} is {share:g}; it is a share, from 0 to 1")
        if (self.price_in is None) != (self.price_out is None):
            raise InputError("give both prices, --price-in and --price-out, or neither")
        if self.max_cost is not None and self.price is None:
            raise InputError("--max-cost needs prices: add --price-in and --price-out")

    @property
    def price(self) -> Price | None:
        """What tokens cost, where that is known."""
        if self.price_in is None or self.price_out is None:
            return None
        return Price(self.price_in, self.price_out)


def _refuse_what_never_ends(terms: Terms) -> None:
    for name in (each.name for each in fields(terms)):
        value = getattr(terms, name)
        if isinstance(value, float) and math.isinf(value):
            raise InputError(f"{_option(name)} is {value}; it must be a finite number")
    if terms.repeats > _MOST_REPEATS:
        raise InputError(f"--repeats is {terms.repeats}; it must be at most {_MOST_REPEATS}")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")
