"""How relevant the best expected passage was: by an embedding, or by the retriever's own score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from misslink.retrieval import find, needs
from misslink.types import Passage, Trace

if TYPE_CHECKING:
    from misslink.embedding import Embedder
    from misslink.watching.canaries.canary_set import Canary

__all__ = ["Relevance", "best_expected", "by_cosine", "by_score"]

_DISTANCES = (
    "the retriever's scores rise with the rank, so they are distances; name an embedding with "
    "--embedding"
)
_SCORELESS = "the retriever gives no scores, and no embedding is known; name one with --embedding"


@dataclass(frozen=True)
class Relevance:
    """The relevance of the best expected passage of one canary; None says why in ``reason``."""

    value: float | None
    reason: str | None = None


def best_expected(canary: Canary, trace: Trace, k: int) -> tuple[int, Passage] | None:
    """Rank and passage of the first expected one among the first `k`; None where there is none."""
    shown = trace.retrieved[:k]
    finds = [one for wanted in needs(canary.case, shown) for one in find(wanted, shown)]
    best = min(finds, key=lambda one: one.rank, default=None)
    return None if best is None else (best.rank, best.passages[-1])


async def by_cosine(
    found: Mapping[str, tuple[str, Passage]], embedder: Embedder
) -> dict[str, Relevance]:
    """The cosine of each question and its best expected passage.

    Parameters
    ----------
    found : mapping of str to (str, Passage)
        Canary id to its question and that passage.
    embedder : Embedder

    Raises
    ------
    InputError
        The embedding failed.
    """
    pairs = list(found.values())
    questions = await embedder.queries([question for question, _ in pairs])
    passages = await embedder.documents([passage.text for _, passage in pairs])
    return {
        name: (
            Relevance(float(question @ passage))
            if pair[1].text.strip()
            else Relevance(None, "the passage has no text to embed")
        )
        for name, pair, question, passage in zip(found, pairs, questions, passages, strict=True)
    }


def by_score(
    found: Mapping[str, tuple[str, Passage]], traces: Sequence[Trace]
) -> dict[str, Relevance]:
    """The retriever's own scores, where they fall with the rank and so are no distances.

    Parameters
    ----------
    found : mapping
        As of `by_cosine`.
    traces : sequence of Trace
        All of the run, which tell the scores' direction.
    """
    rises = falls = 0
    for trace in traces:
        scores = [passage.score for passage in trace.retrieved if passage.score is not None]
        rises += len(scores) > 1 and scores[0] < scores[-1]
        falls += len(scores) > 1 and scores[0] > scores[-1]
    if rises > falls:
        return {name: Relevance(None, _DISTANCES) for name in found}
    return {
        name: Relevance(passage.score, None if passage.score is not None else _SCORELESS)
        for name, (_, passage) in found.items()
    }
