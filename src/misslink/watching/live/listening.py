"""What a served request retrieved and used, overheard by LangChain's own callbacks."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from misslink.capture.answers import message_text
from misslink.capture.models import added, tokens
from misslink.capture.passages import passage_from
from misslink.types import Usage

__all__ = ["LISTENING", "Tally", "install_hook", "question_of"]

LISTENING: ContextVar[Tally | None] = ContextVar("misslink_live_tally", default=None)
_QUESTION_KEYS = ("question", "query", "input", "user_input", "user_query", "prompt")
_LONGEST = 4000  # characters of a question that are looked at


class Tally(BaseCallbackHandler):
    """Ids of the passages retrieved and the tokens used by one request.

    A retriever asked by another one is not counted beside it. What a callback cannot see (a vector
    store searched without a retriever, a client other than LangChain's) is not here.
    """

    # What is not listened to costs nothing: of chains and prompts nothing is kept.
    ignore_chain = True
    ignore_chat_model = True
    ignore_agent = True
    raise_error = False  # a bug in here never reaches the user
    run_inline = True  # in the app's own context, and not through a thread of its own

    def __init__(self, id_key: str | None = None) -> None:
        self.usage: Usage | None = None
        self._id_key = id_key
        self._found: dict[str, None] | None = None
        self._searching: set[UUID] = set()
        self._inner: set[UUID] = set()
        self._lock = threading.Lock()

    @property
    def retrieved(self) -> tuple[str, ...] | None:
        """Ids, best first, call after call, each once; None where no retrieval was seen."""
        return None if self._found is None else tuple(self._found)

    def on_retriever_start(
        self,
        serialized: dict[str, Any] | None,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **_: Any,
    ) -> None:
        """Note who asks inside of whom."""
        del serialized, query
        with self._lock:
            if parent_run_id in self._searching:
                self._inner.add(run_id)
            self._searching.add(run_id)

    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **_: Any) -> None:
        """Keep the ids that an outermost retriever found."""
        if run_id in self._inner:
            return
        ids = [passage_from(document, id_key=self._id_key).id for document in documents]
        with self._lock:
            self._found = {**(self._found or {}), **dict.fromkeys(ids)}

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        """Add up the tokens."""
        del run_id
        with self._lock:
            self.usage = added(self.usage, tokens(response))


@cache
def install_hook() -> None:
    """Let LangChain look for a tally in the context of whatever it runs, from now on."""
    from langchain_core.tracers.context import register_configure_hook

    register_configure_hook(LISTENING, inheritable=True)


def question_of(asked: Any) -> str | None:
    """Return the question in an app's input, cut to 4,000 characters; None where none is seen.

    The input itself, or its field question, query, input, user_input, user_query or prompt, or
    the last message that is not the app's own.
    """
    if isinstance(asked, str):
        return asked[:_LONGEST] or None
    content = getattr(asked, "content", None)
    if content is not None:
        return message_text(content)[:_LONGEST] or None
    if isinstance(asked, Mapping):
        named = next((asked[key] for key in _QUESTION_KEYS if asked.get(key)), None)
        return question_of(asked.get("messages") if named is None else named)
    if isinstance(asked, list | tuple):
        return next((said for one in reversed(asked) if (said := _said_by_user(one))), None)
    return None


def _said_by_user(message: Any) -> str | None:
    if isinstance(message, tuple) and len(message) == 2:  # noqa: PLR2004 - ("user", "the words")
        role, content = message
    elif isinstance(message, Mapping):
        role, content = message.get("role", message.get("type")), message.get("content")
    else:
        role, content = getattr(message, "type", None), getattr(message, "content", None)
    return message_text(content)[:_LONGEST] or None if role in ("user", "human") else None
