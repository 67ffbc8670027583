"""Where a text reads like another, but for a few slips of the pen that change no meaning."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from misslink.judging.embedded.lexical import without_ending
from misslink.judging.embedded.numerals import with_digits
from misslink.text import fold, fold_with_places

__all__ = ["UNSPACED", "WORD", "Found", "facts", "near"]

CHARACTERS_AN_EDIT = 20  # one slip is allowed for so many characters,
MOST_EDITS = 5  # and never more than these
_TYPO_LETTERS = 5  # a word shorter than this is another word if one letter differs
_KIN_LETTERS = 5  # two words that begin alike for so many letters may be forms of one

WORD = re.compile(r"\w+(?:['.,]\w+)*")
# Scripts without blanks between words: every character may be a word, and nothing is a boundary.
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
# What is neither a letter, a digit nor plain punctuation means something; so does a minus.
_SIGN = re.compile(r"[^\w\s.,;:!?'\"()\[\]{}*`|\\-]|-(?=\d)|!(?==)|(?<==)!")
_ARTICLES = frozenset({"a", "an", "the"})
_NEGATION = re.compile(
    r"\b(?:not|no|nor|never|none|neither|nobody|nothing|nowhere|without|cannot|hardly|barely"
    r"|nicht|nichts|nie|niemals|kein\w*|ohne|weder|ne|pas|jamais|sans|aucun\w*|sin|nunca|ningun\w*"
    r"|non|mai|senza|nao|sem)\b|n't\b"
)
# British and American spelling differ in these; no two English words of other meaning do.
_BRITISH = (
    (re.compile(r"(?<=\w{3})our"), "or"),  # harbour
    (re.compile(r"(?<=\w{3})is(?=[aei])"), "iz"),  # organisation
    (re.compile(r"(?<=\w{2})ys(?=[ei])"), "yz"),  # analyse
    (re.compile(r"(?<=\w)ae(?=\w)"), "e"),  # anaemia
    (re.compile(r"(?<=[aeiou])(\w+[ea]l)l(?=ed\b|ing\b|ers?\b)"), r"\1"),  # travelled
)


class Found(NamedTuple):
    """Where a quote stands in a text: character offsets, and how many characters differ."""

    start: int
    end: int
    edits: int = 0


def near(needle: str, haystack: str, said: str = "") -> Found | None:
    """Return the first place in `haystack` that reads like `needle`, else the nearest one.

    Both are folded. One edit (Levenshtein) is allowed for each 20 characters of `needle`, five at
    most; numbers, signs and negations must be equal and in order, and words may differ by one
    letter inside of a word of five or more, by how they are joined, or by an article. Neither end
    may lie inside a word or a number.

    One letter may also make another word ("nitrite", "nitrate"). So none may differ in a word that
    `haystack` elsewhere, or `said` in whatever form, writes as `needle` does: it is no slip
    there. Nor in a name, that is, a word with a capital that `haystack` nowhere has without,
    unless `said` spells it as `haystack` does. British and American spelling are the same word.

    Parameters
    ----------
    needle : str
        Without a character that stays after folding it is nowhere.
    haystack : str
    said : str
        What `needle` is quoted for, say a claim and its question; empty where it is for nothing.
    """
    wanted = fold(needle)
    if not wanted:
        return None
    plain = fold(haystack)
    for at in _every(wanted, plain):
        if _whole(plain, at, at + len(wanted)):
            return _placed(haystack, plain, at, at + len(wanted))
    most = min(MOST_EDITS, len(wanted) // CHARACTERS_AN_EDIT)
    best: tuple[int, int, int] | None = None
    if most:
        for edits, start, end in _nearly(wanted, plain, most):
            if (best is None or edits < best[0]) and _says_the_same(
                wanted, haystack, start, end, fold(said)
            ):
                best = edits, start, end
    if best is None:
        return None
    edits, start, end = best
    return _placed(haystack, plain, start, end, edits)


def _every(wanted: str, plain: str) -> Iterator[int]:
    at = plain.find(wanted)
    while at >= 0:
        yield at
        at = plain.find(wanted, at + 1)


def _placed(text: str, plain: str, start: int, end: int, edits: int = 0) -> Found:
    """Offsets into `plain`, the folded text, as offsets into the text."""
    if len(text) == len(plain) and text.isascii():
        return Found(start, end, edits)
    _, places = fold_with_places(text)
    return Found(places[start], places[end - 1] + 1, edits)


def _whole(plain: str, start: int, end: int) -> bool:
    """Whether neither end of a stretch lies inside a word or a number."""
    return not (_cut(plain, start) or _cut(plain, end))


def _cut(plain: str, at: int) -> bool:
    if not 0 < at < len(plain):
        return False
    left, right = plain[at - 1], plain[at]
    if left.isalnum() and right.isalnum():
        both_digits = left.isdigit() and right.isdigit()
        return both_digits or not (UNSPACED.match(left) or UNSPACED.match(right))
    if left in ".,:" and right.isdigit():
        return at > 1 and plain[at - 2].isdigit()
    if right in ".,:" and left.isdigit():
        return plain[at + 1 : at + 2].isdigit()
    return left in "-\u2212" and right.isdigit() and not plain[at - 2 : at - 1].isalnum()


def _nearly(wanted: str, plain: str, most: int) -> Iterator[tuple[int, int, int]]:
    """Every stretch of `plain` within `most` edits of `wanted`: edits, start, end.

    Of `most` + 1 pieces of what is wanted at least one is untouched; around each place where a
    piece stands, both sides are measured.
    """
    size = len(wanted) // (most + 1)
    seen: set[int] = set()
    for number in range(most + 1):
        first = number * size
        last = len(wanted) if number == most else first + size
        for at in _every(wanted[first:last], plain):
            if at - first in seen:
                continue
            seen.add(at - first)
            left = _side(wanted[:first][::-1], plain[max(0, at - first - most) : at][::-1], most)
            if left is None:
                continue
            over = at + last - first
            rest = wanted[last:]
            right = _side(rest, plain[over : over + len(rest) + most], most - left[0])
            if right is not None:
                yield left[0] + right[0], at - left[1], over + right[1]


def _side(wanted: str, window: str, most: int) -> tuple[int, int] | None:
    """The fewest edits that turn a beginning of `window` into `wanted`, and its length."""
    from rapidfuzz.distance import Levenshtein

    found = []
    for longer in range(-most, most + 1):
        length = len(wanted) + longer
        if 0 <= length <= len(window):
            edits = Levenshtein.distance(wanted, window[:length], score_cutoff=most)
            if edits <= most:
                found.append((edits, abs(longer), length))
    if not found:
        return None
    edits, _, length = min(found)
    return edits, length


def _says_the_same(wanted: str, haystack: str, start: int, end: int, said: str) -> bool:
    """Whether what differs between a quote and a stretch is a slip of the pen and no more."""
    plain = fold(haystack)
    stretch = plain[start:end]
    return (
        _whole(plain, start, end)
        and facts(wanted) == facts(stretch)
        and all(
            _is_meant(one, other, haystack, said)
            for one, other in _slips(WORD.findall(wanted), WORD.findall(stretch))
        )
    )


def facts(folded: str) -> tuple[list[str], list[str], list[str]]:
    """The numbers, signs and negations of a folded text, in order: what no slip may touch."""
    numbers = _NUMBER.findall(with_digits(folded))
    return numbers, _SIGN.findall(folded), _NEGATION.findall(folded)


def _slips(one: list[str], other: list[str]) -> Iterator[tuple[str, str]]:
    """The pairs of words that differ; an empty pair where more than single words do."""
    from rapidfuzz.distance import Levenshtein

    for step in Levenshtein.opcodes(one, other):
        here = one[step.src_start : step.src_end]
        there = other[step.dest_start : step.dest_end]
        if step.tag == "equal" or "".join(here) == "".join(there):
            continue
        if _ARTICLES.issuperset(here) and _ARTICLES.issuperset(there):
            continue
        if len(here) == len(there):
            yield from (pair for pair in zip(here, there, strict=True) if pair[0] != pair[1])
        else:
            yield "", ""


def _is_meant(one: str, other: str, haystack: str, said: str) -> bool:
    """Whether a quote's word is the word of its text, misspelt, and not another word."""
    if not _is_typo(one, other):
        return False
    if _american(one) == _american(other):
        return True
    words, names = _words_and_names(haystack)
    claimed = frozenset(WORD.findall(said))
    if one in words or any(_is_form(word, one, other) for word in claimed):
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


def _american(word: str) -> str:
    for british, american in _BRITISH:
        word = british.sub(american, word)
    return word


def _is_form(word: str, one: str, other: str) -> bool:
    """Whether `word` is a form of `one` and not of `other`, which is one letter apart from it."""
    differs = _alike(one, other)  # so this letter is what tells them apart
    if _alike(word, one) >= max(_KIN_LETTERS, differs + 1):
        return True
    return without_ending(word) == without_ending(one) != without_ending(other)


def _alike(one: str, other: str) -> int:
    """How many characters two words share from the beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


@lru_cache(maxsize=64)
def _words_and_names(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """The folded words of a text, and those of them that never stand without a capital."""
    plain, places = fold_with_places(text)
    small: set[str] = set()
    capital: set[str] = set()
    for word in WORD.finditer(plain):
        (capital if text[places[word.start()]].isupper() else small).add(word.group())
    return frozenset(small | capital), frozenset(capital - small)
