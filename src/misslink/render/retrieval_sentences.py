"""The sentences about retrieval: its checklist, what-if options, and when to look at ndcg."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from misslink.documents import OptionMetric
from misslink.render.format import (
    MIN_PERCENT,
    format_decimal_estimate,
    format_difference,
    format_estimate,
    format_p_value,
    format_whole_points,
    pluralize,
)
from misslink.types import Estimate, Reason


def _share(share: Estimate) -> str:
    return format_estimate("share", share).brief


def _chunks(passages: int, *, listed: bool, **numbers: Any) -> str:
    low, high = numbers["lower_quartile_characters"], numbers["upper_quartile_characters"]
    lost = numbers["places_lost_to_duplicates"]
    cut, copies = (_share(numbers[name]) for name in ("cut_within_a_sentence", "near_duplicates"))
    text = (
        f"The {'corpus has' if listed else 'traces show'} {passages} chunks of "
        f"{numbers['median_characters'].value:.0f} characters in the median (middle half {low:.0f} "
        f"to {high:.0f}); {cut} are cut within a sentence, {copies} repeat another one"
    )
    if lost.value is not None:
        text += f", and {_share(lost)} of the places in the prompts go to repetitions"
    return f"{text}."


def _embedding(auroc: Estimate, known: int, random: int, embedding: str, **_: Any) -> str:
    return (
        "A question is nearer to a passage it needs than to a random one in "
        f"{_share(auroc)} of {known} known and {random} random pairs ({embedding})."
    )


def _recall(recall_in_context: Estimate, recall_at_depth: Estimate, depth: int, **_: Any) -> str:
    text = f"{_share(recall_in_context)} of the relevant passages reached the prompt"
    if recall_at_depth.value is not None:
        text += f", {_share(recall_at_depth)} is among the first {depth}"
    return f"{text}."


def _scores(
    auroc: Estimate, relevant: int, irrelevant: int, *, by_cosine: bool, rising: bool, **_: Any
) -> str:
    source = (
        "cosines, since the traces have no scores" if by_cosine else "the retriever's own scores"
    )
    return (
        "A relevant passage scores better than an irrelevant one in "
        f"{_share(auroc)} of cases, by {source} ({relevant} relevant, {irrelevant} "
        f"irrelevant; {'high' if rising else 'low'} is better)."
    )


def _vocabulary(**numbers: Any) -> str:
    given = {name: numbers[f"median_shared_{name}"] for name in ("found", "missed")}
    measured = {name: share for name, share in given.items() if share.value is not None}
    few = any(share.n < MIN_PERCENT for share in measured.values())
    write = format_decimal_estimate if few else format_estimate  # both in one unit
    shares = " and ".join(
        f"{write('share', share).brief} with its {name} passages"
        for name, share in measured.items()
    )
    return f"A question shares {shares} (median share of its content words)."


def _boundaries(cut: int, located: int, share: Estimate) -> str:
    text = f"{cut} of {located} evidence texts that were found span two chunks"
    return f"{text} ({_share(share)})." if located >= MIN_PERCENT else f"{text}."


def describe_ndcg_use(reasons: Sequence[Reason]) -> str:
    """Say why to look at ndcg@10; "" without a reason.

    >>> describe_ndcg_use([Reason(code="graded_labels")])
    'Look at ndcg@10: the gold set has grades, which recall does not see.'
    """
    texts = (
        str(RETRIEVAL_SENTENCES[reason.code]).format(**reason.parameters) for reason in reasons
    )
    return f"Look at ndcg@10: {'; '.join(texts)}." if reasons else ""


def _found_split(split: Mapping[str, Sequence[str]]) -> str:
    parts = (
        f"{need} over " + " and ".join(map("'{}'".format, passages))
        for need, passages in split.items()
    )
    return f"found split over passages: {'; '.join(parts)}"


RETRIEVAL_SENTENCES: dict[str, str | Callable[..., str]] = {
    "no_text_to_match": "no retrieved passage has a text, so evidence cannot be matched",
    "failed_before_retrieval": "the app failed before it retrieved anything",
    "found_split": _found_split,
    "many_cases": "{n:,} cases show differences in order, which recall does not see",
    "graded_labels": "the gold set has grades, which recall does not see",
    "recall_unrelated": "answers that pass have no better recall@5 than answers that fail",
    "ask_chunk_quality": "Are chunks whole sentences, of similar size, and unique?",
    "ask_embedding_quality": "Are questions closer to their relevant passages than to others?",
    "ask_recall": "Are relevant passages among the first {k}, or further down?",
    "ask_precision": "Do the scores separate relevant passages from others?",
    "ask_vocabulary": "Do questions and their relevant passages share words?",
    "ask_boundaries": "Is each evidence text within one chunk?",
    "check_not_measured": "Not measured: {why}.",
    "no_text_seen": "no passage with a text was seen",
    "no_text_prompted": "no prompt has a passage with a text",
    "no_embedding_seen": "no embedding was available",
    "no_relevant_and_search": "no case has both relevant passages and a recorded search",
    "not_asked_deeper": "the retriever was not asked for more passages",
    "no_scores_of_both": "no retrieved passages, relevant and irrelevant ones, have a score",
    "no_relevant_text": "the text of no relevant passage is known",
    "no_evidence_located": "no evidence text was given or found",
    # missing labels
    "no_judge_of_passages": (
        "no language model judged which passages are relevant, and the heuristic judge cannot say"
    ),
    "label_missing": "{judge} calls it relevant, and {why}",
    "answer_rests_on_it": "the correct answer rests on it",
    "suffices_without_relevant": (
        "the other passages suffice for an answer, although a relevant one was missing"
    ),
    "checked_chunks": _chunks,
    "checked_embedding": _embedding,
    "checked_recall": _recall,
    "checked_scores": _scores,
    "checked_vocabulary": _vocabulary,
    "checked_boundaries": _boundaries,
}


def describe_option(
    metric: str,
    compared: OptionMetric,
    avoided: Estimate,
    bad: int,
    unknown: str | None,
    retrieved: int | None,
) -> str:
    """Return one sentence on an option: the change of its metric, and what it would avoid."""
    difference, after = compared.difference, compared.b.value
    before = compared.a.value if compared.a else None
    # Of misses that are all unknown none could be retrieved: no change says nothing.
    blind = unknown and retrieved is None and not difference.value
    if blind or difference.value is None or before is None or after is None:
        return f"{metric} was not measured: {unknown or difference.reason or compared.b.reason}."
    gap = f"{format_difference('share', difference).brief}{_p_value_text(compared)}"
    if compared.winner is None:
        power = _power_text(compared, difference.n)
        finding = f"Not enough data to tell whether {metric} changes: {gap}{power}"
        return f"{finding}; {unknown}." if unknown else f"{finding}."
    verb = "rises" if compared.winner == "option" else "falls"
    old, new = format_whole_points(before), format_whole_points(after)
    savings = unknown or _savings_text(avoided, bad)
    return f"{metric} {verb} from {old} to {new}%, {gap}; {savings}."


def _savings_text(avoided: Estimate, bad: int) -> str:
    """What an option avoids; an interval that includes 0 promises nothing."""
    if avoided.value is None or avoided.low is None or avoided.high is None:
        return f"failures avoided are not known: {avoided.reason}"
    low, high = round(avoided.low), round(avoided.high)
    size = f"{round(abs(avoided.value), 1) + 0.0:g}"
    if avoided.low > 0:
        return f"about {size} [{low}, {high}] fewer failures, of {bad} now"
    if avoided.high < 0:
        return f"about {size} [{-high}, {-low}] more failures, on top of the {bad} now"
    return f"not enough data to tell whether it avoids failures, of {bad} now"


def _p_value_text(compared: OptionMetric) -> str:
    """The p-value alone, and corrected where several options were tested."""
    p, corrected, tests = compared.p, compared.p_holm, compared.tests
    if p is None or corrected is None:
        return ""
    if tests == 1:
        return f" ({format_p_value(p)})"
    after = format_p_value(corrected).removeprefix("p ").removeprefix("= ")
    return f" ({format_p_value(p)} alone, {after} after Holm over {tests} options)"


def _power_text(compared: OptionMetric, n: int) -> str:
    cases = pluralize(n, "case")
    if compared.detectable is None:
        return f" over {cases}"
    if compared.detectable > 1:
        return f"; {cases} are too few to show any difference"
    corrected = "" if compared.tests == 1 else ", corrected"
    points = format_whole_points(compared.detectable)
    return f"; {cases} show a difference from {points} points on (80% power{corrected})"
