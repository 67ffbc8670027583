"""What asking in batches would save, before anything is submitted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from misslink.judging.batches.draft import MOST_BYTES, MOST_QUESTIONS
from misslink.judging.batches.judge import InBatches
from misslink.judging.protocol import Ask

__all__ = ["Saving", "Sizes", "saving"]


@dataclass(frozen=True)
class Saving:
    """What of a run would go out in batches, and what that saves.

    Parameters
    ----------
    questions : int
        That would go out in batches. One more is put live where nothing is known of the server.
    submitted : int
        How many of them are out already, in batches whose answers are not fetched.
    batches : int
        How many batches would be submitted, at least: what a reply leads to goes out in further
        ones.
    bytes : int
        Of their files together.
    price : float
        What a token costs in a batch, as a share of what it costs live.
    cost : float or None
        Of all calls, those of batches at their price; None without prices.
    saving : float or None
        How much less that is than live.
    """

    questions: int
    submitted: int
    batches: int
    bytes: int
    price: float
    cost: float | None
    saving: float | None


class Sizes:
    """How many questions would be asked, how many of them are out, and how long a sample is.

    Parameters
    ----------
    judge : InBatches
    """

    def __init__(self, judge: InBatches) -> None:
        self.judge = judge
        self.submitted = 0

    def count(self, ask: Ask) -> None:
        """Count a question that the ledger does not answer."""
        self.submitted += self.judge.is_out(ask)

    def bytes(self, calls: int, sample: Iterable[Ask]) -> int:
        """How long the lines of so many questions are, by the mean of a sample of them."""
        lengths = [self.judge.line_bytes(ask) for ask in sample]
        return round(calls * sum(lengths) / len(lengths)) if lengths else 0


def saving(sizes: Sizes, calls: int, size: int, cost: float | None) -> Saving:
    """Return what a run would save.

    Parameters
    ----------
    sizes : Sizes
    calls : int
        Questions that the ledger does not answer.
    size : int
        Bytes of their lines.
    cost : float or None
        What they cost live.
    """
    judge = sizes.judge
    first = int(calls > sizes.submitted and not judge.settled)  # is put live
    questions = calls - first
    share_out = questions / calls if calls else 0.0
    saved = None if cost is None else cost * share_out * (1 - judge.share)
    fresh = questions - sizes.submitted
    size = round(size * fresh / calls) if calls else 0
    return Saving(
        questions=questions,
        submitted=sizes.submitted,
        batches=max(-(-fresh // MOST_QUESTIONS), -(-size // MOST_BYTES)),
        bytes=size,
        price=judge.share,
        cost=None if cost is None or saved is None else cost - saved,
        saving=saved,
    )
