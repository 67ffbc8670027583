"""Which passages of the context are relevant: by the gold set, else by the judge."""

from __future__ import annotations

from collections.abc import Mapping

from misslink.judging.examination import Examination
from misslink.judging.metric import Subject
from misslink.judging.protocol import Reply
from misslink.retrieval import needs, relevant_ids

__all__ = ["judged_relevance", "passage_relevance"]


def passage_relevance(subject: Subject, reply: Reply) -> Mapping[str, bool | None]:
    """Whether each passage of the context is relevant, by its id; None where nobody said.

    The gold set decides where it lists anything: every passage of any sufficient set is relevant,
    all others are not. Where it lists nothing, the judge does.
    """
    if needs(subject.case, subject.trace.retrieved):
        listed = relevant_ids(subject.case, subject.context)
        return {passage.id: passage.id in listed for passage in subject.context}
    return judged_relevance(subject, reply)


def judged_relevance(subject: Subject, reply: Reply) -> Mapping[str, bool | None]:
    """What the judge called relevant, by passage id; None for one that it left out."""
    said = reply.parsed.passages if isinstance(reply.parsed, Examination) else ()
    relevant = {item.passage: item.relevant for item in said}
    return {
        passage.id: relevant.get(number) for number, passage in enumerate(subject.context, start=1)
    }
