"""One question on its way through a batch service, and what a line of a file says of it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from misslink.judging.models.reading import EXCERPT, read_body
from misslink.judging.protocol import Ask, TryAgainError

__all__ = ["AnewError", "Call", "Line", "LostError", "line_of"]

_OK = 200
# What some readers take for the end of a line beside the line feed, and JSON may leave as it is.
_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}


class AnewError(Exception):
    """A question is to be put from the beginning, as if nothing had been done about it."""


class LostError(TryAgainError):
    """The answer to a question is lost at the server, which charges for it all the same."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "server")


class Call:
    """A question that waits for its line.

    Parameters
    ----------
    key : str
        That of its reply in the ledger, and what its line is found by.
    ask : Ask

    Attributes
    ----------
    row : int or None
        The batch in which it is out.
    held : bool
        Whether the budget holds back what it may cost.
    """

    __slots__ = ("_answer", "ask", "held", "key", "row")

    def __init__(self, key: str, ask: Ask) -> None:
        self.key = key
        self.ask = ask
        self.row: int | None = None
        self.held = False
        self._answer: asyncio.Future[Line] = asyncio.get_running_loop().create_future()

    async def line(self) -> Line:
        """Wait for the line, or for why there is none."""
        return await self._answer

    def bring(self, line: Line) -> None:
        """Hand the line over."""
        if not self._answer.done():
            self._answer.set_result(line)

    def fail(self, error: Exception) -> None:
        """Say why there is no line."""
        if not self._answer.done():
            self._answer.set_exception(error)


@dataclass(frozen=True)
class Line:
    """What a line of an output or error file says of a question.

    Parameters
    ----------
    key : str
    status : int or None
        The HTTP status of its answer; None where it was never asked.
    body : object
        Of the answer, as JSON value.
    problem : str
        Why it was not asked.
    """

    key: str
    status: int | None
    body: Any
    problem: str = ""

    @property
    def good(self) -> bool:
        """Whether the model has answered."""
        return self.status == _OK

    @classmethod
    def read(cls, raw: bytes) -> Line | None:
        """Read a line; None where it is none of a batch's."""
        document = read_body(raw.decode("utf-8", "replace"))
        if isinstance(document, str) or not isinstance(document.get("custom_id"), str):
            return None
        key, response = document["custom_id"], document.get("response")
        if isinstance(response, dict) and type(response.get("status_code")) is int:
            return cls(key, response["status_code"], response.get("body"))
        told = document.get("error")
        said = told.get("message") or told.get("code") if isinstance(told, dict) else told
        return cls(
            key, None, None, str(said or "it was not asked, and no reason is given")[:EXCERPT]
        )


def line_of(key: str, path: str, body: dict[str, Any]) -> bytes:
    """Return the line of an input file that puts a question.

    Parameters
    ----------
    key : str
        64 characters, the most that OpenAI takes for a ``custom_id``.
    path : str
        Of the judge's interface, below the base URL.
    body : dict
        Of the request.
    """
    line = {"custom_id": key, "method": "POST", "url": f"/v1{path}", "body": body}
    try:
        return json.dumps(line, ensure_ascii=False).translate(_LINE_ENDS).encode() + b"\n"
    except UnicodeEncodeError:  # halves of surrogate pairs, which a text under test may hold
        return json.dumps(line).encode() + b"\n"
