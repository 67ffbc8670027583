"""Format requests for servers that support different parameters, and detect which they support."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError

from misslink.errors import JudgeUnreachableError, MisslinkError
from misslink.judge.backends.connection import http_status, is_request_refusal
from misslink.judge.backends.response_parsing import ParsedResponse, is_question_error
from misslink.judge.protocol import (
    Ask,
    JudgeInfo,
    Reply,
    RetryableError,
    SkippedAskError,
    schema_json,
)

Failed = TypeVar("Failed", bound=Exception)
Structure = Literal["json_schema", "json_object", "plain"]
TokenLimit = Literal["max_tokens", "max_completion_tokens", "max_output_tokens"]

SEED = 0  # for reproducible replies
TOP_LOGPROBS = 5  # of each token; OpenAI gives up to 20, vLLM by default 5 and some proxies too
OPTIONAL_PARAMETERS = "temperature", "seed", "logprobs", "store"
_SIMPLER_STRUCTURE: dict[str, Structure] = {"json_schema": "json_object", "json_object": "plain"}
_COMPLAINT_PATTERNS = {
    "structure": re.compile(
        r"response_?format|text\.format|'text'|json_?schema|json_object|grammar|structured.?output"
    ),
    "limit": re.compile(r"max_(completion_|output_)?tokens|in the completion"),
    "temperature": re.compile(r"\btemperature\b"),
    "seed": re.compile(r"\bseed\b"),
    "logprobs": re.compile(r"log_?probs?\b|log.probabilit|\binclude\b"),
    "store": re.compile(r"\bstore\b|'store'"),
}
_SCHEMA_INSTRUCTION = "Reply with one JSON object of this schema and nothing else:\n"
_RENAMED_LIMIT = re.compile(r"use '?max_completion_tokens|max_completion_tokens'? instead")


@dataclass(frozen=True)
class RequestFormat:
    """Which parts of a request a server supports; the default is all of a chat request.

    Parameters
    ----------
    structure : {'json_schema', 'json_object', 'plain'}
        How a structured answer is requested. Without a schema parameter the schema is written into
        the system message.
    limit : {'max_tokens', 'max_completion_tokens', 'max_output_tokens'} or None
        The name of the token limit; None sends none.
    temperature, seed, logprobs : bool
        Whether they are sent; some models refuse any value but their default.
    store : bool
        Whether to request that nothing is stored, where the interface stores by default.
    """

    structure: Structure = "json_schema"
    limit: TokenLimit | None = "max_tokens"
    temperature: bool = True
    seed: bool = True
    logprobs: bool = True
    store: bool = True

    def request(
        self, ask: Ask, *, model: str, temperature: float, max_tokens: int, seed: int = SEED
    ) -> dict[str, object]:
        """Return the body of the chat request that puts `ask`."""
        body: dict[str, Any] = {"model": model, "messages": self.messages(ask)}
        answer_format = self.format(ask)
        if answer_format is not None:
            kind = answer_format.pop("type")
            body["response_format"] = {
                "type": kind,
                **({kind: answer_format} if answer_format else {}),
            }
        if self.seed:
            body["seed"] = seed + ask.repeat  # the same seed would draw the same sample again
        if self.logprobs:
            body |= {"logprobs": True, "top_logprobs": TOP_LOGPROBS}
        return body | self.parameters(temperature, max_tokens)

    def messages(self, ask: Ask) -> list[dict[str, str]]:
        """The messages; where no parameter carries the schema, with it in the system message."""
        messages = [dict(message) for message in ask.messages]
        if self.structure == "json_schema":
            return messages
        text = _SCHEMA_INSTRUCTION + schema_json(ask.schema)
        if messages and messages[0]["role"] == "system":  # the stable part
            messages[0]["content"] += f"\n\n{text}"
            return messages
        return [{"role": "system", "content": text}, *messages]

    def format(self, ask: Ask) -> dict[str, Any] | None:
        """The answer format as a parameter; None where none is sent."""
        if self.structure == "plain":
            return None
        if self.structure == "json_object":
            return {"type": "json_object"}
        name = re.sub(r"[^A-Za-z0-9_-]", "_", ask.name)[:64] or "answer"
        return {"type": "json_schema", "name": name, "schema": ask.json_schema, "strict": True}

    def parameters(self, temperature: float, max_tokens: int) -> dict[str, object]:
        """The parameters that every interface has."""
        sent: dict[str, Any] = {self.limit: max_tokens} if self.limit else {}
        return sent | ({"temperature": temperature} if self.temperature else {})

    def named(self, complaint: str) -> RequestFormat | None:
        """The request_format without what `complaint` names; None where it names nothing sent."""
        words = complaint.lower()
        changes: dict[str, Any] = {
            name: False
            for name in OPTIONAL_PARAMETERS
            if getattr(self, name) and _COMPLAINT_PATTERNS[name].search(words)
        }
        if self.limit == "max_tokens" and _RENAMED_LIMIT.search(words):
            changes["limit"] = "max_completion_tokens"
        elif self.limit and _COMPLAINT_PATTERNS["limit"].search(words):
            changes["limit"] = None
        # The schema last: without it replies are worse.
        names_structure = _COMPLAINT_PATTERNS["structure"].search(words)
        if not changes and names_structure and self.structure in _SIMPLER_STRUCTURE:
            changes["structure"] = _SIMPLER_STRUCTURE[self.structure]
        return replace(self, **changes) if changes else None

    def simpler(self, complaint: str) -> RequestFormat | None:
        """Return the request_format to try after a server refused this one.

        Parameters
        ----------
        complaint : str
            What it said. What it names is left out or renamed, the structure last; where it
            names nothing, JSON mode is tried, and then the least that can be sent.

        Returns
        -------
        RequestFormat or None
            None where the complaint is about the question, or nothing is left to give up.
        """
        other = self.named(complaint)
        if other is None and not is_question_error(complaint):
            barest = RequestFormat("plain", self.limit, *[False] * (len(fields(RequestFormat)) - 2))
            is_whole = self.structure == "json_schema"
            other = replace(self, structure="json_object") if is_whole else barest
        return None if other == self else other


REFUSAL_MESSAGE = "the judge refused the question: {}"
_FORBIDDEN = 403
_SERVER_ERROR = 500
_PROBE_WAIT_S = 10.0  # a refusal comes at once; a first reply that takes longer is being written


# What an error says, and the error to raise; None where the question, or its format, is refused.
Explanation = tuple[str, RetryableError | JudgeUnreachableError | None]


class CapabilityProbe:
    """Detects which request format a server supports.

    Each complaint that names a part of the request costs one refused call, and that part alone. Where
    a complaint names nothing, three formats are tried: the full one, JSON mode, and the barest one. A
    server that has not answered yet and fails (5xx) twice on the same structured question gets it once
    without a structure; this does not count as a refusal, because the server may be down.

    What a server refused is stored for later runs. What is only inferred from failures or ignored
    formats applies to this run. `request_format` is what to try next, and `settled` says whether the
    server accepted it, in this run or an earlier one.
    """

    def __init__(self, first: RequestFormat) -> None:
        self.request_format = first
        self.settled = False
        self.gives_logprobs: bool | None = None  # None before the first reply
        self._heard = False  # settled in this run
        self._broken: set[str] = set()  # questions that the server failed on
        self._was_bare = False  # such a one was put again without a structure
        self._inferred_from: Structure | None = None
        self._finding_out = asyncio.Lock()

    async def ask(
        self,
        ask: Ask,
        call: Callable[[RequestFormat], Awaitable[ParsedResponse]],
        errors: type[Failed],
        explain: Callable[[Failed], Explanation],
    ) -> Reply:
        """Put an ask by `call`, in another format where the server refuses one.

        The reply is a `Reply.nothing` where the server refuses the question. Raises RetryableError or
        JudgeUnreachableError where an error among `errors` means that.
        """
        tried = [self.request_format]
        while True:
            try:
                response = await call(tried[-1])
            except (RetryableError, SkippedAskError, MisslinkError):
                raise
            except errors as error:
                complaint, meaning = explain(error)
                param, code = (getattr(error, name, "") for name in ("param", "code"))
                about = f"{complaint} '{param}' {code}"
                named = tried[-1].named(about)
                is_parameter = http_status(error) == _FORBIDDEN and named is not None
                if isinstance(meaning, JudgeUnreachableError) and not is_parameter:
                    raise meaning from None
                other = None
                if is_parameter or is_request_refusal(error):
                    other = self.refused(tried, about)
                elif isinstance(meaning, RetryableError):
                    is_server_error = (http_status(error) or 0) >= _SERVER_ERROR
                    if is_server_error and meaning.after is None:
                        other = self.broken(ask.key, tried)
                    if other is None:
                        raise meaning from None
                if other is None:
                    return Reply.nothing(REFUSAL_MESSAGE.format(complaint))
                tried.append(other)
            else:
                return self._read(response, ask, tried[-1])

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One ask finds out what the server takes; the others wait for that, but not for long."""
        async with contextlib.AsyncExitStack() as stack:
            if not self.settled:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_PROBE_WAIT_S):
                        await stack.enter_async_context(self._finding_out)
            if self.settled:  # perhaps found out in the meantime
                await stack.aclose()
            yield

    def learn(self, abilities: Mapping[str, Any]) -> None:
        """Believe what an earlier run found out; what is no request_format is ignored."""
        if isinstance(abilities.get("gives_logprobs"), bool):
            self.gives_logprobs = abilities["gives_logprobs"]
        with contextlib.suppress(KeyError, ValidationError):
            values = json.dumps({each.name: abilities[each.name] for each in fields(RequestFormat)})
            known = TypeAdapter(RequestFormat).validate_json(values, strict=True)
            self.request_format, self.settled = known, True

    def abilities(self) -> dict[str, object]:
        """What was found out, without what is inferred, as JSON values; empty before it is settled."""
        if not self.settled:
            return {}
        structure = self._inferred_from or self.request_format.structure
        found = {"structure": structure, "gives_logprobs": self.gives_logprobs}
        return vars(self.request_format) | found

    def info(self, **facts: Any) -> JudgeInfo:
        """Return these facts of a judge beside what was found out of its server."""
        found: dict[str, Any] = {
            "abilities": self.abilities(),
            "learn": self.learn,
            "structure": self.request_format.structure if self.settled else None,
            "structure_in_doubt": bool(self._broken) and not (self._was_bare or self.settled),
            "supports": self.takes,
        }
        return JudgeInfo(**found | facts)

    def takes(self, feature: str) -> bool | None:
        """Whether a flag of `RequestFormat` or a structure is sent; None where that is not known."""
        if not self.settled:
            return None
        if feature in OPTIONAL_PARAMETERS:  # the barest format says nothing of each
            sent = {name: getattr(self.request_format, name) for name in OPTIONAL_PARAMETERS}
            return sent[feature] if any(sent.values()) else None
        simplicity = list(get_args(Structure)).index
        ours, theirs = simplicity(self.request_format.structure), simplicity(feature)
        return None if theirs > ours else theirs == ours

    def accepted(self, request_format: RequestFormat) -> None:
        """A reply came to a request in `request_format`."""
        if not self.settled:
            self.request_format = request_format
            if request_format.structure != "plain":
                self._inferred_from = None
        self.settled = self._heard = True

    def refused(self, tried: Sequence[RequestFormat], complaint: str) -> RequestFormat | None:
        """Return the request_format in which to put the same question again, or None.

        `tried` are all in which it was put, the refused one last.
        """
        if self.request_format not in tried:  # another question found out in the meantime
            return self.request_format
        if self._heard:  # one question that needs less, for itself
            return tried[-1].named(complaint)
        other = tried[-1].simpler(complaint)
        if other is not None and self.settled:  # the server has changed since
            self.settled = False
            self.request_format = other
        if other is not None and other.structure != tried[-1].structure:
            self._inferred_from = None
        return other

    def broken(self, question: str, tried: Sequence[RequestFormat]) -> RequestFormat | None:
        """Return the request_format in which to put a structured question again that met a 5xx, or None.

        Parameters
        ----------
        question : str
            Its key. Earlier replies distinguish a server that cannot from one with a passing error.
        tried : sequence of RequestFormat
            All in which the question was put, the one that the server failed on last.
        """
        last = tried[-1]
        if last.structure == "plain":
            return None
        if self.request_format not in tried:
            return self.request_format
        if self._heard:
            return None
        again = question in self._broken
        self._broken.add(question)
        if not again or self._was_bare:
            return None
        self.settled = False
        self._inferred_from = last.structure
        self._was_bare = True
        return replace(last, structure="plain")

    def _read(self, response: ParsedResponse, ask: Ask, request_format: RequestFormat) -> Reply:
        """Read what was said, and learn from how it was said.

        Where the first reply silently ignores the format, the schema is written into the prompt from
        then on. This is inferred from one reply, so it is not part of `abilities`.
        """
        is_first = not self._heard
        self.accepted(request_format)
        self.gives_logprobs = self.gives_logprobs or bool(response.logprobs)
        reply = response.reply(ask.schema)
        is_first = is_first and reply.parsed is None
        if is_first and response.ignores(request_format.structure, ask.schema):
            self._inferred_from = request_format.structure
            self.request_format = replace(request_format, structure="plain")
        return reply
