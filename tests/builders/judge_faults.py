"""Scripts by which the judge server misbehaves, and one to put a script before another."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from honest_judge import honest
from judge_answers import completion

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
    return '{"claims": [{"claim": "The sky'


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


def web_page(_: Body) -> Answer:
    """A proxy's page in place of an answer."""
    return 200, {"content-type": "text/html"}, "<html><h1>Bad gateway</h1></html>"


def truncated(_: Body) -> Answer:
    """Promise more than is sent, then hang up."""
    part = b'{"id": "chatcmpl-1", "choices": [{"index": 0, "message": {"content": "{\\"cla'
    return 200, {"content-length": str(len(part) + 1000)}, iter([part])


def not_utf8(body: Body) -> Answer:
    """An honest completion in which a byte of the first quote's words is none of UTF-8."""
    content = json.dumps(honest(body)).replace("sky", "s\0y", 1)
    answer = json.dumps(completion(body, content)).encode().replace(b"\\u0000", b"\xff")
    return 200, {"content-length": str(len(answer))}, iter([answer])


def drip(_: Body) -> Answer:
    """Send a byte twenty times a second: never silent, never done."""

    def bytes_() -> Iterator[bytes]:
        tick = threading.Event()
        while not tick.wait(0.05):
            yield b" "

    return 200, {"content-length": "1000000"}, bytes_()


MIXED: dict[str, tuple[float, Script]] = {
    "rate limit": (0.10, status(429, "slow down", retry_after_ms="20")),
    "server error": (0.05, status(500, "out of memory")),
    "broken JSON": (0.05, broken_json),
    "reset": (0.02, reset),
    "drip": (0.01, drip),
    "web page": (0.01, web_page),
    "truncated": (0.01, truncated),
    "error body": (0.01, error_body),
}


class Mixed:
    """A script of all faults, by chance: the same for the same try of the same question.

    Parameters
    ----------
    seed : int
    hang : callable
        What a call does that hangs, 2% of them: say, `JudgeServer.wait_until_stopped`.

    Attributes
    ----------
    met : Counter
        How often each fault came.
    """

    def __init__(self, seed: int, hang: Callable[[], None]) -> None:
        self.met: Counter[str] = Counter()
        self._seed = seed
        self._tries: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._faults = {"hang": (0.02, lambda _: hang()), **MIXED}

    def __call__(self, body: Body) -> Answer:
        # Whatever the instructions are: the texts, and how often they were asked about before.
        asked = json.dumps([len(body["messages"]), body["messages"][1]["content"]])
        with self._lock:
            self._tries[asked] += 1
            drawn = random.Random(f"{self._seed} {self._tries[asked]} {asked}").random()
        for name, (share, fault) in self._faults.items():
            drawn -= share
            if drawn < 0:
                with self._lock:
                    self.met[name] += 1
                return fault(body)
        # Asked to repair its reply: the question is the first that it was asked.
        return honest({**body, "messages": body["messages"][:2]})


FAULTS: dict[str, Script] = {
    "rate-limit": status(429, "slow down", retry_after_ms="50"),
    "server-error": status(500),
    "broken-json": broken_json,
    "reset": reset,
    "error-body": error_body,
    "web-page": web_page,
    "truncated": truncated,
    "drip": drip,
    "no-schema": no_schema,
    "no-structure": no_structure,
}
