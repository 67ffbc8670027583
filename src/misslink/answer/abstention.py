"""Abstention: does the app decline exactly when there is nothing to answer from?"""

from __future__ import annotations

from typing import Literal

from misslink.judging.metric import Finding, Subject, said_of, skipped
from misslink.judging.protocol import Ask, Reply
from misslink.registry import judged_metrics

__all__ = ["Abstention"]


class Abstention:
    """1 where the app answered an answerable question or declined an unanswerable one, else 0.

    A case that lists relevant passages counts as answerable unless it says otherwise. The label is
    good at 1, its probability that of having declined, or not, as is right. The reason names
    the outcome: right, over-refused, or should have abstained. ``parts`` holds
    ``over_refused`` for answerable questions and ``should_have_abstained`` for unanswerable ones,
    1 or 0, so that their means are the rates of the two mistakes; the other one is None. Skipped
    where the gold set does not say which was right; whether the answer declines stands in
    ``parts['declined']`` all the same.

    Source: Rajpurkar et al., Know What You Don't Know (SQuAD 2.0), ACL 2018 (questions without an
    answer, where to decline is right).
    """

    name = "abstention"
    level: Literal[2, 3] = 3

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination."""
        return subject.examination

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Hold what the app did against what it should have done."""
        said = said_of(reply)
        declined = said.response == "declines"
        expected = subject.expects_answer
        parts = {
            "declined": float(declined),
            "over_refused": float(declined) if expected is True else None,
            "should_have_abstained": float(not declined) if expected is False else None,
        }
        if expected is None:
            return skipped("the gold set does not say whether there is an answer", parts=parts)
        right = declined != expected
        outcome = "over-refused" if declined else "should have abstained"
        return Finding(
            "scored",
            value=float(right),
            label=right,
            probability=_chance(reply, expected=expected),
            parts=parts,
            reason=f"{'right' if right else outcome}: {'declined' if declined else 'answered'}, "
            f"and the question has {'an' if expected else 'no'} answer",
        )


def _chance(reply: Reply, *, expected: bool) -> float | None:
    """P(the app did right); None where the judge gave no probability of declining."""
    if "declines" not in reply.probabilities.get("response", {}):
        return None  # the embedded judge weighs the other labels only
    declines = reply.chance("response", "declines")
    if declines is None:
        return None
    return 1 - declines if expected else declines


judged_metrics.register(Abstention.name)(Abstention())
