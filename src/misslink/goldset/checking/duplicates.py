"""Questions that stand twice, in the same words or in nearly the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from misslink.files.goldset import GoldSet
from misslink.goldset.alike import ground, in_order
from misslink.goldset.checking.finding import Finding
from misslink.goldset.checking.grounds import Grounds
from misslink.text import fold
from misslink.types import Case

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["duplicates"]

_AT_ONCE = 500  # questions that are compared with those before them at a time
_EQUAL = 5  # decimals of a cosine; the rest depends on how many are worked out at a time
_END = " .,;:!?\u2026\uff1f\u3002"


def duplicates(gold: GoldSet, grounds: Grounds) -> Sequence[Finding]:
    """Find cases that ask the same.

    Exact: folded, the words are the same, and so is the time of asking. Near: at least 90 % alike
    (rapidfuzz's token sort ratio), or of a cosine of 0.95 where there is an embedding, the lines
    that `misslink goldset generate` draws; numbers, signs, negations and names are then the same.
    Each case is told with the nearest of those before it by id, so that there are never more
    findings than cases.
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
    """Each case that is a near-duplicate of one before it, with the nearest of those."""
    comparable: dict[tuple[object, ...], list[Case]] = defaultdict(list)
    for case in cases:
        comparable[(str(case.asked_at), *ground(case.question))].append(case)
    for group in comparable.values():
        for low in range(1, len(group), _AT_ONCE):
            yield from _block(group, low, min(low + _AT_ONCE, len(group)), grounds)


def _block(
    group: Sequence[Case], low: int, high: int, grounds: Grounds
) -> Iterator[tuple[Case, Case, float, str]]:
    """The near-duplicates from `low` to `high` of what could be the same."""
    import numpy as np
    from rapidfuzz import fuzz, process

    known = group[: high - 1]
    later = np.arange(len(known)) >= np.arange(low, high)[:, None]
    words = [in_order(case.question) for case in group[:high]]
    least = grounds.lines.near_duplicate
    alike = process.cdist(words[low:], words[:-1], scorer=fuzz.ratio, score_cutoff=least)
    scores: list[tuple[NDArray[Any], float, str]] = [
        (np.where(later, 0, alike) / 100, least / 100, "by their words")
    ]
    if grounds.vectors is not None:
        table = np.stack([grounds.vectors.of[case.question] for case in group[:high]])
        cosines = np.round(table[low:] @ table[:-1].T, _EQUAL)
        scores.append(
            (np.where(later, -1, cosines), grounds.lines.near_meaning, "by their meaning")
        )
    for row in range(high - low):
        for near, line, by in scores:
            at = int(near[row].argmax())
            if near[row, at] >= line:
                yield group[at], group[low + row], min(1.0, float(near[row, at])), by
                break
