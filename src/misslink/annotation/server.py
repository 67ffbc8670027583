"""The annotation page over HTTP, on 127.0.0.1 alone."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import socket
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.annotation.label_writer import UnsavedError
from misslink.annotation.session import LabelSession, NothingToUndoError
from misslink.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_LIMIT = 100_000  # bytes
_HTTP_PORT = 80  # the port that a browser leaves out of Host and Origin
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
_USER_HEADER = "x-misslink-token"
_SAME_SITE = {"same-origin", "none"}  # of Sec-Fetch-Site; none: typed in the address bar


class RequestGuard:
    """ASGI middleware that answers only the page itself.

    Parameters
    ----------
    app : ASGI app
    port : int
        Port on 127.0.0.1.
    token : str
        What a request for data must carry, so that other users of the machine are refused.
    """

    def __init__(self, app: ASGIApp, port: int, token: str) -> None:
        self._app, self._token = app, token.encode()
        names = ("127.0.0.1", "localhost")
        self._hosts = {f"{name}:{port}" for name in names}
        if port == _HTTP_PORT:
            self._hosts.update(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        from starlette.responses import JSONResponse

        if scope["type"] != "http":
            return
        refused = self._refused(scope)
        body = b""
        if refused is None and scope["method"] == "POST":
            body, whole = await _read_body(receive)
            if not whole:
                refused = 413, f"a request has at most {BODY_LIMIT:,} bytes"
        if refused is not None:
            status, reason = refused
            headers = {**HEADERS, "connection": "close"}
            await JSONResponse({"error": reason}, status, headers)(scope, receive, send)
            return

        async def read() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message["headers"] = [*message.get("headers", ()), *headers]
            await send(message)

        await self._app(scope, read, answer)

    def _refused(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason of a refusal, if any."""
        from starlette.datastructures import Headers, QueryParams

        headers, method = Headers(scope=scope), scope["method"]
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "this is served at 127.0.0.1 only; open the address that misslink printed"
        origins = {f"http://{host}" for host in self._hosts}
        strange = {origin.lower() for origin in headers.getlist("origin")} - origins
        if strange or {site.lower() for site in headers.getlist("sec-fetch-site")} - _SAME_SITE:
            return 403, "requests from other sites are refused"
        if method not in {"GET", "HEAD", "POST"}:
            return 405, f"{method[:20]} is not supported"
        # In the address it is that of a download.
        query = QueryParams(scope.get("query_string", b""))
        token = headers.get(_USER_HEADER, query.get("token", ""))
        is_user = secrets.compare_digest(token.encode(), self._token)
        if scope["path"].startswith("/api/") and not is_user:
            return 403, "open the address that misslink annotate printed; it carries a token"
        if method != "POST":
            return None
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            return 415, "the request body must be JSON"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > BODY_LIMIT:
            return 413, f"a request has at most {BODY_LIMIT:,} bytes"
        return None


async def _read_body(receive: Receive) -> tuple[bytes, bool]:
    """The request body, and whether it is complete and within the limit."""
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":  # the client disconnected
            return b"", False
        body += message.get("body", b"")
        if len(body) > BODY_LIMIT:
            return b"", False
        if not message.get("more_body"):
            return body, True


_PAGE_TYPES = {".css": "text/css", ".js": "text/javascript"}
_MIME = {"csv": "text/csv", "jsonl": "application/jsonl"}
_DEFAULT_PORT = 8765
_SHUTDOWN_SECONDS = 2  # seconds that connections have to end when the server does


def bind_localhost(port: int | None) -> socket.socket:
    """Return a socket that listens on 127.0.0.1: at `port`, 0 for any, None for the usual port.

    A page that is still open finds the server again only at the same port.
    """
    if port is None:
        try:
            return bind_localhost(_DEFAULT_PORT)
        except InputError:
            return bind_localhost(0)
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
    except OSError as problem:
        listener.close()
        raise InputError(
            f"port {port} of 127.0.0.1 is not available ({problem.strerror}); give another "
            "--port, or 0 for any free one"
        ) from None
    return listener


def user_token(path: Path) -> str:
    """Return this user's token in a file, made once, so that open pages survive a restart."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        status = path.stat()
        own = os.name == "nt" or (status.st_uid == os.getuid() and not status.st_mode & 0o77)
        if own and (stored := path.read_text(encoding="ascii").strip()):
            return stored
    token = secrets.token_urlsafe()
    write_private(path, token)
    return token


def write_private(path: Path, text: str) -> bool:
    """Write a file that only this user can read; return whether that was possible."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        return False
    return True


def build_server(session: LabelSession, port: int, token: str) -> uvicorn.Server:
    """Return the HTTP server of a session, to run on a socket of 127.0.0.1 with this port."""
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("uvicorn", "annotate") from None
    config = uvicorn.Config(
        build_app(session, port, token),
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="none",
        http="h11",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    return uvicorn.Server(config)


def build_app(session: LabelSession, port: int, token: str) -> RequestGuard:
    """Return the ASGI app of a session; requests to another port or without token are refused."""
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Route
    except ImportError:
        raise MissingExtraError("starlette", "annotate") from None

    actions: dict[str, tuple[str, Callable[[Mapping[str, Any]], Any]]] = {
        "session": ("GET", lambda fields: session.session(_text_field(fields, "annotator"))),
        "item": ("GET", lambda fields: session.item(*_place_fields(fields))),
        "label": ("POST", lambda fields: _save_label(session, fields)),
        "undo": ("POST", lambda fields: session.undo(_text_field(fields, "annotator"))),
        "reveal": ("POST", lambda fields: session.reveal(*_place_fields(fields))),
        "export": ("GET", lambda fields: _download(session, fields)),
    }
    routes = [
        Route("/", _serve_page, methods=["GET"]),
        Route("/page/{file}", _serve_page, methods=["GET"]),
        *(
            Route(f"/api/{name}", _endpoint(answer), methods=[method])
            for name, (method, answer) in actions.items()
        ),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _not_found})
    return RequestGuard(app, port, token)


async def _not_found(_: Request, problem: Exception) -> Response:
    status = int(getattr(problem, "status_code", 404))
    return _error_response(
        status, "there is nothing at this address" if status == 404 else str(problem)
    )


async def _serve_page(request: Request) -> Response:
    from starlette.responses import Response

    name = request.path_params.get("file", "index.html")
    files = {file.name: file for file in resources.files(__package__).joinpath("page").iterdir()}
    kind = "text/html"
    if "file" in request.path_params:
        kind = _PAGE_TYPES.get(f".{name.rpartition('.')[2]}", "")
    if not kind or name not in files:
        return _error_response(404, "the page has no such file")
    return Response(files[name].read_bytes(), media_type=kind)


def _endpoint(answer: Callable[[Mapping[str, Any]], Any]) -> Callable[[Request], Any]:
    """An endpoint; requests are answered one at a time, so that labels cannot cross."""

    async def endpoint(request: Request) -> Response:
        from starlette.responses import Response

        try:
            reply = answer(await _request_fields(request))
        except InputError as problem:
            status = 409 if isinstance(problem, NothingToUndoError) else 400
            status = 507 if isinstance(problem, UnsavedError) else status
            return _error_response(status, str(problem))
        if isinstance(reply, Response):
            return reply
        content = json.dumps(reply, ensure_ascii=False, allow_nan=False)
        return Response(content.encode("utf-8", "replace"), media_type="application/json")

    return endpoint


def _download(session: LabelSession, fields: Mapping[str, Any]) -> Response:
    from starlette.responses import Response

    form = fields.get("format", "jsonl")
    name = {"content-disposition": f'attachment; filename="labels.{form}"'}
    return Response(session.export(form), media_type=_MIME[form], headers=name)


def _error_response(status: int, reason: str) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse({"error": reason}, status_code=status)


async def _request_fields(request: Request) -> Mapping[str, Any]:
    """The posted JSON object, or the query parameters with the index as a number."""
    if request.method != "POST":
        fields: dict[str, Any] = dict(request.query_params)
        if re.fullmatch("[0-9]{1,9}", fields.get("at", "")):
            fields["at"] = int(fields["at"])
        return fields
    try:
        data = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise InputError("the request body is not JSON") from None
    if not isinstance(data, dict):
        raise InputError("the request body is not a JSON object")
    return data


def _save_label(session: LabelSession, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    label, claim = fields.get("label"), fields.get("claim")
    if "label" not in fields or not (
        label is None or (_is_whole_number(label) and label in session.labels)
    ):
        values = ", ".join(f"{number} ({name})" for number, name in session.labels.items())
        raise InputError(f"'label' must be {values} or null (skipped)")
    if not (claim is None or _is_whole_number(claim)):
        raise InputError("'claim' must be the index of a claim (0, 1, 2, ...) or null")
    metric, comment = _text_field(fields, "metric"), _text_field(fields, "comment")
    return session.label(*_place_fields(fields), metric, claim, label, comment)


def _place_fields(fields: Mapping[str, Any]) -> tuple[str, int]:
    """The annotator and the index of a case."""
    index = fields.get("at")
    if not _is_whole_number(index):
        raise InputError("'at' must be the index of a case: 0, 1, 2, ...")
    return _text_field(fields, "annotator"), int(index or 0)


def _text_field(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise InputError(f"'{name}' must be a text")
    return value


def _is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
