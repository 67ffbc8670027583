"""Fingerprints of an app's documents and embedding, to detect changes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

_DIGITS = 16  # of a text's SHA-256: two of a million texts agree by chance once in 10^7 corpora
_MAX_IDS = 3  # ids that a sentence names; the rest is counted
_MAX_ID_LENGTH = 60


class _PassageLike(Protocol):
    """Anything with an id and a text, as `misslink.types.Passage` is."""

    @property
    def id(self) -> str: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class Fingerprint:
    """What the documents and the embedding model were at one time.

    Parameters
    ----------
    documents : mapping of str to str
        From a passage's id to the first 16 hexadecimal digits of its text's SHA-256. The texts
        themselves are not kept.
    embedding : str or None
        By what the embedding model is known again (see `misslink.embedding.embedder`); None
        where it is not known.
    """

    documents: Mapping[str, str]
    embedding: str | None = None

    @property
    def digest(self) -> str:
        """64 hexadecimal digits, the same for the same documents (in any order) and embedding."""
        whole = [sorted(self.documents.items()), self.embedding]
        return hashlib.sha256(json.dumps(whole, ensure_ascii=True).encode()).hexdigest()


@dataclass(frozen=True)
class FingerprintDiff:
    """What is different between two fingerprints.

    Parameters
    ----------
    added, removed, edited : tuple of str
        Ids, sorted: only in the later one, only in the earlier one, with another text.
    embedding_before, embedding_after : str or None
        The embedding models; None where it was not known.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    embedding_before: str | None = None
    embedding_after: str | None = None

    @property
    def is_other_embedding(self) -> bool:
        """Whether both models are known and differ; one that is not known is no change."""
        are_known = self.embedding_before is not None and self.embedding_after is not None
        return are_known and self.embedding_before != self.embedding_after

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known to have changed."""
        return not (self.added or self.removed or self.edited or self.is_other_embedding)

    @property
    def sentence(self) -> str:
        """Describe the changes in one line, or return ''. Callers escape it for pages."""
        parts = [
            f"{len(ids)} document{'s' if len(ids) > 1 else ''} {verb} ({_list_ids(ids)})"
            for ids, verb in (
                (self.added, "added"),
                (self.removed, "removed"),
                (self.edited, "edited"),
            )
            if ids
        ]
        if self.is_other_embedding:
            models = (
                _short_text(str(self.embedding_before)),
                _short_text(str(self.embedding_after)),
            )
            parts.append("the embedding model changed from {} to {}".format(*models))
        return "; ".join(parts)


def fingerprint_corpus(
    passages: Iterable[_PassageLike], embedding: str | None = None
) -> Fingerprint:
    """Return the fingerprint of a corpus; passages with the same id count as one document."""
    texts: dict[str, list[str]] = {}
    for passage in passages:
        texts.setdefault(passage.id, []).append(_digest(passage.text))
    return Fingerprint(
        documents={
            name: digests[0] if len(digests) == 1 else _digest(" ".join(sorted(digests)))
            for name, digests in sorted(texts.items())
        },
        embedding=embedding,
    )


def compare_fingerprints(before: Fingerprint, after: Fingerprint) -> FingerprintDiff:
    """Return what is different in `after`.

    Examples
    --------
    >>> found = compare_fingerprints(Fingerprint({"a": "1", "b": "2"}), Fingerprint({"b": "3", "c": "4"}))
    >>> found.sentence
    '1 document added (c); 1 document removed (a); 1 document edited (b)'
    """
    old, new = before.documents, after.documents
    return FingerprintDiff(
        added=tuple(sorted(new.keys() - old.keys())),
        removed=tuple(sorted(old.keys() - new.keys())),
        edited=tuple(sorted(name for name in new.keys() & old.keys() if new[name] != old[name])),
        embedding_before=before.embedding,
        embedding_after=after.embedding,
    )


def _digest(text: str) -> str:
    # Half of a surrogate pair cannot be encoded strictly, and two texts of them are two texts.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]


def _list_ids(ids: tuple[str, ...]) -> str:
    names = ", ".join(_short_text(name) for name in ids[:_MAX_IDS])
    return f"{names} and {len(ids) - _MAX_IDS} more" if len(ids) > _MAX_IDS else names


def _short_text(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _MAX_ID_LENGTH else f"{line[: _MAX_ID_LENGTH - 3]}..."
