"""Abstention: does the app decline exactly when there is nothing to answer from?"""

from __future__ import annotations

from typing import Literal

from misslink.judging.metric import Finding, Subject, said_of, skipped
from misslink.judging.protocol import Ask, Reply
from misslink.registry import judged_metrics

__all__ = ["Abstention"]


class Abstention:
    """1 where the app answered an answerable question or declined an unanswerable one, else 0.

    A case that lists relevant passages counts as answerable unless it says otherwise. Whether the
    answer declines stands in ``parts['declined']``, also where the gold set does not say which was
    right and the verdict has no value.
    """

    name = "abstention"
    level: Literal[2, 3] = 3

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination."""
        return subject.examination

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Hold what the app did against what it should have done."""
        declined = said_of(reply).response == "declines"
        parts = {"declined": float(declined)}
        expected = subject.case.expects_answer
        if expected is None:
            return skipped("the gold set does not say whether there is an answer", parts=parts)
        right = declined != expected
        return Finding(
            "scored",
            value=float(right),
            label=right,
            parts=parts,
            reason=f"{'declined' if declined else 'answered'}, "
            f"and the question has {'an' if expected else 'no'} answer",
        )


judged_metrics.register(Abstention.name)(Abstention())
