"""One list out of two rankings, and which of them its readers preferred."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from misslink.watching.live.records import Live

__all__ = ["Preference", "preferences", "team_draft"]

_CREDITS = ("click", "use")


def team_draft(
    first: Sequence[str], second: Sequence[str], k: int | None, chance: random.Random
) -> list[tuple[str, int | None]]:
    """Draw one list from two rankings.

    Parameters
    ----------
    first, second : sequence of str
        Ids, best first; a repeated id counts once.
    k : int or None
        How long the list is at most. None: as long as the longer ranking.
    chance : random.Random

    Returns
    -------
    list of (str, int or None)
        Ids, and whose each is: 0, 1, or None where one ranking has run out and the rest of the
        other follows, for which nobody gets credit. Two teams never differ by more than one.

    Notes
    -----
    Source: Radlinski, Kurup, Joachims (2008), How does clickthrough data reflect retrieval
    quality?, algorithm 2.

    >>> team_draft(["x", "y"], ["x", "z"], 2, random.Random(0))
    [('x', 1), ('y', 0)]
    """
    rankings = [list(dict.fromkeys(first)), list(dict.fromkeys(second))]
    length = max(map(len, rankings)) if k is None else k
    drawn: dict[str, int | None] = {}
    sizes, places = [0, 0], [0, 0]  # of each ranking, how many were drawn and how far it is read
    while len(drawn) < length:
        for team, ranking in enumerate(rankings):
            while places[team] < len(ranking) and ranking[places[team]] in drawn:
                places[team] += 1
        if any(place == len(ranking) for ranking, place in zip(rankings, places, strict=True)):
            rest = [one for ranking in rankings for one in ranking if one not in drawn]
            drawn |= dict.fromkeys(rest[: length - len(drawn)])
            break
        coin = chance.randrange(2)
        team = coin if sizes[0] == sizes[1] else int(sizes[1] < sizes[0])
        drawn[rankings[team][places[team]]] = team
        sizes[team] += 1
    return list(drawn.items())


@dataclass(frozen=True, slots=True)
class Preference:
    """What one query says of the two retrievers.

    Parameters
    ----------
    exposure : str
    unit : str or None
    winner : str or None
        The variant with more credit; None: a tie, or nobody got any.
    credit : mapping of str to int
        Variant -> how many of its passages were clicked or used, each counted once.
    """

    exposure: str
    unit: str | None
    winner: str | None
    credit: Mapping[str, int]


def preferences(live: Live, kinds: Sequence[str] = _CREDITS) -> list[Preference]:
    """Return the outcome of every interleaved query of an experiment.

    Parameters
    ----------
    live : Live
    kinds : sequence of str
        The kinds of feedback that give credit to their passage, where their value is not 0.

    Returns
    -------
    list of Preference
        In the order of the log. Queries in which one retriever failed are left out; those without
        any credit are there, with no winner and credits of 0.
    """
    credited: dict[str, set[str]] = {}
    for one in live.feedback:
        if one.exposure and one.passage and one.kind in kinds and one.value:
            credited.setdefault(one.exposure, set()).add(one.passage)
    names = [variant.name for variant in live.variants]
    outcomes = []
    for exposure in live.exposures:
        if exposure.mode != "interleaved" or exposure.teams is None or exposure.outcome != "ok":
            continue
        chosen = credited.get(exposure.id, set())
        pairs = list(zip(exposure.retrieved or (), exposure.teams, strict=False))
        credit = {
            name: sum(team == name and passage in chosen for passage, team in pairs)
            for name in names
        }
        most = max(credit.values(), default=0)
        best = [name for name in names if credit[name] == most]
        winner = best[0] if len(best) == 1 else None
        outcomes.append(Preference(exposure.id, exposure.unit, winner, credit))
    return outcomes
