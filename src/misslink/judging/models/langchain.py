"""Any chat model that LangChain knows, as a judge: ``langchain:PROVIDER:MODEL``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from misslink.errors import InputError, JudgeUnreachableError
from misslink.judging.models.address import NO_KEY_NEEDED, censored, without_secrets
from misslink.judging.models.dialect import ALTERNATIVES, Dialect
from misslink.judging.models.failures import failure, is_refusal, status_of
from misslink.judging.models.providers import best_structure, chat_model, structured
from misslink.judging.models.reading import EXCERPT, Said, read_usage, said_in
from misslink.judging.models.settling import Settling
from misslink.judging.protocol import Ask, Judge, Reply, TryAgainError
from misslink.registry import judges
from misslink.text import valid_text

if TYPE_CHECKING:
    import openai
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage

__all__ = ["LangChainJudge", "open_langchain"]

_OK, _SERVER_FAULT = 200, 500
_REFUSED = "the judge refused the question: {}"
_CUT = ("length", "max_tokens", "MAX_TOKENS", "model_length")
_WITHHELD = ("content_filter", "SAFETY", "RECITATION", "PROHIBITED_CONTENT", "guardrail_intervened")


@judges.register("langchain")
def open_langchain(
    argument: str | None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    temperature: float = 0.0,
    seed: int | None = 0,
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
    seed : int or None
        Sent where the provider's class has one; None sends none.
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
    if provider == "openai":
        base_url = base_url or os.environ.get("OPENAI_BASE_URL")
    connection = {"base_url": base_url, "api_key": api_key}
    if provider == "openai" and base_url and not (api_key or os.environ.get("OPENAI_API_KEY")):
        connection["api_key"] = NO_KEY_NEEDED
    settings = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens}
    given = {name: value for name, value in connection.items() if value is not None}
    options = {**given, "temperature": temperature, "max_tokens": max_tokens}
    identity = {"judge": "langchain", "provider": provider, "model": name, **settings}
    if base_url:
        identity["base_url"] = without_secrets(base_url).partition("://")[2]
    model, connections = chat_model(provider, name, options)
    secrets = [api_key or "", *(v for k, v in os.environ.items() if k.endswith(("_KEY", "_TOKEN")))]
    return LangChainJudge(
        model,
        f"langchain:{provider}:{name}",
        identity,
        secrets=secrets,
        context_length=context_length,
        connections=connections,
    )


class LangChainJudge:
    """Asks a LangChain chat model once a question; `open_langchain` opens one.

    Structured answers are asked for by the provider's own means: its JSON schema, else a tool
    call, else JSON mode, else in plain words.

    Parameters
    ----------
    model : BaseChatModel
    name : str
    identity : mapping
        With ``seed`` and ``max_tokens``.
    secrets : sequence of str
        What must not be in a reply that is kept or a message that is shown; see `censored`.
    context_length : int or None
    connections : openai.DefaultAsyncHttpxClient or None
        Closed with the judge.

    Attributes
    ----------
    logprobs : bool or None
        Whether its replies come with log-probabilities; None before the first.
    """

    def __init__(
        self,
        model: BaseChatModel,
        name: str,
        identity: Mapping[str, Any],
        *,
        secrets: list[str],
        context_length: int | None = None,
        connections: openai.DefaultAsyncHttpxClient | None = None,
    ) -> None:
        self.name = name
        self.identity = identity
        self.context_length = context_length
        self.max_tokens: int = identity["max_tokens"]
        self.logprobs: bool | None = None
        self._model = model
        self._connections = connections
        self._secrets = secrets
        fields = type(model).model_fields
        first = Dialect(
            structure=best_structure(model),
            seed="seed" in fields,
            logprobs={"logprobs", "top_logprobs"} <= set(fields),
        )
        self._settling = Settling(first)
        self._answered = False

    @property
    def structure(self) -> str | None:
        """How the model gives structured answers; None until it has given one."""
        return self._settling.dialect.structure if self._settling.settled else None

    @property
    def doubted(self) -> bool:
        """Whether its server failed, perhaps at the answer format; asking again will tell."""
        return self._settling.doubted

    @property
    def abilities(self) -> Mapping[str, Any]:
        """What was found out of the provider; empty until a reply came."""
        if not self._settling.settled:
            return {}
        return {**self._settling.known(), "gives_logprobs": self.logprobs}

    def learn(self, abilities: Mapping[str, Any]) -> None:
        """Believe what an earlier run found out; what is none of it is ignored."""
        if not isinstance(abilities, Mapping):
            return
        self._settling.learn(abilities)
        if isinstance(abilities.get("gives_logprobs"), bool):
            self.logprobs = abilities["gives_logprobs"]

    def takes(self, what: str) -> bool | None:
        """Whether the provider takes ``seed``, ``logprobs`` or ``json_object``; None: not known."""
        return self._settling.takes(what)

    async def ask(self, ask: Ask) -> Reply:
        """Put `ask` once, and read the reply as its schema.

        Returns
        -------
        Reply
            Without `parsed` and with a problem where the reply cannot be read or the question was
            refused.

        Raises
        ------
        TryAgainError
            Nothing came, and later it may.
        JudgeUnreachableError
            The provider refuses the key or the model, or nobody answers.
        """
        async with self._settling.turn():
            return await self._put(ask)

    async def close(self) -> None:
        """Close the connections that are the judge's own."""
        if self._connections is not None:
            await self._connections.aclose()

    async def _put(self, ask: Ask) -> Reply:
        tried: list[Dialect] = []
        dialect: Dialect | None = self._settling.dialect
        while dialect is not None:
            tried.append(dialect)
            try:
                said = await self._said(dialect, ask)
            except (TryAgainError, JudgeUnreachableError):
                raise
            except Exception as error:  # noqa: BLE001 (every provider raises its own)
                complaint = self._complaint(error)
                dialect = self._otherwise(error, complaint, tried, ask)
                if dialect is None:
                    return Reply.nothing(_REFUSED.format(complaint))
            else:
                self._answered = True
                self.logprobs = self.logprobs or said.gives_logprobs
                return self._settling.read(said, ask, dialect)
        raise AssertionError("a dialect is tried at least")

    def _otherwise(
        self, error: Exception, complaint: str, tried: list[Dialect], ask: Ask
    ) -> Dialect | None:
        """The dialect to put a failed ask in again; raises where it is not the wording."""
        other = None
        meaning = failure(error, complaint, answered=self._answered)
        failed = isinstance(meaning, TryAgainError) and meaning.after is None
        if failed and ask.structured and (status_of(error) or 0) >= _SERVER_FAULT:
            other = self._settling.broken(ask.key, tried)
        if other is None:
            self._raise_if_understood(meaning)
        if is_refusal(error):
            other = self._settling.refused(tried, complaint)
            if other is None and self._settling.dialect not in tried:
                raise TryAgainError(_REFUSED.format(complaint), "server") from None
        return other

    async def _said(self, dialect: Dialect, ask: Ask) -> Said:
        import langsmith

        runnable = self._bound(dialect, ask)
        messages = [(message["role"], message["content"]) for message in dialect.messages(ask)]
        # Whatever the environment says, what is judged goes to the judge and to nobody else.
        with langsmith.tracing_context(enabled=False):
            try:
                found = await runnable.ainvoke(messages)
            except Exception as error:
                # A reply that the provider's package cannot read was paid for all the same.
                body = getattr(getattr(error, "response", None), "text", None)
                if status_of(error) != _OK or not isinstance(body, str):
                    raise
                said = said_in(self._censored(body))
                if isinstance(said, str):
                    raise TryAgainError(said, "server") from None
                return said
        message = found["raw"] if isinstance(found, Mapping) else found
        return _read(message, self._censored)

    def _bound(self, dialect: Dialect, ask: Ask) -> Any:
        """The model with what the dialect sends, and with its means of structured answers."""
        update: dict[str, Any] = {}
        if not dialect.temperature:
            update["temperature"] = None
        if dialect.limit is None:
            update["max_tokens"] = None
        if dialect.seed:
            update["seed"] = self.identity["seed"] + ask.repeat
        if dialect.logprobs:
            update |= {"logprobs": True, "top_logprobs": ALTERNATIVES}
        model = self._model.model_copy(update=update) if update else self._model
        if not ask.structured or dialect.structure == "plain":
            return model
        schema = {"title": ask.name, "description": "The answer.", **ask.json_schema}
        return structured(model, dialect.structure, schema)

    def _complaint(self, error: Exception) -> str:
        body = getattr(error, "body", None)
        detail = body.get("message") if isinstance(body, Mapping) else None
        return self._censored(str(detail or error) or type(error).__name__)[:EXCERPT]

    def _raise_if_understood(self, meaning: TryAgainError | str | None) -> None:
        if isinstance(meaning, TryAgainError):
            raise meaning from None
        if meaning is not None:
            raise JudgeUnreachableError(
                f"the judge {self.name} cannot be asked: {meaning}"
            ) from None

    def _censored(self, text: str) -> str:
        return censored(text, self._secrets)


def _read(message: AIMessage, clean: Any) -> Said:
    """What a chat model said; the arguments of a tool call stand for its words."""
    about = message.response_metadata
    content = str(message.text)
    if message.tool_calls:
        content = json.dumps(message.tool_calls[-1]["args"], ensure_ascii=False, default=str)
    reason = str(about.get("finish_reason") or about.get("stop_reason") or about.get("done_reason"))
    logprobs = about.get("logprobs")
    refusal = message.additional_kwargs.get("refusal")
    return Said(
        content=clean(valid_text(str(content))),
        message=clean(json.dumps(message.content, default=str)),
        usage=read_usage(message.usage_metadata, "input_tokens", "output_tokens"),
        refusal=clean(valid_text(str(refusal))) if refusal else None,
        cut=reason in _CUT,
        withheld=reason in _WITHHELD,
        logprobs=logprobs.get("content") if isinstance(logprobs, Mapping) else None,
    )
