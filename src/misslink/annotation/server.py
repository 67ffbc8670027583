"""The annotation page over HTTP, on 127.0.0.1 alone."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self
from urllib.parse import parse_qs

from misslink.annotation.annotators import NothingToUndoError
from misslink.annotation.label_writer import UnsavedError
from misslink.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import Response


Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

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
_SAME_SITE = ("same-origin", "none")  # of Sec-Fetch-Site; none: typed in the address bar


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

    def __init__(
        self, app: Callable[[Scope, Receive, Send], Awaitable[None]], port: int, token: str
    ) -> None:
        self._app, self._token = app, token.encode()
        names = ("127.0.0.1", "localhost")
        self._hosts = {f"{name}:{port}" for name in names}
        if port == _HTTP_PORT:
            self._hosts.update(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        refused = self._refused(scope)
        body = b""
        if refused is None and scope["method"] == "POST":
            body, whole = await _read_body(receive)
            if not whole:
                refused = 413, f"a request has at most {BODY_LIMIT:,} bytes"
        if refused is not None:
            await _send_refusal(send, *refused)
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
        fields: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            fields.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts, method = fields.get("host", []), scope["method"]
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "this is served at 127.0.0.1 only; open the address that misslink printed"
        origins = {f"http://{host}" for host in self._hosts}
        if any(origin.lower() not in origins for origin in fields.get("origin", ())):
            return 403, "requests from other sites are refused"
        if any(site.lower() not in _SAME_SITE for site in fields.get("sec-fetch-site", ())):
            return 403, "requests from other sites are refused"
        if method not in {"GET", "HEAD", "POST"}:
            return 405, f"{method[:20]} is not supported"
        if scope["path"].startswith("/api/") and not self._has_token(scope, fields):
            return 403, "open the address that misslink annotate printed; it carries a token"
        return _content_refusal(fields) if method == "POST" else None

    def _has_token(self, scope: Scope, fields: Mapping[str, Sequence[str]]) -> bool:
        """Whether a header has the token, or the query, as of a link for a download."""
        query = parse_qs(scope["query_string"].decode("latin-1"))
        token = (fields.get(_USER_HEADER) or query.get("token", [""]))[0]
        return secrets.compare_digest(token.encode(), self._token)


def _content_refusal(fields: Mapping[str, Sequence[str]]) -> tuple[int, str] | None:
    """Status and reason of a refusal by the headers of a POST, if any."""
    kind = fields.get("content-type", [""])[0].partition(";")[0].strip().lower()
    if kind != "application/json":
        return 415, "the request body must be JSON"
    length = fields.get("content-length", ["0"])[0]
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


async def _send_refusal(send: Send, status: int, reason: str) -> None:
    content = json.dumps({"error": reason}).encode()
    headers = {**HEADERS, "content-type": "application/json", "connection": "close"}
    headers["content-length"] = str(len(content))
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": content})


class Session(Protocol):
    """What the page needs: a session that labels a run, or one that grades a pool."""

    labels: Any  # label to its name, such as 1 to "good"
    unit: str  # what is labelled, in the plural
    next_command: str  # what uses the labels of a {folder}
    tasks: Any
    metrics: Any
    notes: Any
    folder: Path
    adjudicate: bool
    open: Any  # opens the state of an annotator by name
    counts: Any  # the number of labels of each annotator

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def session(self, annotator: str) -> Mapping[str, Any]:
        """What to label, and the progress of an annotator."""

    def item(self, annotator: str, at: int) -> Mapping[str, Any]:
        """One case as the annotator may see it."""

    def label(
        self, annotator: str, at: int, metric: str, claim: int | None, label: int | None,
        comment: str,
    ) -> Mapping[str, Any]:  # fmt: skip
        """Save a label."""

    def undo(self, annotator: str) -> Mapping[str, Any]:
        """Undo the annotator's last label."""

    def reveal(self, annotator: str, at: int) -> Mapping[str, Any]:
        """Show the judge's opinion before the case is labelled."""

    def export(self, form: str) -> str:
        """All labels as csv or jsonl."""


_PAGE_TYPES = {".css": "text/css", ".js": "text/javascript"}
_NO_INDEX = "'at' must be the index of a case: 0, 1, 2, ..."
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


def build_server(session: Session, port: int, token: str) -> uvicorn.Server:
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


def build_app(session: Session, port: int, token: str) -> RequestGuard:
    """Return the ASGI app of a session; requests to another port or without token are refused."""
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Route
    except ImportError:
        raise MissingExtraError("starlette", "annotate") from None

    actions = {
        "session": ("GET", _get_session),
        "item": ("GET", _get_item),
        "label": ("POST", _post_label),
        "undo": ("POST", lambda session, fields: session.undo(_annotator(fields))),
        "reveal": (
            "POST",
            lambda session, fields: session.reveal(_annotator(fields), _index_field(fields)),
        ),
    }
    routes = [
        Route("/", _serve_page, methods=["GET"]),
        Route("/page/{file}", _serve_page, methods=["GET"]),
        *(
            Route(f"/api/{name}", _json_endpoint(session, answer), methods=[method])
            for name, (method, answer) in actions.items()
        ),
        Route("/api/export", _export_endpoint(session), methods=["GET"]),
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


def _json_endpoint(
    session: Session, answer: Callable[[Session, Mapping[str, Any]], Mapping[str, Any]]
) -> Callable[[Request], Any]:
    """A JSON endpoint; requests are answered one at a time, so that labels cannot cross."""

    async def endpoint(request: Request) -> Response:
        from starlette.responses import Response

        try:
            fields = await _request_fields(request)
            content = json.dumps(answer(session, fields), ensure_ascii=False, allow_nan=False)
        except InputError as problem:
            return _error_response(_error_status(problem), str(problem))
        return Response(content.encode("utf-8", "replace"), media_type="application/json")

    return endpoint


def _export_endpoint(session: Session) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        from starlette.responses import Response

        form = request.query_params.get("format", "jsonl")
        try:
            text = session.export(form)
        except InputError as problem:
            return _error_response(_error_status(problem), str(problem))
        name = f'attachment; filename="labels.{form}"'
        return Response(text, media_type=_MIME[form], headers={"content-disposition": name})

    return endpoint


def _error_status(problem: InputError) -> int:
    if isinstance(problem, UnsavedError):
        return 507
    return 409 if isinstance(problem, NothingToUndoError) else 400


def _error_response(status: int, reason: str) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse({"error": reason}, status_code=status)


async def _request_fields(request: Request) -> Mapping[str, Any]:
    """The query parameters, or the posted JSON object."""
    if request.method != "POST":
        return dict(request.query_params)
    try:
        data = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise InputError("the request body is not JSON") from None
    if not isinstance(data, dict):
        raise InputError("the request body is no JSON object")
    return data


def _get_session(session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    return session.session(_annotator(fields))


def _get_item(session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    index = _text_field(fields, "at")
    if not (index.isascii() and index.isdigit() and len(index) < 10):
        raise InputError(_NO_INDEX)
    return session.item(_annotator(fields), int(index))


def _post_label(session: Session, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    label, claim = fields.get("label"), fields.get("claim")
    if "label" not in fields or not (
        label is None or (_is_whole_number(label) and label in session.labels)
    ):
        values = ", ".join(f"{number} ({name})" for number, name in session.labels.items())
        raise InputError(f"'label' must be {values} or null (skipped)")
    if not (claim is None or _is_whole_number(claim)):
        raise InputError("'claim' must be the index of a claim (0, 1, 2, ...) or null")
    metric, comment = _text_field(fields, "metric"), _text_field(fields, "comment")
    index = _index_field(fields)
    return session.label(_annotator(fields), index, metric, claim, label, comment)


def _annotator(fields: Mapping[str, Any]) -> str:
    return _text_field(fields, "annotator")


def _text_field(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise InputError(f"'{name}' must be a text")
    return value


def _index_field(fields: Mapping[str, Any]) -> int:
    index = fields.get("at")
    if not _is_whole_number(index):
        raise InputError(_NO_INDEX)
    return int(index or 0)


def _is_whole_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
