"""One call to an OpenAI-compatible server, and what its errors mean."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from misslink.errors import InputError, JudgeUnreachableError
from misslink.event_loops import is_of_another_loop
from misslink.io.network import check_network_settings, split_address
from misslink.io.retry import retry_after_seconds
from misslink.io.secrets import MIN_KEY_LENGTH, address_secrets, redact_keys
from misslink.judge.backends.response_parsing import EXCERPT_LENGTH, decode_body, find_json_object
from misslink.judge.config import NO_KEY_NEEDED, Price
from misslink.judge.protocol import RetryableError

if TYPE_CHECKING:
    import openai


_REFUSED_STATUSES = (400, 422, 501)  # this request will not do; worded otherwise it may
_TRANSIENT_STATUSES = (408, 409, 425, 429)  # and every 5xx
# Not "billing": texts about too many requests per minute name the page where the limit is raised.
_NO_CREDIT = re.compile(
    r"insufficient_quota|exceeded your current quota(?!.*retry in)|credit balance is too low",
    re.IGNORECASE | re.DOTALL,
)
_NO_MODEL = re.compile(
    r"model.{0,80}(not found|n't exist|not exist|unknown)|not found.{0,80}model"
    r"|(unknown|invalid|no such) model|model_not_found",
    re.IGNORECASE | re.DOTALL,
)
# Errors by name: providers' packages share no classes, and HTTP packages change.
_UNREACHABLE_ERRORS = (
    *("ConnectError", "ConnectTimeout", "UnsupportedProtocol", "ClientConnectorError"),
    *("ProxyError", "RedirectError"),
)
_BROKEN_CONNECTION_NAME = re.compile(
    r"^(APIConnection|RemoteProtocol|Read|Write|Protocol|Connection|ClientPayload"
    r"|Server|IncompleteRead|ClientOS|JSONDecode|APIResponseValidation).*Error$"
)
_UNREACHABLE = "no connection; check that the server runs and that the address is right"
_UNTRUSTED = (
    "its certificate is not trusted; name the file of its authority's certificates in SSL_CERT_FILE"
)
_UNAUTHORIZED, _FORBIDDEN = 401, 403
NO_CREDIT_LEFT = "the account has no credit left"


def classify_failure(
    error: Exception,
    message: str,
    judge: str,
    *,
    answered: bool = False,
    model: str = "",
    address: ServerAddress | None = None,
) -> RetryableError | JudgeUnreachableError | None:
    """Classify an error of any provider's package, by its HTTP status and its name.

    `message` is safe to show. `answered` says whether the server has answered before: then a
    refused connection is worth a retry. Returns the error to raise where a later call may
    succeed, or where none would; None for an error of this one question.
    """
    status = http_status(error) or 0
    chain = list(_exception_chain(error))
    headers = [getattr(getattr(link, "response", None), "headers", None) for link in chain]
    after = retry_after_seconds(next((sent for sent in headers if sent is not None), {}))
    wait = "" if after is None else f" and asks to wait {after:g} s"
    codes = [str(getattr(link, name, "")) for link in chain for name in ("code", "type")]
    told = " ".join((message, *codes))
    key = address.key_name if address else "the provider's key"
    named = f" '{model}'" if model else ""
    meaning: RetryableError | str | None = None
    if not status:
        meaning = _connection_failure(error, message, answered, address.base_url if address else "")
    elif status == 402 or (status == 429 and _NO_CREDIT.search(told)):
        meaning = NO_CREDIT_LEFT
    elif status in _TRANSIENT_STATUSES or status >= 500:
        problem = f"the server answers {status}{wait}: {message}"
        meaning = RetryableError(problem, "rate" if status == 429 else "server", after)
    elif status == 200:
        meaning = RetryableError(f"the server's reply is not a completion: {message}", "server")
    elif status == _UNAUTHORIZED and address and address.keyless:
        meaning = f"the server needs a key (HTTP 401); set {key}"
    elif status == _UNAUTHORIZED:
        meaning = f"the server refuses the key (HTTP 401); check {key}"
    elif status == _FORBIDDEN:
        meaning = f"the server refuses access (HTTP 403); check the permissions of {key}"
    elif status in (404, *_REFUSED_STATUSES) and _NO_MODEL.search(told):
        meaning = f"the server does not know the model{named}; check --judge: {message}"
    elif status == 404:
        hint = "" if address is None else _AZURE_NAMES if address.is_azure else _ENDS_IN_V1
        meaning = f"the server does not know the address or the model{named} (HTTP 404); check --judge{hint}"
    return unreachable(judge, meaning) if isinstance(meaning, str) else meaning


def unreachable(judge: str, why: str) -> JudgeUnreachableError:
    """Return the error that says why a judge cannot be asked."""
    return JudgeUnreachableError(f"the judge {judge} cannot be asked: {why}")


def _connection_failure(
    error: Exception, message: str, answered: bool, url: str
) -> RetryableError | str | None:
    """Why there is no reply: a redirect, a certificate, the proxy, the server, or the time."""
    texts = {type(link).__name__: str(link) for link in _exception_chain(error)}
    if any(name in _UNREACHABLE_ERRORS for name in texts):
        redirected = texts.get("RedirectError")
        if answered:
            return RetryableError(redirected or "the connection is refused now", "absent")
        if redirected:
            return redirected
        if any("CERTIFICATE_VERIFY_FAILED" in text for text in texts.values()):
            return _UNTRUSTED
        scheme = url.partition(":")[0] or "https"
        for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY"):
            if os.environ.get(name):
                return f"{_UNREACHABLE}, or correct the proxy in {name}"
        return _UNREACHABLE
    if any("timeout" in name.lower() for name in texts):
        return RetryableError("no reply came in time", "time")
    if any(map(_BROKEN_CONNECTION_NAME.match, texts)) or is_of_another_loop(error):
        return RetryableError(f"the connection broke before a reply came: {message}", "connection")
    return None


def is_request_refusal(error: Exception) -> bool:
    """Whether the server, or its package before it, refuses the format of the request."""
    if isinstance(error, TypeError):  # others come after a reply, which a retry would waste
        return "unexpected keyword argument" in str(error)
    return http_status(error) in _REFUSED_STATUSES or isinstance(error, NotImplementedError)


def http_status(error: Exception) -> int | None:
    """The HTTP status of an error, from one of the places where clients store it."""
    for link in _exception_chain(error):
        for place in (link, getattr(link, "response", None)):
            for name in ("status_code", "status", "http_status", "code"):
                value = getattr(place, name, None)
                if type(value) is int and 200 <= value < 600:
                    return value
    return None


def _exception_chain(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes."""
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in seen:
        seen.append(link)
        yield link
        link = link.__cause__ or link.__context__


_BASE_URL = "the judge's base URL (OPENAI_BASE_URL or --base-url)"
_OPENAI_URL = "https://api.openai.com/v1"
_ENDS_IN_V1 = ", and that the base URL ends in /v1"
_AZURE_NAMES = ", AZURE_OPENAI_ENDPOINT and OPENAI_API_VERSION"


@dataclass(frozen=True)
class ServerAddress:
    """A server's address.

    Parameters
    ----------
    base_url : str
        For the client, without query; it may hold a password.
    display_url : str
        Without user and password, fit to be shown.
    key : str
        Goes to the server and nowhere else.
    query : mapping of str to str
        Sent with every request.
    key_name : str
        The environment variable that holds the key, for messages.
    """

    base_url: str = field(repr=False)
    display_url: str
    key: str = field(repr=False)
    query: Mapping[str, str] = field(default_factory=dict, repr=False)
    key_name: str = "OPENAI_API_KEY"

    @classmethod
    def of(
        cls,
        url: str,
        key: str,
        key_name: str,
        source: str = _BASE_URL,
    ) -> ServerAddress:
        """Read an address and its key; `source` names where the address is from.

        Raises
        ------
        InputError
            It is no address, or the key cannot be one.
        """
        base, query = split_address(url)
        displayed = public_url(base, source)
        check_network_settings()
        if not (key.isascii() and key.isprintable()):
            raise InputError(
                f"the judge's key ({key_name}) holds characters that no key has; copy it again"
            )
        return cls(base, displayed, key or NO_KEY_NEEDED, query, key_name)

    @property
    def keyless(self) -> bool:
        """Whether no key was given."""
        return self.key == NO_KEY_NEEDED

    @property
    def is_azure(self) -> bool:
        """Whether it is one of Azure's classic addresses, which take the key in another header."""
        return "api-version" in self.query

    def censored(self, text: str) -> str:
        """Return `text` without the key and what is secret in the address."""
        return redact_keys(redact_keys(text, [self.key], MIN_KEY_LENGTH), self._secrets)

    @cached_property
    def _secrets(self) -> list[str]:
        return address_secrets(self.base_url, self.query)


def resolve_address(base_url: str | None, api_key: str | None) -> ServerAddress:
    """Return where the judge is, from what is given or else from the environment.

    Parameters
    ----------
    base_url : str or None
        ``OPENAI_BASE_URL`` by default, else OpenAI's own.
    api_key : str or None
        ``OPENAI_API_KEY`` by default. Only OpenAI's own server insists on one, once it is asked.

    Raises
    ------
    InputError
        It is no address, or the key cannot be one.
    """
    url = _setting("OPENAI_BASE_URL", base_url, _OPENAI_URL)
    return ServerAddress.of(url, _setting("OPENAI_API_KEY", api_key), "OPENAI_API_KEY")


def azure_address(deployment: str, endpoint: str | None, api_key: str | None) -> ServerAddress:
    """Return where a deployment of Azure OpenAI is, from what is given or else the environment.

    Raises
    ------
    InputError
        The endpoint, the key or the API version is missing, or cannot be one.
    """
    base, query = split_address(_setting("AZURE_OPENAI_ENDPOINT", endpoint))
    key = _setting("AZURE_OPENAI_API_KEY", api_key)
    version = _setting("OPENAI_API_VERSION") or query.get("api-version", "")
    needed = {
        "AZURE_OPENAI_ENDPOINT": base,
        "AZURE_OPENAI_API_KEY": key,
        "OPENAI_API_VERSION": version,
    }
    missing = [name for name, value in needed.items() if not value]
    if missing:
        raise InputError(
            f"the judge azure:{deployment} needs {', '.join(missing)}; set it as the page of the "
            "resource in Azure's portal shows it"
        )
    resource = base.partition("/openai")[0]
    base = f"{resource}/openai/deployments/{quote(deployment, safe='')}"
    address = ServerAddress.of(base, key, "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT")
    return replace(address, query={"api-version": version})


def _setting(variable: str, given: str | None = None, default: str = "") -> str:
    """What is given, or else in an environment variable."""
    return (given or os.environ.get(variable) or default).strip()


def public_url(url: str, source: str = _BASE_URL) -> str:
    """Return an address without user, password, query and trailing slash.

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
        raise InputError(f"{source} is not an address; write for example http://localhost:8000/v1")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{port}{parts.path.rstrip('/')}"


# vLLM; LM Studio with the model loaded; OpenRouter and LM Studio; llama.cpp as served, as trained.
_CONTEXT_LENGTH_KEYS = (
    *("max_model_len", "loaded_context_length", "context_length", "max_context_length"),
    *("context_window", "n_ctx", "n_ctx_train"),
)
_MILLION = 1_000_000
_MAX_PRICE = 10**12  # of any currency; more is no price


def parse_model_listing(listing: Any, model: str) -> tuple[int | None, Price | None]:
    """Return the context length and price of a model from the answer to ``GET /models``.

    Parameters
    ----------
    listing : object
        ``{"data": [{"id", ...}]}``, or whatever else came.
    model : str
        A server that lists one model only is taken to mean that one, whatever it calls it: a
        llama.cpp server answers to any name.

    Returns
    -------
    context_length : int or None
    price : Price or None
        None where the model is not listed, or nothing is said of it.
    """
    data = listing.get("data") if isinstance(listing, dict) else None
    models = [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []
    named = [item for item in models if item.get("id") == model] or models
    if len(named) != 1:
        return None, None
    (entry,) = named
    meta = entry.get("meta")
    lengths = map(
        ({**meta, **entry} if isinstance(meta, dict) else entry).get, _CONTEXT_LENGTH_KEYS
    )
    valid_lengths = [length for length in lengths if type(length) is int and length > 0]
    # OpenRouter's prices are of a token; below zero means unknown.
    return next(iter(valid_lengths), None), parse_price(entry.get("pricing"), _MILLION)


def parse_price(price: Any, tokens: int = 1) -> Price | None:
    """Return what ``{"prompt", "completion"}`` cost, numbers or texts; None if that is no price.

    `tokens` prices are one of ours, which is of a million.
    """
    try:
        prices = [Decimal(str(price[part])) * tokens for part in ("prompt", "completion")]
    except (KeyError, TypeError, InvalidOperation):
        return None
    if not all(price.is_finite() and 0 <= price <= _MAX_PRICE for price in prices):
        return None
    return Price(*map(float, prices))


_CONNECT_TIMEOUT_S = 30.0
_MODELS_TIMEOUT_S = 10.0


class RedirectError(Exception):
    """A server sends what it was asked to another host."""


async def _refuse_other_host(response: Any) -> None:
    """A question, and the key in a header of the server's own, go to the address that was given."""
    if response.has_redirect_location:
        url = response.request.url
        target = url.join(response.headers["location"])
        if (target.host, target.port) != (url.host, url.port):
            why = f"it redirects to another host ({target.host}); give that address if it is right"
            raise RedirectError(why)


def open_http_client(**options: Any) -> openai.DefaultAsyncHttpxClient:
    """Return an HTTP client of the openai package that follows no redirect to another host."""
    import openai

    hooks = {"response": [_refuse_other_host]}
    return openai.DefaultAsyncHttpxClient(event_hooks=hooks, **options)


class ServerError(Exception):
    """A server answered without success, by its `status` and `body`, or not at all, by its cause.

    `response` is the answer; None where it is not one of HTTP.
    """

    def __init__(self, status: int | None = None, body: Any = None, response: Any = None) -> None:
        detail = body.get("error", body) if isinstance(body, Mapping) else body
        fields = detail if isinstance(detail, Mapping) else {"message": detail}
        default = "Connection error." if status is None else f"Error code: {status}"
        super().__init__(str(fields.get("message") or default))
        self.status, self.body, self.response = status, detail, response
        self.code, self.param, self.type = map(fields.get, ("code", "param", "type"))


def _account_headers() -> dict[str, str]:
    """Who sends a request, and on which account of OpenAI's, where one key has several."""
    accounts = {
        "OpenAI-Organization": os.environ.get("OPENAI_ORG_ID"),
        "OpenAI-Project": os.environ.get("OPENAI_PROJECT_ID"),
    }
    return {"User-Agent": "misslink", **{name: id_ for name, id_ in accounts.items() if id_}}


def complaint_text(body: Any) -> str:
    """Return what a server's error says, with the place of each part that it refuses (``loc``)."""
    places = [
        f"{'.'.join(map(str, entry['loc']))}: {entry['msg']}" for entry in _validation_errors(body)
    ]
    message = body.get("message") if isinstance(body, Mapping) else None
    return "; ".join(places) or (str(message) if message else "")


def _validation_errors(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        if isinstance(value.get("loc"), list) and "msg" in value:
            yield value
            return
        value = list(value.values())
    for part in value if isinstance(value, list) else ():
        yield from _validation_errors(part)


class ServerConnection:
    """A connection to a server, opened by the first request.

    It has no timeout for replies: the caller cancels a request, which leaves the server at once.
    `judge` and `place` are the judge's name, and it with the server's address, for messages; `sent`
    counts the requests to a model since opening.
    """

    def __init__(self, judge: str, model: str, address: ServerAddress) -> None:
        self.sent = 0
        self.judge = judge
        self.place = f"{judge} at {address.display_url}"
        self._model = model
        self._address = address
        self._http: openai.DefaultAsyncHttpxClient | None = None
        self._urls: dict[str, Any] = {}
        self._answered = False

    async def post(self, path: str, body: Mapping[str, Any]) -> str:
        """Ask a model; return the body of the answer, which need not be what it should be.

        Raises
        ------
        ServerError
            The server did not answer with success.
        """
        self.sent += 1
        answer = await self.send("POST", path, json=body)
        self._answered = True
        return self.text(answer)

    async def models(self) -> Any:
        """Return the server's list of models; None where it has none.

        Raises JudgeUnreachableError where no connection is possible or the key is refused.
        """
        try:
            answer = await self.send("GET", "/models", timeout=_MODELS_TIMEOUT_S)
            return find_json_object(self.text(answer))
        except ServerError as error:
            # A key that may ask but not list models is refused here for its scope alone.
            is_of_key = error.status == _FORBIDDEN and "scope" not in str(error).lower()
            if error.status in (None, _UNAUTHORIZED) or is_of_key:
                meaning = self.meaning(error)
                if isinstance(meaning, JudgeUnreachableError):
                    raise meaning from None
            return None  # many servers do not list their models

    async def send(self, method: str, path: str, *, stream: bool = False, **options: Any) -> Any:
        """Send a request, once; return the response of the HTTP client, read unless it is a `stream`.

        Raises
        ------
        ServerError
            The server did not answer with success.
        """
        http = self._client()
        if path not in self._urls:  # to read one takes a tenth of a request's CPU
            self._urls[path] = type(http.base_url)(self._address.base_url + path)
        request = http.build_request(method, self._urls[path], **options)
        try:
            answer = await http.send(request, stream=stream)
            if answer.is_success:
                return answer
            text = (await answer.aread()).decode("utf-8", "replace").strip()
        except Exception as error:
            raise ServerError from error
        try:
            raise ServerError(answer.status_code, json.loads(text), answer)
        except (ValueError, RecursionError):
            raise ServerError(answer.status_code, text, answer) from None

    def meaning(self, error: ServerError) -> RetryableError | JudgeUnreachableError | None:
        """What an error means; None where it is about one question."""
        return classify_failure(
            error,
            self.error_message(error),
            self.place,
            answered=self._answered,
            model=self._model,
            address=self._address,
        )

    def unreachable(self, why: str) -> JudgeUnreachableError:
        """Return the error that says why this judge cannot be asked."""
        return unreachable(self.place, why)

    def error_message(self, error: ServerError) -> str:
        """A server's complaint in its own words, shortened, without the key."""
        return self.censored(complaint_text(error.body) or str(error))[:EXCERPT_LENGTH]

    def censored(self, text: str) -> str:
        """Return `text` without the key."""
        return self._address.censored(text)

    async def close(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    def _client(self) -> openai.DefaultAsyncHttpxClient:
        """Return the HTTP client: the official one around it takes half as much CPU again."""
        if self._http is None:
            address = self._address
            is_openai = urlsplit(address.base_url).hostname == urlsplit(_OPENAI_URL).hostname
            if address.keyless and is_openai:
                raise InputError(
                    f"the judge {self.judge} has no key: set {address.key_name}, or for a server "
                    "of your own set OPENAI_BASE_URL (or --base-url), say http://localhost:8000/v1"
                )
            name, scheme = ("api-key", "") if address.is_azure else ("Authorization", "Bearer ")
            self._http = open_http_client(
                params=address.query,
                headers={name: scheme + address.key, **_account_headers()},
                timeout=(_CONNECT_TIMEOUT_S, None, None, None),
            )
        return self._http

    def text(self, response: Any) -> str:
        """Return the body of a response, without the key."""
        return self.censored(decode_body(response.content))
