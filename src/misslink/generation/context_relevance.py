"""Context relevance: do the passages help to answer the question?"""

from __future__ import annotations

import math
from typing import Literal

from misslink.generation.relevance import judged_relevance
from misslink.judging.examination import Examination
from misslink.judging.metric import Finding, Subject, failed, skipped
from misslink.judging.protocol import Ask, Reply
from misslink.registry import judged_metrics

__all__ = ["ContextRelevance"]


class ContextRelevance:
    """Share of the passages in the context that the judge calls relevant to the question.

    ``passages`` of the verdict holds 1, 0 or None (the judge left it out) for each; one left out
    is unknown and not in the share. The label is good when any passage is relevant; its
    probability takes the passages as independent. Skipped where no passage reached the context,
    failed where the judge speaks of none.

    Source: Es et al., RAGAS, EACL 2024 (context relevance; there a share of sentences).
    """

    name = "context_relevance"
    level: Literal[2, 3] = 2

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination, of an answer whose passages are known."""
        return subject.grounded

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Count the relevant passages."""
        if not subject.context:
            return skipped("no passage reached the context")
        said = judged_relevance(subject, reply)
        passages = {name: None if known is None else float(known) for name, known in said.items()}
        known = [value for value in passages.values() if value is not None]
        if not known:
            return failed("the judge said nothing of any passage")
        share = sum(known) / len(known)
        return Finding(
            "scored",
            value=share,
            label=share > 0,
            probability=_chance_of_any(reply, len(known)),
            passages=passages,
        )


def _chance_of_any(reply: Reply, count: int) -> float | None:
    """P(some passage is relevant), where the judge gives one for each it spoke of."""
    if not reply.probabilities:
        return None
    said = reply.parsed.passages if isinstance(reply.parsed, Examination) else ()
    chances = [reply.chance(f"passages.{place}.relevant", "true") for place in range(len(said))]
    known = [chance for chance in chances if chance is not None]
    if len(known) != len(chances) or len(known) < count:
        return None
    return 1 - math.prod(1 - chance for chance in known)


judged_metrics.register(ContextRelevance.name)(ContextRelevance())
