"""A corpus in which evidence is looked up: verbatim, split over two passages, or nearly."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from misslink.judging.nearly import UNSPACED, facts
from misslink.retrieval.matching import Need, satisfies, split_over
from misslink.text import fold, fold_with_places, sentences
from misslink.types import Passage

__all__ = ["Nearest", "Texts"]

_WORD = re.compile(r"\w+")
_PART = 10  # folded characters; `split_over` asks a quarter of 40 or more of each half
_PAIR = 2  # characters that stand for a word in scripts without blanks
_COMPARED = 15  # passages with the most, and the rarest, words in common are compared by character
_REFINED = 5  # of these, the best are looked into word by word
_BEHIND = 20.0  # points under the best window no ends, however moved, make up for
_COMMON = 0.2  # a word of more than this share of the passages (and of 1,000) leads nowhere
_FEW = 1_000
_WHOLE = 100.0  # rapidfuzz's scores go up to it


@dataclass(frozen=True)
class Nearest:
    """The stretch of a passage that is most like a text; `score` in [0, 1], as of `Proposal`."""

    passage: Passage
    text: str
    score: float
    same_facts: bool


class Texts:
    """Passages, each folded once.

    Parameters
    ----------
    passages : sequence of Passage
        With unique ids.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = tuple(passages)
        self.by_id: Mapping[str, Passage] = {passage.id: passage for passage in passages}
        self._folded = [fold(passage.text) for passage in passages]

    def holds(self, evidence: str) -> bool:
        """Whether a passage has it whole, as `misslink.retrieval.matching.satisfies` says."""
        return next(iter(self.holders(evidence)), None) is not None

    def holders(self, evidence: str) -> Iterable[Passage]:
        """The passages that have it whole, in the corpus's order."""
        wanted, need = fold(evidence), Need("evidence", 1, evidence)
        for at in self._candidates(wanted):
            if wanted in self._folded[at] and satisfies(need, self.passages[at]):
                yield self.passages[at]

    def split(self, evidence: str) -> tuple[Passage, Passage] | None:
        """The two passages that carry it together, where a chunk boundary cuts it."""
        wanted = fold(evidence)
        begins, ends = self._edges
        # The first passage ends within what is looked for, and the second begins within it.
        parts = {wanted[at : at + _PART] for at in range(len(wanted) - _PART + 1)}
        first, second = (
            {at for part in parts for at in edge.get(part, ())} for edge in (ends, begins)
        )
        if not first or not second:
            return None
        some = [self.passages[at] for at in sorted(first | second)]
        return split_over(Need("evidence", 1, evidence), some)

    def nearest(self, text: str, *, whole: bool = False) -> Nearest | None:
        """The stretch of any passage that is most like a text; None where no word is shared.

        Parameters
        ----------
        text : str
        whole : bool
            Compare whole passages, not stretches of them.
        """
        from rapidfuzz import fuzz

        wanted = fold(text)
        best: Nearest | None = None
        likely = self._likely(wanted)
        if not whole:
            windows = {at: fuzz.partial_ratio(wanted, self._folded[at]) for at in likely}
            likely = sorted(likely, key=lambda at: -windows[at])[:_REFINED]
            likely = [at for at in likely if windows[at] > windows[likely[0]] - _BEHIND]
        for at in likely:
            passage = self.passages[at]
            stretches = [passage.text] if whole else self._stretches(wanted, at)
            for stretch in stretches:
                folded = fold(stretch)
                score = fuzz.ratio(wanted, folded) / _WHOLE
                if best is None or score > best.score:
                    best = Nearest(passage, stretch, score, facts(wanted) == facts(folded))
        return best

    def _stretches(self, wanted: str, at: int) -> list[str]:
        """The best window of a passage, its ends moved to the best words; and whole sentences."""
        from rapidfuzz import fuzz

        text, folded = self.passages[at].text, self._folded[at]
        found = fuzz.partial_ratio_alignment(wanted, folded)
        if found is None or found.dest_end <= found.dest_start:
            return []
        low, high = found.dest_start, found.dest_end
        if len(wanted) > len(folded):  # then rapidfuzz slides the text along the needle
            low, high = 0, len(folded)
        # A window is as long as what is looked for, and so cuts off what words were put in.
        words = [word.span() for word in _WORD.finditer(folded)]
        reach = len(wanted) // 2
        ends = [end for _, end in words if low < end and abs(end - high) <= reach]
        high = max(ends, key=lambda end: fuzz.ratio(wanted, folded[low:end]), default=high)
        starts = [start for start, _ in words if start < high and abs(start - low) <= reach]
        low = max(starts, key=lambda start: fuzz.ratio(wanted, folded[start:high]), default=low)
        _, places = fold_with_places(text)
        start, end = places[low], places[high - 1] + 1
        spans = [span for span in sentences(text) if span[0] < end and start < span[1]]
        wide = [text[spans[0][0] : spans[-1][1]]] if spans else []
        return [*wide, *(text[a:b] for a, b in spans), text[start:end].strip()]

    @cached_property
    def _index(self) -> Mapping[str, array[int]]:
        """The places of the passages that have a term, ascending."""
        found: dict[str, array[int]] = {}
        for at, text in enumerate(self._folded):
            for term in set(_terms(text)):
                found.setdefault(term, array("l")).append(at)
        return found

    @cached_property
    def _edges(self) -> tuple[Mapping[str, list[int]], Mapping[str, list[int]]]:
        """The places of the passages that begin, and that end, with so many characters."""
        begins: dict[str, list[int]] = {}
        ends: dict[str, list[int]] = {}
        for at, text in enumerate(self._folded):
            begins.setdefault(text[:_PART], []).append(at)
            ends.setdefault(text[-_PART:], []).append(at)
        return begins, ends

    def _candidates(self, wanted: str) -> Sequence[int]:
        """Where a text can be: what has it has its terms, but the first and last word, as they are.

        Those two may go on in the passage, in scripts that set no blanks between words.
        """
        inner = _terms(wanted, whole=False)
        if not inner:
            return range(len(self.passages))
        return min((self._index.get(term, array("l")) for term in inner), key=len)

    def _likely(self, wanted: str) -> list[int]:
        """Passages that share the most terms, the rare counting more."""
        import numpy as np

        most = max(_FEW, _COMMON * len(self.passages))
        weights = np.zeros(len(self.passages))
        for term in dict.fromkeys(_terms(wanted)):
            held = self._index.get(term)
            if held is not None and len(held) <= most:
                weights[np.frombuffer(held, dtype=held.typecode)] += 1 / len(held)
        some = np.flatnonzero(weights)
        if len(some) > _COMPARED:
            least = np.partition(weights[some], -_COMPARED)[-_COMPARED]
            some = some[weights[some] >= least]
        best: list[int] = some[np.argsort(-weights[some], kind="stable")][:_COMPARED].tolist()
        return best


def _terms(folded: str, *, whole: bool = True) -> list[str]:
    """The words of a text; in scripts that set no blanks, each two characters that are neighbours.

    Not `whole`: without a first or last word that may go on where the text is cut out.
    """
    words: list[str] = _WORD.findall(folded)
    if folded.isascii() or not UNSPACED.search(folded):
        return words if whole else words[1:-1]
    found = []
    for at, word in enumerate(words):
        if len(word) >= _PAIR and UNSPACED.search(word):
            found += [word[i : i + _PAIR] for i in range(len(word) - 1)]
        elif whole or 0 < at < len(words) - 1:
            found.append(word)
    return found
