"""Ask an app's own retrievers and stores for deeper ranks and for all they hold."""

from __future__ import annotations

import asyncio
import gc
import inspect
import sys
from collections.abc import Callable, Sequence
from itertools import repeat
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from misslink.capture.passages import document_list, passages_from
from misslink.types import Passage
from misslink.user_code import is_user_file

if TYPE_CHECKING:
    from misslink.capture.recorder import SearchCall


_MOST_OBJECTS = 200_000  # that are looked at in search of an app's stores
_PAGE = 1_000  # documents a question


async def probe_passages(
    call: SearchCall, depth: int, id_key: str | None
) -> tuple[tuple[Passage, ...], str | None]:
    """Return what a search found, followed by what it finds with `depth` results.

    Returns
    -------
    passages : tuple of Passage
        With scores where a store was searched directly; empty where the search cannot be repeated.
    note : str or None
        Why it cannot be repeated, or what is different about these ranks.
    """
    from misslink.capture.hooks import record_searches
    from misslink.capture.recorder import CURRENT_RECORDER, Recorder

    recorder = Recorder()  # overhears the scores

    async def ask() -> tuple[list[Any], str | None]:
        CURRENT_RECORDER.set(recorder)
        return await _probe_documents(call, max(depth, len(call.documents)))

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


async def _probe_documents(call: SearchCall, depth: int) -> tuple[list[Any], str | None]:
    """Repeat a search for `depth` results, with a copy where the retriever must be changed for it."""
    source, name, note = call.source, call.name, None
    arguments, keywords = call.arguments, {**call.keywords, "k": depth}
    if call.method == "query" and _is_chroma(source):
        include = ["documents", "metadatas", "distances"]
        found = await call_like_app(source.query, **call.keywords, n_results=depth, include=include)
        return document_list(found) or [], None
    kind = getattr(source, "search_type", None) if hasattr(source, "vectorstore") else ""
    if kind == "similarity_score_threshold":
        kept = {k: v for k, v in source.search_kwargs.items() if k != "score_threshold"}
        plain = {"search_type": "similarity", "search_kwargs": {**kept, "k": depth}}
        source = source.model_copy(update=plain)
        keywords = {k: v for k, v in call.keywords.items() if k not in ("k", "score_threshold")}
        note = f"true ranks of {name} are those without its score threshold"
    elif kind not in ("", "similarity"):
        return [], f"{name} searches by {kind}, which has no deeper ranks"
    elif call.method.startswith(("max_marginal", "amax_marginal")):
        return [], f"{name} orders by diversity, so it has no deeper ranks"
    elif source is None or not (kind or "similarity_search" in call.method):
        if isinstance(getattr(source, "k", None), int):
            source = source.model_copy(update={"k": depth})
            keywords.pop("k")
        elif "k" not in _parameters(source, "_get_relevant_documents"):
            return [], f"{name} cannot be asked for more results than it gives"
    names = _parameters(source, call.method)
    if "k" in names[: len(arguments)]:  # k was given by position
        index = names.index("k")
        arguments = (*arguments[:index], depth, *arguments[index + 1 :])
        keywords.pop("k", None)
    results = await call_like_app(getattr(source, call.method), *arguments, **keywords)
    return [item[0] if isinstance(item, tuple) else item for item in results], note


async def call_like_app(method: Any, *arguments: Any, **keywords: Any) -> Any:
    """Call a method as the app did, sync or async: some stores support only one way."""
    if inspect.iscoroutinefunction(method):
        return await method(*arguments, **keywords)
    from langchain_core.runnables import run_in_executor

    return await run_in_executor(None, method, *arguments, **keywords)


def _parameters(source: Any, method: str) -> list[str]:
    function = getattr(source, method, None)
    return [] if function is None else list(inspect.signature(function).parameters)


def searched_source(call: SearchCall) -> Any:
    """Return what knows the passages: a vector store, or a retriever with its documents.

    For a custom retriever around a store it is the one store that it searched.
    """
    source = getattr(call.source, "vectorstore", call.source)
    is_store = hasattr(type(source), "similarity_search")
    if is_store or _listed_documents(source) is not None or len(call.stores) != 1:
        return source
    return call.stores[0]


def find_sources(app: Any) -> list[Any]:
    """Vector stores, and retrievers with their own documents, that can be reached from an app."""
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.vectorstores import VectorStore

    def is_source(thing: Any, kinds: Sequence[type]) -> bool:
        is_retriever = BaseRetriever in kinds and _listed_documents(thing) is not None
        return VectorStore in kinds or is_retriever

    return _reachable(app, is_source)


def find_memory(app: Any) -> Any:
    """A memory of LlamaIndex that an app uses for all questions, or None."""
    base = getattr(sys.modules.get("llama_index.core.memory"), "BaseMemory", None)
    memories = _reachable(app, lambda _, kinds: base in kinds) if base else []
    return memories[0] if memories else None


def _reachable(app: Any, is_wanted: Callable[[Any, Sequence[type]], bool]) -> list[Any]:
    """Those of the objects an app uses, however indirectly, that are wanted, by their types."""
    wanted: list[Any] = []
    waiting, seen = [app], dict[int, Any]()
    while waiting and len(seen) < _MOST_OBJECTS:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing  # so that no other object gets this id
        # Not isinstance: some objects pretend, and import things when they are looked at.
        kinds = type(thing).__mro__
        if is_wanted(thing, kinds):
            wanted.append(thing)
        else:
            waiting += _references(thing, kinds)
    return wanted


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
    documents: Any = _listed_documents(source)
    if documents is None and _is_chroma(source):
        # Its own way: it looks metadata up, and its get_by_ids fails on a passage without any.
        query = {"ids": list(ids)} if id_key is None else {"where": {id_key: {"$in": list(ids)}}}
        documents = _chroma_rows(await call_like_app(source.get, **query))
    elif documents is None:
        if id_key is not None or not hasattr(source, "get_by_ids"):
            return None  # LangChain has no way to look metadata up
        try:
            documents = await call_like_app(source.get_by_ids, list(ids))
        except NotImplementedError:
            return None
    wanted = set(ids)
    passages = passages_from(documents, id_key=id_key)
    return {passage.id: passage for passage in passages if passage.id in wanted}


async def stored_documents(
    source: Any, limit: int, *, with_vectors: bool = False
) -> list[Any] | None:
    """All documents of a source, or more than `limit`; None where it cannot be listed.

    Those of Chroma and LangChain's InMemoryVectorStore have their ``vector``, if wanted.
    """
    if (own := _listed_documents(source)) is not None:
        return own
    if isinstance(places := getattr(source, "index_to_docstore_id", None), dict):
        documents = [source.docstore.search(name) for name in places.values()]  # FAISS
        # What is not found comes back as a sentence that says so.
        return documents if all(hasattr(one, "page_content") for one in documents) else None
    memory = getattr(source, "store", None)
    if isinstance(memory, dict) and hasattr(type(source), "similarity_search"):
        rows = list(memory.values())  # InMemoryVectorStore
        return rows if all(isinstance(row, dict) and "text" in row for row in rows) else None
    if not _is_chroma(source):
        return None
    rows = []
    include = ["documents", "metadatas", *(["embeddings"] if with_vectors else [])]
    while len(rows) <= limit:
        page = await call_like_app(source.get, limit=_PAGE, offset=len(rows), include=include)
        rows += _chroma_rows(page)
        if len(page["ids"]) < _PAGE:
            break
    return rows


def _listed_documents(source: Any) -> list[Any] | None:
    """The documents of a retriever that holds them itself, such as BM25Retriever."""
    documents = getattr(source, "docs", None)
    return documents if isinstance(documents, list) else None


def _is_chroma(source: Any) -> bool:
    """Whether it is LangChain's store, or a collection of chromadb's own client."""
    named = type(source).__name__ in {"Chroma", "Collection", "AsyncCollection"}
    return named and {"limit", "offset"} <= set(_parameters(source, "get"))


def _chroma_rows(page: Any) -> list[dict[str, Any]]:
    vectors = page.get("embeddings")
    columns = (page["ids"], page["documents"], page["metadatas"])
    return [
        {"id": name, "text": text or "", "metadata": metadata, "vector": vector}
        for name, text, metadata, vector in zip(
            *columns, repeat(None, len(page["ids"])) if vectors is None else vectors, strict=True
        )
    ]
