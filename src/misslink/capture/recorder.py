"""Record LangChain's callbacks of one case: retrieval calls, model calls and tokens."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from types import FrameType
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.retrievers import BaseRetriever

from misslink.capture.injection import query_and_name
from misslink.capture.passages import chunks_from, document_list
from misslink.errors import InputError
from misslink.io.trace_formats.requests import tool_documents
from misslink.text.prompt_matching import ModelCall
from misslink.types import Usage

_NO_TEXT = ("image", "audio", "video", "file")


def message_texts(content: Any) -> Iterator[str]:
    """Every text in a message's content, however deep; pictures and sounds are none."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, list | tuple):
        for block in content:
            yield from message_texts(block)
    elif isinstance(content, Mapping) and not str(content.get("type", "")).startswith(_NO_TEXT):
        for key in ("title", "text", "content", "source", "data", "input", "output"):
            yield from message_texts(content.get(key))


def model_output(response: Any) -> str:
    """Everything a model said, the texts it called tools with among it."""
    texts = []
    for generation in _generations(response):
        texts.append(str(getattr(generation, "text", "") or ""))
        for call in getattr(getattr(generation, "message", None), "tool_calls", None) or ():
            texts += [value for value in call["args"].values() if isinstance(value, str)]
    return "\n".join(texts)


def reported_usage(response: Any) -> Usage | None:
    """The tokens a model reported, by its messages or else for the whole call."""
    messages = [getattr(generation, "message", None) for generation in _generations(response)]
    reported = [_usage(getattr(message, "usage_metadata", None)) for message in messages]
    whole = response.llm_output or {}
    return Usage.total(reported) or _usage(whole.get("token_usage") or whole.get("usage"))


def _generations(response: Any) -> list[Any]:
    return [generation for batch in response.generations for generation in batch]


def _usage(reported: Any) -> Usage | None:
    if not isinstance(reported, Mapping) or not reported:
        return None
    return Usage(
        prompt_tokens=reported.get("input_tokens", reported.get("prompt_tokens")),
        completion_tokens=reported.get("output_tokens", reported.get("completion_tokens")),
    )


CURRENT_RECORDER: ContextVar[Recorder | None] = ContextVar("misslink_recorder", default=None)
_CURRENT_CALL: ContextVar[SearchCall | None] = ContextVar("misslink_inside", default=None)
_CURRENT_TOOL: ContextVar[str] = ContextVar("misslink_tool", default="")
# Few-shot examples are looked up in a vector store too; they are no passages.
_EXAMPLE_SELECTORS = "langchain_core.example_selectors"


@dataclass(eq=False)
class SearchCall:
    """One search: by a retriever, a vector store, or a tool that returns documents.

    Parameters
    ----------
    query, name : str
    source : object or None
        The retriever or vector store. None: it could not be observed.
    method : str
        The method that was called: ``invoke``, ``ainvoke``, ``similarity_search``, and so on.
    arguments, keywords : tuple, dict
        Of that method.
    outer : SearchCall or None
        The call inside which it was made.
    documents, scores : list
        The results, best first; empty until the search ends.
    is_leaf : bool
        Whether no other call was made inside it.
    stores : list
        The vector stores that were searched inside it, each once.
    tool : str
        The tool of an agent in which it was made; empty outside of one.
    """

    query: str
    name: str
    source: Any = None
    method: str = ""
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)
    outer: SearchCall | None = None
    documents: list[Any] = field(default_factory=list)
    scores: list[float | None] = field(default_factory=list)
    is_leaf: bool = True
    stores: list[Any] = field(default_factory=list)
    tool: str = ""
    done: bool = False
    frame: FrameType | None = None
    runner: tuple[int, Any] = (0, None)

    def finish(self, documents: Sequence[Any] = (), scores: Sequence[float | None] = ()) -> None:
        """Keep what came back, as it is now, and let go of the frame."""
        self.documents = list(map(_copy_document, documents))
        self.scores = list(scores)
        self.done = True
        self.frame = None

    def is_around(self, frame: FrameType | None) -> bool:
        """Whether code running in `frame` runs inside this call.

        A call that timed out or was cancelled reports no end. In the thread and task it was made
        in, its frame must therefore still be on the stack; tasks and threads started inside of
        it have separate stacks.
        """
        if self.done:
            return False
        if self.frame is None or self.runner != _thread_and_task():
            return True
        return any(step is self.frame for step in _stack(frame))


def _copy_document(document: Any) -> Any:
    """A copy that stays whole where the app cuts the document's text in place."""
    try:
        copied = copy(document)
        if hasattr(document, "node"):  # LlamaIndex's node with a score
            copied.node = copy(document.node)
    except Exception:  # noqa: BLE001 - not every object can be copied
        return document
    return copied


class Recorder(BaseCallbackHandler):
    """Writes down every search and every model call of one case.

    ``calls`` are the searches in the order they were begun; ``models`` the model calls outside of
    any search (what rewrites a query is no reader of passages); ``usage`` the tokens of all.
    """

    raise_error = True  # otherwise LangChain logs a bug in here and loses the event
    run_inline = True  # in the app's own context and order, in async apps too

    def __init__(self) -> None:
        self.calls: list[SearchCall] = []
        self.inner: list[Any] = []  # documents of store searches inside of a call
        self.models: list[ModelCall] = []
        self.usage: Usage | None = None
        self._reported: list[Any] = []  # what the tokens of other frameworks' model calls came from
        self._searching: dict[UUID, SearchCall] = {}
        self._asking: dict[UUID, ModelCall] = {}
        self._tools: dict[UUID, tuple[str, int, int]] = {}  # query, calls and inner before it
        # Keyed by identity; the documents are kept so that no id is given out twice.
        self._scores: dict[int, tuple[Any, float]] = {}
        self._lock = threading.Lock()

    # --- searches ---------------------------------------------------------------------------

    def on_retriever_start(
        self, serialized: dict[str, Any] | None, query: str, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Record the query, the retriever, and the enclosing call."""
        frame = calling_frame()
        retriever, keywords = None, {}
        if frame is not None and frame.f_code.co_argcount:
            first = frame.f_locals.get(frame.f_code.co_varnames[0])
            if isinstance(first, BaseRetriever):
                retriever, keywords = first, frame.f_locals.get("kwargs", {})
        call = SearchCall(
            query=str(query),
            name=str(kwargs.get("name") or (serialized or {}).get("name") or "retriever"),
            source=retriever,
            method="" if frame is None else frame.f_code.co_name,
            arguments=(query,),
            keywords={key: value for key, value in keywords.items() if key != "run_id"},
            frame=frame,
        )
        self._begin(call, frame)
        self._searching[run_id] = call

    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **_: Any) -> None:
        """Store the documents, with scores where a vector store was searched directly."""
        call = self._searching.pop(run_id)
        asked_store = hasattr(call.source, "vectorstore")
        call.finish(documents, self.scores_of(documents) if asked_store else ())

    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """A search that failed found nothing."""
        del error  # the app either raises it, and the trace holds it, or has dealt with it
        self._searching.pop(run_id).finish()

    def begin_store_search(
        self,
        store: Any,
        method: str,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        frame: FrameType,
    ) -> SearchCall | None:
        """Note a vector store's search, called from `frame`; None where it serves another search."""
        outer = self.enclosing(frame)
        if outer is not None:
            is_known = any(known_store is store for known_store in outer.stores)
            if not is_known and not is_example_search(frame):
                outer.stores.append(store)
            return None
        query, name = query_and_name(store, method, arguments, keywords)
        call = SearchCall(query, name, store, method, arguments, dict(keywords))
        self._begin(call, frame, is_listed=not is_example_search(frame))
        return call

    def end_store_search(self, call: SearchCall | None, results: Any) -> None:
        """Keep a store's scores, and its documents where the app itself asked it."""
        pairs = [item if isinstance(item, tuple) else (item, None) for item in results]
        with self._lock:
            for document, score in pairs:
                if score is not None:
                    self._scores[id(document)] = (document, float(score))
            documents = [document for document, _ in pairs]
            self.inner += documents if call is None else ()
        if call is not None:
            call.finish(documents, self.scores_of(documents))

    def on_tool_start(
        self, serialized: dict[str, Any] | None, input_str: str, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """Store the tool's query."""
        inputs = kwargs.get("inputs")
        words = [value for value in inputs.values() if isinstance(value, str)] if inputs else []
        query = words[0] if len(words) == 1 else input_str
        self._tools[run_id] = query, len(self.calls), len(self.inner)
        _CURRENT_TOOL.set(str((serialized or {}).get("name") or kwargs.get("name") or "tool"))

    def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """Record documents that a tool returns and that no recorded search inside of it found."""
        query, calls, inner = self._tools.pop(run_id, ("", 0, 0))
        documents = tool_documents(getattr(output, "artifact", None)) or tool_documents(
            getattr(output, "content", output)
        )
        found = [document for call in self.calls[calls:] for document in call.documents]
        seen = {chunk.text for chunk in chunks_from([*found, *self.inner[inner:]])}
        if documents and seen.isdisjoint(chunk.text for chunk in chunks_from(documents)):
            self.begin_search(query, _CURRENT_TOOL.get(), None).finish(documents)
        _CURRENT_TOOL.set("")

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Forget a tool that failed."""
        del error
        self._tools.pop(run_id, None)
        _CURRENT_TOOL.set("")

    def begin_search(self, query: str, name: str, frame: FrameType | None) -> SearchCall:
        """Note a search of another framework, running in `frame`; the caller finishes it."""
        call = SearchCall(query=query, name=name, frame=frame)
        self._begin(call, frame)
        return call

    def record(self, query: str, passages: Any, name: str) -> SearchCall:
        """Record a search that has ended, such as one that the app itself reports."""
        documents = document_list(passages, strings=True)
        if documents is None:
            raise InputError(
                f"record_retrieval got {type(passages).__name__}; give a list of documents, texts or "
                "objects with 'id' and 'text'"
            )
        call = self.begin_search(query, name, None)
        call.finish(documents)
        return call

    def _begin(self, call: SearchCall, frame: FrameType | None, *, is_listed: bool = True) -> None:
        call.outer = self.enclosing(frame)
        call.tool = _CURRENT_TOOL.get()
        call.runner = _thread_and_task()
        if call.outer is not None:
            call.outer.is_leaf = False
        if is_listed:
            with self._lock:
                self.calls.append(call)
        _CURRENT_CALL.set(call)

    def enclosing(self, frame: FrameType | None) -> SearchCall | None:
        """The recorded search that code running in `frame` is part of."""
        call = _CURRENT_CALL.get()
        while call is not None and not call.is_around(frame):
            call = call.outer
        return call

    def scores_of(self, documents: Sequence[Any]) -> list[float | None]:
        """The scores that a store gave these documents; None of one that it gave none."""
        pairs = (self._scores.get(id(document)) for document in documents)
        return [None if pair is None else pair[1] for pair in pairs]

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
        contents = [message.content for batch in messages for message in batch]
        self.on_llm_start(serialized, list(message_texts(contents)), run_id=run_id)

    def on_llm_start(
        self, serialized: dict[str, Any] | None, prompts: list[str], *, run_id: UUID, **_: Any
    ) -> None:
        """Keep the prompts."""
        del serialized
        if self.enclosing(calling_frame()) is not None:
            return
        model = ModelCall(prompt="\n".join(prompts))
        self._asking[run_id] = model
        with self._lock:
            self.models.append(model)

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        """Keep the output and add up the tokens."""
        model = self._asking.pop(run_id, None)
        if model is not None:
            model.output = model_output(response)
        with self._lock:
            self.usage = Usage.total((self.usage, reported_usage(response)))

    def add_model_call(self, prompt: str, output: str, reported: Any) -> None:
        """Keep a model call of another framework; `reported` may hold the tokens' ``usage``.

        A call inside of another (a chat by a completion) reports the same object.
        """
        plain = isinstance(reported, Mapping)
        used: Any = reported.get("usage") if plain else getattr(reported, "usage", None)
        if hasattr(used, "model_dump"):
            used = used.model_dump()
        with self._lock:
            self.models.append(ModelCall(prompt, output))
            if not any(reported is earlier for earlier in self._reported):
                self._reported.append(reported)
                self.usage = Usage.total((self.usage, _usage(used)))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Forget a model call that failed."""
        del error
        self._asking.pop(run_id, None)


@cache
def install_hook() -> None:
    """Let LangChain look for a recorder in the context of whatever it runs, from now on."""
    from langchain_core.tracers.context import register_configure_hook

    register_configure_hook(CURRENT_RECORDER, inheritable=True)


def is_example_search(frame: FrameType) -> bool:
    """Whether a search called from `frame` looks few-shot examples up."""
    return str(frame.f_globals.get("__name__", "")).startswith(_EXAMPLE_SELECTORS)


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def calling_frame(*modules: str) -> FrameType | None:
    """The frame that reported an event: the first one outside of this file, callbacks and `modules`."""
    ours = ("langchain_core.callbacks", __name__, *modules)
    stack = _stack(sys._getframe(1))  # noqa: SLF001 - callbacks do not say which object reports
    return next((f for f in stack if not str(f.f_globals.get("__name__")).startswith(ours)), None)


def _thread_and_task() -> tuple[int, Any]:
    try:
        task: Any = asyncio.current_task()
    except RuntimeError:  # no event loop in this thread
        task = None
    return threading.get_ident(), task
