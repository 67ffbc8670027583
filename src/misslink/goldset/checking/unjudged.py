"""How much of what a retriever brings now anybody has judged."""

from __future__ import annotations

from collections.abc import Sequence

from misslink.files.goldset import GoldSet
from misslink.goldset.checking.finding import Finding
from misslink.goldset.checking.grounds import Grounds
from misslink.stats import mean
from misslink.types import Case, Passage

__all__ = ["judged_share", "unjudged"]

_ENOUGH = 0.9  # see misslink.retrieval.judged: under it numbers tell as much of the judgements


def unjudged(gold: GoldSet, grounds: Grounds) -> Sequence[Finding]:
    """Find a gold set that knows too little of the top k of a run.

    judged@k is the mean, over the cases whose passages are graded by id and that the run has
    brought something for, of the share of the first k that has a grade. Cases with evidence are
    left out: whether a passage holds a text can always be told. Under 90 % it is a warning.
    """
    if grounds.run is None:
        return []
    found: list[Finding] = []
    missing = tuple(sorted(case.id for case in gold.cases if case.id not in grounds.run))
    if missing:
        found.append(
            Finding(
                "unjudged",
                "note",
                f"there is no ranking of {len(missing):,} of {len(gold.cases):,} cases in "
                f"{grounds.run_name}",
                "run the retriever on the gold set as it is now",
                missing,
            )
        )
    shares = {
        case.id: share
        for case in sorted(gold.cases, key=lambda one: one.id)
        if (share := judged_share(case, grounds.run.get(case.id, ()), grounds.k)) is not None
    }
    known = mean(list(shares.values()), seed=grounds.seed)
    if known.value is None or known.value >= _ENOUGH:
        return found
    short = tuple(case_id for case_id, share in shares.items() if share < 1)
    ends = "" if known.low is None else f" [{known.low:.0%}, {known.high:.0%}]"
    found.append(
        Finding(
            "unjudged",
            "warning",
            f"of the first {grounds.k} of {grounds.run_name}, {1 - known.value:.0%} was never "
            f"judged (judged@{grounds.k} {known.value:.0%}{ends}, n = {known.n:,}): it counts as "
            "not relevant, whatever it is",
            "draw what is to be judged with  misslink goldset pool",
            short,
            {f"judged@{grounds.k}": known.model_dump(), "shares": shares},
        )
    )
    return found


def judged_share(case: Case, ranking: Sequence[Passage], k: int) -> float | None:
    """Share of the first `k` that has a grade; None where nothing was brought, or none is by id."""
    graded = {*case.relevant, *(name for names in case.relevant_any for name in names)}
    top = ranking[:k]
    if not top or not graded or any(grade > 0 for grade in case.evidence.values()):
        return None
    return sum(passage.id in graded for passage in top) / len(top)
