"""A judge server with a batch service: files and batches, as OpenAI's API reference has them.

``python tests/builders/batch_server.py --port 0`` prints its address. A batch goes one step on with every
look at it: validating, in progress, finalizing, completed. Its questions are answered by the same
script, or honest judge, as live ones.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from judge_faults import Body, Reset, error
from judge_server import MODEL, Handler, JudgeServer

Answer = tuple[int, dict[str, str], Any]
STEPS = ("validating", "in_progress", "finalizing")
MISSING = "missing"  # what `line` gives for a question of which the files say nothing
EXPIRED = "expired"  # and for one that was not reached in time


@dataclass
class BatchServer(JudgeServer):
    """The server; `with` starts and stops it.

    Set at any time: `meddle`, called with method and path before a request is looked at, and
    `late`, called after it was carried out and before that is told, each of which may answer in
    its place or raise Reset; `line`, called with a question's id and which time it is asked in a
    batch, which may answer in its place; `end`, called with the number of a batch, from 0, which
    says how it ends; `problems` of batches that fail.

    `batches` holds them by id, in their order, `asked` how often each question was answered in a
    batch, `files` what lies there.
    """

    meddle: Callable[[str, str], Answer | None] | None = None
    late: Callable[[str, str], Answer | None] | None = None
    line: Callable[[str, int], Answer | str | None] | None = None
    end: Callable[[int], str] | None = None
    problems: list[Body] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, Body] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    requests: list[str] = field(default_factory=list)
    stray: list[str] = field(default_factory=list)  # lines that no question stands behind
    _tries: Counter[str] = field(default_factory=Counter)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        return BatchHandler

    @property
    def questions(self) -> list[list[str]]:
        """The ids that each batch asks, in its order."""
        return [
            [
                json.loads(line)["custom_id"]
                for line in self.files[one["input_file_id"]].splitlines()
            ]
            for one in self.batches.values()
        ]

    def keep(self, content: bytes) -> str:
        """Take a file."""
        name = f"file-{len(self.files)}"
        self.files[name] = content
        return name

    def make(self, body: Body) -> Answer:
        """Make a batch."""
        if body.get("input_file_id") not in self.files:
            return error(400, "no such file", "invalid_input_file")
        if body.get("completion_window") != "24h":
            return error(400, "completion_window must be 24h")
        if body.get("endpoint") not in ("/v1/chat/completions", "/v1/responses"):
            return error(400, "no such endpoint")
        batch = f"batch_{len(self.batches)}"
        self.batches[batch] = {
            "id": batch,
            "object": "batch",
            "errors": None,
            "status": STEPS[0],
            "created_at": int(time.time()),
            "request_counts": {"total": 0, "completed": 0, "failed": 0},
            "output_file_id": None,
            "error_file_id": None,
            **body,
        }
        return 200, {}, self.batches[batch]

    def step(self, batch: str) -> Answer:
        """Let a batch go on by one step, and say how it stands."""
        found = self.batches.get(batch)
        if found is None:
            return error(404, f"No batch found with id '{batch}'.")
        status = found["status"]
        if status not in STEPS:
            return 200, {}, found
        end = self.end(list(self.batches).index(batch)) if self.end else "completed"
        if end == "failed":
            found |= {"status": "failed", "errors": {"object": "list", "data": self.problems}}
        elif status == STEPS[1]:
            self._work(found, whole=end == "completed")
            found["status"] = STEPS[2]
        else:
            found["status"] = (*STEPS, end)[STEPS.index(status) + 1]
        return 200, {}, found

    def _work(self, batch: Body, *, whole: bool) -> None:
        lines = [json.loads(one) for one in self.files[batch["input_file_id"]].split(b"\n") if one]
        output, errors = [], []
        for number, one in enumerate(lines):
            key = one["custom_id"]
            self._tries[key] += 1
            answer = self.line(key, self._tries[key]) if self.line else None
            if answer is None and not whole and number % 2:
                answer = EXPIRED
            if answer == MISSING:
                continue
            if answer == EXPIRED:
                told = {"code": "batch_expired", "message": "it was not reached in time"}
                errors.append({"id": "r", "custom_id": key, "response": None, "error": told})
                continue
            status, _, document = answer or self.answer(one["url"], one["body"])
            self.asked[key] += status == 200
            said = {"status_code": status, "request_id": "r", "body": document}
            (output if status == 200 else errors).append(
                {"id": "r", "custom_id": key, "response": said, "error": None}
            )
        random.Random(len(self.batches)).shuffle(output)  # the order of lines is nobody's promise
        counts = {"total": len(lines), "completed": len(output), "failed": len(errors)}
        batch["request_counts"] = counts
        written = [json.dumps(line, ensure_ascii=False) for line in output]
        if output or self.stray:
            content = "\n".join([*self.stray, *written]) + "\n"
            batch["output_file_id"] = self.keep(content.encode("utf-8", "surrogatepass"))
        if errors:
            told = "".join(json.dumps(line) + "\n" for line in errors)
            batch["error_file_id"] = self.keep(told.encode())


class BatchHandler(Handler):
    """Answers requests for files and batches too."""

    server: Any

    def do_GET(self) -> None:  # noqa: N802 (the name is http.server's)
        path = urlsplit(self.path)
        if not path.path.startswith(("/v1/files", "/v1/batches")):
            super().do_GET()
            return
        self._serve("GET", lambda batch: self._get(batch, path))

    def do_DELETE(self) -> None:  # noqa: N802 (the name is http.server's)
        def remove(server: BatchServer) -> Answer:
            name = self.path.rpartition("/")[2]
            gone = server.files.pop(name, None)
            return (200, {}, {"id": name, "deleted": True}) if gone else error(404, "no such file")

        self._serve("DELETE", remove)

    def do_POST(self) -> None:  # noqa: N802 (the name is http.server's)
        if self.path not in ("/v1/files", "/v1/batches"):
            super().do_POST()
            return
        content = self.rfile.read(int(self.headers["content-length"]))
        upload = self.path == "/v1/files"
        self._serve(
            "POST",
            lambda batch: self._take(batch, content) if upload else batch.make(json.loads(content)),
        )

    def _serve(self, method: str, work: Callable[[BatchServer], Answer]) -> None:
        server: BatchServer = self.server.judge
        server.requests.append(f"{method} {self.path}")
        try:
            answer = server.meddle(method, self.path) if server.meddle else None
            if answer is None and not self._knows_key():
                answer = error(401, "Incorrect API key provided", "invalid_api_key")
            if answer is None:
                with server._lock:
                    answer = work(server)
                answer = (server.late(method, self.path) if server.late else None) or answer
        except Reset:
            self.connection.close()
            self.close_connection = True
            return
        self._send(*answer)

    def _get(self, server: BatchServer, path: Any) -> Answer:
        if found := re.fullmatch(r"/v1/files/([\w-]+)/content", path.path):
            content = server.files.get(found[1])
            if content is None:
                return error(404, "no such file")
            return 200, {"content-type": "application/octet-stream"}, iter([content])
        if path.path != "/v1/batches":
            return server.step(path.path.rpartition("/")[2])
        asked = {name: values[0] for name, values in parse_qs(path.query).items()}
        rows = list(reversed(server.batches.values()))
        if "after" in asked:
            rows = rows[[row["id"] for row in rows].index(asked["after"]) + 1 :]
        page = rows[: int(asked.get("limit", 20))]
        return 200, {}, {"object": "list", "data": page, "has_more": len(page) < len(rows)}

    def _take(self, server: BatchServer, content: bytes) -> Answer:
        head = f"content-type: {self.headers['content-type']}\r\n\r\n".encode()
        form = BytesParser(policy=HTTP).parsebytes(head + content)
        parts = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in form.iter_parts()
        }
        if parts.get("purpose", b"").strip() != b"batch":
            return error(400, "purpose must be batch")
        return 200, {}, {"id": server.keep(parts["file"]), "object": "file", "purpose": "batch"}


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8089, help="0 takes a free one")
    parser.add_argument("--model", default=MODEL)
    options = parser.parse_args()
    with BatchServer(models=(options.model,), port=options.port) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            told = f"{len(server.batches)} batches, {len(server.calls)} live calls\n"
            sys.stderr.write(told)


if __name__ == "__main__":
    main()
