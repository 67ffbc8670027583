"""Questions that ask the same, in the same words or in nearly the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from misslink.judging.nearly import facts
from misslink.text import fold

__all__ = ["Questions", "ground", "in_order"]

_WORD = re.compile(r"\w+(?:['.-]\w+)*")
Cosines = Callable[[str, Sequence[str]], Any]


def ground(question: str) -> tuple[object, ...]:
    """Return what two questions have in common if they ask the same: numbers, signs, negations.

    So are the names: the words, folded, that have a capital and do not begin the question.

    >>> ground("Who runs Oban?") == ground("who is running Oban?")
    True
    >>> ground("Who runs Oban?") == ground("Who does not run Oban?")
    False
    """
    words: list[str] = _WORD.findall(question)[1:]
    names = frozenset(fold(word) for word in words if word[0].isupper())
    return (*map(tuple, facts(fold(question))), names)


def in_order(question: str) -> str:
    """Return the folded words of a question, sorted: what is compared of two.

    rapidfuzz's ratio of two of these is its token sort ratio.
    """
    return " ".join(sorted(fold(question).split()))


class Questions:
    """Questions in which the one that asks the same as another is found.

    Only those of one `ground` are compared, so that time grows with them and not with all.

    Parameters
    ----------
    least : float
        Two are the same from this token sort ratio on, from 0 to 100.
    least_cosine : float
        And from this cosine on, where there is one.
    cosines : callable or None
        Gives the cosines of a question to others, in their order; None where it knows none.
    """

    def __init__(self, least: float, least_cosine: float, cosines: Cosines | None = None) -> None:
        self._least, self._least_cosine, self._cosines = least, least_cosine, cosines
        self._exact: dict[str, str] = {}
        self._near: dict[tuple[object, ...], tuple[list[str], list[str]]] = {}

    def add(self, question: str) -> None:
        """Add a question; `twin` finds it from now on."""
        self._exact.setdefault(fold(question), question)
        questions, words = self._near.setdefault(ground(question), ([], []))
        questions.append(question)
        words.append(in_order(question))

    def twin(self, question: str) -> str | None:
        """Return the question that was added and asks the same; None where none does."""
        from rapidfuzz import fuzz, process

        if (same := self._exact.get(fold(question))) is not None:
            return same
        questions, words = self._near.get(ground(question), ([], []))
        found = process.extractOne(
            in_order(question), words, scorer=fuzz.ratio, score_cutoff=self._least
        )
        if found is not None:
            return questions[found[2]]
        scores = self._cosines(question, questions) if self._cosines and questions else None
        if scores is None:
            return None
        best = int(scores.argmax())
        return questions[best] if scores[best] >= self._least_cosine else None
