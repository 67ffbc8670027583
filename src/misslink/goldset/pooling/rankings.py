"""What the retrievers of a pool return, and the sample that is drawn from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from misslink.errors import AppUnreachableError, InputError
from misslink.event_loops import run_async
from misslink.render.format import list_first
from misslink.retrieval.arrays import as_single_precision
from misslink.retrieval.readers import open_run
from misslink.text.bm25 import Bm25Index
from misslink.text.normalization import content_id, stems
from misslink.timeouts import map_concurrently
from misslink.types import Case

if TYPE_CHECKING:
    from misslink.embedding import Embedder


_SHOWN_IDS = 3


@dataclass(frozen=True)
class RetrieverRankings:
    """The rankings of one retriever.

    Parameters
    ----------
    name : str
    source : str
        The file or the app.
    passages : mapping of str to sequence of str
        Case id to passage ids, best first, without cases whose retrieval is unknown.
    texts : mapping of str to str
        Passage id to text, if the retriever returned it.
    """

    name: str
    source: str
    passages: Mapping[str, tuple[str, ...]]
    texts: Mapping[str, str] = field(default_factory=dict)


def retriever_names(sources: Sequence[str]) -> list[str]:
    """Return a short, unique name for each run file or app.

    >>> retriever_names(["runs/bm25.trec", "app:retriever", "old/bm25.trec"])
    ['bm25', 'app:retriever', 'old/bm25.trec']
    """
    seen: set[str] = set()
    names: list[str] = []
    for source in sources:
        target = os.path.realpath(source)  # the same file may be written in two ways
        if target in seen:
            raise InputError("This retriever is named twice. Name each once.", path=source)
        seen.add(target)
        file = Path(source).name
        name = source if ":" in file else file.partition(".")[0] or source
        names.append(name if name not in names else source)
    return names


def read_rankings(path: str, name: str, cases: Collection[str], depth: int) -> RetrieverRankings:
    """Read the top of a run.

    Parameters
    ----------
    path : str
        Any file that `misslink retrieval` reads as a run.
    name : str
    cases : collection of str
        Ids of the cases to read.
    depth : int
        Number of passages to keep, from 1.

    Raises
    ------
    InputError
        The file cannot be read, ranks a passage twice, or contains none of the cases.
    """
    run = open_run(path)
    rows: dict[str, tuple[list[str], list[Any] | None]] = {}
    for query, document, merit in run.rows():
        if query in cases:
            names, scores = rows.setdefault(query, ([], None if merit is None else []))
            names.append(document)
            if scores is not None:
                scores.append(merit)
    if not rows:
        raise InputError(
            "The run contains no question of the gold set. Compare the ids of both.", path=path
        )
    top = {
        query: tuple(_best_first(names, scores, query, path)[:depth])
        for query, (names, scores) in rows.items()
    }
    return RetrieverRankings(name, path, top)


async def query_retriever(
    app: Any,
    name: str,
    cases: Sequence[Case],
    depth: int,
    *,
    id_key: str | None = None,
    concurrency: int = 8,
    progress: Callable[[int, int], None] = lambda _, __: None,
) -> RetrieverRankings:
    """Query a live retriever, or an app with one, with every question.

    A retriever that returns fewer than `depth` passages is queried deeper where possible.

    Parameters
    ----------
    app : Runnable or callable
    name : str
    cases : sequence of Case
    depth : int
    id_key : str or None
        The metadata key of a passage's id.
    concurrency : int
    progress : callable
        Called after each case with the number done and the total.

    Raises
    ------
    AppUnreachableError
        It retrieves for no question.
    """
    from misslink.capture import Watcher

    watcher = Watcher(app, id_key=id_key, depth=depth)
    problems: list[str] = []
    rankings: dict[str, tuple[str, ...]] = {}
    texts: dict[str, str] = {}

    async def query(case: Case) -> None:
        trace = await watcher.watch(case)
        if len(trace.retrieved) < depth and trace.retrieved:
            trace = await watcher.deepen(case, trace, lambda _: True)
        passages = [*trace.retrieved, *trace.deeper][:depth]
        if passages or (trace.error is None and trace.unmeasured is None):
            rankings[case.id] = tuple(passage.id for passage in passages)
            texts.update({passage.id: passage.text for passage in passages})
        else:
            problems.append(trace.error or trace.unmeasured or "nothing was observed")

    await map_concurrently(cases, query, concurrency, progress)
    if not any(rankings.values()):
        reason = problems[0] if problems else "it retrieves nothing"
        raise AppUnreachableError(f"{name} returns no passage for any question: {reason}")
    return RetrieverRankings(name, name, rankings, texts)


def match_corpus_ids(rankings: RetrieverRankings, corpus: Mapping[str, str]) -> RetrieverRankings:
    """Return the rankings by the ids of the corpus (id to text).

    A passage with an unknown id is looked up by its text, if the retriever returned it.

    Raises
    ------
    InputError
        Passages are not in the corpus.
    """
    ranked = {name for names in rankings.passages.values() for name in names}
    unknown = [name for name in ranked if name not in corpus]
    if not unknown:
        return rankings
    by_text: dict[str, str] = {}
    if rankings.texts:
        for name, text in corpus.items():
            by_text.setdefault(content_id(text), name)
    matched = {
        name: by_text[key]
        for name in unknown
        if name in rankings.texts and (key := content_id(rankings.texts[name])) in by_text
    }
    missing = sorted(set(unknown) - set(matched))
    if missing:
        listed = list_first(missing, _SHOWN_IDS, "'{}'".format)
        raise InputError(
            f"The run ranks passages that the corpus does not contain ({listed}). Give the "
            "corpus it searched with --corpus, or the id key of a live retriever with --id-key.",
            path=rankings.source,
        )
    passages = {
        case: tuple(dict.fromkeys(matched.get(name, name) for name in names))
        for case, names in rankings.passages.items()
    }
    return replace(rankings, passages=passages, texts={})


def _best_first(names: list[str], scores: list[Any] | None, query: str, path: str) -> list[str]:
    """Of equal scores the greater id first, as trec_eval and `misslink retrieval`."""
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        message = f"Query '{query}' ranks the document '{repeated}' twice. Remove one."
        raise InputError(message, path=path)
    if scores is None:
        return names
    singles = as_single_precision(np.array(scores)).tolist()
    return [name for _, name in sorted(zip(singles, names, strict=True), reverse=True)]


class PassageRanking:
    """Ranks all passages of a corpus for a question: by cosines of an embedding, else by BM25.

    Parameters
    ----------
    texts : sequence of str
        Of the passages.
    embedder : Embedder or None
        Embeds every text once. None: BM25 over stems.
    questions : sequence of str
        That an embedding can rank for.
    """

    def __init__(
        self, texts: Sequence[str], embedder: Embedder | None = None, questions: Sequence[str] = ()
    ) -> None:
        self._scores: Callable[[str], NDArray[np.float32]]
        if embedder is None:
            self.name = "bm25"
            index = Bm25Index(map(stems, texts))
            self._scores = lambda question: index.scores(stems(question))
            return

        async def embed() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
            return await embedder.queries(questions), await embedder.documents(texts)

        self.name = embedder.name
        rows, passages = run_async(embed)
        vectors = dict(zip(questions, rows, strict=True))
        self._scores = lambda question: passages @ vectors[question]

    def order(self, question: str) -> NDArray[np.int64]:
        """Return the indices of all passages, nearest first; ties keep the corpus's order."""
        return np.argsort(-self._scores(question), kind="stable")
