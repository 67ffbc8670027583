"""The passages that questions are written from: read, the long ones cut, the poor left out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError, MissingExtraError, MisslinkError
from misslink.files.corpus import read_corpus
from misslink.files.jsonl import parse
from misslink.goldset.generating.quality import POOR, poor
from misslink.goldset.generating.settings import Settings
from misslink.importing import attribute_of, import_target, place_of
from misslink.manifest import content_hash, shown_path
from misslink.text import content_id, fold, valid_text
from misslink.types import Passage

__all__ = ["Sources", "read_sources"]

_TARGET = re.compile(r"(?P<target>[^:]+):(?P<name>[^\W\d][\w.]*)", re.DOTALL)
_DOCUMENT = ("source", "document_id", "file_path", "file_name", "filename")
_NUMBER = "#"


@dataclass(frozen=True)
class Sources:
    """A corpus as questions are written from it.

    Parameters
    ----------
    name : str
        What it was read from, fit to be shown.
    passages : sequence of Passage
        All of them, long documents cut.
    documents : sequence of str
        Of each passage, the document it is of.
    usable : sequence of int
        The places of the passages that carry a question.
    skipped : mapping of str to int
        How many were left out, by the codes of `POOR`.
    cut : int
        Documents that were longer than a passage and were cut.
    fingerprint : str
        SHA-256 of all ids and texts, in whatever order they came.
    """

    name: str
    passages: tuple[Passage, ...]
    documents: tuple[str, ...]
    usable: tuple[int, ...]
    skipped: Mapping[str, int]
    cut: int
    fingerprint: str


def read_sources(corpus: Any, settings: Settings) -> Sources:
    """Read a corpus.

    Parameters
    ----------
    corpus : str, Path, loader, or iterable of Document or Passage
        What `read_corpus` reads; ``module:attribute`` or ``FILE.py:attribute`` of a LangChain
        document loader, of a list of documents, or of a function that returns either; or one of
        these themselves.
    settings : Settings

    Raises
    ------
    InputError
        It cannot be read or imported, holds no passage, or none that carries a question.
    MissingExtraError
        A document has to be cut and langchain-text-splitters is not installed.
    """
    if isinstance(corpus, str | Path):
        name = shown_path(corpus)
        wholes = _loaded(str(corpus)) if _is_target(str(corpus)) else read_corpus(corpus)
    else:
        name = "given in Python"
        wholes = _from_python(corpus, "the corpus")
    passages, cut = _cut(wholes, settings.passage_characters)
    skipped: Counter[str] = Counter()
    usable: list[int] = []
    seen: set[str] = set()
    for at, passage in enumerate(passages):
        told = fold(passage.text)
        why = "repeated" if told in seen else poor(passage.text, least_words=settings.least_words)
        seen.add(told)
        if why is None:
            usable.append(at)
        else:
            skipped[why] += 1
    if not usable:
        said = ", ".join(f"{count} because {POOR[why]}" for why, count in sorted(skipped.items()))
        raise InputError(
            f"no passage of {name} carries a question ({said}); bring longer texts, or set "
            "least_words in --config"
        )
    return Sources(
        name=name,
        passages=tuple(passages),
        documents=tuple(map(_document, passages)),
        usable=tuple(usable),
        skipped={why: skipped[why] for why in POOR if skipped[why]},
        cut=cut,
        fingerprint=content_hash(sorted((one.id, one.text) for one in passages)),
    )


def _is_target(source: str) -> bool:
    """Whether it names something to import and no file, folder or store."""
    if source.startswith("chroma:") or Path(source).exists():
        return False
    return _TARGET.fullmatch(source) is not None


def _loaded(source: str) -> tuple[Passage, ...]:
    found = _TARGET.fullmatch(source)
    if found is None:
        raise InputError(f"'{source}' names no document loader; write  package.module:name")
    target, name = found["target"], found["name"]
    thing = attribute_of(import_target(target, Path.cwd()), name, target)
    if isinstance(thing, type) or (callable(thing) and not _is_loader(thing)):
        thing = _called(thing, source)
    return _from_python(thing, source)


def _called(thing: Any, source: str) -> Any:
    try:
        return thing()
    except MisslinkError:
        raise
    except Exception as error:
        raise _failed(source, error) from error


def _failed(source: str, error: Exception) -> InputError:
    said = f"{type(error).__name__}: {error}".splitlines()[0]
    path, line = place_of(error) or (None, None)
    return InputError(
        f"{source} gave no documents ({said}); it is called without arguments, see to it that it "
        "can be loaded",
        path=path,
        line=line,
    )


def _is_loader(thing: Any) -> bool:
    return callable(getattr(thing, "lazy_load", None)) or callable(getattr(thing, "load", None))


def _from_python(thing: Any, source: str) -> tuple[Passage, ...]:
    """Documents of LangChain, or passages, as passages with ids of their own."""
    items = thing
    if _is_loader(thing):
        items = (getattr(thing, "lazy_load", None) or thing.load)()
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        kind = type(items).__name__
        raise InputError(
            f"{source} is of the type {kind}; give a LangChain document loader, or a list of "
            "documents"
        )
    try:
        listed = list(items)
    except MisslinkError:
        raise
    except Exception as error:
        raise _failed(source, error) from error
    passages: dict[str, Passage] = {}
    for passage in _passages(listed, source):
        if passage.id in passages:
            raise InputError(
                f"two documents of {source} have the id '{passage.id}'; ids name one document each"
            )
        passages[passage.id] = passage
    if not passages:
        raise InputError(f"there is no document in {source}")
    return tuple(passages.values())


def _passages(listed: list[Any], source: str) -> Iterator[Passage]:
    origins = Counter(str(_origin(item)) for item in listed)
    numbers: Counter[str] = Counter()
    texts: set[str] = set()
    for rank, item in enumerate(listed, start=1):
        if isinstance(item, Passage):
            yield item.model_copy(update={"rank": rank})
            continue
        text = getattr(item, "page_content", None)
        if not isinstance(text, str):
            kind = type(item).__name__
            raise InputError(f"document {rank} of {source} is of the type {kind}, and has no text")
        metadata = dict(getattr(item, "metadata", None) or {})
        identity = getattr(item, "id", None) or metadata.get("id")
        if identity is None and (origin := _origin(item)) is not None:
            numbers[str(origin)] += 1
            alone = origins[str(origin)] == 1
            identity = origin if alone else f"{origin}{_NUMBER}{numbers[str(origin)]}"
        elif identity is None:
            if text in texts:
                continue  # without an id or a source, the same text is the same document
            identity = content_id(valid_text(text))
        texts.add(text)
        told = {str(key): value for key, value in metadata.items() if _is_plain(value)}
        data = {"id": str(identity), "text": text, "rank": rank, "metadata": told}
        yield parse(Passage, data, source, None)


def _origin(item: Any) -> object | None:
    metadata = getattr(item, "metadata", None) or {}
    return next((metadata[key] for key in _DOCUMENT if metadata.get(key)), None)


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | bool | int | None)


def _cut(wholes: Iterable[Passage], most: int) -> tuple[list[Passage], int]:
    """Cut what is too long; a part is `id#n`, n from 1, and tells its document."""
    wholes = list(wholes)
    taken = {whole.id for whole in wholes}
    passages: list[Passage] = []
    cut = 0
    for whole in wholes:
        parts = _parts(whole.text, most) if len(whole.text) > most else [whole.text]
        cut += len(parts) > 1
        for number, text in enumerate(parts, start=1):
            changed: dict[str, Any] = {"rank": len(passages) + 1}
            if len(parts) > 1:
                name = f"{whole.id}{_NUMBER}{number}"
                if name in taken:
                    raise InputError(
                        f"the document '{whole.id}' has to be cut and its part {number} would be "
                        f"called '{name}', as another document is; rename one"
                    )
                origin = {"source": _document(whole)}
                changed |= {"id": name, "text": text, "metadata": {**whole.metadata, **origin}}
            passages.append(whole.model_copy(update=changed))
    return passages, cut


def _parts(text: str, most: int) -> list[str]:
    try:
        from langchain_text_splitters import RecursiveCharacterTextSplitter
    except ImportError:
        raise MissingExtraError(
            "langchain-text-splitters, which cuts long documents,", "langchain"
        ) from None
    splitter = RecursiveCharacterTextSplitter(chunk_size=most, chunk_overlap=0)
    return [part for part in splitter.split_text(text) if part.strip()] or [text]


def _document(passage: Passage) -> str:
    named = next((passage.metadata[key] for key in _DOCUMENT if passage.metadata.get(key)), None)
    return passage.id if named is None else str(named)
