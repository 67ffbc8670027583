"""An async app that streams; its own search is reported by one line, wherever it stands."""

from __future__ import annotations

from collections.abc import AsyncIterator

from desk import PASSAGES, make_prompt, search, write_answer

import misslink


def find(question: str) -> list[str]:
    """Search, and tell misslink what came back; outside an evaluation this does nothing."""
    names = search(question)
    misslink.record_retrieval(question, [{"id": name, "text": PASSAGES[name]} for name in names])
    return [PASSAGES[name] for name in names]


async def app(question: str) -> AsyncIterator[str]:
    """Yield the answer word by word."""
    for word in write_answer(make_prompt(question, find(question))).split():
        yield f"{word} "
