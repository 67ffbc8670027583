"""Which cases of a run are replayed, and as what."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import get_args

from misslink.linking.replay.interventions import Plan, known_passages, plan
from misslink.linking.replay.outcomes import Outcome
from misslink.linking.replay.records import GOOD_MISS, REPLAYED, Record
from misslink.types import Case, Link, Run

__all__ = ["Chosen", "draw_cases"]

# Tried also where they only contribute; a retrieval miss is always the primary cause.
_CONTRIBUTING = ("ignored_context", "distracted")

Chosen = tuple[str, Plan]  # with its group


def draw_cases(
    run: Run, observed: Mapping[str, Outcome], k: int, sample: int, seed: int
) -> tuple[list[Chosen], list[Chosen], list[Record]]:
    """Draw the cases of each group among those that can be replayed.

    Parameters
    ----------
    run : Run
    observed : mapping of str to Outcome
        By case id.
    k : int
        As of `plan`.
    sample : int
        Cases of each group, at most; a smaller sample is part of a larger one of the same seed.
    seed : int

    Returns
    -------
    drawn, others : list of (group, Plan)
    skipped : list of Record
        Of those that cannot be replayed, with the reason.
    """
    cases = {case.id: case for case in run.cases}
    traces = {trace.case_id: trace for trace in run.traces}
    known = known_passages(run.traces)
    groups: dict[str, list[Plan]] = {name: [] for name in (*get_args(REPLAYED), GOOD_MISS)}
    skipped = []
    for link in run.links:
        group = _group(link, cases[link.case_id], observed[link.case_id])
        if group is None:
            continue
        chosen = plan(cases[link.case_id], traces[link.case_id], link, k, known, group)
        if isinstance(chosen, str):
            name = observed[link.case_id].name
            skipped.append(Record(link.case_id, group, link.cause, {"observed": name}, chosen))
        else:
            groups[group].append(chosen)
    drawn, others = [], []
    for name, plans in groups.items():
        # A generator for each group: what one holds does not change what is drawn of another.
        draw = random.Random(f"{seed} {name}")  # noqa: S311 (no secret)
        shuffled = [(name, one) for one in draw.sample(plans, len(plans))]
        drawn += shuffled[:sample]
        others += shuffled[sample:]
    return drawn, others, skipped


def _group(link: Link, case: Case, observed: Outcome) -> str | None:
    """The group that a case is drawn with; None where nothing is replayed of it."""
    if link.cause in get_args(REPLAYED):
        return link.cause
    if link.retrieval == "miss" and observed.bad is False and case.expects_answer is not False:
        return GOOD_MISS
    if not observed.bad:
        return None
    return next((cause for cause in _CONTRIBUTING if cause in link.contributing), None)
