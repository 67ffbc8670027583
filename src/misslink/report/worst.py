"""Which cases are the worst: the order of the page's list, and what a large run's page holds.

This is the one place that says it: the page prints `RULE`, its list stands in the order of
`worst_first`, and a page of many cases holds those that `worst` takes from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from misslink.report.glossary import CAUSES
from misslink.types import Run

__all__ = ["MOST_WHOLE", "RULE", "WORST", "cutoff", "how_many", "of_each", "worst", "worst_first"]

# Cases up to which a page holds them all. A page of 10,000 cases has 36 MB, which a browser opens
# in a second and a mail or a wiki still takes (benchmarks/report.md); one of 100,000 would have
# 360 MB, which some browsers do not open at all.
MOST_WHOLE = 10_000
WORST = 5_000  # cases in the page of a run that has more; more than anybody reads, half the weight

RULE = (
    "by cause, in the order of the table of causes; then the lower faithfulness, the more claims "
    "that no passage supports, the lower recall and the lower reciprocal rank; then the order of "
    "the gold set"
)
_EACH = 50  # the part of the room that each cause has for itself: with ten causes a fifth at most
_LAST = 2.0  # above every value in [0, 1]: without a value after all that have one


def how_many(cases: int) -> int:
    """How many of a run's cases its page holds in full: all, or those that are worst.

    Examples
    --------
    >>> how_many(10_000), how_many(10_001)
    (10000, 5000)
    """
    return cases if cases <= MOST_WHOLE else WORST


def cutoff(run: Run) -> int:
    """The cutoff k of `run`, from 1; 5, as `misslink evaluate` has it, where it tells none."""
    for value in (run.summary.get("k"), run.manifest.get("k")):
        if isinstance(value, int) and value > 0:
            return value
    return 5


def of_each(most: int) -> int:
    """Of how many cases of each cause there is room among `most` in any case.

    Examples
    --------
    >>> of_each(5_000), of_each(10)
    (100, 0)
    """
    return most // _EACH


def worst(run: Run, most: int) -> tuple[int, ...]:
    """The numbers of the worst cases of `run`, the worst first.

    Parameters
    ----------
    run : Run
    most : int
        How many, 0 or more.

    Returns
    -------
    tuple of int
        The first of `worst_first`; where these would be of one cause or two, the worst of each
        other cause take the last places, `of_each` of them, so that every cause that the page
        counts has cases behind it.
    """
    order = worst_first(run)
    if most >= len(order):
        return order
    causes = {link.case_id: link.cause for link in run.links}
    room = dict.fromkeys([*CAUSES, ""], of_each(most))
    chosen = set[int]()
    for number in order:
        cause = causes.get(run.cases[number - 1].id, "")
        if room[cause]:
            room[cause] -= 1
            chosen.add(number)
    others = (number for number in order if number not in chosen)
    chosen.update(islice(others, most - len(chosen)))
    return tuple(number for number in order if number in chosen)


def worst_first(run: Run) -> tuple[int, ...]:
    """The numbers of all cases of `run`, their places in the gold set from 1, the worst first.

    Parameters
    ----------
    run : Run
        Any; one without cases has none.

    Returns
    -------
    tuple of int
        Worst is by cause, in the order of `misslink.types.Cause`, so that what is fine is last
        but for cases that no link speaks of; then by the lower faithfulness (the share of claims
        that are supported); then by the more claims that are not; then by the lower recall at the
        run's cutoff; then by the lower reciprocal rank; then by place in the gold set. What has no
        value comes after all that have one. The order depends on the run alone.
    """
    causes = {link.case_id: link.cause for link in run.links}
    severity = {cause: place for place, cause in enumerate(CAUSES)}
    faithful = [one for one in run.verdicts if one.metric == "faithfulness"]
    values = {one.case_id: one.value for one in faithful if one.value is not None}
    unfaithful = {
        one.case_id: sum(claim.support != "supported" for claim in one.claims) for one in faithful
    }
    ranks = _rank_values(run)

    def badness(number: int) -> tuple[float, ...]:
        one = run.cases[number - 1].id
        return (
            severity.get(causes.get(one, ""), len(severity)),
            values.get(one, _LAST),
            -unfaithful.get(one, 0),
            *(_LAST if (value := of.get(one)) is None else value for of in ranks),
        )

    return tuple(sorted(range(1, len(run.cases) + 1), key=badness))


def _rank_values(run: Run) -> tuple[Mapping[str, float | None], ...]:
    """Recall at the cutoff and the reciprocal rank, by case; of a repeated id the last counts."""
    from misslink.retrieval import score  # brings numpy

    cases = {case.id: case for case in run.cases}
    traces = {trace.case_id: trace for trace in run.traces}
    names = [f"recall@{cutoff(run)}", "mrr"]
    return tuple(score([*cases.values()], [*traces.values()], names).values())
