"""What the causes are called, what each means and what to do about it: for report and gate."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CAUSES", "FAILURES", "CauseWords"]


@dataclass(frozen=True)
class CauseWords:
    """A cause in words: its label, what it means, what to do about it."""

    label: str
    meaning: str
    action: str


# In the order of types.Cause, the worst first.
CAUSES: dict[str, CauseWords] = {
    "retrieval_miss": CauseWords(
        "Retrieval miss",
        "A needed passage never reached the prompt, and the answer is unfaithful or wrong, "
        "or the app declined.",
        "See the missed passage's true rank. Just below the cutoff: raise k or rerank. Far below: "
        "change chunking or embeddings, or add keyword search. Not found at all: index it.",
    ),
    "should_have_abstained": CauseWords(
        "Should have abstained",
        "There was nothing to answer from, and the app answered anyway.",
        "Tell the prompt to decline when the passages do not hold the answer.",
    ),
    "over_refused": CauseWords(
        "Over-refused",
        "The needed passage was in the prompt, and the app declined.",
        "Loosen the instruction to decline; show an example that answers from one passage.",
    ),
    "distracted": CauseWords(
        "Distracted",
        "A wrong claim rests on an irrelevant passage.",
        "Give fewer and better passages: rerank, lower k, drop near-duplicates.",
    ),
    "fabricated": CauseWords(
        "Fabricated",
        "A claim is supported by nothing, although the context was complete.",
        "Ask for quotes, shorten the answer, try a stronger model.",
    ),
    "ignored_context": CauseWords(
        "Ignored context",
        "The needed passage was in the prompt, and the answer does not use it.",
        "Put the best passages first, shorten the prompt, ask to answer from the passages alone.",
    ),
    "gold_hole": CauseWords(
        "Gap in the gold set",
        "A retrieved passage holds the answer, but the gold set does not list it.",
        "Read the passage and, if it is right, add it to the gold set.",
    ),
    "right_by_memory": CauseWords(
        "Right by memory",
        "The answer is correct although the needed passage was missing.",
        "Do not count on it: the model knew this one. Fix retrieval all the same.",
    ),
    "undecided": CauseWords(
        "Undecided",
        "A verdict is missing, or too uncertain to say.",
        "Read the case's reason. Where a verdict failed, ask again with another --ledger, since "
        "unreadable replies are kept too; or label the case by hand.",
    ),
    "fine": CauseWords("Fine", "None of these.", "Nothing to do."),
}
# The others ask for a look, not for a repair.
FAILURES = frozenset(
    (
        "retrieval_miss",
        "should_have_abstained",
        "over_refused",
        "distracted",
        "fabricated",
        "ignored_context",
    )
)
