"""Judged metrics of the context: are the passages relevant, sufficient, and used?"""

from __future__ import annotations

import math
from collections.abc import Mapping

from misslink.judge import judged_metric
from misslink.judge.examination import Examination
from misslink.judge.protocol import Reply
from misslink.registry import judged_metrics
from misslink.retrieval import LabelledNeed, case_needs, match_needs, relevant_ids, satisfies
from misslink.types import Reason


def context_labels(subject: judged_metric.Subject, reply: Reply) -> Mapping[str, bool | None]:
    """Return whether each passage of the context is relevant, by its id; None where unknown.

    The gold set decides where it lists anything: every passage of any sufficient set is relevant,
    all others are not. Where it lists nothing, the judge decides.
    """
    if case_needs(subject.case, subject.trace.retrieved):
        listed = relevant_ids(subject.case, subject.context)
        return {passage.id: passage.id in listed for passage in subject.context}
    return judged_labels(subject, reply)


def judged_labels(subject: judged_metric.Subject, reply: Reply) -> Mapping[str, bool | None]:
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


class ContextRelevance(judged_metric.JudgedMetric):
    """Share of the passages in the prompt that the judge calls relevant to the question.

    ``passages`` of the verdict has 1, 0 or None (the judge left it out) for each passage. A passage
    that the judge left out is not in the share. The label is good if any passage is relevant; its
    probability treats the passages as independent. Skipped if no passage reached the prompt. Failed
    if the judge rates none.

    Source: Es et al., RAGAS, EACL 2024 (context relevance, as a share of sentences).
    """

    name = "context_relevance"
    needs_passages = True
    padding = judged_metric.Padding("passages")  # the answer does not matter here

    def read(self, subject: judged_metric.Subject, reply: Reply) -> judged_metric.Finding:
        """Count the relevant passages."""
        if not subject.context:
            return judged_metric.skipped_finding(Reason(code="empty_prompt"))
        labels = judged_labels(subject, reply)
        passages = {
            name: None if values is None else float(values) for name, values in labels.items()
        }
        values = [value for value in passages.values() if value is not None]
        if not values:
            return judged_metric.failed_finding(Reason(code="passages_unrated"))
        share = sum(values) / len(values)
        return judged_metric.Finding(
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


_VALUE = {"yes": 1.0, "partly": 0.5, "no": 0.0}


class ContextSufficiency(judged_metric.JudgedMetric):
    """1 if the passages alone contain a full answer, 0.5 if they contain part of it, else 0.

    The label is good at 1; its probability is P(yes). It does not depend on the answer, so it is
    scored for an answer that declines too. It is also scored if the gold set says that the question
    has no answer: a high value then shows a wrong gold set. Skipped if the judge does not say, such
    as the heuristic judge. If no passage reached the prompt it is 0.

    Source: Joren et al., Sufficient Context, ICLR 2025 (yes and no; misslink adds partly).
    """

    name = "context_sufficiency"
    needs_passages = True
    padding = judged_metric.Padding("passages")

    def read(self, subject: judged_metric.Subject, reply: Reply) -> judged_metric.Finding:
        """Read whether the passages suffice."""
        examination = judged_metric.parsed_examination(reply)
        if reply.refuses("sufficient"):
            return judged_metric.failed_finding(judged_metric.REFUSED)
        if examination.sufficient is None:
            return judged_metric.skipped_finding(Reason(code="sufficiency_not_judged"))
        if not subject.context:  # whatever the judge knows by itself
            nothing = str(Reason(code="empty_prompt"))
            return judged_metric.Finding("scored", 0.0, label=False, reason=nothing)
        return judged_metric.Finding(
            "scored",
            value=_VALUE[examination.sufficient],
            label=examination.sufficient == "yes",
            probability=reply.chance("sufficient", "yes"),
            reason=str(Reason(code="passages_hold", answer=examination.sufficient)),
        )


judged_metrics.register(ContextSufficiency.name)(ContextSufficiency())


class ContextUtilization(judged_metric.JudgedMetric):
    """Share of the relevant passages in the prompt that support a claim of the answer.

    The gold set says which passages are relevant; if it lists none, the judge does. If several sets
    of passages each suffice, the set with the highest share counts, and among equals the one with
    most passages in the prompt. Passages with the same evidence count once. A passage is used if it
    contains the quote of a supported claim. The label is good if any passage is used. Skipped if no
    relevant passage reached the prompt.

    Source: Ru et al., RAGChecker, NeurIPS 2024 (context utilization; RAGChecker counts claims of
    the reference that the passages contain, misslink counts passages).
    """

    name = "context_utilization"
    reads_labels = True
    needs_passages = True

    def read(self, subject: judged_metric.Subject, reply: Reply) -> judged_metric.Finding:
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
            return judged_metric.skipped_finding(Reason(code="no_relevant_in_prompt"))
        share = _used_share(groups, used)
        passages = {name: float(name in used) for group in groups for name in sorted(group)}
        return judged_metric.Finding("scored", value=share, label=share > 0, passages=passages)


def _used_share(groups: list[set[str]], used: set[str]) -> float:
    """Share of the groups with a used passage; negative without groups."""
    return sum(bool(group & used) for group in groups) / len(groups) if groups else -1.0


def _relevant_groups(subject: judged_metric.Subject, reply: Reply) -> list[list[set[str]]]:
    """For each sufficient set, at least one: passages in the context, by the need they satisfy."""
    alternatives = case_needs(subject.case, subject.trace.retrieved)
    if alternatives:
        return [_in_context(alternative, subject) for alternative in alternatives]
    return [[{name} for name, relevant in judged_labels(subject, reply).items() if relevant]]


def _in_context(
    alternative: tuple[LabelledNeed, ...], subject: judged_metric.Subject
) -> list[set[str]]:
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
