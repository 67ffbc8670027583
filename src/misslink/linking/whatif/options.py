"""What could be changed about the retriever, each change a few lines."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from misslink.linking.whatif.chunking import Chunking, by_text
from misslink.linking.whatif.today import Today, Tried, unmeasured
from misslink.retrieval import outcome, why_unmeasured
from misslink.types import Case, Passage, Trace

__all__ = ["MorePassages", "Option", "Rank", "Rechunked", "Search"]

Rank = Callable[[Sequence[str], int], Awaitable[list[list[int]]]]


class Option(Protocol):
    """A change of the retriever that can be tried without the app."""

    @property
    def name(self) -> str:
        """Short, such as 'k=10'."""
        ...

    @property
    def what(self) -> str:
        """What is changed, as part of a sentence."""
        ...

    async def tried(self, today: Today) -> Tried:
        """What the changed retriever gives for each case."""
        ...


@dataclass(frozen=True)
class MorePassages:
    """A larger k, told from the true ranks that the run knows; nothing is searched.

    Parameters
    ----------
    width : int
        How many passages are handed over.
    indexed : int or None
        How many there are, of which no retriever gives more. None: not known.
    """

    width: int
    indexed: int | None = None

    @property
    def name(self) -> str:
        """Such as 'k=10'."""
        return f"k={self.width}"

    @property
    def what(self) -> str:
        """What is changed."""
        return f"the same retriever hands over {self.width} passages"

    async def tried(self, today: Today) -> Tried:
        """Today's rankings, continued with the passages found by asking deeper."""
        length = max(self.width, today.cutoff(self.width), today.listed)
        traces = tuple(
            self._continued(case, trace, length, today.k)
            for case, trace in zip(today.cases, today.traces, strict=True)
        )
        return Tried(today.cases, traces, self.width)

    def _continued(self, case: Case, trace: Trace, length: int, k: int) -> Trace:
        if why_unmeasured(trace):
            return trace
        asked = max(len(trace.retrieved), trace.depth or 0)
        lost = any(one.true_rank is None for one in outcome(case, trace, k).missed)
        if lost and asked < self._at_most(self.width):
            return unmeasured(trace, f"the retriever was not asked for {self.width} passages")
        ranks = dict(enumerate(trace.retrieved, start=1))
        for passage in trace.deeper:
            rank = passage.rank
            while rank in ranks:  # of several searches, two may have the same
                rank += 1
            ranks[rank] = passage
        last = max((self._at_most(length), *(rank for rank in ranks if rank <= length)))
        listed = tuple(
            ranks[rank].model_copy(update={"rank": rank})
            if rank in ranks
            else Passage(id=f"not-seen-{rank}", rank=rank)
            for rank in range(1, last + 1)
        )
        return trace.model_copy(
            update={"retrieved": listed, "prompted": None, "deeper": (), "depth": None}
        )

    def _at_most(self, width: int) -> int:
        return width if self.indexed is None else min(width, self.indexed)


@dataclass(frozen=True)
class Search:
    """A search of the corpus with the case's question."""

    name: str
    what: str
    corpus: tuple[Passage, ...]
    rank: Rank

    async def tried(self, today: Today) -> Tried:
        """As many passages as today."""
        depth = max(today.listed, today.width)
        found = await self.rank([case.question for case in today.cases], depth)
        traces = tuple(
            _as_trace(trace, [self.corpus[place] for place in places])
            for trace, places in zip(today.traces, found, strict=True)
        )
        return Tried(today.cases, traces, today.width)


@dataclass(frozen=True)
class Rechunked:
    """Another chunk size and overlap, searched by the embedding or else by BM25."""

    name: str
    what: str
    corpus: tuple[Passage, ...]
    chunks: tuple[Passage, ...]
    chunking: Chunking
    rank: Rank

    async def tried(self, today: Today) -> Tried:
        """As many chunks as passages today, held against evidence texts."""
        search = Search(self.name, self.what, self.chunks, self.rank)
        found = await search.tried(today)
        texts = {passage.id: passage.text for passage in self.corpus}
        cases, traces = [], []
        for case, trace in zip(found.cases, found.traces, strict=True):
            asked = by_text(case, texts, self.chunking.size)
            cases.append(asked if isinstance(asked, Case) else case)
            traces.append(unmeasured(trace, asked) if isinstance(asked, str) else trace)
        return Tried(tuple(cases), tuple(traces), found.width)


def _as_trace(trace: Trace, passages: Sequence[Passage]) -> Trace:
    if why_unmeasured(trace):
        return trace
    listed = tuple(
        passage.model_copy(update={"rank": rank, "score": None})
        for rank, passage in enumerate(passages, start=1)
    )
    return Trace(case_id=trace.case_id, retrieved=listed)
