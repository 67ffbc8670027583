"""Helpfulness: would the answer satisfy the person who asked?"""

from __future__ import annotations

from typing import Literal

from misslink.judge.judged_metric import (
    REFUSED,
    Finding,
    Subject,
    failed_finding,
    parsed_examination,
    skipped_finding,
)
from misslink.judge.protocol import Ask, Reply
from misslink.registry import judged_metrics

_TOP = 5
_GOOD = 4
_RUBRIC = {1: "useless", 2: "hardly", 3: "half", 4: "mostly", 5: "fully"}


class Helpfulness:
    """(h - 1) / 4 of the judge's grade h, 1 (useless) to 5 (satisfies the asker fully).

    The label is good from 4, its probability P(4) + P(5). It says nothing of truth. Skipped where
    the judge gives no grade, as the heuristic one, and where the app rightly declines: there is no
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
        examination = parsed_examination(reply)
        if examination.response == "declines" and subject.expects_answer is False:
            return skipped_finding("the answer rightly declines; abstention judges it")
        if reply.refuses("helpful"):
            return failed_finding(REFUSED)
        if examination.helpful is None:
            return skipped_finding("the judge does not say how helpful the answer is")
        good = (str(grade) for grade in range(_GOOD, _TOP + 1))
        return Finding(
            "scored",
            value=(examination.helpful - 1) / (_TOP - 1),
            label=examination.helpful >= _GOOD,
            probability=reply.chance("helpful", *good),
            reason=f"graded {examination.helpful} of {_TOP}, {_RUBRIC[examination.helpful]}",
        )


judged_metrics.register(Helpfulness.name)(Helpfulness())
