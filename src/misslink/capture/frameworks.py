"""Ask apps of LlamaIndex and Haystack, and record what they and a chromadb client do.

The frameworks report what happens inside through an interface of their own: LlamaIndex's instrumentation
events, and Haystack's tracer. Nothing beside the framework itself needs to be installed.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import wraps
from typing import Any

# --- apps -----------------------------------------------------------------------------------------


def framework_caller(app: Any) -> Callable[..., Any] | None:
    """A function of the question that asks an app of LlamaIndex or Haystack; None for other apps."""
    if hasattr(app, "achat"):
        return _chat_caller(app)
    if hasattr(app, "aquery"):

        async def query(question: str) -> dict[str, Any]:
            return _answer_and_sources(await app.aquery(question))

        return query
    if hasattr(app, "aretrieve"):
        retrieve: Callable[[str], Any] = app.aretrieve
        return retrieve
    if all(hasattr(app, name) for name in ("add_component", "inputs", "run")):
        return _pipeline_caller(app)
    return None


def _chat_caller(engine: Any) -> Callable[..., Any]:
    from llama_index.core.llms import ChatMessage

    async def chat(question: str, history: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
        # A history, even an empty one, replaces what the engine remembers of other cases.
        earlier = [ChatMessage(**message) for message in history]
        return _answer_and_sources(await engine.achat(question, chat_history=earlier))

    return chat


def _answer_and_sources(response: Any) -> dict[str, Any]:
    return {"answer": str(response), "source_nodes": getattr(response, "source_nodes", None)}


def _pipeline_caller(pipeline: Any) -> Callable[[str], Any]:
    """Ask a Haystack pipeline: the question is every input without which it cannot run."""

    def call(question: str) -> Any:
        inputs = {
            component: {
                name: question for name, socket in sockets.items() if socket["is_mandatory"]
            }
            for component, sockets in pipeline.inputs().items()
        }
        outputs = pipeline.run({name: values for name, values in inputs.items() if values})
        last = list(outputs.values())[-1] if outputs else {}
        replies = last.get("replies") or last.get("answers")
        if not replies:
            return last.get("documents", last)
        texts = (getattr(replies[0], name, None) for name in ("text", "data"))
        return next((text for text in texts if isinstance(text, str)), str(replies[0]))

    return call


# --- searches and model calls ---------------------------------------------------------------------


class _Hook:
    """Something that is installed in a framework while a case runs, once for the process.

    Parameters
    ----------
    module : str
        Of the framework; nothing happens unless the app has imported it.
    install : callable
        Installs it and returns what removes it.
    """

    def __init__(self, module: str, install: Callable[[], Callable[[], None]]) -> None:
        self._module, self._install = module, install
        self._lock = threading.Lock()
        self._users = 0
        self._remove: Callable[[], None] | None = None

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Install it; the last user removes it."""
        with self._lock:
            self._users += 1
            if self._remove is None and self._module in sys.modules:
                self._remove = self._install()
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0 and self._remove is not None:
                    self._remove()
                    self._remove = None


def _watch_llamaindex() -> Callable[[], None]:
    from llama_index.core.instrumentation import get_dispatcher
    from llama_index.core.instrumentation.event_handlers.base import BaseEventHandler

    from misslink.capture.recorder import CURRENT_RECORDER, Recorder, SearchCall

    searching: dict[str, tuple[Recorder, SearchCall]] = {}  # by span

    def handle(event: Any) -> None:
        recorder, kind, span = CURRENT_RECORDER.get(), event.class_name(), event.span_id or ""
        if kind == "RetrievalEndEvent" and span in searching:
            searching.pop(span)[1].finish(event.nodes)
        if recorder is None:
            return
        if kind == "RetrievalStartEvent":
            asked = event.str_or_query_bundle
            frame = _caller("llama_index_instrumentation", "llama_index.core.instrumentation")
            name = type(frame.f_locals.get("self")).__name__
            query = getattr(asked, "query_str", asked)
            searching[span] = recorder, recorder.begin_search(str(query), name, frame)
        elif kind == "LLMCompletionEndEvent":
            recorder.add_model_call(event.prompt, event.response.text, event.response.raw)
        elif kind == "LLMChatEndEvent" and event.response is not None:
            prompt = "\n".join(str(message.content or "") for message in event.messages)
            answer = str(event.response.message.content or "")
            recorder.add_model_call(prompt, answer, event.response.raw)

    class Handler(BaseEventHandler):
        @classmethod
        def class_name(cls) -> str:
            return "misslink"

        def handle(self, event: Any, **_: Any) -> None:
            handle(event)

    dispatcher, handler = get_dispatcher(), Handler()
    dispatcher.add_event_handler(handler)
    return lambda: dispatcher.event_handlers.remove(handler)


def _caller(*modules: str) -> Any:
    """The frame of the framework's code that is running."""
    frame = sys._getframe(1)  # noqa: SLF001 - which search is running
    while frame.f_back is not None and frame.f_globals["__name__"].startswith((__name__, *modules)):
        frame = frame.f_back
    return frame


def _watch_haystack() -> Callable[[], None]:
    from haystack import tracing
    from haystack.tracing.tracer import tracer as proxy

    from misslink.capture.recorder import CURRENT_RECORDER

    class Span(tracing.Span):
        def __init__(self, own: Any, tags: Mapping[str, Any]) -> None:
            self.own, self.tags = own, dict(tags)

        def set_tag(self, key: str, value: Any) -> None:
            self.own.set_tag(key, value)

        def set_content_tag(self, key: str, value: Any) -> None:
            self.own.set_content_tag(key, value)
            self.tags[key] = value

        def raw_span(self) -> Any:
            return self.own.raw_span()

    class Tracer(tracing.Tracer):
        """Records components, and passes everything on to the app's own tracer."""

        @contextmanager
        def trace(
            self, operation_name: str, tags: Any = None, parent_span: Any = None
        ) -> Iterator[Any]:
            parent = getattr(parent_span, "own", parent_span)
            with earlier.trace(operation_name, tags=tags, parent_span=parent) as own:
                span = Span(own, tags or {})
                yield span
            recorder = CURRENT_RECORDER.get()
            if recorder is not None:
                _record_component(recorder, span.tags)

        def current_span(self) -> Any:
            return earlier.current_span()

    earlier, mine = proxy.actual_tracer, Tracer()
    tracing.enable_tracing(mine)

    def remove() -> None:
        if proxy.actual_tracer is mine:  # else the app has replaced it meanwhile
            tracing.enable_tracing(earlier)

    return remove


def _record_component(recorder: Any, tags: Mapping[str, Any]) -> None:
    """Record a component that returned documents, or a model's replies."""
    inputs = tags.get("haystack.component.input") or {}
    outputs = tags.get("haystack.component.output") or {}
    if isinstance(documents := outputs.get("documents"), list):
        taken = {document.id for document in _documents(inputs)}
        query = next((value for value in inputs.values() if isinstance(value, str)), "")
        name = str(tags.get("haystack.component.type"))
        call = recorder.begin_search(query, name, None)
        call.finish(documents)
        for other in recorder.calls:  # the searches whose results it ranked, joined or filtered
            ids = {getattr(document, "id", None) for document in other.documents}
            if other is not call and other.outer is None and ids and ids <= taken:
                other.outer, call.is_leaf = call, False
    elif isinstance(replies := outputs.get("replies"), list):
        usage = [*(outputs.get("meta") or ()), *(getattr(r, "meta", None) or {} for r in replies)]
        recorder.add_model_call(
            "\n".join(_texts(inputs.values())), "\n".join(_texts(replies)), next(iter(usage), None)
        )


def _documents(values: Mapping[str, Any]) -> Iterator[Any]:
    for value in values.values():
        for item in value if isinstance(value, list) else ():
            for document in item if isinstance(item, list) else [item]:
                if hasattr(document, "content") and hasattr(document, "id"):
                    yield document


def _texts(values: Sequence[Any] | Any) -> Iterator[str]:
    """Texts, and those of messages, in values that may be lists of them."""
    for value in values:
        if isinstance(value, list):
            yield from _texts(value)
        elif isinstance(text := getattr(value, "text", value), str):
            yield text


def _watch_chromadb() -> Callable[[], None]:
    from chromadb.api.models.Collection import Collection

    from misslink.capture.recorder import CURRENT_RECORDER, is_example_search

    original = Collection.query

    @wraps(original)
    def query(self: Any, *args: Any, **keywords: Any) -> Any:
        result = original(self, *args, **keywords)
        recorder, frame = CURRENT_RECORDER.get(), sys._getframe(1)  # noqa: SLF001 - its caller
        # A search of LangChain's store is known already.
        if recorder and not recorder.is_searching(frame) and not is_example_search(frame):
            texts = keywords.get("query_texts") or ""
            recorder.record(texts if isinstance(texts, str) else texts[0], dict(result), self.name)
        return result

    Collection.query = query  # type: ignore[method-assign]
    return lambda: setattr(Collection, "query", original)


_HOOKS = (
    _Hook("llama_index.core", _watch_llamaindex),
    _Hook("haystack", _watch_haystack),
    _Hook("chromadb", _watch_chromadb),
)


@contextmanager
def record_frameworks() -> Iterator[None]:
    """Record searches and model calls of LlamaIndex and Haystack, and queries of chromadb."""
    with ExitStack() as hooks:
        for hook in _HOOKS:
            hooks.enter_context(hook.in_place())
        yield
