"""A real chat-completions server on loopback for tests, and for trying things by hand.

``python tests/builders/judge_server.py --port 0`` prints its address. What it answers is decided by its
`script`, a function of the request's body (`judge_faults` has some); where that gives None, an
honest lexical judge answers examinations. The Responses interface and two for decisions are there too; scripts see its
requests as if they were chat requests.
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from decision_model import decisions, system_one
from honest_judge import honest
from judge_answers import as_chat, completion, invalid, invalid_response, response
from judge_faults import FAULTS, Body, Reset, Script, after, error

MODEL = "test-judge"
DECISIONS = {"/v1/decisions": decisions, "/v1/systemone": system_one}


@dataclass
class Call:
    """One request: its body, the key it came with and the status it got."""

    body: Body
    key: str | None
    status: int = 0
    path: str = "/v1/chat/completions"


@dataclass
class JudgeServer:
    """The server; `with` starts and stops it.

    Set `script`, `models`, `key` (None takes any), `logprobs`, `offer` (what the list of models
    says of each) and `limits` (of a request for decisions) at any time. `calls` holds every request to a model, `most_at_once` how many of
    them were being answered at the same time, `left` is set once a client left before the end of
    an answer that came in pieces.
    """

    script: Script | None = None
    models: tuple[str, ...] = (MODEL,)
    key: str | None = None
    logprobs: bool = False
    port: int = 0
    offer: Body = field(default_factory=dict)
    limits: dict[str, int] = field(default_factory=dict)
    left: threading.Event = field(default_factory=threading.Event)
    calls: list[Call] = field(default_factory=list)
    listed: int = 0
    most_at_once: int = 0

    def __enter__(self) -> Self:
        self._lock = threading.Lock()
        self._busy = 0
        self._open = 0
        self._closed = threading.Condition()
        self._stopping = threading.Event()
        self._http = _Server(("127.0.0.1", self.port), self._handler())
        self._http.judge = self
        self.port = self._http.server_address[1]
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Leave the port, so that no connection any more."""
        if not self._stopping.is_set():
            self._stopping.set()
            self._http.shutdown()
            self._http.server_close()
            self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        return Handler

    def answer(self, path: str, body: Body) -> tuple[int, dict[str, str], Any]:
        """What a request to a model is answered: status, headers, document."""
        if path in DECISIONS:
            answer = self.script(body) if self.script else None
            answer = answer or DECISIONS[path](body, self.limits)
            if isinstance(answer, str):
                return error(400, answer)
            return answer if isinstance(answer, tuple) else (200, {}, answer)
        responses = path == "/v1/responses"
        wrong = invalid_response(body) if responses else invalid(body)
        if wrong and "tools" not in body:  # an agent's request, not a judge's
            return error(400, wrong)
        if responses:
            body = as_chat(body)
        if body["model"] not in self.models:
            return error(404, f"The model '{body['model']}' does not exist", "model_not_found")
        answer = self.script(body) if self.script else None
        if answer is None:
            answer = honest(body)
            if isinstance(answer, str) and "response_format" in body:
                answer = {"supported": answer}
        if isinstance(answer, tuple):
            return answer
        content = answer if isinstance(answer, str) else json.dumps(answer)
        around = response if responses else completion
        return 200, {}, around(body, content, logprobs=self.logprobs)

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

    def wait_until_left(self) -> None:
        """Block until every request of clients that have ended is in `calls`, and their connections are closed."""
        # Connections are accepted in their order, so those of the clients before this one.
        with socket.create_connection(("127.0.0.1", self.port)) as own:
            own.sendall(b"GET /v1/models HTTP/1.0\r\n\r\n")
            while own.recv(65_536):
                pass
        with self._closed:
            assert self._closed.wait_for(lambda: not self._open, timeout=30)

    def count_connection(self, change: int) -> None:
        with self._closed:
            self._open += change
            self._closed.notify_all()

    def pause(self, seconds: float) -> bool:
        """Wait; True as soon as the server stops or a client has left."""
        return self._stopping.wait(seconds) or self.left.is_set()

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

    def process_request(self, *connection: Any) -> None:
        self.judge.count_connection(1)
        super().process_request(*connection)

    def process_request_thread(self, *connection: Any) -> None:
        try:
            super().process_request_thread(*connection)
        finally:
            self.judge.count_connection(-1)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Answers the judge's own requests."""

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
            models = [{"id": name, "object": "model", **judge.offer} for name in judge.models]
            self._send(200, {}, {"object": "list", "data": models})

    def do_POST(self) -> None:
        judge = self.server.judge
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            body = json.loads(content)
        except ValueError:
            self._send(*error(400, "the request is not JSON"))
            return
        call = Call(body, self.headers.get("authorization"), path=self.path)
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
        if self.path not in ("/v1/chat/completions", "/v1/responses", *DECISIONS):
            return error(404, "no such path")
        if not self._knows_key():
            return error(401, "Incorrect API key provided", "invalid_api_key")
        return judge.answer(self.path, body)

    def _knows_key(self) -> bool:
        key = self.server.judge.key
        return key is None or self.headers.get("authorization") == f"Bearer {key}"

    def _send(self, status: int, headers: dict[str, str], answer: Any) -> None:
        pieces = answer
        if not isinstance(answer, Iterator):
            content = answer if isinstance(answer, str) else json.dumps(answer)
            headers = {"content-length": str(len(content.encode())), **headers}
            pieces = [content.encode()]
        else:
            headers = {"connection": "close", **headers}
        self.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            for piece in pieces:
                self.wfile.write(piece)
        except ConnectionError:
            self.close_connection = True
            self.server.judge.left.set()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


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
