"""Cases that both people and the judge have spoken of, and why others are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from misslink.calibration.judged import Judged, Verdicts
from misslink.calibration.people import Gold, Item

__all__ = ["Pair", "Tie", "answers", "calls", "claims", "ties", "weights"]


@dataclass(frozen=True)
class Pair:
    """People's word and the judge's on one item.

    Parameters
    ----------
    case_id : str
    good : bool
        By people.
    share : float
        Their mean label.
    score : float
        The judge's probability, else its value.
    probability : float or None
    weight : float or None
        One over the chance of being labelled.
    judged : Judged
    """

    case_id: str
    good: bool
    share: float
    score: float
    probability: float | None
    weight: float | None
    judged: Judged


@dataclass(frozen=True)
class Tie:
    """An answer that as many people call good as bad, and what the judge said of it.

    Parameters
    ----------
    case_id : str
    score : float
        The judge's probability, else its value.
    weight : float or None
        One over the chance of being labelled.
    """

    case_id: str
    score: float
    weight: float | None = None


def answers(gold: Mapping[Item, Gold], verdicts: Verdicts) -> tuple[list[Pair], dict[str, int]]:
    """Pair labels of whole answers with their verdicts.

    Returns
    -------
    pairs : list of Pair
        In the order of the verdicts.
    left_out : dict of str to int
        How many labelled answers have no usable verdict, by 'failed', 'skipped' or 'no verdict'.
    """
    left_out: dict[str, int] = {}
    labelled = {case_id: truth for (case_id, claim), truth in gold.items() if claim is None}
    for case_id in labelled:
        judged = verdicts.items.get(case_id)
        if judged is None or judged.score is None:
            why = "no verdict" if judged is None else judged.status
            left_out[why] = left_out.get(why, 0) + 1
    pairs = [
        Pair(
            case_id,
            labelled[case_id].good,
            labelled[case_id].share,
            judged.score,
            judged.probability,
            labelled[case_id].weight,
            judged,
        )
        for case_id, judged in verdicts.items.items()
        if case_id in labelled and judged.score is not None
    ]
    return pairs, left_out


def ties(tied: Mapping[str, float | None], verdicts: Verdicts) -> list[Tie]:
    """Pair answers that people are tied on, by case with their weights, with their verdicts.

    In the order of the verdicts; without a usable verdict one is left out.
    """
    return [
        Tie(case_id, judged.score, tied[case_id])
        for case_id, judged in verdicts.items.items()
        if case_id in tied and judged.score is not None
    ]


def claims(gold: Mapping[Item, Gold], verdicts: Verdicts) -> tuple[list[Pair], int]:
    """Pair labels of single claims with what the judge said of them.

    Returns
    -------
    pairs : list of Pair
    left_out : int
        Labelled claims that the verdict does not have.
    """
    pairs, left_out = [], 0
    for (case_id, claim), truth in gold.items():
        judged = verdicts.items.get(case_id)
        if claim is None:
            continue
        score = judged.claims[claim] if judged and claim < len(judged.claims) else None
        if judged is None or score is None:
            left_out += 1
        else:
            pairs.append(Pair(case_id, truth.good, truth.share, score, score, truth.weight, judged))
    return pairs, left_out


def calls(pairs: Sequence[Pair], threshold: float) -> list[bool]:
    """What the judge calls each: good from the threshold on."""
    return [pair.score >= threshold for pair in pairs]


def weights(pairs: Sequence[Pair | Tie]) -> list[float] | None:
    """The weight of each case; None where they have none, or all the same."""
    given = [pair.weight for pair in pairs if pair.weight is not None]
    return given if len(given) == len(pairs) and len(set(given)) > 1 else None
