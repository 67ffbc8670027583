"""Find the passages that contain a text, or are most similar to it."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from misslink.matching import invariant_tokens
from misslink.retrieval.matching import (
    LabelledNeed,
    find_split,
    is_of_document,
    is_short,
    satisfies,
)
from misslink.text.normalization import (
    UNSPACED,
    fold,
    fold_with_offsets,
    overlapping,
    sentence_spans,
)
from misslink.types import Passage

_WORD = re.compile(r"\w+")
_EDGE_LENGTH = 10  # folded characters; `find_split` needs a quarter of at least 40 in each half
_BIGRAM = 2  # characters that replace a word in scripts without spaces
_MAX_COMPARED = 15  # passages with the most and rarest shared words, compared by character
_MAX_REFINED = 5  # the best of these, compared at word boundaries
_MAX_GAP = 20.0  # points under the best window that moving its ends cannot recover
_COMMON_SHARE = 0.2  # a word of more than this share of the passages (and of 1,000) is ignored
_COMMON_COUNT = 1_000
_MAX_SCORE = 100.0  # of rapidfuzz


@dataclass(frozen=True)
class NearestText:
    """The stretch of a passage that is most similar to a text; `score` in [0, 1]."""

    passage: Passage
    text: str
    score: float
    same_facts: bool


class PassageSearch:
    """Search over passages with unique ids, each folded once."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.passages = tuple(passages)
        self.by_id: Mapping[str, Passage] = {passage.id: passage for passage in passages}
        self._folded = [fold(passage.text) for passage in passages]
        self._documents: dict[str, list[int]] = {}

    def holders(self, need: LabelledNeed) -> Iterable[Passage]:
        """Yield the passages that contain a text whole; see `misslink.retrieval.matching`."""
        folded = fold(need.evidence or "")
        for index in self._candidates(folded):
            if folded in self._folded[index] and satisfies(need, self.passages[index]):
                yield self.passages[index]

    def label_sets(self, need: LabelledNeed) -> tuple[tuple[str, ...], ...]:
        """Return the ids of the passages with a text: each alone, else its parts together.

        Passages of the same document count first. A short text may stand in others by chance, and
        counts there only if one passage has it.
        """
        whole = list(self.holders(need))
        own = [passage for passage in whole if is_of_document(passage, need.document)]
        if own or (need.document is not None and len(whole) > 1 and is_short(need)):
            whole = own
        if whole:
            return tuple((passage.id,) for passage in whole)
        parts = self.split(need)
        return (tuple(part.id for part in parts),) if parts else ()

    def split(self, need: LabelledNeed) -> tuple[Passage, ...] | None:
        """Return the passages that contain a text together, if chunk boundaries divide it."""
        folded = fold(need.evidence or "")
        # The first passage ends within the text, and the others begin within it.
        parts = {folded[i : i + _EDGE_LENGTH] for i in range(len(folded) - _EDGE_LENGTH + 1)}
        near = {i for part in parts for edge in self._edges for i in edge.get(part, ())}
        if need.document is not None:
            near.update(self._of_document(need.document))
        near_passages = [self.passages[index] for index in sorted(near)]
        return find_split(need, near_passages, ordered=True)

    def _of_document(self, document: str) -> Sequence[int]:
        if document not in self._documents:
            self._documents[document] = [
                index for index, p in enumerate(self.passages) if is_of_document(p, document)
            ]
        return self._documents[document]

    def nearest(self, text: str, *, whole: bool = False) -> NearestText | None:
        """Return the most similar stretch, or whole passage; None if they share no words."""
        from rapidfuzz import fuzz

        folded = fold(text)
        best: NearestText | None = None
        likely = self._likely(folded)
        if not whole:
            windows = {index: fuzz.partial_ratio(folded, self._folded[index]) for index in likely}
            likely = sorted(likely, key=lambda index: -windows[index])[:_MAX_REFINED]
            likely = [i for i in likely if windows[i] > windows[likely[0]] - _MAX_GAP]
        for index in likely:
            passage = self.passages[index]
            for stretch in [passage.text] if whole else self._stretches(folded, index):
                candidate = fold(stretch)
                score = fuzz.ratio(folded, candidate) / _MAX_SCORE
                if best is None or score > best.score:
                    same_facts = invariant_tokens(folded) == invariant_tokens(candidate)
                    best = NearestText(passage, stretch, score, same_facts)
        return best

    def _stretches(self, target: str, index: int) -> list[str]:
        """The best window of a passage, with its ends at the best words; and whole sentences."""
        from rapidfuzz import fuzz

        text, folded = self.passages[index].text, self._folded[index]
        window = fuzz.partial_ratio_alignment(target, folded)
        if window is None or window.dest_end <= window.dest_start:
            return []
        low, high = window.dest_start, window.dest_end
        if len(target) > len(folded):  # then rapidfuzz aligns the passage along the target
            low, high = 0, len(folded)
        # A window has the length of the target text, and so cuts off inserted words.
        words = [word.span() for word in _WORD.finditer(folded)]
        reach = len(target) // 2
        ends = [end for _, end in words if low < end and abs(end - high) <= reach]
        high = max(ends, key=lambda end: fuzz.ratio(target, folded[low:end]), default=high)
        starts = [start for start, _ in words if start < high and abs(start - low) <= reach]
        low = max(starts, key=lambda start: fuzz.ratio(target, folded[start:high]), default=low)
        _, offsets = fold_with_offsets(text)
        start, end = offsets[low], offsets[high - 1] + 1
        spans = overlapping(sentence_spans(text), start, end)
        wide = [text[spans[0][0] : spans[-1][1]]] if spans else []
        return [*wide, *(text[a:b] for a, b in spans), text[start:end].strip()]

    @cached_property
    def _index(self) -> Mapping[str, array[int]]:
        """The indices of the passages with a term, ascending."""
        index: dict[str, array[int]] = {}
        for place, text in enumerate(self._folded):
            for term in set(_search_terms(text)):
                index.setdefault(term, array("l")).append(place)
        return index

    @cached_property
    def _edges(self) -> tuple[Mapping[str, list[int]], Mapping[str, list[int]]]:
        """The indices of the passages by their first, and by their last, characters."""
        begins: dict[str, list[int]] = {}
        ends: dict[str, list[int]] = {}
        for place, text in enumerate(self._folded):
            begins.setdefault(text[:_EDGE_LENGTH], []).append(place)
            ends.setdefault(text[-_EDGE_LENGTH:], []).append(place)
        return begins, ends

    def _candidates(self, folded: str) -> Sequence[int]:
        """Passages that may contain a text: those with its inner terms."""
        inner = _search_terms(folded, whole=False)
        if not inner:
            return range(len(self.passages))
        return min((self._index.get(term, array("l")) for term in inner), key=len)

    def _likely(self, folded: str) -> list[int]:
        """Passages that share the most terms, where rare ones count more."""
        import numpy as np

        limit = max(_COMMON_COUNT, _COMMON_SHARE * len(self.passages))
        weights = np.zeros(len(self.passages))
        for term in dict.fromkeys(_search_terms(folded)):
            places = self._index.get(term)
            if places is not None and len(places) <= limit:
                weights[np.frombuffer(places, dtype=places.typecode)] += 1 / len(places)
        likely = np.flatnonzero(weights)
        if len(likely) > _MAX_COMPARED:
            least = np.partition(weights[likely], -_MAX_COMPARED)[-_MAX_COMPARED]
            likely = likely[weights[likely] >= least]
        best: list[int] = likely[np.argsort(-weights[likely], kind="stable")].tolist()
        return best[:_MAX_COMPARED]


def _search_terms(folded: str, *, whole: bool = True) -> list[str]:
    """The words of a text; in scripts without spaces, each two neighboring characters.

    Not `whole`: without a first or last word that may continue beyond the text.
    """
    words: list[str] = _WORD.findall(folded)
    if folded.isascii() or not UNSPACED.search(folded):
        return words if whole else words[1:-1]
    terms = []
    for index, word in enumerate(words):
        if len(word) >= _BIGRAM and UNSPACED.search(word):
            terms += [word[i : i + _BIGRAM] for i in range(len(word) - 1)]
        elif whole or 0 < index < len(words) - 1:
            terms.append(word)
    return terms
