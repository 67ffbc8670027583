"""Which gold question is nearest to each request of a log."""

from __future__ import annotations

from collections.abc import Sequence

from misslink.goldset.checking.grounds import Vectors
from misslink.goldset.pooling.nearness import ByWords
from misslink.judging.embedded.lexical import stems

__all__ = ["nearest"]

_AT_ONCE = 2_000


def nearest(
    asked: Sequence[str], questions: Sequence[str], vectors: Vectors | None
) -> dict[str, int | None]:
    """Return the place of the nearest of `questions` for each text of `asked`.

    By meaning where there are vectors, else by BM25, where a text that shares no word with the
    nearest has None.
    """
    if not questions:
        return dict.fromkeys(asked)
    if vectors is None:
        words = ByWords(questions)
        known = [set(stems(question)) for question in questions]
        found: dict[str, int | None] = {}
        for text in asked:
            own = set(stems(text))
            at = int(words.order(text)[0]) if own else 0
            found[text] = at if own & known[at] else None
        return found
    import numpy as np

    table = np.stack([vectors.of[question] for question in questions])
    found = {}
    for low in range(0, len(asked), _AT_ONCE):
        some = asked[low : low + _AT_ONCE]
        scores = np.stack([vectors.of[text] for text in some]) @ table.T
        best = np.argmax(np.round(scores, 5), axis=1).tolist()
        found |= dict(zip(some, best, strict=True))
    return found
