"""The corpus cut another way, and rerankers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any, Protocol

from misslink.embedding import import_without_notebook_warning
from misslink.errors import InputError, MissingExtraError
from misslink.io.manifest import display_path
from misslink.retrieval.matching import can_be_adjacent
from misslink.types import Case, Passage, Reason
from misslink.user_code import import_target, resolve_attribute, with_article

_MIN_OVERLAP = 20  # characters that two chunks do not share by chance
_MAX_TRIMMED = 40  # characters of blank that a splitter may have dropped between two chunks
_SOURCE_KEYS = ("source", "document_id", "file_path", "file_name", "filename")
_START_KEY = "start_index"  # a character offset, where LangChain's splitters are asked for it


@dataclass(frozen=True)
class Chunking:
    """Characters a chunk has at most, and how many it shares with the next."""

    size: int
    overlap: int

    @classmethod
    def parse(cls, text: str) -> Chunking:
        """Read ``SIZE/OVERLAP``, such as 600/0; InputError where it is none."""
        size, slash, overlap = text.partition("/")
        if not (size.strip().isdecimal() and (overlap.strip().isdecimal() or not slash)):
            raise InputError(
                f"'{text}' is not a chunking; write SIZE/OVERLAP in characters, as 600/0"
            )
        chunking = cls(int(size), int(overlap or 0))
        if not 0 <= chunking.overlap < chunking.size:
            raise InputError(f"chunking '{text}': the overlap is to be smaller than the size")
        return chunking

    def __str__(self) -> str:
        return f"{self.size}/{self.overlap}"


def rebuild_documents(passages: Sequence[Passage]) -> list[Passage]:
    """Rebuild the documents that the passages were cut from, where they can be joined.

    Passages of one source that follow each other are joined where the start of one is the end of the
    other, in 20 characters at least, or where their ``start_index`` fits. Every other passage stays a
    document. The result has the id and the metadata of the first passage of each.
    """
    firsts: dict[object, int] = {}
    keyed = []
    for position, passage in enumerate(passages):
        source = next(
            (passage.metadata[key] for key in _SOURCE_KEYS if key in passage.metadata), None
        )
        group = firsts.setdefault(str(source), position) if source is not None else position
        start = _start_index(passage)
        keyed.append(((group, -1 if start is None else start, position), passage))
    joined: list[Passage] = []
    last: Passage | None = None  # the one the document so far ends with
    for _, passage in sorted(keyed, key=lambda pair: pair[0]):
        more = _continuation(joined[-1], last, passage) if last is not None else None
        if more is None:
            joined.append(passage.model_copy(update={"rank": len(joined) + 1}))
        else:
            joined[-1] = joined[-1].model_copy(update={"text": joined[-1].text + more})
        last = passage
    return joined


def rechunk(wholes: Sequence[Passage], chunking: Chunking) -> list[Passage]:
    """Documents cut by LangChain's recursive splitter, each chunk with its document and place."""
    try:
        from langchain_text_splitters import RecursiveCharacterTextSplitter
    except ImportError:
        raise MissingExtraError("langchain-text-splitters", "langchain") from None
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=chunking.size, chunk_overlap=chunking.overlap, add_start_index=True
    )
    chunks: list[Passage] = []
    for whole in wholes:
        for piece in splitter.create_documents([whole.text]):
            start = piece.metadata[_START_KEY]
            chunks.append(
                Passage(
                    id=f"{whole.id}@{start}",
                    text=piece.page_content,
                    rank=len(chunks) + 1,
                    metadata={"source": whole.id, _START_KEY: start},
                )
            )
    return chunks


def with_evidence_texts(case: Case, texts: dict[str, str], longest: int) -> Case | Reason | None:
    """The case with the texts of its relevant passages as evidence; or why that cannot be.

    Parameters
    ----------
    case : Case
    texts : mapping of str to str
        Of the corpus, by passage id.
    longest : int
        Characters a new chunk has at most.

    Returns
    -------
    Case, Reason or None
        The case as it is where it gives evidence; None where it needs nothing.
    """
    if any(case.evidence.values()):
        return case
    sets = [ids for ids in case.relevant_any if ids]
    if len(sets) > 1:
        return Reason(code="alternatives_unchunkable")
    needed = {id_: case.relevant.get(id_) or 1 for id_ in sets[0]} if sets else case.relevant
    needed = {id_: grade for id_, grade in needed.items() if grade > 0}
    if not needed:
        return None
    if any(not texts.get(id_, "").strip() for id_ in needed):
        return Reason(code="needed_without_text")
    if any(len(texts[id_].strip()) > longest for id_ in needed):
        # Which part of the passage matters nobody has said.
        return Reason(code="longer_than_chunks")
    return case.model_copy(
        update={
            "evidence": {texts[id_]: grade for id_, grade in needed.items()},
            "relevant": {},
            "relevant_any": (),
        }
    )


def _continuation(whole: Passage, last: Passage, passage: Passage) -> str | None:
    """What `passage` adds to the document that ends with `last`; None where it is of another."""
    if not can_be_adjacent(last, passage):
        return None
    last_start, next_start = _start_index(last), _start_index(passage)
    if last_start is not None and next_start is not None and "source" in last.metadata:
        gap = next_start - (last_start + len(last.text))
        if 0 <= gap <= _MAX_TRIMMED:
            return ("\n" * gap) + passage.text  # the splitter dropped blanks there
        if gap < 0 and whole.text.endswith(passage.text[:-gap]):
            return passage.text[-gap:]
    head, tail = passage.text[:_MIN_OVERLAP], whole.text[-len(passage.text) :]
    offset = tail.find(head) if len(head) == _MIN_OVERLAP else -1
    while offset >= 0:
        if passage.text.startswith(tail[offset:]):
            return passage.text[len(tail) - offset :]
        offset = tail.find(head, offset + 1)
    return None


def _start_index(passage: Passage) -> int | None:
    value = passage.metadata.get(_START_KEY)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_EXCERPT = 200  # characters of a library's message that are shown


class Reranker(Protocol):
    """What puts a few passages into a better order."""

    name: str

    async def order(self, question: str, texts: Sequence[str]) -> list[int]:
        """Places of the texts, best first; those left out are not given to the model."""
        ...


class _CrossEncoderReranker:
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
            raise _rerank_error(self.name, error) from error
        return sorted(range(len(pairs)), key=lambda place: -float(scores[place]))


class _CompressorReranker:
    """A LangChain compressor as a reranker; a number in the metadata identifies each passage."""

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
            raise _rerank_error(self.name, error) from error
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
        compressor = resolve_attribute(import_target(target, Path.cwd()), attribute, target)
        if not hasattr(compressor, "acompress_documents"):
            raise InputError(
                f"{spec} is {with_article(type(compressor).__name__)}, no reranker; "
                "name a LangChain document compressor"
            )
        return _CompressorReranker(display_path(spec), compressor)
    import_without_notebook_warning()
    try:
        from sentence_transformers import CrossEncoder
    except ImportError:
        raise MissingExtraError("sentence-transformers", "minilm") from None
    try:
        with _silence_hub():
            model = _load_model(CrossEncoder, spec)
    except Exception as error:
        raise InputError(
            f"no cross-encoder could be loaded from '{spec}' ({_error_excerpt(error)}); "
            "name its folder, its name on the hub, or a compressor as file.py:name"
        ) from error
    return _CrossEncoderReranker(display_path(spec), model)


def _load_model(kind: Any, spec: str) -> Any:
    """Load a local model without calling the hub, else download it."""
    try:
        return kind(spec, device="cpu", local_files_only=True)
    except OSError:
        if Path(spec).exists():
            raise
        return kind(spec, device="cpu")


@contextmanager
def _silence_hub() -> Iterator[None]:
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


def _rerank_error(name: str, error: Exception) -> InputError:
    return InputError(f"the reranker {name} failed: {_error_excerpt(error)}")


def _error_excerpt(error: Exception) -> str:
    """Kind and message in one line, cut at a word."""
    return f"{type(error).__name__}: {shorten(str(error), _EXCERPT, placeholder=' ...')}"
