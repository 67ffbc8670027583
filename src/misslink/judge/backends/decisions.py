"""Decision models as judges: an Ask becomes multiple-choice questions, whose answers make its reply.

They are asked in OpenAI's and in the System One format over HTTP, and through LangChain.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from misslink.errors import InputError, JudgeUnreachableError
from misslink.io.secrets import MIN_KEY_LENGTH, redact_keys
from misslink.judge.backends import connection as http
from misslink.judge.backends import decision_questions
from misslink.judge.backends.decision_questions import DRAFTS, DecisionTask, Question
from misslink.judge.backends.request_format import REFUSAL_MESSAGE
from misslink.judge.backends.response_parsing import EXCERPT_LENGTH, find_json_object, parse_usage
from misslink.judge.examination import Examination
from misslink.judge.protocol import Ask, JudgeInfo, Reply, total_usage
from misslink.matching import rules_version
from misslink.registry import judges
from misslink.text.normalization import valid_text
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
        self._sent = 0  # requests so far

    @property
    def info(self) -> JudgeInfo:
        """What is known about the judge and its server so far."""
        return JudgeInfo(
            max_tokens=0,
            abilities={"limits": dict(self._limits)} if self._answered else {},
            learn=self._learn,
            check_reachable=self._server.check_reachable,
            requests_sent=self._sent,
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
            self._sent += 1
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
        hint = "Check that --judge names a decision model and its endpoint."
        return http.unreachable(self.name, f"{problem}. {hint}")

    def _learn(self, abilities: Mapping[str, Any]) -> None:
        limits = abilities.get("limits")
        for name, limit in limits.items() if isinstance(limits, Mapping) else ():
            if name in LIMITS and type(limit) is int and limit > 1:
                self._limits[name] = limit

    def _lower_limits(self, complaint: str, questions: Mapping[str, Question]) -> bool:
        """Adopt the lower limits that a refusal states. Return whether there were any."""
        most_options = max(len(question.options) for question in questions.values())
        used = {"questions": len(questions), "choices": most_options}
        before = dict(self._limits)
        for match in _STATED_LIMIT.finditer(complaint):
            noun = (match["noun"] or match["subject"]).lower()
            name = "questions" if noun == "question" else "choices"
            limit = int(match["number"] or match["maximum"])
            if 1 < limit < used[name]:
                self._limits[name] = min(limit, self._limits[name])
        return self._limits != before

    def _request_characters(self, ask: Ask) -> int:
        return DecisionTask(ask, self._limits["choices"]).characters if ask.name in DRAFTS else 0


@dataclass
class HttpDecisions(DecisionServer):
    """A server of decision models.

    Parameters
    ----------
    connection : http.ServerConnection
    path : str
        Where its requests go, below the base URL.
    body : callable
        Makes a request of a state and the questions about it.
    read : callable
        Makes the answers by name, in the System One format, of what the server lists as answers.
    """

    connection: http.ServerConnection
    path: str
    body: Callable[[str, Mapping[str, Question]], Mapping[str, object]]
    read: Callable[[Any, Mapping[str, Question]], Mapping[str, Any] | None]

    async def decide(self, state: str, questions: Mapping[str, Question]) -> Decisions:
        """Answer the questions about a state."""
        connection = self.connection
        try:
            raw = valid_text(await connection.post(self.path, self.body(state, questions)))
        except http.ServerError as error:
            complaint = connection.error_message(error)
            failure = connection.meaning(error)
            if (
                failure is None
                and "decision" in complaint.lower()
                and "support" in complaint.lower()
            ):
                failure = connection.unreachable(f"it takes no decisions: {complaint}")
            raise (failure or RefusedRequestError(complaint)) from None
        document = find_json_object(raw) or {}
        answers = self.read(document.get("answers"), questions)
        return Decisions(answers, parse_usage(document.get("usage")), raw)

    async def check_reachable(self) -> None:
        """List the server's models, which costs nothing."""
        await self.connection.models()

    async def close(self) -> None:
        """Close the connections."""
        await self.connection.close()


def _openai_question(question: Question) -> Any:
    asked: dict[str, Any] = {"instructions": question.instructions}
    if not question.options:
        return {**asked, "type": "predicate"}
    name, noun = ("levels", "label") if question.is_scale else ("choices", "value")
    options = [
        {noun: label, **({"description": text} if text else {})}
        for label, text in question.options.items()
    ]
    return {**asked, "type": question.kind, name: options}


def _openai_answers(listed: Any, questions: Mapping[str, Question]) -> dict[str, Any] | None:
    if not isinstance(listed, list) or len(listed) != len(questions):
        return None
    return {
        name: _system_one_answer(item, question)
        for (name, question), item in zip(questions.items(), listed, strict=True)
    }


def _system_one_answer(answer: Any, question: Question) -> Any:
    """An answer of OpenAI's as System One would give it: probabilities by label or level."""
    listed = answer.get("probabilities") if isinstance(answer, dict) else None
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        return answer
    levels = {label: str(number) for number, label in enumerate(question.options)}
    of_label = {
        levels.get(item.get("label"), "") if question.is_scale else item.get("value"): item.get(
            "probability"
        )
        for item in listed
    }
    return {**answer, "probabilities": of_label}


def system_one_question(question: Question) -> dict[str, Any]:
    """Return a question in the System One format, which LangChain has too."""
    asked: dict[str, Any] = {"type": question.kind, "instructions": question.instructions}
    if question.is_scale:
        asked["criteria"] = list(question.options)
    elif question.options:
        asked["criteria"] = dict(question.options)
    return asked


@dataclass
class LangChainDecisions(DecisionServer):
    """A ``BaseDecisionModel`` of langchain-core 1.8."""

    judge: str
    model: Any
    answered: bool = False

    async def decide(self, state: str, questions: Mapping[str, Question]) -> Decisions:
        """Answer the questions about a state."""
        import langsmith

        kinds = _langchain_questions()
        asked = {}
        for name, question in questions.items():
            fields = system_one_question(question)
            asked[name] = kinds[fields.pop("type")](**fields)
        try:
            with langsmith.tracing_context(enabled=False):
                response = await self.model.ainvoke({"state": state, "questions": asked})
        except Exception as error:  # noqa: BLE001 (every provider raises its own)
            secrets = [v for k, v in os.environ.items() if k.endswith(("_KEY", "_TOKEN"))]
            message = redact_keys(str(error), secrets, MIN_KEY_LENGTH)[:EXCERPT_LENGTH]
            failure = http.classify_failure(error, message, self.judge, answered=self.answered)
            raise (failure or RefusedRequestError(message)) from None
        self.answered = True
        document = json.loads(response.model_dump_json())
        usage = parse_usage(document.get("usage"))
        return Decisions(document["answers"], usage, response.model_dump_json())


def _langchain_questions() -> dict[str, Callable[..., Any]]:
    try:
        decisions = importlib.import_module("langchain_core.decisions")
    except ImportError:
        raise InputError(
            "LangChain's decision models need langchain-core 1.8 or newer:"
            " run  pip install -U langchain-core"
        ) from None
    return {"noul": decisions.Noul, "choice": decisions.Choice, "score": decisions.Score}


def is_decision_model(thing: Any) -> bool:
    """Whether an object is one of LangChain's decision models."""
    return any(base.__name__ == "BaseDecisionModel" for base in type(thing).__mro__)


def judge_from_model(model: Any) -> DecisionJudge:
    """Return the judge that asks one of LangChain's decision models."""
    _langchain_questions()
    name = f"langchain-decisions:{type(model).__name__}:{model.model}"
    identity = {"judge": "langchain-decisions", "class": type(model).__name__, "model": model.model}
    # The field is named by the provider: base_url, upstage_api_base.
    for field, url in vars(model).items():
        if url and field.endswith(("base_url", "api_base")):
            source = f"{field} of {type(model).__name__}"
            identity["base_url"] = http.public_url(str(url), source).partition("://")[2]
    return DecisionJudge(name, identity, LangChainDecisions(name, model))


@judges.register("openai-decisions")
def open_openai_decisions(
    argument: str | None, *, base_url: str | None = None, api_key: str | None = None
) -> DecisionJudge:
    """Open the judge ``openai-decisions:MODEL``.

    Raises
    ------
    InputError
        The model, the key or a usable address is missing.
    """
    model = (argument or "").strip()
    if not model:
        raise InputError(
            "the judge 'openai-decisions' needs a model: --judge openai-decisions:MODEL"
        )
    name = f"openai-decisions:{model}"
    address = http.resolve_address(base_url, api_key)
    server = address.display_url.partition("://")[2]
    identity = {"judge": "openai-decisions", "model": model, "base_url": server}

    def body(state: str, questions: Mapping[str, Question]) -> dict[str, object]:
        asked = [_openai_question(question) for question in questions.values()]
        return {"model": model, "input": state, "questions": asked}

    connection = http.ServerConnection(name, model, address)
    return DecisionJudge(
        name, identity, HttpDecisions(connection, "/decisions", body, _openai_answers)
    )


@judges.register("systemone")
def open_system_one(argument: str | None, *, api_key: str | None = None) -> DecisionJudge:
    """Open the judge ``systemone:URL#MODEL``; its key is in ``SYSTEMONE_API_KEY``.

    Raises
    ------
    InputError
        The URL or the model is missing.
    """
    url, _, model = (argument or "").strip().partition("#")
    if not (url and model):
        raise InputError(
            "the judge 'systemone' needs an endpoint and a model: --judge systemone:URL#MODEL, with the"
            " whole endpoint as URL, such as http://localhost:8000/v1/systemone"
        )
    key = api_key or os.environ.get("SYSTEMONE_API_KEY") or ""
    source = "the URL of --judge systemone:URL#MODEL"
    address = http.ServerAddress.of(url, key, "SYSTEMONE_API_KEY", source)
    shown = address.display_url
    folder, _, path = address.base_url.rpartition("/")
    name = f"systemone:{shown}#{model}"
    identity = {"judge": "systemone", "model": model, "url": shown.partition("://")[2]}

    def body(state: str, questions: Mapping[str, Question]) -> dict[str, object]:
        asked = {name: system_one_question(question) for name, question in questions.items()}
        return {"model": model, "state": state, "questions": asked}

    def read(answers: Any, _: Mapping[str, Question]) -> Mapping[str, Any] | None:
        return answers if isinstance(answers, dict) else None

    connection = http.ServerConnection(name, model, replace(address, base_url=folder))
    return DecisionJudge(name, identity, HttpDecisions(connection, f"/{path}", body, read))


@judges.register("langchain-decisions")
def open_langchain_decisions(argument: str | None) -> DecisionJudge:
    """Open the judge ``langchain-decisions:PROVIDER:MODEL``.

    The provider's package, such as ``langchain_upstage``, has a subclass of ``BaseDecisionModel``.

    Raises
    ------
    InputError
        The provider, the model or a package is missing, or the package has no decision model.
    """
    provider, _, model = (argument or "").strip().partition(":")
    if not (provider and model):
        raise InputError(
            "the judge 'langchain-decisions' needs a provider and a model:"
            " --judge langchain-decisions:PROVIDER:MODEL"
        )
    if provider == "openai":
        raise InputError(
            f"LangChain's OpenAI decisions are a class of their own: use --judge openai-decisions:{model}"
        )
    _langchain_questions()
    package = f"langchain_{provider.replace('-', '_')}"
    try:
        module = importlib.import_module(package)
    except ImportError:
        named = package.replace("_", "-")
        raise InputError(f"the judge needs the package {named}: run  pip install {named}") from None
    kind: Any
    for _, kind in inspect.getmembers(module, inspect.isclass):
        if any(base.__name__ == "BaseDecisionModel" for base in kind.__mro__[1:]):
            return judge_from_model(kind(model=model))
    raise InputError(
        f"{package} has no decision model. Give an object of your own: --judge FILE.py:NAME"
    )
