"""A real Chroma over a small corpus whose nearest passages can be worked out by hand."""

import uuid
from contextlib import contextmanager

import pytest

from watched_apps import CORPUS, WordCounts


@pytest.fixture(scope="session")
def chroma_client():
    chromadb = pytest.importorskip("chromadb", reason="the langchain extra is not installed")
    return chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))


@pytest.fixture(scope="module")
def store(chroma_client):
    """Eight passages in a Chroma collection of their own, by cosine distance; nothing changes them."""
    with made_store(chroma_client) as store:
        yield store


@pytest.fixture
def own_store(chroma_client):
    """As `store`, to be changed."""
    with made_store(chroma_client) as store:
        yield store


@contextmanager
def made_store(chroma_client):
    from langchain_chroma import Chroma

    name = f"c{uuid.uuid4().hex}"
    chroma = Chroma(
        collection_name=name,
        embedding_function=WordCounts(),
        client=chroma_client,
        collection_metadata={"hnsw:space": "cosine"},
    )
    chroma.add_texts(
        list(CORPUS.values()),
        ids=list(CORPUS),
        metadatas=[{"place": at, "key": f"key-{name}"} for at, name in enumerate(CORPUS)],
    )
    yield chroma
    if name in [collection.name for collection in chroma_client.list_collections()]:
        chroma_client.delete_collection(name)
