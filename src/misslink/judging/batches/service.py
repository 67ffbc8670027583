"""The batch interface of an OpenAI-compatible server: files up, batches made, files down.

Source: OpenAI's API reference, "Files" and "Batch".
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from misslink.judging.models.connection import Connection
from misslink.judging.models.reading import EXCERPT, read_body

if TYPE_CHECKING:
    import openai

__all__ = ["MARK", "Service", "State"]

MARK = "misslink"  # the name in a batch's metadata under which its token stands
_RAW = {"X-Stainless-Raw-Response": "true"}
_LONGEST_LINE = 2**26  # bytes; a reply with log-probabilities is the hundredth of it
_PROBLEMS = 3  # of a refused batch that are told
_OVER = ("completed", "expired", "cancelled", "failed")
_PAGE = 100


@dataclass(frozen=True)
class State:
    """A batch as its server describes it; what it does not say, or says strangely, is None or 0.

    Parameters
    ----------
    id, status : str
    answered, failed, total : int
        Questions.
    output, errors : str or None
        Ids of the files of answers, and of what brought none.
    problems : sequence of str
        Why the batch as a whole was refused, as the server says.
    codes : set of str
        The same in its own codes.
    input_file, token : str or None
        By which it is recognised.
    created : int or None
        Seconds since 1970.
    """

    id: str
    status: str
    answered: int = 0
    failed: int = 0
    total: int = 0
    output: str | None = None
    errors: str | None = None
    problems: tuple[str, ...] = ()
    codes: frozenset[str] = frozenset()
    input_file: str | None = None
    token: str | None = None
    created: int | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.status in _OVER

    @classmethod
    def read(cls, document: Any) -> State | None:
        """Read what a server sent of a batch; None where it is none."""
        if not isinstance(document, dict) or _text(document.get("id")) is None:
            return None
        counts, told = document.get("request_counts"), document.get("errors")
        listed = told.get("data") if isinstance(told, dict) else told
        rows = listed if isinstance(listed, list) else []
        found = [one for one in rows if isinstance(one, dict)]
        metadata, counted = document.get("metadata"), counts if isinstance(counts, dict) else {}
        created = document.get("created_at")
        return cls(
            id=document["id"],
            status=_text(document.get("status")) or "",
            answered=_count(counted.get("completed")),
            failed=_count(counted.get("failed")),
            total=_count(counted.get("total")),
            output=_text(document.get("output_file_id")),
            errors=_text(document.get("error_file_id")),
            problems=tuple(_problem(one) for one in found[:_PROBLEMS]),
            codes=frozenset(filter(None, (_text(one.get("code")) for one in found))),
            input_file=_text(document.get("input_file_id")),
            token=_text(metadata.get(MARK)) if isinstance(metadata, dict) else None,
            created=created if type(created) is int else None,
        )


class Service:
    """Files and batches of a judge's server, one request a call.

    Every method raises the ``openai.APIError`` that says why there is no answer, and ValueError
    where the answer is none.

    Parameters
    ----------
    connection : Connection
        The judge's own.
    timeout : float
        Seconds without a sign of the server.
    """

    def __init__(self, connection: Connection, timeout: float) -> None:
        self.connection = connection
        self._timeout = timeout
        self._latest: Any = None

    async def upload(self, name: str, file: IO[bytes]) -> str:
        """Send an input file, from its beginning; return its id."""
        file.seek(0)
        answer: Any = await self.connection.client().files.with_raw_response.create(
            file=(name, file, "application/jsonl"), purpose="batch", timeout=self._patience()
        )
        document = self._read(answer)
        found = _text(document.get("id"))
        if found is None:
            raise ValueError(f"it names no file that it has taken: {document!r}"[:EXCERPT])
        return found

    async def create(self, file: str, path: str, token: str) -> State:
        """Submit an input file; the same token is found again in what `listed` gives."""
        body = {
            "input_file_id": file,
            "endpoint": f"/v1{path}",
            "completion_window": "24h",  # the only one there is
            "metadata": {MARK: token},
        }
        answer: Any = await self.connection.client().post(
            "/batches", cast_to=object, body=body, options=self._options()
        )
        return self._state(answer)

    async def retrieve(self, batch: str) -> State:
        """Look at a batch."""
        answer: Any = await self.connection.client().batches.with_raw_response.retrieve(
            batch, timeout=self._patience()
        )
        return self._state(answer)

    async def listed(self) -> AsyncIterator[State]:
        """Yield the batches of this account, the newest first, as far as the server lists them."""
        after: str | None = None
        while True:
            more = {"after": after} if after else {}
            answer: Any = await self.connection.client().get(
                "/batches", cast_to=object, options=self._options(limit=_PAGE, **more)
            )
            document = self._read(answer)
            rows = document.get("data")
            states = [State.read(row) for row in rows] if isinstance(rows, list) else []
            for state in states:
                if state is not None:
                    yield state
            last = next((state.id for state in reversed(states) if state is not None), None)
            if last is None or last == after or document.get("has_more") is not True:
                return
            after = last

    async def offered(self) -> None:
        """Ask for the list of batches, which costs nothing and shows whether there is one."""
        await self.connection.client().get(
            "/batches", cast_to=object, options=self._options(limit=1)
        )

    async def discard(self, file: str) -> None:
        """Remove an input file that is not needed."""
        await self.connection.client().delete(
            f"/files/{file}", cast_to=object, options=self._options()
        )

    async def lines(self, file: str) -> AsyncIterator[bytes]:
        """Yield the lines of a file as they come; one without an end stops it.

        They are cut at line feeds alone: what Python or an HTTP client calls lines ends at more
        characters than that, which a judge's words may hold.
        """
        files = self.connection.client().files.with_streaming_response
        async with files.content(file, timeout=self._patience()) as answer:
            self._latest = answer.http_response
            left = bytearray()
            try:
                async for piece in answer.iter_bytes():
                    left += piece
                    if b"\n" in piece:
                        *whole, left = left.split(b"\n")
                        for line in whole:
                            yield bytes(line)
                    elif len(left) > _LONGEST_LINE:
                        raise ValueError(f"file {file} has a line without an end")
            except self._broken() as trouble:
                raise ValueError(f"file {file} broke off: {type(trouble).__name__}") from None
        if left:
            if isinstance(read_body(left.decode("utf-8", "replace")), str):
                raise ValueError(f"file {file} broke off in the middle of a line")
            yield bytes(left)

    def error(self, status: int, body: Any) -> openai.APIStatusError:
        """Return what the official client would have raised, had the answer come by itself.

        Parameters
        ----------
        status : int
            The HTTP status that a line of a file tells.
        body : object
            The body that it tells.
        """
        import openai

        kinds: dict[int, type[openai.APIStatusError]] = {
            401: openai.AuthenticationError,
            403: openai.PermissionDeniedError,
            404: openai.NotFoundError,
        }
        said = body.get("error", body) if isinstance(body, dict) else body
        message = said.get("message") if isinstance(said, dict) else said
        like = self._latest  # of the HTTP package that the client uses, whichever that is
        response = type(like)(status, request=like.request)
        kind = kinds.get(status, openai.APIStatusError)
        return kind(str(message or f"status {status}"), response=response, body=said)

    def _state(self, answer: Any) -> State:
        document = self._read(answer)
        found = State.read(document)
        if found is None:
            raise ValueError(f"what it sends is no batch: {document!r}"[:EXCERPT])
        return found

    def _read(self, answer: Any) -> dict[str, Any]:
        self._latest = answer.http_response
        document = read_body(self.connection.text(answer))
        if isinstance(document, str):
            raise ValueError(document)  # noqa: TRY004 (it is what the server sent)
        return document

    def _broken(self) -> type[Exception]:
        """What the client's HTTP package raises where a file breaks off; the client lets it by."""
        package = sys.modules[type(self._latest).__module__.partition(".")[0]]
        kind: type[Exception] = package.HTTPError
        return kind

    def _patience(self) -> Any:
        import openai

        return openai.Timeout(self._timeout, connect=min(self._timeout, 30.0))

    def _options(self, **params: Any) -> Any:
        return {"headers": _RAW, "timeout": self._patience(), "params": params}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0


def _problem(told: dict[str, Any]) -> str:
    line = told.get("line")
    place = f"line {line}: " if type(line) is int else ""
    return f"{place}{told.get('message') or told.get('code') or told}"[:EXCERPT]
