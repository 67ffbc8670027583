"""Answer relevance: does the answer address the question?"""

from __future__ import annotations

from typing import Literal

from misslink.judge.judged_metric import Finding, Subject, parsed_examination, skipped_finding
from misslink.judge.protocol import Ask, Reply
from misslink.registry import judged_metrics

_VALUE = {"answers": 1.0, "partly": 0.5, "evades": 0.0}


class AnswerRelevance:
    """1 where the answer addresses the question, 0.5 in part, 0 where it evades it.

    The label is good at 1, its probability P(answers). It says nothing of truth. Skipped for an
    answer that declines: abstention judges it.

    Source: Es et al., RAGAS, EACL 2024 (answer relevance; there by the likeness of questions made
    from the answer, here the judge says it outright).
    """

    name = "answer_relevance"
    level: Literal[2, 3] = 2

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination."""
        return subject.examination

    def read(self, subject: Subject, reply: Reply) -> Finding:  # noqa: ARG002 (the protocol's)
        """Read how the answer responds."""
        examination = parsed_examination(reply)
        response = examination.response
        if response == "declines":
            return skipped_finding("the answer declines")
        return Finding(
            "scored",
            value=_VALUE[response],
            label=response == "answers",
            probability=reply.chance("response", "answers"),
            reason=f"the answer {response} the question" if response != "partly" else "in part",
        )


judged_metrics.register(AnswerRelevance.name)(AnswerRelevance())
