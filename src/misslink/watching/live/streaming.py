"""The chunks of a stream: how long they can still be taken back, and what they add up to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import BaseMessageChunk

__all__ = ["NoAnswerError", "Opening", "added_up"]

_MOST_HELD = 100  # chunks that say nothing, until they go out all the same


class NoAnswerError(Exception):
    """The variant came to an end without an answer."""


class Opening:
    """Holds the first chunks of a stream until one of them says something.

    Chat models often begin with chunks that say nothing. While only such have come nobody has read
    anything, and another variant can still answer.

    Attributes
    ----------
    is_over : bool
        Whether chunks have gone out.
    """

    def __init__(self) -> None:
        self.is_over = False
        self._held: list[Any] = []

    def take(self, chunk: Any) -> list[Any]:
        """Return the chunks that go out now that this one has come."""
        if self.is_over:
            return [chunk]
        self._held.append(chunk)
        if len(self._held) < _MOST_HELD and _says_nothing(chunk):
            return []
        self.is_over = True
        return self._held

    def rest(self, must_be_answer: Callable[[Any], None]) -> list[Any]:
        """Return what goes out at the stream's end, where nothing has so far.

        Raises
        ------
        NoAnswerError
            There were no chunks.
        Exception
            `must_be_answer` refuses what they add up to.
        """
        if self.is_over:
            return []
        if not self._held:
            raise NoAnswerError("it streamed nothing")
        must_be_answer(added_up(self._held))
        self.is_over = True
        return self._held


def added_up(chunks: Sequence[Any]) -> Any:
    """Return the output that chunks are of: their sum, or the last where they have none."""
    if not chunks:
        return None
    whole = chunks[0]
    for chunk in chunks[1:]:
        try:
            whole = whole + chunk
        except TypeError:
            whole = chunk
    return whole


def _says_nothing(chunk: Any) -> bool:
    if isinstance(chunk, BaseMessageChunk):
        said = (chunk.content, chunk.additional_kwargs, getattr(chunk, "tool_call_chunks", None))
        return not any(said)
    return not chunk if isinstance(chunk, str) else chunk is None
