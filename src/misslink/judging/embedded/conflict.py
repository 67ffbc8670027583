"""When two sentences that say nearly the same contradict each other: a number, or a negation."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from misslink.judging.embedded.numerals import with_digits
from misslink.text import STOPWORDS, fold

__all__ = ["conflicts"]

SAME_STATEMENT = 0.75  # share of the claim's content words that the other sentence must hold
SAME_BACK = 0.6  # and, for a negation, of that sentence's content words that the claim must hold
_WORD = re.compile(r"[^\W_]+(?:['.][^\W_]+|,\d{3}(?!\d))*")
_NEGATIONS = frozenset(("not", "no", "never", "cannot", "without", "none"))
_OVER_SEVERAL = frozenset(("neither", "nor"))  # what they negate stands elsewhere
_SENSELESS = ("not only", "no longer than", "no more than", "not just", "no matter", "no doubt")
_REACH = 4  # words after a negation among which the first content word is what it negates


def conflicts(
    claim: str,
    sentence: str,
    coverage: float,
    new_numbers: AbstractSet[str],
) -> str | None:
    """Say why `sentence` contradicts `claim`, or None where it does not.

    A cautious rule: the sentence must hold nearly all words of the claim. Then either the claim has
    a number that is in no passage, and the sentence has another one beside the same word; or one
    negates what the other, which shares most words both ways, asserts.

    Parameters
    ----------
    claim, sentence : str
    coverage : float
        Share in [0, 1] of the claim's content words, numbers aside, that the sentence holds.
    new_numbers : set of str
        Numbers of the claim that neither a passage nor the question holds.
    """
    if coverage < SAME_STATEMENT:
        return None
    its = _beside_numbers(sentence)
    for beside, number in _beside_numbers(claim).items():
        if number in new_numbers and its.get(beside, number) != number:
            return f"{number} where the passage says {its[beside]}"
    said, denied = _polarity(claim)
    its_said, its_denied = _polarity(sentence)
    if len(said & its_said) < SAME_BACK * len(its_said):
        return None
    both_ways = (denied & its_said - its_denied) | (its_denied & said - denied)
    return f"negation of {', '.join(sorted(both_ways))}" if both_ways else None


def _beside_numbers(text: str) -> dict[tuple[str, str], str]:
    """Each number of `text` by the content word nearest before, and nearest after, it."""
    words = [word for word in _WORD.findall(with_digits(fold(text))) if word not in STOPWORDS]
    found: dict[tuple[str, str], str] = {}
    for place, word in enumerate(words):
        if word[0].isdigit():
            number = word.replace(",", "")
            if place:
                found.setdefault(("after", words[place - 1]), number)
            if place + 1 < len(words):
                found.setdefault(("before", words[place + 1]), number)
    return found


def _polarity(text: str) -> tuple[set[str], set[str]]:
    """The content words of `text`, and those of them that a negation stands right before."""
    folded = fold(text)
    for phrase in _SENSELESS:
        folded = folded.replace(phrase, "")
    words = _WORD.findall(folded)
    said = {word for word in words if word not in STOPWORDS and not word.endswith("n't")}
    denied: set[str] = set()
    if _OVER_SEVERAL.intersection(words):
        return set(), denied
    for place, word in enumerate(words):
        if word in _NEGATIONS or word.endswith("n't"):
            after = (w for w in words[place + 1 : place + 1 + _REACH] if w not in STOPWORDS)
            denied.update(w for w in [next(after, None)] if w)
    return said, denied
