"""What every judge takes and returns: an Ask and a Reply, and the exceptions that judge middleware passes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, model_validator

from misslink.judge.config import Price
from misslink.judge.prompts import BUILT_IN, Criterion, Prompt, Prompts, RenderedMessages
from misslink.types import PromptRef, Usage


@cache
def strict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema of `model` as strict servers require it, without titles and defaults.

    Cached, because it costs as much as a request. Do not change the result.
    """
    raw = model.model_json_schema()
    definitions = raw.pop("$defs", {})

    def close(node: Any) -> Any:
        if isinstance(node, list):
            return [close(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return close(definitions[node["$ref"].rsplit("/", 1)[-1]])
        dropped = ("title", "default", "description")
        kept: dict[str, Any] = {}
        for name, item in node.items():
            if name == "properties":
                kept[name] = {field: close(spec) for field, spec in item.items()}
            elif name not in dropped:
                kept[name] = close(item)
        if "properties" in kept:
            kept["required"] = list(kept["properties"])
            kept["additionalProperties"] = False
        return _compact_nullable(kept)

    closed: dict[str, Any] = close(raw)
    return closed


@cache
def schema_json(model: type[BaseModel]) -> str:
    """Return the strict schema as compact JSON, worked out once a model."""
    return json.dumps(strict_schema(model), separators=(",", ":"), ensure_ascii=False)


def _compact_nullable(node: dict[str, Any]) -> dict[str, object]:
    """Say "this or null" with fewer tokens than ``anyOf``; where it has labels, ask for one of them."""
    options = node.get("anyOf", [])
    if options and all(set(option) == {"type"} for option in options):
        return {"type": [option["type"] for option in options]}
    if options[1:] == [{"type": "null"}] and "enum" in options[0]:
        return dict(options[0])  # null is for judges that read no prompt
    return node


Probabilities = Mapping[str, Mapping[str, float]]  # place in the reply -> label -> probability
_DEFAULT_MAX_TOKENS = 4096  # tokens; what the judges that come with misslink ask for by default


class RetryableError(Exception):
    """No reply arrived, and the same question may succeed later.

    Parameters
    ----------
    problem : str
        Why, as part of a sentence.
    kind : {'rate', 'server', 'connection', 'absent', 'time'}
        Rate limited; the server failed; the connection broke; the connection was refused, so nothing
        was sent; no reply arrived in time.
    after : float or None
        Seconds that the server asks to wait.
    """

    def __init__(
        self,
        problem: str,
        kind: Literal["rate", "server", "connection", "absent", "time"],
        after: float | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.kind = kind
        self.after = after


class SkippedAskError(Exception):
    """A question is skipped on purpose: the budget or the time of the run is used up.

    Its verdicts are skipped, and a later run continues.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Ask:
    """One question to a judge.

    Parameters
    ----------
    name : str
        Name of the prompt.
    inputs : mapping
        Structured inputs, for judges that read no prompt.
    messages : sequence of mapping
        Rendered chat messages, ``{"role", "content"}``, stable part first.
    schema : type of BaseModel
        Schema of the answer.
    prompt : PromptRef
        Name, version and hash of the prompt.
    repeat : int
        Index of the sample, from 0.
    alone : callable or None
        Returns a question with a one-label answer, for a judge that cannot answer this question.
    rest : callable or None
        Takes sentences of the answer and returns the question for their claims alone.
    structured : bool
        Whether the answer is JSON. False: a single word, a label of the schema's only field; no
        schema is sent.
    """

    name: str
    inputs: Mapping[str, Any]
    messages: Sequence[Mapping[str, str]]
    schema: type[BaseModel]
    prompt: PromptRef
    repeat: int = 0
    alone: Callable[[], Ask] | None = field(default=None, compare=False, repr=False)
    rest: Callable[[tuple[str, ...]], Ask] | None = field(default=None, compare=False, repr=False)
    structured: bool = True

    @classmethod
    def rendered(
        cls,
        prompt: Prompt,
        inputs: Mapping[str, Any],
        schema: type[BaseModel],
        *,
        alone: Callable[[], Ask] | None = None,
        rest: Callable[[tuple[str, ...]], Ask] | None = None,
        structured: bool = True,
    ) -> Ask:
        """Return the question that a prompt makes of `inputs`.

        Raises
        ------
        InputError
            The prompt cannot be rendered; with its line.
        """
        return cls(
            name=prompt.ref.name,
            inputs=inputs,
            messages=RenderedMessages(prompt, inputs),
            schema=schema,
            prompt=prompt.ref,
            alone=alone,
            rest=rest,
            structured=structured,
        )

    @property
    def json_schema(self) -> dict[str, object]:
        """The answer schema as strict JSON schema: closed objects, every field required."""
        return strict_schema(self.schema)

    @cached_property
    def key(self) -> str:
        """SHA-256 of the messages and the schema; the same for every sample of a question."""
        if isinstance(self.messages, RenderedMessages):
            parts = [self.messages.digest]
        else:
            parts = [part for text in self.messages for part in (text["role"], text["content"])]
        parts += [schema_json(self.schema), str(self.structured)]
        # With its length before each, no two lists of texts are the same content.
        content = "".join(f"{len(text)}:{text}" for text in parts)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def characters(self) -> int:
        """Length of all messages and the JSON schema; a quarter of it is about the tokens."""
        text = sum(len(message["content"]) for message in self.messages)
        if not self.structured:
            return text
        return text + len(schema_json(self.schema))


@dataclass(frozen=True)
class Reply:
    """What a judge answered.

    Parameters
    ----------
    parsed : BaseModel or None
        An instance of the ask's schema, or of that of ``ask.alone()``; None where the reply could
        not be read as one.
    raw : str
        The reply as it came.
    usage : Usage or None
    probabilities : mapping of str to mapping of str to float
        The probability of each label by place in the reply, such as ``claims.0.support``, where
        the judge gives it; the labels of one place sum to 1. The labels of a yes or no are
        ``true`` and ``false``. Without any label: the judge refused to answer at this place, and what
        `parsed` holds there means nothing.
    problem : str or None
        Why `parsed` is None.
    from_cache : bool
        Read from the cache, so not paid for now.
    judge : str or None
        Who answered, where a judge passes on what another one said. None: the judge itself.
    cause : str or None
        What was wrong with the first reply, where `parsed` is that of ``ask.alone()`` in its place.
    """

    parsed: BaseModel | None
    raw: str
    usage: Usage | None = None
    probabilities: Probabilities = field(default_factory=dict)
    problem: str | None = None
    from_cache: bool = False
    judge: str | None = None
    cause: str | None = None

    @classmethod
    def nothing(cls, problem: str) -> Reply:
        """Return the reply for an ask to which nothing came back, so nothing was paid.

        The cache does not keep it, and a later run asks once more.
        """
        return cls(parsed=None, raw="", problem=problem)

    @property
    def came(self) -> bool:
        """Whether the judge's words arrived, readable or not."""
        return self.parsed is not None or bool(self.raw) or self.usage is not None

    def chance(self, place: str, *labels: str) -> float | None:
        """Return the probability of any of `labels` at `place`; None where it is not known."""
        of_label = self.probabilities.get(place)
        if not of_label:
            return None
        return min(1.0, sum(of_label.get(label, 0.0) for label in labels))

    def refuses(self, *places: str) -> bool:
        """Whether the judge refused to answer at a place; ``*`` stands for any number."""
        if not self.probabilities:
            return False
        refused = [place for place, of_label in self.probabilities.items() if not of_label]
        return any(fnmatchcase(place, pattern) for place in refused for pattern in places)


def total_usage(replies: Iterable[Reply]) -> Usage | None:
    """Return what several replies used together; None where none of them says what it used."""
    return Usage.total(reply.usage for reply in replies)


@dataclass(frozen=True)
class JudgeInfo:
    """Optional facts and abilities of a judge.

    Parameters
    ----------
    note : str or None
        One line that readers of the judge's verdicts must know.
    context_length : int or None
        Maximum tokens of prompt and reply together. None: unknown.
    max_tokens : int
        Maximum tokens of a reply.
    max_concurrency : int or None
        Maximum number of concurrent asks. None: no limit.
    price : Price or None
        Token prices that the judge's server reports.
    abilities : mapping or None
        JSON values that the judge detected about its server, stored in the response cache. Empty
        before the first reply. None: the judge detects nothing.
    learn : callable or None
        Takes the abilities that an earlier run detected, so that a resumed run sends the same
        requests.
    check_reachable : callable or None
        Async; raises JudgeUnreachableError if the server cannot answer. Uses no tokens.
    prepare : callable or None
        Async; waits until the judge is ready, for example until a model is loaded.
    structure : str or None
        Answer format: 'json_schema', 'json_object' or 'plain'. None: unknown.
    structure_in_doubt : bool
        Whether the server failed, possibly because of the answer format.
    supports : callable or None
        Takes 'seed', 'logprobs' or 'json_object'; returns whether the server supports it, or None
        if unknown.
    requests_sent : int or None
        Requests sent so far, rejected ones included. None: not counted.
    limits : mapping of str to int or None
        What a request may hold at most, such as ``{"questions": 400}``. None: not known.
    request_characters : callable or None
        Takes an ask and returns the length of what the judge sends. None: the messages and the schema.
    """

    note: str | None = None
    context_length: int | None = None
    max_tokens: int = _DEFAULT_MAX_TOKENS
    max_concurrency: int | None = None
    price: Price | None = None
    abilities: Mapping[str, Any] | None = None
    learn: Callable[[Mapping[str, Any]], None] | None = None
    check_reachable: Callable[[], Awaitable[None]] | None = None
    prepare: Callable[[], Awaitable[object]] | None = None
    structure: str | None = None
    structure_in_doubt: bool = False
    supports: Callable[[str], bool | None] | None = None
    requests_sent: int | None = None
    limits: Mapping[str, int] | None = None
    request_characters: Callable[[Ask], int] | None = None


class Judge(Protocol):
    """Anything that answers an Ask.

    ``name`` goes into every verdict. ``identity`` holds what a reply depends on beside the ask
    (model, parameters, version of fitted coefficients), never a key or a header.

    A judge may have an attribute or property ``info``, a `JudgeInfo`; `judge_info` reads it.
    """

    name: str
    identity: Mapping[str, Any]

    async def ask(self, ask: Ask) -> Reply:
        """Answer.

        Raises
        ------
        RetryableError
            Nothing came, and later it may.
        SkippedAskError
            The question is not put, on purpose.
        JudgeUnreachableError
            Asking on is pointless.
        """
        ...

    async def close(self) -> None:
        """Let go of connections and files."""
        ...


class JudgeLayer:
    """A judge around another one, with that one's name and identity."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.name: str = judge.name
        self.identity: Mapping[str, Any] = judge.identity

    async def close(self) -> None:
        """Close the judge."""
        await self.judge.close()


def judge_info(judge: Judge) -> JudgeInfo:
    """Return the `JudgeInfo` of a judge, or of the judge it wraps if it defines none."""
    infos = (getattr(layer, "info", None) for layer in layers(judge))
    return next((info for info in infos if info is not None), JudgeInfo())


def layers(judge: Judge) -> Iterator[Judge]:
    """Yield a judge and what it wraps, outermost first: middleware stores that as ``judge``."""
    layer: Judge | None = judge
    while layer is not None:
        yield layer
        layer = getattr(layer, "judge", None)


def unwrap_judge(judge: Judge) -> Judge:
    """Return the innermost judge."""
    return list(layers(judge))[-1]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


MAX_QUOTES = 2  # of a claim; a judge's further ones are not read


JudgedSupport = Literal["supported", "contradicted", "partly", "unsupported"]


class QuotedPart(_Part):
    """A part with ``quotes``: as such, or as ``quote``, one text or null."""

    @model_validator(mode="before")
    @classmethod
    def _read_quotes(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        quotes = data.get("quotes") or data.get("quote") or ()
        quotes = [quotes] if isinstance(quotes, str) else quotes
        return {**data, "quotes": [quote for quote in quotes if quote is not None]}


class ExaminedClaim(QuotedPart):
    """A claim of the answer, and the words of passages that decide it.

    ``span`` holds the words of the answer that make it (empty: those of ``claim``); ``claim`` is clear
    by itself, and null where it would equal the span. Evidence comes before the verdict, as a model
    writes in this order.
    """

    span: str = ""
    claim: str | None = None
    quotes: tuple[str, ...] = ()
    support: JudgedSupport

    @property
    def text(self) -> str:
        """The claim, clear by itself."""
        return self.claim or self.span


class ExaminedClaimWithReference(ExaminedClaim):
    """A claim that is compared with the reference answers too."""

    reference: Literal["agrees", "contradicts", "silent"]


class ExaminedPassage(_Part):
    """Whether a passage (from 1) helps to answer the question."""

    passage: int
    relevant: bool


class ExaminedReferenceClaim(_Part):
    """A claim of a reference answer (from 1), and whether the answer makes it."""

    reference: int
    text: str
    answer: Literal["states", "contradicts", "omits"]


@dataclass(frozen=True)
class DecisionQuestion:
    """How a decision model is asked for a field of an examination.

    ``meanings`` has what each value means; without them it is a question of yes or no. ``is_scale``:
    the values are levels, lowest first.
    """

    text: str
    meanings: Mapping[Any, str] = field(default_factory=dict)
    is_scale: bool = False


class Examination(_Part):
    """What is said of a case that has no reference answer.

    A field with a default is null where a judge cannot tell, as the heuristic one.
    """

    claims: tuple[ExaminedClaim, ...]
    passages: tuple[ExaminedPassage, ...]
    sufficient: Annotated[
        Literal["yes", "partly", "no"] | None,
        DecisionQuestion("Do the passages alone answer the question in full?"),
    ] = None
    response: Annotated[
        Literal["answers", "partly", "evades", "declines"],
        DecisionQuestion(  # whether it declines is another question
            "How does the answer respond?",
            {
                "answers": "it answers it",
                "partly": "it answers a part",
                "evades": "off topic",
            },
        ),
    ]
    helpful: Annotated[
        Literal[1, 2, 3, 4, 5] | None,
        DecisionQuestion(
            "Would the answer satisfy the asker? Longer is not better.",
            dict(enumerate(("useless", "hardly", "half", "mostly", "fully"), 1)),
            is_scale=True,
        ),
    ] = None


class ExaminationWithReference(Examination):
    """What is said of a case that has reference answers."""

    claims: tuple[ExaminedClaimWithReference, ...]
    reference_claims: tuple[ExaminedReferenceClaim, ...]


class StandaloneQuestion(_Part):
    """The question of a conversation, worded so that it is clear without the messages before it."""

    standalone_question: str | None = None


class ConversationExamination(Examination, StandaloneQuestion):
    """What is said of a case with a history and without a reference answer."""


class ConversationExaminationWithReference(ExaminationWithReference, StandaloneQuestion):
    """What is said of a case with a history and reference answers."""


class ExaminedCriterion(_Part):
    """Whether the answer meets a criterion of the user's own; null where a judge cannot tell."""

    criterion: str
    met: Literal["yes", "partly", "no"] | None = None


class JudgedCriteria(_Part):
    """What is said of the user's own criteria, beside an examination."""

    criteria: tuple[ExaminedCriterion, ...]


class CriteriaExamination(Examination, JudgedCriteria):
    """An examination with criteria."""


class CriteriaExaminationWithReference(ExaminationWithReference, JudgedCriteria):
    """The same with reference answers."""


class CriteriaConversationExamination(ConversationExamination, JudgedCriteria):
    """The same with a history."""


class CriteriaConversationExaminationWithReference(
    ConversationExaminationWithReference, JudgedCriteria
):
    """The same with a history and reference answers."""


# By what an examination has: criteria, a history, references.
_EXAMINATIONS: Mapping[tuple[bool, bool, bool], type[Examination]] = {
    (False, False, False): Examination,
    (False, False, True): ExaminationWithReference,
    (False, True, False): ConversationExamination,
    (False, True, True): ConversationExaminationWithReference,
    (True, False, False): CriteriaExamination,
    (True, False, True): CriteriaExaminationWithReference,
    (True, True, False): CriteriaConversationExamination,
    (True, True, True): CriteriaConversationExaminationWithReference,
}


class ExaminationRest(_Part):
    """The claims of sentences that an examination left out."""

    claims: tuple[ExaminedClaim, ...]


class ExaminationRestWithReference(ExaminationRest):
    """The same of a case that has reference answers."""

    claims: tuple[ExaminedClaimWithReference, ...]


class LabelAlone(_Part):
    """The reply of a judge that can give one word only: do the passages support the whole answer?"""

    supported: Literal["yes", "no"]


def examine(
    question: str,
    passages: tuple[str, ...],
    answer: str,
    references: tuple[str, ...] = (),
    *,
    history: Sequence[Mapping[str, str]] = (),
    criteria: Sequence[Mapping[str, str]] = (),
    prompts: Prompts = BUILT_IN,
) -> Ask:
    """Ask for claims with support and quotes, passage relevance, and the response as a whole.

    Parameters
    ----------
    question, answer : str
    passages : sequence of str
        What the answer was written from, best first; the reply names them from 1.
    references : sequence of str
        Acceptable answers; without any the reply says nothing of correctness.
    history : sequence of mapping
        Earlier messages, oldest first, each with ``role`` and ``content``.
    criteria : sequence of mapping
        The user's own, each with ``name`` and ``question``.
    prompts : Prompts
        Where ``examination`` and ``label_alone`` are read from.
    """
    inputs: dict[str, Any] = {
        "question": question,
        "passages": passages,
        "answer": answer,
        "references": references,
        "history": tuple(history),
    }
    whole = {**inputs, "criteria": tuple(criteria)} if criteria else inputs

    def alone() -> Ask:
        return Ask.rendered(prompts.load("label_alone"), inputs, LabelAlone, structured=False)

    def ask_rest(sentences: tuple[str, ...]) -> Ask:
        schema = ExaminationRestWithReference if references else ExaminationRest
        asked = {**inputs, "sentences": sentences}
        return Ask.rendered(prompts.load("examination_rest"), asked, schema)

    schema = _EXAMINATIONS[bool(criteria), bool(history), bool(references)]
    asking = replace(prompts, criteria=tuple(Criterion(**each) for each in criteria))
    prompt = asking.load("examination")
    return Ask.rendered(prompt, whole, schema, alone=alone, rest=ask_rest)
