"""A real Chroma over a small corpus whose nearest passages can be worked out by hand."""

from __future__ import annotations

import re
import uuid
import zlib

import pytest
from langchain_core.embeddings import Embeddings

CORPUS = {
    "oak": "The oak is a tree that grows acorns and lives for centuries in English parks.",
    "pine": "The pine is a tree that keeps its needles in winter and smells of resin.",
    "birch": "The birch is a tree with white bark that grows fast on poor northern soils.",
    "salmon": "The salmon is a fish that swims up rivers to spawn where it was hatched.",
    "trout": "The trout is a fish that lives in cold streams and feeds on small insects.",
    "granite": "Granite is a hard rock made of quartz and feldspar, used for kerbs and floors.",
    "basalt": "Basalt is a dark rock that forms when lava cools quickly at the surface.",
    "violin": "A violin has four strings tuned in fifths and is played with a horsehair bow.",
}


class WordCounts(Embeddings):
    """Counts of words, each in a slot of its own hash: shared words bring texts together."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        vector = [0.0] * 512
        for word in re.findall(r"\w+", text.lower()):
            vector[zlib.crc32(word.encode()) % 512] += 1.0
        return vector


@pytest.fixture(scope="session")
def chroma_client():
    chromadb = pytest.importorskip("chromadb", reason="the langchain extra is not installed")
    return chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))


@pytest.fixture
def store(chroma_client):
    """Eight passages in a Chroma collection of their own, by cosine distance."""
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
