"""How far a question copies the passages that answer it, measured without a judge."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from misslink.judging.embedded.lexical import stems
from misslink.judging.nearly import UNSPACED
from misslink.text import fold

__all__ = ["Copied", "copied", "own_words", "verbatim"]

_WORD = re.compile(r"\w+(?:['.]\w+)*")
_LEAST_WORDS = 4  # of fewer words that could be said otherwise, a share says nothing
_MARKS = "\"'\u201c\u201d\u201e\u00ab\u00bb"
_FENCED = "\uff1c"  # what the fence makes of "<" before a delimiter


@dataclass(frozen=True)
class Copied:
    """What a question took over.

    Parameters
    ----------
    run : int
        Words in a row that a passage has too.
    words : str
        That run, folded.
    share : float or None
        Of the question's stems, names and numbers left out, that the passages hold, in [0, 1].
        None: they are fewer than four, and nothing can be said.
    """

    run: int
    words: str
    share: float | None


def copied(question: str, passages: Sequence[str]) -> Copied:
    """Measure how much of its wording a question took from passages.

    Parameters
    ----------
    question : str
    passages : sequence of str
        Of none nothing can be copied.

    >>> found = copied("When does the ferry to Oban leave the pier?",
    ...                ["The ferry to Oban leaves at seven from the old pier."])
    >>> found.run, found.words, found.share
    (4, 'the ferry to oban', None)
    """
    asked = _words(question)
    run, words = 0, ""
    for text in passages:
        given = "\x1f".join(["", *_words(text), ""])
        end = 0
        for start in range(len(asked)):
            end = max(end, start)
            while end < len(asked) and "\x1f".join(["", *asked[start : end + 1], ""]) in given:
                end += 1
            if (length := _length(asked[start:end])) > run:
                run, words = length, " ".join(asked[start:end])
    own = own_words(question)
    held = {stem for text in passages for stem in stems(text)}
    share = len(own & held) / len(own) if len(own) >= _LEAST_WORDS and passages else None
    return Copied(run, words, share)


def own_words(question: str) -> set[str]:
    """Return the stems of a question that it could say otherwise: no names, no numbers."""
    first = True
    plain = []
    for word in _WORD.findall(question):
        name = word[:1].isupper() and not first
        first = False
        if not name and not any(c.isdigit() or c == "_" for c in word):
            plain.append(word)
    return set(stems(" ".join(plain)))


def verbatim(quote: str, passage: str) -> tuple[int, int] | None:
    """Return where a quote stands in a passage, character by character but for blanks.

    Quote marks around it are not of it. None where it is nowhere, is blank, or cuts a word in two.
    """
    bare = quote.strip().strip(_MARKS).strip()
    for said in dict.fromkeys((quote.strip(), bare)):
        if not any(map(str.isalnum, said)):
            continue
        pieces = [re.escape(piece).replace(_FENCED, f"[<{_FENCED}]") for piece in said.split()]
        for found in re.finditer(r"\s+".join(pieces), passage):
            start, end = found.span()
            if not (_cut(passage, start) or _cut(passage, end)):
                return start, end
    return None


def _cut(text: str, at: int) -> bool:
    """Whether a word goes on over this place."""
    around = text[max(0, at - 1) : at + 1]
    return 0 < at < len(text) and around.isalnum() and not UNSPACED.search(around)


def _words(text: str) -> list[str]:
    """Folded words; every character of a script without blanks between them."""
    found: list[str] = []
    for word in _WORD.findall(fold(text)):
        found.extend(word if UNSPACED.search(word) else [word])
    return found


def _length(words: Sequence[str]) -> int:
    """Words in a row; two characters of a script without blanks are one."""
    single = sum(1 for word in words if len(word) == 1 and UNSPACED.match(word))
    return len(words) - single + single // 2
