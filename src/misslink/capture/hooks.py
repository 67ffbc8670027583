"""Hooks in an app's frameworks, that record its searches or answer them with injected passages.

LangChain's vector stores and retrievers and chromadb's collections have their methods wrapped;
LlamaIndex reports events and Haystack spans. Nothing beside the framework needs to be installed.
"""

from __future__ import annotations

import inspect
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache, partial, wraps
from itertools import product, zip_longest
from types import FrameType
from typing import Any, get_args

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore

from misslink.capture.app import check_app
from misslink.capture.injection import (
    CURRENT_INJECTION,
    InjectedSearch,
    Injection,
    query_and_name,
    suspend_injection,
)
from misslink.capture.recorder import CURRENT_RECORDER, SearchCall, calling_frame, is_example_search
from misslink.errors import InputError
from misslink.types import Passage
from misslink.user_code import error_location

Undo = dict[Any, Callable[[], None]]  # what undoes a change, by what was changed


class SharedHook:
    """Changes to frameworks while cases run; one for the process, as classes are.

    Parameters
    ----------
    install : callable
        Makes those changes that are not yet in the dict it is given, and adds what undoes them.
    """

    def __init__(self, install: Callable[[Undo], None]) -> None:
        self._install = install
        self._lock = threading.Lock()
        self._users = 0
        self._undo: Undo = {}

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Change what there is by now; the last user undoes everything."""
        with self._lock:
            self._users += 1
        try:
            self.extend()
            yield
        finally:
            with self._lock:
                self._users -= 1
                while self._undo and not self._users:
                    self._undo.popitem()[1]()

    def extend(self) -> int:
        """Change what was imported since, too; return how many changes there are."""
        with self._lock:
            self._install(self._undo)
            return len(self._undo)

    @property
    def is_in_place(self) -> bool:
        """Whether it has a user."""
        return self._users > 0


def wrap_methods(
    owners: Iterable[type], methods: Iterable[str], wrap: Callable[..., Any], undo: Undo
) -> None:
    """Wrap the methods that `owners` define themselves.

    `wrap` takes a method and its name, and returns the wrapper, which must call straight through
    outside of a case.
    """

    def restore(owner: type, name: str, original: Any, wrapper: Any) -> None:
        if vars(owner).get(name) is wrapper:  # else somebody wrapped it again: theirs now
            setattr(owner, name, original)

    for owner, name in product(owners, methods):
        original = vars(owner).get(name)
        if inspect.isfunction(original) and (owner, name) not in undo:
            wrapper = wrap(original, name)
            setattr(owner, name, wrapper)
            undo[owner, name] = partial(restore, owner, name, original, wrapper)


def _subclasses(root: type) -> set[type]:
    return {root}.union(*map(_subclasses, root.__subclasses__()))


def record_searches() -> AbstractContextManager[None]:
    """Record searches and model calls of all frameworks imported by now, until the last user is done."""
    return _RECORDING.in_place()


def extend_recording() -> int:
    """While a case runs, record searches of what was imported since; return how much is recorded."""
    return _RECORDING.extend()


def is_recording() -> bool:
    """Whether a case is running."""
    return _RECORDING.is_in_place


def _install_recording(undo: Undo) -> None:
    wrap_methods(_subclasses(VectorStore), _STORE_METHODS, _wrap_search, undo)
    for module, watch in (
        ("chromadb", partial(_watch_chromadb, undo)),
        ("llama_index.core", _watch_llamaindex),
        ("haystack", _watch_haystack),
    ):
        if module in sys.modules and module not in undo:
            try:
                undo[module] = watch()
            except (ImportError, AttributeError) as error:  # another package of this name
                undo[module] = lambda: None
                _warn_of_framework(module, str(error))


@cache
def _warn_of_framework(module: str, problem: str) -> None:
    logging.getLogger("misslink").warning(
        "searches by %s are not recorded, as it is not the package that misslink knows by this "
        "name: %s",
        module,
        problem,
    )


_RECORDING = SharedHook(_install_recording)


# --- vector stores --------------------------------------------------------------------------------

_SEARCHES = (
    "similarity_search",
    "similarity_search_with_score",
    "similarity_search_with_relevance_scores",
    "similarity_search_by_vector",
    "max_marginal_relevance_search",
)
_STORE_METHODS = (*_SEARCHES, *(f"a{name}" for name in _SEARCHES))


@dataclass
class _Search:
    """A search while it runs; the store is searched only where `results` is None."""

    results: Any = None


@contextmanager
def _observed(
    store: Any, name: str, args: tuple[Any, ...], keywords: dict[str, Any], caller: FrameType
) -> Iterator[_Search]:
    """Record a search of the current case, and answer it where passages are injected."""
    recorder, injection, search = CURRENT_RECORDER.get(), CURRENT_INJECTION.get(), _Search()
    if recorder is None and injection is None:
        yield search
        return
    if is_example_search(caller):
        injection = None
    call = recorder.begin_store_search(store, name, args, keywords, caller) if recorder else None
    try:
        if injection is not None:
            search.results = injection.search(name, *query_and_name(store, name, args, keywords))
        with suspend_injection():
            yield search
    finally:
        if recorder is not None:
            recorder.end_store_search(call, search.results or ())


def _wrap_search(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(original):

        @wraps(original)
        async def asearch(self: Any, *args: Any, **kwargs: Any) -> Any:
            # Only its caller tells what a search is for.
            with _observed(self, name, args, kwargs, sys._getframe(1)) as search:  # noqa: SLF001
                if search.results is None:
                    search.results = await original(self, *args, **kwargs)
            return search.results

        return asearch

    @wraps(original)
    def search_store(self: Any, *args: Any, **kwargs: Any) -> Any:
        with _observed(self, name, args, kwargs, sys._getframe(1)) as search:  # noqa: SLF001
            if search.results is None:
                search.results = original(self, *args, **kwargs)
        return search.results

    return search_store


_CHROMADB_COLUMNS = ("ids", "documents", "metadatas", "distances")
_CHROMADB_QUERY = ("query_embeddings", "ids", "where", "where_document")  # what a search depends on


def _wrap_chromadb(original: Callable[..., Any], _: str) -> Callable[..., Any]:
    def record(
        self: Any, args: tuple[Any, ...], keywords: dict[str, Any], result: Any, frame: FrameType
    ) -> None:
        recorder = CURRENT_RECORDER.get()
        # A search of LangChain's store is known already.
        if recorder is None or recorder.enclosing(frame) or is_example_search(frame):
            return
        given = {**dict(zip(("query_embeddings", "query_texts"), args, strict=False)), **keywords}
        texts = given.get("query_texts") or ()
        texts = [texts] if isinstance(texts, str) else texts
        columns = (result[name] or () for name in _CHROMADB_COLUMNS)
        for place, found in enumerate(zip_longest(*columns)):
            text = texts[place] if place < len(texts) else ""
            call = recorder.record(
                text, dict(zip(_CHROMADB_COLUMNS, found, strict=True)), self.name
            )
            if text or len(result["ids"]) == 1:  # else it is not known which vector is meant
                call.source, call.method = self, "query"
                call.keywords = {k: v for k, v in given.items() if k in _CHROMADB_QUERY}
                call.keywords |= {"query_texts": [text]} if text else {}

    @wraps(original)
    def query(self: Any, *args: Any, **keywords: Any) -> Any:
        result = original(self, *args, **keywords)
        record(self, args, keywords, result, sys._getframe(1))  # noqa: SLF001 - its caller
        return result

    @wraps(original)
    async def aquery(self: Any, *args: Any, **keywords: Any) -> Any:
        frame = sys._getframe(1)  # noqa: SLF001 - its caller
        result = await original(self, *args, **keywords)
        record(self, args, keywords, result, frame)
        return result

    return aquery if inspect.iscoroutinefunction(original) else query


def _watch_chromadb(undo: Undo) -> Callable[[], None]:
    from chromadb.api.models.AsyncCollection import AsyncCollection
    from chromadb.api.models.Collection import Collection

    wrap_methods([Collection, AsyncCollection], ["query"], _wrap_chromadb, undo)
    if (Collection, "query") not in undo:
        raise AttributeError("another package has replaced Collection.query")
    return lambda: None  # each method has its own entry in `undo`


# --- LlamaIndex and Haystack ----------------------------------------------------------------------


def _watch_llamaindex() -> Callable[[], None]:
    from llama_index.core.instrumentation import get_dispatcher
    from llama_index.core.instrumentation.event_handlers.base import BaseEventHandler

    searching: dict[str, SearchCall] = {}  # by span

    def handle(event: Any) -> None:
        recorder, kind, span = CURRENT_RECORDER.get(), event.class_name(), event.span_id or ""
        if kind == "RetrievalEndEvent" and span in searching:
            searching.pop(span).finish(event.nodes)
        if recorder is None:
            return
        if kind == "RetrievalStartEvent":
            asked = event.str_or_query_bundle
            frame = calling_frame(
                __name__, "llama_index_instrumentation", "llama_index.core.instrumentation"
            )
            name = type(frame.f_locals.get("self") if frame else None).__name__
            query = getattr(asked, "query_str", asked)
            searching[span] = recorder.begin_search(str(query), name, frame)
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


def _watch_haystack() -> Callable[[], None]:
    from haystack import tracing
    from haystack.tracing.tracer import tracer as proxy

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


# --- injected passages ----------------------------------------------------------------------------

# get_relevant_documents went out of LangChain with 1.0; retrievers written before still have it.
_RETRIEVER_METHODS = ("invoke", "ainvoke", "get_relevant_documents", "aget_relevant_documents")


class InjectedRetriever(BaseRetriever):
    """A retriever that returns the injected passages of the current case."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        del run_manager
        injection = CURRENT_INJECTION.get()
        if injection is None:
            raise RuntimeError(
                "misslink cannot tell for which case the app called the injected retriever. Start "
                "the app's own threads with contextvars.copy_context()"
            )
        return injection.documents(str(query), self.get_name())

    def __call__(self, query: str) -> list[Document]:
        """As `invoke`, for apps whose own retriever is a function."""
        return self.invoke(query)

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self._get_relevant_documents(query, run_manager=run_manager)


@contextmanager
def inject_passages(
    passages: Sequence[Passage],
    *,
    id_key: str | None = None,
    searches: Sequence[InjectedSearch] = (),
) -> Iterator[Injection]:
    """Make every outermost retriever and vector store in this context return `passages`."""
    injection = Injection(passages, id_key, searches)
    with record_searches(), _INJECTING.in_place():
        token = CURRENT_INJECTION.set(injection)
        try:
            yield injection
        finally:
            CURRENT_INJECTION.reset(token)


def retriever_parameter(app: Any) -> inspect.Parameter | None:
    """Return the parameter for a retriever of a function that builds an app from one.

    That is a function with one parameter which is called ``retriever`` or annotated as one, and
    no other required one. Where it has a default it comes first, as else the question might. A
    Runnable, a class and anything else has none.
    """
    if not (inspect.isfunction(app) or inspect.ismethod(app)):
        return None
    empty = inspect.Parameter.empty
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [
        parameter
        for parameter in inspect.signature(app).parameters.values()
        if parameter.kind not in several
    ]
    named = [parameter for parameter in parameters if _is_retriever(parameter)]
    if len(named) != 1 or any(
        parameter.default is empty for parameter in parameters if parameter is not named[0]
    ):
        return None
    is_first = parameters[0] is named[0]
    return named[0] if is_first or named[0].default is empty else None


def _is_retriever(parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    if isinstance(
        annotation, str
    ):  # not evaluated: what it names may only be imported for type checks
        first = annotation.strip("'\"").partition("|")[0].strip()
        annotated = first.endswith("Retriever")
    else:
        annotated = any(
            inspect.isclass(member) and issubclass(member, BaseRetriever)
            for member in (get_args(annotation) or (annotation,))
        )
    return annotated or parameter.name == "retriever"


def build_app(app: Any) -> Any:
    """What is to be asked: `app`, or what it builds where it takes a retriever.

    Raises
    ------
    InputError
        It raises while it builds, or what it builds is no app.
    """
    taken = retriever_parameter(app)
    if taken is None:
        return app
    name = app.__qualname__
    given = InjectedRetriever(name="injected")
    is_named = taken.kind is inspect.Parameter.KEYWORD_ONLY
    try:
        made = app(**{taken.name: given}) if is_named else app(given)
    except Exception as error:
        path, line = error_location(error) or (None, None)
        raise InputError(
            f"{name} raised {type(error).__name__} when it was given a retriever: {error}",
            path=path,
            line=line,
        ) from error
    check_app(made, f"what {name} builds")
    return made


def _wrap_retriever(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    def is_real(retriever: Any) -> bool:
        return CURRENT_INJECTION.get() is None or isinstance(retriever, InjectedRetriever)

    if name.startswith("a"):  # by its name: not every one that can be awaited is an async def

        @wraps(original)
        async def afind(self: Any, *args: Any, **kwargs: Any) -> Any:
            if is_real(self):
                return await original(self, *args, **kwargs)
            return await _ask_replacement(self, "ainvoke", args, kwargs)

        return afind

    @wraps(original)
    def find(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_real(self):
            return original(self, *args, **kwargs)
        return _ask_replacement(self, "invoke", args, kwargs)

    return find


def _ask_replacement(
    retriever: Any, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Ask one that reports to callbacks under the same name, with the same tags.

    Question and config stand by place or by name, whatever the class calls its question.
    """
    other = InjectedRetriever(
        name=retriever.get_name(), tags=retriever.tags, metadata=retriever.metadata
    )
    named = [value for name, value in kwargs.items() if name != "config"]
    question = args[0] if args else next(iter(named), "")
    return getattr(other, method)(question, args[1] if len(args) > 1 else kwargs.get("config"))


def _install_injection(undo: Undo) -> None:
    wrap_methods(_subclasses(BaseRetriever), _RETRIEVER_METHODS, _wrap_retriever, undo)


_INJECTING = SharedHook(_install_injection)
