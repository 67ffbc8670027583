"""The retriever changes that what-if tries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, cast

from misslink.documents import SkippedOption
from misslink.errors import InputError, known_names
from misslink.linking.corpus_search import DenseSearch, LexicalSearch, fuse_rankings
from misslink.linking.findings import UNSEARCHABLE
from misslink.linking.miss_measurement import word_questions
from misslink.linking.whatif.search import (
    Chunking,
    Reranker,
    rebuild_documents,
    rechunk,
    with_evidence_texts,
)
from misslink.parts import by_case
from misslink.retrieval import RetrievalOutcome, retrieval_outcome, unmeasured_reason
from misslink.retrieval.outcomes import EXPOSURE_BY_LABELS
from misslink.types import Case, Link, Passage, Reason, Run, Trace

if TYPE_CHECKING:
    from misslink.embedding import Embedder


RankPassages = Callable[[Sequence[str], int], Awaitable[list[list[int]]]]

_K_MULTIPLES = (2, 3, 5)  # of the run's number of passages, where no other is asked for
_FUSION_DEPTH = 100  # passages of each ranking in a fusion, as many as a run asks deeper for
_RERANK_POOL = 50  # passages that a reranker or the diversity chooses from


@dataclass(frozen=True)
class RetrievalBaseline:
    """A run's cases in order, each with its trace and its link.

    Parameters
    ----------
    cases, traces, links : sequence, of equal length
    k : int
        The run's cutoff.
    width : int
        How many passages the answer is written from: the most frequent number.
    listed : int
        How many passages the retriever gives: the most frequent number.
    """

    cases: tuple[Case, ...]
    traces: tuple[Trace, ...]
    links: tuple[Link, ...]
    k: int
    width: int
    listed: int

    @classmethod
    def from_run(cls, run: Run) -> RetrievalBaseline:
        """Read it off a run; InputError where a case of it has no trace or no link."""
        k = run.summary.get("k")
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise InputError("the run's summary.json has no k; evaluate the app again")
        traces = by_case(run.traces)
        links = by_case(run.links)
        for case in run.cases:
            if case.id not in traces or case.id not in links:
                raise InputError(f"the run has no trace or no link of case '{case.id}'")
        run_traces = [traces[case.id] for case in run.cases]
        return cls(
            cases=word_questions(run.cases, run.scores),
            traces=tuple(run_traces),
            links=tuple(links[case.id] for case in run.cases),
            k=k,
            width=_most_frequent((len(trace.context(k)) for trace in run_traces), k),
            listed=_most_frequent((len(trace.retrieved) for trace in run_traces), k),
        )

    def outcomes(self) -> tuple[RetrievalOutcome | None, ...]:
        """As `OptionResult.outcomes`, of what the run's own retriever gave."""
        return OptionResult(self.cases, self.traces, self.width).outcomes()

    def cutoff(self, width: int) -> int:
        """The run's k, scaled to a context of `width` passages in place of today's."""
        return max(1, round(self.k * width / self.width))


@dataclass(frozen=True)
class OptionResult:
    """What an option's retriever gives.

    Parameters
    ----------
    cases : sequence of Case
        Today's, in the same order; another chunking may ask for texts in place of ids.
    traces : sequence of Trace
        One a case, best first; ``unmeasured`` says why a case was not measured.
    width : int
        How many of the passages the answer would be written from.
    """

    cases: tuple[Case, ...]
    traces: tuple[Trace, ...]
    width: int

    def outcomes(self) -> tuple[RetrievalOutcome | None, ...]:
        """What is among the first `width`, whatever reached a prompt; None: none needed, unknown."""
        found = (
            retrieval_outcome(case, trace.model_copy(update={"prompted": None}), self.width)
            for case, trace in zip(self.cases, self.traces, strict=True)
        )
        return tuple(
            outcome if outcome.retrieval in EXPOSURE_BY_LABELS else None for outcome in found
        )


def unmeasured_trace(trace: Trace, reason: str | Reason) -> Trace:
    """A trace of a case that an option could not be tried on; the run's own reason comes first."""
    return Trace(case_id=trace.case_id, unmeasured=unmeasured_reason(trace) or str(reason))


def _most_frequent(counts: Iterable[int], otherwise: int) -> int:
    """The most frequent of the counts above 0, of several the largest."""
    seen = Counter(count for count in counts if count)
    return max(seen, key=lambda count: (seen[count], count), default=otherwise)


@dataclass(frozen=True)
class RetrieverOption:
    """A change of the retriever that can be tried without the app.

    Parameters
    ----------
    name : str
        Short, such as 'k=10'.
    description : str
        The change, as part of a sentence.
    retrieve : async callable
        Returns what the changed retriever gives for each case of a run.
    """

    name: str
    description: str
    retrieve: Callable[[RetrievalBaseline], Awaitable[OptionResult]]


def larger_k(width: int, indexed: int | None = None) -> RetrieverOption:
    """A larger k, from the true ranks that the run knows; nothing is searched.

    ``indexed`` is how many passages the index has; None: not known.
    """

    def at_most(passages: int) -> int:
        return passages if indexed is None else min(passages, indexed)

    def continued(case: Case, trace: Trace, length: int, k: int) -> Trace:
        """The run's own ranking, continued with the passages found by asking deeper."""
        if unmeasured_reason(trace):
            return trace
        depth = max(len(trace.retrieved), trace.depth or 0)
        missed = retrieval_outcome(case, trace, k).missed
        if any(miss.true_rank is None for miss in missed) and depth < at_most(width):
            return unmeasured_trace(trace, Reason(code="not_asked_for", width=width))
        by_rank = dict(enumerate(trace.retrieved, start=1))
        for passage in trace.deeper:
            rank = passage.rank
            while rank in by_rank:  # passages of two searches may have the same rank
                rank += 1
            by_rank[rank] = passage
        last = max((at_most(length), *(rank for rank in by_rank if rank <= length)))
        retrieved = tuple(
            by_rank[rank].model_copy(update={"rank": rank})
            if rank in by_rank
            else Passage(id=f"not-seen-{rank}", rank=rank)
            for rank in range(1, last + 1)
        )
        return trace.model_copy(
            update={"retrieved": retrieved, "prompted": None, "deeper": (), "depth": None}
        )

    async def retrieve(baseline: RetrievalBaseline) -> OptionResult:
        length = max(width, baseline.cutoff(width), baseline.listed)
        pairs = zip(baseline.cases, baseline.traces, strict=True)
        traces = tuple(continued(case, trace, length, baseline.k) for case, trace in pairs)
        return OptionResult(baseline.cases, traces, width)

    description = f"the same retriever returns {width} passages"
    return RetrieverOption(f"k={width}", description, retrieve)


async def _search(
    baseline: RetrievalBaseline, corpus: Sequence[Passage], rank: RankPassages
) -> OptionResult:
    """What a search of the corpus returns for each question, as many passages as the run has.

    Without the missed passages that the app's filter or index keeps from every search.
    """
    depth = max(baseline.listed, baseline.width)
    kept_out = [
        {miss.passage_id for miss in link.missed if miss.kind in UNSEARCHABLE}
        for link in baseline.links
    ]
    questions = [case.judged_question for case in baseline.cases]
    rankings = await rank(questions, depth + max(map(len, kept_out), default=0))
    traces = []
    for trace, ranking, hidden in zip(baseline.traces, rankings, kept_out, strict=True):
        found = [corpus[place] for place in ranking if corpus[place].id not in hidden]
        retrieved = tuple(
            passage.model_copy(update={"rank": place_rank, "score": None})
            for place_rank, passage in enumerate(found[:depth], start=1)
        )
        unmeasured = unmeasured_reason(trace)
        traces.append(trace if unmeasured else Trace(case_id=trace.case_id, retrieved=retrieved))
    return OptionResult(baseline.cases, tuple(traces), baseline.width)


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
    def dense(self) -> DenseSearch:
        """The embedding, which must be known, over the corpus; embedded once."""
        return DenseSearch(self.texts, cast("Embedder", self.tools.embedder))

    @property
    def searcher(self) -> str:
        """The name of the embedding, or BM25."""
        return self.tools.embedder.name if self.tools.embedder else "BM25"

    def search(self, name: str, rank: RankPassages, *, description: str) -> list[RetrieverOption]:
        """One option that searches the corpus."""
        corpus = self.corpus or ()
        return [RetrieverOption(name, description, lambda today: _search(today, corpus, rank))]


def _k_options(context: SearchContext) -> list[RetrieverOption]:
    today = context.baseline.width
    indexed = None if context.corpus is None else len(context.corpus)
    widths = context.tools.widths or tuple(times * today for times in _K_MULTIPLES)
    if indexed is not None and not context.tools.widths:  # no multiple is more than the whole index
        widths = tuple(min(width, max(indexed, today)) for width in widths)
    return [larger_k(width, indexed) for width in dict.fromkeys(widths) if width != today]


def _bm25_options(context: SearchContext) -> list[RetrieverOption]:
    return context.search(
        "bm25", context.lexical.rank, description="BM25 over stems finds the passages"
    )


def _dense_options(context: SearchContext) -> list[RetrieverOption]:
    dense = context.dense
    return context.search(
        "dense", dense.rank, description=f"the embedding {dense.embedder.name} finds them"
    )


def _hybrid_options(context: SearchContext) -> list[RetrieverOption]:
    dense = context.dense

    async def rank(questions: Sequence[str], depth: int) -> list[list[int]]:
        deep = max(depth, _FUSION_DEPTH)
        both = [await search.rank(questions, deep) for search in (dense, context.lexical)]
        return [fuse_rankings(rankings, depth) for rankings in zip(*both, strict=True)]

    description = f"{dense.embedder.name} and BM25, fused by reciprocal rank"
    return context.search("hybrid", rank, description=description)


def _mmr_options(context: SearchContext) -> list[RetrieverOption]:
    dense = context.dense

    async def rank(questions: Sequence[str], depth: int) -> list[list[int]]:
        return await dense.diverse(questions, depth, _RERANK_POOL)

    description = (
        f"the nearest {_RERANK_POOL} of {dense.embedder.name}, ordered so that they repeat less"
    )
    return context.search("mmr", rank, description=description)


def _rerank_options(context: SearchContext) -> list[RetrieverOption]:
    reranker = cast("Reranker", context.tools.reranker)
    first = context.dense if context.tools.embedder else context.lexical

    async def rank(questions: Sequence[str], depth: int) -> list[list[int]]:
        rankings = []
        pools = await first.rank(questions, max(depth, _RERANK_POOL))
        for question, pool in zip(questions, pools, strict=True):
            order = await reranker.order(question, [context.texts[place] for place in pool])
            rankings.append([pool[place] for place in order][:depth])
        return rankings

    description = f"{reranker.name} puts the first {_RERANK_POOL} of {context.searcher} into order"
    return context.search("rerank", rank, description=description)


def _embedding_options(context: SearchContext) -> list[RetrieverOption]:
    other = DenseSearch(context.texts, cast("Embedder", context.tools.other))
    name = other.embedder.name
    return context.search(
        f"embedding={name}", other.rank, description=f"the embedding {name} finds them"
    )


def _chunk_options(context: SearchContext) -> list[RetrieverOption] | str:
    chunking = cast("Chunking", context.tools.chunking)
    documents = rebuild_documents(context.corpus or ())
    longest = max(map(len, context.texts), default=0)
    if chunking.size >= longest and len(documents) == len(context.texts):
        return str(Reason(code="documents_unknown", longest=longest))
    chunks = rechunk(documents, chunking)
    chunk_texts = [chunk.text for chunk in chunks]
    embedder = context.tools.embedder
    search = DenseSearch(chunk_texts, embedder) if embedder else LexicalSearch(chunk_texts)
    texts = {passage.id: passage.text for passage in context.corpus or ()}

    async def retrieve(baseline: RetrievalBaseline) -> OptionResult:
        """As many chunks as the run has passages, matched with evidence texts."""
        result = await _search(baseline, chunks, search.rank)
        cases, traces = [], []
        for case, trace in zip(result.cases, result.traces, strict=True):
            by_text = with_evidence_texts(case, texts, chunking.size)
            cases.append(by_text if isinstance(by_text, Case) else case)
            traces.append(
                unmeasured_trace(trace, by_text) if isinstance(by_text, Reason) else trace
            )
        return OptionResult(tuple(cases), tuple(traces), result.width)

    description = (
        f"chunks of {chunking.size} characters that share {chunking.overlap}, found by "
        f"{context.searcher}"
    )
    return [RetrieverOption(f"chunk={chunking}", description, retrieve)]


# By the name that --options takes, in the order in which they are tried, with what each needs.
OPTION_KINDS: dict[
    str, tuple[Callable[[SearchContext], list[RetrieverOption] | str], tuple[str, ...]]
] = {
    "k": (_k_options, ()),
    "bm25": (_bm25_options, ("corpus",)),
    "dense": (_dense_options, ("corpus", "embedder")),
    "hybrid": (_hybrid_options, ("corpus", "embedder")),
    "rerank": (_rerank_options, ("corpus", "reranker")),
    "mmr": (_mmr_options, ("corpus", "embedder")),
    "chunk": (_chunk_options, ("corpus", "chunking")),
    "embedding": (_embedding_options, ("corpus", "other")),
}
_LACKING = {
    "corpus": "no corpus is given; give --corpus or --app",
    "embedder": "no embedding is known; name one with --embedding, or the app with --app",
    "reranker": "no reranker is named; name one with --reranker",
    "chunking": "no chunking is named; name one with --chunk, as 600/0",
    "other": "no other embedding is named; name one with --embedding beside --app",
}


def check_option_names(names: Iterable[str]) -> None:
    """Raise InputError for a name that is not of an option."""
    for name in names:
        if name not in OPTION_KINDS:
            raise InputError(f"unknown option '{name}'; {known_names(name, OPTION_KINDS)}")


def make_options(
    context: SearchContext, names: Sequence[str] | None = None
) -> tuple[list[RetrieverOption], list[SkippedOption]]:
    """Return the options that can be tried, and those that cannot, each with its name and reason.

    Raises
    ------
    InputError
        A name in `names` is unknown, or its option cannot be tried.
    """
    check_option_names(names or ())
    options: list[RetrieverOption] = []
    skipped: list[SkippedOption] = []
    for name in names or OPTION_KINDS:
        make, needs = OPTION_KINDS[name]
        given = {"corpus": context.corpus, **vars(context.tools)}
        lacking = next((need for need in needs if given[need] is None), None)
        made = make(context) if lacking is None else _LACKING[lacking]
        if not isinstance(made, str):
            options += made
            continue
        if names:
            raise InputError(f"option '{name}' cannot be tried: {made}")
        skipped.append(SkippedOption(name=name, reason=made))
    return options, skipped
