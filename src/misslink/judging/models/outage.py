"""What a failed call to an OpenAI-compatible server means for the questions after it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import openai

__all__ = ["trouble", "why_pointless"]

_NO_SUCH = re.compile(
    r"not found|does(n't| not) exist|(invalid|unknown|no such) model", re.IGNORECASE
)
# By name: the client's HTTP library changed its package between the versions supported.
_NOBODY_THERE = ("ConnectError", "ConnectTimeout", "UnsupportedProtocol")
_PAYMENT_REQUIRED = 402


def why_pointless(error: openai.APIError, said: str, model: str) -> str | None:
    """Why no other question would fare better; None where one might.

    Parameters
    ----------
    error : openai.APIError
        What the official client raised after its retries.
    said : str
        The server's complaint in its own words.
    model : str
    """
    import openai

    status = getattr(error, "status_code", None)
    unheard = type(error.__cause__).__name__ in _NOBODY_THERE
    about_model = status in (400, 404) and "model" in said.lower() and _NO_SUCH.search(said)
    why = None
    if isinstance(error, openai.APIConnectionError) and unheard:
        why = "nobody answers there; check that the server runs and that the address is right"
    elif isinstance(error, openai.AuthenticationError):
        why = "it refuses the key (401); check OPENAI_API_KEY"
    elif isinstance(error, openai.PermissionDeniedError):
        why = "it refuses access (403); check what OPENAI_API_KEY may use"
    elif error.code == "model_not_found" or about_model:
        why = f"it does not know the model '{model}'; check --judge"
    elif isinstance(error, openai.NotFoundError):
        why = (
            f"it knows no such address or no model '{model}' (404); check --judge and that the "
            "base URL is the one that ends in /v1"
        )
    elif error.code == "insufficient_quota" or status == _PAYMENT_REQUIRED:
        why = "its account has no credit left"
    return why


def trouble(error: openai.APIError, said: str) -> str:
    """Why no reply came to one question, as part of a sentence."""
    import openai

    if isinstance(error, openai.APITimeoutError):
        return "no reply came in time"
    if not isinstance(error, openai.APIStatusError):
        return "the connection broke before a reply came, retries included"
    waiting = error.response.headers.get("retry-after")
    wait = f" and asks to wait {waiting} s" if waiting else ""
    return f"the server answers {error.status_code}{wait}: {said}"
