"""What a failed call to an OpenAI-compatible server means for the questions after it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from misslink.judging.protocol import TryAgainError
from misslink.retry_after import seconds_to_wait

if TYPE_CHECKING:
    import openai

__all__ = ["passing", "why_pointless"]

_NO_SUCH = re.compile(
    r"not found|does(n't| not) exist|(invalid|unknown|no such) model", re.IGNORECASE
)
# By name: the client's HTTP library changed its package between the versions supported.
_NOBODY_THERE = ("ConnectError", "ConnectTimeout", "UnsupportedProtocol")
_PAYMENT_REQUIRED = 402
_TOO_MANY = 429
_PASSING = (408, 409, 425, _TOO_MANY)  # and every 5xx
_SERVER = 500


def why_pointless(
    error: openai.APIError, said: str, model: str, *, answered: bool = False
) -> str | None:
    """Why no other question would fare better; None where one might.

    Parameters
    ----------
    error : openai.APIError
        What the official client raised.
    said : str
        The server's complaint in its own words.
    model : str
    answered : bool
        Whether the server has answered before: then a connection that it does not take is
        trouble that may pass.
    """
    import openai

    status = getattr(error, "status_code", None)
    unheard = _nobody_there(error) and not answered
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
    elif "insufficient_quota" in (error.code, error.type) or status == _PAYMENT_REQUIRED:
        why = "its account has no credit left"
    return why


def passing(error: openai.APIError, said: str) -> TryAgainError | None:
    """What to raise for trouble that may pass; None where the server refuses this one question."""
    import openai

    if isinstance(error, openai.APITimeoutError):
        return TryAgainError("no reply came in time", "time")
    if not isinstance(error, openai.APIStatusError):
        if _nobody_there(error):
            return TryAgainError("nobody takes the connection any more", "absent")
        return TryAgainError("the connection broke before a reply came", "connection")
    status = error.status_code
    if status not in _PASSING and status < _SERVER:
        return None
    after = seconds_to_wait(error.response.headers)
    wait = "" if after is None else f" and asks to wait {after:g} s"
    problem = f"the server answers {status}{wait}: {said}"
    return TryAgainError(problem, "rate" if status == _TOO_MANY else "server", after)


def _nobody_there(error: openai.APIError) -> bool:
    """Whether no connection came about, so that nothing was sent."""
    return type(error.__cause__).__name__ in _NOBODY_THERE
