"""What a failed call means, whichever provider's package raised it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from misslink.judging.protocol import TryAgainError
from misslink.retry_after import seconds_to_wait

__all__ = ["failure", "is_refusal", "status_of"]

_TIMEOUT, _CONFLICT, _RATE, _PAYMENT = 408, 409, 429, 402
_REFUSED = (400, 413, 422)
_NO_CREDIT = re.compile(r"insufficient_quota|no credit|credit balance|billing", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"model.{0,80}(not found|not exist|unknown|invalid|not supported)|no such model"
    r"|(unknown|invalid) model|model_not_found",
    re.IGNORECASE | re.DOTALL,
)
# A package that keeps its connections for the life of the process met those of an earlier run.
_OTHER_LOOP = "Event loop is closed"
_NOBODY_THERE = ("ConnectError", "ConnectTimeout", "UnsupportedProtocol", "ClientConnectorError")
_IN_TIME = re.compile(r"timeout", re.IGNORECASE)
_BROKEN = re.compile(
    r"^(APIConnection|RemoteProtocol|Read|Write|Protocol|Connection|ClientPayload"
    r"|ServerDisconnected|IncompleteRead|ClientOS|JSONDecode|APIResponseValidation).*Error$"
)


def failure(error: Exception, said: str, *, answered: bool = False) -> TryAgainError | str | None:
    """What a failed call means for later ones.

    Parameters
    ----------
    error : Exception
        Of a client library. What it means is read from its status and its name, for no provider
        shares classes with another.
    said : str
        Its message, fit to be shown.
    answered : bool
        Whether the server has answered before: then a connection that it does not take is
        trouble that may pass.

    Returns
    -------
    TryAgainError or str or None
        The error to raise where a later call may fare better; why none would, as part of a
        sentence; None where it is about this one question or is not understood.
    """
    status = status_of(error)
    if status is None:
        return _unheard(error, said, answered)
    codes = [said, *(str(getattr(each, "code", "")) for each in _chain(error))]
    if status == _PAYMENT or (status == _RATE and _NO_CREDIT.search(" ".join(codes))):
        return "its account has no credit left"
    if status == _RATE:
        return TryAgainError("it is asked too often (429)", "rate", _wait(error))
    if status in (_TIMEOUT, _CONFLICT) or status >= 500:  # noqa: PLR2004 (every server's fault)
        return TryAgainError(f"the server answers {status}: {said}", "server", _wait(error))
    if status == 200:  # noqa: PLR2004 (a body that is no completion)
        return TryAgainError(f"the server's answer is no completion: {said}", "server")
    return _pointless(status, said)


def is_refusal(error: Exception) -> bool:
    """Whether the server, or its package before it, refuses the request as it is worded."""
    if isinstance(error, TypeError):  # others come after a reply, which asking again would waste
        return "unexpected keyword argument" in str(error)
    return status_of(error) in _REFUSED or isinstance(error, NotImplementedError)


def status_of(error: Exception) -> int | None:
    """The HTTP status that an error carries, in one of the places where clients keep it."""
    for each in _chain(error):
        response = getattr(each, "response", None)
        for found in (
            getattr(each, "status_code", None),
            getattr(response, "status_code", None),
            getattr(response, "status", None),
            getattr(each, "http_status", None),
            getattr(each, "code", None),
        ):
            if type(found) is int and 200 <= found < 600:  # noqa: PLR2004 (HTTP's own range)
                return found
    return None


def _pointless(status: int, said: str) -> str | None:
    why = None
    if status == 401:  # noqa: PLR2004
        why = "it refuses the key (401); check the provider's key in the environment"
    elif status == 403:  # noqa: PLR2004
        why = "it refuses access (403); check what the key may use"
    elif status == 404 or (status in _REFUSED and _NO_MODEL.search(said)):  # noqa: PLR2004
        why = f"it does not know the model or the address ({status}); check --judge: {said}"
    return why


def _unheard(error: Exception, said: str, answered: bool) -> TryAgainError | str | None:
    names = [type(each).__name__ for each in _chain(error)]
    if any(name in _NOBODY_THERE for name in names):
        if answered:
            return TryAgainError("nobody takes the connection any more", "absent")
        return "nobody answers there; check that the server runs and that the address is right"
    if any(_IN_TIME.search(name) for name in names):
        return TryAgainError("no reply came in time", "time")
    if any(_BROKEN.match(name) for name in names) or str(error) == _OTHER_LOOP:
        return TryAgainError(f"the connection broke before a reply came: {said}", "connection")
    return None


def _wait(error: Exception) -> float | None:
    """Seconds that the server asks to wait."""
    for each in _chain(error):
        headers = getattr(getattr(each, "response", None), "headers", None)
        if headers is not None:
            return seconds_to_wait(headers)
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what caused it."""
    seen: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in seen:
        seen.append(each)
        yield each
        each = each.__cause__ or each.__context__
