"""Run an app with injected passages in place of its retriever's results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, get_args

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from misslink.capture.app import check_app
from misslink.capture.context_injection import CURRENT_INJECTION, InjectedSearch, Injection
from misslink.capture.vectorstore_hooks import MethodPatch, record_searches
from misslink.errors import InputError
from misslink.types import Passage
from misslink.user_code import error_location

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
    with record_searches(), _RETRIEVERS.in_place():
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
    if name.startswith("a"):  # by its name: not every one that can be awaited is an async def

        @wraps(original)
        async def afind(self: Any, *args: Any, **kwargs: Any) -> Any:
            if CURRENT_INJECTION.get() is None or isinstance(self, InjectedRetriever):
                return await original(self, *args, **kwargs)
            return await _replacement(self).ainvoke(*_query_argument(args, kwargs))

        return afind

    @wraps(original)
    def find(self: Any, *args: Any, **kwargs: Any) -> Any:
        if CURRENT_INJECTION.get() is None or isinstance(self, InjectedRetriever):
            return original(self, *args, **kwargs)
        return _replacement(self).invoke(*_query_argument(args, kwargs))

    return find


def _query_argument(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """The question and the config, by place or by name, whatever the class calls its question."""
    rest_arguments = [value for name, value in kwargs.items() if name != "config"]
    question = args[0] if args else next(iter(rest_arguments), "")
    return question, args[1] if len(args) > 1 else kwargs.get("config")


def _replacement(retriever: Any) -> InjectedRetriever:
    """One that reports to callbacks under the same name, with the same tags."""
    return InjectedRetriever(
        name=retriever.get_name(), tags=retriever.tags, metadata=retriever.metadata
    )


_RETRIEVERS = MethodPatch(BaseRetriever, _RETRIEVER_METHODS, _wrap_retriever)
