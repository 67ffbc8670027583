"""Context sufficiency: do the passages contain a full answer to the question?"""

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

_VALUE = {"yes": 1.0, "partly": 0.5, "no": 0.0}
_REASON = {
    "yes": "the passages hold a full answer",
    "partly": "the passages hold part of an answer",
    "no": "the passages hold no answer",
}


class ContextSufficiency:
    """1 where the passages alone hold a full answer, 0.5 where part of one, 0 where none.

    The label is good when they hold it in full, its probability P(yes). It says nothing of what
    the app made of them, so it is scored for an answer that declines too, and where the gold set
    says that the question has no answer: there a high value shows a wrong gold set. Skipped where
    the judge does not say, as the heuristic one. Where no passage reached the context it is 0.

    Source: Joren et al., Sufficient Context, ICLR 2025 (yes and no; partly is ours).
    """

    name = "context_sufficiency"
    level: Literal[2, 3] = 2

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination, of an answer whose passages are known."""
        return subject.grounded

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Read whether the passages suffice."""
        examination = parsed_examination(reply)
        if reply.refuses("sufficient"):
            return failed_finding(REFUSED)
        if examination.sufficient is None:
            return skipped_finding("the judge does not say whether the passages suffice")
        if not subject.context:  # whatever the judge knows by itself
            return Finding("scored", 0.0, label=False, reason="no passage reached the context")
        return Finding(
            "scored",
            value=_VALUE[examination.sufficient],
            label=examination.sufficient == "yes",
            probability=reply.chance("sufficient", "yes"),
            reason=_REASON[examination.sufficient],
        )


judged_metrics.register(ContextSufficiency.name)(ContextSufficiency())
