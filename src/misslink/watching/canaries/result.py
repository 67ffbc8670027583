"""Whether one canary is healthy, from what the app did for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from misslink.embedding.identity import censored
from misslink.retrieval import why_unmeasured
from misslink.types import Trace, Verdict
from misslink.watching.canaries.relevance import Relevance, best_expected
from misslink.watching.canaries.results import Result, Status

if TYPE_CHECKING:
    from misslink.watching.canaries.canary_set import Canary

__all__ = ["Asked", "result_of"]

_LONGEST = 600  # characters that are said of a canary


@dataclass(frozen=True)
class Asked:
    """A canary that was put to the app: its trace, or why there is none."""

    trace: Trace | None
    status: Status
    problem: str = ""


@dataclass
class _Parts:
    """What was found good, wrong, and not to be told, each in words."""

    good: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    @property
    def healthy(self) -> bool | None:
        return False if self.wrong else None if self.unknown else True

    @property
    def said(self) -> str:
        return "; ".join(self.wrong or self.unknown or self.good)


def result_of(
    canary: Canary,
    asked: Asked,
    found: float | None,
    relevance: Relevance | None,
    verdict: Verdict | None,
    k: int,
) -> Result:
    """Say whether a canary is healthy, and why.

    It is where an expected passage is among the first `k`, the best of them reaches the least
    relevance that the canary wants, and the answer is right where it was judged. One part that is
    wrong makes it ill; otherwise one that was not measured leaves it open.

    Parameters
    ----------
    canary : Canary
    asked : Asked
    found : float or None
        Share of its expected passages within `k`; None where they could not be looked for.
    relevance : Relevance or None
        Of the best of them; None where there is none.
    verdict : Verdict or None
        On the answer; None where nobody judged it.
    k : int
    """
    trace = asked.trace
    if asked.status != "answered" or trace is None:
        return Result(canary.id, canary.owner, asked.status, None, asked.problem)
    parts = _Parts()
    best = best_expected(canary, trace, k)
    rank = best[0] if best else None
    if canary.expects_passages:
        _retrieved(parts, trace, found, rank, k)
    if rank is not None and canary.min_relevance is not None:
        _relevant(parts, canary.min_relevance, relevance)
    right = verdict.label if verdict and verdict.status == "scored" else None
    if canary.expects_answer and (verdict or not canary.expects_passages):
        _judged(parts, right, verdict)
    return Result(
        canary=canary.id,
        owner=canary.owner,
        status="answered",
        healthy=parts.healthy,
        said=censored(parts.said)[:_LONGEST],
        rank=rank,
        found=found,
        score=relevance.value if relevance else None,
        right=right,
        latency_s=trace.latency_s,
    )


def _retrieved(parts: _Parts, trace: Trace, found: float | None, rank: int | None, k: int) -> None:
    unseen = why_unmeasured(trace)
    if unseen or found is None:
        parts.unknown.append(unseen or "no retrieved passage has a text in which to look")
    elif rank is None:
        parts.wrong.append(f"no expected passage is among the first {k}")
    else:
        parts.good.append(f"the first expected passage is at rank {rank}")


def _relevant(parts: _Parts, least: float, relevance: Relevance | None) -> None:
    value = relevance.value if relevance else None
    if value is None:
        why = relevance.reason if relevance else None
        parts.unknown.append(why or "the relevance of its passage was not measured")
    elif value < least:
        parts.wrong.append(
            f"the best expected passage has a relevance of {value:.3g}, below {least:g}"
        )


def _judged(parts: _Parts, right: bool | None, verdict: Verdict | None) -> None:
    why = _because(verdict.reason if verdict else None)
    if right is None:
        parts.unknown.append(f"the answer was not judged{why}")
    elif right:
        parts.good.append("the answer is right")
    else:
        parts.wrong.append(f"the answer is wrong{why}")


def _because(reason: str | None) -> str:
    return f": {reason}" if reason else ""
