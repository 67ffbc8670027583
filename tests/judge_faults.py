"""Scripts by which the judge server misbehaves, and one to put a script before another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

Body = dict[str, Any]
Answer = dict[str, Any] | str | tuple[int, dict[str, str], Any] | None
Script = Callable[[Body], Answer]


class Reset(Exception):  # noqa: N818 - an instruction to the handler, not an error
    """Raised by a script: break the connection."""


def error(
    status: int, message: str, code: str | None = None
) -> tuple[int, dict[str, str], dict[str, Any]]:
    return status, {}, {"error": {"message": message, "code": code, "param": None, "type": "error"}}


def after(first: int, script: Script, then: Script | None = None) -> Script:
    """Answer the first so many calls by `script`, later ones by `then` (else honestly)."""
    lock = threading.Lock()
    left = [first]

    def answer(body: Body) -> Answer:
        with lock:
            left[0] -= 1
            mine = left[0] >= 0
        if mine:
            return script(body)
        return then(body) if then else None

    return answer


def status(code: int, message: str = "trouble", **headers: str) -> Script:
    """Always this status; an underscore in a header's name means a hyphen."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: (code, named, error(code, message)[2])


def error_body(_: Body) -> Answer:
    """Status 200 around an error, as some proxies send it."""
    return 200, {}, {"error": {"message": "upstream is overloaded", "code": 502}}


def broken_json(_: Body) -> Answer:
    """A completion whose content is cut off."""
    return '{"claims": [{"text": "The sky'


def reset(_: Body) -> Answer:
    """Break the connection."""
    raise Reset


def no_schema(body: Body) -> Answer:
    """Refuse json_schema by name, take everything else."""
    if body.get("response_format", {}).get("type") == "json_schema":
        return error(400, "response_format type 'json_schema' is not supported")
    return None


def no_structure(body: Body) -> Answer:
    """Refuse any response_format with a 400 that does not say why."""
    return error(400, "Bad Request") if "response_format" in body else None


FAULTS: dict[str, Script] = {
    "rate-limit": status(429, "slow down", retry_after_ms="50"),
    "server-error": status(500),
    "broken-json": broken_json,
    "reset": reset,
    "error-body": error_body,
    "no-schema": no_schema,
    "no-structure": no_structure,
}
