"""The judge behind an OpenAI-compatible server: OpenAI itself, vLLM, Ollama, llama.cpp and others.

The official client does the talking. It retries 408, 409, 429, 5xx and broken connections with
exponential back-off, and waits as long as ``retry-after-ms`` or ``Retry-After`` says, up to two
minutes; asked to wait longer it gives up at once.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from misslink.errors import InputError, JudgeUnreachableError
from misslink.judging.models.dialect import Dialect
from misslink.judging.models.outage import trouble, why_pointless
from misslink.judging.models.reading import read_answer, read_completion
from misslink.judging.protocol import Ask, Reply
from misslink.registry import judges

if TYPE_CHECKING:
    import openai
    from pydantic import BaseModel

__all__ = ["OpenAIJudge", "open_openai"]

_OFFICIAL = "https://api.openai.com/v1"
_NO_KEY_NEEDED = "no-key-needed"
_CONNECT_S = 5.0
_SECRET = 16  # characters that a key has at least where it is one
_COMPLAINT = 300  # characters of a server's complaint that are read and repeated


@judges.register("openai")
def open_openai(
    argument: str | None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    timeout: float = 300.0,
    temperature: float = 0.0,
    seed: int | None = 0,
    max_tokens: int = 4096,
    max_retries: int = 4,
) -> OpenAIJudge:
    """Open the judge ``openai:MODEL``.

    Parameters
    ----------
    argument : str or None
        The model, as its server calls it.
    base_url : str or None
        The server's address up to and including ``/v1``; ``OPENAI_BASE_URL`` by default, else
        OpenAI's own.
    api_key : str or None
        ``OPENAI_API_KEY`` by default. Only OpenAI's own server insists on one.
    timeout : float
        Seconds to wait for one reply, retries included; a slow model is not asked again from the
        start.
    temperature : float
    seed : int or None
        Sent for reproducible replies; None sends none.
    max_tokens : int
        Longest reply that is paid for.
    max_retries : int
        How often a failed call is repeated.

    Raises
    ------
    InputError
        The model, the key or a usable address is missing.
    """
    model = (argument or "").strip()
    if not model:
        raise InputError("the judge 'openai' needs a model: --judge openai:MODEL")
    url = (base_url or os.environ.get("OPENAI_BASE_URL") or _OFFICIAL).strip()
    key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
    shown = _without_secrets(url)
    if not key and urlsplit(url).hostname == "api.openai.com":
        raise InputError(
            f"the judge openai:{model} has no key: set OPENAI_API_KEY, or for a server of your own "
            "set OPENAI_BASE_URL (or --base-url), say http://localhost:8000/v1"
        )
    if not (key.isascii() and key.isprintable()):
        raise InputError(
            "the judge's key (OPENAI_API_KEY) holds characters that no key has; copy it again"
        )
    settings = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens}
    connection = {"base_url": url, "timeout": timeout, "max_retries": max_retries}
    return OpenAIJudge(model, shown, key or _NO_KEY_NEEDED, settings, connection)


class OpenAIJudge:
    """Asks a chat model; `open_openai` opens one.

    Parameters
    ----------
    model, address : str
        The address is the server's without user, password and query, fit to be shown.
    key : str
        Goes to the server and nowhere else.
    settings : mapping
        ``temperature``, ``seed`` and ``max_tokens``, on which a reply depends.
    connection : mapping
        ``base_url``, ``timeout`` and ``max_retries``.
    """

    def __init__(
        self,
        model: str,
        address: str,
        key: str,
        settings: Mapping[str, Any],
        connection: Mapping[str, Any],
    ) -> None:
        self.name = f"openai:{model}"
        self.identity: Mapping[str, Any] = {
            "judge": "openai",
            "model": model,
            "base_url": address.partition("://")[2],
            **settings,
        }
        self.address = address
        self._model = model
        self._key = key
        self._settings = settings
        self._connection = connection
        self._opened: openai.AsyncOpenAI | None = None
        self._dialect = Dialect()
        self._settled = False
        self._settling = asyncio.Lock()

    @property
    def structure(self) -> str | None:
        """How the server gives structured answers; None until it has given one."""
        return self._dialect.structure if self._settled else None

    async def ask(self, ask: Ask) -> Reply:
        """Put `ask`, and read the reply as its schema.

        Returns
        -------
        Reply
            Without `parsed` and with a problem where the reply cannot be read, and with empty
            `raw` too where, after all retries, none came.

        Raises
        ------
        JudgeUnreachableError
            Nobody listens at the address, or the server refuses the key or the model.
        """
        if self._settled:
            return await self._put(ask)
        async with self._settling:  # one ask finds out what the server takes, the others wait
            if not self._settled:
                return await self._put(ask)
        return await self._put(ask)

    async def reachable(self) -> None:
        """Raise JudgeUnreachableError where asking would surely fail; costs no tokens."""
        import openai

        patient = self._client().with_options(max_retries=0, timeout=_CONNECT_S)
        try:
            await patient.models.with_raw_response.list()
        except openai.PermissionDeniedError as error:
            # A key that may ask but not list models is refused here for its scope alone.
            if "scope" not in str(error).lower():
                self._raise_if_pointless(error)
        except (openai.AuthenticationError, openai.APIConnectionError) as error:
            self._raise_if_pointless(error)
        except openai.APIStatusError:
            return  # many servers do not list their models

    async def gives_logprobs(self) -> bool:
        """Whether the server gives token log-probabilities; asks for one token to find out."""
        import openai

        body: dict[str, Any] = {"messages": [{"role": "user", "content": "Say yes."}]}
        if self._dialect.limit:
            body[self._dialect.limit] = 1
        try:
            response = await self._client().chat.completions.with_raw_response.create(
                model=self._model, logprobs=True, top_logprobs=2, **body
            )
            choice = response.http_response.json()["choices"][0]
        except (openai.OpenAIError, ValueError, LookupError, TypeError):
            return False
        return isinstance(choice, dict) and bool((choice.get("logprobs") or {}).get("content"))

    async def close(self) -> None:
        """Close the connections."""
        if self._opened is not None:
            await self._opened.close()
            self._opened = None

    def _client(self) -> openai.AsyncOpenAI:
        if self._opened is None:
            import openai

            timeout = openai.Timeout(self._connection["timeout"], connect=_CONNECT_S)
            self._opened = openai.AsyncOpenAI(
                api_key=self._key,
                base_url=self._connection["base_url"],
                timeout=timeout,
                max_retries=self._connection["max_retries"],
            )
        return self._opened

    async def _put(self, ask: Ask) -> Reply:
        import openai

        dialect = self._dialect
        while True:
            body = dialect.request(ask, model=self._model, **self._settings)
            try:
                async with asyncio.timeout(self._connection["timeout"]):
                    # The raw response: a body that is no completion must not raise here.
                    chat = self._client().chat.completions.with_raw_response
                    response = await chat.create(**body)
            except TimeoutError:
                return Reply.nothing(f"no reply came within {self._connection['timeout']:g} s")
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                self._raise_if_pointless(error)
                complaint = self._said(error)
                other = None if self._settled else dialect.without(complaint)
                if other is None:
                    return Reply.nothing(f"the judge refused the question: {complaint}")
                dialect = other
            except openai.APIError as error:
                self._raise_if_pointless(error)
                return Reply.nothing(trouble(error, self._said(error)))
            else:
                reply = self._read(response.http_response.text, ask.schema)
                if reply.came:
                    self._dialect, self._settled = dialect, True
                return reply

    def _read(self, body: str, schema: type[BaseModel]) -> Reply:
        """Read a completion, then take the key out: a short key may be part of any word."""
        reply = read_completion(body, schema)
        if not reply.came:
            return read_completion(self._censored(body), schema)
        raw = self._censored(reply.raw)
        parsed = reply.parsed
        if raw != reply.raw and parsed is not None:
            parsed = read_answer(raw, schema)[0] or parsed
        problem = reply.problem and self._censored(reply.problem)
        return replace(reply, parsed=parsed, raw=raw, problem=problem)

    def _raise_if_pointless(self, error: openai.APIError) -> None:
        """Raise JudgeUnreachableError where no other question would fare better."""
        why = why_pointless(error, self._said(error), self._model)
        if why:
            raise JudgeUnreachableError(
                f"the judge {self.name} at {self.address} cannot be asked: {why}"
            ) from None

    def _said(self, error: openai.APIError) -> str:
        """A server's complaint in its own words, shortened, without the key."""
        detail = error.body.get("message") if isinstance(error.body, dict) else None
        return self._censored(str(detail or error.message))[:_COMPLAINT]

    def _censored(self, text: str) -> str:
        # A server could repeat the key it was sent, and replies go into a file. A short key is a
        # dummy for a server of one's own, and may be a word of the reply.
        if self._key == _NO_KEY_NEEDED or len(self._key) < _SECRET:
            return text
        return text.replace(self._key, "[key]")


def _without_secrets(url: str) -> str:
    """The address without user, password, query and trailing slash.

    Raises
    ------
    InputError
        It is no address.
    """
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        parts, port = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not parts.hostname:
        # Not repeated in the message: it could be a key in the wrong variable.
        raise InputError(
            "the judge's base URL (OPENAI_BASE_URL or --base-url) is no address; "
            "it looks like http://localhost:8000/v1"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"
