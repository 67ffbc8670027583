"""Find near-duplicate passages by their shared word sequences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from misslink.text.normalization import UNSPACED_RUN, fold, stems


@lru_cache(maxsize=16_384)  # more than an index that is listed; 30 MB of passages of 1,000 letters
def passage_stems(text: str) -> tuple[str, ...]:
    """Return the content stems of a passage, in order, repetitions kept.

    As `misslink.text.normalization.stems`. To cut a passage takes half a millisecond, and
    BM25, shared words, and near-duplicates each ask for those of every passage of the index.
    """
    return stems(text)


@lru_cache(maxsize=4_096)
def passage_words(text: str) -> frozenset[str]:
    """Return the different content stems of a passage."""
    return frozenset(passage_stems(text))


# Lee et al. (2022) call two texts near-duplicates from a Jaccard similarity of 0.8 on. Chunks are
# short, so runs of three content words stand in for their five: with 0.8 about 1 word in 30 of
# one chunk may be another in the other one.
_MIN_SHINGLE_JACCARD = 0.8
_SHINGLE_WORDS = 3
# Texts with less than this of their words in common, as they stand, are not cut into stems: that
# takes twenty times as long, and endings and stopwords do not make up for more.
_MIN_WORD_JACCARD = 0.4
_SKETCH_BITS = 4_096  # of a sketch: two of a hundred words then seldom share one by chance
_ROUNDING = 1e-9


@lru_cache(maxsize=4_096)
def _shingles(text: str) -> frozenset[int]:
    """Hashes of the runs of content words of a text, or of its words where they are fewer."""
    words = passage_stems(text)
    if len(words) < _SHINGLE_WORDS:
        return frozenset({hash(fold(text))})
    return frozenset(map(hash, zip(*(words[at:] for at in range(_SHINGLE_WORDS)), strict=False)))


@lru_cache(maxsize=512)
def _word_set(text: str) -> frozenset[str]:
    if not text.isascii() and UNSPACED_RUN.search(text):  # between blanks are whole sentences
        return passage_words(text)
    return frozenset(text.lower().split())


@lru_cache(maxsize=32_768)
def _sketch(text: str) -> tuple[int, int, int]:
    """A number with one bit set for each different word of a text, and two counts.

    They are of the words, and of those that share their bit with another one. A sketch has a
    thirtieth of the words' own size, so that those of a whole run can be kept.
    """
    words = _word_set(text)
    places = {hash(word) % _SKETCH_BITS for word in words}
    return sum(map((1).__lshift__, places)), len(words), len(words) - len(places)


def _may_be_similar(one: tuple[int, int, int], other: tuple[int, int, int]) -> bool:
    """Whether two texts' words may have a Jaccard similarity of 0.4, by their sketches.

    Never wrongly False: each bit that only one of them has set stands for one word or more that
    the other one lacks.
    """
    (bits, count, hidden), (other_bits, other_count, other_hidden) = one, other
    shared = (bits & other_bits).bit_count() + min(hidden, other_hidden)
    return shared >= _MIN_WORD_JACCARD * (count + other_count - shared)


def is_near_duplicate(one: str, other: str) -> bool:
    """Whether two texts are near-duplicates.

    Their runs of three content words have a Jaccard similarity of 0.8 or more; texts of fewer
    words are compared whole, folded. Two texts without any character are not.

    References
    ----------
    Broder (1997), On the resemblance and containment of documents. Lee et al. (2022),
    Deduplicating training data makes language models better.

    Examples
    --------
    >>> is_near_duplicate("The ferry to Holm leaves at seven.", "The ferry to Holm leaves at seven!")
    True
    """
    if not (one.strip() and other.strip()):
        return False
    return (
        _may_be_similar(_sketch(one), _sketch(other))
        and jaccard_at_least(_word_set(one), _word_set(other), _MIN_WORD_JACCARD)
        and jaccard_at_least(_shingles(one), _shingles(other), _MIN_SHINGLE_JACCARD)
    )


def jaccard_at_least(here: frozenset[Any], there: frozenset[Any], least: float) -> bool:
    """Whether the Jaccard similarity of two sets is at least `least`."""
    if min(len(here), len(there)) < least * max(len(here), len(there)):
        return False
    shared = len(here & there)
    return shared >= least * (len(here) + len(there) - shared)


def first_duplicates(texts: Sequence[str]) -> list[int | None]:
    """For each of a few texts the place of the first before it that says nearly the same.

    Every pair is compared, so this is for what one case retrieved; None where there is no such.
    """
    return [
        next((before for before in range(at) if is_near_duplicate(texts[before], text)), None)
        for at, text in enumerate(texts)
    ]


def flag_duplicates(texts: Sequence[str]) -> list[bool]:
    """For each of many texts whether `is_near_duplicate` of another one.

    Parameters
    ----------
    texts : sequence of str
        Any number. Of two near-duplicates each has 80% of its runs in the other, so its 20% that
        occur in the fewest texts (and one more) hold one of them: only texts that share such a
        run are compared. What a template repeats everywhere is not among these.

    References
    ----------
    Chaudhuri, Ganti and Kaushik (2006), A primitive operator for similarity joins in data
    cleaning. Bayardo, Ma and Srikant (2007), Scaling up all pairs similarity search.
    """
    flags = [False] * len(texts)
    runs_of = _shared_rare_runs(texts)
    sets = {at: _shingles(texts[at]) for at in runs_of}
    alone: dict[int, set[int]] = defaultdict(set)  # by run, earlier texts without a near-duplicate
    flagged: dict[int, list[int]] = defaultdict(list)  # and those with one: the first is enough
    for at, runs in runs_of.items():

        def is_same(other: int, at: int = at) -> bool:
            return jaccard_at_least(
                sets[other], sets[at], _MIN_SHINGLE_JACCARD
            ) and is_near_duplicate(texts[other], texts[at])

        same = [other for other in set().union(*(alone[run] for run in runs)) if is_same(other)]
        for other in same:
            flags[other] = True
            for run in runs_of[other]:
                alone[run].discard(other)
                flagged[run].append(other)
        flags[at] = bool(same) or any(is_same(other) for run in runs for other in flagged[run])
        for run in runs:
            flagged[run].append(at) if flags[at] else alone[run].add(at)
    return flags


def _shared_rare_runs(texts: Sequence[str]) -> dict[int, list[int]]:
    """Of each text the rare runs, as numbers, that another one has among its rare ones."""
    import numpy as np

    runs = [np.fromiter(_shingles(text) if text.strip() else (), np.int64) for text in texts]
    length = np.array([len(own) for own in runs], dtype=np.int64)
    text = np.repeat(np.arange(len(texts)), length)
    joined = np.concatenate(runs) if runs else text
    _, run, count = np.unique(joined, return_inverse=True, return_counts=True)
    rarest_first = run[np.lexsort((run, count[run], text))]
    place = np.arange(len(run)) - np.repeat(np.cumsum(length) - length, length)
    needed = np.ceil(_MIN_SHINGLE_JACCARD * length - _ROUNDING)
    rare = place <= (length - needed)[text]
    text, run = text[rare], rarest_first[rare]
    shared = np.bincount(run)[run] > 1 if len(run) else rare
    found: dict[int, list[int]] = {}
    for at, number in zip(text[shared].tolist(), run[shared].tolist(), strict=True):
        found.setdefault(at, []).append(number)
    return found
