"""Two answers to one question that people judge alike: which does the judge score better?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from misslink.calibration.pairs import Pair
from misslink.stats import mean
from misslink.stats.mcnemar import mcnemar
from misslink.stats.proportions import critical, wilson
from misslink.types import Estimate

__all__ = ["longer", "of_kind"]

_METHOD = "wilson, clustered"
_LEVEL = 0.95
_MOST = 60  # answers to one question that are compared, each with each
_LEAST = 2  # questions, answers or scores from which there is anything to compare
_First = Callable[[Pair, Pair], bool | None]


def longer(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Compare, within each question, the longer of two answers with the shorter.

    Parameters
    ----------
    pairs : sequence of Pair

    Returns
    -------
    dict
        As `of_kind`, with ``longer_preferred`` in place of ``preferred``.
    """

    def first(one: Pair, other: Pair) -> bool | None:
        sizes = one.judged.length, other.judged.length
        if sizes[0] is None or sizes[1] is None or sizes[0] == sizes[1]:
            return None
        return sizes[0] > sizes[1]

    found = _compared(pairs, first)
    found["longer_preferred"] = found.pop("preferred")
    return found


def of_kind(pairs: Sequence[Pair], name: str, kind: str) -> dict[str, Any]:
    """Compare, within each question, an answer of one kind with one of another.

    Two answers are compared that people gave the same label: what then moves the judge is not what
    moves people, and neither is it the question.

    Parameters
    ----------
    pairs : sequence of Pair
        Of all questions; those without a group are compared with none.
    name, kind : str
        What is told of a case, such as 'model', and the word that is looked at.

    Returns
    -------
    dict
        ``pairs``
            Pairs of answers to one question with the same label, one of the kind and one not;
            ``ties`` of them have the same score. ``questions``: those that have any.
        ``preferred``
            Estimate: the share of the others in which the one of the kind is scored better. Its
            interval is Wilson's for as many independent pairs as these are worth, since pairs of
            one question go together, with Student's quantile for as many questions.
        ``difference``
            Estimate: how much better it is scored, in standard deviations of all scores, as the
            mean over questions of their mean pair.
        ``p``
            Exact sign test over questions: in how many the majority of pairs goes either way. None
            where there is no pair.

    References
    ----------
    Korn and Graubard (1998), Confidence intervals for proportions with small expected number of
    positive counts estimated from survey data (the effective sample size, here in Wilson's
    interval). Dixon and Mood (1946), The statistical sign test.
    """

    def first(one: Pair, other: Pair) -> bool | None:
        words = one.judged.about.get(name), other.judged.about.get(name)
        if None in words or (words[0] == kind) == (words[1] == kind):
            return None
        return words[0] == kind

    return _compared(pairs, first)


@dataclass(frozen=True)
class _Question:
    """The pairs of one question: scores of the one that is looked at, less those of the other."""

    differences: tuple[float, ...]

    @property
    def won(self) -> int:
        return sum(each > 0 for each in self.differences)

    @property
    def lost(self) -> int:
        return sum(each < 0 for each in self.differences)


def _compared(pairs: Sequence[Pair], first: _First) -> dict[str, Any]:
    groups = _groups(pairs)
    questions = [found for group in groups.values() if (found := _question(group, first))]
    differences = [each for question in questions for each in question.differences]
    up = sum(question.won > question.lost for question in questions)
    down = sum(question.won < question.lost for question in questions)
    return {
        "pairs": len(differences),
        "ties": differences.count(0.0),
        "questions": len(questions),
        "preferred": _preferred(questions, groups),
        "difference": _difference(questions, [pair.score for pair in pairs]),
        "p": mcnemar(up, down).p if questions else None,
    }


def _groups(pairs: Sequence[Pair]) -> Mapping[str, list[Pair]]:
    """The labelled answers to each question that has two or more, evenly thinned if very many."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        if pair.judged.group is not None:
            groups.setdefault(pair.judged.group, []).append(pair)
    return {
        name: group[:: -(-len(group) // _MOST)]
        for name, group in groups.items()
        if len(group) >= _LEAST
    }


def _question(group: Sequence[Pair], first: _First) -> _Question | None:
    found = []
    for one, other in combinations(group, 2):
        ahead = first(one, other) if one.good == other.good else None
        if ahead is not None:
            found.append(one.score - other.score if ahead else other.score - one.score)
    return _Question(tuple(found)) if found else None


def _preferred(questions: Sequence[_Question], groups: Mapping[str, object]) -> Estimate:
    """The share of untied pairs that go one way, with the interval that clusters allow."""
    told = [(each.won, each.won + each.lost) for each in questions if each.won + each.lost]
    n = sum(size for _, size in told)
    if not n:
        reason = "no two answers to the same question have a label"
        if groups:
            reason = "no two answers to the same question with the same label differ in this"
        if questions:
            reason = "the judge scores both answers of every pair the same"
        return Estimate.missing(reason, method=_METHOD)
    share = sum(won for won, _ in told) / n
    low, high = wilson(share, _worth(told, share, n), _quantile(told, share))
    return Estimate(value=share, low=low, high=high, n=n, method=_METHOD)


def _worth(told: Sequence[tuple[int, int]], share: float, n: int) -> float:
    """How many independent pairs these are worth: at most their number.

    By the variance of the ratio of wins to pairs over questions, against that of independent
    pairs. Where that says nothing, because all go one way, a question is worth one.
    """
    count = len(told)
    alone = share * (1 - share) / n
    if count < _LEAST or not alone:
        return float(count)
    spread = sum((won - share * size) ** 2 for won, size in told)
    clustered = spread / n**2 * count / (count - 1)
    return float(n) if clustered <= alone else max(n * alone / clustered, 1.0)


def _quantile(told: Sequence[tuple[int, int]], share: float) -> float:
    """Student's where what several pairs of a question are worth is found from so few questions."""
    if all(size == 1 for _, size in told) or share in {0.0, 1.0} or len(told) < _LEAST:
        return critical(_LEVEL)
    from scipy.special import stdtrit

    return float(stdtrit(len(told) - 1, (1 + _LEVEL) / 2))


def _difference(questions: Sequence[_Question], scores: Sequence[float]) -> Estimate:
    if not questions:
        return Estimate.missing("there is no pair to compare")
    centre = sum(scores) / len(scores)
    spread = (sum((score - centre) ** 2 for score in scores) / len(scores)) ** 0.5
    if not spread:
        return Estimate.missing("the judge gives every answer the same score")
    means = [sum(each.differences) / len(each.differences) / spread for each in questions]
    return mean(means, bounds=None)
