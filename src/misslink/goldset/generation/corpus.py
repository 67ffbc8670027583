"""The passages that questions are written from, and how suitable each one is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.embedding import Embedder, open_embedder
from misslink.embedding.providers import MINILM_PACKAGES
from misslink.errors import InputError, MissingExtraError, MisslinkError
from misslink.goldset.generation.settings import GenerationSettings
from misslink.goldset.wording import word_trigrams
from misslink.io.corpus import read_corpus
from misslink.io.jsonl import SourceItem
from misslink.io.manifest import display_path, hash_content
from misslink.linking.corpus_search import fuse_rankings
from misslink.text.bm25 import Bm25Index
from misslink.text.normalization import (
    UNSPACED,
    content_id,
    content_words,
    fold,
    stems,
    valid_text,
)
from misslink.types import Passage
from misslink.user_code import error_location, import_target, resolve_attribute

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores = NDArray[np.float32]


# Why a passage is not used, by code.
POOR_PASSAGE_REASONS = {
    "too_short": "it has too few content words",
    "contents": "it is a table of contents",
    "navigation": "it is a list of links or headings",
    "no_prose": "less than half of it is letters",
    "repeated": "an earlier passage says the same",
}
_MAJORITY = 0.5  # of the lines, or of the characters
_NAVIGATION_SHARE = 0.8  # of the lines
_MIN_LINES = 4  # fewer make no list
_MAX_LINK_WORDS = 4  # a line of at most so many words that ends no sentence
_CONTENTS_LINE = re.compile(
    r"(?:\.\s?){3,}\s*\d+\s*$|\s\d{1,4}\s*$|^\s*\d+(?:\.\d+)*\.?\s+\S.*\s\d{1,4}$"
)
_SENTENCE_END = re.compile(r"[.!?:;,\u3002\uff01\uff1f)\]}\"']\s*$")
_LIST_ITEM = re.compile(r"^\s*(?:\d+[.)]|[-*+\u2022])\s+")
_URL = re.compile(r"https?://\S+|\]\([^)]*\)")


def poor_passage_reason(text: str, *, least_words: int) -> str | None:
    """Return the code of `POOR_PASSAGE_REASONS` that excludes a passage, if any.

    Parameters
    ----------
    text : str
    least_words : int
        Minimum number of content words; two characters of a script without spaces are one.
    """
    words = sum(1 for word in content_words(text) if not UNSPACED.search(word))
    if words + len(UNSPACED.findall(text)) // 2 < least_words:
        return "too_short"
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) >= _MIN_LINES:
        if sum(map(bool, map(_CONTENTS_LINE.search, lines))) >= _MAJORITY * len(lines):
            return "contents"
        if sum(map(_is_link_line, lines)) >= _NAVIGATION_SHARE * len(lines):
            return "navigation"
    bare = "".join(_URL.sub("", text).split())
    if sum(map(str.isalpha, bare)) < _MAJORITY * len("".join(text.split())):
        return "no_prose"
    return None


def _is_link_line(line: str) -> bool:
    """Whether a line is a few words, and neither the end of a sentence nor a list item."""
    if UNSPACED.search(line):
        return False
    short = len(line.split()) <= _MAX_LINK_WORDS and not _SENTENCE_END.search(line)
    return (short and not _LIST_ITEM.match(line)) or _URL.fullmatch(line.strip()) is not None


_IMPORT_TARGET = re.compile(r"(?P<target>[^:]+):(?P<name>[^\W\d][\w.]*)", re.DOTALL)
_SOURCE_KEYS = ("source", "document_id", "file_path", "file_name", "filename")
_PART_MARK = "#"


@dataclass(frozen=True)
class SourceCorpus:
    """A corpus for question generation.

    Parameters
    ----------
    name : str
        Display name of its source.
    passages : sequence of Passage
        All of them; long documents are cut.
    documents : sequence of str
        The document of each passage.
    usable : sequence of int
        Indices of the passages that suit a question.
    skipped : mapping of str to int
        Counts of the others, by the codes of `POOR_PASSAGE_REASONS`.
    cut : int
        Number of documents that were cut.
    fingerprint : str
        SHA-256 of all ids and texts, in any order.
    """

    name: str
    passages: tuple[Passage, ...]
    documents: tuple[str, ...]
    usable: tuple[int, ...]
    skipped: Mapping[str, int]
    cut: int
    fingerprint: str


def read_source_corpus(corpus: Any, settings: GenerationSettings) -> SourceCorpus:
    """Read a corpus.

    Parameters
    ----------
    corpus : str, Path, loader, or iterable of Document or Passage
        What `read_corpus` reads; ``module:attribute`` or ``FILE.py:attribute`` of a LangChain
        document loader, of a list of documents, or of a function that returns either; or one of
        these objects.
    settings : GenerationSettings

    Raises
    ------
    InputError
        It cannot be read or imported, or no passage suits a question.
    MissingExtraError
        A document must be cut and langchain-text-splitters is not installed.
    """
    if not isinstance(corpus, str | Path):
        name, wholes = "Python objects", _as_passages(corpus, "the corpus")
    else:
        name, target = display_path(corpus), _IMPORT_TARGET.fullmatch(str(corpus))
        if target and not str(corpus).startswith("chroma:") and not Path(corpus).exists():
            wholes = _load_documents(str(corpus), target["target"], target["name"])
        else:
            wholes = read_corpus(corpus)
    passages, cut = _cut_documents(wholes, settings.passage_characters)
    skipped: Counter[str] = Counter()
    usable: list[int] = []
    seen: set[str] = set()
    for place, passage in enumerate(passages):
        text = fold(passage.text)
        reason = poor_passage_reason(passage.text, least_words=settings.least_words)
        if text in seen or reason is not None:
            skipped["repeated" if text in seen else str(reason)] += 1
        else:
            usable.append(place)
        seen.add(text)
    if not usable:
        reasons = ", ".join(
            f"{count} because {POOR_PASSAGE_REASONS[why]}" for why, count in sorted(skipped.items())
        )
        raise InputError(
            f"No passage of {name} suits a question ({reasons}). Use longer texts, or lower "
            "least_words in --config."
        )
    return SourceCorpus(
        name=name,
        passages=tuple(passages),
        documents=tuple(map(_document_name, passages)),
        usable=tuple(usable),
        skipped={why: skipped[why] for why in POOR_PASSAGE_REASONS if skipped[why]},
        cut=cut,
        fingerprint=hash_content(sorted((passage.id, passage.text) for passage in passages)),
    )


def _load_documents(source: str, target: str, name: str) -> tuple[Passage, ...]:
    loaded = resolve_attribute(import_target(target, Path.cwd()), name, target)
    if isinstance(loaded, type) or (callable(loaded) and not _load_method(loaded)):
        with _load_errors(source):
            loaded = loaded()
    return _as_passages(loaded, source)


@contextmanager
def _load_errors(source: str) -> Iterator[None]:
    try:
        yield
    except MisslinkError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        path, line = error_location(error) or (None, None)
        message = f"{source} cannot be loaded ({reason}). It is called without arguments."
        raise InputError(message, path=path, line=line) from error


def _load_method(loader: Any) -> Callable[[], Any] | None:
    methods = (getattr(loader, name, None) for name in ("lazy_load", "load"))
    return next((method for method in methods if callable(method)), None)


def _as_passages(documents: Any, source: str) -> tuple[Passage, ...]:
    """LangChain documents, or passages, as passages with unique ids."""
    load = _load_method(documents)
    items = load() if load else documents
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise InputError(
            f"{source} has the type {type(items).__name__}. Give a LangChain document loader, or a "
            "list of documents."
        )
    with _load_errors(source):
        items = list(items)
    passages: dict[str, Passage] = {}
    for passage in _iterate_passages(items, source):
        if passage.id in passages:
            raise InputError(
                f"Two documents of {source} have the id '{passage.id}'. Give each its own id."
            )
        passages[passage.id] = passage
    if not passages:
        raise InputError(f"{source} contains no documents.")
    return tuple(passages.values())


def _iterate_passages(items: list[Any], source: str) -> Iterator[Passage]:
    sources = [_document_source(getattr(item, "metadata", None) or {}) for item in items]
    totals, numbers = Counter(sources), Counter[str | None]()
    texts: set[str] = set()
    for rank, (item, origin) in enumerate(zip(items, sources, strict=True), start=1):
        if isinstance(item, Passage):
            yield item.model_copy(update={"rank": rank})
            continue
        text = getattr(item, "page_content", None)
        if not isinstance(text, str):
            kind = type(item).__name__
            raise InputError(f"Document {rank} of {source} has the type {kind} and no text.")
        metadata = dict(getattr(item, "metadata", None) or {})
        name = getattr(item, "id", None) or metadata.get("id")
        if name is None and origin is not None:
            numbers[origin] += 1
            name = origin if totals[origin] == 1 else f"{origin}{_PART_MARK}{numbers[origin]}"
        elif name is None:
            if text in texts:
                continue  # without an id or a source, the same text is the same document
            name = content_id(valid_text(text))
        texts.add(text)
        scalars = {
            str(key): value
            for key, value in metadata.items()
            if isinstance(value, str | bool | int | None)
        }
        data = {"id": str(name), "text": text, "rank": rank, "metadata": scalars}
        yield SourceItem(data, source).parse(Passage)


def _document_source(metadata: Mapping[str, Any]) -> str | None:
    return next((str(metadata[key]) for key in _SOURCE_KEYS if metadata.get(key)), None)


def _document_name(passage: Passage) -> str:
    return _document_source(passage.metadata) or passage.id


def _cut_documents(documents: Iterable[Passage], limit: int) -> tuple[list[Passage], int]:
    """Cut long documents; a part is `id#n`, n from 1, and its metadata name the document."""
    documents = list(documents)
    names = {document.id for document in documents}
    passages: list[Passage] = []
    cut = 0
    for document in documents:
        parts = [document.text]
        if len(document.text) > limit:
            parts = _split_text(document.text, limit)
        cut += len(parts) > 1
        for number, text in enumerate(parts, start=1):
            update: dict[str, Any] = {"rank": len(passages) + 1}
            if len(parts) > 1:
                name = f"{document.id}{_PART_MARK}{number}"
                if name in names:
                    raise InputError(
                        f"Part {number} of the document '{document.id}' would have the id "
                        f"'{name}', which another document has. Rename one."
                    )
                metadata = {**document.metadata, "source": _document_name(document)}
                update |= {"id": name, "text": text, "metadata": metadata}
            passages.append(document.model_copy(update=update))
    return passages, cut


def _split_text(text: str, limit: int) -> list[str]:
    try:
        from langchain_text_splitters import RecursiveCharacterTextSplitter
    except ImportError:
        package = "langchain-text-splitters, which cuts long documents,"
        raise MissingExtraError(package, "langchain") from None
    splitter = RecursiveCharacterTextSplitter(chunk_size=limit, chunk_overlap=0)
    return [part for part in splitter.split_text(text) if part.strip()] or [text]


_RAREST_STEMS = 12  # of a passage, to find its neighbors by words


_REPEAT_SHARE = 0.6  # of common word trigrams, from which on two passages say the same


_SCORE_DECIMALS = 5  # further ones are rounding


def open_optional_embedder(spec: Any) -> Embedder | None:
    """Open an embedder; see `open_embedder`.

    Parameters
    ----------
    spec : str, Embeddings or None
        'none': return None. None: minilm where it is installed, else None.

    Raises
    ------
    InputError, MissingExtraError
        As `open_embedder`.
    """
    if spec is None:
        spec = "minilm" if all(map(find_spec, MINILM_PACKAGES)) else "none"
    return None if spec == "none" else open_embedder(spec)


class PassageIndex:
    """Finds passages of a corpus.

    Parameters
    ----------
    texts : sequence of str
    embedder : Embedder or None
    vectors : array of float32, shape (texts, d), rows of length 1, or None

    Attributes
    ----------
    embedder : Embedder or None
    """

    def __init__(
        self, texts: Sequence[str], embedder: Embedder | None, vectors: Scores | None
    ) -> None:
        self._texts = texts
        self.embedder = embedder
        self._vectors = vectors
        self._queries: dict[str, Scores] = {}
        self._trigrams: dict[int, frozenset[str]] = {}
        self._bm25 = Bm25Index(map(stems, texts))

    @classmethod
    async def build(cls, texts: Sequence[str], embedder: Embedder | None) -> PassageIndex:
        """Embed the texts and index their words.

        Raises
        ------
        InputError
            The embedding model failed.
        """
        vectors = None if embedder is None else await embedder.documents(texts)
        return cls(texts, embedder, vectors)

    async def read(self, questions: Sequence[str]) -> None:
        """Embed questions in one batch, before they are used in `near` or `cosines`."""
        new = [question for question in dict.fromkeys(questions) if question not in self._queries]
        if self.embedder is not None and new:
            rows = await self.embedder.queries(new)
            self._queries |= dict(zip(new, rows, strict=True))

    def cosines(self, question: str, questions: Sequence[str]) -> Scores | None:
        """Return the cosines of a question to at least one other; None without an embedder."""
        if self.embedder is None:
            return None
        import numpy as np

        table: Scores = np.stack([self._queries[other] for other in questions])
        return table @ self._queries[question]

    def near(
        self, question: str, k: int, without: Collection[int] = (), answer: str = ""
    ) -> list[int]:
        """Return the indices of the `k` passages nearest to a question, nearest first."""
        words = self._bm25.scores(stems(f"{question} {answer}"))
        orders = [[place for place in _rank_descending(words) if words[place] > 0]]
        if self._vectors is not None and question in self._queries:
            orders.append(_rank_descending(self._vectors @ self._queries[question]))
        allowed = (
            (p for p in order if p not in without and self._texts[p].strip()) for order in orders
        )
        return fuse_rankings([list(islice(places, 2 * k)) for places in allowed], k)

    def neighbours(self, place: int, k: int, among: Collection[int]) -> list[int]:
        """Return the `k` passages of `among` nearest to passage `place`, without repeated texts."""
        if self._vectors is not None:
            scores = self._vectors @ self._vectors[place]
        else:
            counts = {stem: self._bm25.frequency(stem) for stem in stems(self._texts[place])}
            shared = [stem for stem, count in counts.items() if count > 1]
            shared.sort(key=lambda stem: (counts[stem], stem))
            scores = self._bm25.scores(shared[:_RAREST_STEMS])
        near: list[int] = []
        for other in _rank_descending(scores):
            if len(near) == k or scores[other] <= 0:
                break
            if other == place or other not in among:
                continue
            if not any(self._is_repeat(other, earlier) for earlier in (place, *near)):
                near.append(other)
        return near

    def _is_repeat(self, place: int, other: int) -> bool:
        for index in (place, other):
            if index not in self._trigrams:
                self._trigrams[index] = word_trigrams(self._texts[index])
        first, second = self._trigrams[place], self._trigrams[other]
        return len(first & second) >= _REPEAT_SHARE * min(len(first), len(second))


def _rank_descending(scores: Scores) -> list[int]:
    import numpy as np

    order: list[int] = np.argsort(-np.round(scores, _SCORE_DECIMALS), kind="stable").tolist()
    return order
