"""The truth of answers of which people labelled the claims."""

from __future__ import annotations

from collections.abc import Mapping

from misslink.calibration.judged import Verdicts
from misslink.calibration.people import Gold, Item, People

__all__ = ["of_claims", "tied_answers"]

_BY_CLAIMS = "faithfulness"  # an answer is faithful exactly when its claims are


def of_claims(people: People, verdicts: Verdicts) -> dict[Item, Gold]:
    """Add the truth of answers of which only the claims were labelled, where that settles it.

    An answer that people are tied on stays without: the claims of one must not outvote the other.
    """
    found = dict(people.gold)
    if verdicts.metric != _BY_CLAIMS:
        return found
    of_case: dict[str, dict[int, Gold]] = {}
    for (case_id, claim), truth in people.gold.items():
        if claim is not None:
            of_case.setdefault(case_id, {})[claim] = truth
    tied = {one["case_id"] for one in people.queue if one["claim"] is None and not one["settled"]}
    for case_id in (one for one in of_case if one not in tied):
        judged = verdicts.items.get(case_id)
        there = range(len(judged.claims)) if judged else range(0)
        # A verdict without claims cannot say which there are; else those that it has are meant.
        said = {n: truth for n, truth in of_case[case_id].items() if n in there or not there}
        good = all(truth.good for truth in said.values())
        settles = not good or (there and len(said) == len(there))
        if (case_id, None) not in found and settles:
            weight = next(iter(said.values())).weight
            found[case_id, None] = Gold(good, float(good), weight)
    return found


def tied_answers(
    people: People, gold: Mapping[Item, Gold], verdicts: Verdicts
) -> dict[str, float | None]:
    """Answers that people are tied on, with their weights: as a whole, or on a claim that decides.

    A tied claim decides where every claim is labelled and people find none of the others bad.
    """
    found = {case_id: weight for (case_id, claim), weight in people.tied.items() if claim is None}
    if verdicts.metric != _BY_CLAIMS:
        return found
    labelled = {*people.gold, *people.tied}
    for (case_id, claim), weight in people.tied.items():
        judged = verdicts.items.get(case_id)
        known = {(case_id, place) for place in range(len(judged.claims) if judged else 0)}
        if (case_id, claim) in known and known <= labelled and (case_id, None) not in gold:
            found.setdefault(case_id, weight)
    return found
