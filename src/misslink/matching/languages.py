"""Tell by short words whether texts are in the same language, and whether in English or German."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from misslink.text.normalization import STOPWORDS, UNSPACED, fold

FEW_WORDS = 3  # short words: fewer tell no language
SAME_LANGUAGE = 0.3  # share of an answer's short words that its passages hold, at least,
MIN_LANGUAGE_WORDS = 5  # and different ones that both must have before anything is said of that
_GERMAN_WORDS = (
    "der die das den dem des ein eine und oder ist sind wird auf aus bei mit nach von vom zu "
    "zum zur im um fur wie als wenn dass es er sie ich wir ihr nur auch noch kein"
)
_LANGUAGES = STOPWORDS.difference(("am", "an", "in", "so", "was")), frozenset(_GERMAN_WORDS.split())
_SHORT_WORD = re.compile(r"(?<!\w)[^\W\d_]{1,4}(?!\w)")


def is_other_language(answer: str, passages: Sequence[str]) -> bool:
    """Return whether the short words of `answer` are not those of the languages of `passages`."""
    answer_words = short_words(answer)
    passage_words = frozenset[str]().union(*map(short_words, passages))
    if min(len(answer_words), len(passage_words)) < MIN_LANGUAGE_WORDS:
        return False
    for language in _LANGUAGES:  # short texts of one language may share few words
        shares = (len(words & language) / len(words) for words in (answer_words, passage_words))
        if min(shares) >= SAME_LANGUAGE:
            return False
    return len(answer_words & passage_words) / len(answer_words) < SAME_LANGUAGE


def is_known_language(text: str) -> bool:
    """Return whether the short words of `text` are mostly English or German ones."""
    words = short_words(text)
    return any(len(words & language) >= SAME_LANGUAGE * len(words) > 0 for language in _LANGUAGES)


@lru_cache(maxsize=512)
def short_words(text: str) -> frozenset[str]:
    """The words of up to four letters, folded; of a script without blanks every character."""
    folded = fold(text)
    return frozenset((*UNSPACED.findall(folded), *_SHORT_WORD.findall(folded)))
