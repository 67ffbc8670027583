"""What a server's list of models says of one: its context length, and what its tokens cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, TypeGuard

from misslink.judging.terms import Price

__all__ = ["Offer", "read_offer", "read_price"]

# vLLM; LM Studio with the model loaded; OpenRouter and LM Studio; llama.cpp as served, as trained.
_LENGTHS = (
    "max_model_len",
    "loaded_context_length",
    "context_length",
    "max_context_length",
    "context_window",
    "n_ctx",
    "n_ctx_train",
)
_MILLION = 1_000_000
_MOST = 1e12  # of any currency; more is no price


@dataclass(frozen=True)
class Offer:
    """What is known of a model; None is not said."""

    context_length: int | None = None
    price: Price | None = None


def read_offer(listing: Any, model: str) -> Offer:
    """Read the answer to ``GET /models``.

    Parameters
    ----------
    listing : object
        ``{"data": [{"id", ...}]}``, or whatever else came.
    model : str
        A server that lists one model only is taken to mean that one, whatever it calls it: a
        llama.cpp server answers to any name.

    Returns
    -------
    Offer
        Empty where the model is not listed, or nothing is said of it.
    """
    data = listing.get("data") if isinstance(listing, dict) else None
    models = [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []
    named = [item for item in models if item.get("id") == model] or models
    if len(named) != 1:
        return Offer()
    (entry,) = named
    meta = entry.get("meta")
    lengths = [
        part.get(name)
        for name in _LENGTHS
        for part in (entry, meta if isinstance(meta, dict) else {})
    ]
    known = [length for length in lengths if type(length) is int and length > 0]
    pricing = entry.get("pricing")
    return Offer(known[0] if known else None, _per_million(pricing))


def read_price(said: Any) -> Price | None:
    """Return the price kept as ``{"prompt", "completion"}`` per million tokens; None if none is."""
    if not isinstance(said, Mapping):
        return None
    prompt, completion = said.get("prompt"), said.get("completion")
    if _is_price(prompt) and _is_price(completion):
        return Price(float(prompt), float(completion))
    return None


def _is_price(said: Any) -> TypeGuard[float]:
    return type(said) in (int, float) and 0 <= said <= _MOST


def _per_million(pricing: Any) -> Price | None:
    """Read OpenRouter's prices, which are strings of money per token; below zero means unknown."""
    if not isinstance(pricing, dict):
        return None
    try:
        prices = [Decimal(str(pricing[part])) * _MILLION for part in ("prompt", "completion")]
    except (KeyError, InvalidOperation):
        return None
    if not all(price.is_finite() and price >= 0 for price in prices):
        return None
    return Price(*map(float, prices))
