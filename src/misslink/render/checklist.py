"""The questions and findings of the retrieval checklist, as sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from misslink.render.format import MIN_PERCENT, format_share_interval, format_whole_points
from misslink.types import Estimate


def _format_share(share: Estimate) -> str:
    """A percentage with its interval; of few, a count, or n where the share is a mean."""
    if share.value is None or share.n >= MIN_PERCENT:
        return format_share_interval(share)
    if share.method == "wilson":  # a proportion
        return f"{round(share.value * share.n)} of {share.n}"
    return f"{format_whole_points(share.value)}% (n = {share.n})"


def _chunks(passages: int, *, listed: bool, **numbers: Any) -> str:
    low, high = numbers["lower_quartile_characters"], numbers["upper_quartile_characters"]
    lost = numbers["places_lost_to_duplicates"]
    cut, copies = (
        _format_share(numbers[name]) for name in ("cut_within_a_sentence", "near_duplicates")
    )
    text = (
        f"The {'corpus has' if listed else 'traces show'} {passages} chunks of "
        f"{numbers['median_characters'].value:.0f} characters in the median (middle half {low:.0f} "
        f"to {high:.0f}); {cut} are cut within a sentence, {copies} repeat another one"
    )
    if lost.value is not None:
        text += f", and {_format_share(lost)} of the places in the prompts go to repetitions"
    return f"{text}."


def _embedding(auroc: Estimate, known: int, random: int, embedding: str, **_: Any) -> str:
    return (
        "A question is nearer to a passage it needs than to a random one in "
        f"{_format_share(auroc)} of {known} known and {random} random pairs ({embedding})."
    )


def _recall(recall_in_context: Estimate, recall_at_depth: Estimate, depth: int, **_: Any) -> str:
    text = f"{_format_share(recall_in_context)} of the relevant passages reached the prompt"
    if recall_at_depth.value is not None:
        text += f", {_format_share(recall_at_depth)} is among the first {depth}"
    return f"{text}."


def _scores(
    auroc: Estimate, relevant: int, irrelevant: int, *, by_cosine: bool, rising: bool, **_: Any
) -> str:
    source = (
        "cosines, since the traces have no scores" if by_cosine else "the retriever's own scores"
    )
    return (
        "A relevant passage scores better than an irrelevant one in "
        f"{_format_share(auroc)} of cases, by {source} ({relevant} relevant, {irrelevant} "
        f"irrelevant; {'high' if rising else 'low'} is better)."
    )


def _vocabulary(**numbers: Any) -> str:
    shares = " and ".join(
        f"{name} ones share {_format_share(numbers[f'median_shared_{name}'])}"
        for name in ("found", "missed")
        if numbers[f"median_shared_{name}"].value is not None
    )
    return f"Of needed passages {shares} of their question's content words in the median."


def _boundaries(cut: int, located: int, share: Estimate) -> str:
    text = f"{cut} of {located} evidence texts that were found span two chunks"
    return f"{text} ({_format_share(share)})." if located >= MIN_PERCENT else f"{text}."


CHECKLIST_SENTENCES: dict[str, str | Callable[..., str]] = {
    "ask_chunk_quality": "Are chunks whole sentences, of similar size, and unique?",
    "ask_embedding_quality": "Are questions closer to their relevant passages than to others?",
    "ask_recall": "Are relevant passages among the first {k}, or further down?",
    "ask_precision": "Do the scores separate relevant passages from others?",
    "ask_vocabulary": "Do questions and their relevant passages share words?",
    "ask_boundaries": "Is each evidence text within one chunk?",
    "check_not_measured": "Not measured: {why}.",
    "checked_chunks": _chunks,
    "checked_embedding": _embedding,
    "checked_recall": _recall,
    "checked_scores": _scores,
    "checked_vocabulary": _vocabulary,
    "checked_boundaries": _boundaries,
}
