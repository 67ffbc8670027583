"""LangChain's own callbacks, written down for one case."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.retrievers import BaseRetriever

from misslink.capture.handing import asked_of
from misslink.capture.models import ModelCall, added, outputs, texts, tokens
from misslink.types import Usage

__all__ = ["CURRENT", "Call", "Recorder", "for_examples", "install_hook"]

CURRENT: ContextVar[Recorder | None] = ContextVar("misslink_recorder", default=None)
_INSIDE: ContextVar[Call | None] = ContextVar("misslink_inside", default=None)
# Few-shot examples are looked up in a vector store too; they are no passages.
_NO_PASSAGES = "langchain_core.example_selectors"


@dataclass(eq=False)
class Call:
    """One search: of a retriever, of a vector store, or of a tool that hands out documents.

    Parameters
    ----------
    query, name : str
    source : object or None
        The retriever or the vector store that was asked. None: it could not be seen.
    method : str
        How it was asked, ``invoke``, ``ainvoke`` or ``similarity_search`` and its kin.
    arguments, keywords : tuple, dict
        What that method was given.
    outer : Call or None
        The call it was made inside of.
    documents, scores : list
        What came back, best first; empty while nothing has.
    is_leaf : bool
        Whether no other call was made inside of it.
    stores : list
        The vector stores that were searched inside of it, each once.
    """

    query: str
    name: str
    source: Any = None
    method: str = ""
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)
    outer: Call | None = None
    documents: list[Any] = field(default_factory=list)
    scores: list[float | None] = field(default_factory=list)
    is_leaf: bool = True
    stores: list[Any] = field(default_factory=list)
    done: bool = False
    frame: FrameType | None = None
    runner: tuple[int, Any] = (0, None)

    def finish(self, documents: Sequence[Any] = (), scores: Sequence[float | None] = ()) -> None:
        """Keep what came back and let go of the frame."""
        self.documents = list(documents)
        self.scores = list(scores)
        self.done = True
        self.frame = None

    def is_around(self, frame: FrameType | None) -> bool:
        """Whether code running in `frame` runs inside this call.

        A call that timed out or was cancelled reports no end. In the thread and task it was made
        in, its frame must therefore still be on the stack; tasks and threads started inside of
        it have stacks of their own.
        """
        if self.done:
            return False
        if self.frame is None or self.runner != _runner():
            return True
        return any(step is self.frame for step in _stack(frame))


class Recorder(BaseCallbackHandler):
    """Writes down every search and every model call of one case.

    ``calls`` are the searches in the order they were begun; ``models`` the model calls outside of
    any search (what rewrites a query is no reader of passages); ``usage`` the tokens of all.
    """

    raise_error = True  # otherwise LangChain logs a bug in here and loses the event
    run_inline = True  # in the app's own context and order, in async apps too

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.models: list[ModelCall] = []
        self.usage: Usage | None = None
        self._searching: dict[UUID, Call] = {}
        self._asking: dict[UUID, ModelCall] = {}
        self._tools: dict[UUID, str] = {}
        # Keyed by identity; the documents are kept so that no id is given out twice.
        self._scores: dict[int, tuple[Any, float]] = {}
        self._lock = threading.Lock()

    # --- searches ---------------------------------------------------------------------------

    def on_retriever_start(
        self, serialized: dict[str, Any] | None, query: str, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Note who is asked what, and inside of whom."""
        frame = _caller()
        source = _first_argument(frame)
        retriever = source if isinstance(source, BaseRetriever) else None
        given = frame.f_locals.get("kwargs", {}) if frame is not None and retriever else {}
        call = Call(
            query=str(query),
            name=str(kwargs.get("name") or (serialized or {}).get("name") or "retriever"),
            source=retriever,
            method="" if frame is None else frame.f_code.co_name,
            arguments=(query,),
            keywords={key: value for key, value in given.items() if key != "run_id"},
            frame=frame,
        )
        self._begin(call, frame)
        self._searching[run_id] = call

    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **_: Any) -> None:
        """Keep the documents, with the store's scores where the store was asked directly."""
        call = self._searching.pop(run_id)
        asked_store = hasattr(call.source, "vectorstore")
        call.finish(documents, self.scores_of(documents) if asked_store else ())

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """A search that failed found nothing."""
        del error  # the app either raises it, and the trace holds it, or has dealt with it
        self._searching.pop(run_id).finish()

    def begin_store_search(
        self, store: Any, method: str, arguments: tuple[Any, ...], keywords: dict[str, Any]
    ) -> Call | None:
        """Note a vector store's search; None where it serves another search."""
        frame = sys._getframe(2)  # noqa: SLF001 - the tap's wrapper, whose caller is the app
        outer = self._enclosing(frame)
        if outer is not None:
            if not any(known is store for known in outer.stores) and not for_examples(frame):
                outer.stores.append(store)
            return None
        query, name = asked_of(store, method, arguments, keywords)
        call = Call(
            query=query,
            name=name,
            source=store,
            method=method,
            arguments=arguments,
            keywords=dict(keywords),
        )
        self._begin(call, frame, is_listed=not for_examples(frame))
        return call

    def end_store_search(self, call: Call | None, found: Any) -> None:
        """Keep a store's scores, and its documents where the app itself asked it."""
        pairs = [item if isinstance(item, tuple) else (item, None) for item in found]
        with self._lock:
            for document, score in pairs:
                if score is not None:
                    self._scores[id(document)] = (document, float(score))
        if call is not None:
            documents = [document for document, _ in pairs]
            call.finish(documents, self.scores_of(documents))

    def on_tool_start(
        self, serialized: dict[str, Any] | None, input_str: str, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Remember what the tool was asked."""
        inputs = kwargs.get("inputs")
        words = [value for value in inputs.values() if isinstance(value, str)] if inputs else []
        self._tools[run_id] = words[0] if len(words) == 1 else input_str
        del serialized

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool that hands out documents nobody saw retrieved has retrieved them."""
        query = self._tools.pop(run_id, "")
        artifact = getattr(output, "artifact", None)
        if not isinstance(artifact, list) or not artifact:
            return
        seen = {one.page_content for call in self.calls for one in call.documents}
        if any(getattr(item, "page_content", None) in {*seen, None} for item in artifact):
            return
        call = Call(query=query, name=str(kwargs.get("name") or getattr(output, "name", "tool")))
        self._begin(call, None)
        call.finish(artifact)

    def _begin(self, call: Call, frame: FrameType | None, *, is_listed: bool = True) -> None:
        call.outer = self._enclosing(frame)
        call.runner = _runner()
        if call.outer is not None:
            call.outer.is_leaf = False
        if is_listed:
            with self._lock:
                self.calls.append(call)
        _INSIDE.set(call)

    def _enclosing(self, frame: FrameType | None) -> Call | None:
        call = _INSIDE.get()
        while call is not None and not call.is_around(frame):
            call = call.outer
        return call

    def scores_of(self, documents: Sequence[Any]) -> list[float | None]:
        """The scores that a store gave these documents; None of one that it gave none."""
        known = (self._scores.get(id(document)) for document in documents)
        return [None if pair is None else pair[1] for pair in known]

    # --- models -----------------------------------------------------------------------------

    def on_chat_model_start(
        self,
        serialized: dict[str, Any] | None,
        messages: list[list[Any]],
        *,
        run_id: UUID,
        **_: Any,
    ) -> None:
        """Keep the text of all messages."""
        del serialized
        said = [text for batch in messages for one in batch for text in texts(one.content)]
        self._asked(run_id, said)

    def on_llm_start(
        self, serialized: dict[str, Any] | None, prompts: list[str], *, run_id: UUID, **_: Any
    ) -> None:
        """Keep the prompts."""
        del serialized
        self._asked(run_id, prompts)

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        """Keep the output and add up the tokens."""
        model = self._asking.pop(run_id, None)
        if model is not None:
            model.output = outputs(response)
        with self._lock:
            self.usage = added(self.usage, tokens(response))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """A model that failed was asked all the same."""
        del error
        self._asking.pop(run_id, None)

    def _asked(self, run_id: UUID, said: Sequence[str]) -> None:
        if self._enclosing(_caller()) is not None:
            return
        model = ModelCall(prompt="\n".join(said))
        self._asking[run_id] = model
        with self._lock:
            self.models.append(model)


@cache
def install_hook() -> None:
    """Let LangChain look for a recorder in the context of whatever it runs, from now on."""
    from langchain_core.tracers.context import register_configure_hook

    register_configure_hook(CURRENT, inheritable=True)


def for_examples(frame: FrameType) -> bool:
    """Whether a search called from `frame` looks few-shot examples up."""
    return str(frame.f_globals.get("__name__", "")).startswith(_NO_PASSAGES)


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _caller() -> FrameType | None:
    """The frame that reported an event: the first one outside of this file and the callbacks."""
    ours = ("langchain_core.callbacks", __name__)
    stack = _stack(sys._getframe(1))  # noqa: SLF001 - callbacks do not say which object reports
    return next((f for f in stack if not str(f.f_globals.get("__name__")).startswith(ours)), None)


def _first_argument(frame: FrameType | None) -> Any:
    if frame is None or not frame.f_code.co_argcount:
        return None
    return frame.f_locals.get(frame.f_code.co_varnames[0])


def _runner() -> tuple[int, Any]:
    try:
        task: Any = asyncio.current_task()
    except RuntimeError:  # no event loop in this thread
        task = None
    return threading.get_ident(), task
