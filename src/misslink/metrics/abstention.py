"""Abstention: does the app decline exactly when there is no answer?"""

from __future__ import annotations

from typing import Literal

from misslink.judge.judged_metric import Finding, Subject, parsed_examination, skipped_finding
from misslink.judge.protocol import Ask, Reply
from misslink.registry import judged_metrics


class Abstention:
    """1 where the app answered an answerable question or declined an unanswerable one, else 0.

    A case that lists relevant passages counts as answerable unless it says otherwise. The label is
    good at 1; its probability is that of the right decision, to decline or to answer. The reason
    names the outcome: right, over-refused, or should have abstained. ``parts`` holds
    ``over_refused`` for answerable questions and ``should_have_abstained`` for unanswerable ones, 1
    or 0; the other one is None. Their means are the rates of the two mistakes. Skipped where the
    gold set does not say which decision is right; ``parts['declined']`` has a value even then.

    Source: Rajpurkar et al., Know What You Don't Know (SQuAD 2.0), ACL 2018 (questions without an
    answer, where to decline is right).
    """

    name = "abstention"
    level: Literal[2, 3] = 3

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination."""
        return subject.examination

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Compare what the app did with what it should have done."""
        examination = parsed_examination(reply)
        declined = examination.response == "declines"
        expected = subject.expects_answer
        parts = {
            "declined": float(declined),
            "over_refused": float(declined) if expected is True else None,
            "should_have_abstained": float(not declined) if expected is False else None,
        }
        if expected is None:
            return skipped_finding(
                "the gold set does not say whether there is an answer", parts=parts
            )
        right = declined != expected
        outcome = "over-refused" if declined else "should have abstained"
        return Finding(
            "scored",
            value=float(right),
            label=right,
            probability=_correct_probability(reply, expected=expected),
            parts=parts,
            reason=f"{'right' if right else outcome}: {'declined' if declined else 'answered'}, "
            f"and the question has {'an' if expected else 'no'} answer",
        )


def _correct_probability(reply: Reply, *, expected: bool) -> float | None:
    """P(the app did right); None where the judge gave no probability of declining."""
    if "declines" not in reply.probabilities.get("response", {}):
        return None  # the heuristic judge weighs the other labels only
    declines = reply.chance("response", "declines")
    if declines is None:
        return None
    return 1 - declines if expected else declines


judged_metrics.register(Abstention.name)(Abstention())
