"""Judged metrics of the answer alone: relevance, helpfulness, abstention."""

from __future__ import annotations

from misslink.judge import judged_metric
from misslink.judge.protocol import Reply
from misslink.registry import judged_metrics
from misslink.types import Reason

_VALUE = {"answers": 1.0, "partly": 0.5, "evades": 0.0}


class AnswerRelevance(judged_metric.JudgedMetric):
    """1 if the answer addresses the question, 0.5 if it does in part, 0 if it evades it.

    The label is good at 1; its probability is P(answers). It does not measure truth. Skipped if the
    answer declines; see abstention.

    Source: Es et al., RAGAS, EACL 2024 (answer relevance). RAGAS compares questions generated from
    the answer by embedding; misslink asks the judge.
    """

    name = "answer_relevance"
    label_question = ("Does the answer address the question?", "relevant", "irrelevant")
    padding = judged_metric.Padding("answer", may_lower=True)  # repetition helps no reader

    def read(self, subject: judged_metric.Subject, reply: Reply) -> judged_metric.Finding:  # noqa: ARG002 (the protocol's)
        """Read how the answer responds."""
        examination = judged_metric.parsed_examination(reply)
        response = examination.response
        if response == "declines":
            return judged_metric.skipped_finding(Reason(code="answer_declines"))
        return judged_metric.Finding(
            "scored",
            value=_VALUE[response],
            label=response == "answers",
            probability=reply.chance("response", "answers"),
            reason=str(Reason(code="answer_response", response=response)),
        )


judged_metrics.register(AnswerRelevance.name)(AnswerRelevance())


_TOP = 5
_GOOD = 4


class Helpfulness(judged_metric.JudgedMetric):
    """How far the answer would satisfy who asked, by the judge's grade from 1 to 5.

    With grade h, from 1 (useless) to 5 (satisfies the user fully), it is (h - 1) / 4. The label is good from 4; its probability is P(4) + P(5). It does not measure truth. Skipped if
    the judge gives no grade, such as the heuristic judge, and if the app rightly declines; see
    abstention.

    Source: Zheng et al., Judging LLM-as-a-Judge, NeurIPS 2023 (grading a single answer).
    """

    name = "helpfulness"
    reads_labels = True
    level = 3
    unit = "decimal"
    label_question = ("Does the answer help the user?", "helpful", "unhelpful")
    padding = judged_metric.Padding("answer", may_lower=True)

    def read(self, subject: judged_metric.Subject, reply: Reply) -> judged_metric.Finding:
        """Read the grade."""
        examination = judged_metric.parsed_examination(reply)
        if examination.response == "declines" and subject.expects_answer is False:
            return judged_metric.skipped_finding(Reason(code="rightly_declines"))
        if reply.refuses("helpful"):
            return judged_metric.failed_finding(judged_metric.REFUSED)
        if examination.helpful is None:
            return judged_metric.skipped_finding(Reason(code="helpfulness_not_judged"))
        good = (str(grade) for grade in range(_GOOD, _TOP + 1))
        return judged_metric.Finding(
            "scored",
            value=(examination.helpful - 1) / (_TOP - 1),
            label=examination.helpful >= _GOOD,
            probability=reply.chance("helpful", *good),
            reason=str(Reason(code="helpfulness_grade", grade=examination.helpful)),
        )


judged_metrics.register(Helpfulness.name)(Helpfulness())


class Abstention(judged_metric.JudgedMetric):
    """1 if the app answered an answerable question or declined an unanswerable one, else 0.

    A case with relevant passages counts as answerable unless the gold set says otherwise. The label
    is good at 1; its probability is that of the right decision, to decline or to answer. The reason
    names the outcome: right, over-refused, or should have abstained. ``parts`` has ``over_refused``
    for answerable questions and ``should_have_abstained`` for unanswerable ones, 1 or 0; the other
    one is None. Their means are the rates of the two mistakes. Skipped if the gold set does not say
    which decision is right; ``parts['declined']`` has a value even then.

    Source: Rajpurkar et al., Know What You Don't Know (SQuAD 2.0), ACL 2018 (unanswerable
    questions).
    """

    name = "abstention"
    reads_labels = True
    level = 3
    label_question = ("Was it right to answer, or to decline, as the app did?", "right", "wrong")
    padding = judged_metric.Padding("answer")

    def read(self, subject: judged_metric.Subject, reply: Reply) -> judged_metric.Finding:
        """Compare what the app did with what it should have done."""
        examination = judged_metric.parsed_examination(reply)
        declined = examination.response == "declines"
        expected = subject.expects_answer
        parts = {
            "declined": float(declined),
            "over_refused": float(declined) if expected is True else None,
            "should_have_abstained": float(not declined) if expected is False else None,
        }
        if expected is None:
            return judged_metric.skipped_finding(Reason(code="answerable_unknown"), parts=parts)
        right = declined != expected
        return judged_metric.Finding(
            "scored",
            value=float(right),
            label=right,
            probability=_correct_probability(reply, expected=expected),
            parts=parts,
            reason=str(Reason(code="abstention_outcome", declined=declined, answerable=expected)),
        )


def _correct_probability(reply: Reply, *, expected: bool) -> float | None:
    """P(the app did right); None where the judge gave no probability of declining."""
    if "declines" not in reply.probabilities.get("response", {}):
        return None  # the heuristic judge weighs the other labels only
    declines = reply.chance("response", "declines")
    if declines is None:
        return None
    return 1 - declines if expected else declines


judged_metrics.register(Abstention.name)(Abstention())
