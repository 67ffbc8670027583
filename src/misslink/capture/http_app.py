"""Ask an app behind HTTP."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from misslink.errors import InputError, known_names
from misslink.io.config_files import read_toml
from misslink.io.network import check_network_settings
from misslink.io.secrets import address_secrets, redact_keys

_QUESTION, _HISTORY = "{question}", "{history}"
_PLACE = re.compile(r"\{(?:question|history)\}")
_HOST = re.compile(r"https?://[^/@?#]*/?")
_KEYS = {
    "url": str, "method": str, "headers": dict, "body": dict, "params": dict, "answer": str,
    "passages": str, "passage": dict, "timeout": (int, float),
}  # fmt: skip
_PASSAGE_KEYS = ("id", "text", "score")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)
_SHOWN = 200  # characters of a reply in a message
_MIN_SECRET = 4  # characters; a message may lose a word that only looks like one, a passage not


class HttpApp:
    """An app that answers questions over HTTP.

    Parameters
    ----------
    url : str
        The address alone: POST ``{"question": ...}``, and the reply is read as a function's is.
    settings : mapping or None
        ``method``, ``headers``, ``params`` and ``body`` of the request, where ``{question}`` stands
        for the question, and ``{history}`` for the messages before it: alone in a text of the body for
        a list of ``{"role", "content"}``, else for lines; ``answer`` and ``passages``: paths into the reply, such as
        ``choices.0.text``; ``passage``: paths of id, text and score in a passage; ``timeout``: seconds.
    name : str
        For messages.
    secrets : sequence of str
        What a server may repeat, and neither a message nor a trace may have.
    """

    def __init__(
        self,
        url: str,
        settings: Mapping[str, Any] | None = None,
        name: str | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        self._settings = dict(settings or {})
        self._name = name or url
        self._secrets = secrets
        address = urlsplit(url)
        if address.scheme not in {"http", "https"} or not address.hostname:
            shown = redact_keys(url, secrets, 1)
            raise InputError(
                f"{shown!r} is not an HTTP address. Write https://HOST/PATH.", path=name
            )
        if name is None and (address.username or address.password or address.query):
            raise InputError(
                "The address of the app has a user or a query, which reports would show. Write it "
                "into a file app.toml, and secrets into environment variables: "
                'headers = {Authorization = "Bearer ${TOKEN}"}.'
            )
        check_network_settings()
        self._url = url
        body = {} if "params" in self._settings else {"question": _QUESTION}
        self._body = self._settings.get("body", body)
        template = [self._body, self._settings.get("params")]
        self._is_default = self._settings.keys().isdisjoint({"body", "params"})
        self.takes_history = self._is_default or _HISTORY in json.dumps(template)

    async def __call__(
        self, question: str, history: Sequence[Mapping[str, str]] = (), **fields: Any
    ) -> dict[str, Any]:
        """Send the question, with `fields` in the body, and return the answer and the passages."""
        import httpx

        settings = self._settings
        content = {**_filled(self._body, question, history), **fields}
        if history and self._is_default:
            content["history"] = list(history)
        async with httpx.AsyncClient(timeout=settings.get("timeout", 60)) as client:
            try:
                reply = await client.request(
                    settings.get("method", "POST" if content else "GET"),
                    self._url,
                    headers=settings.get("headers"),
                    params=_filled(settings["params"], question, history, as_text=True)
                    if "params" in settings
                    else None,
                    json=content or None,
                )
            except httpx.TimeoutException:
                seconds = settings.get("timeout", 60)
                raise AppReplyError(f"no reply within {seconds:g} seconds") from None
            except httpx.HTTPError as error:
                raise AppReplyError(f"cannot reach the app ({type(error).__name__})") from None
        if not reply.is_success:
            text = self._excerpt(reply.text)
            raise AppReplyError(f"HTTP {reply.status_code}{f': {text}' if text else ''}")
        try:
            data = json.loads(redact_keys(reply.text, self._secrets))
        except ValueError:
            text = self._excerpt(reply.text)
            raise AppReplyError(f"the reply is not JSON: {text!r}") from None
        return self._parsed(data)

    def _excerpt(self, text: str) -> str:
        return " ".join(redact_keys(text, self._secrets, _MIN_SECRET).split())[:_SHOWN]

    def _parsed(self, data: Any) -> dict[str, Any]:
        settings = self._settings
        if "answer" not in settings and "passages" not in settings:
            return data if isinstance(data, dict) else {"answer": data}
        parsed: dict[str, Any] = {}
        if "answer" in settings:
            parsed["answer"] = self._required(data, "answer", settings["answer"])
        if "passages" in settings:
            passages = self._required(data, "passages", settings["passages"])
            if not isinstance(passages, list):
                path = settings["passages"]
                raise AppReplyError(f"'{path}' of the reply is not a list ({self._name}: passages)")
            paths = settings.get("passage")
            parsed["retrieved"] = [
                {
                    key: value
                    for key, path in paths.items()
                    if (value := _lookup(item, path)) is not None
                }
                if paths
                else item
                for item in passages
            ]
        return parsed

    def _required(self, data: Any, key: str, path: str) -> Any:
        value = _lookup(data, path)
        if value is None:
            keys = self._excerpt(", ".join(map(str, data))) if isinstance(data, dict) else ""
            has = keys and f"; its keys are {keys}"
            raise AppReplyError(f"the reply has no '{path}' ({self._name}: {key}){has}")
        return value


class AppReplyError(Exception):
    """The app's reply is missing or cannot be read."""


def read_http_app(path: Path) -> HttpApp:
    """Read an app behind HTTP from a TOML file; ``${NAME}`` stands for an environment variable.

    Raises
    ------
    InputError
        The file cannot be read, lacks ``url``, has an unknown key, or names a variable that is not
        set.
    """
    settings = read_toml(path)
    for key, value in settings.items():
        if key not in _KEYS:
            raise InputError(
                f"There is no such key; {known_names(key, _KEYS)}", path=path, field=key
            )
        if not isinstance(value, _KEYS[key]):  # type: ignore[arg-type]
            raise InputError("This has the wrong type.", path=path, field=key)
    if "url" not in settings:
        raise InputError("The address of the app is missing. Add it.", path=path, field="url")
    for key in settings.get("passage", {}):
        if key not in _PASSAGE_KEYS:
            unknown = f"There is no such key; {known_names(key, _PASSAGE_KEYS)}"
            raise InputError(unknown, path=path, field=f"passage.{key}")
    secrets: list[str] = []
    filled = {key: _with_variables(value, path, key, secrets) for key, value in settings.items()}
    secrets += address_secrets(filled["url"])
    for name, value in filled.get("headers", {}).items():
        if _SECRET_HEADER.search(name) and isinstance(value, str):
            secrets += [value, value.rpartition(" ")[2]]  # behind "Bearer"
    return HttpApp(filled.pop("url"), filled, str(path), secrets)


def _with_variables(value: Any, path: Path, field: str, secrets: list[str]) -> Any:
    """The value with the variables in it, which are added to `secrets` also as an address has them."""

    def variable(match: re.Match[str]) -> str:
        if match[1] not in os.environ:
            problem = f"The environment variable {match[1]} is not set. Set it."
            raise InputError(problem, path=path, field=field)
        text = os.environ[match[1]]
        if not _HOST.fullmatch(text):  # passages may name the app's host
            secrets.extend(dict.fromkeys(filter(None, (text, quote(text, safe="")))))
        return text

    if isinstance(value, str):
        return _VARIABLE.sub(variable, value)
    if isinstance(value, dict):
        return {
            key: _with_variables(item, path, f"{field}.{key}", secrets)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_with_variables(item, path, field, secrets) for item in value]
    return value


def _filled(
    value: Any, question: str, history: Sequence[Mapping[str, str]], *, as_text: bool = False
) -> Any:
    """The value with the question and the messages before it in their places.

    `as_text`: the messages are lines also where they stand alone, as in an address.
    """
    if value == _HISTORY and not as_text:
        return list(history)
    if isinstance(value, str):
        lines = "\n".join(f"{message['role']}: {message['content']}" for message in history)
        texts = {_QUESTION: question, _HISTORY: lines}
        return _PLACE.sub(lambda place: texts[place[0]], value)
    if isinstance(value, Mapping):
        return {
            key: _filled(item, question, history, as_text=as_text) for key, item in value.items()
        }
    if isinstance(value, Sequence):
        return [_filled(item, question, history, as_text=as_text) for item in value]
    return value


def _lookup(data: Any, path: str) -> Any:
    """The value at a dotted path; numbers are places in lists. None where it ends."""
    for part in path.removeprefix("$.").split("."):
        if isinstance(data, Mapping):
            data = data.get(part)
        elif isinstance(data, list) and part.isdigit() and int(part) < len(data):
            data = data[int(part)]
        else:
            return None
    return data
