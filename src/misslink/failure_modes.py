"""The failure modes: their names, order, labels, advice and marks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FailureModeInfo:
    """Everything about one failure mode but its rule: its words and its mark on the map.

    ``failed`` is False for the values that are notes on a case, not failures.
    """

    label: str
    meaning: str
    action: str
    shape: str  # an SVG path around 0 in a box of about 10 units: color is never the only sign
    failed: bool = True


# The only list of failure modes, the worst first; of several that fit, the first is the primary
# one. Their rules are in misslink.linking.attribution_rules, by the same names.
FAILURE_MODES: dict[str, FailureModeInfo] = {
    "retrieval_miss": FailureModeInfo(
        "Retrieval miss",
        "A needed passage never reached the prompt, and the answer is unfaithful or wrong, "
        "or the app declined.",
        "See the missed passage's true rank. Just below the cutoff: raise k or rerank. Far below: "
        "change chunking or embeddings, or add keyword search. Not found at all: index it.",
        shape="M0-6L5.5 4.5H-5.5Z",
    ),
    "should_have_abstained": FailureModeInfo(
        "Should have abstained",
        "There was nothing to answer from, and the app answered anyway.",
        "Tell the prompt to decline when the passages do not hold the answer.",
        shape="M0 6L5.5-4.5H-5.5Z",
    ),
    "over_refused": FailureModeInfo(
        "Over-refused",
        "The needed passage was in the prompt, and the app declined.",
        "Loosen the instruction to decline; show an example that answers from one passage.",
        shape="M-4.5-4.5H4.5V4.5H-4.5Z",
    ),
    "distracted": FailureModeInfo(
        "Distracted",
        "A wrong claim rests on an irrelevant passage.",
        "Give fewer and better passages: rerank, lower k, drop near-duplicates.",
        shape="M0-6L6 0L0 6L-6 0Z",
    ),
    "fabricated": FailureModeInfo(
        "Fabricated",
        "A claim is supported by nothing, although the context was complete.",
        "Ask for quotes, shorten the answer, try a stronger model.",
        shape="M-1.7-5.5H1.7V-1.7H5.5V1.7H1.7V5.5H-1.7V1.7H-5.5V-1.7H-1.7Z",
    ),
    "ignored_context": FailureModeInfo(
        "Ignored context",
        "The needed passage was in the prompt, and the answer does not use it.",
        "Put the best passages first, shorten the prompt, ask to answer from the passages alone.",
        shape="M-5-5H5L0 0L5 5H-5L0 0Z",
    ),
    "missing_label": FailureModeInfo(
        "Missing label",
        "A retrieved passage holds the answer, but the gold set does not list it.",
        "Read the passage and, if it is right, add it to the gold set.",
        shape="M0-6L1.8-1.8L6 0L1.8 1.8L0 6L-1.8 1.8L-6 0L-1.8-1.8Z",
        failed=False,
    ),
    "answered_from_memory": FailureModeInfo(
        "Answered from memory",
        "The answer is correct although the needed passage was missing.",
        "Do not count on it: the model knew this one. Fix retrieval all the same.",
        shape="M-3-5.2H3L6 0L3 5.2H-3L-6 0Z",
        failed=False,
    ),
    "inconclusive": FailureModeInfo(
        "Inconclusive",
        "A verdict is missing, or too uncertain to say.",
        "Read the case's reason. Where a verdict failed, judge again with another --cache, because "
        "unreadable replies are cached too. Or label the case by hand.",
        shape="M-5.5-3L-3-5.5L0-2.5L3-5.5L5.5-3L2.5 0L5.5 3L3 5.5L0 2.5L-3 5.5L-5.5 3L-2.5 0Z",
        failed=False,
    ),
    "passed": FailureModeInfo(
        "Passed",
        "None of these.",
        "Nothing to do.",
        shape="M-4.5 0A4.5 4.5 0 1 0 4.5 0A4.5 4.5 0 1 0-4.5 0Z",
        failed=False,
    ),
}
FAILURES = frozenset(name for name, mode in FAILURE_MODES.items() if mode.failed)
