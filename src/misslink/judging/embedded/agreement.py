"""Whether an answer and a reference agree, more strictly than a passage supports a claim.

A reference is often one word, so shared words alone show little: "None" is not "non-zero".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from misslink.judging.embedded.lexical import without_ending
from misslink.judging.embedded.numerals import with_digits
from misslink.judging.embedded.polarity import is_bare, polarity, without_polarity
from misslink.text import STOPWORDS, fold
from misslink.types import Support

__all__ = ["agree_at_start", "carries"]

SHORT = 3  # content words: of a text this short, none may be lacking
_TELLING = 4  # letters that two words must share once their endings are off
_WORD = re.compile(r"non-\w+|\w+(?:['.]\w+)*")


def agree_at_start(text: str, others: Sequence[str]) -> Support | None:
    """What the yes or no at the start of `text` shows beside those of `others`; None: nothing.

    "contradicted" where the others that say one all say the other; "supported" where one says the
    same, and either says nothing more.
    """
    mine = polarity(text)
    theirs = [other for other in others if polarity(other) is not None]
    if mine is None or not theirs:
        return None
    same = [other for other in theirs if polarity(other) == mine]
    if not same:
        return "contradicted"
    return "supported" if is_bare(text) or any(map(is_bare, same)) else None


def carries(texts: Sequence[str], wanted: str, question: str = "") -> bool:
    """Whether `texts` hold every content word of `wanted`, where `wanted` is short.

    Parameters
    ----------
    texts : sequence of str
    wanted : str
        Of more than three content words, or of none, nothing is asked: True.
    question : str
        Its words need not be repeated, unless `wanted` has no others.
    """
    words = _words(without_polarity(wanted))
    if not 0 < len(words) <= SHORT:
        return True
    asked = _forms(_words(question))
    new = [word for word in words if asked.isdisjoint(_forms([word]))]
    held = _forms(word for text in texts for word in _words(text))
    return all(not held.isdisjoint(_forms([word])) for word in new or words)


def _words(text: str) -> list[str]:
    """Content words; an identifier and a "non-zero" are one word each."""
    found = _WORD.findall(with_digits(fold(text.replace("\\_", "_"))))
    return [word for word in found if word not in STOPWORDS]


def _forms(words: Iterable[str]) -> set[str]:
    """The words as they are, and without their endings where enough is left to tell them by."""
    forms = set()
    for word in words:
        forms.add(word.removesuffix("'s").replace(",", ""))
        if len(short := without_ending(word)) >= _TELLING:
            forms.add(short)
    return forms
