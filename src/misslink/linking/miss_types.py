"""Why a relevant passage was missed: one rule per miss type, and the advice for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from misslink.types import CompetingPassage, MissType, RetrievalMiss

# Known pairs that a percentile needs. With 20 of them, a pair that in truth is no lower than the
# lowest 30% stands in the lowest tenth (2 or fewer below it) by chance in 4% of cases; with 13
# it does in 6% (binomial).
MIN_PAIRS = 20
_LOW_PERCENTILE = 0.1  # the tenth of the run's pairs that counts as low
_TYPICAL_PERCENTILE = 0.5  # at least as high as the middle of the run's pairs
# Of the 1,612 relevant pairs of Cranfield the document has a quarter of the question's content
# words or fewer in 29%, half of them or more in 34%.
_LOW_WORD_SHARE = 1 / 4
_HIGH_WORD_SHARE = 1 / 2
# How many times further down one search puts a passage than the other: of these pairs BM25 puts
# 10% so much further down than MiniLM, and MiniLM 8% than BM25; at 3 it would be 20 and 16%.
_RANK_RATIO = 5.0
_RIVALS_SHOWN = 3  # rivals named in a sentence


@dataclass(frozen=True)
class MissEvidence:
    """What is known of one missed passage before its miss type is decided.

    Parameters
    ----------
    missed : RetrievalMiss
        With ``measured`` and ``above``.
    k : int
        How many passages count.
    retrieved : bool
        Whether the retriever returned it.
    prompt_seen : bool
        Whether it is known which passages reached the prompt.
    overtaken_by : str or None
        A passage ranked behind it that reached the prompt.
    lacking : str or None
        The corpus that does not hold it.
    halves : sequence of str
        Ids of the two passages over which a chunk boundary cuts the evidence.
    pairs : int
        Other known query-passage pairs of the run that have a cosine.
    crowd : int
        How many of those above it repeat another of them.
    twin : str or None
        A passage of the context that is a near-duplicate of it.
    """

    missed: RetrievalMiss
    k: int
    retrieved: bool = False
    prompt_seen: bool = False
    overtaken_by: str | None = None
    lacking: str | None = None
    halves: Sequence[str] = ()
    pairs: int = 0
    crowd: int = 0
    twin: str | None = None

    def number(self, name: str) -> float | None:
        """A measurement by name; None where it could not be taken."""
        return self.missed.measured.get(name)


def classify_miss(evidence: MissEvidence) -> RetrievalMiss:
    """Return the missed passage with its miss type, the others that fit, and the reason.

    The first rule of `MISS_TYPES` that fits gives the miss type; None where none does.
    """
    fitting = [
        (name, reason) for name, info in MISS_TYPES.items() if (reason := info.rule(evidence))
    ]
    miss_type, reason = fitting[0] if fitting else (None, _unexplained_reason(evidence))
    if evidence.twin is not None:
        reason += f"; '{evidence.twin}', which was there, says nearly the same"
    return evidence.missed.model_copy(
        update={
            "miss_type": miss_type,
            "also": tuple(other for other, _ in fitting[1:]),
            "reason": reason,
        }
    )


def not_indexed(evidence: MissEvidence) -> str | None:
    """The corpus is known not to hold it; not merely that the retriever did not reach it."""
    return f"{evidence.lacking} does not hold it" if evidence.lacking else None


def dropped_from_prompt(evidence: MissEvidence) -> str | None:
    """It was retrieved, in good time, and is not in the prompt that was seen."""
    rank = evidence.missed.true_rank
    if not (evidence.retrieved and evidence.prompt_seen) or rank is None:
        return None
    if evidence.overtaken_by is not None:
        return (
            f"it was retrieved at rank {rank} and did not reach the prompt, while "
            f"'{evidence.overtaken_by}' from behind it did"
        )
    return (
        f"it was retrieved at rank {rank} and did not reach the prompt" * (rank <= evidence.k)
        or None
    )


def split_evidence(evidence: MissEvidence) -> str | None:
    """A chunk boundary cuts the evidence, so no one passage answers the question."""
    if not evidence.halves:
        return None
    first, second = evidence.halves
    where = f", rank {evidence.missed.true_rank}" if evidence.missed.true_rank is not None else ""
    return (
        f"a chunk boundary cuts the evidence over '{first}' and '{second}', "
        f"and '{evidence.missed.passage_id}'{where} was not there"
    )


def duplicate_crowding(evidence: MissEvidence) -> str | None:
    """Without the near-duplicates above it, it would be within the first k."""
    rank = evidence.missed.true_rank
    if rank is None or rank <= evidence.k or rank - evidence.crowd > evidence.k:
        return None
    repeat = "passage above it repeats" if evidence.crowd == 1 else "passages above it repeat"
    return (
        f"{evidence.crowd} {repeat} others nearly word for word; without them it would have rank "
        f"{rank - evidence.crowd} instead of {rank}, and the first {evidence.k} count"
    )


def domain_mismatch(evidence: MissEvidence) -> str | None:
    """The embedding does not see what the words show: similarity low, words shared as ever."""
    below, cosine = evidence.number("cosine_percentile"), evidence.number("cosine")
    words, share = evidence.number("shared_stems_percentile"), evidence.number("shared_stems")
    if below is None or cosine is None or words is None or not share or evidence.pairs < MIN_PAIRS:
        return None
    if below > _LOW_PERCENTILE or words < _TYPICAL_PERCENTILE:
        return None
    return (
        f"its cosine with the question, {cosine:.2f}, is below {1 - below:.0%} of the run's "
        f"{evidence.pairs} other known pairs, though it has {share:.0%} of the question's content "
        "words, as many as pairs usually share"
    )


def vocabulary_mismatch(evidence: MissEvidence) -> str | None:
    """Question and passage word it differently, or the words they share were not searched for."""
    share = evidence.number("shared_stems")
    dense, words = evidence.number("dense_rank"), evidence.number("bm25_rank")
    if share is None:
        return None
    if share == 0:
        return "it has none of the question's content words"
    if dense is None or words is None:
        return None
    pool = f"of {evidence.number('pool') or 0:.0f} passages"
    ranks = f"a search by words puts it at rank {words:.0f} {pool}, the embedding at {dense:.0f}"
    if share <= _LOW_WORD_SHARE and words > evidence.k and words >= _RANK_RATIO * dense:
        return f"it has only {share:.0%} of the question's content words: {ranks}"
    if share >= _HIGH_WORD_SHARE and dense > evidence.k and dense >= _RANK_RATIO * words:
        return f"it has {share:.0%} of the question's content words, yet {ranks}"
    return None


def ranked_low(evidence: MissEvidence) -> str | None:
    """As similar as needed passages are, and others stood before it."""
    cosine, kth = evidence.number("cosine"), evidence.number("cosine_kth")
    below = evidence.number("cosine_percentile")
    if cosine is None or not evidence.missed.above:
        return None
    if kth is not None and cosine >= kth:
        similar = f"its cosine with the question, {cosine:.2f}, is no lower than that of the last "
        similar += f"passage that counted ({kth:.2f})"
    elif below is not None and below >= _TYPICAL_PERCENTILE and evidence.pairs >= MIN_PAIRS:
        similar = f"its cosine with the question, {cosine:.2f}, is higher than {below:.0%} of the "
        similar += f"run's {evidence.pairs} other known pairs"
    else:
        return None
    return f"{similar}, and it is outranked by {_list_rivals(evidence.missed.above)}"


def below_cutoff(evidence: MissEvidence) -> str | None:
    """The retriever finds it, further down than counts."""
    rank = evidence.missed.true_rank
    if rank is None or rank <= evidence.k:
        return None
    return f"it has rank {rank}, and the first {evidence.k} count"


@dataclass(frozen=True)
class MissTypeInfo:
    """A miss type: its label, its rule, and what to do about it.

    ``rule`` returns the evidence in a sentence, None if it does not fit.
    """

    label: str
    rule: Callable[[MissEvidence], str | None]
    advice: str


# The first rule that fits gives the miss type: first what makes all else pointless (the passage is
# not there, was found and dropped, is cut in two), then what explains its rank, then the bare rank.
MISS_TYPES: dict[MissType, MissTypeInfo] = {
    "not_indexed": MissTypeInfo(
        "not in the index",
        not_indexed,
        "Index the document: the corpus does not hold the passage, so no retriever can find it.",
    ),
    "dropped_from_prompt": MissTypeInfo(
        "retrieved, but dropped before the prompt",
        dropped_from_prompt,
        "Look at what stands between retriever and prompt (a compressor, a reranker, a token "
        "limit, the template): the passage was retrieved and did not get through.",
    ),
    "split_evidence": MissTypeInfo(
        "its evidence is split over two chunks",
        split_evidence,
        "Cut larger chunks or let them overlap, so that one chunk holds the whole evidence; "
        "`misslink whatif RUN --chunk 1000/200` forecasts what it would save.",
    ),
    "duplicate_crowding": MissTypeInfo(
        "crowded out by near-duplicates",
        duplicate_crowding,
        "Remove near-duplicates from the index, or retrieve by maximal marginal relevance: "
        "copies took the places that the passage needed.",
    ),
    "domain_mismatch": MissTypeInfo(
        "from a domain the embeddings do not know",
        domain_mismatch,
        "Fine-tune the embedding on your own questions (`misslink whatif RUN --triplets "
        "triplets.jsonl` writes the training data), or take one made for your domain.",
    ),
    "vocabulary_mismatch": MissTypeInfo(
        "worded differently from the question",
        vocabulary_mismatch,
        "Search by words and by meaning together (BM25 and dense, fused by rank), and add "
        "synonyms or query expansion for terms that questions and documents word differently.",
    ),
    "ranked_low": MissTypeInfo(
        "ranked too low",
        ranked_low,
        "Add a reranker over the first 50 or so: the passage is as similar to its question as "
        "needed passages are, and others stand before it.",
    ),
    "below_cutoff": MissTypeInfo(
        "below the cutoff",
        below_cutoff,
        "Retrieve more passages (a larger k), or rerank a longer list: the passage is among the"
        " candidates, behind the cutoff.",
    ),
}


def _list_rivals(above: Sequence[CompetingPassage]) -> str:
    rivals = []
    for rival in above[:_RIVALS_SHOWN]:
        numbers = [f"rank {rival.rank}"]
        if rival.score is not None:
            numbers.append(f"score {rival.score:.3g}")
        if rival.cosine is not None:
            numbers.append(f"cosine {rival.cosine:.2f}")
        rivals.append(f"'{rival.passage_id}' ({', '.join(numbers)})")
    more = len(above) - len(rivals)
    return ", ".join(rivals) + (f" and {more} more" if more else "")


def _unexplained_reason(evidence: MissEvidence) -> str:
    missed = evidence.missed
    if missed.true_rank is not None:
        where = f"it has rank {missed.true_rank}"
    elif missed.depth is not None:
        where = f"it is not among the first {missed.depth}"
    else:
        where = "its rank is not known, since the retriever was not asked deeper"
    if missed.text is None:
        return f"{where}, and its text is not known, so nothing could be measured of it"
    cosine = evidence.number("cosine")
    similar = "" if cosine is None else f" (its cosine with the question is {cosine:.2f})"
    return f"{where}, and nothing that was measured says why{similar}"


def miss_type_advice(miss_type: MissType | None) -> str:
    """Return what to do about misses of a type, in one sentence.

    Examples
    --------
    >>> miss_type_advice("below_cutoff").partition(",")[0]
    'Retrieve more passages (a larger k)'
    """
    if miss_type is None:
        return (
            "Ask the retriever deeper (`misslink evaluate --depth 1000`) or give the corpus, so "
            "that more can be measured of these passages."
        )
    return MISS_TYPES[miss_type].advice
