"""Who may talk to the page's server: this machine's own page, and nobody through its browser.

A page from elsewhere that is open in the same browser can send requests to 127.0.0.1, and a name
that its owner points there (DNS rebinding) makes the browser believe that both are one site. Hence
the Host must be this address itself, the Origin, where there is one, the same, the browser must not
call the request cross-site, and what is posted must be JSON, which no form can send.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any

__all__ = ["BODY_LIMIT", "HEADERS", "Guard"]

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

BODY_LIMIT = 100_000  # bytes
_HTTP = 80  # the port that a browser leaves out of Host and Origin
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_OWN = ("same-origin", "none")  # of Sec-Fetch-Site; none: a person typed the address


class Guard:
    """An ASGI app before another: refuses what is not of the page itself.

    Parameters
    ----------
    app : ASGI app
    port : int
        Of 127.0.0.1, on which it is served.
    """

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], port: int) -> None:
        self._app = app
        own = ("127.0.0.1", "localhost")
        self._hosts = {f"{name}:{port}" for name in own}
        if port == _HTTP:
            self._hosts.update(own)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        refused = self._refused(scope)
        body = b""
        if refused is None and scope["method"] == "POST":
            body, whole = await _body(receive)
            if not whole:
                refused = 413, f"a request has at most {BODY_LIMIT:,} bytes"
        if refused is not None:
            await _refuse(send, *refused)
            return

        async def read() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *own]
            await send(message)

        await self._app(scope, read, answer)

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason of a refusal; None where there is none."""
        given: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts, method = given.get("host", []), scope["method"]
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "this is served at 127.0.0.1 alone; open the address that misslink printed"
        origins = {f"http://{host}" for host in self._hosts}
        if any(origin.lower() not in origins for origin in given.get("origin", ())):
            return 403, "a page from elsewhere may not ask this"
        if any(site.lower() not in _OWN for site in given.get("sec-fetch-site", ())):
            return 403, "a page from elsewhere may not ask this"
        if method not in {"GET", "HEAD", "POST"}:
            return 405, f"{method[:20]} is not understood here"
        return _refused_content(given) if method == "POST" else None


def _refused_content(given: Mapping[str, Sequence[str]]) -> tuple[int, str] | None:
    """Status and reason of a refusal of what is posted, by its headers."""
    kind = given.get("content-type", [""])[0].partition(";")[0].strip().lower()
    if kind != "application/json":
        return 415, "what is posted must be JSON"
    length = given.get("content-length", ["0"])[0]
    if not length.isdecimal() or int(length) > BODY_LIMIT:
        return 413, f"a request has at most {BODY_LIMIT:,} bytes"
    return None


async def _body(receive: Receive) -> tuple[bytes, bool]:
    """What was posted, and whether it is all and not too much."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":  # who posted it has left
            return b"", False
        body += message.get("body", b"")
        if len(body) > BODY_LIMIT:
            return b"", False
        if not message.get("more_body"):
            return body, True


async def _refuse(send: Send, status: int, reason: str) -> None:
    content = json.dumps({"error": reason}).encode()
    headers = {**HEADERS, "content-type": "application/json", "connection": "close"}
    headers["content-length"] = str(len(content))
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": content})
