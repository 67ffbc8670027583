"""Normalize texts: folding, sentences, words, stems and written numbers."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, filterfalse, takewhile
from operator import itemgetter
from typing import Any, TypeVar


def one_of(names: Iterable[str]) -> str:
    """A pattern for any of the names, the longest first; by their first letters it is fast."""
    rests = defaultdict[str, list[str]](list)
    for name in sorted(names, key=len, reverse=True):
        rests[name[0]].append(re.escape(name[1:]))
    return "|".join(f"{re.escape(first)}(?:{'|'.join(rest)})" for first, rest in rests.items())


class Phrases:
    """A pattern that matches from the beginning of a word on.

    Behind a set of characters Python finds it faster than at a boundary, for it skips the letters.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(rf"\W(?:{pattern})")

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in ` text`, with the character before it."""
        return self._pattern.search(f" {text}")


def numbered(names: str, first: int, step: int = 1) -> dict[str, int]:
    """Return names and their numbers; names between blanks share one."""
    rows = enumerate(names.split("|"))
    return {name: first + place * step for place, row in rows for name in row.split()}


_UNITS = numbered("one|two|three|four|five|six|seven|eight|nine", first=1)
_TENS = numbered("twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety", first=20, step=10)
_TEENS = "ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen"
_VALUES = {"zero": 0, **_UNITS, **numbered(_TEENS, first=10), **_TENS}
# "second" is left out: a second is a time, too.
_LATER = numbered("four|fif|six|seven|eigh|nin|ten|eleven|twelf", first=4)
_ORDINALS = {"first": "1st", "third": "3rd"} | {f"{s}th": f"{n}th" for s, n in _LATER.items()}
_BELOW_100 = rf"(?:(?:{'|'.join(_TENS)})[ -](?:{'|'.join(_UNITS)})|{'|'.join(_VALUES)})"
_BELOW_1000 = rf"(?:(?:{_BELOW_100} )?hundred(?:(?: and)? {_BELOW_100})?|{_BELOW_100})"
_NUMBER_PHRASE = re.compile(
    # "5 thousand" stays as it is: its words say the number already.
    rf"(?<!\d )\b(?:(?:{_BELOW_1000} )?thousand(?:(?: and)? {_BELOW_1000})?|{_BELOW_1000})\b"
    rf"|\b(?:{'|'.join(_ORDINALS)})\b"
)
# Where such a number may begin. Python's search skips at once what begins with no letter of these,
# but only if nothing stands before them, so the letter before is looked at last.
_WORDS = (*_VALUES, *_ORDINALS, "hundred", "thousand")
_NUMBER_START = re.compile(rf"(?:{one_of({word[:3] for word in _WORDS})})(?<!\w...)")
# "1,5" is 1.5; "1,500" is not, and "[1,5]" names two passages.
_DECIMAL_COMMA = re.compile(r"(?<![\d.,\[])(\d+),(\d{1,2}|\d{4,})(?![\d,)\]])")
_AND_A_HALF = re.compile(r"(?<![\d.,])(\d+) and a half\b")
# "5.0" is 5; "1.0.2" is a version, and "5.000" may be German for five thousand.
_ZERO_DECIMALS = re.compile(r"(?<![.\d])(\d+)\.(?:0{1,2}|0{4,})(?!\.?\d)")


@lru_cache(maxsize=4_096)
def number_words_to_digits(folded: str) -> str:
    """`folded`, in lower case, with numbers below a million as digits; 5.0 is 5, and 1,5 is 1.5."""
    if "," in folded:
        folded = _DECIMAL_COMMA.sub(r"\1.\2", folded)
    if ".0" in folded:
        folded = _ZERO_DECIMALS.sub(r"\1", folded)
    pieces: list[str] = []
    end = 0
    for begin in _NUMBER_START.finditer(folded):
        start = begin.start()
        if start >= end and (phrase := _NUMBER_PHRASE.match(folded, start)):
            pieces += (folded[end:start], _words_to_digits(phrase))
            end = phrase.end()
    digits = "".join((*pieces, folded[end:])) if end else folded
    return _AND_A_HALF.sub(r"\1.5", digits) if " and a half" in digits else digits


def _words_to_digits(phrase: re.Match[str]) -> str:
    if phrase[0] in _ORDINALS:
        return _ORDINALS[phrase[0]]
    thousands, below = 0, 0
    for word in phrase[0].replace("-", " ").split():
        if word == "thousand":
            thousands, below = (below or 1) * 1000, 0
        elif word == "hundred":
            below = (below or 1) * 100
        else:
            below += _VALUES.get(word, 0)  # "and" adds nothing
    return str(thousands + below)


_LINE_END_HYPHEN = re.compile(r"-[ \t]*\n")
_WHITESPACE = re.compile(r"\s+")
_HYPHENATED = re.compile(r"(?<=\w)-[ \t]*\n\s*(?=\w)")
# A run of printable characters that fold to their lower case, or any other character.
_ASCII_RUN_OR_CHARACTER = re.compile(r"([!-_a-~]+)|.", re.DOTALL)
_WORD = re.compile(r"\w+(?:['.]\w+)*")
# Scripts without blanks between words: every character may be a word, and nothing is a boundary.
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
UNSPACED_RUN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]+")
_HIRAGANA = re.compile(r"[\u3040-\u309f]+")
_SAME_SCRIPT = re.compile(
    rf"{_HIRAGANA.pattern}|[\u30a0-\u30ff]+|[\u3400-\u9fff]+|[\u0e00-\u0e7f]+|."
)
# Behind a word: its last syllable, particles, and endings of verbs; folded, as all words here.
_JAPANESE_ENDINGS = re.compile(
    r"^.(?:から|まて|より|なと|こと|もの|よう|ない|られ|ます|まし|ませ|てす|ある|[いるれてたなしっはかをにとものへやねよ])*"
    r"|(?:から|まて|[はかをにてとものへ])$"
)
_SHORTEST_HIRAGANA = 3
_OUTER_PUNCTUATION = " .,;:!?'\"()[]"
# It begins with a set of characters, which Python's search finds ten times as fast as a lookbehind.
_SENTENCE_END = re.compile(
    r"[.!?:\n\u3002\uff01\uff1f](?:"
    r"(?<=[.!?])['\")\]]*\s+(?=[\"'(\[]?[A-Z0-9`])"  # a full stop, then a capital or a number
    r"|(?<=[\u3002\uff01\uff1f])"  # a full stop of a script that puts no blank behind it
    r"|(?<=[.!?:])['\")\]]*[ \t]*\n\s*"  # a full stop or a colon that ends its line
    r"|(?<=\n)\s*\n"  # an empty line
    r"|(?<=\n)(?=\s*(?:[-*+\u2022]|\d+[.)])\s))"  # a list item
)
# Behind an abbreviation, or the number of a list item.
_NO_END = re.compile(
    r"(?:(?:\b(?:e\.g|i\.e|etc|vs|cf|Dr|Mr|Mrs|Ms|Prof|St|Fig|Sec|approx|[Pp]p?)|\b[A-Z])\.$"
    r"|(?:\A|\n)[ \t]*\(?\d{1,3}[.)]\Z)"
)
_NUMBER_SIGN = re.compile(r"\b[Nn]o\.\s+\d")  # "No. 5", and no "No."
# Characters that display as nothing, as classes of a regular expression: together Unicode's property
# Default_Ignorable_Code_Point and the marks of interlinear notes. The selectors, like the joiners,
# shape a visible character before them. The scripts of the report have the same list.
_HIDDEN = (
    "\u00ad\u034f\u061c\u115f-\u1160\u17b4-\u17b5\u180e\u200b\u200e-\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
)
_SELECTORS = "\u180b-\u180d\u180f\ufe00-\ufe0f\U000e0100-\U000e01ef"
INVISIBLE = f"{_HIDDEN}{_SELECTORS}\u200c\u200d"
HIDDEN_MARK = re.compile(f"[{_HIDDEN}]|(?<=[{_SELECTORS}])[{_SELECTORS}]")
_INVISIBLE_MARK = re.compile(f"[{INVISIBLE}]")
# One character for every way of writing a quote mark or a dash.
_CHARACTER_MAP = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032`\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff"),
        "\u0338": "!",  # the stroke that makes an equals sign "not equal" is no accent
    }
)
# A raised digit behind a number is a power or a note, not one more digit.
_RAISED = re.compile(r"(?<=\d)(?=[\u2070\u00b9\u00b2\u00b3\u2074-\u2079])")
_STOPWORDS = """
a about above after again all also am an and any are as at be because been before being below
between both but by can cannot could did do does doing down during each either etc few for from
further had has have having he her here hers him his how i if in into is it its itself just may me
might more most must my no nor not now of off on once only or other our out over own same she
should so some such than that the their them then there these they this those through to too under
until up upon us very was we were what when where whether which while who whom whose why will with
within without would you your yours
"""
STOPWORDS = frozenset(_STOPWORDS.split())


@lru_cache(maxsize=4_096)
def fold(text: str) -> str:
    """Lower case, single blanks, plain quote marks and dashes, no accents, no line-end hyphens.

    Two texts that differ only in these fold to the same string.
    """
    if text.isascii() and "`" not in text:  # the same, ten times as fast
        if text.isprintable() and "  " not in text:  # one line without double blanks
            return text.lower().strip()
        if not _LINE_END_HYPHEN.search(text):
            return " ".join(text.lower().split())
    joined = _HYPHENATED.sub("", text).translate(_CHARACTER_MAP)
    if not joined.isascii():
        joined = _RAISED.sub("^", joined)
        plain = unicodedata.normalize("NFKD", joined).translate(_CHARACTER_MAP)
        joined = "".join(filterfalse(unicodedata.combining, plain)).casefold()
    return _WHITESPACE.sub(" ", joined).strip().lower()


def locate(needle: str, haystack: str) -> tuple[int, int] | None:
    """Character offsets of a place in `haystack` that reads like `needle`: verbatim, else folded.

    Returns None where there is none, or where `needle` is blank.
    """
    wanted, verbatim = fold(needle), needle.strip()
    if not wanted:
        return None
    start = haystack.find(verbatim)
    if start >= 0:
        return start, start + len(verbatim)
    at = fold(haystack).find(wanted)
    if at < 0:
        return None
    _, places = fold_with_offsets(haystack)
    return places[at], places[at + len(wanted) - 1] + 1


@lru_cache(maxsize=512)
def fold_with_offsets(text: str) -> tuple[str, array[int]]:
    """Return `fold` of a text, and for each of its characters the offset in `text` it came from."""
    pieces: list[str] = []
    places = array("L")
    cuts = [cut.span() for cut in _HYPHENATED.finditer(text)]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(text)]
    for start, end in zip(starts, ends, strict=True):
        for run in _ASCII_RUN_OR_CHARACTER.finditer(text, start, end):
            if run[1]:
                pieces.append(run[1].lower())
                places.extend(range(run.start(), run.end()))
                continue
            raised = ("^",) if _RAISED.match(text, run.start()) else ()
            for piece in (*raised, *_fold_character(run[0])):
                if piece != " " or (pieces and pieces[-1] != " "):  # no two blanks, none leading
                    pieces.append(piece)
                    places.extend([run.start()] * len(piece))
    if pieces and pieces[-1] == " ":
        del pieces[-1], places[-1]
    return "".join(pieces), places


Spans = tuple[tuple[int, int], ...]  # character offsets, in order
_Span = TypeVar("_Span", bound=tuple[Any, ...])


@lru_cache(maxsize=4_096)
def sentence_spans(text: str) -> Spans:
    """Character offsets of the sentences and list items of `text`, blanks trimmed."""
    ends = ((end.start() + (end[0][0] != "\n"), end.end()) for end in _SENTENCE_END.finditer(text))
    cuts = [0, *(end for stop, end in ends if _ends_sentence(text, stop))]
    spans = []
    for start, stop in zip(cuts, [*cuts[1:], len(text)], strict=True):
        if piece := text[start:stop].strip():
            left = text.index(piece, start)
            spans.append((left, left + len(piece)))
    return tuple(spans)


def _ends_sentence(text: str, stop: int) -> bool:
    """Whether the full stop before `stop` is none of an abbreviation, "No. 5" or a list number."""
    return not (
        _NO_END.search(text, max(0, stop - 8), stop) or _NUMBER_SIGN.match(text, max(0, stop - 3))
    )


def common_start(one: str, other: str) -> str:
    """Return the characters that two texts both begin with."""
    pairs = zip(one, other, strict=False)
    return one[: sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))]


def overlapping(spans: tuple[_Span, ...], start: int, end: int) -> tuple[_Span, ...]:
    """Return those of the spans, each with whatever else it says, that share a character with the place from `start` to `end`."""
    numbers = overlapping_numbers(spans, start, end)
    return spans[numbers.start : numbers.stop]


def overlapping_numbers(spans: tuple[_Span, ...], start: int, end: int) -> range:
    """Return the places of those of the spans that share a character with the place from `start` to `end`."""
    first = bisect_right(spans, start, key=itemgetter(1))
    return range(first, bisect_left(spans, end, first, key=itemgetter(0)))


def drop_invisible(text: str) -> str:
    """Return a text without the characters that display as nothing.

    >>> drop_invisible("a\u3164\u200bb")
    'ab'
    """
    return _INVISIBLE_MARK.sub("", text)


def valid_text(text: str) -> str:
    """Return `text` with a question mark for every half of a broken surrogate pair.

    JSON may hold such halves, and no file can be written with them.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def content_id(text: str) -> str:
    """Return the id of a passage without one: 'text-' and 16 digits of its SHA-256."""
    return f"text-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


@lru_cache(maxsize=4_096)
def has_content(text: str) -> bool:
    """Whether any word of `text` carries content; cheaper than all of `content_words`."""
    return any(word[0] not in STOPWORDS for word in _WORD.finditer(fold(text)))


def content_words(text: str) -> tuple[str, ...]:
    """The words of `text` that carry content, folded, in order, repetitions kept."""
    # What stands around the words makes none, and without it a quote meets its sentence here.
    return _content_words(fold(text).strip(_OUTER_PUNCTUATION))


@lru_cache(maxsize=4_096)
def _content_words(folded: str) -> tuple[str, ...]:
    words = _WORD.findall(folded)
    if not folded.isascii():
        words = [part for word in words for part in _cut_runs(word)]
    return tuple(filterfalse(STOPWORDS.__contains__, words))


def _cut_runs(word: str) -> list[str]:
    """The parts of `word`: pairs of characters of a script that puts no blanks between words.

    Of Japanese only kanji, katakana and what hiragana say beside particles and endings: these differ
    from one wording to another.
    """
    parts: list[str] = []
    end = 0
    for match in UNSPACED_RUN.finditer(word):
        start = match.start()
        parts += [word[end:start]] if end < start else []
        end = match.end()
        for run in _SAME_SCRIPT.finditer(word, start, end):
            text = run[0]
            if run.start() and _HIRAGANA.match(text):
                text = _JAPANESE_ENDINGS.sub("", text)
                if len(text) < _SHORTEST_HIRAGANA:
                    continue
            parts += [text[i : i + 2] for i in range(max(len(text) - 1, 1))]
    return [*parts, word[end:]] if end < len(word) else parts


@lru_cache(maxsize=4_096)
def _fold_character(character: str) -> tuple[str, ...]:
    """What a character is folded to: a blank, letters, or nothing."""
    plain = unicodedata.normalize("NFKD", character.translate(_CHARACTER_MAP))
    pieces = []
    for part in plain.translate(_CHARACTER_MAP):
        piece = "" if unicodedata.combining(part) else part.casefold().lower()
        if piece:
            pieces.append(" " if piece.isspace() else piece)
    return tuple(pieces)


STEM_WORD = re.compile(r"[^\W_]+(?:['.][^\W_]+|,\d{3}(?!\d))*")
_CONTRACTION = re.compile(r"'(?:s|re|ve|ll|d|m)$")
# Longer pieces between blanks belong to a script without blanks, or are no words: not cached.
_MAX_PIECE = 64
_ENDINGS = (
    *(("ization", ""), ("ational", "ate"), ("iveness", ""), ("fulness", ""), ("ousness", "")),
    *(("ations", "ate"), ("ation", "ate"), ("ements", ""), ("ement", ""), ("ments", "")),
    *(("ment", ""), ("ingly", ""), ("edly", ""), ("ities", ""), ("ity", ""), ("ness", "")),
    *(("ings", ""), ("ing", ""), ("ies", "y"), ("ied", "y"), ("ers", "er"), ("ed", "")),
    *(("ly", ""), ("es", ""), ("s", "")),
)
_ANY_ENDING = tuple(ending for ending, _ in _ENDINGS)
_SHORTEST_STEM = 3


def stems(text: str) -> tuple[str, ...]:
    """Content words of `text`, folded and without their endings, in order, repetitions kept.

    Scripts that put no blanks between words are cut into pairs of characters.
    """
    folded = number_words_to_digits(fold(text))
    pieces = folded.split()
    if max(map(len, pieces), default=0) > _MAX_PIECE:
        return _stem_words(folded)
    return tuple(chain.from_iterable(map(_cached_stems, pieces)))


def _stem_words(folded: str) -> tuple[str, ...]:
    return tuple(chain.from_iterable(map(_word_stems, STEM_WORD.findall(folded))))


# No word goes over a blank, so what stands between two can be kept: that is five times as fast.
_cached_stems = lru_cache(maxsize=65_536)(_stem_words)


@lru_cache(maxsize=65_536)
def _word_stems(word: str) -> tuple[str, ...]:
    """The stem of a folded word; none of a stopword, several of a run without blanks."""
    if word in STOPWORDS or _CONTRACTION.sub("", word) in STOPWORDS or word.endswith("n't"):
        return ()
    if word.isascii():
        return (strip_ending(word),)
    return tuple(map(strip_ending, _cut_runs(word)))


@lru_cache(maxsize=65_536)
def strip_ending(word: str) -> str:
    """`word`, a folded one, without its ending."""
    word = word.removesuffix("'s")
    if word == "none":  # a value, and no "non-"
        return word
    if len(word) <= _SHORTEST_STEM or word[0].isdigit():
        return word.replace(",", "") if word[0:1].isdigit() else word
    if word.endswith(_ANY_ENDING) and not word.endswith("ss"):
        for ending, instead in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
                word = word[: -len(ending)] + instead
                break
    if len(word) > _SHORTEST_STEM and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word[:-1] if len(word) > _SHORTEST_STEM and word[-1] in "ey" else word


# Words an answer says of its sources and of itself, no content of its own.
OF_SOURCES = (
    "passage passages context text document documents information answer question provided provide provides given based"
    " according mention mentioned mentions state stated states include includes including refer refers specific"
    " specifically following several various additionally therefore however overall note"
)
SOURCE_STEMS = frozenset(stems(OF_SOURCES))


@lru_cache(maxsize=16_384)
def content_stems(text: str) -> frozenset[str]:
    """Return the stems of the words of `text` that say something of the world, not of its sources."""
    return frozenset(stems(text)) - SOURCE_STEMS
