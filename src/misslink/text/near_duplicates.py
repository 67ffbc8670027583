"""Find near-duplicate passages by their shared word sequences (MinHash)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Any
from zlib import crc32

from misslink.text.normalization import UNSPACED_RUN, fold, stems


@lru_cache(maxsize=16_384)  # more than an index that is listed; 30 MB of passages of 1,000 letters
def passage_stems(text: str) -> tuple[str, ...]:
    """Return the content stems of a passage, in order, repetitions kept.

    As `misslink.text.normalization.stems`. To cut a passage takes half a millisecond, and
    BM25, shared words, and near-duplicates each ask for those of every passage of the index.
    """
    return stems(text)


# Lee et al. (2022) call two texts near-duplicates from a Jaccard similarity of 0.8 on. Chunks are
# short, so runs of three content words stand in for their five: with 0.8 about 1 word in 30 of
# one chunk may be another in the other one.
_MIN_SHINGLE_JACCARD = 0.8
_SHINGLE_WORDS = 3
# Texts with less than this of their words in common, as they stand, are not cut into stems: that
# takes twenty times as long, and endings and stopwords do not make up for more.
_MIN_WORD_JACCARD = 0.4
_SKETCH_BITS = 4_096  # of a sketch: two of a hundred words then seldom share one by chance
# Bands of rows find a pair with similarity s with probability 1 - (1 - s**rows)**bands: 99.6% of
# the pairs at 0.8, and all but 1 in 10,000 at 0.86.
_BANDS, _ROWS = 16, 4
_SEED = 20


@lru_cache(maxsize=4_096)
def _shingles(text: str) -> frozenset[int]:
    """Hashes of the runs of content words of a text, or of its words where they are fewer."""
    words = passage_stems(text)
    if len(words) < _SHINGLE_WORDS:
        return frozenset({crc32(fold(text).encode("utf-8", "replace"))})
    rows = zip(*(words[at:] for at in range(_SHINGLE_WORDS)), strict=False)
    return frozenset(crc32(" ".join(row).encode("utf-8", "replace")) for row in rows)


@lru_cache(maxsize=512)
def _word_set(text: str) -> frozenset[str]:
    if not text.isascii() and UNSPACED_RUN.search(text):  # between blanks are whole sentences
        return frozenset(passage_stems(text))
    return frozenset(text.lower().split())


@lru_cache(maxsize=32_768)
def _sketch(text: str) -> tuple[int, int, int]:
    """A number with one bit set for each different word of a text, and two counts.

    They are of the words, and of those that share their bit with another one. A sketch has a
    thirtieth of the words' own size, so that those of a whole run can be kept.
    """
    words = _word_set(text)
    bits = bytearray(_SKETCH_BITS // 8)
    for word in words:
        place = hash(word) % _SKETCH_BITS
        bits[place >> 3] |= 1 << (place & 7)
    sketch = int.from_bytes(bits, "little")
    return sketch, len(words), len(words) - sketch.bit_count()


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
    return _may_be_similar(_sketch(one), _sketch(other)) and _are_near_duplicates(one, other)


def _are_near_duplicates(one: str, other: str) -> bool:
    """Whether two texts whose sketches do not tell them apart are near-duplicates."""
    if not _jaccard_at_least(_word_set(one), _word_set(other), _MIN_WORD_JACCARD):
        return False
    return _jaccard_at_least(_shingles(one), _shingles(other), _MIN_SHINGLE_JACCARD)


def _jaccard_at_least(here: frozenset[Any], there: frozenset[Any], least: float) -> bool:
    """Whether the Jaccard similarity of two sets is at least `least`."""
    if min(len(here), len(there)) < least * max(len(here), len(there)):
        return False
    shared = len(here & there)
    return shared >= least * (len(here) + len(there) - shared)


def first_duplicates(texts: Sequence[str]) -> list[int | None]:
    """For each of a few texts the place of the first before it that says nearly the same.

    Every pair is compared, so this is for what one case retrieved; None where there is no such.
    """
    # As nearly_same, but each text is looked up once and not once for every other one.
    earlier: list[tuple[int, tuple[int, int, int]]] = []
    firsts: list[int | None] = []
    for at, text in enumerate(texts):
        if not text.strip():
            firsts.append(None)
            continue
        sketch = _sketch(text)
        same = (
            before
            for before, earlier_sketch in earlier
            if _may_be_similar(earlier_sketch, sketch) and _are_near_duplicates(texts[before], text)
        )
        firsts.append(next(same, None))
        earlier.append((at, sketch))
    return firsts


def flag_duplicates(texts: Sequence[str]) -> list[bool]:
    """For each of many texts whether another one says nearly the same.

    Parameters
    ----------
    texts : sequence of str
        Any number: only pairs that MinHash finds likely are compared.

    References
    ----------
    Broder (1997). Leskovec, Rajaraman and Ullman (2014), Mining of massive datasets, chapter 3.
    The hashes: Dietzfelbinger (1996), Universal hashing and k-wise independent random variables
    via integer arithmetic without primes.
    """
    import numpy as np

    generator = np.random.default_rng(_SEED)
    # Of 64 bits and without a remainder: an overflow is what makes a product random.
    slopes, shifts = generator.integers(0, 1 << 64, (2, _BANDS * _ROWS, 1), dtype=np.uint64)
    flags = [False] * len(texts)
    buckets: list[dict[bytes, list[int]]] = [defaultdict(list) for _ in range(_BANDS)]
    for at, text in enumerate(texts):
        if not text.strip():
            continue
        signature = (slopes * np.fromiter(_shingles(text), dtype=np.uint64) + shifts).min(axis=1)
        for band, bucket in zip(signature.reshape(_BANDS, _ROWS), buckets, strict=True):
            likely = bucket[band.tobytes()]
            alike = [other for other in likely if is_near_duplicate(texts[other], text)]
            for one in (at, *alike) if alike else ():
                flags[one] = True
            # One of several that say the same stands for them, or a template that fills half of
            # the corpus would be compared with itself a million times.
            if not alike:
                likely.append(at)
    return flags
