"""Whether a case can be held against reference answers."""

from __future__ import annotations

from misslink.judging.metric import Subject

__all__ = ["lacks_references"]


def lacks_references(subject: Subject) -> str | None:
    """Why nothing can be held against the case's reference answers; None: it can."""
    if subject.expects_answer is False:
        return "the question has no answer; abstention judges it"
    if not subject.case.references:
        return "the case has no reference answer"
    return None
