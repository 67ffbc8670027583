"""Find questions that ask the same thing in the same or nearly the same words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from misslink.text.fuzzy_matching import invariant_tokens
from misslink.text.normalization import fold

_WORDS = re.compile(r"\w+(?:['.-]\w+)*")
CosineFunction = Callable[[str, Sequence[str]], Any]


def fact_key(question: str) -> tuple[object, ...]:
    """Return what two questions that ask the same share: numbers, signs, negations and names.

    Names are the folded words with a capital that do not begin the question.

    >>> fact_key("Who runs Oban?") == fact_key("who is running Oban?")
    True
    >>> fact_key("Who runs Oban?") == fact_key("Who does not run Oban?")
    False
    """
    words: list[str] = _WORDS.findall(question)[1:]
    names = frozenset(fold(word) for word in words if word[0].isupper())
    return (*map(tuple, invariant_tokens(fold(question))), names)


def sorted_words(question: str) -> str:
    """Return the folded words, sorted; rapidfuzz's ratio of two is their token sort ratio."""
    return " ".join(sorted(fold(question).split()))


class QuestionIndex:
    """Finds the question that asks the same as another, among those with an equal `fact_key`.

    Parameters
    ----------
    min_ratio : float
        Token sort ratio of near-duplicates, from 0 to 100.
    min_cosine : float
        Cosine of near-duplicates.
    cosines : callable or None
        Returns the cosines of a question to others, or None.
    """

    def __init__(
        self, min_ratio: float, min_cosine: float, cosines: CosineFunction | None = None
    ) -> None:
        self._min_ratio, self._min_cosine, self._cosines = min_ratio, min_cosine, cosines
        self._exact: dict[str, str] = {}
        self._near: dict[tuple[object, ...], tuple[list[str], list[str]]] = {}

    def add(self, question: str) -> None:
        """Add a question."""
        self._exact.setdefault(fold(question), question)
        questions, words = self._near.setdefault(fact_key(question), ([], []))
        questions.append(question)
        words.append(sorted_words(question))

    def twin(self, question: str) -> str | None:
        """Return the added question that asks the same, if there is one."""
        from rapidfuzz import fuzz, process

        if (same := self._exact.get(fold(question))) is not None:
            return same
        questions, words = self._near.get(fact_key(question), ([], []))
        match = process.extractOne(
            sorted_words(question), words, scorer=fuzz.ratio, score_cutoff=self._min_ratio
        )
        if match is not None:
            return questions[match[2]]
        scores = self._cosines(question, questions) if self._cosines and questions else None
        if scores is None:
            return None
        best = int(scores.argmax())
        return questions[best] if scores[best] >= self._min_cosine else None
