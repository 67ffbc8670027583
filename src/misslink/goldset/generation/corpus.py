"""The passages that questions are written from, and how suitable each one is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError, MissingExtraError, MisslinkError
from misslink.goldset.generation.settings import GenerationSettings
from misslink.io.corpus import read_corpus
from misslink.io.jsonl import SourceItem
from misslink.io.manifest import display_path, hash_content
from misslink.text.fuzzy_matching import UNSPACED
from misslink.text.normalization import content_id, content_words, fold, stems, valid_text
from misslink.types import Passage
from misslink.user_code import error_location, import_target, resolve_attribute

_WORD_PATTERN = re.compile(r"\w+(?:['.]\w+)*")
_MIN_WORDS = 4  # with fewer rewordable words a share says nothing
_QUOTE_MARKS = "\"'\u201c\u201d\u201e\u00ab\u00bb"
_FENCED_BRACKET = "\uff1c"  # replaces "<" before a delimiter in fenced text


@dataclass(frozen=True)
class CopiedWording:
    """The wording that a question copies.

    Parameters
    ----------
    run : int
        Longest run of words that a passage contains too.
    words : str
        That run, folded.
    share : float or None
        Share of the rewordable stems that the passages contain, in [0, 1]. None for fewer than 4.
    """

    run: int
    words: str
    share: float | None


def measure_copying(question: str, passages: Sequence[str]) -> CopiedWording:
    """Measure how much of its wording a question copies from passages.

    >>> copying = measure_copying("When does the ferry to Oban leave the pier?",
    ...                           ["The ferry to Oban leaves at seven from the old pier."])
    >>> copying.run, copying.words, copying.share
    (4, 'the ferry to oban', None)
    """
    words = _folded_words(question)
    run, run_words = 0, ""
    for text in passages:
        passage = "\x1f".join(["", *_folded_words(text), ""])
        end = 0
        for start in range(len(words)):
            end = max(end, start)
            while end < len(words) and "\x1f".join(["", *words[start : end + 1], ""]) in passage:
                end += 1
            if (length := _run_length(words[start:end])) > run:
                run, run_words = length, " ".join(words[start:end])
    own = rewordable_stems(question)
    shared = own & {stem for text in passages for stem in stems(text)}
    share = len(shared) / len(own) if len(own) >= _MIN_WORDS and passages else None
    return CopiedWording(run, run_words, share)


def rewordable_stems(question: str) -> set[str]:
    """Return the stems of a question without names and numbers, which cannot be reworded."""
    plain = [
        word
        for place, word in enumerate(_WORD_PATTERN.findall(question))
        if not (place and word[0].isupper()) and not any(c.isdigit() or c == "_" for c in word)
    ]
    return set(stems(" ".join(plain)))


def find_verbatim(quote: str, passage: str) -> tuple[int, int] | None:
    """Return the span of a quote in a passage, equal except for whitespace.

    Quotation marks around it are ignored. None if it is absent, blank, or divides a word.
    """
    bare = quote.strip().strip(_QUOTE_MARKS).strip()
    for text in dict.fromkeys((quote.strip(), bare)):
        if not any(map(str.isalnum, text)):
            continue
        pieces = [
            re.escape(piece).replace(_FENCED_BRACKET, f"[<{_FENCED_BRACKET}]")
            for piece in text.split()
        ]
        for match in re.finditer(r"\s+".join(pieces), passage):
            if not any(_splits_word(passage, place) for place in match.span()):
                return match.span()
    return None


def _splits_word(text: str, place: int) -> bool:
    around = text[max(0, place - 1) : place + 1]
    return 0 < place < len(text) and around.isalnum() and not UNSPACED.search(around)


def _folded_words(text: str) -> list[str]:
    """Folded words; in scripts without spaces every character."""
    words: list[str] = []
    for word in _WORD_PATTERN.findall(fold(text)):
        words.extend(word if UNSPACED.search(word) else [word])
    return words


def _run_length(words: Sequence[str]) -> int:
    """Number of words; two characters of a script without spaces are one."""
    single = sum(1 for word in words if len(word) == 1 and UNSPACED.match(word))
    return len(words) - single + single // 2


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


def word_trigrams(text: str) -> frozenset[str]:
    """Return the trigrams of the folded words; for a shorter text the text itself."""
    folded = fold(text)
    words = list(folded) if UNSPACED.search(folded) else folded.split()
    trigrams = frozenset(" ".join(words[start : start + 3]) for start in range(len(words) - 2))
    return trigrams or frozenset([folded])


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
