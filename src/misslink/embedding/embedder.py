"""An embedding model asked in batches, each text once, and its vectors checked and kept."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.embedding.cache import Kind, VectorCache
from misslink.embedding.identity import censored, identity_of, name_of
from misslink.errors import InputError, MisslinkError
from misslink.text import valid_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Embedder"]

BATCH = 256  # texts a call: what the strictest of the usual servers take
QUERIES_AT_ONCE = 8  # LangChain's classes embed one query a call
_EXCERPT = 300  # characters of a provider's message that are shown
_ANY_TEXT = "text"  # embedded only to learn how long the vectors of a model are


class Embedder:
    """Unit vectors of texts.

    Parameters
    ----------
    model : Embeddings
        Of LangChain, or anything with ``embed_documents`` and ``embed_query``. Where its class
        has asynchronous methods of its own those are used, else a thread. A method
        ``embed_queries``, if it has one, embeds many queries in one call.
    cache : Path or None
        Where vectors are kept between runs; see `VectorCache`. None: only in memory.

    Attributes
    ----------
    name : str
        What people call the model; see `name_of`.
    identity : str
        What it is known by in the cache; see `identity_of`.
    computed, from_cache : int
        Different texts that the model embedded, and texts it did not have to, since opening.
    """

    def __init__(self, model: Any, *, cache: Path | None = None) -> None:
        self.model = model
        self.name = name_of(model)
        self.identity = identity_of(model)
        self.computed = 0
        self.from_cache = 0
        self._cache = VectorCache(cache, identity=self.identity, name=self.name)
        self._dimension: int | None = None
        self._told: dict[str, NDArray[np.float32]] = {}
        self._lock = asyncio.Lock()  # two askers at once would embed the same texts twice

    async def documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed passages.

        Parameters
        ----------
        texts : sequence of str
            Repetitions are embedded once. A blank text has the vector 0, which is near nothing;
            no model is asked about it.

        Returns
        -------
        numpy.ndarray of shape (n, d)
            Rows of length 1 (or 0), so that a product of two rows is their cosine. Of no text at
            all (0, 0).

        Raises
        ------
        InputError
            The model failed, or what it gave are no vectors. What it gave before is kept.
        """
        return await self._embed("document", texts)

    async def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed questions; as `documents`, by the model's way for queries."""
        return await self._embed("query", texts)

    def know(self, vectors: Mapping[str, Sequence[float]]) -> None:
        """Take vectors of passages that this model has made before, say in the app's own store.

        Parameters
        ----------
        vectors : mapping of str to sequence of float
            By text, of any length but 0; what the model need not be asked.

        Raises
        ------
        InputError
            They are no vectors.
        """
        if vectors:
            rows = self._checked(list(vectors.values()), len(vectors))
            self._told |= dict(zip(map(valid_text, vectors), rows, strict=True))

    def close(self) -> None:
        """Close the cache's file."""
        self._cache.close()

    async def _embed(self, kind: Kind, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        readable = [valid_text(text) for text in texts]
        different = list(dict.fromkeys(text for text in readable if text.strip()))
        async with self._lock:
            vectors = await self._vectors(kind, different or [_ANY_TEXT])
        nothing = np.zeros(self._dimension or 0, dtype=np.float32)
        return np.stack([vectors[text] if text.strip() else nothing for text in readable])

    async def _vectors(self, kind: Kind, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """Vectors by text, from the cache where it has them."""
        told = self._told if kind == "document" else {}
        given = {text: told[text] for text in texts if text in told}
        texts = [text for text in texts if text not in given]
        known = self._cache.get(kind, texts)
        lengths = {len(vector) for vector in known.values()}
        new = [text for text in texts if text not in known]
        if self._dimension is None and len(lengths) == 1 and not new:
            (self._dimension,) = lengths
        fresh = await self._computed(kind, new)
        if lengths - {self._dimension}:
            # Another model under the same name: what was kept of it is of no use any more.
            self._cache.forget()
            fresh |= await self._computed(kind, list(known))
            self._cache.add(kind, fresh)
            known = {}
        self.from_cache += len(known)
        return given | known | fresh

    async def _computed(self, kind: Kind, texts: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        found: dict[str, NDArray[np.float32]] = {}
        for start in range(0, len(texts), BATCH):
            batch = texts[start : start + BATCH]
            if kind == "document":
                made = dict(zip(batch, await self._asked_documents(batch), strict=True))
                self._keep(kind, made)
                found |= made
            else:
                found |= await self._asked_queries(batch)
        return found

    def _keep(self, kind: Kind, made: dict[str, NDArray[np.float32]]) -> None:
        self._cache.add(kind, made)
        self.computed += len(made)

    async def _asked_documents(self, batch: Sequence[str]) -> NDArray[np.float32]:
        return self._checked(await self._call("embed_documents", list(batch)), len(batch))

    async def _asked_queries(self, batch: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        if callable(getattr(self.model, "embed_queries", None)):
            rows = self._checked(await self._call("embed_queries", list(batch)), len(batch))
            made = dict(zip(batch, rows, strict=True))
            self._keep("query", made)
            return made
        # A model without asynchronous methods need not stand several threads at once.
        at_once = asyncio.Semaphore(QUERIES_AT_ONCE if self._has_own("aembed_query") else 1)

        async def one(text: str) -> tuple[str, NDArray[np.float32]]:
            async with at_once:
                return text, self._checked([await self._call("embed_query", text)], 1)[0]

        ended = await asyncio.gather(*map(one, batch), return_exceptions=True)
        made = dict(end for end in ended if not isinstance(end, BaseException))
        self._keep("query", made)  # what came is kept even if another failed
        for end in ended:
            if isinstance(end, BaseException):
                raise end
        return made

    async def _call(self, method: str, argument: Any) -> Any:
        try:
            if self._has_own(f"a{method}"):
                with contextlib.suppress(_OfAnotherLoopError):
                    return await _in_this_loop(getattr(self.model, f"a{method}")(argument))
            return await asyncio.to_thread(getattr(self.model, method), argument)
        except MisslinkError:
            raise
        except Exception as error:
            said = censored(" ".join(valid_text(str(error)).split()), self.model)[:_EXCERPT]
            kind = type(error).__name__
            raise InputError(
                f"the embedding model {self.name} failed: {kind}{said and f': {said}'}; "
                "see to it, or name another embedding"
            ) from error

    def _has_own(self, method: str) -> bool:
        """Whether the model's class has an asynchronous method that is more than a thread."""
        own: Callable[..., Any] | None = getattr(type(self.model), method, None)
        if own is None:
            return False
        from langchain_core.embeddings import Embeddings

        return own is not getattr(Embeddings, method, None)

    def _checked(self, rows: Any, expected: int) -> NDArray[np.float32]:
        """Rows of unit length, as many as asked for, all of one length and finite."""
        import numpy as np

        try:
            table: NDArray[np.float64] = np.asarray(rows, dtype=np.float64)
        except (TypeError, ValueError):
            raise self._wrong("vectors of different lengths, or what are no numbers") from None
        if table.ndim != 2 or not table.shape[1]:  # noqa: PLR2004 (texts by numbers)
            raise self._wrong("no vectors, which are lists of numbers")
        if len(table) != expected:
            raise self._wrong(f"{len(table)} vectors for {expected} texts")
        if not np.isfinite(table).all():
            raise self._wrong("a vector with a number that is not finite")
        if self._dimension is None:
            self._dimension = table.shape[1]
        if table.shape[1] != self._dimension:
            raise self._wrong(
                f"a vector of {table.shape[1]} numbers after others of {self._dimension}"
            )
        # First by the largest number, whose square would overflow or vanish.
        largest = np.abs(table).max(axis=1, keepdims=True)
        table = np.divide(table, largest, out=np.zeros_like(table), where=largest > 0)
        lengths = np.linalg.norm(table, axis=1, keepdims=True)
        unit: NDArray[np.float64] = np.divide(
            table, lengths, out=np.zeros_like(table), where=lengths > 0
        )
        return unit.astype(np.float32)

    def _wrong(self, what: str) -> InputError:
        return InputError(
            f"the embedding model {self.name} gave {what}; correct it, or name another embedding"
        )


class _OfAnotherLoopError(Exception):
    """The model's connections belong to an event loop that has ended."""


async def _in_this_loop(asked: Awaitable[Any]) -> Any:
    """Await a model that may share connections between all evaluations of a process.

    LangChain's OpenAI class does, and those of an earlier event loop fail in a later one. The
    synchronous way has connections of its own.
    """
    try:
        return await asked
    except RuntimeError as error:
        if "event loop" not in str(error).lower():
            raise
        raise _OfAnotherLoopError from error
