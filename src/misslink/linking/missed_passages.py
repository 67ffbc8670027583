"""The missed passages of a case, located in the traces or the corpus."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from misslink.linking.miss_types import MissEvidence, classify_miss
from misslink.retrieval import (
    Need,
    NeedMatch,
    RetrievalOutcome,
    match_needs,
    retrieval_cutoff,
    satisfies,
)
from misslink.text.near_duplicates import first_duplicates, is_near_duplicate
from misslink.text.normalization import fold
from misslink.types import CompetingPassage, Passage, RetrievalMiss, Trace

_SEPARATOR = "\n"  # in no folded text, so no match spans two of them
_PROBE_LENGTH = 20  # folded characters of an evidence by which its carriers are looked up
_MAX_RIVALS = 5  # passages above a missed one that are reported
_MAX_COMPARED = 30  # retrieved passages compared for near-duplicates


class PassagePool:
    """The passages of a corpus, or those seen in the traces; by id, by position and by text.

    Parameters
    ----------
    traces : sequence of Trace
    corpus : sequence of Passage or None
        Every passage of the index. None: the pool is what the traces show, asked deeper or not.
        Of passages with the same id the first counts; those without a text are left out.

    Attributes
    ----------
    passages : tuple of Passage
    position : dict of str to int
        Passage id to position among `passages`.
    listed : bool
        Whether a corpus was given.
    """

    def __init__(self, traces: Sequence[Trace], corpus: Sequence[Passage] | None) -> None:
        self.listed = corpus is not None
        by_id: dict[str, Passage] = {}
        for passage in _observed_passages(traces) if corpus is None else corpus:
            if passage.text.strip():
                by_id.setdefault(passage.id, passage)
        self.passages = tuple(by_id.values())
        self.position = {id_: position for position, id_ in enumerate(by_id)}
        self._ids = frozenset(passage.id for passage in corpus or ())
        self._traces = traces

    @cached_property
    def knows_ids(self) -> bool:
        """Whether the corpus holds every retrieved id; if not, it is another corpus."""
        return self.listed and all(
            passage.id in self._ids for passage in _observed_passages(self._traces)
        )

    @cached_property
    def knows_texts(self) -> bool:
        """Whether the corpus holds the text of every retrieved passage."""
        if not self.listed:
            return False
        folded = set(self._folded)
        return all(
            passage.id in self._ids or fold(passage.text) in folded
            for passage in _observed_passages(self._traces)
        )

    def locate(self, need: Need) -> NeedMatch | None:
        """Where the corpus satisfies the need, whole before split over two passages."""
        if not self.listed:
            return None
        if need.evidence is None:
            position = self.position.get(need.id)
            if position is None:
                return None
            return NeedMatch(need, position + 1, (self.passages[position],))
        candidates = self._candidates(fold(need.evidence))
        whole = next((passage for passage in candidates if satisfies(need, passage)), None)
        if whole is not None:
            return NeedMatch(need, self.position[whole.id] + 1, (whole,))
        return next(iter(match_needs([need], candidates)), None)

    def lacks(self, need: Need) -> bool:
        """Whether the corpus is known not to hold what is needed.

        A corpus that does not hold what the app retrieved cannot say what the app's index lacks.
        """
        if need.evidence is None:
            return self.knows_ids and need.id not in self._ids
        return self.knows_texts and self.locate(need) is None

    @cached_property
    def _folded(self) -> list[str]:
        return [fold(passage.text) for passage in self.passages]

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for text in self._folded:
            starts.append(starts[-1] + len(text) + len(_SEPARATOR))
        return starts

    @cached_property
    def _joined(self) -> str:
        """All folded texts: one search in it is a hundred times as fast as one in each."""
        return _SEPARATOR.join(self._folded)

    def _candidates(self, evidence: str) -> list[Passage]:
        """Passages with the start or the end of the evidence, as each carrier of a part has."""
        length = min(_PROBE_LENGTH, -(-len(evidence) // 4))
        positions: set[int] = set()
        for probe in (evidence[:length], evidence[-length:]):
            offset = self._joined.find(probe) if probe else -1
            while offset >= 0:
                position = bisect_right(self._starts, offset) - 1
                positions.add(position)
                offset = self._joined.find(probe, self._starts[position + 1])
        return [self.passages[position] for position in sorted(positions)]


def _observed_passages(traces: Sequence[Trace]) -> Iterable[Passage]:
    for trace in traces:
        yield from trace.retrieved
        yield from trace.deeper


@dataclass(frozen=True)
class MissedPassage:
    """A missed passage: the evidence, itself where its text is known, and its last competitor.

    ``last`` is the id of the last passage of the context.
    """

    evidence: MissEvidence
    passage: Passage | None
    last: str | None


def find_missed_passages(
    trace: Trace, outcome: RetrievalOutcome, pool: PassagePool, k: int
) -> tuple[MissedPassage, ...]:
    """Return the missed passages of one case, in the order of the gold set.

    `k` is how many passages count where the prompt was not seen.
    """
    if not outcome.missed:
        return ()
    context = trace.context(k)
    cutoff = retrieval_cutoff(trace, k)
    compared = trace.retrieved[:_MAX_COMPARED]
    duplicates = first_duplicates([passage.text for passage in compared])
    competitors = [
        CompetingPassage(
            passage_id=passage.id,
            rank=rank,
            score=passage.score,
            duplicate_of=None if first is None else compared[first].id,
        )
        for rank, (passage, first) in enumerate(zip(compared, duplicates, strict=True), start=1)
    ]
    in_context = {passage.id for passage in context}
    repeats = sum(c.duplicate_of is not None and c.passage_id in in_context for c in competitors)
    measured = {"duplicates_in_context": float(repeats)} if context else {}
    ranks = {passage.id: rank for rank, passage in enumerate(trace.retrieved, start=1)}
    misses = []
    for bare in outcome.missed:
        missed, passage, halves, lacking = _locate_text(bare, trace, pool)
        rank = missed.true_rank
        above = [c for c in competitors if c.passage_id != missed.passage_id]
        if rank is not None:
            above = [competitor for competitor in above if competitor.rank < rank]
        missed = missed.model_copy(
            update={
                "above": tuple(above[:_MAX_RIVALS]),
                "distance": rank - cutoff if rank is not None and rank > cutoff else None,
                "measured": measured,
            }
        )
        behind = [other.id for other in context if rank is not None and ranks[other.id] > rank]
        text = missed.text
        twin = None
        if text is not None:
            twin = next(
                (other.id for other in context if is_near_duplicate(other.text, text)), None
            )
        evidence = MissEvidence(
            missed=missed,
            k=len(context) or cutoff,
            retrieved=missed.passage_id in ranks,
            prompt_seen=trace.prompted is not None,
            overtaken_by=behind[0] if behind else None,
            lacking=lacking,
            halves=halves,
            crowd=sum(competitor.duplicate_of is not None for competitor in above),
            twin=twin,
        )
        misses.append(MissedPassage(evidence, passage, context[-1].id if context else None))
    return tuple(misses)


def classify_from_trace(
    trace: Trace, outcome: RetrievalOutcome, k: int
) -> tuple[RetrievalMiss, ...]:
    """Return the missed passages of one case with the miss types that its trace alone shows."""
    missed = find_missed_passages(trace, outcome, PassagePool([trace], None), k)
    return tuple(classify_miss(miss.evidence) for miss in missed)


def _locate_text(
    missed: RetrievalMiss, trace: Trace, pool: PassagePool
) -> tuple[RetrievalMiss, Passage | None, tuple[str, ...], str | None]:
    """The missed passage with its text where known, its halves, and the corpus that lacks it."""
    need = Need(missed.passage_id, missed.grade, missed.evidence)
    halves: tuple[str, ...] = ()
    if missed.miss_type == "split_evidence":
        match = next(iter(match_needs([need], [*trace.retrieved, *trace.deeper])), None)
        halves = tuple(half.id for half in match.passages) if match is not None else ()
    if missed.text is not None and missed.text.strip():
        passage = Passage(id=missed.passage_id, text=missed.text, rank=missed.true_rank or 1)
        return missed, passage, halves, None
    match = None
    if missed.true_rank is None or missed.evidence is None:
        match = pool.locate(need)
    if match is not None:
        # Of two halves the one that the retriever did not return is what was missed.
        retrieved = {passage.id for passage in trace.retrieved}
        passage = next((p for p in match.passages if p.id not in retrieved), match.passages[-1])
        halves = tuple(half.id for half in match.passages) if match.split else ()
        missed = missed.model_copy(update={"passage_id": passage.id, "text": passage.text})
        return missed, passage, halves, None
    lacking = None
    if missed.true_rank is None and not halves and pool.lacks(need):
        lacking = f"the listed corpus of {len(pool.passages)} passages"
    return missed, None, halves, lacking
