"""The judge behind an OpenAI-compatible server: OpenAI itself, vLLM, Ollama, llama.cpp and others.

The official client does the talking, one attempt a call: what is worth another one is told to
whoever asks (`TryAgainError`), and so is how long the server asks to wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from misslink.errors import InputError
from misslink.judging.examination import LabelAlone
from misslink.judging.models.address import Address, find_address
from misslink.judging.models.connection import REFUSALS, Connection
from misslink.judging.models.dialect import Dialect, Interface
from misslink.judging.models.listing import read_offer, read_price
from misslink.judging.models.outage import passing
from misslink.judging.models.reading import said_in
from misslink.judging.models.settling import Settling
from misslink.judging.protocol import Ask, Reply, TryAgainError
from misslink.judging.terms import Price
from misslink.judging.wrappers.packing import size_of
from misslink.registry import judges
from misslink.types import PromptRef

__all__ = ["CHAT", "OpenAIJudge", "Post", "open_interface", "open_openai"]

Post = Callable[[str, dict[str, Any]], Awaitable[str]]  # a path and a body to what comes back

CHAT = Interface("openai", "/chat/completions", Dialect(), Dialect.request, said_in)

_SMALL = 64  # tokens of a reply that is only looked at for its shape
_SMALL_ASK = Ask(
    name="json_mode",
    inputs={},
    messages=({"role": "user", "content": "Is the sky blue by day? Reply in JSON."},),
    schema=LabelAlone,
    prompt=PromptRef(name="json_mode", version=1, sha256=""),
)
_LEAST_REPLY = 256  # tokens; what needs more room than that is better refused than cut off
_NO_CREDIT = "insufficient_quota"
_REFUSED = "the judge refused the question: {}"
_SERVER_FAULT = 500


@judges.register("openai")
def open_openai(
    argument: str | None,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    temperature: float = 0.0,
    seed: int | None = 0,
    max_tokens: int = 4096,
    context_length: int | None = None,
) -> OpenAIJudge:
    """Open the judge ``openai:MODEL``, which is asked by chat completions.

    Parameters
    ----------
    argument : str or None
        The model, as its server calls it.
    base_url : str or None
        The server's address up to and including ``/v1``; ``OPENAI_BASE_URL`` by default, else
        OpenAI's own.
    api_key : str or None
        ``OPENAI_API_KEY`` by default. Only OpenAI's own server insists on one.
    temperature : float
    seed : int or None
        Sent for reproducible replies; None sends none.
    max_tokens : int
        Longest reply that is paid for.
    context_length : int or None
        How many tokens prompt and reply may have together; None: what the server's list of
        models says, if it does.

    Raises
    ------
    InputError
        The model, the key or a usable address is missing.
    """
    settings = {"temperature": temperature, "seed": seed, "max_tokens": max_tokens}
    return open_interface(CHAT, argument, base_url, api_key, settings, context_length)


def open_interface(
    interface: Interface,
    argument: str | None,
    base_url: str | None,
    api_key: str | None,
    settings: Mapping[str, Any],
    context_length: int | None,
) -> OpenAIJudge:
    """Open a judge that is asked through `interface`; the rest is as in `open_openai`."""
    model = (argument or "").strip()
    if not model:
        name = interface.name
        raise InputError(f"the judge '{name}' needs a model: --judge {name}:MODEL")
    address = find_address(f"{interface.name}:{model}", base_url, api_key)
    return OpenAIJudge(model, address, settings, interface, context_length)


class OpenAIJudge:
    """Asks a model behind a server; `open_openai` opens one.

    Parameters
    ----------
    model : str
    address : Address
    settings : mapping
        ``temperature``, ``max_tokens`` and perhaps ``seed``, on which a reply depends.
    interface : Interface
    context_length : int or None

    Attributes
    ----------
    context_length : int or None
        How many tokens prompt and reply may have together, as given or as the server says.
    max_tokens : int
    price : Price or None
        What the server says that its tokens cost.
    logprobs : bool or None
        Whether its replies come with log-probabilities; None before the first.
    connection : Connection
    path : str
        Where its requests go, below the base URL.
    """

    def __init__(
        self,
        model: str,
        address: Address,
        settings: Mapping[str, Any],
        interface: Interface = CHAT,
        context_length: int | None = None,
    ) -> None:
        self.name = f"{interface.name}:{model}"
        self.identity: Mapping[str, Any] = {
            "judge": interface.name,
            "model": model,
            "base_url": address.shown.partition("://")[2],
            **settings,
        }
        self.context_length = context_length
        self.max_tokens: int = settings["max_tokens"]
        self.price: Price | None = None
        self.logprobs: bool | None = None
        self.connection = Connection(self.name, model, address)
        self.path = interface.path
        self._model = model
        self._settings = settings
        self._interface = interface
        self._known = Settling(interface.dialect)

    @property
    def sent(self) -> int:
        """Requests that were sent since opening, refused ones included."""
        return self.connection.sent

    @property
    def structure(self) -> str | None:
        """How the server gives structured answers; None until it has given one."""
        return self._known.dialect.structure if self._known.settled else None

    @property
    def doubted(self) -> bool:
        """Whether its server failed, perhaps at the answer format; asking again will tell."""
        return self._known.doubted

    @property
    def abilities(self) -> dict[str, Any]:
        """What was found out of the server, as JSON values; empty before the first reply."""
        if not self._known.settled:
            return {}
        return {
            **self._known.known(),
            "gives_logprobs": self.logprobs,
            "context_length": self.context_length,
            "price": None if self.price is None else asdict(self.price),
        }

    def learn(self, abilities: Mapping[str, Any]) -> None:
        """Begin with what an earlier run found out; what is none of it is ignored."""
        if not isinstance(abilities, Mapping):
            return
        self._known.learn(abilities)
        length = abilities.get("context_length")
        if self.context_length is None and type(length) is int and length > 0:
            self.context_length = length
        self.price = self.price or read_price(abilities.get("price"))
        if isinstance(abilities.get("gives_logprobs"), bool):
            self.logprobs = abilities["gives_logprobs"]

    async def ask(self, ask: Ask) -> Reply:
        """Put `ask` once, and read the reply as its schema.

        Returns
        -------
        Reply
            Without `parsed` and with a problem where the reply cannot be read, and with empty
            `raw` too where the server refuses this question.

        Raises
        ------
        TryAgainError
            No reply came, and one may: the server is busy, broken or cut off.
        JudgeUnreachableError
            Nobody listens at the address, or the server refuses the key or the model.
        """
        async with self._known.turn():
            return await self.ask_by(self.connection.post, ask)

    async def ask_by(self, post: Post, ask: Ask) -> Reply:
        """Put `ask` by another way than a request of its own, worded and read as by `ask`.

        Parameters
        ----------
        post : async callable
            Takes a path below the base URL and a request's body, and returns the body of the
            answer; where the server gave none, it raises the ``openai.APIError`` that says so. It
            is called again for a question that has to be worded otherwise.
        ask : Ask

        Raises
        ------
        TryAgainError, JudgeUnreachableError
            As `ask`; and whatever `post` raises.
        """
        import openai

        tried = [self._known.dialect]
        while True:
            try:
                said = await post(self.path, self._worded(ask, tried[-1]))
                return self._heard(said, ask, tried[-1])
            except openai.APIError as error:
                self.connection.raise_if_pointless(error)
                complaint = self.connection.said(error)
                other = None
                if getattr(error, "status_code", None) in REFUSALS:
                    about = f"{complaint} '{error.param}' {error.code}"
                    other = self._known.refused(tried, about)
                    if other is None and self._known.dialect not in tried:
                        raise TryAgainError(_REFUSED.format(complaint), "server") from None
                elif again := passing(error, complaint):
                    if ask.structured and _failed(error) and again.after is None:
                        other = self._known.broken(ask.key, tried)
                    if other is None:
                        raise again from None
                if other is None:
                    return Reply.nothing(_REFUSED.format(complaint))
                tried.append(other)

    def request(self, ask: Ask) -> dict[str, Any]:
        """Return the body of the request by which `ask` would be put now."""
        return self._worded(ask, self._known.dialect)

    async def reachable(self) -> None:
        """Raise JudgeUnreachableError where asking would surely fail; costs no tokens.

        Lists the server's models once, and keeps what that says of this one.
        """
        offer = read_offer(await self.connection.models(), self._model)
        self.context_length = self.context_length or offer.context_length
        self.price = offer.price or self.price

    def takes(self, what: str) -> bool | None:
        """Whether the server takes ``seed``, ``logprobs`` or ``json_object``; None: not known."""
        return self._known.takes(what)

    async def takes_json_mode(self) -> bool | None:
        """Whether the server has a JSON mode, by one small request; None where nothing came."""
        import openai

        dialect = replace(self._known.dialect, structure="json_object", logprobs=False)
        settings = {**self._settings, "max_tokens": _SMALL}
        body = self._interface.request(dialect, _SMALL_ASK, model=self._model, **settings)
        try:
            said = self._interface.read(await self.connection.post(self.path, body))
        except openai.APIStatusError as error:
            return False if error.status_code in REFUSALS else None
        except openai.APIError:
            return None
        return None if isinstance(said, str) else not said.ignores("json_object", LabelAlone)

    async def close(self) -> None:
        """Close the connections."""
        await self.connection.close()

    def _worded(self, ask: Ask, dialect: Dialect) -> dict[str, Any]:
        settings = {**self._settings, "max_tokens": self._longest_reply(ask)}
        return self._interface.request(dialect, ask, model=self._model, **settings)

    def _longest_reply(self, ask: Ask) -> int:
        """Tokens of the reply at most: servers refuse a limit for which the context has no room."""
        if self.context_length is None:
            return self.max_tokens
        return min(self.max_tokens, max(self.context_length - size_of(ask), _LEAST_REPLY))

    def _heard(self, body: str, ask: Ask, dialect: Dialect) -> Reply:
        said = self._interface.read(body)
        if isinstance(said, str):
            if _NO_CREDIT in said:
                raise self.connection.unreachable("its account has no credit left")
            raise TryAgainError(said, "server")
        said = replace(said, content=self.connection.censored(said.content))
        self.logprobs = self.logprobs or said.gives_logprobs
        return self._known.read(said, ask, dialect)


def _failed(error: Exception) -> bool:
    """Whether a server could not do what it was asked (5xx)."""
    return getattr(error, "status_code", 0) >= _SERVER_FAULT
