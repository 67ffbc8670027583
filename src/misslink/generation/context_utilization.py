"""Context utilization: does the answer rest on the passages it should rest on?"""

from __future__ import annotations

from typing import Literal

from misslink.generation.relevance import judged_relevance
from misslink.judging.metric import Finding, Subject, skipped
from misslink.judging.protocol import Ask, Reply
from misslink.registry import judged_metrics
from misslink.retrieval import Need, find, needs, satisfies

__all__ = ["ContextUtilization"]


class ContextUtilization:
    """Share of the relevant passages in the context that some supported claim rests on.

    Relevant is what the gold set lists; where it lists nothing, what the judge calls relevant.
    Of several sets that each suffice the one that is used best counts, of equals the one with most
    in the context. Several passages that carry the same evidence count once, used if any of them
    is. A passage counts as used when a supported claim's quote stands in it. The label is good when
    any is used. Skipped where no relevant passage reached the context.

    Source: Ru et al., RAGChecker, NeurIPS 2024 (context utilization; there over the claims of the
    reference that the passages hold, here over passages).
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
        groups = max(_relevant(subject, reply), key=lambda each: (_share(each, used), len(each)))
        if not groups:
            return skipped("no relevant passage reached the context")
        share = _share(groups, used)
        passages = {name: float(name in used) for group in groups for name in sorted(group)}
        return Finding("scored", value=share, label=share > 0, passages=passages)


def _share(groups: list[set[str]], used: set[str]) -> float:
    """Share of the groups of which a passage is used; below 0 where there is none to use."""
    return sum(bool(group & used) for group in groups) / len(groups) if groups else -1.0


def _relevant(subject: Subject, reply: Reply) -> list[list[set[str]]]:
    """For each sufficient set, at least one: passages in the context, by the need they satisfy."""
    alternatives = needs(subject.case, subject.trace.retrieved)
    if alternatives:
        return [_in_context(alternative, subject) for alternative in alternatives]
    return [[{name} for name, relevant in judged_relevance(subject, reply).items() if relevant]]


def _in_context(alternative: tuple[Need, ...], subject: Subject) -> list[set[str]]:
    groups = []
    for need in alternative:
        group = {passage.id for passage in subject.context if satisfies(need, passage)}
        # Evidence cut by a chunk boundary takes both halves.
        halves = () if group else find([need], subject.context)
        group |= {passage.id for found in halves for passage in found.passages}
        if group:
            groups.append(group)
    return groups


judged_metrics.register(ContextUtilization.name)(ContextUtilization())
