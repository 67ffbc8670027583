"""Estimate the tokens of texts and questions."""

from __future__ import annotations

import math

from misslink.judge import protocol

BYTES_PER_TOKEN = 4
MARGIN = 1.25  # code, numbers and other scripts have shorter tokens than English prose


def estimate_tokens(text: str) -> int:
    """How many tokens a text has at most, as a rule: a quarter of its bytes and a margin.

    Bytes, for a character of a script other than the Latin one is about a token itself.
    """
    return math.ceil(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN * MARGIN)


def estimate_ask_tokens(ask: protocol.Ask) -> int:
    """How many tokens an ask has at most, as a rule: its messages and its JSON schema."""
    texts = [message["content"] for message in ask.messages]
    return sum(map(estimate_tokens, [*texts, protocol.schema_json(ask.schema)]))
