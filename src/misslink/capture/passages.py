"""Convert an app's documents to passages."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from numbers import Integral, Real
from typing import Any

from misslink.io.values import document_fields, is_document, metadata_value
from misslink.text.normalization import content_id, drop_invisible, fold, valid_text
from misslink.text.prompt_matching import merge_rankings
from misslink.types import Passage

# Where rerankers and retrievers written after LangChain's own guide leave the score they ranked by.
_SCORE_KEYS = ("relevance_score", "score")
_MIN_CUT = 20  # folded characters; a shorter text is part of another by chance
_PAIR = 2  # a document and its score


def document_list(value: Any, *, strings: bool = False) -> list[Any] | None:
    """The documents in a list of them, of pairs with a score, or in chromadb's result."""
    if isinstance(value, Mapping) and isinstance(ids := value.get("ids"), list):
        names = ("id", "text", "metadata", "score")
        columns = [value.get(name) or [] for name in ("ids", "documents", "metadatas", "distances")]
        if any(isinstance(item, list) for item in ids):  # a list for each query: by rank
            columns = [list(chain(*zip_longest(*column))) for column in columns]
        return [
            {name: item for name, item in zip(names, row, strict=True) if item is not None}
            for row in zip_longest(*columns)
            if row[0] is not None
        ]
    if not isinstance(value, list | tuple):
        return None
    items = [str(item) if strings and isinstance(item, Integral) else item for item in value]
    if not all(_is_document(item) or (strings and isinstance(item, str)) for item in items):
        return None
    if any(isinstance(item, str) and re.search(r"\s", item) for item in items):
        return items
    return [{"id": item} if isinstance(item, str) else item for item in items]


def _is_document(item: Any) -> bool:
    if isinstance(item, tuple):
        return len(item) == _PAIR and isinstance(item[1], Real) and _is_document(item[0])
    if isinstance(item, Mapping):
        return any(isinstance(item.get(key), str) for key in ("id", "text", "page_content"))
    return is_document(item)


def chunks_from(
    documents: Iterable[Any], scores: Sequence[float | None] = (), *, id_key: str | None = None
) -> tuple[Passage, ...]:
    """One list of documents as passages, best first; those of one id have the rank of the first.

    Parameters
    ----------
    documents : iterable of Document, mapping or str
        As retrieved, best first. A mapping is read as the line of a traces file is.
    scores : sequence of float or None
        One for each document, where they are known.
    id_key : str or None
        The metadata key that holds the id; it wins over ``Document.id``.
    """
    ranks: dict[str, int] = {}
    chunks = []
    for index, document in enumerate(documents):
        score = scores[index] if index < len(scores) else None
        chunk = passage_from(document, score=score, id_key=id_key)
        rank = ranks.setdefault(chunk.id, len(ranks) + 1)
        chunks.append(chunk.model_copy(update={"rank": rank}))
    return tuple(chunks)


def passages_from(
    documents: Iterable[Any], scores: Sequence[float | None] = (), *, id_key: str | None = None
) -> tuple[Passage, ...]:
    """Passages as of `chunks_from`, each id once, with all its texts."""
    return merge_rankings([chunks_from(documents, scores, id_key=id_key)])


def passage_from(
    document: Any, *, rank: int = 1, score: float | None = None, id_key: str | None = None
) -> Passage:
    """One document as a passage.

    Its id is ``metadata[id_key]`` where `id_key` is given and the document has it, else its own
    id, else ``misslink.text.normalization.content_id``. Metadata that JSON cannot hold becomes text, and half a
    surrogate pair becomes '?'.
    """
    own, text, metadata, own_score = document_fields(document)
    named = metadata.get(id_key) if id_key else None
    identity = named if named is not None else own
    if score is None:
        given = [own_score, *(metadata.get(key) for key in _SCORE_KEYS)]
        score = next(
            (number for value in given if (number := _finite_number(value)) is not None), None
        )
    return Passage(
        id=content_id(text) if identity is None or identity == "" else valid_text(str(identity)),
        text=text,
        rank=rank,
        score=score if score is None else _finite_number(score),
        metadata={valid_text(str(key)): metadata_value(value) for key, value in metadata.items()},
    )


def plain_id(name: str) -> str:
    """An id without what a reader cannot see or passes over.

    Composed by Unicode's form NFC, without invisible characters, a leading ``./`` and blanks at its
    ends.
    """
    return drop_invisible(unicodedata.normalize("NFC", name)).strip().removeprefix("./")


def id_spellings(name: str) -> set[str]:
    """The ids that a store may hold a passage by, if people read `name`."""
    plain = plain_id(name)
    decomposed = unicodedata.normalize("NFD", plain)
    return {name, plain, decomposed, plain.lower(), plain.upper(), f"./{plain}"}


def has_document_id(passage: Passage) -> bool:
    """Whether its document had an id; otherwise the id is a hash of the text."""
    return passage.id != content_id(passage.text)


def find_id_key(passages: Iterable[Passage], ids: Collection[str]) -> tuple[str | None, bool]:
    """The metadata key that holds most of `ids`, and whether it can be used as the passages' id.

    It can if every passage has it, no two texts share a value, and these are not page numbers.
    """
    passages = list(passages)
    keys = Counter(
        key for p in passages for key, value in p.metadata.items() if _id_value(value) in ids
    )
    if not keys:
        return None, False
    key = keys.most_common(1)[0][0]
    texts: dict[str | None, set[str]] = {}
    for passage in passages:
        texts.setdefault(_id_value(passage.metadata.get(key)), set()).add(passage.text)
    is_name = key.lower().endswith("id") or any(
        not name.isdigit() for name in texts if name in ids and name is not None
    )
    is_unique = all(len(same) == 1 for same in texts.values())
    return key, is_name and is_unique and None not in texts


def ids_by_key(passages: Iterable[Passage], key: str) -> dict[str, str]:
    """The value of a metadata key by passage id, where there is one."""
    pairs = ((passage.id, _id_value(passage.metadata.get(key))) for passage in passages)
    return {name: value for name, value in pairs if value}


def _id_value(value: Any) -> str | None:
    is_id = isinstance(value, str | int) and not isinstance(value, bool)
    return plain_id(str(value)) if is_id else None


def adopt_inner_ids(chunks: Sequence[Passage], inner: Iterable[Passage]) -> tuple[Passage, ...]:
    """Give chunks without an id that of the inner search's chunk with the same text.

    A compressor cuts texts and builds new documents: if no text is the same, that of the only
    passage that contains it.
    """
    wholes = [(chunk.id, fold(chunk.text)) for chunk in inner if has_document_id(chunk)]
    result = []
    for chunk in chunks:
        if wholes and not has_document_id(chunk):
            text = fold(chunk.text)
            sources = {name for name, whole in wholes if whole == text}
            if not sources and len(text) >= _MIN_CUT:
                sources = {name for name, whole in wholes if text in whole}
            if len(sources) == 1:
                chunk = chunk.model_copy(update={"id": sources.pop()})  # noqa: PLW2901
        result.append(chunk)
    return tuple(result)


def _finite_number(value: Any) -> float | None:
    """A finite float, or None; numpy's scalars are numbers too, flags are not."""
    if value is None or isinstance(value, bool | str | bytes):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
