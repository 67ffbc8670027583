"""The sentences of missed passages and failure modes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from misslink.render.format import format_percent
from misslink.types import CompetingPassage


def _describe_rank(rank: int | None, depth: int | None) -> str:
    if rank is not None:
        return f"the retriever puts it at rank {rank}"
    if depth is not None:
        return f"it is not among the retriever's first {depth}"
    return "its true rank is not known"


def _dropped_from_prompt(rank: int, behind: str | None) -> str:
    more = f", while '{behind}' from behind it did" if behind is not None else ""
    return f"it was retrieved at rank {rank} and did not reach the prompt{more}"


def _cut(rank: int, share: float) -> str:
    part = f"{format_percent(share)} of its text" if share < 1 else "its text in other words"
    return f"it was retrieved at rank {rank}, and the prompt has {part}"


def _split_evidence(halves: Sequence[str], missed: str, rank: int | None) -> str:
    where = f", rank {rank}" if rank is not None else ""
    return (
        f"a chunk boundary cuts the evidence over '{halves[0]}' and '{halves[1]}', "
        f"and '{missed}'{where} was not there"
    )


def _duplicate_crowding(crowd: int, rank: int, k: int) -> str:
    repeat = "passage above it repeats" if crowd == 1 else "passages above it repeat"
    return (
        f"{crowd} {repeat} others nearly word for word; without them it would have rank "
        f"{rank - crowd} instead of {rank}, and the first {k} count"
    )


def _keyword_match(by_words: float, pool: float, k: int, **rank: int | None) -> str:
    return (
        f"BM25 puts it at rank {by_words:.0f} of {pool:.0f} passages, within the {k} of the "
        f"prompt; {_describe_rank(**rank)}"
    )


def _filtered_out(rank: float, depth: int, *, by_words: bool) -> str:
    ranks = "BM25 ranks" if by_words else "the store's own vectors rank"
    return (
        f"{ranks} it {rank:.0f}, and the retriever does not return it among its first {depth:,}: a "
        "filter hides it"
    )


def _ranked_low(rank: int, k: int, above: Sequence[CompetingPassage]) -> str:
    rivals = []
    for rival in above[:_RIVALS_SHOWN]:
        numbers = [f"rank {rival.rank}"]
        if rival.score is not None:
            numbers.append(f"score {rival.score:.3g}")
        if rival.cosine is not None:
            numbers.append(f"cosine {rival.cosine:.2f}")
        rivals.append(f"'{rival.passage_id}' ({', '.join(numbers)})")
    more = len(above) - len(rivals)
    outranked = f", and it is outranked by {', '.join(rivals)}" if rivals else ""
    outranked += f" and {more} more" if more else ""
    return f"it has rank {rank}, more than twice the {k} that count{outranked}"


def _miss_unexplained(*, has_text: bool, cosine: float | None, **rank: int | None) -> str:
    where = _describe_rank(**rank)
    if not has_text:
        return f"{where}, and its text is not known, so nothing else could be measured"
    similar = "" if cosine is None else f" (its cosine with the question is {cosine:.2f})"
    return f"{where}, and nothing that was measured says why{similar}"


_RIVALS_SHOWN = 3  # passages above a missed one that are named


def _passed(answer: str, *, correct: bool) -> str:
    compared = "correct" if correct else "not compared with a reference"
    return compared if answer == "unknown" else f"the answer is {answer} and {compared}"


MISS_SENTENCES: dict[str, str | Callable[..., str]] = {
    # why a passage was missed
    "not_in_corpus": "the listed corpus of {passages} passages does not hold it",
    "dropped_from_prompt": _dropped_from_prompt,
    "cut": _cut,
    "dropped_in_search": (
        "a search inside the retriever returned it at rank {rank}, and a later step of the retriever "
        "dropped it"
    ),
    "split_evidence": _split_evidence,
    "duplicate_crowding": _duplicate_crowding,
    "keyword_match": _keyword_match,
    "below_cutoff": "it has rank {rank}, and the first {k} count",
    "no_shared_words": "it has none of the question's content words",
    "vocabulary_mismatch": (
        "it has only {share:.0%} of the question's content words, and BM25 puts it at rank "
        "{by_words:.0f} of {pool:.0f} passages"
    ),
    "domain_mismatch": (
        "its cosine with the question, {cosine:.2f}, is lower than in {above:.0%} of the run's "
        "{pairs} other known pairs, although it has {share:.0%} of the question's content words, as "
        "many as usual"
    ),
    "filtered_out": _filtered_out,
    "ranked_low": _ranked_low,
    "miss_unexplained": _miss_unexplained,
    "twin_in_prompt": "'{passage}', which was in the prompt, says nearly the same",
    "standalone_measured": "BM25, words and cosines are of the standalone question '{question}'",
    # a failure mode
    "prompted_before": (
        "passage '{passage}' was in the prompt of turn {turn}, and the query '{query}' did not "
        "retrieve it again"
    ),
    "question_finds_it": (
        "the question finds passage '{passage}' by its words, and the app's query '{query}' does not"
    ),
    "standalone_finds_it": (
        "the standalone question finds passage '{passage}' by its words, and the query '{query}' "
        "does not"
    ),
    "passage_cut": "passage '{passage}' was cut: a part of it never reached the prompt",
    "passage_cut_for_claim": "the claim needed passage '{passage}', which was cut: a part of it never reached the prompt",
    "passage_altered": "the prompt has passage '{passage}' in other words, and a wrong claim rests on them",
    "stale_passage": "the index has another text of passage '{passage}' than the corpus",
    "cut_in_index": "the index has only the beginning of passage '{passage}'; the corpus has all of it",
    "no_search": "no search ran for this question, although others show searches",
    "wrong_first_hop": "the query '{query}' follows an earlier result that is about something else",
    "wrong_referent": "the question refers to one thing in the conversation, and the query '{query}' names another",
    "negation_left_out": "the query '{query}' leaves out the negation of the question",
    "hop_without_name": "the query '{query}' lacks the name that an earlier result gave",
    "all_dropped": "passages were retrieved, and none of them reached the prompt",
    "another_question": "the answer is faithful and states nothing that the question asks for",
    "passage_missing": "passage '{passage}' never reached the prompt{step}",
    "passage_missing_for_claim": "the claim needed passage '{passage}', which never reached the prompt{step}",
    "context_insufficient": "the passages in the prompt do not hold the answer",
    "found_by_search": "a search finds '{passage}', which is not labelled and never reached the prompt",
    "nothing_in_corpus": "no passage of the whole index has the words of what the reference says",
    "reference_not_in_prompt": "the passages in the prompt do not hold what the reference says",
    "reference_not_found": "neither the prompt nor a search of the whole index by words holds what the reference says",
    "reference_not_indexed": "a judge finds what the reference says neither in the prompt nor in the nearest passages of the whole index",
    "contradicted_by_prompt": "a claim contradicts passage '{passage}', which was in the prompt",
    "reference_contradicts_label": "the labelled passage '{passage}' supports a claim that the "
    "reference contradicts",
    "reference_says_other": "passage '{passage}' supports a claim that answers the question, and the "
    "reference says something else",
    "reference_contradicted": "passage '{passage}' supports a claim that the reference contradicts, "
    "and no passage in the prompt states the reference",
    "answerable_after_all": "the gold set says that there is no answer, and the passages hold one",
    "copy_says_otherwise": "a wrong claim rests on '{passage}', a near copy of a relevant passage",
    "irrelevant_passage": "a wrong claim rests on the unlabelled passage '{passage}'",
    "claim_unsupported": "a claim has no support, and the passages hold the answer",
    "states_reference": "'{passage}' states what the reference says, and the answer says something else",
    "nothing_used": "the passages hold the answer, and the answer uses none of them",
    "left_out": "the answer leaves out part of what the passages hold",
    "declined": "the passages hold the answer, and the app declined",
    "answered_nothing": "the passages hold the answer, and the app answered nothing",
    "answered": "there was nothing to answer from, and the app answered",
    "unlisted_passage": "the correct answer rests on '{passage}', which the gold set does not list",
    "from_memory": "the answer is correct, and no relevant passage reached the prompt",
    # an answer that passed, or of which too little is known
    "answer_unjudged": "no judge evaluated the answer",
    "passed": _passed,
    "rightly_declined": "there was nothing to answer from, and the app declined",
    "declined_unlabelled": "the app declined, and nothing says whether there is an answer",
    "abstention_unjudged": "there is no answer, and no verdict says whether the app declined",
    "faithfulness_unjudged": "no judge checked whether the answer is faithful",
    "language_unread": "the heuristic judge does not read the answer's language",
    "verdict_uncertain": (
        "{metric} is not certain: the judge gives it P = {chance:.2f}, which is in the uncertain band of "
        "its calibration"
    ),
    "unknown_sufficiency": "it is not known whether the passages in the prompt hold the answer",
}


# The label of each miss type or status, and what to do about it.
_MISS_WORDS: dict[str, tuple[str, str]] = {
    "not_indexed": (
        "not in the index",
        "Index the document: the corpus does not hold the passage, so no retriever can find it.",
    ),
    "dropped_from_prompt": (
        "retrieved, but dropped before the prompt",
        (
            "Check the steps between retriever and prompt (a compressor, a reranker, a token limit, "
            "the template): they dropped the passage."
        ),
    ),
    "split_evidence": (
        "its evidence is split over two chunks",
        (
            "Cut larger chunks or let them overlap, so that one chunk holds the whole evidence; "
            "`misslink whatif RUN --chunk 1000/200` forecasts what it would save."
        ),
    ),
    "filtered_out": (
        "filtered out of the search",
        (
            "Check the retriever's filter (metadata, a score threshold, access rights): the store ranks "
            "the passage within the cutoff, and the retriever does not return it."
        ),
    ),
    "duplicate_crowding": (
        "crowded out by near-duplicates",
        (
            "Remove near-duplicates from the index, or retrieve by maximal marginal relevance: "
            "copies took the places that the passage needed."
        ),
    ),
    "below_cutoff": (
        "just below the cutoff",
        (
            "Retrieve more passages (a larger k), or rerank a longer list: the passage is just below the "
            "cutoff."
        ),
    ),
    "keyword_match": (
        "found by keywords",
        (
            "Search by words and by meaning together (BM25 and dense, fused by rank): BM25 alone "
            "finds the passage within the cutoff."
        ),
    ),
    "vocabulary_mismatch": (
        "worded differently from the question",
        (
            "Expand queries with synonyms, or let a model rewrite them: questions and documents use "
            "different words."
        ),
    ),
    "domain_mismatch": (
        "from a domain the embeddings do not know",
        (
            "Fine-tune the embedding on your own questions (`misslink whatif RUN --triplets "
            "triplets.jsonl` writes the training data), or take one made for your domain."
        ),
    ),
    "ranked_low": (
        "ranked too low",
        "Add a reranker over the first 50 or so: the retriever finds the passage below the cutoff.",
    ),
}
MISS_LABELS = {name: label for name, (label, _) in _MISS_WORDS.items()}


def miss_type_advice(kind: str | None, *, deeper: bool = True) -> str:
    """Return what to do about misses of a type or status, in one sentence.

    Parameters
    ----------
    kind : str or None
        As of `RetrievalMiss.kind`.
    deeper : bool
        Whether a retriever can be asked for more: not of recorded traces, nor of an app without one.

    Examples
    --------
    >>> miss_type_advice("below_cutoff").partition(",")[0]
    'Retrieve more passages (a larger k)'
    """
    if kind is not None:
        return _MISS_WORDS[kind][1]
    if not deeper:
        return "Give the corpus (`--corpus FILE`) to measure more of these passages."
    return (
        "Ask for more passages (`misslink evaluate --depth 1000`) or give the corpus (`--corpus FILE`) "
        "to measure more of these passages."
    )
