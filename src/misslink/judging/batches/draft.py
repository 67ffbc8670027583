"""The input file of a batch in the making, on disk as it grows."""

from __future__ import annotations

import tempfile

from misslink.errors import InputError
from misslink.judging.batches.calls import Call

__all__ = ["MOST_BYTES", "MOST_QUESTIONS", "Draft"]

# Source: OpenAI's API reference, "Create batch": 50,000 requests and 200 MB.
MOST_QUESTIONS = 50_000
MOST_BYTES = 190_000_000


class Draft:
    """Questions that go out together.

    Parameters
    ----------
    most : int
        How many it may have.

    Attributes
    ----------
    file : file of bytes
    calls : dict of str to Call
        By key, in the order of the lines.
    bytes : int

    Raises
    ------
    InputError
        There is no room for the file.
    """

    def __init__(self, most: int = MOST_QUESTIONS) -> None:
        try:
            self.file = tempfile.TemporaryFile(prefix="misslink-batch-")  # noqa: SIM115 (closed by `close`)
        except OSError as trouble:
            raise _no_room(trouble) from None
        self.calls: dict[str, Call] = {}
        self.bytes = 0
        self._most = most

    def takes(self, line: bytes) -> bool:
        """Whether there is room for one more; always for the first."""
        fits = len(self.calls) < self._most and self.bytes + len(line) <= MOST_BYTES
        return fits or not self.calls

    def add(self, call: Call, line: bytes) -> None:
        """Write the line of a question.

        Raises
        ------
        InputError
            The disk is full.
        """
        try:
            self.file.write(line)
        except OSError as trouble:
            raise _no_room(trouble) from None
        self.calls[call.key] = call
        self.bytes += len(line)

    def close(self) -> None:
        """Remove the file."""
        self.file.close()


def _no_room(trouble: OSError) -> InputError:
    return InputError(
        f"the questions of a batch cannot be written ({trouble.strerror}); make room there, or "
        "name another folder by TMPDIR",
        path=tempfile.gettempdir(),
    )
