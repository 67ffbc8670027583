"""An app that is handed passages in place of what its retriever would find.

While a replay runs, the methods by which every retriever class is asked are wrapped, and the
search methods of the vector stores (`misslink.capture.tap`) are answered too, from what
`misslink.capture.handing` holds for the case. Only the outermost retriever is ever reached: what it
is made of is not asked.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, get_args

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from misslink.capture.handing import INJECTED, Injection, Search
from misslink.capture.loading import check_app
from misslink.capture.tap import listening
from misslink.capture.wrapping import Wrapping
from misslink.errors import InputError
from misslink.importing import place_of
from misslink.types import Passage

__all__ = ["InjectedRetriever", "built", "injected", "takes_retriever"]

# get_relevant_documents went out of LangChain with 1.0; retrievers written before still have it.
_METHODS = ("invoke", "ainvoke", "get_relevant_documents", "aget_relevant_documents")


class InjectedRetriever(BaseRetriever):
    """Answers the passages that are injected where it is asked."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        del run_manager
        injection = INJECTED.get()
        if injection is None:
            raise RuntimeError(
                "the injected retriever was asked where it is not known for which case: a thread "
                "that the app starts itself needs contextvars.copy_context()"
            )
        return injection.documents(str(query), self.get_name())

    def __call__(self, query: str) -> list[Document]:
        """As `invoke`, for apps whose own retriever is a function."""
        return self.invoke(query)

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self._get_relevant_documents(query, run_manager=run_manager)


@contextmanager
def injected(
    passages: Sequence[Passage], *, id_key: str | None = None, searches: Sequence[Search] = ()
) -> Iterator[Injection]:
    """Let every outermost retriever answer `passages`, in this context and what it starts.

    Vector stores that the app searches without a retriever answer them too. Callbacks fire as
    ever, so that a `misslink.capture.Watcher` sees the passages retrieved.

    Parameters
    ----------
    passages : sequence of Passage
        Best first; their ``score`` belongs to the place in the list.
    id_key : str or None
        The metadata key under which the app's own documents carry their id.
    searches : sequence of Search
        What each search of an app that makes several is answered instead.

    Yields
    ------
    Injection
        Whose ``asked`` tells whether the app asked at all: threads of its own and clients other
        than LangChain's are not reached.
    """
    injection = Injection(passages, id_key, searches)
    with listening(), _RETRIEVERS.in_place():
        token = INJECTED.set(injection)
        try:
            yield injection
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
