"""A real chat-completions server on loopback for tests, and for trying things by hand.

``python tests/judge_server.py --port 0`` prints its address. What it answers is decided by its
`script`, a function of the request's body (`judge_faults` has some); where that gives None, an
honest lexical judge answers examinations.
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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from honest_judge import honest
from judge_faults import FAULTS, Body, Reset, Script, after, error

MODEL = "test-judge"
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
        self.stop()

    def stop(self) -> None:
        """Leave the port, so that nobody answers there any more."""
        if not self._stopping.is_set():
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


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    judge: JudgeServer

    def handleerror(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handleerror(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        judge = self.server.judge
        judge.listed += 1
        if self.path != "/v1/models":
            self._send(*error(404, "no such path"))
        elif not self._knows_key():
            self._send(*error(401, "Incorrect API key provided", "invalid_api_key"))
        else:
            models = [{"id": name, "object": "model"} for name in judge.models]
            self._send(200, {}, {"object": "list", "data": models})

    def do_POST(self) -> None:
        judge = self.server.judge
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            body = json.loads(content)
        except ValueError:
            self._send(*error(400, "the request is not JSON"))
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
            return error(404, "no such path")
        if not self._knows_key():
            return error(401, "Incorrect API key provided", "invalid_api_key")
        wrong = invalid(body)
        if wrong:
            return error(400, wrong)
        if body["model"] not in judge.models:
            return error(404, f"The model '{body['model']}' does not exist", "model_not_found")
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
