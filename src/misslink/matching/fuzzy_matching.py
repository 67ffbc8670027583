"""Find where a text quotes another one, with a few typos that change no meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from misslink.matching.assertion import DENYING
from misslink.text.normalization import (
    UNSPACED,
    common_start,
    fold,
    fold_with_offsets,
    number_words_to_digits,
    strip_ending,
)

CHARACTERS_PER_EDIT = 20  # one slip is allowed for so many characters,
MOST_EDITS = 5  # and never more than these
_MAX_PLACES = 100  # that are compared: in a text that repeats itself, every place is alike
_MAX_FUZZY_LENGTH = 2_000  # characters of a quote; longer ones must be exact
_TYPO_LETTERS = 5  # a word shorter than this is another word if one letter differs
_SHARED_PREFIX_LETTERS = 5  # two words that begin alike for so many letters may be forms of one

WORD = re.compile(r"\w+(?:['.,]\w+)*")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
# What is neither a letter, a digit nor plain punctuation means something; so does a minus.
_SIGN = re.compile(r"[^\w\s.,;:!?'\"()\[\]{}*`|\\-]|-(?=\d)|!(?==)|(?<==)!")
_ARTICLES = frozenset({"a", "an", "the"})
# British and American spelling differ in these; no two English words of other meaning do.
_BRITISH_SPELLINGS = (
    (re.compile(r"(?<=\w{3})our"), "or"),  # harbour
    (re.compile(r"(?<=\w{3})is(?=[aei])"), "iz"),  # organisation
    (re.compile(r"(?<=\w{2})ys(?=[ei])"), "yz"),  # analyse
    (re.compile(r"(?<=\w)ae(?=\w)"), "e"),  # anaemia
    (re.compile(r"(?<=[aeiou])(\w+[ea]l)l(?=ed\b|ing\b|ers?\b)"), r"\1"),  # travelled
)


class FuzzyMatch(NamedTuple):
    """Position of a quote in a text: character offsets, and the number of differing characters."""

    start: int
    end: int
    edits: int = 0


def fuzzy_match(needle: str, haystack: str, claim_text: str = "") -> FuzzyMatch | None:
    """Return the first place in `haystack` that reads like `needle`, else the nearest one.

    Both are folded. One edit (Levenshtein) is allowed for each 20 characters of `needle`, five at
    most; numbers, signs and negations must be equal and in order, and words may differ by one
    letter inside of a word of five or more, by how they are joined, or by an article. Neither end
    may lie inside a word or a number.

    One letter may also make another word ("nitrite", "nitrate"). So none may differ in a word that
    `haystack` elsewhere, or `claim_text` in whatever form, writes as `needle` does: it is no typo
    there. Nor in a name, that is, a word with a capital that `haystack` nowhere has without,
    unless `claim_text` spells it as `haystack` does. British and American spelling are the same word.

    Parameters
    ----------
    needle : str
        Without a character that stays after folding it is nowhere.
    haystack : str
    claim_text : str
        The claim and its question that `needle` is quoted for; may be empty.
    """
    folded_needle = fold(needle)
    if not folded_needle:
        return None
    plain = fold(haystack)
    for at in islice(_occurrences(folded_needle, plain), _MAX_PLACES):
        if not (_splits_word(plain, at) or _splits_word(plain, at + len(folded_needle))):
            alone = plain.find(folded_needle, at + 1) < 0
            return (alone and _verbatim_match(needle, haystack)) or _match_in_text(
                haystack, plain, at, at + len(folded_needle)
            )
    most = min(MOST_EDITS, len(folded_needle) // CHARACTERS_PER_EDIT)
    if not most or len(folded_needle) > _MAX_FUZZY_LENGTH:
        return None
    for edits, start, end in sorted(_near_spans(folded_needle, plain, most)):
        if _has_same_meaning(folded_needle, haystack, plain[start:end], fold(claim_text)):
            return _match_in_text(haystack, plain, start, end, edits)
    return None


def _verbatim_match(needle: str, haystack: str) -> FuzzyMatch | None:
    """The place of a needle that a text has as it is, and once: most are found so."""
    start = haystack.find(needle)
    is_plain = needle[:1].isascii() and needle[-1:].isascii() and needle == needle.strip()
    if start < 0 or not is_plain or haystack.find(needle, start + 1) >= 0:
        return None
    return FuzzyMatch(start, start + len(needle))


def _occurrences(folded_needle: str, plain: str) -> Iterator[int]:
    at = plain.find(folded_needle)
    while at >= 0:
        yield at
        at = plain.find(folded_needle, at + 1)


def _match_in_text(text: str, plain: str, start: int, end: int, edits: int = 0) -> FuzzyMatch:
    """Offsets into `plain`, the folded text, as offsets into the text."""
    if len(text) == len(plain) and text.isascii():
        return FuzzyMatch(start, end, edits)
    _, places = fold_with_offsets(text)
    return FuzzyMatch(places[start], places[end - 1] + 1, edits)


# A number with blanks between its thousands, and what a prefix makes the opposite of a word.
_SPACED_NUMBER = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?!\d)")
_PREFIX = re.compile(r"(?<!\w)(?:non|un|anti|ex|pseudo|quasi|half|semi|nicht|halb)-$")


def _splits_word(plain: str, at: int) -> bool:
    if not 0 < at < len(plain):
        return False
    if plain[at - 1] == "-" and _PREFIX.search(plain, max(0, at - 8), at):
        return True
    if plain[at - 1 : at + 1].strip().isdigit() and any(
        max(0, at - 16) + number.start() < at < max(0, at - 16) + number.end()
        for number in _SPACED_NUMBER.finditer(plain[max(0, at - 16) : at + 16])
    ):
        return True
    left, right = plain[at - 1], plain[at]
    if left.isalnum() and right.isalnum():
        both_digits = left.isdigit() and right.isdigit()
        return both_digits or not (UNSPACED.match(left) or UNSPACED.match(right))
    if left in ".,:'" and right.isdigit():
        return at > 1 and plain[at - 2].isdigit()
    if right in ".,:'" and left.isdigit():
        return plain[at + 1 : at + 2].isdigit()
    return left in "-\u2212" and right.isdigit() and not plain[at - 2 : at - 1].isalnum()


def _near_spans(folded_needle: str, plain: str, most: int) -> set[tuple[int, int, int]]:
    """Stretches of `plain` within `most` edits of what is wanted: edits, start, end.

    Of `most` + 1 pieces of what is wanted at least one is untouched; around each place where a
    piece stands, both ends are looked for.
    """
    from rapidfuzz.distance import Levenshtein

    size, length = len(folded_needle) // (most + 1), len(folded_needle)
    lefts = {
        at - first
        for first in range(0, size * (most + 1), size)
        for at in islice(_occurrences(folded_needle[first : first + size], plain), _MAX_PLACES)
    }
    slack = range(-most, most + 1)
    spans = (
        (Levenshtein.distance(folded_needle, plain[start:end], score_cutoff=most), start, end)
        for left in sorted(lefts)[:_MAX_PLACES]
        for start in {max(0, left + more) for more in slack}
        if not _splits_word(plain, start)
        for end in {min(len(plain), left + length + more) for more in slack}
        if not _splits_word(plain, end)
    )
    return {span for span in spans if span[0] <= most}


def _has_same_meaning(folded_needle: str, haystack: str, stretch: str, claim_text: str) -> bool:
    """Whether a quote and a stretch of a text differ by typos only."""
    return invariant_tokens(folded_needle) == invariant_tokens(stretch) and all(
        _is_same_word(one, other, haystack, claim_text)
        for one, other in _differing_words(WORD.findall(folded_needle), WORD.findall(stretch))
    )


def invariant_tokens(folded: str) -> tuple[list[str], list[str], list[str]]:
    """The numbers, signs and negations of a folded text, in order: what no slip may touch."""
    numbers = _NUMBER.findall(number_words_to_digits(folded))
    return numbers, _SIGN.findall(folded), DENYING.findall(folded)


def _differing_words(one: list[str], other: list[str]) -> Iterator[tuple[str, str]]:
    """The pairs of words that differ; an empty pair where more than single words do."""
    from rapidfuzz.distance import Levenshtein

    for step in Levenshtein.opcodes(one, other):
        words = one[step.src_start : step.src_end]
        other_words = other[step.dest_start : step.dest_end]
        if step.tag == "equal" or "".join(words) == "".join(other_words):
            continue
        if _ARTICLES.issuperset(words) and _ARTICLES.issuperset(other_words):
            continue
        if len(words) == len(other_words):
            yield from (pair for pair in zip(words, other_words, strict=True) if pair[0] != pair[1])
        else:
            yield "", ""


def _is_same_word(one: str, other: str, haystack: str, claim_text: str) -> bool:
    """Whether a quote's word is the word of its text, misspelt, and not another word."""
    if not _is_typo(one, other):
        return False
    if _american_spelling(one) == _american_spelling(other):
        return True
    words, names = _words_and_names(haystack)
    claimed = frozenset(WORD.findall(claim_text))
    if one in words or any(_is_word_form(word, one, other) for word in claimed):
        return False
    return other not in names or other in claimed


def _is_typo(one: str, other: str) -> bool:
    """Whether two words are long, alike at both ends, and one letter apart."""
    from rapidfuzz.distance import OSA

    return (
        min(len(one), len(other)) >= _TYPO_LETTERS
        and one[0] == other[0]
        and one[-1] == other[-1]
        and UNSPACED.search(one + other) is None
        and not any(character.isdigit() for character in one + other)
        and OSA.distance(one, other) == 1
    )


def _american_spelling(word: str) -> str:
    for british, american in _BRITISH_SPELLINGS:
        word = british.sub(american, word)
    return word


def _is_word_form(word: str, one: str, other: str) -> bool:
    """Whether `word` is a form of `one` and not of `other`, which is one letter apart from it."""
    # The letter behind what both share is what tells them apart.
    least = max(_SHARED_PREFIX_LETTERS, len(common_start(one, other)) + 1)
    if len(common_start(word, one)) >= least:
        return True
    return strip_ending(word) == strip_ending(one) != strip_ending(other)


@lru_cache(maxsize=64)
def _words_and_names(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The folded words of a text, and those of them that never stand without a capital."""
    plain, places = fold_with_offsets(text)
    small: set[str] = set()
    capital: set[str] = set()
    for word in WORD.finditer(plain):
        (capital if text[places[word.start()]].isupper() else small).add(word.group())
    return frozenset(small | capital), frozenset(capital - small)
