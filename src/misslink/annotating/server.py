"""The page's server: the desk over HTTP, on 127.0.0.1 alone.

====================================  =====================================================
`GET /`, `GET /page/{file}`           the page, its styles and scripts
`GET /api/session?annotator=NAME`     what is asked, how far NAME is
`GET /api/item?annotator=NAME&at=N`   the N-th case in the order of labelling, from 0
`POST /api/label`                     keep a label: it is on disk before the reply
`POST /api/undo`                      take the last label back
`POST /api/reveal`                    show the judge's opinion, and keep that it was shown
`GET /api/export?format=csv`          everybody's labels, as CSV or JSONL
====================================  =====================================================

What is wrong is told as ``{"error": "one sentence"}`` with a 4xx status; with a 5xx status it may
be tried again.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

from misslink.annotating.desk import Desk
from misslink.annotating.guard import Guard
from misslink.annotating.keeping import UnsavedError
from misslink.annotating.pooled import PoolDesk
from misslink.annotating.sheets import NothingToUndoError
from misslink.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    import uvicorn
    from starlette.requests import Request
    from starlette.responses import Response

AnyDesk = Desk | PoolDesk

__all__ = ["AnyDesk", "bound", "page_app", "serve", "web_server"]

_KINDS = {".css": "text/css", ".js": "text/javascript"}
_MIME = {"csv": "text/csv", "jsonl": "application/jsonl"}
_USUAL_PORT = 8765
_PATIENCE = 2  # seconds that connections have to end when the server does


def bound(port: int | None) -> socket.socket:
    """Return a socket that listens on 127.0.0.1.

    Parameters
    ----------
    port : int or None
        0: any that is free. None: the usual one, and any where that is taken. A page that is still
        open finds the server again only where the port is the same.

    Raises
    ------
    InputError
        The port is taken, or not for everybody.
    """
    if port is None:
        try:
            return bound(_USUAL_PORT)
        except InputError:
            return bound(0)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen()
    except OSError as problem:
        listening.close()
        raise InputError(
            f"port {port} of 127.0.0.1 cannot be had ({problem.strerror}); give another --port, "
            "or 0 for any that is free"
        ) from None
    return listening


def serve(desk: AnyDesk, listening: socket.socket) -> None:
    """Answer requests until the process is interrupted.

    Raises
    ------
    MissingExtraError
        Starlette or uvicorn is not installed.
    KeyboardInterrupt
        Ctrl-C was pressed; everything said so far is on disk.
    """
    web_server(desk, listening.getsockname()[1]).run(sockets=[listening])


def web_server(desk: AnyDesk, port: int) -> uvicorn.Server:
    """Return the server of a desk, to be run on a socket of 127.0.0.1 with this port.

    Raises
    ------
    MissingExtraError
        Starlette or uvicorn is not installed.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("uvicorn", "annotate") from None
    config = uvicorn.Config(
        page_app(desk, port),
        log_level="error",
        access_log=False,
        lifespan="off",
        ws="none",
        http="h11",
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_PATIENCE,
    )
    return uvicorn.Server(config)


def page_app(desk: AnyDesk, port: int) -> Guard:
    """Return the ASGI app that serves a desk.

    Parameters
    ----------
    desk : Desk or PoolDesk
    port : int
        On which it is served; requests to another are refused.

    Raises
    ------
    MissingExtraError
        Starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Route
    except ImportError:
        raise MissingExtraError("starlette", "annotate") from None

    routes = [
        Route("/", _page, methods=["GET"]),
        Route("/page/{file}", _page, methods=["GET"]),
        *(
            Route(f"/api/{name}", _answering(desk, answer), methods=["GET"])
            for name, answer in (("session", _session), ("item", _item))
        ),
        *(
            Route(f"/api/{name}", _answering(desk, answer), methods=["POST"])
            for name, answer in (("label", _label), ("undo", _undo), ("reveal", _reveal))
        ),
        Route("/api/export", _exporting(desk), methods=["GET"]),
    ]
    return Guard(Starlette(routes=routes, exception_handlers={HTTPException: _no_such}), port)


async def _no_such(_: Request, problem: Exception) -> Response:
    status = int(getattr(problem, "status_code", 404))
    return _refusal(status, "there is nothing at this address" if status == 404 else str(problem))  # noqa: PLR2004


async def _page(request: Request) -> Response:
    from starlette.responses import Response

    name = request.path_params.get("file", "index.html")
    found = {file.name: file for file in resources.files(__package__).joinpath("page").iterdir()}
    kind = (
        _KINDS.get(f".{name.rpartition('.')[2]}") if "file" in request.path_params else "text/html"
    )
    if kind is None or name not in found:
        return _refusal(404, "the page has no such file")
    return Response(found[name].read_bytes(), media_type=kind)


def _answering(
    desk: AnyDesk, answer: Callable[[AnyDesk, Mapping[str, Any]], Mapping[str, Any]]
) -> Callable[[Request], Any]:
    """An endpoint that answers with JSON; one request at a time, so no two labels cross."""

    async def endpoint(request: Request) -> Response:
        from starlette.responses import Response

        try:
            given = await _given(request)
            content = json.dumps(answer(desk, given), ensure_ascii=False, allow_nan=False)
        except InputError as problem:
            return _refusal(_status(problem), str(problem))
        return Response(content.encode("utf-8", "replace"), media_type="application/json")

    return endpoint


def _exporting(desk: AnyDesk) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        from starlette.responses import Response

        form = request.query_params.get("format", "jsonl")
        try:
            text = desk.export(form)
        except InputError as problem:
            return _refusal(_status(problem), str(problem))
        name = f'attachment; filename="labels.{form}"'
        return Response(text, media_type=_MIME[form], headers={"content-disposition": name})

    return endpoint


def _status(problem: InputError) -> int:
    if isinstance(problem, UnsavedError):
        return 507
    return 409 if isinstance(problem, NothingToUndoError) else 400


def _refusal(status: int, reason: str) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse({"error": reason}, status_code=status)


async def _given(request: Request) -> Mapping[str, Any]:
    """The fields of a request: of its address, or what was posted."""
    if request.method != "POST":
        return dict(request.query_params)
    try:
        data = json.loads(await request.body())
    except (ValueError, RecursionError):
        raise InputError("what was posted is not JSON") from None
    if not isinstance(data, dict):
        raise InputError("what was posted is no JSON object")
    return data


def _session(desk: AnyDesk, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return desk.session(_text(given, "annotator"))


def _item(desk: AnyDesk, given: Mapping[str, Any]) -> Mapping[str, Any]:
    at = _text(given, "at")
    if not (at.isascii() and at.isdigit() and len(at) < 10):  # noqa: PLR2004  # of a place
        raise InputError("'at' must be the place of a case: 0, 1, 2, ...")
    return desk.item(_text(given, "annotator"), int(at))


def _label(desk: AnyDesk, given: Mapping[str, Any]) -> Mapping[str, Any]:
    label = given.get("label")
    if "label" not in given or not (label is None or (_is_whole(label) and label in desk.labels)):
        told = ", ".join(f"{number} ({word})" for number, word in desk.labels.items())
        raise InputError(f"'label' must be {told} or null (skipped)")
    claim = given.get("claim")
    if not (claim is None or _is_whole(claim)):
        raise InputError("'claim' must be a claim's place, 0, 1, 2, ..., or null")
    return desk.label(
        _text(given, "annotator"),
        _place(given),
        _text(given, "metric"),
        claim,
        label,
        _text(given, "comment"),
    )


def _undo(desk: AnyDesk, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return desk.undo(_text(given, "annotator"))


def _reveal(desk: AnyDesk, given: Mapping[str, Any]) -> Mapping[str, Any]:
    return desk.reveal(_text(given, "annotator"), _place(given))


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name, "")
    if not isinstance(value, str):
        raise InputError(f"'{name}' must be a text")
    return value


def _place(given: Mapping[str, Any]) -> int:
    at = given.get("at")
    if not _is_whole(at):
        raise InputError("'at' must be the place of a case: 0, 1, 2, ...")
    return int(at or 0)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
