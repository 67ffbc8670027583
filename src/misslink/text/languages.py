"""Words of languages: whether texts are in the same one, in English or German, and say yes or no."""

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


def is_known_language(*texts: str) -> bool:
    """Return whether the short words of `texts` are mostly English or German ones."""
    words = frozenset[str]().union(*map(short_words, texts))
    return any(len(words & language) >= SAME_LANGUAGE * len(words) > 0 for language in _LANGUAGES)


@lru_cache(maxsize=8_192)
def short_words(text: str) -> frozenset[str]:
    """The words of up to four letters, folded; of a script without blanks every character."""
    folded = fold(text)
    unspaced = () if folded.isascii() else UNSPACED.findall(folded)
    return frozenset((*unspaced, *_SHORT_WORD.findall(folded)))


_YES, _NO = (
    re.compile(
        rf"\W*(?:(?:{english})\b(?!\s+(?:and|or)\b)|(?:{fold(others)})(?=\W*$|\s*[,.;:!\u3001\u3002]|\s-))"
    )
    for english, others in (
        ("yes|yeah|yep|true|correct",
         "ja|oui|si|sim|да|tak|ano|evet|kyllä|igen|\u03bd\u03b1\u03b9|はい|是的?|对|네|예|ใช่|نعم|हाँ|כן"),
        # "No" before a noun, as in "No changes are made", is no answer to the question.
        (r"nope|false|incorrect|no\b(?=\s+(?:it|they|there|you|he|she|we|i|this|that)\b)",
         "no|nein|non|nao|нет|nie|ne|hay\u0131r|ei|nem|όχι|いいえ|不是?|没有|아니요|아니오|ไม่|لا|नहीं|לא|nej|nei|nee"),
    )
)  # fmt: skip
_FIRST_WORD = re.compile(r"\W*\w+\b[\s,.;:!*\u2013\u2014\u3001\u3002-]*")
DASH = re.compile("\\s*\u2014\\s*")


@lru_cache(maxsize=4_096)
def leading_polarity(text: str) -> bool | None:
    """True where `text` begins with a yes, False with a no; None where with neither."""
    folded = fold(DASH.sub(" - ", text) if "\u2014" in text else text)
    return True if _YES.match(folded) else False if _NO.match(folded) else None


def strip_polarity(text: str) -> str:
    """`text` without the yes or no that it begins with."""
    return text if leading_polarity(text) is None else _FIRST_WORD.sub("", text, count=1)
