"""Messages that are rendered when they are read, and named before that."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, overload

from misslink.prompting.prompts import Prompt

__all__ = ["RENDERING", "Rendered"]

# How a prompt and its inputs become messages: its blocks, the fence and what is replaced inside.
# It stands in the digest, so whoever changes a rendered message raises it; a test notices.
RENDERING = 1

Message = Mapping[str, str]


class Rendered(Sequence[Message]):
    """The messages that a prompt makes of its inputs.

    A reply that is kept is found by ``digest``, so that a run whose ledger is full renders nothing.

    Parameters
    ----------
    prompt : Prompt
    inputs : mapping
        JSON values.
    """

    def __init__(self, prompt: Prompt, inputs: Mapping[str, Any]) -> None:
        self._prompt = prompt
        self._inputs = inputs

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what the messages depend on: the prompt's file, its inputs, `RENDERING`."""
        told = json.dumps(
            [RENDERING, self._prompt.ref.sha256, dict(self._inputs)], ensure_ascii=False
        )
        return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()

    @cached_property
    def _messages(self) -> tuple[Message, ...]:
        return self._prompt.messages(self._inputs)

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, at: int) -> Message: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Message]: ...

    def __getitem__(self, at: int | slice) -> Message | Sequence[Message]:
        return self._messages[at]
