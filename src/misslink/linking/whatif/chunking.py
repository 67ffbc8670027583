"""The same documents cut another way: passages put together again, then split anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from misslink.errors import InputError, MissingExtraError
from misslink.retrieval.neighbours import may_adjoin
from misslink.types import Case, Passage

__all__ = ["Chunking", "by_text", "documents", "rechunked"]

_OVERLAP = 20  # characters that two chunks do not share by chance
_TRIMMED = 40  # characters of blank that a splitter may have dropped between two chunks
_SOURCES = ("source", "document_id", "file_path", "file_name", "filename")
_START = "start_index"  # a character offset, where LangChain's splitters are asked for it


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
            raise InputError(f"'{text}' is no chunking; write SIZE/OVERLAP in characters, as 600/0")
        found = cls(int(size), int(overlap or 0))
        if not 0 <= found.overlap < found.size:
            raise InputError(f"chunking '{text}': the overlap is to be smaller than the size")
        return found

    def __str__(self) -> str:
        return f"{self.size}/{self.overlap}"


def documents(passages: Sequence[Passage]) -> list[Passage]:
    """The documents that the passages were cut from, as far as they can be put together.

    Passages of one source that follow each other are joined where the start of one is the end of
    the other, in 20 characters at least, or where their ``start_index`` tells their places.
    Every other passage is a document of its own.

    Returns
    -------
    list of Passage
        With the id and the metadata of the first passage of each; the rank is the place.
    """
    firsts: dict[object, int] = {}
    keyed = []
    for at, passage in enumerate(passages):
        source = next((passage.metadata[key] for key in _SOURCES if key in passage.metadata), None)
        group = firsts.setdefault(str(source), at) if source is not None else at
        start = _start(passage)
        keyed.append(((group, -1 if start is None else start, at), passage))
    joined: list[Passage] = []
    last: Passage | None = None  # the one the document so far ends with
    for _, passage in sorted(keyed, key=lambda pair: pair[0]):
        more = _rest(joined[-1], last, passage) if last is not None else None
        if more is None:
            joined.append(passage.model_copy(update={"rank": len(joined) + 1}))
        else:
            joined[-1] = joined[-1].model_copy(update={"text": joined[-1].text + more})
        last = passage
    return joined


def rechunked(wholes: Sequence[Passage], chunking: Chunking) -> list[Passage]:
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
            start = piece.metadata[_START]
            chunks.append(
                Passage(
                    id=f"{whole.id}@{start}",
                    text=piece.page_content,
                    rank=len(chunks) + 1,
                    metadata={"source": whole.id, _START: start},
                )
            )
    return chunks


def by_text(case: Case, texts: dict[str, str], longest: int) -> Case | str | None:
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
    Case, str or None
        The case as it is where it gives evidence; None where it needs nothing.
    """
    if any(case.evidence.values()):
        return case
    sets = [ids for ids in case.relevant_any if ids]
    if len(sets) > 1:
        return "it gives alternative sets of ids, which other chunks do not have"
    wanted = {id_: case.relevant.get(id_) or 1 for id_ in sets[0]} if sets else case.relevant
    wanted = {id_: grade for id_, grade in wanted.items() if grade > 0}
    if not wanted:
        return None
    if any(not texts.get(id_, "").strip() for id_ in wanted):
        return "the corpus has no text of a passage it needs"
    if any(len(texts[id_].strip()) > longest for id_ in wanted):
        # Which part of the passage matters nobody has said.
        return "it names passages longer than the new chunks; give it evidence texts"
    return case.model_copy(
        update={
            "evidence": {texts[id_]: grade for id_, grade in wanted.items()},
            "relevant": {},
            "relevant_any": (),
        }
    )


def _rest(whole: Passage, last: Passage, passage: Passage) -> str | None:
    """What `passage` adds to the document that ends with `last`; None where it is of another."""
    if not may_adjoin(last, passage):
        return None
    one, other = _start(last), _start(passage)
    if one is not None and other is not None and "source" in last.metadata:
        gap = other - (one + len(last.text))
        if 0 <= gap <= _TRIMMED:
            return ("\n" * gap) + passage.text  # the splitter dropped blanks there
        if gap < 0 and whole.text.endswith(passage.text[:-gap]):
            return passage.text[-gap:]
    head, tail = passage.text[:_OVERLAP], whole.text[-len(passage.text) :]
    at = tail.find(head) if len(head) == _OVERLAP else -1
    while at >= 0:
        if passage.text.startswith(tail[at:]):
            return passage.text[len(tail) - at :]
        at = tail.find(head, at + 1)
    return None


def _start(passage: Passage) -> int | None:
    value = passage.metadata.get(_START)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
