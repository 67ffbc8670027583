"""What every judge takes and returns: an Ask and a Reply, and the exceptions that judge middleware passes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import BaseModel

from misslink.types import PromptRef, Usage

if TYPE_CHECKING:
    from misslink.judge.config import Price
    from misslink.judge.prompts import Prompt


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


def hash_texts(texts: Sequence[str]) -> str:
    """Return the SHA-256 of a list of texts."""
    # With its length before each, no two lists of texts are the same content.
    content = "".join(f"{len(text)}:{text}" for text in texts)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


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
    rest : callable or None
        Takes sentences of the answer and returns the question for their claims alone.
    repairs : bool
        Whether it asks once more because a reply could not be read.
    """

    name: str
    inputs: Mapping[str, Any]
    messages: Sequence[Mapping[str, str]]
    schema: type[BaseModel]
    prompt: PromptRef
    repeat: int = 0
    rest: Callable[[tuple[str, ...]], Ask] | None = field(default=None, compare=False, repr=False)
    repairs: bool = False

    @classmethod
    def rendered(
        cls,
        prompt: Prompt,
        inputs: Mapping[str, Any],
        schema: type[BaseModel],
        *,
        rest: Callable[[tuple[str, ...]], Ask] | None = None,
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
            messages=prompt.rendered(inputs),
            schema=schema,
            prompt=prompt.ref,
            rest=rest,
        )

    @property
    def json_schema(self) -> dict[str, object]:
        """The answer schema as strict JSON schema: closed objects, every field required."""
        return strict_schema(self.schema)

    @cached_property
    def key(self) -> str:
        """SHA-256 of the messages and the schema; the same for every sample of a question."""
        digest = getattr(self.messages, "digest", None)  # of messages that are not yet rendered
        messages = (
            [digest]
            if digest
            else [part for text in self.messages for part in (text["role"], text["content"])]
        )
        return hash_texts((*messages, schema_json(self.schema)))

    @property
    def characters(self) -> int:
        """Length of all messages and the JSON schema; a quarter of it is about the tokens."""
        text = sum(len(message["content"]) for message in self.messages)
        return text + len(schema_json(self.schema))


@dataclass(frozen=True)
class Reply:
    """What a judge answered.

    Parameters
    ----------
    parsed : BaseModel or None
        An instance of the ask's schema; None where the reply could not be read as one.
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
    """

    parsed: BaseModel | None
    raw: str
    usage: Usage | None = None
    probabilities: Probabilities = field(default_factory=dict)
    problem: str | None = None
    from_cache: bool = False
    judge: str | None = None

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
