"""The input file of a batch, and the lines of its output files."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from misslink.errors import InputError
from misslink.judge.backends.response_parsing import EXCERPT_LENGTH, parse_json_body
from misslink.judge.protocol import Ask, RetryableError

# Source: OpenAI's API reference, "Create batch": 50,000 requests and 200 MB.
MAX_QUESTIONS = 50_000
MAX_BYTES = 190_000_000
_HTTP_OK = 200
# What some readers take for the end of a line besides the line feed, and JSON may not escape.
_LINE_SEPARATORS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}


class ResubmitError(Exception):
    """A question has to start again, as if it had not been submitted."""


class MissingAnswerError(RetryableError):
    """The answer to a question is lost at the server, which charges for it all the same."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "server")


@dataclass(eq=False)
class BatchCall:
    """A question that waits for its line, found by the cache key of its reply."""

    key: str
    ask: Ask
    row: int | None = None  # the batch that it is part of
    reserved: bool = False  # whether the budget reserves its cost
    answer: asyncio.Future[BatchLine] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def resolve(self, line: BatchLine) -> None:
        """Deliver the line."""
        if not self.answer.done():
            self.answer.set_result(line)

    def fail(self, error: Exception) -> None:
        """Deliver why there is no line."""
        if not self.answer.done():
            self.answer.set_exception(error)


def fail_calls(calls: Iterable[BatchCall], error: Callable[[], Exception]) -> None:
    """Fail each call with a separate error object."""
    for call in calls:
        call.fail(error())


@dataclass(frozen=True)
class BatchLine:
    """What a line of an output or error file says about a question.

    `status` is the HTTP status and `body` the JSON body of the answer. `status` is None where the
    question was not processed, and `problem` says why.
    """

    key: str
    status: int | None
    body: Any
    problem: str = ""

    @property
    def good(self) -> bool:
        """Whether the model answered."""
        return self.status == _HTTP_OK

    @classmethod
    def read(cls, raw: bytes) -> BatchLine | None:
        """Parse a line; None where it is not a line of a batch."""
        document = parse_json_body(raw.decode("utf-8", "replace"))
        if isinstance(document, str) or not isinstance(document.get("custom_id"), str):
            return None
        key, response = document["custom_id"], document.get("response")
        if isinstance(response, dict) and type(response.get("status_code")) is int:
            return cls(key, response["status_code"], response.get("body"))
        error = document.get("error")
        message = error.get("message") or error.get("code") if isinstance(error, dict) else error
        problem = str(message or "it was not processed, and no reason is given")
        return cls(key, None, None, problem[:EXCERPT_LENGTH])


def input_line(key: str, path: str, body: dict[str, Any]) -> bytes:
    """Return the line of an input file that asks a question.

    `key` has 64 characters, OpenAI's maximum for a ``custom_id``; `path` is the endpoint below
    the base URL, and `body` the request's.
    """
    line = {"custom_id": key, "method": "POST", "url": f"/v1{path}", "body": body}
    try:
        return json.dumps(line, ensure_ascii=False).translate(_LINE_SEPARATORS).encode() + b"\n"
    except UnicodeEncodeError:  # unpaired surrogates, which an evaluated text may contain
        return json.dumps(line).encode() + b"\n"


class BatchFile:
    """A growing input file on disk; `calls` are by key, in the order of its lines."""

    def __init__(self, max_questions: int = MAX_QUESTIONS) -> None:
        try:
            self.file = tempfile.TemporaryFile(prefix="misslink-batch-")  # noqa: SIM115 (`close` closes it)
        except OSError as error:
            raise _disk_full_error(error) from None
        self.calls: dict[str, BatchCall] = {}
        self.bytes = 0
        self._max_questions = max_questions

    def takes(self, line: bytes) -> bool:
        """Whether there is space for one more line; always for the first."""
        fits = len(self.calls) < self._max_questions and self.bytes + len(line) <= MAX_BYTES
        return fits or not self.calls

    def add(self, call: BatchCall, line: bytes) -> None:
        """Write the line of a question."""
        try:
            self.file.write(line)
        except OSError as error:
            raise _disk_full_error(error) from None
        self.calls[call.key] = call
        self.bytes += len(line)


def _disk_full_error(error: OSError) -> InputError:
    return InputError(
        f"the questions of a batch cannot be written ({error.strerror}); free some space there, "
        "or name another folder in TMPDIR",
        path=tempfile.gettempdir(),
    )
