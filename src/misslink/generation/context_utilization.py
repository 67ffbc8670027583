"""Context utilization: does the answer rest on the passages it should rest on?"""

from __future__ import annotations

from typing import Literal

from misslink.judging.metric import Finding, Subject, said_of, skipped
from misslink.judging.protocol import Ask, Reply
from misslink.registry import judged_metrics
from misslink.retrieval import find, needs, satisfies

__all__ = ["ContextUtilization"]


class ContextUtilization:
    """Share of the relevant passages in the context that some supported claim rests on.

    Relevant is what the gold set lists; where it lists nothing, what the judge calls relevant.
    Several passages that carry the same evidence count once, used if any of them is. A passage
    counts as used when a supported claim's quote stands in it.
    """

    name = "context_utilization"
    level: Literal[2, 3] = 2

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination, of an answer whose passages are known."""
        return subject.grounded

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Count the relevant passages that are used."""
        used = {
            evidence.passage_id
            for claim in subject.claims(reply)
            if claim.support == "supported"
            for evidence in claim.evidence
        }
        groups = _relevant(subject, reply)
        if not groups:
            return skipped("no relevant passage reached the context")
        hits = [bool(group & used) for group in groups]
        share = sum(hits) / len(hits)
        passages = {name: float(name in used) for group in groups for name in sorted(group)}
        return Finding("scored", value=share, label=share > 0, passages=passages)


def _relevant(subject: Subject, reply: Reply) -> list[set[str]]:
    """Relevant passages of the context, those that satisfy the same need together."""
    best: list[set[str]] = []
    alternatives = needs(subject.case, subject.trace.retrieved)
    for alternative in alternatives:
        groups = []
        for need in alternative:
            group = {passage.id for passage in subject.context if satisfies(need, passage)}
            # Evidence cut by a chunk boundary takes both halves.
            halves = () if group else find([need], subject.context)
            group |= {passage.id for found in halves for passage in found.passages}
            if group:
                groups.append(group)
        best = max(best, groups, key=len)
    if alternatives:
        return best
    said = {item.passage for item in said_of(reply).passages if item.relevant}
    return [{p.id} for number, p in enumerate(subject.context, start=1) if number in said]


judged_metrics.register(ContextUtilization.name)(ContextUtilization())
