"""The failure modes: their names, order, owners, labels, advice and marks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FailureModeInfo:
    """Everything about one failure mode but its rule: who fixes it, its words, its mark on the map.

    ``failed`` is False for the values that are not failures: passed, inconclusive, and the notes
    on passed cases.
    """

    owner: str  # retriever, index, prompt, generator, gold_set, judge, none, or unknown
    label: str
    meaning: str
    action: str
    shape: str  # an SVG path around 0 in a box of about 10 units: color is never the only sign
    failed: bool = True
    is_miss: bool = False  # a relevant passage did not reach the prompt; replay can confirm it


# The only list of failure modes. Of two that explain as many bad claims, the first is the primary
# one. The rules are in misslink.linking.owners.
FAILURE_MODES: dict[str, FailureModeInfo] = {
    "gold_suspect": FailureModeInfo(
        "gold_set",
        "Gold suspect",
        "A relevant passage supports what the reference contradicts, or the gold set says that "
        "there is no answer and the passages hold one.",
        "Read the passage: correct the reference or the answerable flag, or the passage if that is wrong.",
        shape="M0-6L1.8-1.8L6 0L1.8 1.8L0 6L-1.8 1.8L-6 0L-1.8-1.8Z",
    ),
    "not_indexed": FailureModeInfo(
        "index",
        "Not indexed",
        "The relevant passage is not in the index.",
        "Index the document, or find out why the loader or the chunking lost it.",
        shape="M-5-5H5V-2H-2V5H-5Z",
        is_miss=True,
    ),
    "conflicting_sources": FailureModeInfo(
        "index",
        "Conflicting sources",
        "A wrong claim rests on a near copy of a relevant passage that states another fact.",
        "Remove or date the older version in the index.",
        shape="M-6-2H-2V-6H2V-2H6V2H-6Z",
    ),
    "dropped_from_prompt": FailureModeInfo(
        "prompt",
        "Dropped from the prompt",
        "The relevant passage was retrieved and did not reach the prompt.",
        "Look at what is between retriever and prompt: a compressor, a reranker, a token limit.",
        shape="M-5-5H5V-2H2V5H-2V-2H-5Z",
        is_miss=True,
    ),
    "retrieval_miss": FailureModeInfo(
        "retriever",
        "Retrieval miss",
        "A relevant passage never reached the prompt, and the bad claim, the refusal or the "
        "omission needed it.",
        "See the missed passage's true rank. Just below the cutoff: raise k or rerank. Far below: "
        "change chunking or embeddings, or add keyword search.",
        shape="M0-6L5.5 4.5H-5.5Z",
        is_miss=True,
    ),
    "not_searched": FailureModeInfo(
        "prompt",
        "Not searched",
        "No search ran for it, or a later search was built on a wrong first result.",
        "Make the agent search before it answers, and check the query of each further search.",
        shape="M0-6A4 4 0 0 1 3 1L6 4L4 6L1 3A4 4 0 0 1 0-6Z",
        is_miss=True,
    ),
    "over_refused": FailureModeInfo(
        "generator",
        "Over-refused",
        "The passages in the prompt hold the answer, and the app declined.",
        "Loosen the instruction to decline; show an example that answers from one passage.",
        shape="M-4.5-4.5H4.5V4.5H-4.5Z",
    ),
    "should_have_abstained": FailureModeInfo(
        "generator",
        "Should have abstained",
        "There was nothing to answer from, and the app answered anyway.",
        "Tell the prompt to decline when the passages lack the answer.",
        shape="M0 6L5.5-4.5H-5.5Z",
    ),
    "contradicts_context": FailureModeInfo(
        "generator",
        "Contradicts the context",
        "A claim is contradicted by a passage in the prompt.",
        "Ask for quotes, put the best passages first, try a stronger model.",
        shape="M-6 0L-2-2L0-6L2-2L6 0L3 5H-3Z",
    ),
    "distracted": FailureModeInfo(
        "generator",
        "Distracted",
        "A wrong claim rests on an irrelevant passage alone.",
        "Ask for quotes, try a stronger model; rerank, lower k, drop near-duplicates.",
        shape="M0-6L6 0L0 6L-6 0Z",
    ),
    "fabricated": FailureModeInfo(
        "generator",
        "Fabricated",
        "A claim is supported by nothing, although the passages hold the answer.",
        "Ask for quotes, shorten the answer, try a stronger model.",
        shape="M-1.7-5.5H1.7V-1.7H5.5V1.7H1.7V5.5H-1.7V1.7H-5.5V-1.7H-1.7Z",
    ),
    "ignored_context": FailureModeInfo(
        "generator",
        "Ignored context",
        "The passages in the prompt hold the answer, and the app's answer uses none of them.",
        "Put the best passages first, shorten the prompt, ask to answer from the passages alone.",
        shape="M-5-5H5L0 0L5 5H-5L0 0Z",
    ),
    "off_the_point": FailureModeInfo(
        "generator",
        "Off the point",
        "The answer is faithful and does not answer the question, although the passages do.",
        "Repeat the question after the passages; ask for an answer to it in the first sentence.",
        shape="M-5.5-2H1V-5.5L6 0L1 5.5V2H-5.5Z",
    ),
    "incomplete": FailureModeInfo(
        "generator",
        "Incomplete",
        "The answer is faithful and leaves out part of what the passages hold.",
        "Ask for every part of the question; allow a longer answer.",
        shape="M-5.5 0A5.5 5.5 0 0 1 5.5 0Z",
    ),
    "lost_context": FailureModeInfo(
        "prompt",
        "Lost context",
        "An earlier turn or the question names what was needed, and the app's query lost it.",
        "Look at the query that the app wrote: it must keep what the question and earlier turns name.",
        shape="M-5.5-5.5L0-2L5.5-5.5V5.5L0 2L-5.5 5.5Z",
        is_miss=True,
    ),
    "missing_label": FailureModeInfo(
        "gold_set",
        "Missing label",
        "The correct answer rests on a retrieved passage that the gold set does not list.",
        "Read the passage and, if it is right, add it to the gold set.",
        shape="M0-5L4.3-2.5V2.5L0 5L-4.3 2.5V-2.5Z",
        failed=False,
    ),
    "answered_from_memory": FailureModeInfo(
        "none",
        "Answered from memory",
        "The answer is correct although the relevant passage was missing.",
        "Do not count on it: the model knew this one. Fix retrieval all the same.",
        shape="M-3-5.2H3L6 0L3 5.2H-3L-6 0Z",
        failed=False,
    ),
    "inconclusive": FailureModeInfo(
        "unknown",
        "Inconclusive",
        "The answer failed and the cause is not known, or a verdict is missing or too uncertain.",
        "Read the case's reason. Without relevant passages in the gold set, add them or give "
        "--corpus FILE. Where no reply of the judge came or could be read, run the same "
        "command again.",
        shape="M-5.5-3L-3-5.5L0-2.5L3-5.5L5.5-3L2.5 0L5.5 3L3 5.5L0 2.5L-3 5.5L-5.5 3L-2.5 0Z",
        failed=False,
    ),
    "false_alarm": FailureModeInfo(
        "judge",
        "False alarm",
        "The judge calls the answer bad, and a label or a second judge calls it good.",
        "Read the verdict. Where the judge errs alike in several cases, edit its prompt or take "
        "another judge.",
        shape="M-5-5L0-1L5-5V5H-5Z",
        failed=False,
    ),
    "passed": FailureModeInfo(
        "none",
        "Passed",
        "No failure was found in the answer.",
        "Nothing to do.",
        shape="M-4.5 0A4.5 4.5 0 1 0 4.5 0A4.5 4.5 0 1 0-4.5 0Z",
        failed=False,
    ),
}
FAILURES = frozenset(name for name, mode in FAILURE_MODES.items() if mode.failed)
MISS_MODES = tuple(name for name, mode in FAILURE_MODES.items() if mode.is_miss)
OWNERS = ("retriever", "index", "prompt", "generator", "gold_set", "judge", "none", "unknown")
