"""The causal attributable fraction and the document in ``replay.json``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from misslink.io.manifest import display_path
from misslink.linking.replay.outcomes import (
    GOOD_MISS,
    INTERVENTIONS_BY_FAILURE,
    ReplayOutcome,
    ReplayRecord,
)
from misslink.linking.replay.rerun import Rerunner
from misslink.stats import attributable_fraction, proportion
from misslink.types import Estimate, Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_DRAWS = 20_000
# Replayed misses below which there is no fraction. With 10 of a run of 100 cases of which 30 are
# misses the interval is 63 points wide; with 6 it is 83, with 4 115 and with 2 178, wider than all
# that the fraction could say (medians of 120 runs simulated as in test_causal_fraction.py).
MIN_REPLAYED = 10
_METHOD = "replay, dirichlet"
_TABLE_PRIOR = 0.75  # as misslink.stats.association, whose table this is
# Cases added to the outcomes of the pairs (both bad, only unchanged, only with the passage,
# neither), see Notes of causal_fraction.
_PAIR_PRIOR = (0.125, 0.25, 0.25, 0.125)

OutcomePair = tuple[bool, bool]


def causal_fraction(
    table: tuple[int, int, int, int],
    bad_pairs: Sequence[OutcomePair],
    good_pairs: Sequence[OutcomePair],
    *,
    seed: int = 0,
    level: float = 0.95,
) -> Estimate:
    """Estimate the causal attributable fraction, (P(bad) - P(bad | do(hit))) / P(bad).

    Misses with a bad and with a good answer were sampled separately, because injected passages can
    fix a bad answer or spoil a good one. Both samples are weighted back to the run. The comparison
    is between two new generations, one of them with the missed passage, so that an answer that
    flips by chance is no evidence.

    Parameters
    ----------
    table : four int
        Cases of the run: miss and bad, miss and good, hit and bad, hit and good.
    bad_pairs, good_pairs : sequence of (bool, bool)
        Replayed misses with a bad, or a good, answer: whether it was bad when rerun unchanged, and
        whether it was bad with the missed passage first. If both answers are identical, both values
        are those of the first.
    seed : int
        Random seed for the drawn tables.
    level : float
        Confidence level of the interval, in (0, 1).

    Returns
    -------
    Estimate
        n is the number of replayed misses. Missing if there is nothing to replay, if the run has a
        kind of miss that was not replayed, if no answer was bad, or if fewer than ``MIN_REPLAYED``
        misses were replayed.

    Raises
    ------
    ValueError
        A count is negative.

    Notes
    -----
    The interval is the middle `level` of 20,000 draws, extended to include the value. The table is
    drawn from its Dirichlet posterior. The four outcomes of each kind of pair are drawn from
    theirs, with 0.25 cases added where the two answers differ and 0.125 where they do not.
    ``tests/linking/replay/test_causal_fraction.py`` measures the coverage: eight kinds of runs of 40 to
    300 cases, 1,600 runs of each, with 10 to 40 replays of each kind of miss, flaky ones among
    them. It is 95% on average and 93% at worst; with 0.25 cases added everywhere the worst is 92%.

    References
    ----------
    Pearl (2009), Causality, chapter 9, on attribution. Neyman (1934), On the two different
    aspects of the representative method, on stratified samples.

    Examples
    --------
    Replay fixed all 10 bad misses and spoiled no good one; they are half of the bad answers.

    >>> both = causal_fraction((10, 5, 10, 75), [(True, False)] * 10, [(False, False)] * 5)
    >>> both.value
    0.5
    """
    import numpy as np

    if min(table) < 0:
        raise ValueError(f"a count is negative: {table}")
    strata = ((table[0], bad_pairs), (table[1], good_pairs))
    n = len(bad_pairs) + len(good_pairs)
    if not table[0] + table[1]:
        return Estimate.missing("no case is a miss with a verdict, so nothing can be injected")
    for (count, pairs), name in zip(strata, ("bad", "good"), strict=True):
        if count and not pairs:
            reason = f"none of the {count} misses with a {name} answer could be replayed"
            return Estimate.missing(reason, n=n, method=_METHOD)
    avoided, bad = 0.0, float(table[2])
    for count, pairs in strata:
        if count:
            share = count / len(pairs)
            avoided += share * sum(int(unchanged) - int(first) for unchanged, first in pairs)
            bad += share * sum(unchanged for unchanged, _ in pairs)
    if not bad:
        return Estimate.missing("no bad answer to attribute", n=n, method=_METHOD)
    if n < MIN_REPLAYED:
        replayed = "miss was" if n == 1 else "misses were"
        reason = (
            f"{n} {replayed} replayed, and below {MIN_REPLAYED} the fraction says nothing; "
            "replay with a larger --sample, or evaluate more cases"
        )
        return Estimate.missing(reason, n=n, method=_METHOD)
    value = avoided / bad
    low, high = causal_limits(
        table,
        (_count_pairs(bad_pairs), _count_pairs(good_pairs)),
        np.random.default_rng(seed),
        level=level,
        draws=_DRAWS,
    )
    return Estimate(value=value, low=min(low, value), high=max(high, value), n=n, method=_METHOD)


def causal_limits(
    table: Sequence[int],
    pairs: tuple[Sequence[int], Sequence[int]],
    generator: np.random.Generator,
    *,
    level: float,
    draws: int,
    prior: Sequence[float] = _PAIR_PRIOR,
) -> tuple[float, float]:
    """Both ends of the interval.

    Parameters
    ----------
    table : four int
        As of `causal_fraction`.
    pairs : two sequences of four int
        Of bad and of good misses, how often both generations were bad, only the unchanged one,
        only the one with the passage, neither.
    generator : numpy Generator
    level : float
    draws : int
    prior : four float
        Cases added to each of these outcomes.
    """
    import numpy as np

    cells: NDArray[np.float64] = generator.dirichlet(np.add(table, _TABLE_PRIOR), draws)
    avoided, bad = np.zeros(draws), cells[:, 2].copy()
    for stratum in (0, 1):
        drawn = generator.dirichlet(np.add(pairs[stratum], prior), draws)
        avoided += cells[:, stratum] * (drawn[:, 1] - drawn[:, 2])
        bad += cells[:, stratum] * (drawn[:, 0] + drawn[:, 1])
    low, high = np.quantile(avoided / bad, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _count_pairs(pairs: Sequence[OutcomePair]) -> tuple[int, int, int, int]:
    counts = Counter(pairs)
    return counts[True, True], counts[True, False], counts[False, True], counts[False, False]


@dataclass(frozen=True)
class ReplayData:
    """A run, how its answers turned out, and the records of the replayed cases.

    ``otherwise`` says what tells the judging of the replay from that of the run, if anything;
    ``kept`` counts the records that come from earlier replays alone.
    """

    run: Run
    observed: Mapping[str, ReplayOutcome]
    records: Sequence[ReplayRecord]
    again: Rerunner
    sample: int
    seed: int
    otherwise: str | None
    app: str | None
    kept: int


def replay_document(replays: ReplayData) -> dict[str, Any]:
    """Return what ``replay.json`` holds.

    Every share is over the replayed cases of its failure mode: flaky ones and those whose answer stayed
    the same count as not confirmed and as not turned good, and are counted apart.
    """
    run = replays.run
    usable = [record for record in replays.records if record.skipped is None]
    flips = [bool(record.flaky) for record in usable]
    spent = getattr(replays.again.judge, "usage", None)
    usage: dict[str, Any] = spent() if spent else {}
    generations = {"generations": replays.again.generated, "generations_kept": replays.again.reused}
    table = _outcome_table(replays)
    return {
        "run": run.summary.get("run"),
        "app": display_path(replays.app) if replays.app else run.manifest.get("app"),
        "judge": replays.again.judge.name,
        "sample": replays.sample,
        "cases_kept": replays.kept,
        "seed": replays.seed,
        "failures": {
            failure: _failure_document(failure, names, replays, usable)
            for failure, names in INTERVENTIONS_BY_FAILURE.items()
        },
        "flaky": _share_estimate(sum(flips), len(flips)),
        "causal_attributable_fraction": _causal_estimate(replays, usable, table).model_dump(),
        "observed_attributable_fraction": attributable_fraction(
            *table, seed=replays.seed
        ).model_dump(),
        "cases": [record.line() for record in usable],
        "usage": {**usage, **generations},
        "skipped": [
            {"case_id": record.case_id, "failure": record.failure, "reason": record.skipped}
            for record in replays.records
            if record.skipped is not None
        ],
    }


def _failure_document(
    failure: str, names: Sequence[str], replays: ReplayData, usable: Sequence[ReplayRecord]
) -> dict[str, Any]:
    group = [record for record in usable if record.group == failure]
    interventions = {}
    for name in names:
        # A flaky one was not tried further, or proves nothing where it was.
        turned = [False if record.flaky else record.is_fixed(name) for record in group]
        decided = [record for record in turned if record is not None]
        interventions[name] = _share_estimate(sum(decided), len(decided))
    return {
        "cases": sum(link.failure == failure for link in replays.run.links),
        "also": sum(record.failure != failure for record in group),
        "replayed": len(group),
        "flaky": sum(bool(record.flaky) for record in group),
        "same_answer": sum(record.same_answer for record in group),
        "confirmed": _share_estimate(sum(bool(record.confirmed) for record in group), len(group)),
        "interventions": interventions,
    }


def _share_estimate(count: int, n: int) -> dict[str, Any]:
    return (proportion(count, n) if n else Estimate.missing("no case was replayed")).model_dump()


def _outcome_table(replays: ReplayData) -> tuple[int, int, int, int]:
    """Misses and hits with bad and good answers, among cases that need a passage.

    As the table of the link, but that an answer which is wrong is bad too.
    """
    answerable = {case.id for case in replays.run.cases if case.expects_answer is not False}
    counts = Counter(
        (link.retrieval == "miss", replays.observed[link.case_id].bad)
        for link in replays.run.links
        if link.retrieval in {"miss", "partial", "hit"} and link.case_id in answerable
    )
    return counts[True, True], counts[True, False], counts[False, True], counts[False, False]


def _causal_estimate(
    replays: ReplayData, usable: Sequence[ReplayRecord], table: tuple[int, int, int, int]
) -> Estimate:
    if replays.otherwise is not None:
        return Estimate.missing(
            f"{replays.otherwise}; the two cannot be counted together: evaluate the run again, "
            "then replay"
        )
    pairs: dict[bool, list[tuple[bool, bool]]] = {True: [], False: []}
    for record in usable:
        pair = record.pair()
        if pair is not None and record.group in {"retrieval_miss", GOOD_MISS}:
            pairs[record.group == GOOD_MISS].append(pair)
    return causal_fraction(table, pairs[False], pairs[True], seed=replays.seed)
