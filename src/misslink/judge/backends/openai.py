"""Judges behind an OpenAI-compatible server: OpenAI, vLLM, Ollama, llama.cpp and others."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from misslink.errors import InputError
from misslink.judge.backends import connection
from misslink.judge.backends.request_format import (
    SEED,
    TOP_LOGPROBS,
    CapabilityProbe,
    Explanation,
    RequestFormat,
)
from misslink.judge.backends.response_parsing import (
    ParsedResponse,
    is_valid_utf8,
    no_answer,
    parse_completion,
    parse_json_body,
    parse_usage,
)
from misslink.judge.config import Price
from misslink.judge.protocol import Ask, JudgeInfo, Reply, RetryableError
from misslink.judge.tokens import estimate_ask_tokens
from misslink.registry import judges
from misslink.text.normalization import valid_text

PostRequest = Callable[[str, dict[str, Any]], Awaitable[str]]
_MIN_REPLY_TOKENS = 256  # tokens; what needs more room than that is better refused than cut off
_QUOTA_EXCEEDED = "insufficient_quota"


def _open(
    kind: type[OpenAIJudge],
    argument: str | None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    temperature: float = 0.0,
    max_tokens: int = 4096,
    context_length: int | None = None,
) -> OpenAIJudge:
    """Open a judge of this kind, such as ``openai:MODEL``, which uses chat completions.

    Parameters
    ----------
    kind : type of OpenAIJudge
    argument : str or None
        The model's name on its server, or an Azure deployment's.
    base_url : str or None
        The server's address up to and including ``/v1``; ``OPENAI_BASE_URL`` by default, else
        OpenAI's own. Of Azure ``AZURE_OPENAI_ENDPOINT``.
    api_key : str or None
        ``OPENAI_API_KEY`` by default. Only OpenAI's own server requires one. Of Azure
        ``AZURE_OPENAI_API_KEY``; its API version is in ``OPENAI_API_VERSION``.
    temperature : float
    max_tokens : int
        Maximum length of a reply.
    context_length : int or None
        Maximum tokens of prompt and reply together; None: what the server's list of models says.

    Raises
    ------
    InputError
        The model, the key or a usable address is missing.
    """
    model, name, is_azure = (argument or "").strip(), kind.interface, kind is AzureJudge
    if not model:
        noun = "deployment" if is_azure else "model"
        raise InputError(f"the judge '{name}' needs a {noun}: --judge {name}:{noun.upper()}")
    address = (
        connection.azure_address(model, base_url, api_key)
        if is_azure
        else connection.resolve_address(base_url, api_key)
    )
    seed = {"seed": SEED} if kind.first_format.seed else {}
    settings = {"temperature": temperature, **seed, "max_tokens": max_tokens}
    return kind(model, address, settings, context_length)


@dataclass(eq=False, repr=False)
class OpenAIJudge:
    """Asks a model behind a server; `open_openai` opens one.

    Parameters
    ----------
    model : str
    address : Address
    settings : mapping
        ``temperature``, ``max_tokens`` and perhaps ``seed``, on which a reply depends.
    context_length : int or None

    Attributes
    ----------
    context_length : int or None
        How many tokens prompt and reply may have together, as given or as the server says.
    max_tokens : int
    price : Price or None
        What the server says that its tokens cost.
    connection : Connection
    interface, path : str
        The name of the way in which it asks, and where its requests go, below the base URL.
    first_format : RequestFormat
        The whole of a request.
    """

    interface = "openai"
    path = "/chat/completions"
    first_format = RequestFormat()
    parse = staticmethod(parse_completion)

    model: str
    address: connection.ServerAddress
    settings: Mapping[str, Any]
    context_length: int | None = None

    def __post_init__(self) -> None:
        self.name = f"{self.interface}:{self.model}"
        self.identity: Mapping[str, Any] = {
            "judge": self.interface,
            "model": self.model,
            "base_url": self.address.display_url.partition("://")[2],
            **self.settings,
        }
        self.max_tokens: int = self.settings["max_tokens"]
        self.price: Price | None = None
        self.connection = connection.ServerConnection(self.name, self.model, self.address)
        self._probe = CapabilityProbe(self.first_format)

    @property
    def info(self) -> JudgeInfo:
        """What is known of the judge and its server by now."""
        return self._probe.info(
            context_length=self.context_length,
            max_tokens=self.max_tokens,
            price=self.price,
            abilities=self.abilities,
            learn=self.learn,
            check_reachable=self.check_reachable,
            requests_sent=self.connection.sent,
        )

    @property
    def abilities(self) -> dict[str, object]:
        """What was found out of the server, as JSON values; empty before the first reply."""
        found = self._probe.abilities()
        return found and {
            **found,
            "context_length": self.context_length,
            "price": None if self.price is None else asdict(self.price),
        }

    def learn(self, abilities: Mapping[str, Any]) -> None:
        """Begin with what an earlier run found out; what is none of it is ignored."""
        self._probe.learn(abilities)
        length = abilities.get("context_length")
        if self.context_length is None and type(length) is int and length > 0:
            self.context_length = length
        self.price = self.price or connection.parse_price(abilities.get("price"))

    async def ask(self, ask: Ask) -> Reply:
        """Ask once, and parse the reply.

        The reply has no `parsed` and a problem where it cannot be parsed, and an empty `raw` too where
        the server refuses this question. Raises RetryableError or JudgeUnreachableError.
        """
        async with self._probe.turn():
            return await self.ask_by(self.connection.post, ask)

    async def ask_by(self, post: PostRequest, ask: Ask) -> Reply:
        """Ask through `post` in place of an HTTP request, formatted and parsed as by `ask`.

        `post` is async, takes a path below the base URL and a request's body, and returns the body of
        the answer or raises a `ServerError`. It is called again where the question needs another
        format.
        """

        async def call(request_format: RequestFormat) -> ParsedResponse:
            return self._read(await post(self.path, self.request(ask, request_format)))

        def explain(error: connection.ServerError) -> Explanation:
            return self.connection.error_message(error), self.connection.meaning(error)

        return await self._probe.ask(ask, call, connection.ServerError, explain)

    def request(self, ask: Ask, request_format: RequestFormat | None = None) -> dict[str, object]:
        """Return the body of the request by which `ask` is put: by default, would be put now."""
        longest = self.max_tokens
        if self.context_length is not None:  # servers refuse a limit for which there is no room
            room = self.context_length - estimate_ask_tokens(ask)
            longest = min(longest, max(room, _MIN_REPLY_TOKENS))
        settings = {**self.settings, "max_tokens": longest}
        return self._body(request_format or self._probe.request_format, ask, settings)

    async def check_reachable(self) -> None:
        """Raise JudgeUnreachableError where asking would surely fail; costs no tokens.

        Lists the server's models once, and keeps what that says of this one.
        """
        length, price = connection.parse_model_listing(await self.connection.models(), self.model)
        self.context_length = self.context_length or length
        self.price = price or self.price

    async def close(self) -> None:
        """Close the connections."""
        await self.connection.close()

    def _body(
        self, request_format: RequestFormat, ask: Ask, settings: Mapping[str, Any]
    ) -> dict[str, object]:
        return request_format.request(ask, model=self.model, **settings)

    def _read(self, body: str) -> ParsedResponse:
        try:
            response = self.parse(body)
        except RetryableError as error:
            if _QUOTA_EXCEEDED in error.problem:
                raise self.connection.unreachable(connection.NO_CREDIT_LEFT) from None
            raise
        return replace(response, content=self.connection.censored(response.content))


def _parse_responses_body(body: str) -> ParsedResponse:
    """Return what a response says; raise RetryableError where it says nothing."""
    response = parse_json_body(body)
    output = response.get("output")
    if not isinstance(output, list) or response.get("status") == "failed":
        raise no_answer("response", json.dumps(response.get("error") or body))
    items = [item for item in output if isinstance(item, dict)]
    said = [item.get("content") or () for item in items if item.get("type") == "message"]
    parts = [part for content in said for part in content if isinstance(part, dict)]
    texts = [part for part in parts if isinstance(part.get("text"), str)]
    refusals = [part["refusal"] for part in parts if isinstance(part.get("refusal"), str)]
    listed = [part.get("logprobs") for part in texts]
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    words = "".join(part["text"] for part in texts)
    content = valid_text(words)
    return ParsedResponse(
        content=content,
        message="" if content else json.dumps(output),
        usage=parse_usage(response.get("usage")),
        refusal=valid_text(" ".join(refusals)) or None,
        reason=str(reason),
        tool_call=any(item.get("type") == "function_call" for item in items),
        valid=is_valid_utf8(words),
        logprobs=listed[0] if len(listed) == 1 else None,
    )


class ResponsesJudge(OpenAIJudge):
    """Asks a model through the Responses API."""

    interface = "openai-responses"
    path = "/responses"
    first_format = RequestFormat(limit="max_output_tokens", seed=False)
    parse = staticmethod(_parse_responses_body)

    def _body(
        self, request_format: RequestFormat, ask: Ask, settings: Mapping[str, Any]
    ) -> dict[str, object]:
        body: dict[str, Any] = {"model": self.model, "input": request_format.messages(ask)}
        answer_format = request_format.format(ask)
        if answer_format is not None:
            body["text"] = {"format": answer_format}
        if request_format.logprobs:
            body |= {"include": ["message.output_text.logprobs"], "top_logprobs": TOP_LOGPROBS}
        if request_format.store:
            body["store"] = False  # what is judged may be private, and is kept there by default
        return body | request_format.parameters(**settings)


class AzureJudge(OpenAIJudge):
    """Asks a deployment of Azure OpenAI."""

    interface = "azure"


open_openai = judges.register("openai")(partial(_open, OpenAIJudge))
open_responses = judges.register("openai-responses")(partial(_open, ResponsesJudge))
open_azure = judges.register("azure")(partial(_open, AzureJudge))
