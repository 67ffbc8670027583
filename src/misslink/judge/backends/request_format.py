"""Format requests for servers that support different parameters, and detect which they support."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from misslink.judge.backends.response_parsing import ParsedResponse, is_question_error
from misslink.judge.protocol import Ask, Reply, RetryableError, schema_json

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

    def without(self, complaint: str) -> RequestFormat | None:
        """Return the request_format to try after a server refused this one.

        Parameters
        ----------
        complaint : str
            What it said. What it names is left out or renamed, the structure last; where it
            names nothing, the next simpler way to ask for structure is taken.

        Returns
        -------
        RequestFormat or None
            None where the complaint is about the question, or nothing is left to give up.
        """
        other = self.named(complaint)
        if other is not None:
            return other
        if is_question_error(complaint):
            return None
        simpler = _SIMPLER_STRUCTURE.get(self.structure)
        return replace(self, structure=simpler) if simpler else None

    def barest(self, complaint: str) -> RequestFormat:
        """The least that can be sent: messages, and the token limit unless it is complained of."""
        named = self.named(complaint)
        return RequestFormat(
            "plain", (named or self).limit, *[False] * (len(fields(RequestFormat)) - 2)
        )


def is_refused_parameter(status: int | None, complaint: str, sent: RequestFormat) -> bool:
    """Whether a 403 is about a parameter that was sent, such as logprobs, and not about the key."""
    return status == _FORBIDDEN and sent.named(complaint) is not None


@dataclass(frozen=True)
class ApiInterface:
    """One of the ways of an OpenAI-compatible server.

    Parameters
    ----------
    name : str
        Of the judge that uses it.
    path : str
        Where requests go, below the base URL.
    request_format : RequestFormat
        The whole of it.
    request : callable
        Words an ask in a request_format, as `RequestFormat.request`.
    read : callable
        What the model said, from the body of a response; a sentence where it said nothing.
    """

    name: str
    path: str
    request_format: RequestFormat
    request: Callable[..., dict[str, Any]]
    read: Callable[[str], ParsedResponse | str]


REFUSAL_MESSAGE = "the judge refused the question: {}"
_FORBIDDEN = 403
_SERVER_ERROR = 500
_MAX_FORMATS = 3  # of one question, until the server is known
_PROBE_WAIT_S = 10.0  # a refusal comes at once; a first reply that takes longer is being written


class CapabilityProbe:
    """Detects which request format a server supports.

    Each complaint that names a part of the request costs one refused call, and that part alone. Where
    a complaint names nothing, at most three formats are tried for the first question that can be
    answered at all: the full one, a simpler structure, and the barest one. A server that has
    not answered yet and fails (5xx) twice on the same structured question gets it once without a
    structure; this does not count as a refusal, because the server may be down.

    What a server refused is stored for later runs. What is only inferred from failures or ignored
    formats applies to this run. `request_format` is what to try next, and `settled` says whether the
    server accepted it.
    """

    def __init__(self, first: RequestFormat) -> None:
        self.request_format = first
        self.settled = False
        self.gives_logprobs: bool | None = None  # None before the first reply
        self._first = first
        self._hearsay = False  # learnt from an earlier run, not yet seen in this one
        self._refused = 0
        self._broken: set[str] = set()  # questions that the server failed on
        self._bare: RequestFormat | None = None  # in which such a one was put again
        self._named: set[str] = set()  # what the server complained of
        self._ignored = False
        self._obeyed = False
        self._inferred_from: Structure | None = None
        self._finding_out = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One ask finds out what the server takes; the others wait for that, but not for long."""
        has_turn = False
        if not self.settled:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_PROBE_WAIT_S):
                    has_turn = await self._finding_out.acquire()
        if has_turn and self.settled:  # found out in the meantime
            self._finding_out.release()
            has_turn = False
        try:
            yield
        finally:
            if has_turn:
                self._finding_out.release()

    def learn(self, abilities: Mapping[str, Any]) -> None:
        """Believe what an earlier run found out; what is no request_format is ignored."""
        if isinstance(abilities.get("gives_logprobs"), bool):
            self.gives_logprobs = abilities["gives_logprobs"]
        with contextlib.suppress(KeyError, ValidationError):
            values = json.dumps({each.name: abilities[each.name] for each in fields(RequestFormat)})
            known = TypeAdapter(RequestFormat).validate_json(values, strict=True)
            self.request_format, self.settled, self._hearsay = known, True, True

    def abilities(self) -> dict[str, object]:
        """What was found out, without what is inferred, as JSON values; empty before it is settled."""
        if not self.settled:
            return {}
        structure = self._inferred_from or self.request_format.structure
        found = {"structure": structure, "gives_logprobs": self.gives_logprobs}
        return vars(self.request_format) | found

    @property
    def structure(self) -> Structure | None:
        """The structure in which questions are put; None before it is settled."""
        return self.request_format.structure if self.settled else None

    def takes(self, feature: str) -> bool | None:
        """Whether the server takes a parameter or a structure.

        Parameters
        ----------
        feature : str
            A flag of `RequestFormat`, ``json_schema`` or ``json_object``.

        Returns
        -------
        bool or None
            None where that is not known: nothing came yet, or it was given up with all the rest,
            uncomplained of.
        """
        if not self.settled:
            return None
        if feature in OPTIONAL_PARAMETERS:
            if getattr(self.request_format, feature):
                return True
            return False if feature in self._named or not getattr(self._first, feature) else None
        if self.request_format.structure == feature:
            return True
        return False if feature in self._named or feature == self._inferred_from else None

    @property
    def doubted(self) -> bool:
        """Whether a structured question, if it fails again, is put without a structure."""
        return bool(self._broken) and self._bare is None and not self.settled

    def accepted(self, request_format: RequestFormat) -> None:
        """A reply came to a request in `request_format`."""
        if not self.settled:
            self.request_format, self.settled = request_format, True
            if request_format.structure != "plain":
                self._inferred_from = None
        self._hearsay = False

    def refused(self, tried: Sequence[RequestFormat], complaint: str) -> RequestFormat | None:
        """Return the request_format in which to put the same question again, or None.

        Where it is None and `request_format` is not among those tried, the question may be put again.

        Parameters
        ----------
        tried : sequence of RequestFormat
            All in which the question was put, the refused one last.
        complaint : str
        """
        last = tried[-1]
        named = last.named(complaint)
        guesses = 1 + sum(one.structure != other.structure for one, other in pairwise(tried))
        enough = named is None and guesses + bool(self._broken) >= _MAX_FORMATS
        if self.request_format not in tried:  # another question found out in the meantime
            return None if enough else self.request_format
        if self.settled and not self._hearsay:  # one question that needs less, for itself
            return named
        other = last.without(complaint)
        if other is None and is_question_error(complaint):
            return None
        self._note(last, complaint)
        self._refused += named is None
        if other is None or (named is None and self._refused > 1):
            other = last.barest(complaint)
        if self._hearsay:  # the server has changed since
            self.settled = self._hearsay = False
            self.request_format = other
        if other in tried:
            return None
        if enough:
            self.request_format = other  # what is put next begins here
            return None
        return other

    def after_refusal(
        self, tried: Sequence[RequestFormat], complaint: str, about: str
    ) -> RequestFormat | None:
        """As `refused` with a complaint `about` this; raises where the question may be put again."""
        other = self.refused(tried, about)
        if other is None and self.request_format not in tried:
            raise RetryableError(REFUSAL_MESSAGE.format(complaint), "server") from None
        return other

    def after_failure(
        self, tried: Sequence[RequestFormat], ask: Ask, failure: RetryableError, status: int | None
    ) -> RequestFormat:
        """As `broken`, for an ask that failed with this HTTP status; raises `failure` where it is None."""
        is_server_error = (status or 0) >= _SERVER_ERROR
        other = None
        if is_server_error and failure.after is None:
            other = self.broken(ask.key, tried)
        if other is None:
            raise failure from None
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
        if last.structure == "plain" or len(tried) >= _MAX_FORMATS:
            return None
        if self.request_format not in tried:
            return self.request_format
        if self.settled and not self._hearsay:
            return None
        again = question in self._broken
        self._broken.add(question)
        if not again or self._bare is not None:
            return None
        self.settled = self._hearsay = False
        self._inferred_from = last.structure
        self._bare = replace(last, structure="plain")
        return self._bare

    def read(self, response: ParsedResponse, ask: Ask, request_format: RequestFormat) -> Reply:
        """Read what was said to `ask`, put in `request_format`, and learn from how it was said."""
        self.accepted(request_format)
        self.gives_logprobs = self.gives_logprobs or response.gives_logprobs
        reply = response.reply(ask.schema)
        fits = reply.parsed is not None
        ignored = not fits and response.ignores(request_format.structure, ask.schema)
        self.record_obedience(request_format, obeyed=fits, ignored=ignored)
        return reply

    def record_obedience(
        self, request_format: RequestFormat, *, obeyed: bool, ignored: bool
    ) -> None:
        """Write the schema into the prompt where the server silently ignores the format, once.

        This is inferred from one reply, so it is not part of `abilities`. A server that obeyed before is
        not considered to ignore the format.
        """
        self._obeyed = self._obeyed or obeyed
        if (
            ignored
            and not (self._obeyed or self._ignored)
            and request_format == self.request_format
        ):
            self._ignored = True
            self._inferred_from = request_format.structure
            self.request_format = replace(request_format, structure="plain")

    def _note(self, refused: RequestFormat, complaint: str) -> None:
        """Remember what was complained of; a complaint that names nothing is of the structure."""
        named = refused.named(complaint)
        if named is None or named.structure != refused.structure:
            self._named.add(refused.structure)
            self._inferred_from = None
        if named is not None:
            self._named |= {
                name
                for name in OPTIONAL_PARAMETERS
                if getattr(named, name) != getattr(refused, name)
            }
