"""What an embedding model is called, and how it is known again."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

__all__ = ["censored", "identity_of", "name_of"]

# In which attributes LangChain's embedding classes keep the model they stand for.
_TELLING = ("model", "model_name", "deployment", "repo_id", "dimensions")
_SECRET = ("key", "token", "secret", "password", "authorization", "credential")
_SHORTEST_SECRET = 8  # characters; a shorter value of a variable is a word that any text may hold
_LONG = 1_000  # entries; what holds more is no setting but something the model has kept
_DEPTH = 4  # embeddings wrap embeddings, and some refer to themselves


def name_of(model: Any) -> str:
    """Return the name of an embedding model for people: its class, and what it says it is.

    In brackets stand those of the attributes model, model_name, deployment, repo_id and
    dimensions that are plain texts or whole numbers. Of a path the last part is shown, of an
    address neither the user nor the query; a deployment that nobody set is left out. A model of
    which nothing is known is called by its class alone.

    Examples
    --------
    >>> class Mine:
    ...     model, dimensions = "small", 256
    >>> name_of(Mine()), name_of(object())
    ('Mine(model=small, dimensions=256)', 'object')
    """
    told = []
    for attribute in _TELLING:
        value = getattr(model, attribute, None)
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            continue
        # LangChain's OpenAI class has the name of an old model there until somebody sets it.
        if attribute == "deployment" and attribute not in getattr(
            model, "model_fields_set", (attribute,)
        ):
            continue
        told.append(f"{attribute}={_shown(value)}")
    kind = type(model).__name__
    return f"{kind}({', '.join(told)})" if told else kind


def identity_of(model: Any) -> str:
    """Return a digest by which the same embedding model is known in another process.

    It covers the class and the content of the file it is written in, and every plain value among
    the attributes: so another server, another prompt for queries or an edited class is another
    model. Where an attribute names a folder, its files' names, sizes and dates count, for a model
    is often trained anew in its place. Keys, and objects that are not plain, do not count; a model
    that is wrapped by another does.

    Parameters
    ----------
    model : Embeddings
        Anything with ``embed_documents``.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    told = json.dumps(_described(model, _DEPTH), sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.sha256(told.encode()).hexdigest()


def censored(text: str, model: Any = None) -> str:
    """Return `text` without what must not be shown.

    That is the value of every environment variable that is called a key, token, secret or
    password, and every secret that `model` keeps as one.
    """
    secrets = [value for name, value in os.environ.items() if _is_secret(name)]
    for value in _attributes(model).values():
        reveal = getattr(value, "get_secret_value", None)
        if callable(reveal):
            secrets.append(str(reveal()))
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return text


def _shown(value: str | int) -> str:
    text = " ".join(str(value).split())
    if "://" in text:
        address = urlsplit(text)
        return f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}"
    return Path(text).name if Path(text).is_absolute() else censored(text)


def _described(model: Any, depth: int) -> dict[str, Any]:
    kind = type(model)
    state = {
        name: plain
        for name, value in _attributes(model).items()
        if not _is_secret(name) and (plain := _plain(value, depth)) is not None
    }
    # A file's content tells more than the name its module happens to have.
    return {"class": kind.__qualname__, "file": _source(kind) or kind.__module__, **state}


def _attributes(model: Any) -> dict[str, Any]:
    """What the class and the object say, the object last; no property is run for it."""
    found: dict[str, Any] = {}
    for kind in reversed(type(model).__mro__):
        found |= {name: value for name, value in vars(kind).items() if not name.startswith("__")}
    return found | dict(getattr(model, "__dict__", None) or {})


def _plain(value: Any, depth: int) -> Any:
    """The value as JSON has it; None where it is no plain one."""
    if isinstance(value, str | Path):
        text = str(value)
        return [text, _files(Path(text))] if _is_folder(text) else text
    if isinstance(value, bool | int | float):
        return value
    return _plain_inside(value, depth - 1) if depth > 0 else None


def _plain_inside(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping | list | tuple) and len(value) > _LONG:
        return None
    if isinstance(value, Mapping):
        items = {str(key): _plain(item, depth) for key, item in value.items()}
        return {key: item for key, item in items.items() if not _is_secret(key)}
    if isinstance(value, list | tuple):
        return [_plain(item, depth) for item in value]
    if not isinstance(value, type) and hasattr(value, "embed_documents"):
        return _described(value, depth)
    return None


def _source(kind: type) -> str | None:
    """SHA-256 of the file a class is written in; None where there is none (typed at a prompt)."""
    try:
        return hashlib.sha256(Path(inspect.getfile(kind)).read_bytes()).hexdigest()
    except (OSError, TypeError):
        return None


def _is_folder(text: str) -> bool:
    try:
        return text not in {"", "."} and Path(text).is_dir()
    except (OSError, ValueError):  # too long for a path, or with a null character
        return False


def _files(folder: Path) -> list[tuple[str, int, int]]:
    return sorted(
        (str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    )


def _is_secret(name: str) -> bool:
    return any(word in name.lower() for word in _SECRET)
