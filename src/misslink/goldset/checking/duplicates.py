"""Questions that stand twice, in the same words or in nearly the same."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from misslink.files.goldset import GoldSet
from misslink.goldset.checking.finding import Finding
from misslink.goldset.checking.grounds import Grounds
from misslink.judging.nearly import facts
from misslink.text import fold
from misslink.types import Case

__all__ = ["duplicates"]

_AT_ONCE = 500  # questions that are compared with all others at a time
_END = " .,;:!?\u2026\uff1f\u3002"
_WORD = re.compile(r"\w+(?:['.-]\w+)*")


def duplicates(gold: GoldSet, grounds: Grounds) -> Sequence[Finding]:
    """Find pairs of cases that ask the same.

    Exact: folded, the words are the same, and so is the time of asking. Near: at least 90 % alike
    (rapidfuzz's token sort ratio), or of a cosine of 0.95 where there is an embedding, the lines
    that `misslink goldset generate` draws; numbers, signs, negations and names are then the same.
    """
    cases = sorted(gold.cases, key=lambda case: case.id)
    together: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        together[fold(case.question).strip(_END), str(case.asked_at)].append(case)
    found = [_exact(group) for group in together.values() if len(group) > 1]
    firsts = [group[0] for group in together.values()]
    return [*found, *(_near(*pair) for pair in _pairs(firsts, grounds))]


def _exact(group: Sequence[Case]) -> Finding:
    ids = tuple(case.id for case in group)
    if len({_wanted(case) for case in group}) > 1:
        return Finding(
            "duplicates",
            "error",
            "the same question is asked more than once, and different passages are relevant",
            "keep one case with the labels of all, once a person has looked",
            ids,
        )
    return Finding(
        "duplicates",
        "error",
        "the same question is asked more than once, so it counts more than once",
        "keep one of them",
        ids,
    )


def _wanted(case: Case) -> str:
    relevant = sorted(case.relevant.items())
    alternatives = sorted(map(sorted, case.relevant_any))
    return repr((relevant, alternatives, sorted(case.evidence.items()), case.answerable))


def _near(one: Case, other: Case, share: float, by: str) -> Finding:
    return Finding(
        "duplicates",
        "warning",
        f"two questions are {share:.0%} alike {by}",
        "reword one, or keep one, if both ask the same",
        (one.id, other.id),
        {"alike": share, "by": by, "questions": [one.question, other.question]},
    )


def _pairs(cases: Sequence[Case], grounds: Grounds) -> Iterator[tuple[Case, Case, float, str]]:
    """The pairs that are near-duplicates, each once."""
    import numpy as np
    from rapidfuzz import fuzz, process

    words = [" ".join(sorted(_WORD.findall(fold(case.question)))) for case in cases]
    table = None
    if grounds.vectors is not None and cases:
        table = np.stack([grounds.vectors.of[case.question] for case in cases])
    least = grounds.lines.near_duplicate
    for low in range(0, len(cases), _AT_ONCE):
        block = slice(low, low + _AT_ONCE)
        alike = process.cdist(words[block], words, scorer=fuzz.ratio, score_cutoff=least)
        near = alike >= least
        cosines = None if table is None else table[block] @ table.T
        if cosines is not None:
            near = near | (cosines >= grounds.lines.near_meaning)
        for row, column in np.argwhere(near).tolist():
            first, second = cases[low + row], cases[column]
            if low + row >= column or not _may_be_same(first, second):
                continue
            if alike[row, column] >= least:
                yield first, second, float(alike[row, column]) / 100, "by their words"
            elif cosines is not None:
                yield first, second, min(1.0, float(cosines[row, column])), "by their meaning"


def _may_be_same(one: Case, other: Case) -> bool:
    """With other numbers, names, a negation or another time of asking they are not."""
    if one.asked_at != other.asked_at or facts(fold(one.question)) != facts(fold(other.question)):
        return False
    return _names(one.question) == _names(other.question)


def _names(question: str) -> frozenset[str]:
    """The words of a question, folded, that have a capital and do not begin it."""
    words: list[str] = _WORD.findall(question)[1:]
    return frozenset(fold(word) for word in words if word[0].isupper())
