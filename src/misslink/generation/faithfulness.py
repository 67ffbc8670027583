"""Faithfulness: does the answer say only what its passages say?"""

from __future__ import annotations

from typing import Literal

from misslink.generation.one_word import read_one_word
from misslink.judging.examination import LabelAlone
from misslink.judging.metric import Finding, Subject, said_of, skipped
from misslink.judging.protocol import Ask, Reply
from misslink.registry import judged_metrics

__all__ = ["Faithfulness"]


class Faithfulness:
    """Share of the answer's claims that the passages support, by quotes found in them.

    The label is good when no claim is unsupported or contradicted; its probability is that of the
    least probable claim, where the judge gives them and no quote of its failed: a probability of a
    word that is not believed is none. Skipped for an answer that declines or claims nothing.

    Of a judge that can give one word only, "no" has the value P(yes) where it gives that and 0
    where not, without claims. Its "yes" names no quote, so it is believed only where the embedded
    judge finds every sentence of the answer in the passages; those are then the claims.

    Source: Es et al., RAGAS, EACL 2024 (claims and share); quotes are looked up here besides.
    """

    name = "faithfulness"
    level: Literal[2, 3] = 2
    reads_one_word = True

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination, of an answer whose passages are known."""
        return subject.grounded

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Count the supported claims."""
        if isinstance(reply.parsed, LabelAlone):
            return read_one_word(subject, reply.parsed, reply.chance("supported", "yes"))
        if said_of(reply).response == "declines":
            return skipped("the answer declines")
        claims = subject.claims(reply)
        if not claims:
            return skipped("the answer makes no claim")
        supported = sum(claim.support == "supported" for claim in claims)
        probabilities = [c.probability for c in claims if c.probability is not None]
        return Finding(
            "scored",
            value=supported / len(claims),
            label=supported == len(claims),
            probability=min(probabilities) if len(probabilities) == len(claims) else None,
            claims=claims,
        )


judged_metrics.register(Faithfulness.name)(Faithfulness())
