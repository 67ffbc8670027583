"""Context utilization: does the answer use the relevant passages?"""

from __future__ import annotations

from typing import Literal

from misslink.judge.judged_metric import Finding, Subject, skipped_finding
from misslink.judge.protocol import Ask, Reply
from misslink.metrics.context_relevance import judged_labels
from misslink.registry import judged_metrics
from misslink.retrieval import Need, case_needs, match_needs, satisfies


class ContextUtilization:
    """Share of the relevant passages in the context that support a claim of the answer.

    The gold set says which passages are relevant; where it lists none, the judge does. Where
    several sets of passages each suffice, the set with the highest share counts, and among equals
    the one with most passages in the context. Passages with the same evidence count once, used if
    any of them is. A passage is used when it contains the quote of a supported claim. The label is
    good when any is used. Skipped where no relevant passage reached the context.

    Source: Ru et al., RAGChecker, NeurIPS 2024 (context utilization; RAGChecker counts claims of
    the reference that the passages contain, misslink counts passages).
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
        groups = max(
            _relevant_groups(subject, reply),
            key=lambda group: (_used_share(group, used), len(group)),
        )
        if not groups:
            return skipped_finding("no relevant passage reached the context")
        share = _used_share(groups, used)
        passages = {name: float(name in used) for group in groups for name in sorted(group)}
        return Finding("scored", value=share, label=share > 0, passages=passages)


def _used_share(groups: list[set[str]], used: set[str]) -> float:
    """Share of the groups with a used passage; negative without groups."""
    return sum(bool(group & used) for group in groups) / len(groups) if groups else -1.0


def _relevant_groups(subject: Subject, reply: Reply) -> list[list[set[str]]]:
    """For each sufficient set, at least one: passages in the context, by the need they satisfy."""
    alternatives = case_needs(subject.case, subject.trace.retrieved)
    if alternatives:
        return [_in_context(alternative, subject) for alternative in alternatives]
    return [[{name} for name, relevant in judged_labels(subject, reply).items() if relevant]]


def _in_context(alternative: tuple[Need, ...], subject: Subject) -> list[set[str]]:
    groups = []
    for need in alternative:
        group = {passage.id for passage in subject.context if satisfies(need, passage)}
        # Evidence cut by a chunk boundary takes both halves.
        halves = () if group else match_needs([need], subject.context)
        group |= {passage.id for partial in halves for passage in partial.passages}
        if group:
            groups.append(group)
    return groups


judged_metrics.register(ContextUtilization.name)(ContextUtilization())
