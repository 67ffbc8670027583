"""Context sufficiency: could the question be answered from what was retrieved at all?"""

from __future__ import annotations

from typing import Literal

from misslink.judging.metric import Finding, Subject, said_of, skipped
from misslink.judging.protocol import Ask, Reply
from misslink.registry import judged_metrics

__all__ = ["ContextSufficiency"]

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
    the judge does not say, as the embedded one. Where no passage reached the context it is 0.

    Source: Joren et al., Sufficient Context, ICLR 2025 (yes and no; partly is ours).
    """

    name = "context_sufficiency"
    level: Literal[2, 3] = 2

    def ask(self, subject: Subject) -> Ask | str:
        """Ask for the shared examination, of an answer whose passages are known."""
        return subject.grounded

    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Read whether the passages suffice."""
        said = said_of(reply)
        if said.sufficient is None:
            return skipped("the judge does not say whether the passages suffice")
        if not subject.context:  # whatever the judge knows by itself
            return Finding("scored", 0.0, label=False, reason="no passage reached the context")
        return Finding(
            "scored",
            value=_VALUE[said.sufficient],
            label=said.sufficient == "yes",
            probability=reply.chance("sufficient", "yes"),
            reason=_REASON[said.sufficient],
        )


judged_metrics.register(ContextSufficiency.name)(ContextSufficiency())
