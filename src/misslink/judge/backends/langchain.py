"""Any LangChain chat model as a judge: ``langchain:PROVIDER:MODEL``."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from misslink.errors import InputError, MissingExtraError
from misslink.io.network import check_network_settings, split_address
from misslink.io.secrets import MIN_KEY_LENGTH, address_secrets, redact_keys
from misslink.judge.backends import connection as http
from misslink.judge.backends import request_format as formats
from misslink.judge.backends.response_parsing import (
    EXCERPT_LENGTH,
    ParsedResponse,
    decode_body,
    parse_completion,
    parse_usage,
)
from misslink.judge.config import NO_KEY_NEEDED
from misslink.judge.protocol import Ask, Judge, JudgeInfo, Reply
from misslink.registry import judges
from misslink.text.normalization import valid_text

if TYPE_CHECKING:
    import openai
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage


_STRUCTURE_METHODS: Mapping[formats.Structure, tuple[str, ...]] = {
    "json_schema": ("json_schema", "function_calling"),
    "json_object": ("json_mode",),
}


def open_chat_model(
    provider: str, name: str, options: Mapping[str, Any]
) -> tuple[BaseChatModel, openai.DefaultAsyncHttpxClient | None]:
    """Make a chat model that tries each call once and remembers nothing.

    Parameters
    ----------
    provider, name : str
    options : mapping
        Handed to the provider's class.

    Returns
    -------
    model : BaseChatModel
    connections : openai.DefaultAsyncHttpxClient or None
        To be closed with it. langchain-openai would share its connections between all models of
        the process, whichever event loop they were opened in; None where a class has no such way.

    Raises
    ------
    InputError
        There is no such provider, its package is missing, or its class refuses the options.
    MissingExtraError
        langchain is not installed.
    """
    try:
        from langchain.chat_models import init_chat_model
    except ImportError:
        raise MissingExtraError("langchain", "langchain") from None
    spec = f"langchain:{provider}:{name}"
    check_network_settings()
    options = {
        **options,
        "max_retries": 0,  # what is worth trying again is, around this
        "cache": False,  # the cache keeps replies; a second cache would make repeats equal
    }
    try:
        model: BaseChatModel = init_chat_model(name, model_provider=provider, **options)
        if not any(base.__name__ == "BaseChatOpenAI" for base in type(model).__mro__):
            return model, None
        connections = http.open_http_client()
        options["http_async_client"] = connections
        return init_chat_model(name, model_provider=provider, **options), connections
    except ImportError as missing:
        package = (missing.name or "").partition(".")[0].replace("_", "-")
        package = package or f"langchain-{provider.replace('_', '-')}"
        raise InputError(
            f"the judge {spec} needs the package {package}: run  pip install {package}"
        ) from None
    except Exception as problem:  # noqa: BLE001 (every provider raises its own)
        told = " ".join(str(problem).split())[:EXCERPT_LENGTH]
        raise InputError(f"the judge {spec} cannot be opened: {told}") from None


def with_structure(
    model: BaseChatModel, structure: formats.Structure, schema: dict[str, Any]
) -> Any:
    """The model with its own means of giving this structure; no call is made.

    Raises
    ------
    NotImplementedError
        Its class has none; the message is one that `RequestFormat.named` understands.
    """
    takes_strict = "strict" in inspect.signature(model.with_structured_output).parameters
    for method in _STRUCTURE_METHODS[structure]:
        strict = {"strict": True} if takes_strict and method != "json_mode" else {}
        with contextlib.suppress(NotImplementedError, TypeError, ValueError):
            return model.with_structured_output(schema, method=method, include_raw=True, **strict)
    raise NotImplementedError(f"its class has no structured_output by {structure}")


def best_structure(model: BaseChatModel) -> formats.Structure:
    """The best structure that the model's class knows; what its server takes shows later."""
    empty = {"title": "answer", "description": "", "type": "object", "properties": {}}
    for structure in _STRUCTURE_METHODS:
        with contextlib.suppress(NotImplementedError):
            with_structure(model, structure, empty)
            return structure
    return "plain"


_OK = 200


@judges.register("langchain")
def open_langchain(
    argument: str | None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    temperature: float = 0.0,
    max_tokens: int = 4096,
    context_length: int | None = None,
) -> Judge:
    """Open the judge ``langchain:PROVIDER:MODEL``.

    Parameters
    ----------
    argument : str or None
        ``PROVIDER:MODEL``, as ``init_chat_model`` understands them.
    base_url, api_key : str or None
        Handed to the provider's class. None: its own environment variables.
    temperature : float
    max_tokens : int
        Longest reply that is paid for.
    context_length : int or None
        How many tokens prompt and reply may have together, where that is known.

    Raises
    ------
    InputError
        The provider, the model, the provider's package or its key is missing.
    """
    provider, colon, name = (argument or "").strip().partition(":")
    if not (provider and colon and name):
        raise InputError(
            "the judge 'langchain' needs a provider and a model: --judge langchain:PROVIDER:MODEL, "
            "such as langchain:anthropic:MODEL"
        )
    query: dict[str, str] = {}
    if provider == "openai" and (base_url := base_url or os.environ.get("OPENAI_BASE_URL")):
        base_url, query = split_address(base_url)
    connection = {"base_url": base_url, "api_key": api_key, "default_query": query or None}
    if provider == "openai" and base_url and not (api_key or os.environ.get("OPENAI_API_KEY")):
        connection["api_key"] = NO_KEY_NEEDED
    settings = {"temperature": temperature, "seed": formats.SEED, "max_tokens": max_tokens}
    given = {name: value for name, value in connection.items() if value is not None}
    options = {**given, "temperature": temperature, "max_tokens": max_tokens}
    identity = {"judge": "langchain", "provider": provider, "model": name, **settings}
    if base_url:
        identity["base_url"] = http.public_url(base_url).partition("://")[2]
    model, connections = open_chat_model(provider, name, options)
    keys = [api_key or "", *(v for k, v in os.environ.items() if k.endswith(("_KEY", "_TOKEN")))]
    secrets = [key for key in keys if len(key) >= MIN_KEY_LENGTH] + address_secrets(
        base_url or "", query
    )
    return LangChainJudge(
        model,
        f"langchain:{provider}:{name}",
        identity,
        secrets=secrets,
        context_length=context_length,
        connections=connections,
    )


@dataclass(eq=False, repr=False)
class LangChainJudge:
    """Asks a LangChain chat model once per question; `open_langchain` opens one.

    It requests structured answers by the provider's own means: its JSON schema, else a tool call,
    else JSON mode, else plain words. `secrets` never appear in replies or messages. `connections`
    are closed with the judge.
    """

    model: BaseChatModel
    name: str
    identity: Mapping[str, Any]
    secrets: list[str]
    context_length: int | None = None
    connections: openai.DefaultAsyncHttpxClient | None = None

    def __post_init__(self) -> None:
        self.max_tokens: int = self.identity["max_tokens"]
        fields = type(self.model).model_fields
        first = formats.RequestFormat(
            structure=best_structure(self.model),
            seed="seed" in fields,
            logprobs={"logprobs", "top_logprobs"} <= set(fields),
        )
        self._probe = formats.CapabilityProbe(first)
        self._answered = False

    @property
    def info(self) -> JudgeInfo:
        """What is known of the judge and its provider by now."""
        return self._probe.info(context_length=self.context_length, max_tokens=self.max_tokens)

    async def ask(self, ask: Ask) -> Reply:
        """Ask once, and parse the reply; raises RetryableError or JudgeUnreachableError."""
        async with self._probe.turn():
            return await self._probe.ask(
                ask,
                lambda request_format: self._call(request_format, ask),
                Exception,
                self._explain,
            )

    async def close(self) -> None:
        """Close the connections that are the judge's own."""
        if self.connections is not None:
            await self.connections.aclose()

    def _explain(self, error: Exception) -> formats.Explanation:
        detail = http.complaint_text(getattr(error, "body", None))
        complaint = self._censored(detail or str(error) or type(error).__name__)[:EXCERPT_LENGTH]
        return complaint, http.classify_failure(
            error, complaint, self.name, answered=self._answered
        )

    async def _call(self, request_format: formats.RequestFormat, ask: Ask) -> ParsedResponse:
        import langsmith

        runnable = self._bound(request_format, ask)
        messages = [
            (message["role"], message["content"]) for message in request_format.messages(ask)
        ]
        # Whatever the environment says, what is judged goes to the judge and to nobody else.
        with langsmith.tracing_context(enabled=False):
            try:
                result = await runnable.ainvoke(messages)
            except Exception as error:
                # A reply that the provider's package cannot read was paid for all the same.
                if isinstance(error, UnicodeDecodeError):
                    body: Any = decode_body(error.object)
                else:
                    body = getattr(getattr(error, "response", None), "text", None)
                    if http.http_status(error) != _OK or not isinstance(body, str):
                        raise
                return parse_completion(self._censored(body))
        self._answered = True
        message = result["raw"] if isinstance(result, Mapping) else result
        return _parse_message(message, self._censored)

    def _bound(self, request_format: formats.RequestFormat, ask: Ask) -> Any:
        """The model with what the request_format sends, and with its means of structured answers."""
        update: dict[str, Any] = {}
        if not request_format.temperature:
            update["temperature"] = None
        if request_format.limit is None:
            update["max_tokens"] = None
        if request_format.seed:
            update["seed"] = formats.SEED + ask.repeat
        if request_format.logprobs:
            update |= {"logprobs": True, "top_logprobs": formats.TOP_LOGPROBS}
        model = self.model.model_copy(update=update) if update else self.model
        if request_format.structure == "plain":
            return model
        schema = {"title": ask.name, "description": "The answer.", **ask.json_schema}
        return with_structure(model, request_format.structure, schema)

    def _censored(self, text: str) -> str:
        return redact_keys(text, self.secrets)


def _parse_message(message: AIMessage, clean: Any) -> ParsedResponse:
    """What a chat model said; the arguments of a tool call stand for its words."""
    about = message.response_metadata
    content = str(message.text)
    if message.tool_calls:
        content = json.dumps(message.tool_calls[-1]["args"], ensure_ascii=False, default=str)
    reason = about.get("finish_reason") or about.get("stop_reason") or about.get("done_reason")
    logprobs = about.get("logprobs")
    refusal = message.additional_kwargs.get("refusal")
    return ParsedResponse(
        content=clean(valid_text(str(content))),
        message=clean(json.dumps(message.content, default=str)),
        usage=parse_usage(message.usage_metadata),
        refusal=clean(valid_text(str(refusal))) if refusal else None,
        reason=str(reason),
        logprobs=logprobs.get("content") if isinstance(logprobs, Mapping) else None,
    )
