"""Context relevance: do the passages help to answer the question?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from misslink.judge.judged_metric import Finding, Subject, failed_finding, skipped_finding
from misslink.judge.protocol import Ask, Examination, Reply
from misslink.registry import judged_metrics
from misslink.retrieval import case_needs, relevant_ids


def context_labels(subject: Subject, reply: Reply) -> Mapping[str, bool | None]:
    """Return whether each passage of the context is relevant, by its id; None where unknown.

    The gold set decides where it lists anything: every passage of any sufficient set is relevant,
    all others are not. Where it lists nothing, the judge decides.
    """
    if case_needs(subject.case, subject.trace.retrieved):
        listed = relevant_ids(subject.case, subject.context)
        return {passage.id: passage.id in listed for passage in subject.context}
    return judged_labels(subject, reply)


def judged_labels(subject: Subject, reply: Reply) -> Mapping[str, bool | None]:
    """What the judge calls relevant, by passage id; None for a passage that it left out."""
    examined = reply.parsed.passages if isinstance(reply.parsed, Examination) else ()
    relevant = {
        item.passage: item.relevant
        for place, item in enumerate(examined)
        if not reply.refuses(f"passages.{place}.relevant")
    }
    return {
        passage.id: relevant.get(number) for number, passage in enumerate(subject.context, start=1)
    }


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
            return skipped_finding("no passage reached the context")
        labels = judged_labels(subject, reply)
        passages = {
            name: None if values is None else float(values) for name, values in labels.items()
        }
        values = [value for value in passages.values() if value is not None]
        if not values:
            return failed_finding("the judge said nothing of any passage")
        share = sum(values) / len(values)
        return Finding(
            "scored",
            value=share,
            label=share > 0,
            probability=_any_relevant_probability(reply, len(values)),
            passages=passages,
        )


def _any_relevant_probability(reply: Reply, count: int) -> float | None:
    """P(some passage is relevant), where the judge gives one for each it spoke of."""
    if not reply.probabilities:
        return None
    examined = reply.parsed.passages if isinstance(reply.parsed, Examination) else ()
    chances = [reply.chance(f"passages.{place}.relevant", "true") for place in range(len(examined))]
    probabilities = [chance for chance in chances if chance is not None]
    if len(probabilities) != len(chances) or len(probabilities) < count:
        return None
    return 1 - math.prod(1 - chance for chance in probabilities)


judged_metrics.register(ContextRelevance.name)(ContextRelevance())
