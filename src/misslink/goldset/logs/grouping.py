"""Requests that ask the same: by their words without endings, order and slips of the pen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from misslink.goldset.logs.masking import without_numbers
from misslink.judging.embedded.lexical import stems
from misslink.judging.nearly import facts
from misslink.text import fold

__all__ = ["Group", "Key", "grouped", "key_of"]

ALIKE = 90.0  # per cent of characters that two questions with a slip have in common (indel ratio)
# Words: two questions are compared that share one of their rarest. Where all but two words are the
# same, the rarest of those they share is among the three rarest of both.
_RARE = 3
_MOST = 400  # questions with such a word that are compared, the most frequent first

Key = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class Group:
    """Questions that ask the same.

    Parameters
    ----------
    wording : str
        The most frequent wording; the first of those that are as frequent.
    members : sequence of int
        Numbers of the requests, in the log's order.
    stems : sequence of str
        The words of the wording.
    """

    wording: str
    members: tuple[int, ...]
    stems: tuple[str, ...]


def key_of(question: str) -> Key:
    """What two wordings of one question share: words in any order, and numbers and negations.

    Masks count by their kind alone.
    """
    plain = fold(without_numbers(question))
    words = sorted(stems(plain))
    named = [part for several in facts(plain) for part in several]
    return " ".join(words) or plain.strip(" .,;:!?"), tuple(named)


def grouped(questions: Sequence[str]) -> list[Group]:
    """Group questions, the largest group first.

    Parameters
    ----------
    questions : sequence of str
        In the log's order; ties are broken by it.

    Returns
    -------
    list of Group
        Every question is in one. Two wordings are of one group where they have the same words, or
        where at most a tenth of their characters differs; and the same numbers, signs and
        negations in any case.
    """
    by_key: dict[Key, list[int]] = {}
    for number, question in enumerate(questions):
        by_key.setdefault(key_of(question), []).append(number)
    merged = _merged(by_key)
    groups = []
    for members in merged:
        wordings = Counter(" ".join(questions[number].split()) for number in members)
        wording = wordings.most_common(1)[0][0]
        groups.append(Group(wording, tuple(members), stems(fold(without_numbers(wording)))))
    return sorted(groups, key=lambda group: (-len(group.members), group.members[0]))


def _merged(by_key: dict[Key, list[int]]) -> list[list[int]]:
    """Each group of a key joined to the most frequent one that differs from it by slips alone."""
    from rapidfuzz import fuzz, process

    ordered = sorted(by_key, key=lambda key: (-len(by_key[key]), by_key[key][0]))
    often = Counter(word for key in ordered for word in set(key[0].split()))
    leaders: dict[Key, list[str]] = {}
    joined: dict[Key, list[int]] = {}
    for key in ordered:
        stemmed, named = key
        words = sorted(set(stemmed.split()), key=lambda word: (often[word], word))[:_RARE]
        near = list(
            dict.fromkeys(leader for word in words for leader in leaders.get((word, named), ()))
        )
        found = process.extractOne(stemmed, near, scorer=fuzz.ratio, score_cutoff=ALIKE)
        if found is not None:
            joined[found[0], named] += by_key[key]
            continue
        joined[key] = list(by_key[key])
        for word in words:
            held = leaders.setdefault((word, named), [])
            if len(held) < _MOST:
                held.append(stemmed)
    return [sorted(members) for members in joined.values()]
