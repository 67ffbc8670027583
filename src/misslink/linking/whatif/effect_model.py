"""How many unfaithful answers an option would avoid, from replays or from the association."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from misslink.linking.association import count_table, is_unfaithful, table_risk_difference
from misslink.linking.whatif.comparison import OptionResult, RetrievalBaseline
from misslink.render.format import format_share_interval
from misslink.stats import proportion
from misslink.types import Estimate, Link, Run

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


_DRAWS = 20_000
_PRIOR = 0.75  # cases added to each cell, as misslink.stats.attributable_fraction does
_LEVEL = 0.95
# Replayed misses of each kind below which a share is too rough to be better than the association:
# of 10 the posterior's interval of a half is still 60 points wide.
MIN_PAIRS = 10
_UNFAITHFUL_BY_OUTCOME = {"unfaithful": True, "good": False, "wrong": False, "declined": False}


@dataclass(frozen=True)
class MissChange:
    """A case that would turn from a miss into a hit, or the other way round.

    ``place`` is its index in the run; ``bad`` whether its answer is unfaithful in the run, None where it
    was not judged.
    """

    place: int
    mended: bool
    bad: bool | None


class RiskTable(NamedTuple):
    """Cases by retrieval and answer, as ``summary.json`` counts them."""

    miss_bad: int
    miss_good: int
    hit_bad: int
    hit_good: int

    @property
    def n(self) -> int:
        """All cases."""
        return sum(self)

    @property
    def lacks(self) -> str | None:
        """What is missing for a forecast."""
        if not self.n:
            return "no case both needs a passage and has an answer judged faithful or unfaithful"
        if not self.miss_bad + self.miss_good:
            return "no judged answer followed a retrieval miss, so its risk is not known"
        if not self.hit_bad + self.hit_good:
            return "no judged answer followed a retrieval hit, so its risk is not known"
        return None

    @property
    def risks(self) -> tuple[float, float]:
        """P(unfaithful | miss) and P(unfaithful | hit)."""
        return (
            self.miss_bad / (self.miss_bad + self.miss_good),
            self.hit_bad / (self.hit_bad + self.hit_good),
        )

    def drawn(
        self, generator: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Both risks, drawn from the posterior of the table."""
        miss = generator.beta(self.miss_bad + _PRIOR, self.miss_good + _PRIOR, _DRAWS)
        hit = generator.beta(self.hit_bad + _PRIOR, self.hit_good + _PRIOR, _DRAWS)
        return miss, hit


@dataclass(frozen=True)
class ReplayPairs:
    """Misses that were answered again with what they had missed.

    Parameters
    ----------
    bad, good : pair of int
        Of answers that are unfaithful today, and of all others (wrong ones and refusals too): how
        many were unfaithful with the passage, and how many were replayed.
    """

    bad: tuple[int, int]
    good: tuple[int, int]

    @classmethod
    def from_replay(cls, replay: Mapping[str, Any] | None, links: Iterable[Link]) -> ReplayPairs:
        """Count the replayed cases that were misses in the run."""
        missed = {link.case_id for link in links if link.retrieval == "miss"}
        counts = {True: [0, 0], False: [0, 0]}
        for case in (replay or {}).get("cases") or ():
            outcomes = case.get("outcomes") or {}
            today, first = (
                _UNFAITHFUL_BY_OUTCOME.get(outcomes.get(name, "")) for name in ("observed", "first")
            )
            if case.get("case_id") in missed and today is not None and first is not None:
                counts[today][0] += first
                counts[today][1] += 1
        (bad, of_bad), (good, of_good) = counts[True], counts[False]
        return cls((bad, of_bad), (good, of_good))

    @property
    def enough(self) -> bool:
        """Whether there are `MIN_PAIRS` of each kind."""
        return min(self.bad[1], self.good[1]) >= MIN_PAIRS

    @property
    def shares(self) -> tuple[Estimate, Estimate]:
        """P(unfaithful with the passage | unfaithful today) and the same where it is not."""
        still, turned = (proportion(*counts) for counts in (self.bad, self.good))
        return still, turned

    def drawn(
        self, generator: np.random.Generator
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Both shares, drawn from their posteriors."""
        still, turned = (
            generator.beta(count + _PRIOR, n - count + _PRIOR, _DRAWS)
            for count, n in (self.bad, self.good)
        )
        return still, turned


def find_changes(today: RetrievalBaseline, tried: OptionResult) -> tuple[MissChange, ...]:
    """Return the cases that an option turns from a miss into a hit, or from a hit into a miss.

    A relevant passage that is retrieved today and left out of the prompt is not fixed by another
    retriever.
    """
    changes = []
    cases = zip(today.links, today.misses(), tried.misses(), strict=True)
    for place, (link, was, now) in enumerate(cases):
        if was is None or now is None or was == now or was != (link.retrieval == "miss"):
            continue
        changes.append(MissChange(place, mended=was, bad=is_unfaithful(link)))
    return tuple(changes)


def estimate_avoided(
    table: RiskTable,
    changed: Sequence[MissChange],
    *,
    pairs: ReplayPairs | None = None,
    seed: int = 0,
) -> Estimate:
    """Unfaithful answers that there would be fewer, of those of the run.

    Parameters
    ----------
    table : RiskTable
        Of the run.
    changed : sequence of MissChange
        Those without a judged answer do not count.
    pairs : ReplayPairs or None
        What a replay found. None: association must do.
    seed : int
        Of the draws.

    Returns
    -------
    Estimate
        In cases; negative where there would be more. Missing where the table has no misses or no
        hits.

    Notes
    -----
    By association a case that becomes a hit has the risk of the run's hits, and one that becomes a
    miss that of its misses, whatever its answer is today. With a replay a case that becomes a hit
    has the share of replayed misses that were unfaithful with the passage, among those whose
    answer is as its own today; a case that becomes a miss has the same pairs read the other way
    (Bayes' rule, with the risk of the misses). The interval holds the middle 95% of 20,000 draws:
    of the risks and the shares from their posteriors, with 0.75 cases added to each cell, and of
    the outcome of each case that changes from the binomial distribution.
    """
    import numpy as np

    judged = [change for change in changed if change.bad is not None]
    method = "replayed pairs, binomial" if pairs else "posterior risks, binomial"
    if lacks := table.lacks:
        return Estimate.missing(lacks, n=table.n, method=method)
    generator = np.random.default_rng(seed)
    at_miss, at_hit = table.drawn(generator)
    shares = pairs.drawn(generator) if pairs else None
    drawn = np.full(_DRAWS, sum(bool(change.bad) for change in judged))
    for mended in (True, False):
        for bad in (True, False):
            count = sum(change.mended is mended and change.bad is bad for change in judged)
            risk = _changed_risk(mended, bad, at_miss, at_hit, shares)
            drawn = drawn - generator.binomial(count, risk)
    value = float(sum(bool(change.bad) - risk_after(table, change, pairs) for change in judged))
    tails = [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]
    low, high = map(float, np.quantile(drawn, tails))
    return Estimate(
        value=value, low=min(low, value), high=max(high, value), n=table.n, method=method
    )


def risk_after(table: RiskTable, change: MissChange, pairs: ReplayPairs | None) -> float:
    """P(unfaithful) of a case under the option, as `estimate_avoided` takes it."""
    shares = None
    if pairs:
        still, turned = (count / n for count, n in (pairs.bad, pairs.good))
        shares = still, turned
    return _changed_risk(change.mended, bool(change.bad), *table.risks, shares)


_Risk = TypeVar("_Risk", float, "NDArray[np.float64]")


def _changed_risk(
    mended: bool, bad: bool, at_miss: _Risk, at_hit: _Risk, shares: tuple[_Risk, _Risk] | None
) -> _Risk:
    """The risk of a case that changes, from numbers or from draws of them."""
    if shares is None:
        return at_hit if mended else at_miss
    still, turned = shares  # unfaithful with the passage: of unfaithful answers, of the others
    if mended:
        return still if bad else turned
    if not bad:
        still, turned = 1 - still, 1 - turned
    from_bad, from_good = at_miss * still, (1 - at_miss) * turned
    both = from_bad + from_good
    # No replayed miss ended as this hit is: nothing but the risk of misses is known of it.
    return at_miss if isinstance(both, float) and not both else from_bad / both


_ASSOCIATION_NOTE = (
    "The forecast assumes that a fixed miss has the same risk as today's hits. This is an "
    "association, not a cause, and the interval does not include the error of this assumption."
)
_REPLAY_NOTE = (
    "The forecast rests on {n} replayed misses: with the missed passage {still} of the unfaithful "
    "answers stayed unfaithful, and {turned} of the others became it."
)
_SMALL_REPLAY_NOTE = (
    f"The replay was not used: it takes {MIN_PAIRS} replayed misses with an unfaithful answer "
    "and as many with another, and it has {bad} and {good}."
)
_NO_ASSOCIATION_NOTE = (
    "In this run misses do not go with more unfaithful answers, so the forecast says little."
)


@dataclass(frozen=True)
class EffectModel:
    """What a forecast is made from.

    Parameters
    ----------
    table : RiskTable
    pairs : ReplayPairs or None
        None: the run was not replayed, or too few of its misses were.
    notes : sequence of str
        How far the forecast is to be believed.
    """

    table: RiskTable
    pairs: ReplayPairs | None
    notes: tuple[str, ...]

    @classmethod
    def from_run(cls, run: Run, today: RetrievalBaseline) -> EffectModel:
        """The replay where it is large enough, else the association of the run."""
        table = RiskTable(*count_table(today.links, is_unfaithful)[0])
        pairs = ReplayPairs.from_replay(run.replay, run.links)
        if pairs.enough:
            still, turned = map(format_share_interval, pairs.shares)
            n = pairs.bad[1] + pairs.good[1]
            return cls(table, pairs, (_REPLAY_NOTE.format(n=n, still=still, turned=turned),))
        notes = [_ASSOCIATION_NOTE]
        if run.replay:
            notes.append(_SMALL_REPLAY_NOTE.format(bad=pairs.bad[1], good=pairs.good[1]))
        difference = table_risk_difference(*table)
        if difference.low is not None and difference.low <= 0:
            notes.append(_NO_ASSOCIATION_NOTE)
        return cls(table, None, tuple(notes))
