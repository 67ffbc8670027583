"""Whether a passage, or an answer, is about the question: plain rules over shared words.

Heuristics, fitted on nothing: the share of the question's content words that is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from misslink.judging.embedded.abstention import declines, says_absent
from misslink.judging.embedded.lexical import SAID_OF_SOURCES, stems

__all__ = ["passage_relevance", "response_of"]

RELEVANT = 0.5  # the cut of both rules
_SURE = 0.95  # shared words alone never make certain


def passage_relevance(question: str, passage: str) -> float:
    """P(the passage helps to answer the question), a heuristic, in [0.05, 0.95].

    The share of the question's content words that the passage holds. A passage without words is
    irrelevant; a question without content words says nothing, so it is 0.5 for any other passage.
    """
    return _probability(question, stems(passage))


def response_of(
    question: str, answer: str, evidence: Sequence[str]
) -> tuple[Literal["answers", "partly", "evades", "declines"], float]:
    """What the answer does with the question, and P(it is relevant), a heuristic.

    Parameters
    ----------
    question, answer : str
    evidence : sequence of str
        The passage sentences that the answer's supported claims rest on: "Paris." answers what
        the capital of France is, because the sentence behind it says so.

    Returns
    -------
    response : {'answers', 'partly', 'evades', 'declines'}
        'partly' where the answer also says that something is not known.
    probability : float
    """
    if declines(answer):
        return "declines", round(1 - _SURE, 6)
    probability = _probability(question, stems(" ".join((answer, *evidence)))) if answer else 0.05
    if probability < RELEVANT:
        return "evades", probability
    return ("partly" if says_absent(answer) else "answers"), probability


def _probability(question: str, found: Sequence[str]) -> float:
    asked = set(stems(question)) - SAID_OF_SOURCES
    if not found:
        share = 0.0
    elif not asked:
        share = 0.5
    else:
        share = len(asked.intersection(found)) / len(asked)
    return round(1 - _SURE + (2 * _SURE - 1) * share, 6)
