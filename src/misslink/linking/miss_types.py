"""Why a relevant passage was missed: one rule per miss type."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from misslink.render.reasons import describe_reasons
from misslink.types import MissType, Passage, Reason, RetrievalMiss

# Known pairs that a percentile needs. With 20 of them, a pair that in truth is no lower than the
# lowest 30% stands in the lowest tenth (2 or fewer below it) by chance in 4% of cases; with 13
# it does in 6% (binomial).
MIN_PAIRS = 20
_LOW_PERCENTILE = 0.1  # the tenth of the run's pairs that counts as low
_TYPICAL_PERCENTILE = 0.5  # at least as high as the middle of the run's pairs
# Of the 1,612 relevant pairs of Cranfield the document has a quarter of the question's content
# words or fewer in 29%.
_LOW_WORD_SHARE = 1 / 4
_MAX_CUTOFFS = 2  # times k: up to here a larger k is the smallest change that retrieves a passage
_SMALL_CUTOFF = 10  # up to here a larger k is small, however small k is


@dataclass(frozen=True)
class MissEvidence:
    """What is known of one missed passage before its miss type is decided.

    Parameters
    ----------
    missed : RetrievalMiss
        With ``measured`` and ``above``.
    k : int
        How many passages the app puts in its prompt.
    outside : Reason or None
        What shows that it was lost outside of the retriever, as its status says.
    halves : sequence of str
        Ids of the two passages over which a chunk boundary cuts the evidence.
    pairs : int
        Other known query-passage pairs of the run that have a cosine.
    crowd : int
        How many of those above it repeat another of them.
    twin : str or None
        A passage of the context that is a near-duplicate of it.
    passage : Passage or None
        The missed passage itself; None where its text is not known.
    last : str or None
        The last passage of the context.
    standalone : str or None
        The standalone question that was measured in place of the question.
    by_words : bool
        Whether the app's own search is one by words.
    """

    missed: RetrievalMiss
    k: int
    outside: Reason | None = None
    halves: Sequence[str] = ()
    pairs: int = 0
    crowd: int = 0
    twin: str | None = None
    passage: Passage | None = None
    last: str | None = None
    standalone: str | None = None
    by_words: bool = False

    @property
    def rank(self) -> int | None:
        """Its true rank."""
        return self.missed.true_rank

    def number(self, name: str) -> float | None:
        """A measurement by name; None where it could not be taken."""
        return self.missed.measured.get(name)


def classify_miss(evidence: MissEvidence) -> RetrievalMiss:
    """Return the missed passage with its miss type, others that fit, and the reason.

    The first rule of `MISS_TYPES` that fits gives the miss type; None where none does, and for a
    passage that is not in the index or was dropped before the prompt.
    """
    found = (
        () if evidence.outside else ((name, rule(evidence)) for name, rule in MISS_TYPES.items())
    )
    fitting: dict[MissType | None, Reason] = {name: reason for name, reason in found if reason}
    unexplained = evidence.outside or _unexplained(evidence)
    miss_type, reason = next(iter(fitting.items()), (None, unexplained))
    reasons = [reason]
    if evidence.twin is not None:
        reasons.append(Reason(code="twin_in_prompt", passage=evidence.twin))
    if evidence.standalone is not None and evidence.missed.measured:
        reasons.append(Reason(code="standalone_measured", question=evidence.standalone))
    return evidence.missed.model_copy(
        update={
            "miss_type": miss_type,
            "also": tuple(fitting)[1:],
            "reason": describe_reasons(reasons),
        }
    )


def split_evidence(evidence: MissEvidence) -> Reason | None:
    """A chunk boundary cuts the evidence, so no one passage answers the question."""
    if not evidence.halves:
        return None
    missed = evidence.missed.passage_id
    return Reason(
        code="split_evidence", halves=tuple(evidence.halves), missed=missed, rank=evidence.rank
    )


def filtered_out(evidence: MissEvidence) -> Reason | None:
    """The store's own vectors rank it within k, and the retriever does not return it at depth.

    A rank by words says so only where the retriever was asked for all that there is.
    """
    depth, rank = evidence.missed.depth, evidence.number("dense_rank")
    by_words = rank is None
    if depth is not None and by_words and depth >= (evidence.number("pool") or math.inf):
        rank = evidence.number("bm25_rank")
    if depth is None or evidence.rank is not None or rank is None or rank > evidence.k:
        return None
    return Reason(code="filtered_out", rank=rank, by_words=by_words, depth=depth)


def duplicate_crowding(evidence: MissEvidence) -> Reason | None:
    """Without the near-duplicates above it, it would be within the first k."""
    rank, k, crowd = evidence.rank, evidence.k, evidence.crowd
    if rank is None or rank <= k or rank - crowd > k:
        return None
    return Reason(code="duplicate_crowding", crowd=crowd, rank=rank, k=k)


def keyword_match(evidence: MissEvidence) -> Reason | None:
    """A search by words finds it within k, and the retriever, which is none, does not."""
    rank, by_words, k = evidence.rank, evidence.number("bm25_rank"), evidence.k
    if evidence.by_words or by_words is None or by_words > k or (rank is not None and rank <= k):
        return None
    pool, depth = evidence.number("pool") or 0, evidence.missed.depth
    return Reason(code="keyword_match", by_words=by_words, pool=pool, k=k, rank=rank, depth=depth)


def below_cutoff(evidence: MissEvidence) -> Reason | None:
    """The retriever finds it among the first 2k, or the first 10."""
    rank, k = evidence.rank, evidence.k
    if rank is None or not k < rank <= reachable(k):
        return None
    return Reason(code="below_cutoff", rank=rank, k=k)


def reachable(k: int) -> int:
    """The last rank that a moderately larger k reaches."""
    return max(_MAX_CUTOFFS * k, _SMALL_CUTOFF)


def vocabulary_mismatch(evidence: MissEvidence) -> Reason | None:
    """It has few of the question's words, so that a search by words does not find it either."""
    share, by_words = evidence.number("shared_stems"), evidence.number("bm25_rank")
    if share == 0:
        return Reason(code="no_shared_words")
    if share is None or by_words is None or share > _LOW_WORD_SHARE or by_words <= evidence.k:
        return None
    pool = evidence.number("pool") or 0
    return Reason(code="vocabulary_mismatch", share=share, by_words=by_words, pool=pool)


def domain_mismatch(evidence: MissEvidence) -> Reason | None:
    """The embedding does not see what the words show: similarity low, words shared as ever."""
    below, cosine = evidence.number("cosine_percentile"), evidence.number("cosine")
    words, share = evidence.number("shared_stems_percentile"), evidence.number("shared_stems")
    if below is None or cosine is None or words is None or not share or evidence.pairs < MIN_PAIRS:
        return None
    if below > _LOW_PERCENTILE or words < _TYPICAL_PERCENTILE:
        return None
    return Reason(
        code="domain_mismatch", cosine=cosine, above=1 - below, pairs=evidence.pairs, share=share
    )


def ranked_low(evidence: MissEvidence) -> Reason | None:
    """The retriever finds it, further down than a larger k reaches."""
    rank, k = evidence.rank, evidence.k
    if rank is None or rank <= reachable(k):
        return None
    return Reason(code="ranked_low", rank=rank, k=k, above=evidence.missed.above)


def _unexplained(evidence: MissEvidence) -> Reason:
    missed = evidence.missed
    known = {"rank": missed.true_rank, "depth": missed.depth, "has_text": missed.text is not None}
    return Reason(code="miss_unexplained", **known, cosine=evidence.number("cosine"))


Rule = Callable[[MissEvidence], Reason | None]  # the evidence; None if it does not fit

# The first rule that fits gives the miss type, so the cheapest fix that retrieves the passage
# comes before those that may.
MISS_TYPES: dict[MissType, Rule] = {
    "split_evidence": split_evidence,
    "filtered_out": filtered_out,
    "duplicate_crowding": duplicate_crowding,
    "below_cutoff": below_cutoff,
    "keyword_match": keyword_match,
    "vocabulary_mismatch": vocabulary_mismatch,
    "domain_mismatch": domain_mismatch,
    "ranked_low": ranked_low,
}
