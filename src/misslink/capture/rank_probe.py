"""Ask an app's own retrievers and stores for deeper ranks and for all they hold."""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from collections.abc import Set as AbstractSet
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from misslink.capture.passages import passage_from, passages_from
from misslink.embedding import embedding_identity
from misslink.types import Passage
from misslink.user_code import is_user_file

if TYPE_CHECKING:
    from misslink.capture.recorder import SearchCall


_MOST_OBJECTS = 200_000  # that are looked at in search of an app's stores


async def probe_passages(
    call: SearchCall, depth: int, id_key: str | None
) -> tuple[tuple[Passage, ...], str | None]:
    """Return what a search found, followed by what it finds with `depth` results.

    Returns
    -------
    passages : tuple of Passage
        With scores where a store was searched directly; empty where the search cannot be repeated.
    note : str or None
        As of `probe_ranks`.
    """
    from misslink.capture.hooks import record_searches
    from misslink.capture.recorder import CURRENT_RECORDER, Recorder

    recorder = Recorder()  # overhears the scores

    async def ask() -> tuple[list[Any], str | None]:
        CURRENT_RECORDER.set(recorder)
        return await probe_ranks(call, max(depth, len(call.documents)))

    with record_searches():
        documents, note = await asyncio.create_task(ask())
    if not documents:
        return (), note
    direct = hasattr(call.source, "vectorstore") or "similarity_search" in call.method
    scores = recorder.scores_of(documents) if direct else [None] * len(documents)
    known_scores = call.scores or [None] * len(call.documents)
    # What the app got stays in front: a deeper search may order ties otherwise.
    ranked = passages_from([*call.documents, *documents], [*known_scores, *scores], id_key=id_key)
    return ranked, note


async def probe_ranks(call: SearchCall, depth: int) -> tuple[list[Any], str | None]:
    """Repeat a search for `depth` results.

    Returns
    -------
    documents : list of Document
        Best first; empty where the search cannot be repeated deeper.
    note : str or None
        Why it could not, or what is different about these ranks.
    """
    if hasattr(call.source, "vectorstore"):
        return await _probe_vectorstore_retriever(call, depth)
    source, method = call.source, call.method
    if method.startswith(("max_marginal", "amax_marginal")):
        return [], f"{call.name} orders by diversity, so it has no deeper ranks"
    if source is not None and "similarity_search" in method:
        return await _repeat_search(source, call, depth), None
    if source is not None and isinstance(getattr(source, "k", None), int):
        return await _search_copy(call, {"k": depth}), None
    if source is not None and "k" in _parameters(source, "_get_relevant_documents"):
        return await _repeat_search(source, call, depth), None
    return [], f"{call.name} cannot be asked for more results than it gives"


async def _probe_vectorstore_retriever(
    call: SearchCall, depth: int
) -> tuple[list[Any], str | None]:
    kind = getattr(call.source, "search_type", None)
    if kind == "similarity":
        return await _repeat_search(call.source, call, depth), None
    if kind == "similarity_score_threshold":
        search_kwargs = {
            k: v for k, v in call.source.search_kwargs.items() if k != "score_threshold"
        }
        plain = {"search_type": "similarity", "search_kwargs": {**search_kwargs, "k": depth}}
        return (
            await _search_copy(call, plain, drop="score_threshold"),
            f"true ranks of {call.name} are those without its score threshold",
        )
    return [], f"{call.name} searches by {kind}, which has no deeper ranks"


async def _repeat_search(source: Any, call: SearchCall, depth: int) -> list[Any]:
    method = getattr(source, call.method)
    keywords = {**call.keywords, "k": depth}
    arguments = call.arguments
    names = _parameters(source, call.method)
    if "k" in names[: len(arguments)]:  # k was given by position
        index = names.index("k")
        arguments = (*arguments[:index], depth, *arguments[index + 1 :])
        keywords.pop("k")
    return _documents(await call_like_app(method, *arguments, **keywords))


async def _search_copy(call: SearchCall, changes: dict[str, Any], drop: str = "") -> list[Any]:
    """Search with a copy, so that the app's own retriever does not change while other cases use it."""
    copy = call.source.model_copy(update=changes)
    keywords = {key: value for key, value in call.keywords.items() if key not in ("k", drop)}
    return _documents(await call_like_app(getattr(copy, call.method), *call.arguments, **keywords))


async def call_like_app(method: Any, *arguments: Any, **keywords: Any) -> Any:
    """Call a method as the app did, sync or async: some stores support only one way."""
    if inspect.iscoroutinefunction(method):
        return await method(*arguments, **keywords)
    from langchain_core.runnables import run_in_executor

    return await run_in_executor(None, method, *arguments, **keywords)


def _documents(results: Sequence[Any]) -> list[Any]:
    return [item[0] if isinstance(item, tuple) else item for item in results]


def _parameters(source: Any, method: str) -> list[str]:
    function = getattr(source, method, None)
    return [] if function is None else list(inspect.signature(function).parameters)


def searched_source(call: SearchCall) -> Any:
    """Return what knows the passages: a vector store, or a retriever with its documents.

    For a custom retriever around a store it is the one store that it searched.
    """
    source = getattr(call.source, "vectorstore", call.source)
    is_store = hasattr(type(source), "similarity_search")
    if is_store or _document_list(source) is not None or len(call.stores) != 1:
        return source
    return call.stores[0]


def find_sources(app: Any) -> list[Any]:
    """Vector stores, and retrievers with their own documents, that can be reached from an app."""
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore

    sources: list[Any] = []
    waiting, seen = [app], dict[int, Any]()
    while waiting and len(seen) < _MOST_OBJECTS:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing  # so that no other object gets this id
        # Not isinstance: some objects pretend, and import things when they are looked at.
        kinds = type(thing).__mro__
        if VectorStore in kinds or (BaseRetriever in kinds and _document_list(thing) is not None):
            sources.append(thing)
        else:
            waiting += _references(thing, kinds)
    return sources


def _references(thing: Any, kinds: Sequence[type]) -> list[Any]:
    """What an object uses: of a function its cells and the globals that its code names."""
    if FunctionType in kinds:
        names = _code_names(thing.__code__)
        named = [thing.__globals__[name] for name in names if name in thing.__globals__]
        modules = [value for value in named if isinstance(value, ModuleType)]
        named += [vars(module)[name] for module in modules for name in names & vars(module).keys()]
        return [*named, *(thing.__closure__ or ()), thing.__defaults__, vars(thing)]
    if type in kinds:
        module = sys.modules.get(thing.__module__)
        is_own = is_user_file(getattr(module, "__file__", None) or "<built in>")
        return list(vars(thing).values()) if is_own else []
    return [] if ModuleType in kinds else gc.get_referents(thing)


def _code_names(code: CodeType) -> set[str]:
    inner = (_code_names(const) for const in code.co_consts if isinstance(const, CodeType))
    return set(code.co_names).union(*inner)


async def fetch_by_ids(
    source: Any, ids: Sequence[str], id_key: str | None
) -> dict[str, Passage] | None:
    """Those of `ids` that a vector store or a retriever's list of documents holds, by id.

    None where it cannot be asked.
    """
    listed = _document_list(source)
    if listed is not None:
        wanted_ids = set(ids)
        passages = passages_from(listed, id_key=id_key)
        return {passage.id: passage for passage in passages if passage.id in wanted_ids}
    ask: Any = getattr(source, "get_by_ids", None)
    if ask is None:
        return None
    if type(source).__module__.startswith("langchain_chroma"):
        # Its own way: it looks metadata up, and its get_by_ids fails on a passage without any.
        query = {"ids": list(ids)} if id_key is None else {"where": {id_key: {"$in": list(ids)}}}
        documents: Any = _chroma_rows(await call_like_app(source.get, **query))
    elif id_key is not None:
        return None  # LangChain has no way to look metadata up
    else:
        try:
            documents = await call_like_app(ask, list(ids))
        except NotImplementedError:
            return None
    passages = tuple(passage_from(document, id_key=id_key) for document in documents)
    return {passage.id: passage for passage in passages}


def _document_list(source: Any) -> list[Any] | None:
    """The documents of a retriever that holds them itself, such as BM25Retriever."""
    documents = getattr(source, "docs", None)
    return documents if isinstance(documents, list) else None


_log = logging.getLogger("misslink")
_PAGE = 1_000  # documents a question
_EXCERPT = 500  # characters of a store's message that are shown


async def list_sources(
    sources: Iterable[tuple[Any, AbstractSet[str]]], limit: int, id_key: str | None
) -> tuple[Passage, ...] | None:
    """Every passage of several sources.

    Parameters
    ----------
    sources : iterable of (source, set of str)
        Each with the ids of passages that it is known to have given.
    limit, id_key
        As for `listed`.

    Returns
    -------
    tuple of Passage or None
        Source after source, ``rank`` being the place; of two passages under one id the first.
        None where there is no source, one of them cannot be listed or does not list what it
        gave, or there are more than `limit`.
    """
    listed_passages: dict[str, Passage] = {}
    was_listed = False
    for source, given in sources:
        was_listed = True
        try:
            documents = await _source_documents(source, limit)
        except Exception as error:  # noqa: BLE001 - a store that refuses has not said anything
            reason = f"{type(error).__name__}: {error}"
            _log.warning("%s cannot be listed: %s", type(source).__name__, reason[:_EXCERPT])
            return None
        if documents is None or len(documents) > limit:
            return None
        passages = passages_from(documents, id_key=id_key)
        # A retriever may hand out other documents than its store holds, such as their parents.
        if not given <= {passage.id for passage in passages}:
            return None
        for passage in passages:
            listed_passages.setdefault(
                passage.id, passage.model_copy(update={"rank": len(listed_passages) + 1})
            )
    return tuple(listed_passages.values()) if was_listed and len(listed_passages) <= limit else None


def source_embeddings(sources: Iterable[Any]) -> Any:
    """The embedding model that all sources with one share; None where there is none or several."""
    models: dict[str, Any] = {}
    for source in sources:
        try:
            model = getattr(source, "embeddings", None)
        except Exception as error:  # noqa: BLE001 - some stores embed on their server
            _log.debug("%s has no embedding: %r", type(source).__name__, error)
            continue
        if callable(getattr(model, "embed_documents", None)):
            models.setdefault(embedding_identity(model), model)
    return next(iter(models.values())) if len(models) == 1 else None


async def source_vectors(sources: Iterable[Any], limit: int) -> dict[str, Any]:
    """The vectors that stores keep of their passages, by text.

    Chroma and LangChain's InMemoryVectorStore give them out. What a store keeps is what it
    searches by, so it need not be computed again.

    Parameters
    ----------
    sources : iterable of VectorStore or BaseRetriever
    limit : int
        Of a store with more passages none is read.
    """
    vectors: dict[str, Any] = {}
    for source in sources:
        try:
            vectors |= await _stored_vectors(source, limit)
        except Exception as error:  # noqa: BLE001 - they are computed again instead
            message = f"{type(error).__name__}: {error}"
            _log.warning(
                "%s does not give its vectors out: %s", type(source).__name__, message[:_EXCERPT]
            )
    return vectors if len(vectors) <= limit else {}


async def _stored_vectors(source: Any, limit: int) -> dict[str, Any]:
    if (stored := _memory_rows(source)) is not None:
        rows = [row for row in stored if isinstance(row, dict) and "vector" in row]
        return {row["text"]: row["vector"] for row in rows[: limit + 1]}
    vectors: dict[str, Any] = {}
    if _is_chroma(source):
        async for page in _chroma_pages(source, limit, include=["documents", "embeddings"]):
            pairs = zip(page["documents"], page["embeddings"], strict=True)
            vectors |= {text: vector for text, vector in pairs if text and vector is not None}
    return vectors


def _memory_rows(source: Any) -> list[Any] | None:
    """Rows of LangChain's InMemoryVectorStore, with id, text, metadata and vector."""
    store = getattr(source, "store", None)
    if isinstance(store, dict) and hasattr(type(source), "similarity_search"):
        return list(store.values())
    return None


async def _source_documents(source: Any, limit: int) -> list[Any] | None:
    """All documents, or more than `limit` of them; None where the source cannot be listed."""
    if (own := _document_list(source)) is not None:
        return own
    if (rows := _memory_rows(source)) is not None:
        return rows if all(isinstance(row, dict) and "text" in row for row in rows) else None
    if isinstance(places := getattr(source, "index_to_docstore_id", None), dict):
        documents = [source.docstore.search(name) for name in places.values()]  # FAISS
        # What is not found comes back as a sentence that says so.
        return documents if all(hasattr(one, "page_content") for one in documents) else None
    if _is_chroma(source):
        pages = _chroma_pages(source, limit, include=["documents", "metadatas"])
        return [row async for page in pages for row in _chroma_rows(page)]
    return None


def _chroma_rows(page: Any) -> list[dict[str, Any]]:
    rows = zip(page["ids"], page["documents"], page["metadatas"], strict=True)
    return [{"id": name, "text": text or "", "metadata": metadata} for name, text, metadata in rows]


async def _chroma_pages(chroma: Any, limit: int, include: list[str]) -> AsyncIterator[Any]:
    """Everything that a Chroma store holds, page by page, or a little more than `limit` of it."""
    read = 0
    while read <= limit:
        page = await call_like_app(chroma.get, limit=_PAGE, offset=read, include=include)
        yield page
        read += len(page["ids"])
        if len(page["ids"]) < _PAGE:
            return


def _is_chroma(source: Any) -> bool:
    return type(source).__name__ == "Chroma" and {"limit", "offset"} <= set(
        _parameters(source, "get")
    )
