"""Helpfulness: would the answer satisfy who asked?"""

from __future__ import annotations

from typing import Literal

from misslink.judging.metric import Finding, Subject, said_of, skipped
from misslink.judging.protocol import Ask, Reply
from misslink.registry import judged_metrics

__all__ = ["Helpfulness"]

_TOP = 5
_GOOD = 4
_RUBRIC = {1: "useless", 2: "hardly", 3: "half", 4: "mostly", 5: "fully"}


class Helpfulness:
    """(h - 1) / 4 of the judge's grade h, 1 (useless) to 5 (satisfies the asker fully).

    The label is good from 4, its probability P(4) + P(5). It says nothing of truth. Skipped where
    the judge gives no grade, as the embedded one, and where the app rightly declines: there is no
    help to be had, and abstention judges it.

    Source: Zheng et al., Judging LLM-as-a-Judge, NeurIPS 2023 (grading a single answer).
    """

    name = "helpfulness"
    level: Literal[2, 3] = 3

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination."""
        return subject.examination

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Read the grade."""
        said = said_of(reply)
        if said.response == "declines" and subject.expects_answer is False:
            return skipped("the answer rightly declines; abstention judges it")
        if said.helpful is None:
            return skipped("the judge does not say how helpful the answer is")
        good = (str(grade) for grade in range(_GOOD, _TOP + 1))
        return Finding(
            "scored",
            value=(said.helpful - 1) / (_TOP - 1),
            label=said.helpful >= _GOOD,
            probability=reply.chance("helpful", *good),
            reason=f"graded {said.helpful} of {_TOP}, {_RUBRIC[said.helpful]}",
        )


judged_metrics.register(Helpfulness.name)(Helpfulness())
