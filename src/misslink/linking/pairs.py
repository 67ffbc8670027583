"""Numbers of a run's query-passage pairs, and where one number stands among them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from misslink.stats.auroc import Marked

__all__ = ["Pairs", "percentile"]


@dataclass(frozen=True)
class Pairs:
    """Numbers of query-passage pairs, each with the id of its case.

    ``known`` and ``random`` are cosines of a question with a passage it needs (found or missed)
    and with passages drawn at random; ``relevant`` and ``irrelevant`` those with retrieved
    passages; ``shared_found`` and ``shared_missed`` the shares of the question's content stems
    that a needed passage has.
    """

    known: tuple[Marked, ...] = ()
    random: tuple[Marked, ...] = ()
    relevant: tuple[Marked, ...] = ()
    irrelevant: tuple[Marked, ...] = ()
    shared_found: tuple[Marked, ...] = ()
    shared_missed: tuple[Marked, ...] = ()


def percentile(number: float | None, ordered: Sequence[float], *, counted: bool) -> float | None:
    """Share of the others that are lower, equal ones counting half.

    `counted` says that the number itself is one of them. None where there are no others.
    """
    others = len(ordered) - counted
    if number is None or others < 1:
        return None
    lower = bisect_left(ordered, number)
    equal = bisect_right(ordered, number) - lower - counted
    return (lower + equal / 2) / others
