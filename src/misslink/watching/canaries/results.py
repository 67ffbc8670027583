"""What one run saw of each canary, and the figures that are made of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from misslink.types import Estimate

__all__ = ["Degraded", "Figures", "Result", "degraded", "figures", "plain_result"]

Status = Literal["answered", "failed", "hung", "not_asked"]

_LOOKED_BACK = 10  # comparable runs that say what is usual for a canary
_TAIL = 0.95


@dataclass(frozen=True)
class Result:
    """What one run saw of one canary.

    Parameters
    ----------
    canary : str
        Its id.
    owner : str or None
    status : {'answered', 'failed', 'hung', 'not_asked'}
        Whether the app answered, raised, did not end in its time, or was not asked because the
        run's time was up.
    healthy : bool or None
        An expected passage is within k, its relevance reaches the least that the canary wants,
        and the answer is right where it was judged. None: part of that was not measured.
    said : str
        Why it is healthy, is not, or cannot be told.
    rank : int or None
        Of the first expected passage within k, from 1.
    found : float or None
        Share of the expected passages within k.
    score : float or None
        Relevance of the best expected passage within k.
    right : bool or None
        Whether the answer is right. None: not judged.
    latency_s : float or None
        Of an answer.
    """

    canary: str
    owner: str | None
    status: Status
    healthy: bool | None
    said: str
    rank: int | None = None
    found: float | None = None
    score: float | None = None
    right: bool | None = None
    latency_s: float | None = None

    @property
    def answered(self) -> bool:
        """Whether the app gave an answer, or passages, in its time."""
        return self.status == "answered"


@dataclass(frozen=True)
class Figures:
    """The figures of one run.

    Parameters
    ----------
    health : Estimate
        Share of the measured canaries that are healthy.
    coverage : Estimate
        Mean share of expected passages within k, over the canaries that expect some.
    top_score : Estimate
        Mean relevance of the best expected passage within k, where there is one.
    answered : Estimate
        Share of all canaries for which the app answered in its time.
    latency : mapping
        ``median`` and ``p95`` in seconds (None without an answer), and ``n``.
    """

    health: Estimate
    coverage: Estimate
    top_score: Estimate
    answered: Estimate
    latency: Mapping[str, Any]

    @property
    def values(self) -> dict[str, float | None]:
        """What the control charts watch, by measure."""
        return {
            "health": self.health.value,
            "coverage": self.coverage.value,
            "top_score": self.top_score.value,
            "latency_s": self.latency["median"],
            "errors": None if self.answered.value is None else 1 - self.answered.value,
        }


@dataclass(frozen=True)
class Degraded:
    """A canary that is not healthy any more.

    Parameters
    ----------
    id : str
    owner : str or None
    before, now : str
        What was said of it when it was last healthy, and what is said now.
    """

    id: str
    owner: str | None
    before: str
    now: str


def figures(results: Sequence[Result], *, seed: int = 0) -> Figures:
    """The health of a run, from its results.

    Health is the share of canaries that are healthy among those of which that was measured: an
    app that hangs or fails is counted by ``answered``, and is no 0 here.

    Parameters
    ----------
    results : sequence of Result
        Of one run; none gives estimates that are missing.
    seed : int
        Of the intervals that are drawn.
    """
    from misslink.stats import mean, proportion

    measured = [one.healthy for one in results if one.healthy is not None]
    found = [one.found for one in results if one.found is not None]
    scores = [one.score for one in results if one.score is not None]
    times = sorted(one.latency_s for one in results if one.latency_s is not None)
    none = "the app answered no question whose passages could be looked for"
    return Figures(
        health=(
            proportion(sum(measured), len(measured))
            if measured
            else Estimate.missing(_why_no_health(results))
        ),
        coverage=mean(found, seed=seed) if found else Estimate.missing(none),
        top_score=(
            mean(scores, seed=seed, bounds=None)
            if scores
            else Estimate.missing("no expected passage with a relevance was within k")
        ),
        answered=(
            proportion(sum(one.answered for one in results), len(results))
            if results
            else Estimate.missing("there is no canary")
        ),
        latency={"median": _quantile(times, 0.5), "p95": _quantile(times, _TAIL), "n": len(times)},
    )


def degraded(
    results: Sequence[Result], history: Mapping[str, Sequence[Result]]
) -> tuple[Degraded, ...]:
    """The canaries that are not healthy now and were, or usually are.

    Parameters
    ----------
    results : sequence of Result
        Of this run.
    history : mapping of str to sequence of Result
        Canary id to its results in comparable runs before this one, the latest first. Results in
        which its health was not measured do not count.

    Returns
    -------
    tuple of Degraded
        In the order of the results. A canary whose health was not measured now is not among them.
    """
    lost = []
    for one in results:
        known = [old for old in history.get(one.canary, ()) if old.healthy is not None]
        known = known[:_LOOKED_BACK]
        healthy = [old for old in known if old.healthy]
        was = bool(known) and (known[0].healthy or 2 * len(healthy) > len(known))
        if one.healthy is False and was:
            lost.append(Degraded(one.canary, one.owner, healthy[0].said, one.said))
    return tuple(lost)


def plain_result(result: Result) -> dict[str, Any]:
    """A result as JSON values; ``Result(**plain)`` is the same again."""
    return asdict(result)


def _why_no_health(results: Sequence[Result]) -> str:
    if not results:
        return "there is no canary"
    first = next((one.said for one in results), "")
    return f"the health of no canary was measured; of the first: {first}"


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    """The linear quantile of sorted values, as NumPy's default."""
    if not ordered:
        return None
    at = share * (len(ordered) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])
