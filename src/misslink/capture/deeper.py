"""The same retrievers asked again: deeper, and for what they hold at all."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from misslink.capture.passages import passage_from, passages_from
from misslink.types import Passage

if TYPE_CHECKING:
    from misslink.capture.recorder import Call

__all__ = ["ask_deeper", "corpora", "corpus_of", "held", "passages_deeper", "run_as_asked"]


async def passages_deeper(
    call: Call, depth: int, id_key: str | None
) -> tuple[tuple[Passage, ...], str | None]:
    """What a search gave, followed by what it gives when it is asked for `depth` results.

    Returns
    -------
    passages : tuple of Passage
        With the scores of a store that was asked directly; empty where the search cannot be
        repeated deeper.
    note : str or None
        As of `ask_deeper`.
    """
    from misslink.capture.recorder import CURRENT, Recorder
    from misslink.capture.tap import listening

    recorder = Recorder()  # overhears the scores

    async def ask() -> tuple[list[Any], str | None]:
        CURRENT.set(recorder)
        return await ask_deeper(call, max(depth, len(call.documents)))

    with listening():
        documents, note = await asyncio.create_task(ask())
    if not documents:
        return (), note
    direct = hasattr(call.source, "vectorstore") or "similarity_search" in call.method
    scores = recorder.scores_of(documents) if direct else [None] * len(documents)
    known = call.scores or [None] * len(call.documents)
    # What the app got stays in front: a deeper search may order ties otherwise.
    ranked = passages_from([*call.documents, *documents], [*known, *scores], id_key=id_key)
    return ranked, note


async def ask_deeper(call: Call, depth: int) -> tuple[list[Any], str | None]:
    """Repeat a search for `depth` results.

    Returns
    -------
    documents : list of Document
        Best first; empty where the search cannot be repeated deeper.
    note : str or None
        Why it could not, or what is different about these ranks.
    """
    if hasattr(call.source, "vectorstore"):
        return await _ask_vectorstore_retriever(call, depth)
    source, method = call.source, call.method
    if method.startswith(("max_marginal", "amax_marginal")):
        return [], f"{call.name} orders by diversity, so it has no deeper ranks"
    if source is not None and "similarity_search" in method:
        return await _ask_again(source, call, depth), None
    if source is not None and isinstance(getattr(source, "k", None), int):
        return await _ask_copy(call, {"k": depth}), None
    if source is not None and "k" in _parameters(source):
        return await _ask_again(source, call, depth), None
    return [], f"{call.name} cannot be asked for more results than it gives"


async def _ask_vectorstore_retriever(call: Call, depth: int) -> tuple[list[Any], str | None]:
    kind = getattr(call.source, "search_type", None)
    if kind == "similarity":
        return await _ask_again(call.source, call, depth), None
    if kind == "similarity_score_threshold":
        kept = {k: v for k, v in call.source.search_kwargs.items() if k != "score_threshold"}
        plain = {"search_type": "similarity", "search_kwargs": {**kept, "k": depth}}
        return (
            await _ask_copy(call, plain, drop="score_threshold"),
            f"true ranks of {call.name} are those without its score threshold",
        )
    return [], f"{call.name} searches by {kind}, which has no deeper ranks"


async def _ask_again(source: Any, call: Call, depth: int) -> list[Any]:
    method = getattr(source, call.method)
    keywords = {**call.keywords, "k": depth}
    arguments = call.arguments
    names = list(inspect.signature(method).parameters)
    if "k" in names[: len(arguments)]:  # k was given by position
        at = names.index("k")
        arguments = (*arguments[:at], depth, *arguments[at + 1 :])
        keywords.pop("k")
    return _documents(await run_as_asked(method, *arguments, **keywords))


async def _ask_copy(call: Call, changes: dict[str, Any], drop: str = "") -> list[Any]:
    """Ask a copy, so that the app's own retriever stays as it is while other cases use it."""
    copy = call.source.model_copy(update=changes)
    keywords = {key: value for key, value in call.keywords.items() if key not in ("k", drop)}
    return _documents(await run_as_asked(getattr(copy, call.method), *call.arguments, **keywords))


async def run_as_asked(method: Any, *arguments: Any, **keywords: Any) -> Any:
    """Ask the way the app asked: some stores can only be asked one way."""
    if inspect.iscoroutinefunction(method):
        return await method(*arguments, **keywords)
    from langchain_core.runnables import run_in_executor

    return await run_in_executor(None, method, *arguments, **keywords)


def _documents(found: Sequence[Any]) -> list[Any]:
    return [item[0] if isinstance(item, tuple) else item for item in found]


def _parameters(retriever: Any) -> list[str]:
    search = getattr(retriever, "_get_relevant_documents", None)
    return [] if search is None else list(inspect.signature(search).parameters)


def corpus_of(call: Call) -> Any:
    """What can say which passages there are: a vector store, or a retriever with its documents.

    Of a retriever that somebody wrote around a store, it is the one store that it searched.
    """
    source = getattr(call.source, "vectorstore", call.source)
    is_store = hasattr(type(source), "similarity_search")
    if is_store or isinstance(_listed(source), list) or len(call.stores) != 1:
        return source
    return call.stores[0]


def corpora() -> list[Any]:
    """Every vector store, and every retriever with its own list of documents, there is by now.

    An app may route between several of which the cases so far needed one. Nothing but the
    garbage collector knows them all.
    """
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore

    gc.collect()  # a store that nobody holds any more is not the app's
    return [
        thing
        for thing in gc.get_objects()
        # Not isinstance: some objects pretend, and import things when they are looked at.
        if VectorStore in (kinds := type(thing).__mro__)
        or (BaseRetriever in kinds and isinstance(_listed(thing), list))
    ]


async def held(source: Any, ids: Sequence[str], id_key: str | None) -> dict[str, Passage] | None:
    """Those of `ids` that a vector store or a retriever's list of documents holds, by id.

    None where it cannot be asked.
    """
    listed = _listed(source)
    if isinstance(listed, list):
        wanted = set(ids)
        passages = passages_from(listed, id_key=id_key)
        return {one.id: one for one in passages if one.id in wanted}
    ask: Any = getattr(source, "get_by_ids", None)
    if ask is None:
        return None
    if type(source).__module__.startswith("langchain_chroma"):
        # Its own way: it looks metadata up, and its get_by_ids fails on a passage without any.
        by = {"ids": list(ids)} if id_key is None else {"where": {id_key: {"$in": list(ids)}}}
        found = await run_as_asked(source.get, **by)
        rows = zip(found["ids"], found["documents"], found["metadatas"], strict=True)
        documents: Any = [
            {"id": name, "text": text or "", "metadata": metadata} for name, text, metadata in rows
        ]
    elif id_key is not None:
        return None  # LangChain has no way to look metadata up
    else:
        try:
            documents = await run_as_asked(ask, list(ids))
        except NotImplementedError:
            return None
    passages = tuple(passage_from(document, id_key=id_key) for document in documents)
    return {one.id: one for one in passages}


def _listed(source: Any) -> Any:
    return getattr(source, "docs", None)
