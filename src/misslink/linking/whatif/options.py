"""The retriever changes that what-if tries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from misslink.errors import InputError, known_names
from misslink.linking.whatif.comparison import OptionResult, RetrievalBaseline, unmeasured_trace
from misslink.linking.whatif.search import (
    Chunking,
    DenseSearch,
    LexicalSearch,
    Reranker,
    fuse_rankings,
    rebuild_documents,
    rechunk,
    with_evidence_texts,
)
from misslink.retrieval import retrieval_outcome, unmeasured_reason
from misslink.types import Case, Passage, Trace

if TYPE_CHECKING:
    from misslink.embedding import Embedder


RankPassages = Callable[[Sequence[str], int], Awaitable[list[list[int]]]]

_K_MULTIPLES = (2, 3, 5)  # of the run's number of passages, where no other is asked for
_FUSION_DEPTH = 100  # passages of each ranking in a fusion, as many as a run asks deeper for
_RERANK_POOL = 50  # passages that a reranker or the diversity chooses from


class RetrieverOption(Protocol):
    """A change of the retriever that can be tried without the app."""

    @property
    def name(self) -> str:
        """Short, such as 'k=10'."""
        ...

    @property
    def description(self) -> str:
        """The change, as part of a sentence."""
        ...

    async def retrieve(self, baseline: RetrievalBaseline) -> OptionResult:
        """What the changed retriever returns for each case."""
        ...


@dataclass(frozen=True)
class LargerKOption:
    """A larger k, from the true ranks that the run knows; nothing is searched.

    ``indexed`` is how many passages the index has; None: not known.
    """

    width: int
    indexed: int | None = None

    @property
    def name(self) -> str:
        """Such as 'k=10'."""
        return f"k={self.width}"

    @property
    def description(self) -> str:
        """The change, as part of a sentence."""
        return f"the same retriever hands over {self.width} passages"

    async def retrieve(self, baseline: RetrievalBaseline) -> OptionResult:
        """The run's own rankings, continued with the passages found by asking deeper."""
        length = max(self.width, baseline.cutoff(self.width), baseline.listed)
        traces = tuple(
            self._continue(case, trace, length, baseline.k)
            for case, trace in zip(baseline.cases, baseline.traces, strict=True)
        )
        return OptionResult(baseline.cases, traces, self.width)

    def _continue(self, case: Case, trace: Trace, length: int, k: int) -> Trace:
        if unmeasured_reason(trace):
            return trace
        depth = max(len(trace.retrieved), trace.depth or 0)
        missed = retrieval_outcome(case, trace, k).missed
        if any(miss.true_rank is None for miss in missed) and depth < self._at_most(self.width):
            return unmeasured_trace(trace, f"the retriever was not asked for {self.width} passages")
        by_rank = dict(enumerate(trace.retrieved, start=1))
        for passage in trace.deeper:
            rank = passage.rank
            while rank in by_rank:  # passages of two searches may have the same rank
                rank += 1
            by_rank[rank] = passage
        last = max((self._at_most(length), *(rank for rank in by_rank if rank <= length)))
        retrieved = tuple(
            by_rank[rank].model_copy(update={"rank": rank})
            if rank in by_rank
            else Passage(id=f"not-seen-{rank}", rank=rank)
            for rank in range(1, last + 1)
        )
        return trace.model_copy(
            update={"retrieved": retrieved, "prompted": None, "deeper": (), "depth": None}
        )

    def _at_most(self, width: int) -> int:
        return width if self.indexed is None else min(width, self.indexed)


@dataclass(frozen=True)
class SearchOption:
    """A search of the corpus with the case's question, for as many passages as the run has."""

    name: str
    description: str
    corpus: tuple[Passage, ...]
    rank: RankPassages

    async def retrieve(self, baseline: RetrievalBaseline) -> OptionResult:
        """What the search returns for each case."""
        depth = max(baseline.listed, baseline.width)
        rankings = await self.rank([case.question for case in baseline.cases], depth)
        traces = []
        for trace, ranking in zip(baseline.traces, rankings, strict=True):
            retrieved = tuple(
                self.corpus[place].model_copy(update={"rank": rank, "score": None})
                for rank, place in enumerate(ranking, start=1)
            )
            unmeasured = unmeasured_reason(trace)
            traces.append(
                trace if unmeasured else Trace(case_id=trace.case_id, retrieved=retrieved)
            )
        return OptionResult(baseline.cases, tuple(traces), baseline.width)


@dataclass(frozen=True)
class RechunkOption:
    """Another chunk size and overlap, searched by the embedding or else by BM25."""

    name: str
    description: str
    corpus: tuple[Passage, ...]
    chunks: tuple[Passage, ...]
    chunking: Chunking
    rank: RankPassages

    async def retrieve(self, baseline: RetrievalBaseline) -> OptionResult:
        """As many chunks as the run has passages, matched with evidence texts."""
        search = SearchOption(self.name, self.description, self.chunks, self.rank)
        result = await search.retrieve(baseline)
        texts = {passage.id: passage.text for passage in self.corpus}
        cases, traces = [], []
        for case, trace in zip(result.cases, result.traces, strict=True):
            by_text = with_evidence_texts(case, texts, self.chunking.size)
            cases.append(by_text if isinstance(by_text, Case) else case)
            traces.append(unmeasured_trace(trace, by_text) if isinstance(by_text, str) else trace)
        return OptionResult(tuple(cases), tuple(traces), result.width)


@dataclass(frozen=True)
class SearchTools:
    """What options search with.

    Parameters
    ----------
    embedder : Embedder or None
        The app's own, or one to replace it.
    other : Embedder or None
        Another embedding to try.
    reranker : Reranker or None
    chunking : Chunking or None
        Another chunk size to try.
    widths : sequence of int
        Numbers of passages to try; 2, 3 and 5 times the run's own if empty.
    """

    embedder: Embedder | None = None
    other: Embedder | None = None
    reranker: Reranker | None = None
    chunking: Chunking | None = None
    widths: tuple[int, ...] = ()


@dataclass(frozen=True)
class SearchContext:
    """Everything that options are made from; without a corpus only what the traces show."""

    baseline: RetrievalBaseline
    corpus: tuple[Passage, ...] | None = None
    tools: SearchTools = field(default_factory=SearchTools)

    @cached_property
    def texts(self) -> list[str]:
        """The texts of the corpus."""
        return [passage.text for passage in self.corpus or ()]

    @cached_property
    def lexical(self) -> LexicalSearch:
        """BM25 over the corpus, indexed once."""
        return LexicalSearch(self.texts)

    @cached_property
    def dense(self) -> DenseSearch | None:
        """The embedding over the corpus, embedded once."""
        return DenseSearch(self.texts, self.tools.embedder) if self.tools.embedder else None

    @property
    def searcher(self) -> str:
        """The name of the embedding, or BM25."""
        return self.tools.embedder.name if self.tools.embedder else "BM25"

    def search(self, name: str, description: str, rank: RankPassages) -> list[RetrieverOption]:
        """One option that searches the corpus."""
        return [SearchOption(name, description, self.corpus or (), rank)]


def _k_options(context: SearchContext) -> list[RetrieverOption] | str:
    today = context.baseline.width
    indexed = None if context.corpus is None else len(context.corpus)
    widths = context.tools.widths or tuple(times * today for times in _K_MULTIPLES)
    if indexed is not None and not context.tools.widths:  # no multiple is more than the whole index
        widths = tuple(min(width, max(indexed, today)) for width in widths)
    return [LargerKOption(width, indexed) for width in dict.fromkeys(widths) if width != today]


def _bm25_options(context: SearchContext) -> list[RetrieverOption] | str:
    return context.search("bm25", "BM25 over stems finds the passages", context.lexical.rank)


def _dense_options(context: SearchContext) -> list[RetrieverOption] | str:
    dense = context.dense
    if dense is None:
        return "no embedding is known"
    return context.search("dense", f"the embedding {dense.embedder.name} finds them", dense.rank)


def _hybrid_options(context: SearchContext) -> list[RetrieverOption] | str:
    dense = context.dense
    if dense is None:
        return "no embedding is known"

    async def rank(questions: Sequence[str], depth: int) -> list[list[int]]:
        deep = max(depth, _FUSION_DEPTH)
        both = [await search.rank(questions, deep) for search in (dense, context.lexical)]
        return [fuse_rankings(rankings, depth) for rankings in zip(*both, strict=True)]

    description = f"{dense.embedder.name} and BM25, made one by reciprocal rank fusion"
    return context.search("hybrid", description, rank)


def _mmr_options(context: SearchContext) -> list[RetrieverOption] | str:
    dense = context.dense
    if dense is None:
        return "no embedding is known"

    async def rank(questions: Sequence[str], depth: int) -> list[list[int]]:
        return await dense.diverse(questions, depth, _RERANK_POOL)

    description = (
        f"the nearest {_RERANK_POOL} of {dense.embedder.name}, ordered so that they repeat less"
    )
    return context.search("mmr", description, rank)


def _rerank_options(context: SearchContext) -> list[RetrieverOption] | str:
    reranker = context.tools.reranker
    if reranker is None:
        return "no reranker is named"
    first = context.dense or context.lexical

    async def rank(questions: Sequence[str], depth: int) -> list[list[int]]:
        rankings = []
        pools = await first.rank(questions, max(depth, _RERANK_POOL))
        for question, pool in zip(questions, pools, strict=True):
            order = await reranker.order(question, [context.texts[place] for place in pool])
            rankings.append([pool[place] for place in order][:depth])
        return rankings

    description = f"{reranker.name} puts the first {_RERANK_POOL} of {context.searcher} into order"
    return context.search("rerank", description, rank)


def _embedding_options(context: SearchContext) -> list[RetrieverOption] | str:
    if context.tools.other is None:
        return "no other embedding is named"
    name, other = context.tools.other.name, DenseSearch(context.texts, context.tools.other)
    return context.search(f"embedding={name}", f"the embedding {name} finds them", other.rank)


def _chunk_options(context: SearchContext) -> list[RetrieverOption] | str:
    chunking = context.tools.chunking
    if chunking is None:
        return "no chunking is named"
    documents = rebuild_documents(context.corpus or ())
    longest = max(map(len, context.texts), default=0)
    if chunking.size >= longest and len(documents) == len(context.texts):
        return (
            f"the corpus' passages have at most {longest} characters and cannot be put together "
            "into their documents; give the documents themselves as corpus"
        )
    chunks = rechunk(documents, chunking)
    texts = [chunk.text for chunk in chunks]
    search = (
        DenseSearch(texts, context.tools.embedder)
        if context.tools.embedder
        else LexicalSearch(texts)
    )
    return [
        RechunkOption(
            f"chunk={chunking}",
            f"chunks of {chunking.size} characters that share {chunking.overlap}, found by "
            f"{context.searcher}",
            context.corpus or (),
            tuple(chunks),
            chunking,
            search.rank,
        )
    ]


# By the name that --options takes, in the order in which they are tried.
OPTION_KINDS: dict[str, Callable[[SearchContext], list[RetrieverOption] | str]] = {
    "k": _k_options,
    "bm25": _bm25_options,
    "dense": _dense_options,
    "hybrid": _hybrid_options,
    "rerank": _rerank_options,
    "mmr": _mmr_options,
    "chunk": _chunk_options,
    "embedding": _embedding_options,
}
# How to provide what an option lacks, by the reason that it returns.
_FIXES = {
    "no corpus is given": "give --corpus or --app",
    "no embedding is known": "name one with --embedding, or the app with --app",
    "no reranker is named": "name one with --reranker",
    "no chunking is named": "name one with --chunk, as 600/0",
    "no other embedding is named": "name one with --embedding beside --app",
}


def check_option_names(names: Iterable[str]) -> None:
    """Raise InputError for a name that is not of an option."""
    for name in names:
        if name not in OPTION_KINDS:
            raise InputError(f"unknown option '{name}'; {known_names(name, OPTION_KINDS)}")


def make_options(
    context: SearchContext, names: Sequence[str] | None = None
) -> tuple[list[RetrieverOption], list[dict[str, str]]]:
    """Return the options that can be tried, and those that cannot, each with its name and reason.

    Raises
    ------
    InputError
        A name in `names` is unknown, or its option cannot be tried.
    """
    check_option_names(names or ())
    options: list[RetrieverOption] = []
    skipped: list[dict[str, str]] = []
    for name in names or OPTION_KINDS:
        lacks_corpus = context.corpus is None and name != "k"
        made = "no corpus is given" if lacks_corpus else OPTION_KINDS[name](context)
        if not isinstance(made, str):
            options += made
            continue
        reason = f"{made}; {_FIXES[made]}" if made in _FIXES else made
        if names:
            raise InputError(f"option '{name}' cannot be tried: {reason}")
        skipped.append({"name": name, "reason": reason})
    return options, skipped
