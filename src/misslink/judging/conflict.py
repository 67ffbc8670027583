"""When two sentences that say nearly the same contradict each other: a number, or a negation."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from misslink.text import STOPWORDS, fold

__all__ = ["conflicts"]

SAME_STATEMENT = 0.75  # share of the claim's content words that the other sentence must hold
_WORD = re.compile(r"[^\W_]+(?:['.][^\W_]+)*")
_NEGATIONS = frozenset(("not", "no", "never", "cannot", "without", "neither", "nor", "none"))
_SENSELESS = ("not only", "no longer than", "no more than", "not just", "no matter", "no doubt")
_REACH = 4  # words after a negation among which the first content word is what it negates


def conflicts(
    claim: str,
    sentence: str,
    coverage: float,
    new_numbers: AbstractSet[str],
    its_numbers: AbstractSet[str],
) -> str | None:
    """Say why `sentence` contradicts `claim`, or None where it does not.

    A cautious rule: the two must share nearly all words, and then either the claim's number is in
    no passage while the sentence has another in its place, or what one negates the other asserts.

    Parameters
    ----------
    claim, sentence : str
    coverage : float
        Share in [0, 1] of the claim's content words, numbers aside, that the sentence holds.
    new_numbers : set of str
        Numbers of the claim that no passage holds.
    its_numbers : set of str
        Numbers of the sentence.
    """
    if coverage < SAME_STATEMENT:
        return None
    if new_numbers and its_numbers:
        return f"{_list(new_numbers)} where the passage says {_list(its_numbers)}"
    said, denied = _polarity(claim)
    its_said, its_denied = _polarity(sentence)
    both_ways = (denied & its_said - its_denied) | (its_denied & said - denied)
    return f"negation of {_list(both_ways)}" if both_ways else None


def _polarity(text: str) -> tuple[set[str], set[str]]:
    """The content words of `text`, and those of them that a negation stands right before."""
    folded = fold(text)
    for phrase in _SENSELESS:
        folded = folded.replace(phrase, "")
    words = _WORD.findall(folded)
    said = {word for word in words if word not in STOPWORDS}
    denied: set[str] = set()
    for place, word in enumerate(words):
        if word in _NEGATIONS or word.endswith("n't"):
            after = (w for w in words[place + 1 : place + 1 + _REACH] if w not in STOPWORDS)
            denied.update(w for w in [next(after, None)] if w)
    return said, denied


def _list(items: AbstractSet[str]) -> str:
    return ", ".join(sorted(items))
