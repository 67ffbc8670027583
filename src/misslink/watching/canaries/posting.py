"""One HTTP POST, bounded by time as a whole, that follows no redirect and reads no body."""

from __future__ import annotations

import contextlib
import http.client
import queue
import socket
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

__all__ = ["NotPostedError", "Posted", "address", "origin", "post"]

_SAFE = "/%:@!$&'()*+,;=~?"  # stands in a path or a query as it is


@dataclass(frozen=True)
class Posted:
    """What a server answered: its status and its headers, their names in lower case."""

    status: int
    headers: Mapping[str, str]


class NotPostedError(Exception):
    """No answer came; the message says why and holds nothing of the address but its host."""


def address(url: str) -> SplitResult | None:
    """Return the parts of an address that something can be posted to, None for any other."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme in {"http", "https"} and parts.hostname else None


def origin(parts: SplitResult) -> str:
    """Return scheme, host and port, all of an address that may be shown: the rest can be secret."""
    port = f":{parts.port}" if parts.port else ""
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


def post(
    parts: SplitResult, body: bytes, headers: Mapping[str, str], *, timeout_s: float
) -> Posted:
    """Send a body, and return what is answered.

    Parameters
    ----------
    parts : SplitResult
        From `address`. A user and a password in it are not sent; a proxy is not used.
    body : bytes
        What is sent.
    headers : mapping of str to str
        With it.
    timeout_s : float
        Seconds for all of it, above 0: name, connection, and an answer that comes in drops.

    Raises
    ------
    NotPostedError
        Nobody answered HTTP in that time.
    """
    # A thread, for neither the look-up of a name nor a trickling answer can be bounded otherwise.
    # It is a daemon: one that is stuck keeps nobody from ending.
    came: queue.Queue[Posted | NotPostedError] = queue.Queue()
    try:
        connection = _connection(parts, timeout_s)
    except (http.client.InvalidURL, UnicodeError, OSError) as problem:
        raise NotPostedError(f"the address cannot be used ({type(problem).__name__})") from None

    def send() -> None:
        came.put(_sent(connection, _target(parts), body, headers))

    threading.Thread(target=send, name="misslink-webhook", daemon=True).start()
    try:
        answer = came.get(timeout=timeout_s)
    except queue.Empty:
        _hang_up(connection)
        raise NotPostedError(f"no answer within {timeout_s:.3g} s") from None
    if isinstance(answer, NotPostedError):
        raise answer
    return answer


def _connection(parts: SplitResult, timeout_s: float) -> http.client.HTTPConnection:
    host = parts.hostname or ""
    if not host.isascii():
        host = host.encode("idna").decode()
    if parts.scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, parts.port, timeout=timeout_s, context=context)
    return http.client.HTTPConnection(host, parts.port, timeout=timeout_s)


def _target(parts: SplitResult) -> str:
    query = f"?{parts.query}" if parts.query else ""
    return quote(f"{parts.path or '/'}{query}", safe=_SAFE)


def _sent(
    connection: http.client.HTTPConnection, target: str, body: bytes, headers: Mapping[str, str]
) -> Posted | NotPostedError:
    try:
        connection.request("POST", target, body=body, headers=dict(headers))
        answer = connection.getresponse()
        return Posted(answer.status, {k.lower(): v for k, v in answer.getheaders()})
    except TimeoutError:
        return NotPostedError("no answer in time")
    except (OSError, http.client.HTTPException, ValueError, AttributeError) as problem:
        # AttributeError: the socket was taken away by `_hang_up` in the middle of its use.
        return NotPostedError(_why(problem))
    finally:
        connection.close()


def _why(problem: BaseException) -> str:
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"its certificate does not hold ({problem.verify_message})"
    if isinstance(problem, socket.gaierror):
        return "its host name is not known"
    if isinstance(problem, ConnectionRefusedError):
        return "nobody listens there"
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    return f"it does not answer as HTTP does ({type(problem).__name__})"


def _hang_up(connection: http.client.HTTPConnection) -> None:
    sock: Any = connection.sock
    if sock is not None:
        with contextlib.suppress(OSError):  # it may have been closed meanwhile
            sock.shutdown(socket.SHUT_RDWR)
