"""Why a relevant passage was missed: one rule per miss type, and the advice for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from misslink.types import CompetingPassage, MissStatus, MissType, RetrievalMiss

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
_RIVALS_SHOWN = 3  # rivals named in a sentence


@dataclass(frozen=True)
class MissEvidence:
    """What is known of one missed passage before its miss type is decided.

    Parameters
    ----------
    missed : RetrievalMiss
        With ``measured`` and ``above``.
    k : int
        How many passages the app puts in its prompt.
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
    """Return the missed passage with its status, its miss type, others that fit, and the reason.

    The first rule of `MISS_TYPES` that fits gives the miss type; None where none does, and for a
    passage that is not in the index or was dropped before the prompt.
    """
    status, fitting = "not_retrieved", list[tuple[str | None, str]]()
    for name, info in MISS_STATUSES.items():
        if status == "not_retrieved" and (reason := info.rule(evidence)):
            status, fitting = name, [(None, reason)]
    if not fitting:
        rules = ((name, info.rule(evidence)) for name, info in MISS_TYPES.items())
        fitting = [(name, reason) for name, reason in rules if reason]
    miss_type, reason = fitting[0] if fitting else (None, _unexplained_reason(evidence))
    if evidence.twin is not None:
        reason += f"; '{evidence.twin}', which was there, says nearly the same"
    return evidence.missed.model_copy(
        update={
            "status": status,
            "miss_type": miss_type,
            "also": tuple(other for other, _ in fitting[1:]),
            "reason": reason,
        }
    )


def not_indexed(evidence: MissEvidence) -> str | None:
    """The corpus is known not to hold it; not merely that the retriever did not reach it."""
    return f"{evidence.lacking} does not hold it" if evidence.lacking else None


def dropped_from_prompt(evidence: MissEvidence) -> str | None:
    """It was retrieved, and is not in the prompt that was seen."""
    rank = evidence.missed.true_rank
    if not (evidence.retrieved and evidence.prompt_seen) or rank is None:
        return None
    dropped = f"it was retrieved at rank {rank} and did not reach the prompt"
    if evidence.overtaken_by is not None:
        dropped += f", while '{evidence.overtaken_by}' from behind it did"
    return dropped


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


def keyword_match(evidence: MissEvidence) -> str | None:
    """A search by words finds it within k, and the retriever does not."""
    rank, by_words = evidence.missed.true_rank, evidence.number("bm25_rank")
    if by_words is None or by_words > evidence.k or (rank is not None and rank <= evidence.k):
        return None
    return (
        f"BM25 puts it at rank {by_words:.0f} of {evidence.number('pool') or 0:.0f} passages, "
        f"within the {evidence.k} of the prompt; {_describe_rank(evidence.missed)}"
    )


def below_cutoff(evidence: MissEvidence) -> str | None:
    """The retriever finds it among the first 2k."""
    rank = evidence.missed.true_rank
    if rank is None or not evidence.k < rank <= _MAX_CUTOFFS * evidence.k:
        return None
    return f"it has rank {rank}, and the first {evidence.k} count"


def vocabulary_mismatch(evidence: MissEvidence) -> str | None:
    """It has few of the question's words, so that a search by words does not find it either."""
    share, by_words = evidence.number("shared_stems"), evidence.number("bm25_rank")
    if share == 0:
        return "it has none of the question's content words"
    if share is None or by_words is None or share > _LOW_WORD_SHARE or by_words <= evidence.k:
        return None
    return (
        f"it has only {share:.0%} of the question's content words, and BM25 puts it at rank "
        f"{by_words:.0f} of {evidence.number('pool') or 0:.0f} passages"
    )


def ranked_low(evidence: MissEvidence) -> str | None:
    """The retriever finds it, further down than a larger k reaches."""
    rank = evidence.missed.true_rank
    if rank is None or rank <= _MAX_CUTOFFS * evidence.k:
        return None
    above = evidence.missed.above
    outranked = f", and it is outranked by {_list_rivals(above)}" if above else ""
    return f"it has rank {rank}, more than twice the {evidence.k} that count{outranked}"


@dataclass(frozen=True)
class MissTypeInfo:
    """A miss type or status: its label, its rule, and what to do about it.

    ``rule`` returns the evidence in a sentence, None if it does not fit.
    """

    label: str
    rule: Callable[[MissEvidence], str | None]
    advice: str


# Where a passage was lost, if not in the retriever; the failure mode says it, not the miss type.
MISS_STATUSES: dict[MissStatus, MissTypeInfo] = {
    "not_indexed": MissTypeInfo(
        "not in the index",
        not_indexed,
        "Index the document: the corpus does not hold the passage, so no retriever can find it.",
    ),
    "dropped_from_prompt": MissTypeInfo(
        "retrieved, but dropped before the prompt",
        dropped_from_prompt,
        "Check the steps between retriever and prompt (a compressor, a reranker, a token limit, "
        "the template): they dropped the passage.",
    ),
}
# The first rule that fits gives the miss type, so the cheapest fix that retrieves the passage
# comes before those that may.
MISS_TYPES: dict[MissType, MissTypeInfo] = {
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
    "keyword_match": MissTypeInfo(
        "found by its words",
        keyword_match,
        "Search by words and by meaning together (BM25 and dense, fused by rank): BM25 alone "
        "finds the passage within the cutoff.",
    ),
    "below_cutoff": MissTypeInfo(
        "just below the cutoff",
        below_cutoff,
        "Retrieve more passages (a larger k), or rerank a longer list: the passage is among the "
        "first 2k.",
    ),
    "vocabulary_mismatch": MissTypeInfo(
        "worded differently from the question",
        vocabulary_mismatch,
        "Expand queries with synonyms, or let a model rewrite them: questions and documents use "
        "different words.",
    ),
    "domain_mismatch": MissTypeInfo(
        "from a domain the embeddings do not know",
        domain_mismatch,
        "Fine-tune the embedding on your own questions (`misslink whatif RUN --triplets "
        "triplets.jsonl` writes the training data), or take one made for your domain.",
    ),
    "ranked_low": MissTypeInfo(
        "ranked too low",
        ranked_low,
        "Add a reranker over the first 50 or so: the retriever finds the passage, far behind the "
        "cutoff.",
    ),
}
_INFO = dict[str, MissTypeInfo]((*MISS_STATUSES.items(), *MISS_TYPES.items()))
MISS_LABELS = {name: info.label for name, info in _INFO.items()}


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
    where = _describe_rank(missed)
    if missed.text is None:
        return f"{where}, and its text is not known, so nothing could be measured of it"
    cosine = evidence.number("cosine")
    similar = "" if cosine is None else f" (its cosine with the question is {cosine:.2f})"
    return f"{where}, and nothing that was measured says why{similar}"


def _describe_rank(missed: RetrievalMiss) -> str:
    if missed.true_rank is not None:
        return f"the retriever puts it at rank {missed.true_rank}"
    if missed.depth is not None:
        return f"it is not among the retriever's first {missed.depth}"
    return "its true rank was not measured"


def miss_type_advice(kind: str | None, *, recorded: bool = False) -> str:
    """Return what to do about misses of a type or status, in one sentence.

    Parameters
    ----------
    kind : str or None
        As of `RetrievalMiss.kind`.
    recorded : bool
        Whether the run is of recorded traces, whose retriever cannot be asked for more.

    Examples
    --------
    >>> miss_type_advice("below_cutoff").partition(",")[0]
    'Retrieve more passages (a larger k)'
    """
    if kind is not None:
        return _INFO[kind].advice
    corpus = "give the corpus (`--corpus FILE`), so that more can be measured of these passages."
    return (
        corpus.capitalize()
        if recorded
        else (f"Ask the retriever deeper (`misslink evaluate --depth 1000`) or {corpus}")
    )
