"""The options by name, and how each is made of what is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from misslink.errors import InputError, known_names
from misslink.linking.whatif.chunking import Chunking, documents, rechunked
from misslink.linking.whatif.options import MorePassages, Option, Rank, Rechunked, Search
from misslink.linking.whatif.reranking import Reranker
from misslink.linking.whatif.searching import Dense, Lexical, fused
from misslink.linking.whatif.today import Today
from misslink.types import Passage

if TYPE_CHECKING:
    from misslink.embedding import Embedder

__all__ = ["KINDS", "Ground", "check_names", "options_of"]

_TIMES = (2, 3, 5)  # today's number of passages, where no other is asked for
_FUSED = 100  # passages that each ranking brings into a fusion, as many as a run asks deeper for
_POOL = 50  # passages that a reranker or the diversity is given to choose from


@dataclass(frozen=True)
class Ground:
    """What options are made from.

    Parameters
    ----------
    today : Today
    corpus : sequence of Passage or None
        None: only what the traces know can be tried.
    embedder : Embedder or None
        The app's own, or one to stand in for it.
    other : Embedder or None
        Another one, to be tried in its place.
    reranker : Reranker or None
    chunking : Chunking or None
    widths : sequence of int
        Numbers of passages to try. Empty: multiples of today's.
    """

    today: Today
    corpus: tuple[Passage, ...] | None = None
    embedder: Embedder | None = None
    other: Embedder | None = None
    reranker: Reranker | None = None
    chunking: Chunking | None = None
    widths: tuple[int, ...] = ()

    @cached_property
    def texts(self) -> list[str]:
        """Of the corpus."""
        return [passage.text for passage in self.corpus or ()]

    @cached_property
    def lexical(self) -> Lexical:
        """BM25 over the corpus, indexed once."""
        return Lexical(self.texts)

    @cached_property
    def dense(self) -> Dense | None:
        """The embedding over the corpus, embedded once."""
        return Dense(self.texts, self.embedder) if self.embedder else None

    @cached_property
    def documents(self) -> list[Passage]:
        """The corpus put together again."""
        return documents(self.corpus or ())


def _larger_k(ground: Ground) -> list[Option] | str:
    today = ground.today
    indexed = None if ground.corpus is None else len(ground.corpus)
    widths = ground.widths or tuple(times * today.width for times in _TIMES)
    if indexed is not None and not ground.widths:  # twice and five times all of them are all
        widths = tuple(min(width, max(indexed, today.width)) for width in widths)
    return [MorePassages(width, indexed) for width in dict.fromkeys(widths) if width != today.width]


def _bm25(ground: Ground) -> list[Option] | str:
    return [_search(ground, "bm25", "BM25 over stems finds the passages", ground.lexical.rank)]


def _dense(ground: Ground) -> list[Option] | str:
    if ground.dense is None:
        return "no embedding is known"
    name = ground.dense.embedder.name
    return [_search(ground, "dense", f"the embedding {name} finds them", ground.dense.rank)]


def _hybrid(ground: Ground) -> list[Option] | str:
    dense = ground.dense
    if dense is None:
        return "no embedding is known"

    async def rank(questions: Sequence[str], depth: int) -> list[list[int]]:
        both = [await one.rank(questions, max(depth, _FUSED)) for one in (dense, ground.lexical)]
        return [fused(rankings, depth) for rankings in zip(*both, strict=True)]

    what = f"{dense.embedder.name} and BM25, made one by reciprocal rank fusion"
    return [_search(ground, "hybrid", what, rank)]


def _mmr(ground: Ground) -> list[Option] | str:
    dense = ground.dense
    if dense is None:
        return "no embedding is known"

    async def rank(questions: Sequence[str], depth: int) -> list[list[int]]:
        return await dense.diverse(questions, depth, _POOL)

    what = f"the nearest {_POOL} of {dense.embedder.name}, ordered so that they repeat less"
    return [_search(ground, "mmr", what, rank)]


def _rerank(ground: Ground) -> list[Option] | str:
    reranker = ground.reranker
    if reranker is None:
        return "no reranker is named"
    first = ground.dense or ground.lexical

    async def rank(questions: Sequence[str], depth: int) -> list[list[int]]:
        found = []
        pools = await first.rank(questions, max(depth, _POOL))
        for question, places in zip(questions, pools, strict=True):
            order = await reranker.order(question, [ground.texts[place] for place in places])
            found.append([places[at] for at in order][:depth])
        return found

    what = f"{reranker.name} puts the first {_POOL} of {_searched_by(ground)} into order"
    return [_search(ground, "rerank", what, rank)]


def _embedding(ground: Ground) -> list[Option] | str:
    if ground.other is None:
        return "no other embedding is named"
    other = Dense(ground.texts, ground.other)
    name = f"embedding={ground.other.name}"
    return [_search(ground, name, f"the embedding {ground.other.name} finds them", other.rank)]


def _chunk(ground: Ground) -> list[Option] | str:
    chunking = ground.chunking
    if chunking is None:
        return "no chunking is named"
    longest = max(map(len, ground.texts), default=0)
    if chunking.size >= longest and len(ground.documents) == len(ground.texts):
        return (
            f"the corpus' passages have at most {longest} characters and cannot be put together "
            "into their documents; give the documents themselves as corpus"
        )
    chunks = rechunked(ground.documents, chunking)
    texts = [chunk.text for chunk in chunks]
    rank = (Dense(texts, ground.embedder) if ground.embedder else Lexical(texts)).rank
    what = f"chunks of {chunking.size} characters that share {chunking.overlap}"
    return [
        Rechunked(
            f"chunk={chunking}",
            f"{what}, found by {_searched_by(ground)}",
            ground.corpus or (),
            tuple(chunks),
            chunking,
            rank,
        )
    ]


# By the name that --options takes, in the order in which they are tried.
KINDS: dict[str, Callable[[Ground], list[Option] | str]] = {
    "k": _larger_k,
    "bm25": _bm25,
    "dense": _dense,
    "hybrid": _hybrid,
    "rerank": _rerank,
    "mmr": _mmr,
    "chunk": _chunk,
    "embedding": _embedding,
}
_WITHOUT_CORPUS = {"k"}
# What an option needs that nobody gave, by what it is called in the reason.
_WAYS = {
    "no corpus is given": "give --corpus or --app",
    "no embedding is known": "name one with --embedding, or the app with --app",
    "no reranker is named": "name one with --reranker",
    "no chunking is named": "name one with --chunk, as 600/0",
    "no other embedding is named": "name one with --embedding beside --app",
}


def check_names(names: Iterable[str]) -> None:
    """Raise InputError where one is no name of an option."""
    for name in names:
        if name not in KINDS:
            raise InputError(f"unknown option '{name}'; {known_names(name, KINDS)}")


def options_of(
    ground: Ground, names: Sequence[str] | None = None
) -> tuple[list[Option], list[dict[str, str]]]:
    """The options that can be tried, and those that cannot, each with its name and reason.

    Parameters
    ----------
    ground : Ground
    names : sequence of str or None
        Of `KINDS`. None: whatever can be tried.

    Raises
    ------
    InputError
        A name is unknown, or one that was asked for cannot be tried.
    """
    check_names(names or ())
    made: list[Option] = []
    skipped: list[dict[str, str]] = []
    for name in names or KINDS:
        lacks_corpus = ground.corpus is None and name not in _WITHOUT_CORPUS
        found = "no corpus is given" if lacks_corpus else KINDS[name](ground)
        if not isinstance(found, str):
            made += found
            continue
        way = _WAYS.get(found)
        reason = f"{found}; {way}" if way else found
        if names:
            raise InputError(f"option '{name}' cannot be tried: {reason}")
        skipped.append({"name": name, "reason": reason})
    return made, skipped


def _searched_by(ground: Ground) -> str:
    return ground.embedder.name if ground.embedder else "BM25"


def _search(ground: Ground, name: str, what: str, rank: Rank) -> Search:
    return Search(name, what, ground.corpus or (), rank)
