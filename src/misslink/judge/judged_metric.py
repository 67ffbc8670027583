"""The interface of a judged metric: what to ask about a case, and how to read the reply."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

from misslink.judge.examination import Examination, examine
from misslink.judge.prompts import BUILT_IN, Prompts
from misslink.judge.protocol import Ask, Reply
from misslink.judge.readings import ALWAYS_READ, Readings
from misslink.matching import ClaimCoverage
from misslink.types import Case, Claim, Passage, Reason, Repeats, Status, Trace

EMPTY_ANSWER = "the answer is empty"
REFUSED = "the judge refused a question that this metric needs"


@dataclass(frozen=True)
class Subject:
    """A case, what the app did for it, and the passages its answer was written from."""

    case: Case
    trace: Trace
    k: int
    prompts: Prompts = BUILT_IN
    readings: Readings = field(default=ALWAYS_READ, compare=False, repr=False)
    # By the id of a reply, which is kept beside them so that no other one gets that id.
    _claims: dict[int, tuple[Reply, tuple[Claim, ...]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @cached_property
    def context(self) -> tuple[Passage, ...]:
        """The passages the judge is shown, in the order it numbers them."""
        return self.trace.context(self.k)

    @property
    def answer(self) -> str:
        """The answer; empty where there is none."""
        return self.trace.answer or ""

    @property
    def question(self) -> str:
        """What relevance is judged by: the standalone question, if one is given."""
        return self.case.judged_question

    @cached_property
    def expects_answer(self) -> bool | None:
        """Whether the app ought to answer, which most metrics ask; see `Case.expects_answer`."""
        return self.case.expects_answer

    @property
    def missing_reference(self) -> str | None:
        """Why the case has no usable reference answer; None: it has one."""
        if self.expects_answer is False:
            return "the question has no answer; see abstention"
        return None if self.case.references else "the case has no reference answer"

    @cached_property
    def grounded(self) -> Ask | str:
        """The shared question, or why nothing can be said of passages that were not seen."""
        if self.trace.unmeasured and self.trace.answer is not None:
            return f"its passages are not known: {self.trace.unmeasured}"
        if self.context and not any(passage.text.strip() for passage in self.context):
            return "its passages have no text; record the texts, or give the corpus (--corpus)"
        return self.examination

    def claims(self, reply: Reply) -> tuple[Claim, ...]:
        """Return the claims of a reply, checked; metrics that share it share the work.

        Raises
        ------
        UncoveredAnswerError
            Sentences of the answer have no claim, and no claim is bad; or the judge refused to say
            something of one. A bad claim decides, whatever else the answer says.
        """
        if reply.refuses("claims.*.support", "claims.*.quote"):
            raise UncoveredAnswerError(REFUSED)
        if id(reply) not in self._claims:
            history = [message.content for message in self.case.history]
            read = self.readings.claims(reply, self.answer, self.context, self.question, history)
            self._claims[id(reply)] = reply, read
        _, claims = self._claims[id(reply)]
        coverage = self.coverage(reply)
        if coverage.uncovered and all(claim.support == "supported" for claim in claims):
            raise UncoveredAnswerError(coverage.note)
        return claims

    def coverage(self, reply: Reply) -> ClaimCoverage:
        """Return how the claims of a reply cover the answer."""
        return self.readings.coverage(parsed_examination(reply), self.answer, self.question)

    @cached_property
    def examination(self) -> Ask | str:
        """The shared question of levels 2 and 3, or why it cannot be asked."""
        if self.trace.error is not None and self.trace.answer is None:
            return f"the app failed: {self.trace.error}"
        if self.trace.answer is None:
            return "the trace has no answer"
        if not self.answer.strip():
            return EMPTY_ANSWER
        references = () if self.expects_answer is False else self.case.references
        texts = tuple(passage.text for passage in self.context)
        history = tuple(message.model_dump() for message in self.case.history)
        return examine(
            self.question,
            texts,
            self.answer,
            references,
            history=history,
            criteria=tuple(each._asdict() for each in self.prompts.criteria),
            prompts=self.prompts,
        )


class UncoveredAnswerError(Exception):
    """A reply whose claims leave too much of the answer out, or are not judged; its verdict is failed."""


class Finding(NamedTuple):
    """What a metric reads from a reply; a Verdict without its circumstances."""

    status: Status
    value: float | None = None
    label: bool | None = None
    probability: float | None = None
    claims: tuple[Claim, ...] = ()
    passages: Mapping[str, float | None] | None = None
    parts: Mapping[str, float | None] | None = None
    reason: str | None = None
    repeats: Repeats | None = None


class Padding(NamedTuple):
    """How an audit pads the answer: with sentences of its passages, or with itself once more.

    Passages are no filler for what is measured against the question or a reference: one of their
    sentences may be the very answer, and then a better verdict is right. `may_lower`: a padded
    answer may rightly be called bad, so only a verdict that turns good counts against the judge.
    """

    filler: Literal["passages", "answer"]
    may_lower: bool = False


class JudgedMetric(ABC):
    """A metric of level 2 or 3. Metrics with the same question about a case share one judge call."""

    name: str
    level: Literal[2, 3] = 2
    better: Literal["high", "low"] = "high"  # a label is good in either case
    unit: Literal["share", "decimal"] = "share"  # how its mean is written: 62% or 0.62
    needs_passages = False  # cases whose passages were not seen are skipped
    needs_reference = False  # cases without a reference answer are skipped
    reads_labels = False  # the value depends on which passages are labelled, or on answerable
    # What annotators are asked about an answer, and the names of its good and its bad label.
    label_question: tuple[str, str, str] | None = None
    padding: Padding | None = None  # None: no audit

    def ask(self, subject: Subject) -> Ask | str:
        """Return what to ask, or why there is nothing to judge."""
        if self.needs_reference and subject.missing_reference is not None:
            return subject.missing_reference
        return subject.grounded if self.needs_passages else subject.examination

    @abstractmethod
    def read(self, subject: Subject, reply: Reply) -> Finding:
        """Read a reply whose ``parsed`` is not None."""


def skipped_finding(reason: str | Reason, **more: Any) -> Finding:
    """There was nothing to judge."""
    return Finding("skipped", reason=str(reason), **more)


def failed_finding(reason: str | Reason) -> Finding:
    """The judge gave nothing usable."""
    return Finding("failed", reason=str(reason))


def parsed_examination(reply: Reply) -> Examination:
    """Return the examination that a reply holds."""
    if not isinstance(reply.parsed, Examination):
        raise TypeError(f"expected an Examination, got {type(reply.parsed).__name__}")
    return reply.parsed
