"""An app that is handed passages in place of what its retriever would find.

While a replay runs, the methods by which every retriever class is asked are wrapped, and the
search methods of the vector stores (`misslink.capture.tap`) are answered too. Which passages are
handed out stands in a context variable, so that cases under way at once do not mix. Only the
outermost retriever is ever reached: what it is made of is not asked.
"""

from __future__ import annotations

import copy
import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, get_args

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from misslink.capture.loading import check_app
from misslink.capture.wrapping import Wrapping
from misslink.errors import InputError
from misslink.importing import place_of
from misslink.types import Passage

__all__ = ["INJECTED", "InjectedRetriever", "Injection", "built", "injected", "takes_retriever"]

INJECTED: ContextVar[Injection | None] = ContextVar("misslink_injected", default=None)

# get_relevant_documents went out of LangChain with 1.0; retrievers written before still have it.
_METHODS = ("invoke", "ainvoke", "get_relevant_documents", "aget_relevant_documents")


class Injection:
    """The passages that an app is handed, and how often it asked for any.

    Parameters
    ----------
    passages : sequence of Passage
        Best first. Empty: the app finds nothing.
    id_key : str or None
        The metadata key under which the app's own documents carry their id.
    """

    def __init__(self, passages: Sequence[Passage], id_key: str | None = None) -> None:
        self._passages = tuple(passages)
        self._id_key = id_key
        self._lock = threading.Lock()
        self.asked = 0

    def documents(self) -> list[Document]:
        """Answer a retriever; the documents are new each time, as an app may write into them."""
        with self._lock:
            self.asked += 1
        return [self._document(passage) for passage in self._passages]

    def search(self, method: str) -> list[Any]:
        """Answer a search method of a vector store, with scores where it gives scores.

        A passage without a score has that of the place before it, or of the next that has one;
        where none has any, it is as near as can be: a relevance of 1, a distance of 0.
        """
        found = self.documents()
        if "_with_" not in method:
            return found
        known = [passage.score for passage in self._passages]
        nearest = 1.0 if "relevance" in method else 0.0
        score = next((one for one in known if one is not None), nearest)
        scores = [score := score if one is None else one for one in known]
        return list(zip(found, scores, strict=True))

    def _document(self, passage: Passage) -> Document:
        metadata: dict[str, Any] = copy.deepcopy(dict(passage.metadata))
        if self._id_key is not None:
            metadata.setdefault(self._id_key, passage.id)
        return Document(page_content=passage.text, id=passage.id, metadata=metadata)


class InjectedRetriever(BaseRetriever):
    """Answers the passages that are injected where it is asked, whatever the question."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        del query, run_manager
        injection = INJECTED.get()
        if injection is None:
            raise RuntimeError(
                "the injected retriever was asked where it is not known for which case: a thread "
                "that the app starts itself needs contextvars.copy_context()"
            )
        return injection.documents()

    def __call__(self, query: str) -> list[Document]:
        """As `invoke`, for apps whose own retriever is a function."""
        return self.invoke(query)

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self._get_relevant_documents(query, run_manager=run_manager)


@contextmanager
def injected(passages: Sequence[Passage], *, id_key: str | None = None) -> Iterator[Injection]:
    """Let every outermost retriever answer `passages`, in this context and what it starts.

    Vector stores that the app searches without a retriever answer them too. Callbacks fire as
    ever, so that a `misslink.capture.Watcher` sees the passages retrieved.

    Parameters
    ----------
    passages : sequence of Passage
        Best first; their ``score`` belongs to the place in the list.
    id_key : str or None
        The metadata key under which the app's own documents carry their id.

    Yields
    ------
    Injection
        Whose ``asked`` tells whether the app asked at all: threads of its own and clients other
        than LangChain's are not reached.
    """
    from misslink.capture.tap import listening

    injection = Injection(passages, id_key)
    with listening(), _RETRIEVERS.in_place():
        token = INJECTED.set(injection)
        try:
            yield injection
        finally:
            INJECTED.reset(token)


@contextmanager
def stepping_aside() -> Iterator[None]:
    """Let searches through that are not for passages."""
    token = INJECTED.set(None)
    try:
        yield
    finally:
        INJECTED.reset(token)


def takes_retriever(app: Any) -> bool:
    """Whether `app` builds an app from a retriever.

    That is a function with one parameter which is called ``retriever`` or annotated as one, and
    no other required one. Where it has a default it comes first, as else the question might. A
    Runnable, a class and anything else is none.
    """
    return _retriever_parameter(app) is not None


def _retriever_parameter(app: Any) -> inspect.Parameter | None:
    if not (inspect.isfunction(app) or inspect.ismethod(app)):
        return None
    empty = inspect.Parameter.empty
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = [
        one for one in inspect.signature(app).parameters.values() if one.kind not in several
    ]
    named = [one for one in parameters if _is_retriever(one)]
    if len(named) != 1 or any(one.default is empty for one in parameters if one is not named[0]):
        return None
    is_first = parameters[0] is named[0]
    return named[0] if is_first or named[0].default is empty else None


def _is_retriever(parameter: inspect.Parameter) -> bool:
    said = parameter.annotation
    if isinstance(said, str):  # not evaluated: what it names may only be imported for type checks
        first = said.strip("'\"").partition("|")[0].strip()
        annotated = first.endswith("Retriever")
    else:
        annotated = any(
            inspect.isclass(one) and issubclass(one, BaseRetriever)
            for one in (get_args(said) or (said,))
        )
    return annotated or parameter.name == "retriever"


def built(app: Any) -> Any:
    """What is to be asked: `app`, or what it builds where it takes a retriever.

    Raises
    ------
    InputError
        It raises while it builds, or what it builds is no app.
    """
    taken = _retriever_parameter(app)
    if taken is None:
        return app
    name = app.__qualname__
    given = InjectedRetriever(name="injected")
    is_named = taken.kind is inspect.Parameter.KEYWORD_ONLY
    try:
        made = app(**{taken.name: given}) if is_named else app(given)
    except Exception as error:
        path, line = place_of(error) or (None, None)
        raise InputError(
            f"{name} raised {type(error).__name__} when it was given a retriever: {error}",
            path=path,
            line=line,
        ) from error
    check_app(made, f"what {name} builds")
    return made


def _wrap(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    if name.startswith("a"):  # by its name: not every one that can be awaited is an async def

        @wraps(original)
        async def afind(self: Any, *args: Any, **kwargs: Any) -> Any:
            if INJECTED.get() is None or isinstance(self, InjectedRetriever):
                return await original(self, *args, **kwargs)
            return await _in_place_of(self).ainvoke(*_asked(args, kwargs))

        return afind

    @wraps(original)
    def find(self: Any, *args: Any, **kwargs: Any) -> Any:
        if INJECTED.get() is None or isinstance(self, InjectedRetriever):
            return original(self, *args, **kwargs)
        return _in_place_of(self).invoke(*_asked(args, kwargs))

    return find


def _asked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The question and the config, by place or by name, whatever the class calls its question."""
    others = [value for name, value in kwargs.items() if name != "config"]
    question = args[0] if args else next(iter(others), "")
    return question, args[1] if len(args) > 1 else kwargs.get("config")


def _in_place_of(retriever: Any) -> InjectedRetriever:
    """One that reports to callbacks under the same name, with the same tags."""
    return InjectedRetriever(
        name=retriever.get_name(), tags=retriever.tags, metadata=retriever.metadata
    )


_RETRIEVERS = Wrapping(BaseRetriever, _METHODS, _wrap)
