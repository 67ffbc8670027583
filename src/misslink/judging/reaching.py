"""Between the ledger and the judge: on what terms a question reaches it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from misslink.judging.protocol import Judge
from misslink.judging.terms import Terms
from misslink.judging.wrappers.budget import Budget
from misslink.judging.wrappers.throttle import Throttle

__all__ = ["Asked", "budgeted", "throttled", "within_limits"]


@dataclass(frozen=True)
class Asked:
    """A judge that is about to be asked, and on what terms.

    Parameters
    ----------
    judge : Judge
        The judge itself, with nothing around it.
    spec : str or None
        What names it. None: it was given as an object.
    terms : Terms
    concurrency : int
        How many questions it is asked at a time.
    ledger : Path or None
        The file that keeps its replies.
    """

    judge: Judge
    spec: str | None
    terms: Terms
    concurrency: int
    ledger: Path | None


def within_limits(asked: Asked) -> Judge:
    """Return the judge with its budget and its throttle around it."""
    return throttled(budgeted(asked), asked)


def budgeted(asked: Asked) -> Budget:
    """Return the judge with its budget around it."""
    terms = asked.terms
    return Budget(
        asked.judge, max_calls=terms.max_calls, max_cost=terms.max_cost, price=terms.price
    )


def throttled(judge: Judge, asked: Asked) -> Throttle:
    """Return a judge with the throttle of these terms around it."""
    terms = asked.terms
    return Throttle(
        judge,
        asked.concurrency,
        timeout=terms.timeout,
        retries=terms.retries,
        rpm=terms.rpm,
        tpm=terms.tpm,
        deadline=terms.deadline,
    )
