"""Embed texts in batches, each once, with a model that can be identified again."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from misslink.embedding.cache import TextKind, VectorCache
from misslink.errors import InputError, MisslinkError
from misslink.event_loops import is_of_another_loop
from misslink.io.secrets import is_secret_name, redact_secrets
from misslink.text.normalization import valid_text

if TYPE_CHECKING:
    from misslink.embedding.cache import Vector


# The attributes in which LangChain's embedding classes name their model.
_NAME_ATTRIBUTES = ("model", "model_name", "deployment", "repo_id", "dimensions")
_MAX_ENTRIES = 1_000  # entries; more is data of the model and no setting
_MAX_DEPTH = 4  # embeddings wrap embeddings, and some refer to themselves


def embedding_name(model: Any) -> str:
    """Return the display name of an embedding model: its class and its settings.

    In brackets are those of the attributes model, model_name, deployment, repo_id and dimensions
    that are plain texts or whole numbers: of a path the last part, of an address neither the user
    nor the query. An unset deployment is left out.

    Examples
    --------
    >>> class Mine:
    ...     model, dimensions = "small", 256
    >>> embedding_name(Mine()), embedding_name(object())
    ('Mine(model=small, dimensions=256)', 'object')
    """
    settings = []
    for attribute in _NAME_ATTRIBUTES:
        value = getattr(model, attribute, None)
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            continue
        # LangChain's OpenAI class has the name of an old model there until somebody sets it.
        if attribute == "deployment" and attribute not in getattr(
            model, "model_fields_set", (attribute,)
        ):
            continue
        text = " ".join(str(value).split())
        if "://" in text:
            address = urlsplit(text)
            text = f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}"
        else:
            text = Path(text).name if Path(text).is_absolute() else redact_secrets(text)
        settings.append(f"{attribute}={text}")
    kind = type(model).__name__
    return f"{kind}({', '.join(settings)})" if settings else kind


def embedding_identity(model: Any) -> str:
    """Return a digest that identifies the same embedding model in another process.

    It covers the class, the content of its source file, and every plain value among the
    attributes: another server, another prompt for queries or an edited class is another model. If
    an attribute names a folder, the names, sizes and dates of its files count. Keys and objects
    that are not plain do not count; a wrapped model does.

    Parameters
    ----------
    model : Embeddings
        Anything with ``embed_documents``.

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    described = json.dumps(
        _describe(model, _MAX_DEPTH), sort_keys=True, ensure_ascii=True, default=str
    )
    return hashlib.sha256(described.encode()).hexdigest()


def model_secrets(model: Any) -> list[str]:
    """Return the values of the secret attributes of a model."""
    reveals = (getattr(x, "get_secret_value", None) for x in _attributes(model).values())
    return [str(reveal()) for reveal in reveals if callable(reveal)]


def _describe(model: Any, depth: int) -> dict[str, object]:
    kind = type(model)
    state = {
        name: plain
        for name, value in _attributes(model).items()
        if not is_secret_name(name) and (plain := _plain_value(value, depth)) is not None
    }
    try:  # a file's content tells more than the name its module happens to have
        source = hashlib.sha256(Path(inspect.getfile(kind)).read_bytes()).hexdigest()
    except (OSError, TypeError):  # typed at a prompt
        source = kind.__module__
    return {"class": kind.__qualname__, "file": source, **state}


def _attributes(model: Any) -> dict[str, object]:
    """What the class and the object say, the object last; no property is run for it."""
    state: dict[str, Any] = {}
    for kind in reversed(type(model).__mro__):
        state |= {name: value for name, value in vars(kind).items() if not name.startswith("__")}
    return state | dict(getattr(model, "__dict__", None) or {})


def _plain_value(value: Any, depth: int) -> Any:
    """The value as JSON has it; None where it is no plain one. Of a folder also what it holds."""
    if isinstance(value, str | Path):
        text = str(value)
        try:
            is_folder = text not in {"", "."} and Path(text).is_dir()
        except (OSError, ValueError):  # too long for a path, or with a null character
            is_folder = False
        if not is_folder:
            return text
        files = (path for path in Path(text).rglob("*") if path.is_file())
        stats = ((str(path.relative_to(text)), path.stat()) for path in files)
        return [text, sorted((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)]
    if isinstance(value, bool | int | float):
        return value
    depth -= 1
    if depth < 0 or (isinstance(value, Mapping | list | tuple) and len(value) > _MAX_ENTRIES):
        return None
    if isinstance(value, Mapping):
        items = {str(key): _plain_value(item, depth) for key, item in value.items()}
        return {key: item for key, item in items.items() if not is_secret_name(key)}
    if isinstance(value, list | tuple):
        return [_plain_value(item, depth) for item in value]
    is_embedding = not isinstance(value, type) and hasattr(value, "embed_documents")
    return _describe(value, depth) if is_embedding else None


BATCH_SIZE = 256  # texts a call: what the strictest of the usual servers take
QUERY_CONCURRENCY = 8  # LangChain's classes embed one query a call
_MESSAGE_LENGTH = 300  # characters of a provider's message that are shown
_PROBE_TEXT = "text"  # embedded only to learn how long the vectors of a model are


class Embedder:
    """Unit vectors of texts.

    Parameters
    ----------
    model : Embeddings
        A LangChain model, or anything with ``embed_documents`` and ``embed_query``. Asynchronous
        methods of its class are used if it has them, else a thread. A method
        ``embed_queries``, if it has one, embeds many queries in one call.
    cache : Path or None
        File that caches vectors between runs; see `VectorCache`. None: only in memory.

    Attributes
    ----------
    name : str
        Display name of the model; see `name_of`.
    identity : str
        Its key in the cache; see `identity_of`.
    computed, from_cache : int
        Number of texts that the model embedded, and of texts from the cache, since opening.
    """

    def __init__(self, model: Any, *, cache: Path | None = None) -> None:
        self.model = model
        self.name = embedding_name(model)
        self.identity = embedding_identity(model)
        self.computed = 0
        self.from_cache = 0
        self._cache = VectorCache(cache, identity=self.identity, name=self.name)
        self._dimension: int | None = None
        self._supplied: dict[str, Vector] = {}
        self._lock = asyncio.Lock()  # two askers at once would embed the same texts twice

    async def documents(self, texts: Sequence[str]) -> Vector:
        """Embed passages.

        Parameters
        ----------
        texts : sequence of str
            Repetitions are embedded once. A blank text has the vector 0, which is near nothing;
            the model is not called for it.

        Returns
        -------
        numpy.ndarray of shape (n, d)
            Rows of length 1 (or 0), so that a product of two rows is their cosine. Of no text at
            all (0, 0).

        Raises
        ------
        InputError
            The model failed, or returned no vectors. Earlier vectors stay in the cache.
        """
        return await self._embed("document", texts)

    async def queries(self, texts: Sequence[str]) -> Vector:
        """Embed questions; as `documents`, with the model's method for queries."""
        return await self._embed("query", texts)

    def know(self, vectors: Mapping[str, Sequence[float]]) -> None:
        """Add vectors of passages that this model made before, such as those in the app's store.

        Parameters
        ----------
        vectors : mapping of str to sequence of float
            By text, of any length but 0.

        Raises
        ------
        InputError
            They are not vectors.
        """
        if vectors:
            rows = self._checked(list(vectors.values()), len(vectors))
            self._supplied |= dict(zip(map(valid_text, vectors), rows, strict=True))

    def stored(self, texts: Sequence[str]) -> Vector | None:
        """Return the vectors of passages, as `documents`, if none needs the model; else None."""
        import numpy as np

        readable = [valid_text(text) for text in texts]
        missing = [text for text in dict.fromkeys(readable) if text not in self._supplied]
        vectors = self._supplied | self._cache.get("document", missing)
        rows = [vectors[text] for text in readable if text in vectors]
        sizes = {row.size for row in rows}
        return np.stack(rows) if len(rows) == len(texts) and len(sizes) == 1 else None

    def close(self) -> None:
        """Close the cache's file."""
        self._cache.close()

    async def _embed(self, kind: TextKind, texts: Sequence[str]) -> Vector:
        import numpy as np

        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        readable = [valid_text(text) for text in texts]
        different = list(dict.fromkeys(text for text in readable if text.strip()))
        async with self._lock:
            vectors = await self._vectors(kind, different or [_PROBE_TEXT])
        nothing = np.zeros(self._dimension or 0, dtype=np.float32)
        return np.stack([vectors[text] if text.strip() else nothing for text in readable])

    async def _vectors(self, kind: TextKind, texts: Sequence[str]) -> dict[str, Vector]:
        """Vectors by text, from the cache if it has them."""
        supplied = self._supplied if kind == "document" else {}
        vectors = {text: supplied[text] for text in texts if text in supplied}
        texts = [text for text in texts if text not in vectors]
        cached = self._cache.get(kind, texts)
        lengths = {len(vector) for vector in cached.values()}
        new = [text for text in texts if text not in cached]
        if self._dimension is None and len(lengths) == 1 and not new:
            (self._dimension,) = lengths
        computed = await self._compute(kind, new)
        if lengths - {self._dimension}:
            # Another model under the same name: its cached vectors are of no use any more.
            self._cache.forget()
            computed |= await self._compute(kind, list(cached))
            self._cache.add(kind, computed)
            cached = {}
        self.from_cache += len(cached)
        return vectors | cached | computed

    async def _compute(self, kind: TextKind, texts: Sequence[str]) -> dict[str, Vector]:
        vectors: dict[str, Vector] = {}
        has_batches = callable(getattr(self.model, "embed_queries", None))
        for start in range(0, len(texts), BATCH_SIZE):
            batch = list(texts[start : start + BATCH_SIZE])
            if kind == "query" and not has_batches:
                vectors |= await self._compute_queries(batch)
                continue
            method = "embed_documents" if kind == "document" else "embed_queries"
            rows = self._checked(await self._call(method, batch), len(batch))
            vectors |= self._save(kind, dict(zip(batch, rows, strict=True)))
        return vectors

    async def _compute_queries(self, batch: Sequence[str]) -> dict[str, Vector]:
        # A model without asynchronous methods may not support several threads at once.
        limit = asyncio.Semaphore(QUERY_CONCURRENCY if self._has_async("aembed_query") else 1)

        async def embed_query(text: str) -> tuple[str, Vector]:
            async with limit:
                return text, self._checked([await self._call("embed_query", text)], 1)[0]

        results = await asyncio.gather(*map(embed_query, batch), return_exceptions=True)
        vectors = dict(result for result in results if not isinstance(result, BaseException))
        self._save("query", vectors)  # also if another query failed
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return vectors

    def _save(self, kind: TextKind, vectors: dict[str, Vector]) -> dict[str, Vector]:
        self._cache.add(kind, vectors)
        self.computed += len(vectors)
        return vectors

    async def _call(self, method: str, argument: Any) -> Any:
        try:
            if self._has_async(f"a{method}"):
                try:
                    return await getattr(self.model, f"a{method}")(argument)
                except RuntimeError as error:
                    if not is_of_another_loop(error):
                        raise
            return await asyncio.to_thread(getattr(self.model, method), argument)
        except MisslinkError:
            raise
        except Exception as error:
            message = redact_secrets(
                " ".join(valid_text(str(error)).split()), model_secrets(self.model)
            )[:_MESSAGE_LENGTH]
            kind = type(error).__name__
            raise InputError(
                f"the embedding model {self.name} failed: {kind}{message and f': {message}'}; "
                "fix it, or name another embedding"
            ) from error

    def _has_async(self, method: str) -> bool:
        """Whether the model's class has an asynchronous method that is more than a thread."""
        own: Callable[..., Any] | None = getattr(type(self.model), method, None)
        if own is None:
            return False
        from langchain_core.embeddings import Embeddings

        return own is not getattr(Embeddings, method, None)

    def _checked(self, rows: Any, expected: int) -> Vector:
        """Rows of unit length, `expected` many, all of one length and finite."""
        import numpy as np

        try:
            table = np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError):
            raise self._wrong(
                "vectors of different lengths, or values that are not numbers"
            ) from None
        if table.ndim != 2 or not table.shape[1]:
            raise self._wrong("no vectors, which are lists of numbers")
        size = table.shape[1]
        if len(table) != expected:
            raise self._wrong(f"{len(table)} vectors for {expected} texts")
        if not np.isfinite(table).all():
            raise self._wrong("a vector with a number that is not finite")
        self._dimension = self._dimension or size
        if size != self._dimension:
            raise self._wrong(f"a vector of {size} numbers after others of {self._dimension}")
        # First by the largest number, whose square would overflow or vanish.
        largest = np.abs(table).max(axis=1, keepdims=True)
        table = np.divide(table, largest, out=np.zeros_like(table), where=largest > 0)
        lengths = np.linalg.norm(table, axis=1, keepdims=True)
        unit = np.divide(table, lengths, out=np.zeros_like(table), where=lengths > 0)
        return unit.astype(np.float32)

    def _wrong(self, problem: str) -> InputError:
        return InputError(
            f"the embedding model {self.name} gave {problem}; correct it, or name another embedding"
        )
