"""Compare the wording of questions with each other, and with the passages that answer them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from misslink.matching import invariant_tokens
from misslink.text.normalization import UNSPACED, fold, stems

_WORDS = re.compile(r"\w+(?:['.-]\w+)*")
_COSINE_DECIMALS = 5  # further ones are rounding
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


class QuestionTwin(NamedTuple):
    """A question that asks the same, how similar it is in [0, 1], and by what."""

    question: str
    similarity: float
    by: Literal["words", "meaning"]


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

    def twin(self, question: str) -> QuestionTwin | None:
        """Return the most similar of the added questions that ask the same, if there is one."""
        from rapidfuzz import fuzz, process

        if (equal := self._exact.get(fold(question))) is not None:
            return QuestionTwin(equal, 1.0, "words")
        questions, words = self._near.get(fact_key(question), ([], []))
        match = process.extractOne(
            sorted_words(question), words, scorer=fuzz.ratio, score_cutoff=self._min_ratio
        )
        if match is not None:
            return QuestionTwin(questions[match[2]], match[1] / 100, "words")
        scores = self._cosines(question, questions) if self._cosines and questions else None
        if scores is None:
            return None
        best = int(scores.round(_COSINE_DECIMALS).argmax())
        similarity = min(1.0, float(scores[best].round(_COSINE_DECIMALS)))
        if similarity < self._min_cosine:
            return None
        return QuestionTwin(questions[best], similarity, "meaning")


_WORD_PATTERN = re.compile(r"\w+(?:['.]\w+)*")


_MIN_WORDS = 4  # with fewer rewordable words a share says nothing


_QUOTE_MARKS = "\"'\u201c\u201d\u201e\u00ab\u00bb"


_FENCED_BRACKET = "\uff1c"  # replaces "<" before a delimiter in fenced text


@dataclass(frozen=True)
class CopiedWording:
    """The wording that a question copies.

    Parameters
    ----------
    run : int
        Longest run of words that a passage contains too.
    words : str
        That run, folded.
    share : float or None
        Share of the rewordable stems that the passages contain, in [0, 1]. None for fewer than 4.
    """

    run: int
    words: str
    share: float | None


def measure_copying(question: str, passages: Sequence[str]) -> CopiedWording:
    """Measure how much of its wording a question copies from passages.

    >>> copying = measure_copying("When does the ferry to Oban leave the pier?",
    ...                           ["The ferry to Oban leaves at seven from the old pier."])
    >>> copying.run, copying.words, copying.share
    (4, 'the ferry to oban', None)
    """
    words = _folded_words(question)
    run, run_words = 0, ""
    for text in passages:
        passage = "\x1f".join(["", *_folded_words(text), ""])
        end = 0
        for start in range(len(words)):
            end = max(end, start)
            while end < len(words) and "\x1f".join(["", *words[start : end + 1], ""]) in passage:
                end += 1
            if (length := _run_length(words[start:end])) > run:
                run, run_words = length, " ".join(words[start:end])
    own = rewordable_stems(question)
    shared = own & {stem for text in passages for stem in stems(text)}
    share = len(shared) / len(own) if len(own) >= _MIN_WORDS and passages else None
    return CopiedWording(run, run_words, share)


def rewordable_stems(question: str) -> set[str]:
    """Return the stems of a question without names and numbers, which cannot be reworded."""
    plain = [
        word
        for place, word in enumerate(_WORD_PATTERN.findall(question))
        if not (place and word[0].isupper()) and not any(c.isdigit() or c == "_" for c in word)
    ]
    return set(stems(" ".join(plain)))


def find_verbatim(quote: str, passage: str) -> tuple[int, int] | None:
    """Return the span of a quote in a passage, equal except for whitespace.

    Quotation marks around it are ignored. None if it is absent, blank, or divides a word.
    """
    bare = quote.strip().strip(_QUOTE_MARKS).strip()
    for text in dict.fromkeys((quote.strip(), bare)):
        if not any(map(str.isalnum, text)):
            continue
        pieces = [
            re.escape(piece).replace(_FENCED_BRACKET, f"[<{_FENCED_BRACKET}]")
            for piece in text.split()
        ]
        for match in re.finditer(r"\s+".join(pieces), passage):
            if not any(_splits_word(passage, place) for place in match.span()):
                return match.span()
    return None


def _splits_word(text: str, place: int) -> bool:
    around = text[max(0, place - 1) : place + 1]
    return 0 < place < len(text) and around.isalnum() and not UNSPACED.search(around)


def _folded_words(text: str) -> list[str]:
    """Folded words; in scripts without spaces every character."""
    words: list[str] = []
    for word in _WORD_PATTERN.findall(fold(text)):
        words.extend(word if UNSPACED.search(word) else [word])
    return words


def _run_length(words: Sequence[str]) -> int:
    """Number of words; two characters of a script without spaces are one."""
    single = sum(1 for word in words if len(word) == 1 and UNSPACED.match(word))
    return len(words) - single + single // 2


def word_trigrams(text: str) -> frozenset[str]:
    """Return the trigrams of the folded words; for a shorter text the text itself."""
    folded = fold(text)
    words = list(folded) if UNSPACED.search(folded) else folded.split()
    trigrams = frozenset(" ".join(words[start : start + 3]) for start in range(len(words) - 2))
    return trigrams or frozenset([folded])
