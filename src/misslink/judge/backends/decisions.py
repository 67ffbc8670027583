"""Decision models as judges: an Ask becomes multiple-choice questions, whose answers make its reply."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from misslink.errors import JudgeUnreachableError
from misslink.judge.backends import decision_questions
from misslink.judge.backends.decision_questions import DRAFTS, DecisionTask, Question
from misslink.judge.backends.request_format import REFUSAL_MESSAGE
from misslink.judge.backends.response_parsing import EXCERPT_LENGTH
from misslink.judge.examination import Examination
from misslink.judge.protocol import Ask, JudgeInfo, Reply, total_usage
from misslink.matching import rules_version
from misslink.types import Usage

LIMITS = {"questions": 400, "choices": 255}  # of a request to OpenAI; servers may have lower ones
_STATED_LIMIT = re.compile(
    r"(?P<number>\d+)[^\d.]{0,20}\b(?P<noun>question|choice|option|criteri)"
    r"|\b(?P<subject>question|choice|option|criteri)[^\d.]{0,40}(?P<maximum>\d+)",
    re.IGNORECASE,
)


class Decisions(NamedTuple):
    """A server's answers by the name of the question, in the System One format; None: it sent none.

    A refused question has no answer, or one of the type ``refusal``.
    """

    answers: Mapping[str, Any] | None
    usage: Usage | None
    raw: str


class RefusedRequestError(Exception):
    """The server refused this request; a different request may succeed."""


class DecisionServer:
    """Sends questions to a decision model."""

    sent = 0  # requests so far

    async def decide(self, state: str, questions: Mapping[str, Question]) -> Decisions:
        """Answer the questions about a state; raises the errors of `Judge` and RefusedRequestError."""
        raise NotImplementedError

    async def check_reachable(self) -> None:
        """Raise JudgeUnreachableError if asking is sure to fail."""

    async def close(self) -> None:
        """Close the connections."""


class DecisionJudge:
    """Asks a decision model all questions of a case in one request, if the server's limits allow.

    A quote is a sentence of a passage, or the whole of one, so it is verbatim by construction.
    """

    def __init__(self, name: str, identity: Mapping[str, Any], server: DecisionServer) -> None:
        self.name = name
        fields = repr([part.metadata for part in Examination.model_fields.values()])
        source = Path(decision_questions.__file__).read_bytes() + fields.encode()
        questions = hashlib.sha256(source).hexdigest()[:16]
        self.identity: Mapping[str, Any] = {
            **identity,
            "questions": questions,
            "rules": rules_version(),  # how answers are split into claims
        }
        self._server = server
        self._limits = dict(LIMITS)
        self._answered = False

    @property
    def info(self) -> JudgeInfo:
        """What is known about the judge and its server so far."""
        return JudgeInfo(
            max_tokens=0,
            abilities={"limits": dict(self._limits)} if self._answered else {},
            learn=self._learn,
            check_reachable=self._server.check_reachable,
            requests_sent=self._server.sent,
            limits=self._limits,
            request_characters=self._request_characters,
        )

    async def ask(self, ask: Ask) -> Reply:
        """Ask the questions that make up an ask, in as few requests as the server allows."""
        if ask.name not in DRAFTS:
            problem = f"the judge {self.name} chooses among answers and writes no text"
            return Reply.nothing(f"{problem}, so it cannot answer '{ask.name}'")
        task = DecisionTask(ask, self._limits["choices"])
        chances: dict[str, Mapping[str, float]] = {}
        replies: list[Decisions] = []
        left = dict(task.questions)
        while left:
            group = dict(islice(left.items(), self._limits["questions"]))
            named = {f"q{number}": question for number, question in enumerate(group.values(), 1)}
            try:
                replies.append(await self._server.decide(task.state, named))
            except RefusedRequestError as refusal:
                if not self._lower_limits(str(refusal), group):
                    return Reply.nothing(REFUSAL_MESSAGE.format(refusal))
                earlier, task = task.questions, DecisionTask(ask, self._limits["choices"])
                new = task.questions.items()
                left = {place: q for place, q in new if place in left or q != earlier[place]}
            else:
                chances |= self._read_answers(replies[-1], group)
                left = {place: q for place, q in left.items() if place not in group}
        self._answered = True
        usage = total_usage(Reply(None, "", reply.usage) for reply in replies)
        return task.reply(chances, usage, "\n".join(reply.raw for reply in replies))

    async def close(self) -> None:
        """Close the connections."""
        await self._server.close()

    def _read_answers(
        self, decisions: Decisions, questions: Mapping[str, Question]
    ) -> dict[str, dict[str, float]]:
        """The probabilities of each question that was not refused, by its place in the reply."""
        if decisions.answers is None:
            excerpt = decisions.raw[:EXCERPT_LENGTH]
            raise self._unknown_schema(f"its reply has no answers: {excerpt}")
        read = {}
        for number, (place, question) in enumerate(questions.items(), 1):
            answer = decisions.answers.get(f"q{number}")
            if answer is None or (isinstance(answer, Mapping) and answer.get("type") == "refusal"):
                continue
            probabilities = question.read(answer)
            if probabilities is None:
                problem = f"its answer to a {question.kind} question has no probabilities"
                raise self._unknown_schema(problem)
            read[place] = probabilities
        return read

    def _unknown_schema(self, problem: str) -> JudgeUnreachableError:
        return JudgeUnreachableError(
            f"the judge {self.name} cannot be asked: {problem}. Check that --judge names a decision"
            " model and its endpoint."
        )

    def _learn(self, abilities: Mapping[str, Any]) -> None:
        limits = abilities.get("limits")
        for name, limit in limits.items() if isinstance(limits, Mapping) else ():
            if name in LIMITS and type(limit) is int and limit > 1:
                self._limits[name] = limit

    def _lower_limits(self, complaint: str, questions: Mapping[str, Question]) -> bool:
        """Adopt the lower limits that a refusal states. Return whether there were any."""
        most_options = max(len(question.options) for question in questions.values())
        used = {"questions": len(questions), "choices": most_options}
        lowered = False
        for match in _STATED_LIMIT.finditer(complaint):
            noun = (match["noun"] or match["subject"]).lower()
            name = "questions" if noun == "question" else "choices"
            limit = int(match["number"] or match["maximum"])
            if 1 < limit < used[name]:
                self._limits[name] = min(limit, self._limits[name])
                lowered = True
        return lowered

    def _request_characters(self, ask: Ask) -> int:
        return DecisionTask(ask, self._limits["choices"]).characters if ask.name in DRAFTS else 0
