"""The missed passages of a case: where they are in traces and corpus, and which search lost them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from misslink.linking.miss_types import MissEvidence
from misslink.retrieval import (
    LabelledNeed,
    NeedMatch,
    RetrievalOutcome,
    match_needs,
    retrieval_cutoff,
    satisfies,
    shown_shares,
)
from misslink.text.bm25 import Bm25Index
from misslink.text.languages import strip_polarity
from misslink.text.near_duplicates import (
    first_duplicates,
    is_near_duplicate,
    passage_stems,
    passage_words,
)
from misslink.text.normalization import content_stems, fold, stems
from misslink.types import (
    CompetingPassage,
    LossStep,
    MissStatus,
    Passage,
    Reason,
    RetrievalMiss,
    Search,
    Trace,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SEPARATOR = "\n"  # in no folded text, so no match spans two of them
_PROBE_LENGTH = 20  # folded characters of an evidence by which its carriers are looked up
_KEPT_SCORES = 8  # queries of a case; of 10,000 passages they take 40 kB each
_MAX_RIVALS = 5  # passages above a missed one that are reported
# A number, a capital within a sentence, or before another one.
NAME = re.compile(r"(?<!^)\b(?:[A-Z][\w-]*|[\w-]*\d[\w-]*)|^[A-Z][\w-]*(?=\s[A-Z])")
_KEYWORD_SEARCH = re.compile(r"bm25|tf-?idf|keyword|full_?text", re.IGNORECASE)  # as it is called
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
    cut : frozenset of str
        Passages of the corpus of which the index holds the beginning alone.
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
        self.cut = self._find_cut() if self.listed else frozenset[str]()
        self._scores: dict[str, NDArray[np.float32]] = {}

    def __getstate__(self) -> object:
        """Another process links with it; what is asked of the traces was asked before."""
        return {**vars(self), "_traces": None, "_scores": {}}

    def _find_cut(self) -> frozenset[str]:
        """Passages that every trace shows without their end; none where ids name documents, of chunks."""
        seen: dict[str, str] = {}
        for passage in _observed_passages(self._traces):
            if passage.text and seen.setdefault(passage.id, passage.text) != passage.text:
                return frozenset()
        cut = set[str]()
        for id_, text in seen.items():
            whole, part = fold(self.text(id_) or ""), fold(text)
            if part != whole and part in whole:
                if not whole.startswith(part):
                    return frozenset()
                cut.add(id_)
        return frozenset(cut)

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

    def locate(self, need: LabelledNeed) -> NeedMatch | None:
        """Where the corpus satisfies the need, whole before split over two passages.

        Without one, a passage that another case retrieved is known by its id.
        """
        if need.evidence is None:
            position = self.position.get(need.id)
            if position is None:
                return None
            return NeedMatch(need, position + 1, (self.passages[position],))
        if not self.listed:
            return None
        candidates = self._candidates(fold(need.evidence))
        whole = next((passage for passage in candidates if satisfies(need, passage)), None)
        if whole is not None:
            return NeedMatch(need, self.position[whole.id] + 1, (whole,))
        return next(iter(match_needs([need], candidates)), None)

    def lacks(self, need: LabelledNeed) -> bool:
        """Whether the corpus is known not to hold what is needed.

        A corpus that does not hold what the app retrieved cannot say what the app's index lacks.
        """
        if need.evidence is None:
            return self.knows_ids and need.id not in self._ids
        return self.knows_texts and self.locate(need) is None

    @cached_property
    def index(self) -> Bm25Index:
        """BM25 over the passages."""
        return Bm25Index(passage_stems(passage.text) for passage in self.passages)

    def scores(self, query: str) -> NDArray[np.float32]:
        """BM25 scores of the passages; those of the last queries are kept, one case asks them again."""
        if query not in self._scores:
            if len(self._scores) >= _KEPT_SCORES:
                self._scores.pop(next(iter(self._scores)))
            self._scores[query] = self.index.scores(stems(query))
        return self._scores[query]

    def text(self, passage_id: str) -> str | None:
        """The text of a passage; None where it is not known."""
        place = self.position.get(passage_id)
        return None if place is None else self.passages[place].text

    def weight(self, words: AbstractSet[str], passage_id: str) -> float:
        """How well words find a passage, as BM25 weighs them."""
        place = self.position.get(passage_id)
        return 0.0 if place is None else float(self.index.scores(sorted(words))[place])

    def lacks_fact(self, need: str, question: str, *, is_unused: bool = False) -> bool:
        """Whether no passage that names what the question names has what a need says beyond it.

        Nor where no passage has any of its words, as of another language, unless those of the question
        are there and the app used nothing of what it found (`is_unused`). Several values that stand together in another passage may be a hop away. Of a question about
        things that no passage names together nothing is known.
        """
        import numpy as np

        def holding(words: AbstractSet[str]) -> list[NDArray[np.bool_]]:
            return [self.index.scores([word]) > 0 for word in sorted(words)]

        everywhere = np.ones(len(self.passages), bool)
        values, own = own_values(need, question), content_stems(need) - content_stems(question)
        named = [one for one in holding(subject_names(question)) if one.any()]
        subject = np.logical_and.reduce([everywhere, *named])
        stated = np.logical_and.reduce([everywhere, *holding(values)])
        if not values:
            stated = 2 * np.sum([~everywhere, *holding(own)], axis=0) >= max(len(own), 1)
        near = everywhere if len(values) > 1 else subject
        words = own - values
        is_read = not words or any(one.any() for one in holding(words))
        if not is_read and is_unused:
            asked = [bool(one.any()) for one in holding(content_stems(question))]
            is_read = bool(asked) and 2 * sum(asked) >= len(asked)
        return bool(own and subject.any()) and is_read and not (near & stated).any()

    @cached_property
    def _folded(self) -> list[str]:
        return [fold(passage.text) for passage in self.passages]

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(text) + len(_SEPARATOR) for text in self._folded)]

    @cached_property
    def _joined(self) -> str:
        """All folded texts: one search in it is a hundred times as fast as one in each."""
        return _SEPARATOR.join(self._folded)

    @cached_property
    def _by_length(self) -> list[tuple[int, ...]]:
        return sorted((len(text), position) for position, text in enumerate(self._folded))

    def _candidates(self, evidence: str) -> list[Passage]:
        """Passages with the start or the end of the evidence, or within it, as carriers of a part are."""
        length = min(_PROBE_LENGTH, -(-len(evidence) // 4))
        shorter = self._by_length[bisect_left(self._by_length, (length,)) :]
        shorter = shorter[: bisect_left(shorter, (len(evidence),))]
        positions = {position for _, position in shorter if self._folded[position] in evidence}
        for probe in (evidence[:length], evidence[-length:]):
            offset = self._joined.find(probe) if probe else -1
            while offset >= 0:
                position = bisect_right(self._starts, offset) - 1
                positions.add(position)
                offset = self._joined.find(probe, self._starts[position + 1])
        return [self.passages[position] for position in sorted(positions)]


@lru_cache(maxsize=4_096)
def subject_names(question: str) -> frozenset[str]:
    """The words with a capital or a digit in a question: what it is about."""
    return content_stems(" ".join(NAME.findall(question)))


def own_values(text: str, question: str) -> frozenset[str]:
    """The names and numbers of a text that its question lacks."""
    return subject_names(text) - content_stems(question)


def shared_stem_share(claim: str, passage: str) -> float:
    """Share of the claim's different content stems that a passage holds; 0 where it has none."""
    asked = content_stems(claim)
    return len(asked.intersection(passage_words(passage))) / len(asked) if asked else 0.0


def says_beyond(held: AbstractSet[str], claim: str, question: str) -> bool:
    """Whether stems hold what a claim says beyond the question: its names and numbers, or half its words."""
    if values := own_values(claim, question):
        return values <= held
    own = content_stems(claim) - content_stems(question)
    if not own:  # a yes or no, or a repeated question
        return strip_polarity(claim) != claim
    return 2 * len(own & held) >= len(own)


def _observed_passages(traces: Sequence[Trace]) -> Iterable[Passage]:
    for trace in traces:
        yield from trace.retrieved
        yield from trace.deeper


def find_missed_passages(
    trace: Trace, outcome: RetrievalOutcome, pool: PassagePool, k: int
) -> tuple[MissEvidence, ...]:
    """Return what is known of the missed passages of one case, in the order of the gold set.

    `k` is how many passages count where the prompt was not seen.
    """
    if not outcome.missed:
        return ()
    context, cutoff = trace.context(k), retrieval_cutoff(trace, k)
    compared = trace.retrieved[:_MAX_COMPARED]
    firsts = first_duplicates([passage.text for passage in compared])
    copied = [None if first is None else compared[first].id for first in firsts]
    competitors = [
        CompetingPassage(passage_id=one.id, rank=rank, score=one.score, duplicate_of=copy)
        for rank, (one, copy) in enumerate(zip(compared, copied, strict=True), start=1)
    ]
    in_context = {passage.id for passage in context}
    repeats = sum(c.duplicate_of is not None and c.passage_id in in_context for c in competitors)
    evidence, shares = [], shown_shares(trace)
    for missed in outcome.missed:
        passage, halves = _locate_passage(missed, trace, pool)
        rank, id_, text = missed.true_rank, missed.passage_id, missed.text
        if passage is not None:
            id_, text = passage.id, passage.text
        outside = _dropped_from_prompt(trace, context, id_, rank, shares.get(id_))
        status: MissStatus = "dropped_from_prompt" if outside else "not_retrieved"
        if passage is None and rank is None and not halves and pool.lacks(as_need(missed)):
            # Known not to be there; not merely that the retriever did not reach it.
            outside = Reason(code="not_in_corpus", passages=len(pool.passages))
            status = "not_indexed"
        above = [c for c in competitors if c.passage_id != id_ and (rank is None or c.rank < rank)]
        update = {
            "passage_id": id_,
            "text": text,
            "status": status,
            "above": tuple(above[:_MAX_RIVALS]),
            "distance": rank - cutoff if rank is not None and rank > cutoff else None,
            "measured": {"duplicates_in_context": float(repeats)} if context else {},
        }
        twins = (o.id for o in context if text is not None and is_near_duplicate(o.text, text))
        evidence.append(
            MissEvidence(
                missed=missed.model_copy(update=update),
                k=len(context) or cutoff,
                outside=outside,
                halves=halves,
                crowd=sum(competitor.duplicate_of is not None for competitor in above),
                twin=next(twins, None),
                passage=passage,
                last=context[-1].id if context else None,
                by_words=any(_KEYWORD_SEARCH.search(call.retriever) for call in trace.calls),
            )
        )
    return tuple(evidence)


def _dropped_from_prompt(
    trace: Trace, context: Sequence[Passage], id_: str, rank: int | None, share: float | None
) -> Reason | None:
    """What shows that a passage was found, and a later step of the search or the app left it out.

    A search inside another one, such as that of a reranking retriever, which did not return it, or the
    retriever. `share` is that of its text in the prompt, where a part of it is there.
    """
    calls = [call for call in trace.calls if id_ in call.passages]
    if calls and all(call.nested for call in calls):
        best = min(call.passages.index(id_) + 1 for call in calls)
        return Reason(code="dropped_in_search", rank=best)
    ranks = {passage.id: rank for rank, passage in enumerate(trace.retrieved, start=1)}
    if id_ not in ranks or trace.prompted is None or rank is None:
        return None
    if share is not None:
        return Reason(code="cut", rank=rank, share=share)
    behind = next((other.id for other in context if ranks[other.id] > rank), None)
    return Reason(code="dropped_from_prompt", rank=rank, behind=behind)


def _locate_passage(
    missed: RetrievalMiss, trace: Trace, pool: PassagePool
) -> tuple[Passage | None, tuple[str, ...]]:
    """The missed passage where its text is known, and the halves of evidence that is cut in two."""
    match, need = None, as_need(missed)
    if missed.miss_type == "split_evidence":
        match = next(iter(match_needs([need], [*trace.retrieved, *trace.deeper])), None)
    halves = tuple(half.id for half in match.passages) if match is not None else ()
    if missed.text is not None and missed.text.strip():
        return Passage(id=missed.passage_id, text=missed.text, rank=missed.true_rank or 1), halves
    if missed.true_rank is not None and missed.evidence is not None:
        return None, halves
    match = pool.locate(need)
    if match is None:
        return None, halves
    # Of two halves the one that the retriever did not return is what was missed.
    retrieved = {passage.id for passage in trace.retrieved}
    passage = next((p for p in match.passages if p.id not in retrieved), match.passages[-1])
    return passage, tuple(half.id for half in match.passages) if match.split else ()


def as_need(missed: RetrievalMiss) -> LabelledNeed:
    """The label that a missed passage satisfies."""
    return LabelledNeed(missed.passage_id, missed.grade, missed.evidence)


def list_searches(trace: Trace, outcome: RetrievalOutcome) -> tuple[Search, ...]:
    """Return the searches of a case in order; a search inside of another is part of it."""
    missing = [match.need for match in outcome.found]
    missing += map(as_need, outcome.missed)
    passages = {passage.id: passage for passage in (*trace.retrieved, *trace.deeper)}
    searches = []
    for number, call in enumerate((call for call in trace.calls if not call.nested), 1):
        returned = [passages.get(id_, Passage(id=id_, rank=1)) for id_ in call.passages]
        found = [need for need in missing if any(satisfies(need, one) for one in returned)]
        searches.append(
            Search(
                number=number,
                query=call.query,
                tool=call.tool or call.retriever,
                passages=len(returned),
                missing=len(missing),
                found=tuple(need.id for need in found),
                recall=len(found) / len(missing) if missing else None,
            )
        )
        missing = [need for need in missing if need not in found]
    return tuple(searches)


def locate_losses(
    misses: Sequence[RetrievalMiss], trace: Trace, question: str
) -> tuple[RetrievalMiss, ...]:
    """Return missed passages with the step of the app that lost each, where it is known."""
    steps = (_locate_loss(miss, trace, question) for miss in misses)
    return tuple(
        miss.model_copy(update={"lost_at": step, "search": search})
        for miss, (step, search) in zip(misses, steps, strict=True)
    )


def _locate_loss(
    miss: RetrievalMiss, trace: Trace, question: str
) -> tuple[LossStep | None, int | None]:
    if miss.status == "not_indexed" or trace.unmeasured:
        return None, None
    number = 0
    inner = None  # the last search inside of which another one had it
    for call in trace.calls:
        number += not call.nested
        if miss.passage_id in call.passages:
            if not call.nested:
                return _step_after_search(miss, trace), number
            inner = number
    if inner is not None:
        return "dropped_by_grader", inner
    if any(passage.id == miss.passage_id for passage in trace.retrieved):
        return _step_after_search(miss, trace), None  # of recorded traces, which list no searches
    # The question finds it without the filter; of another query that is not known.
    if miss.kind == "filtered_out" and any(call.query == question for call in trace.calls):
        return "filtered_out", None
    if miss.true_rank is not None:
        best = trace.deeper_calls.get(miss.passage_id)
        return "ranked_low", best or (number if number == 1 else None)
    return ("not_searched", None) if trace.depth is not None else (None, None)


def _step_after_search(miss: RetrievalMiss, trace: Trace) -> LossStep:
    if miss.passage_id in trace.graded:
        return "dropped_by_grader"
    return "ranked_low" if trace.prompted is None else "cut_from_prompt"
