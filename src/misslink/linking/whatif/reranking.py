"""Rerankers: a cross-encoder of sentence-transformers, or a LangChain document compressor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any, Protocol

from misslink.errors import InputError, MissingExtraError
from misslink.importing import attribute_of, import_target, with_article
from misslink.manifest import shown_path

__all__ = ["Reranker", "open_reranker"]

_EXCERPT = 200  # characters of a library's message that are shown


class Reranker(Protocol):
    """What puts a few passages into a better order."""

    name: str

    async def order(self, question: str, texts: Sequence[str]) -> list[int]:
        """Places of the texts, best first; those left out are not given to the model."""
        ...


class _CrossEncoder:
    def __init__(self, name: str, model: Any) -> None:
        self.name = name
        self._model = model

    async def order(self, question: str, texts: Sequence[str]) -> list[int]:
        pairs = [(question, text) for text in texts]
        if not pairs:
            return []
        try:
            scores = await asyncio.to_thread(self._model.predict, pairs, show_progress_bar=False)
        except Exception as error:
            raise _failed(self.name, error) from error
        return sorted(range(len(pairs)), key=lambda place: -float(scores[place]))


class _Compressor:
    """A LangChain compressor; what it gives back is told by a number in the metadata."""

    _KEY = "misslink_place"

    def __init__(self, name: str, compressor: Any) -> None:
        self.name = name
        self._compressor = compressor

    async def order(self, question: str, texts: Sequence[str]) -> list[int]:
        from langchain_core.documents import Document

        given = [
            Document(page_content=text, metadata={self._KEY: place})
            for place, text in enumerate(texts)
        ]
        try:
            back = await self._compressor.acompress_documents(given, question)
        except Exception as error:
            raise _failed(self.name, error) from error
        places = [document.metadata.get(self._KEY) for document in back]
        if None in places:
            raise InputError(
                f"the reranker {self.name} returns documents without the metadata they had; "
                "let it keep the metadata"
            )
        return list(dict.fromkeys(places))


def open_reranker(spec: str) -> Reranker:
    """Open a reranker.

    Parameters
    ----------
    spec : str
        ``file.py:name`` of a LangChain compressor (an object with ``compress_documents``), or the
        folder or name of a sentence-transformers cross-encoder.

    Raises
    ------
    InputError
        There is no such thing, or it cannot rerank.
    """
    target, colon, attribute = spec.rpartition(":")
    if colon and target and attribute and not Path(spec).exists():
        found = attribute_of(import_target(target, Path.cwd()), attribute, target)
        if not hasattr(found, "acompress_documents"):
            raise InputError(
                f"{spec} is {with_article(type(found).__name__)}, no reranker; "
                "name a LangChain document compressor"
            )
        return _Compressor(shown_path(spec), found)
    try:
        from sentence_transformers import CrossEncoder
    except ImportError:
        raise MissingExtraError("sentence-transformers", "langchain") from None
    try:
        with _hub_in_silence():
            model = _loaded(CrossEncoder, spec)
    except Exception as error:
        raise InputError(
            f"no cross-encoder could be loaded from '{spec}' ({_said(error)}); "
            "name its folder, its name on the hub, or a compressor as file.py:name"
        ) from error
    return _CrossEncoder(shown_path(spec), model)


def _loaded(kind: Any, spec: str) -> Any:
    """What lies on this machine is taken without asking the hub."""
    try:
        return kind(spec, device="cpu", local_files_only=True)
    except OSError:
        if Path(spec).exists():
            raise
        return kind(spec, device="cpu")


@contextmanager
def _hub_in_silence() -> Iterator[None]:
    """The hub's client tells every try that failed; here only the last failure counts."""
    loggers = [logging.getLogger(name) for name in ("huggingface_hub", "transformers", "urllib3")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _failed(name: str, error: Exception) -> InputError:
    return InputError(f"the reranker {name} failed: {_said(error)}")


def _said(error: Exception) -> str:
    """Kind and message in one line, cut at a word."""
    return f"{type(error).__name__}: {shorten(str(error), _EXCERPT, placeholder=' ...')}"
