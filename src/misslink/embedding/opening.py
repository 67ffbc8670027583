"""An embedding model found by its name."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from misslink.embedding.cache import DEFAULT_CACHE
from misslink.embedding.embedder import Embedder
from misslink.embedding.identity import censored
from misslink.errors import InputError, MissingExtraError, known_names
from misslink.importing import attribute_of, import_target, with_article

__all__ = ["open_embedder"]

_FILE = re.compile(r"(?P<target>.+\.py):(?P<name>[^:]+)", re.DOTALL)
_MODULE = re.compile(r"(?P<target>[^\W\d]\w*(?:\.[^\W\d]\w*)+):(?P<name>[^:]+)", re.DOTALL)
_METHODS = ("embed_documents", "embed_query")
_EXCERPT = 300  # characters of a provider's message that are shown
_NO_KEY = "none"  # LangChain's class wants one, a server of one's own does not


def open_embedder(spec: Any, *, cache: Path | None = DEFAULT_CACHE) -> Embedder:
    """Open an embedding model.

    Parameters
    ----------
    spec : str or Embeddings
        'minilm' (all-MiniLM-L6-v2 on this machine, from a package's own weights);
        'PROVIDER:MODEL' as LangChain's ``init_embeddings`` understands them, such as
        'ollama:nomic-embed-text'; 'path/to/file.py:name' or 'package.module:name', from the
        working folder, where the name is a model, or a class or function that makes one; or the
        model itself. With 'openai' the variable OPENAI_BASE_URL names another server, which is
        sent texts and not OpenAI's own token numbers.
    cache : Path or None
        Where vectors are kept between runs. None: only in memory.

    Raises
    ------
    InputError
        There is no such provider, file or name, its package or key is missing, or it is no
        embedding model.
    MissingExtraError
        What 'minilm' or LangChain's providers need is not installed.
    """
    if not isinstance(spec, str):
        _check(spec, "what was given as embedding")
        return Embedder(spec, cache=cache)
    return Embedder(_model(spec.strip()), cache=cache)


def _model(spec: str) -> Any:
    if spec == "minilm":
        from misslink.embedding.minilm import MiniLM

        return MiniLM()
    own = _FILE.fullmatch(spec) or _MODULE.fullmatch(spec)
    if own:
        return _own(own["target"], own["name"].strip(), spec)
    provider, colon, name = spec.partition(":")
    if not (provider and colon and name.strip()) or provider.endswith(".py"):
        raise InputError(
            f"'{spec}' names no embedding; write  minilm,  PROVIDER:MODEL  (such as "
            "openai:text-embedding-3-small)  or  path/to/file.py:name"
        )
    return _provided(provider.strip(), name.strip(), spec)


def _own(target: str, name: str, spec: str) -> Any:
    thing = attribute_of(import_target(target, Path.cwd()), name, target)
    if isinstance(thing, type) or (callable(thing) and not hasattr(thing, _METHODS[0])):
        try:
            thing = thing()
        except InputError:
            raise
        except Exception as error:
            said = censored(f"{type(error).__name__}: {error}")[:_EXCERPT]
            raise InputError(
                f"{spec} made no embedding: {said}; it is called without arguments"
            ) from error
    _check(thing, spec)
    return thing


def _check(model: Any, spec: str) -> None:
    lacking = [name for name in _METHODS if not callable(getattr(model, name, None))]
    if isinstance(model, type):
        raise InputError(f"{spec} is a class, not an embedding; give an instance of it")
    if lacking:
        raise InputError(
            f"{spec} is {with_article(type(model).__name__)} and no embedding, it lacks "
            f"{' and '.join(lacking)}"
        )


def _provided(provider: str, name: str, spec: str) -> Any:
    try:
        from langchain.embeddings import init_embeddings
    except ImportError:
        raise MissingExtraError("langchain", "langchain") from None
    provider = provider.lower().replace("-", "_")
    known = _providers()
    if known and provider not in known:
        told = known_names(provider, ["minilm", *known])
        raise InputError(f"langchain knows no embeddings of the provider '{provider}'; {told}")
    options: dict[str, Any] = {}
    if provider == "openai" and os.environ.get("OPENAI_BASE_URL"):
        # Other servers do not know OpenAI's tokens, and counting them would fetch a file.
        options["check_embedding_ctx_length"] = False
        if not os.environ.get("OPENAI_API_KEY"):
            options["api_key"] = _NO_KEY
    try:
        return init_embeddings(name, provider=provider, **options)
    except ImportError as missing:
        package = (missing.name or "").partition(".")[0].replace("_", "-")
        package = package or f"langchain-{provider.replace('_', '-')}"
        raise InputError(
            f"the embedding {spec} needs the package {package}: run  pip install {package}"
        ) from None
    except Exception as problem:  # noqa: BLE001 (every provider raises its own)
        first = censored(str(problem).strip().partition("\n")[0])[:_EXCERPT]
        raise InputError(f"the embedding {spec} cannot be opened: {first}") from None


def _providers() -> list[str]:
    """The providers that this version of langchain lists; empty where it does not tell."""
    from langchain.embeddings import base

    return sorted(getattr(base, "_BUILTIN_PROVIDERS", ()))
