"""Batches of questions: the batch API of an OpenAI-compatible server, and their record on disk."""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from pydantic import AliasChoices, AliasPath, Field

from misslink.io.atomic import is_running
from misslink.judge.backends.connection import ServerConnection
from misslink.judge.backends.response_parsing import (
    EXCERPT_LENGTH,
    ServerDocument,
    decode_body,
    find_json_object,
    parse_json_body,
)
from misslink.judge.middleware.sqlite_store import CACHE_FORMAT, CacheStore, utc_now
from misslink.judge.protocol import RetryableError
from misslink.text.normalization import valid_text

# Source: OpenAI's API reference, "Create batch": 50,000 requests and 200 MB.
MAX_QUESTIONS = 50_000
MAX_BYTES = 190_000_000
_HTTP_OK = 200
_MAX_LINE_BYTES = 2**26  # bytes; a reply with log-probabilities is the hundredth of it
# What some readers take for the end of a line besides the line feed, and JSON may not escape.
_LINE_SEPARATORS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
_MAX_PROBLEMS = 3  # of a refused batch that are told
_FINAL_STATUSES = ("completed", "expired", "cancelled", "failed")
_PAGE_SIZE = 100


class BatchLine(ServerDocument):
    """What a line of an output or error file says about a question.

    `status` is the HTTP status and `body` the JSON body of the answer. `status` is None where the
    question was not processed, and `problem` says why.
    """

    key: str = Field(validation_alias="custom_id")
    status: int | None = Field(None, validation_alias=AliasPath("response", "status_code"))
    body: Any = Field(None, validation_alias=AliasPath("response", "body"))
    error: Any = None

    @property
    def good(self) -> bool:
        """Whether the model answered."""
        return self.status == _HTTP_OK

    @property
    def problem(self) -> str:
        """Why it was not processed."""
        error = self.error
        message = error.get("message") or error.get("code") if isinstance(error, dict) else error
        told = str(message or "it was not processed, and no reason is given")
        return valid_text(told[:EXCERPT_LENGTH])

    @classmethod
    def read(cls, raw: bytes) -> BatchLine | None:
        """Parse a line; None where it is not a line of a batch."""
        return cls.of(find_json_object(decode_body(raw)))


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


class BatchState(ServerDocument):
    """A batch as its server describes it.

    `output` and `errors` are the ids of the files of answers and of failed questions. It is
    recognized by `input_file`. `created` is in seconds since 1970.
    """

    id: str = Field(min_length=1)
    status: str = ""
    answered: int = Field(0, ge=0, validation_alias=AliasPath("request_counts", "completed"))
    failed: int = Field(0, ge=0, validation_alias=AliasPath("request_counts", "failed"))
    output: str | None = Field(None, validation_alias="output_file_id")
    errors: str | None = Field(None, validation_alias="error_file_id")
    refusals: list[Any] = Field(
        [], validation_alias=AliasChoices(AliasPath("errors", "data"), "errors")
    )
    input_file: str | None = Field(None, validation_alias="input_file_id")
    created: int | None = Field(None, validation_alias="created_at")

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.status in _FINAL_STATUSES

    @property
    def problems(self) -> list[str]:
        """Why it was refused."""
        return [
            f"{f'line {line}: ' if (line := problem.get('line')) else ''}"
            f"{problem.get('message') or problem.get('code') or problem}"[:EXCERPT_LENGTH]
            for problem in self.refusals[:_MAX_PROBLEMS]
            if isinstance(problem, dict)
        ]

    @property
    def codes(self) -> list[Any]:
        """Why it was refused, in the server's codes."""
        return [problem.get("code") for problem in self.refusals if isinstance(problem, dict)]


class BatchService:
    """Files and batches of a judge's server, one request per call.

    Every method raises the `ServerError` that says why there is no answer, and RetryableError
    where the answer is invalid. `timeout` is in seconds without a sign of the server.
    """

    def __init__(self, connection: ServerConnection, timeout: float) -> None:
        self.connection = connection
        self._timeout = (min(timeout, 30.0), timeout, timeout, timeout)  # the first is to connect

    async def upload(self, name: str, file: IO[bytes]) -> str:
        """Send an input file, from its beginning; return its id."""
        file.seek(0)
        files = {"file": (name, file, "application/jsonl")}
        document = await self._document("POST", "/files", files=files, data={"purpose": "batch"})
        file_id = document.get("id")
        if not (isinstance(file_id, str) and file_id):
            raise _invalid(f"it returns no file id: {document!r}")
        return file_id

    async def create(self, file: str, path: str) -> BatchState:
        """Submit an input file."""
        body = {
            "input_file_id": file,
            "endpoint": f"/v1{path}",
            "completion_window": "24h",  # the only one there is
        }
        return await self._state("POST", "/batches", json=body)

    async def retrieve(self, batch: str) -> BatchState:
        """Return the state of a batch."""
        return await self._state("GET", f"/batches/{quote(batch, safe='')}")

    async def list_batches(self) -> AsyncIterator[BatchState]:
        """Yield the batches that the server lists for this account, newest first."""
        after: str | None = None
        while True:
            params = {"limit": _PAGE_SIZE} | ({"after": after} if after else {})
            document = await self._document("GET", "/batches", params=params)
            rows = document.get("data")
            parsed = map(BatchState.of, rows) if isinstance(rows, list) else ()
            states = [state for state in parsed if state is not None]
            for state in states:
                yield state
            last = states[-1].id if states else None
            if last is None or last == after or document.get("has_more") is not True:
                return
            after = last

    async def check(self) -> None:
        """Request the list of batches, which is free and shows whether the server has one."""
        await self._send("GET", "/batches", params={"limit": 1})

    async def discard(self, file: str) -> None:
        """Remove an input file that is not needed."""
        await self._send("DELETE", f"/files/{quote(file, safe='')}")

    async def lines(self, file: str) -> AsyncIterator[bytes]:
        """Yield the lines of a file as they arrive.

        They end at line feeds alone: Python's and HTTP clients' line splitting also splits at
        other characters, which a judge's reply may contain.
        """
        path = f"/files/{quote(file, safe='')}/content"
        async with contextlib.aclosing(await self._send("GET", path, stream=True)) as answer:
            remainder = bytearray()
            try:
                async for piece in answer.aiter_bytes():
                    remainder += piece
                    if b"\n" in piece:
                        *lines, remainder = remainder.split(b"\n")
                        for line in lines:
                            yield bytes(line)
                    elif len(remainder) > _MAX_LINE_BYTES:
                        raise _invalid(f"file {file} has a line without an end")  # noqa: TRY301
            except RetryableError:
                raise
            except Exception as error:  # noqa: BLE001 (whatever the package of the HTTP client raises)
                raise _invalid(f"file {file} broke off: {type(error).__name__}") from None
        if remainder:
            if find_json_object(decode_body(bytes(remainder))) is None:
                raise _invalid(f"file {file} broke off in the middle of a line")
            yield bytes(remainder)

    async def _state(self, method: str, path: str, **options: Any) -> BatchState:
        document = await self._document(method, path, **options)
        state = BatchState.of(document)
        if state is None:
            raise _invalid(f"the server sent no batch: {document!r}")
        return state

    async def _document(self, method: str, path: str, **options: Any) -> dict[str, object]:
        return parse_json_body(self.connection.text(await self._send(method, path, **options)))

    async def _send(self, method: str, path: str, **options: Any) -> Any:
        """Send a request; return the response."""
        return await self.connection.send(method, path, timeout=self._timeout, **options)


def _invalid(problem: str) -> RetryableError:
    return RetryableError(problem[:EXCERPT_LENGTH], "server")


_SUBMIT_TIMEOUT = dt.timedelta(minutes=10)  # no request that creates a batch takes longer


@dataclass(frozen=True)
class StoredBatch:
    """A batch in progress, or about to be submitted.

    The server's list shows whether it exists by `file`, the id of its input file. `service_id` is
    None while the server's answer is not recorded. `process` submits it, `created` is ISO 8601 in
    UTC.
    """

    row: int
    file: str
    service_id: str | None
    questions: int
    process: int
    created: str

    @property
    def created_at(self) -> dt.datetime:
        """When it was recorded."""
        return dt.datetime.fromisoformat(self.created)

    @property
    def in_submission(self) -> bool:
        """Whether the process that recorded it may still be submitting it."""
        expired = dt.datetime.now(dt.UTC) - self.created_at > _SUBMIT_TIMEOUT
        is_other = self.process != os.getpid()  # this process knows what it submits
        return is_other and not expired and is_running(self.process)


class BatchStore(CacheStore):
    """A response cache with the batches of one judge, shared with other processes.

    `identity` is the judge's as JSON. Every method raises InputError where the file fails.
    """

    def __init__(self, path: Path, identity: str, judge: str) -> None:
        super().__init__(path)
        self._identity = identity
        self._judge = judge

    def row_of(self, key: str) -> int | None:
        """Return the batch that contains a question, or None."""
        row = self._select("SELECT batch FROM batched WHERE key = ?", key)
        return None if row is None else int(row[0])

    def read(self, row: int) -> StoredBatch | None:
        """Return a batch; None where it is not recorded any more."""
        columns = "id, file, service_id, questions, process, created"
        values = self._select(f"SELECT {columns} FROM batches WHERE id = ?", row)  # noqa: S608
        return None if values is None else StoredBatch(*values)

    def reserve(self, file: str, keys: Sequence[str]) -> StoredBatch | None:
        """Record that these questions are about to be submitted.

        None where another process has submitted or answered one of them.
        """
        with self._transaction() as db:
            values = self._identity, self._judge, file, len(keys), os.getpid()
            (row,) = db.execute(
                "INSERT INTO batches (identity, judge, file, questions, process, created)"
                " VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
                (*values, utc_now()),
            ).fetchone()
            before = db.total_changes
            db.executemany(
                "INSERT OR IGNORE INTO batched SELECT ?1, ?2"
                " WHERE NOT EXISTS (SELECT 1 FROM replies WHERE key = ?1)",
                ((key, row) for key in keys),
            )
            if db.total_changes - before < len(keys):
                db.rollback()
                return None
        return self.read(row)

    def set_service_id(self, row: int, service_id: str) -> None:
        """Record the server's id of a batch."""
        self._select("UPDATE batches SET service_id = ? WHERE id = ?", service_id, row)

    def remove(self, row: int, key: str) -> None:
        """Remove a question from a batch that has no answer to it."""
        self._select("DELETE FROM batched WHERE key = ? AND batch = ?", key, row)

    def retain(self, row: int, keys: Iterable[str]) -> None:
        """Remove all questions of a batch but these, which it has answered."""
        self._select(
            "DELETE FROM batched WHERE batch = ? AND key NOT IN (SELECT value FROM json_each(?))",
            *(row, json.dumps(list(keys))),
        )

    def knows(self, key: str) -> bool:
        """Whether a question is in any batch, or its reply is cached."""
        tables = "(SELECT key FROM batched UNION ALL SELECT key FROM replies)"
        return self._select(f"SELECT 1 FROM {tables} WHERE key = ?", key) is not None  # noqa: S608

    def drop(self, row: int) -> None:
        """Remove a batch with all its questions."""
        with self._transaction() as db:
            db.execute("DELETE FROM batched WHERE batch = ?", (row,))
            db.execute("DELETE FROM batches WHERE id = ?", (row,))

    def prune(self) -> None:
        """Remove questions whose replies are cached, and batches without any question left."""
        with self._transaction() as db:
            db.execute("DELETE FROM batched WHERE key IN (SELECT key FROM replies)")
            db.execute("DELETE FROM batches WHERE id NOT IN (SELECT batch FROM batched)")


def pending_batches(path: Path) -> list[dict[str, Any]]:
    """Return the batches of a response cache whose answers are not fetched, oldest first.

    Each has ``judge``, ``batch`` (the provider's id; None where it is not known), ``questions``,
    ``waiting`` (how many of them have no cached reply) and ``created`` (ISO 8601).
    """
    opened = CACHE_FORMAT.open_read_only(path)
    with CACHE_FORMAT.errors(path), contextlib.closing(opened) as file:
        rows = file.execute(
            "SELECT judge, service_id, questions, count(batched.key), batches.created"
            " FROM batches JOIN batched ON batched.batch = batches.id"
            " WHERE batched.key NOT IN (SELECT key FROM replies)"
            " GROUP BY batches.id ORDER BY batches.created, batches.id"
        ).fetchall()
    names = ("judge", "batch", "questions", "waiting", "created")
    return [dict(zip(names, row, strict=True)) for row in rows]
