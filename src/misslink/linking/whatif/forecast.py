"""How many unfaithful answers an option would avoid, from what misses and hits go with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from misslink.linking.whatif.today import Today, Tried
from misslink.types import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Change", "Table", "avoided", "changes", "confirmed_share"]

_DRAWS = 20_000
_PRIOR = 0.75  # cases added to each cell, as misslink.stats.attributable_fraction does
_LEVEL = 0.95


@dataclass(frozen=True)
class Change:
    """A case that would turn from a miss into a hit, or the other way round.

    ``place`` is that of the case in the run; ``bad`` whether its answer is unfaithful today, None
    where nobody judged it.
    """

    place: int
    mended: bool
    bad: bool | None


@dataclass(frozen=True)
class Table:
    """Cases by retrieval and answer, as ``summary.json`` counts them."""

    miss_bad: int
    miss_good: int
    hit_bad: int
    hit_good: int

    @classmethod
    def of(cls, today: Today) -> Table:
        """Count a run's links."""
        judged = [
            (link.retrieval == "miss", _bad(link.answer)) for link in today.links if _in(link)
        ]
        cells = [judged.count((miss, bad)) for miss in (True, False) for bad in (True, False)]
        return cls(*cells)

    @property
    def n(self) -> int:
        """All cases."""
        return self.miss_bad + self.miss_good + self.hit_bad + self.hit_good

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


def changes(today: Today, tried: Tried) -> tuple[Change, ...]:
    """The cases that an option turns from a miss into a hit, and from a hit into a miss.

    A needed passage that the retriever gives today and the app does not put into the prompt is no
    miss that another retriever mends.
    """
    before = Tried(today.cases, today.traces, today.width).misses()
    found = []
    for place, (link, was, now) in enumerate(zip(today.links, before, tried.misses(), strict=True)):
        if was is None or now is None or was == now or was != (link.retrieval == "miss"):
            continue
        found.append(Change(place, mended=was, bad=_bad(link.answer)))
    return tuple(found)


def avoided(
    table: Table, changed: Sequence[Change], *, confirmed: Estimate | None = None, seed: int = 0
) -> Estimate:
    """Unfaithful answers that there would be fewer, of those of the run.

    Parameters
    ----------
    table : Table
        Of the run.
    changed : sequence of Change
        Those without a judged answer do not count.
    confirmed : Estimate or None
        The share of unfaithful answers after a miss that a replay mended by handing over the
        missed passage. None: association must do.
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
    miss that of its misses, whatever its answer is today. With a confirmed share c, an unfaithful
    answer is mended with probability c, a faithful one spoilt with c times the risk of the misses,
    and no other changes. The interval holds the middle 95 % of 20,000 draws: of the risks (or the
    share) from their posterior, with 0.75 cases added to each cell, and of the outcome of each case
    that changes from the binomial distribution.
    """
    import numpy as np

    judged = [one for one in changed if one.bad is not None]
    method = "replayed share, binomial" if confirmed else "posterior risks, binomial"
    if lacks := table.lacks:
        return Estimate.missing(lacks, n=table.n, method=method)
    mended = [one.bad for one in judged if one.mended]
    spoilt = [one.bad for one in judged if not one.mended]
    generator = np.random.default_rng(seed)
    at_miss, at_hit = table.drawn(generator)
    risk_miss, risk_hit = table.risks
    if confirmed is not None and confirmed.value is not None:
        good_lost = spoilt.count(False)
        n, share = confirmed.n, confirmed.value
        shares = generator.beta(share * n + _PRIOR, (1 - share) * n + _PRIOR, _DRAWS)
        value = share * sum(map(bool, mended)) - share * risk_miss * good_lost
        drawn = generator.binomial(sum(map(bool, mended)), shares)
        drawn = drawn - generator.binomial(good_lost, shares * at_miss)
    else:
        bad_now = sum(map(bool, [*mended, *spoilt]))
        value = bad_now - risk_hit * len(mended) - risk_miss * len(spoilt)
        drawn = bad_now - generator.binomial(len(mended), at_hit)
        drawn = drawn - generator.binomial(len(spoilt), at_miss)
    tails = [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2]
    low, high = map(float, np.quantile(drawn, tails))
    return Estimate(
        value=value, low=min(low, value), high=max(high, value), n=table.n, method=method
    )


def risk_after(table: Table, change: Change, confirmed: Estimate | None) -> float:
    """P(unfaithful) of a case under the option, as `avoided` takes it."""
    risk_miss, risk_hit = table.risks
    if confirmed is None or confirmed.value is None:
        return risk_hit if change.mended else risk_miss
    if change.mended:
        return (1 - confirmed.value) if change.bad else 0.0
    return 1.0 if change.bad else confirmed.value * risk_miss


def confirmed_share(replay: dict[str, Any] | None) -> Estimate | None:
    """The share of retrieval misses that a run's replay confirmed; None where there is none."""
    causes = (replay or {}).get("causes")
    found = causes.get("retrieval_miss") if isinstance(causes, dict) else None
    share = found.get("confirmed") if isinstance(found, dict) else None
    if not isinstance(share, dict) or share.get("value") is None:
        return None
    return Estimate.model_validate(share)


def _in(link: Any) -> bool:
    return link.retrieval not in {"none_needed", "unknown"} and _bad(link.answer) is not None


def _bad(answer: str) -> bool | None:
    return {"faithful": False, "unfaithful": True}.get(answer)
