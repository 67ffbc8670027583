"""A question on its way into a gold set: drafted, then accepted, rejected or not finished."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from misslink.goldset.generating.planning import Slot

__all__ = ["REASONS", "Accepted", "Draft", "Rejected", "Unfinished"]

# Why a candidate was dropped, by code; the sentence of each says more.
REASONS: Mapping[str, str] = {
    "no_reply": "the judge gave no reply that could be read",
    "no_neighbours": "too few passages lie near the one it set out from",
    "no_question": "the passages carry no question of this kind, the writer said",
    "malformed": "the question or its answer is empty or far too long",
    "refers_to_passage": "it speaks of a passage that its asker cannot see",
    "quote_not_verbatim": "the evidence does not stand in its passage",
    "too_few_passages": "it rests on fewer passages than its kind asks for",
    "obeys_passage": "it does what a passage orders the writer to do",
    "copies_passage": "it copies the wording of a passage, also when written again",
    "near_duplicate": "another question asks the same",
    "unanswerable": "its evidence does not answer it",
    "reference_differs": "its evidence gives another answer than the reference",
    "known_by_heart": "it was answered rightly without any passage",
    "answered_elsewhere": "too many other passages answer it too",
    "answerable_after_all": "a passage answers what nothing was to answer",
}


@dataclass(frozen=True)
class Draft:
    """A question as it was written, with what carries its answer.

    Parameters
    ----------
    slot : Slot
    question : str
    reference : str or None
        None: nothing is to answer it.
    evidence : mapping of int to sequence of str
        By the passage's place in the corpus, in its own characters.
    rewritten : bool
        Whether it was written again since it copied its passages.
    """

    slot: Slot
    question: str
    reference: str | None = None
    evidence: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    rewritten: bool = False


@dataclass(frozen=True)
class Accepted:
    """A verified question; `others` is what other passages say, and how fully (2: all of it)."""

    draft: Draft
    others: Mapping[int, tuple[int, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Rejected:
    """A candidate that was dropped.

    Parameters
    ----------
    slot : Slot
    reason : str
        A code of `REASONS`.
    sentence : str
        What was seen.
    question : str or None
        None: none was written.
    more : mapping
        What it was judged by, as JSON values.
    """

    slot: Slot
    reason: str
    sentence: str
    question: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Unfinished:
    """A candidate about which something was not asked, on purpose: the budget or time is spent."""

    slot: Slot
    why: str
