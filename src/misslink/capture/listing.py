"""Everything that an app's own stores hold, and the embedding they hold it by."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Iterable
from collections.abc import Set as AbstractSet
from typing import Any

from misslink.capture.deeper import run_as_asked
from misslink.capture.passages import passages_from
from misslink.embedding import identity_of
from misslink.types import Passage

__all__ = ["all_listed", "embeddings_of", "listed", "vectors_of"]

_log = logging.getLogger("misslink")
_PAGE = 1_000  # documents a question
_EXCERPT = 500  # characters of a store's message that are shown


async def all_listed(
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
    found: dict[str, Passage] = {}
    asked = False
    for source, given in sources:
        asked = True
        try:
            passages = await listed(source, limit, id_key)
        except Exception as error:  # noqa: BLE001 - a store that refuses has not said anything
            said = f"{type(error).__name__}: {error}"
            _log.warning("%s cannot be listed: %s", type(source).__name__, said[:_EXCERPT])
            return None
        # A retriever may hand out other documents than its store holds, such as their parents.
        if passages is None or not given <= {passage.id for passage in passages}:
            return None
        for passage in passages:
            found.setdefault(passage.id, passage.model_copy(update={"rank": len(found) + 1}))
    return tuple(found.values()) if asked and len(found) <= limit else None


async def listed(source: Any, limit: int, id_key: str | None) -> tuple[Passage, ...] | None:
    """Every passage that a vector store or a retriever's list of documents holds.

    Parameters
    ----------
    source : VectorStore or BaseRetriever
        Chroma, LangChain's InMemoryVectorStore, FAISS, or a retriever with ``docs`` such as
        BM25Retriever.
    limit : int
        How many passages are worth having.
    id_key : str or None
        The metadata key that holds ids.

    Returns
    -------
    tuple of Passage or None
        In the store's order, with the ids that retrieval gives them. None where the source
        cannot be listed or holds more than `limit`.
    """
    documents = await _documents(source, limit)
    if documents is None or len(documents) > limit:
        return None
    return passages_from(documents, id_key=id_key)


def embeddings_of(sources: Iterable[Any]) -> Any:
    """The embedding model that all sources with one share; None where there is none or several."""
    models: dict[str, Any] = {}
    for source in sources:
        try:
            model = getattr(source, "embeddings", None)
        except Exception as error:  # noqa: BLE001 - some stores embed on their server
            _log.debug("%s has no embedding: %r", type(source).__name__, error)
            continue
        if callable(getattr(model, "embed_documents", None)):
            models.setdefault(identity_of(model), model)
    return next(iter(models.values())) if len(models) == 1 else None


async def vectors_of(sources: Iterable[Any], limit: int) -> dict[str, Any]:
    """The vectors that stores keep of their passages, by text.

    Chroma and LangChain's InMemoryVectorStore give them out. What a store keeps is what it
    searches by, so it need not be computed again.

    Parameters
    ----------
    sources : iterable of VectorStore or BaseRetriever
    limit : int
        Of a store with more passages none is read.
    """
    found: dict[str, Any] = {}
    for source in sources:
        try:
            found |= await _vectors(source, limit)
        except Exception as error:  # noqa: BLE001 - they are computed again instead
            said = f"{type(error).__name__}: {error}"
            _log.warning(
                "%s does not give its vectors out: %s", type(source).__name__, said[:_EXCERPT]
            )
    return found if len(found) <= limit else {}


async def _vectors(source: Any, limit: int) -> dict[str, Any]:
    kept = getattr(source, "store", None)
    if isinstance(kept, dict) and hasattr(type(source), "similarity_search"):
        rows = [row for row in kept.values() if isinstance(row, dict) and "vector" in row]
        return {row["text"]: row["vector"] for row in rows[: limit + 1]}
    found: dict[str, Any] = {}
    if _is_chroma(source):
        async for page in _pages_of(source, limit, include=["documents", "embeddings"]):
            pairs = zip(page["documents"], page["embeddings"], strict=True)
            found |= {text: vector for text, vector in pairs if text and vector is not None}
    return found


async def _documents(source: Any, limit: int) -> list[Any] | None:
    """All documents, or more than `limit` of them; None where the source cannot be listed."""
    own = getattr(source, "docs", None)
    if isinstance(own, list):
        return own
    kept = getattr(source, "store", None)
    if isinstance(kept, dict) and hasattr(type(source), "similarity_search"):
        rows = list(kept.values())  # of InMemoryVectorStore: with id, text, metadata and vector
        return rows if all(isinstance(row, dict) and "text" in row for row in rows) else None
    if isinstance(places := getattr(source, "index_to_docstore_id", None), dict):
        return _of_docstore(source.docstore, list(places.values()))  # FAISS
    if _is_chroma(source):
        return await _documents_of(source, limit)
    return None


def _of_docstore(docstore: Any, names: list[str]) -> list[Any] | None:
    found = [docstore.search(name) for name in names]
    # What is not found comes back as a sentence that says so.
    return found if all(hasattr(document, "page_content") for document in found) else None


async def _documents_of(chroma: Any, limit: int) -> list[Any]:
    documents: list[Any] = []
    async for page in _pages_of(chroma, limit, include=["documents", "metadatas"]):
        rows = zip(page["ids"], page["documents"], page["metadatas"], strict=True)
        documents += [
            {"id": name, "text": text or "", "metadata": metadata} for name, text, metadata in rows
        ]
    return documents


async def _pages_of(chroma: Any, limit: int, include: list[str]) -> AsyncIterator[Any]:
    """Everything that a Chroma store holds, page by page, or a little more than `limit` of it."""
    read = 0
    while read <= limit:
        page = await run_as_asked(chroma.get, limit=_PAGE, offset=read, include=include)
        yield page
        read += len(page["ids"])
        if len(page["ids"]) < _PAGE:
            return


def _is_chroma(source: Any) -> bool:
    return type(source).__name__ == "Chroma" and {"limit", "offset"} <= _parameters(source)


def _parameters(source: Any) -> set[str]:
    get = getattr(source, "get", None)
    return set() if get is None else set(inspect.signature(get).parameters)
