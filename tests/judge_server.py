"""A real chat-completions server on loopback for tests, and for trying things by hand.

``python tests/judge_server.py --port 0`` prints its address. What it answers is decided by its
`script`, a function of the request's body; where that gives None, an honest lexical judge answers
examinations. Faults are scripts too; `after` puts one before another.
"""

from __future__ import annotations

import argparse
import json
import re
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from misslink.judging.examination import examine
from misslink.judging.protocol import Ask
from misslink.text import content_words, fold, sentences

MODEL = "test-judge"
Body = dict[str, Any]
Answer = dict[str, Any] | str | tuple[int, dict[str, str], Any] | None
Script = Callable[[Body], Answer]

_FENCED = re.compile(r"<(\w+) ([0-9a-f]{10})>\n(.*?)\n</\1 \2>", re.DOTALL)
_DECLINES = re.compile(r"\b(cannot|can't|don't|do not|does not|unable|no information|not know)\b")
_PARAMETERS = {
    "model", "messages", "response_format", "temperature", "seed", "max_tokens",
    "max_completion_tokens", "logprobs", "top_logprobs", "stream", "n", "stop",
}  # fmt: skip


@dataclass
class Call:
    """One request: when it came (monotonic seconds), its body and the status it got."""

    at: float
    body: Body
    key: str | None
    status: int = 0


@dataclass
class JudgeServer:
    """The server; `with` starts and stops it.

    Set `script`, `models`, `key` (None takes any) and `logprobs` at any time. `calls` holds every
    chat request, `most_at_once` how many of them were being answered at the same time.
    """

    script: Script | None = None
    models: tuple[str, ...] = (MODEL,)
    key: str | None = None
    logprobs: bool = False
    port: int = 0
    calls: list[Call] = field(default_factory=list)
    listed: int = 0
    most_at_once: int = 0

    def __enter__(self) -> Self:
        self._lock = threading.Lock()
        self._busy = 0
        self._stopping = threading.Event()
        self._http = _Server(("127.0.0.1", self.port), _Handler)
        self._http.judge = self
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """What to give as base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def answered(self) -> int:
        """How many chat requests got status 200."""
        return sum(call.status == 200 for call in self.calls)

    def wait_until_stopped(self) -> None:
        """Block until the server stops: the script of a server that hangs."""
        self._stopping.wait()

    @contextmanager
    def _received(self, call: Call) -> Iterator[None]:
        with self._lock:
            self.calls.append(call)
            self._busy += 1
            self.most_at_once = max(self.most_at_once, self._busy)
        try:
            yield
        finally:
            with self._lock:
                self._busy -= 1


class Reset(Exception):  # noqa: N818 - an instruction to the handler, not an error
    """Raised by a script: break the connection."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    judge: JudgeServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        judge = self.server.judge
        judge.listed += 1
        if self.path != "/v1/models":
            self._send(*_error(404, "no such path"))
        elif not self._knows_key():
            self._send(*_error(401, "Incorrect API key provided", "invalid_api_key"))
        else:
            models = [{"id": name, "object": "model"} for name in judge.models]
            self._send(200, {}, {"object": "list", "data": models})

    def do_POST(self) -> None:
        judge = self.server.judge
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            body = json.loads(content)
        except ValueError:
            self._send(*_error(400, "the request is not JSON"))
            return
        call = Call(time.monotonic(), body, self.headers.get("authorization"))
        with judge._received(call):
            try:
                status, headers, answer = self._answer(body)
            except Reset:
                linger = struct.pack("ii", 1, 0)  # close with a reset instead of a goodbye
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
                self.close_connection = True
                return
        call.status = status
        self._send(status, headers, answer)

    def _answer(self, body: Body) -> tuple[int, dict[str, str], Any]:
        judge = self.server.judge
        if self.path != "/v1/chat/completions":
            return _error(404, "no such path")
        if not self._knows_key():
            return _error(401, "Incorrect API key provided", "invalid_api_key")
        wrong = invalid(body)
        if wrong:
            return _error(400, wrong)
        if body["model"] not in judge.models:
            return _error(404, f"The model '{body['model']}' does not exist", "model_not_found")
        answer = judge.script(body) if judge.script else None
        if answer is None:
            answer = honest(body)
        if isinstance(answer, tuple):
            return answer
        content = answer if isinstance(answer, str) else json.dumps(answer)
        return 200, {}, completion(body, content, logprobs=judge.logprobs)

    def _knows_key(self) -> bool:
        key = self.server.judge.key
        return key is None or self.headers.get("authorization") == f"Bearer {key}"

    def _send(self, status: int, headers: dict[str, str], answer: Any) -> None:
        content = answer if isinstance(answer, str) else json.dumps(answer)
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content.encode())))
        self.end_headers()
        self.wfile.write(content.encode())

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


def _error(
    status: int, message: str, code: str | None = None
) -> tuple[int, dict[str, str], dict[str, Any]]:
    return status, {}, {"error": {"message": message, "code": code, "param": None, "type": "error"}}


def completion(body: Body, content: str | None, *, logprobs: bool = False, **more: Any) -> Body:
    """A whole completion around `content`; `more` goes into its choice."""
    choice = {"index": 0, "finish_reason": "stop", **more}
    choice.setdefault("message", {"role": "assistant", "content": content, "refusal": None})
    if logprobs and body.get("logprobs"):
        token = {"token": "yes", "logprob": -0.1, "bytes": None, "top_logprobs": []}
        choice["logprobs"] = {"content": [token]}
    prompt = sum(len(message["content"]) for message in body["messages"]) // 4
    written = len(content or "") // 4
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": body["model"],
        "choices": [choice],
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
        },
    }


def invalid(body: Body) -> str | None:
    """What a strict server would object to, or None."""
    unknown = set(body) - _PARAMETERS
    if unknown:
        return f"unknown parameter: {min(unknown)}"
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        return "messages is missing"
    roles = {"system", "user", "assistant"}
    if any(m.get("role") not in roles or not m.get("content") for m in messages):
        return "a message lacks a known role or content"
    return _invalid_format(body.get("response_format", {"type": "text"}), str(messages))


def _invalid_format(wanted: Body, messages: str) -> str | None:
    if wanted["type"] == "json_object" and "json" not in messages.lower():
        return "'messages' must contain the word 'json'"
    if wanted["type"] == "json_schema":
        named = wanted["json_schema"]
        if not re.fullmatch(r"[\w-]{1,64}", named["name"]) or named.get("strict") is not True:
            return "response_format: a strict schema with a name is expected"
        return _open_object(named["schema"])
    return None


def _open_object(node: Any) -> str | None:
    """What of a schema strict mode refuses."""
    if isinstance(node, list):
        return next(filter(None, map(_open_object, node)), None)
    if not isinstance(node, dict):
        return None
    if "$ref" in node or "$defs" in node:
        return "response_format: references are not expected"
    if "properties" in node:
        if node.get("additionalProperties") is not False:
            return "response_format: additionalProperties must be false"
        if set(node.get("required", ())) != set(node["properties"]):
            return "response_format: every property must be required"
    return next(filter(None, map(_open_object, node.values())), None)


def fenced(body: Body) -> list[tuple[str, str]]:
    """The fenced texts of the user message, each with its label."""
    user = body["messages"][-1]["content"]
    return [(found.group(1), found.group(3)) for found in _FENCED.finditer(user)]


def honest(body: Body) -> Body | str:
    """Examine lexically: a sentence is supported exactly if a passage contains it."""
    texts = fenced(body)
    by_label = dict(texts)
    if "answer" not in by_label:
        return "yes"
    question, answer = by_label["question"], by_label["answer"]
    passages = [text for label, text in texts if label.startswith("passage_")]
    references = [text for label, text in texts if label.startswith("reference_")]
    declines = _DECLINES.search(fold(answer)) is not None
    claims = [] if declines else [_claim(said, passages, references) for said in _cut(answer)]
    asked = set(content_words(question))
    quotes = [fold(claim["quote"]) for claim in claims if claim["quote"]]
    said: Body = {
        "claims": claims,
        "passages": [
            {
                "passage": n,
                "relevant": len(asked & set(content_words(text))) > 1
                or any(quote in fold(text) for quote in quotes),
            }
            for n, text in enumerate(passages, 1)
        ],
        "response": "declines" if declines else "answers" if claims else "evades",
    }
    if references:
        said["reference_claims"] = [
            {
                "reference": n,
                "text": fact,
                "answer": "states" if fold(fact).rstrip(".") in fold(answer) else "omits",
            }
            for n, text in enumerate(references, 1)
            for fact in _cut(text)
        ]
    return said


def _claim(said: str, passages: list[str], references: list[str]) -> Body:
    bare = fold(said).rstrip(".")
    found = any(bare in fold(text) for text in passages)
    claim: Body = {
        "text": said,
        "support": "supported" if found else "unsupported",
        "quote": said.rstrip(".") if found else None,
    }
    if references:
        agrees = any(bare in fold(text) for text in references)
        claim["reference"] = "agrees" if agrees else "silent"
    return claim


def _cut(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


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
    return lambda _: (code, named, _error(code, message)[2])


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
        return _error(400, "response_format type 'json_schema' is not supported")
    return None


def no_structure(body: Body) -> Answer:
    """Refuse any response_format with a 400 that does not say why."""
    return _error(400, "Bad Request") if "response_format" in body else None


def small_ask(n: int) -> Ask:
    """The `n`-th of a family of short asks, one claim supported and one not."""
    passage = f"By day the sky over town {n} is blue. Clouds are white."
    return examine(
        f"What colour is the sky over town {n}?",
        (passage, "Grass is green."),
        f"The sky over town {n} is blue. Grass is red.",
    )


FAULTS: dict[str, Script] = {
    "rate-limit": status(429, "slow down", retry_after_ms="50"),
    "server-error": status(500),
    "broken-json": broken_json,
    "reset": reset,
    "error-body": error_body,
    "no-schema": no_schema,
    "no-structure": no_structure,
}


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8089, help="0 takes a free one")
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--key", help="the only key taken; any by default")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="what the first calls meet")
    parser.add_argument("--times", type=int, default=sys.maxsize, help="how many calls meet it")
    options = parser.parse_args()
    script = after(options.times, FAULTS[options.fault]) if options.fault else None
    with JudgeServer(script, (options.model,), options.key, port=options.port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            sys.stderr.write(f"{len(server.calls)} calls\n")


if __name__ == "__main__":
    main()
