"""Find what a sentence that says the same as a claim says otherwise, in the same place."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from misslink.matching.assertion import is_denied
from misslink.text.normalization import STOPWORDS, fold, number_words_to_digits, strip_ending

SAME = 0.75  # share of a claim's other content words that the sentence must have
_STRETCH = 4  # words that are looked at together
_FEWEST = 2  # of them; fewer make no sentence
_SHOUTED = 0.7  # share of words with a capital, from which these tell no name
_INITIAL = 2  # letters of what may be an initial, as "U.S."
_LONGEST = 100  # words of a sentence; a longer one is a list or a table
_WORD = re.compile(
    r"(?:(?<!\w)[-\u2212])?\d+(?:[.,:]\d+)*|[$\u20ac\u00a3\u00a5%\u00b0]|[\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]"  # a script without blanks
    r"|[^\W\d_\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f]+(?:['\u2019][^\W\d_]+)*"
)
# In each row, words between bars mean the same, and exclude the others of the row.
_EXCLUSIVE = """
euro,euros,eur,\u20ac|dollar,dollars,usd,$|pound,pounds,gbp,\u00a3|crown,crowns,krone,kroner|yen,jpy,\u00a5|franc,francs,chf|rupee,rupees,inr
monday,montag,weekday,weekdays|tuesday,dienstag,weekday,weekdays|wednesday,mittwoch,weekday,weekdays|thursday,donnerstag,weekday,weekdays|friday,freitag,weekday,weekdays|saturday,samstag,weekend,weekends|sunday,sonntag,weekend,weekends
january,januar,jan|february,februar,feb|march,marz|april,apr|may,mai|june,juni,jun|july,juli,jul|august,aug|september,sept|october,oktober,oct,okt|november,nov|december,dezember,dec,dez
north,northern|south,southern|east,eastern|west,western
since,seit|until,till,bis
before,vor|after,nach
most,many|few
all,every,each,alle,jeder|none
always,immer|never,nie
open,opened,offen,geoffnet|closed,geschlossen
hot|cold
left|right
first|last
higher,more,mehr|lower,less,fewer,weniger
maximum,most|minimum,least
inside|outside
allowed,permitted,erlaubt|prohibited,forbidden,banned,verboten
rise,rises,rose,risen,increase,increases,increased|fall,falls,fell,fallen,decrease,decreases,decreased
bought,buys|sold,sells
seconds,second|minutes,minute|hours,hour|days,day|weeks,week|months,month|years,year
mg,milligrams|g,grams|kg,kilograms,kilos
mm|cm,centimeters,centimetres|m,meters,metres|km,kilometers,kilometres|miles|feet|inches
ml|liters,litres,l|gallons
celsius|fahrenheit
thousand|million|billion
am|pm
male,man,men|female,woman,women
"""
_GROUPS: dict[str, list[tuple[int, int]]] = {}  # of a word: the row and the place in it
for _number, _row in enumerate(_EXCLUSIVE.strip().splitlines()):
    for _place, _words in enumerate(_row.split("|")):
        for _each in _words.split(","):
            _GROUPS.setdefault(_each, []).append((_number, _place))
_NUMBERED = (
    "step steps page pages chapter chapters figure figures table tables"
    " schritt schritte seite kapitel"
)
NUMBERED = frozenset(_NUMBERED.split())  # what a number behind them names, and does not count
_PRONOUNS = "one", "One"  # more often than a number
# Of these what is not the one is the other; of the rest it may be neither.
_HALVES = frozenset(("open", "closed", "allowed", "permitted", "prohibited", "forbidden", "banned"))
_ARTICLES = "one", "a", "an"
_MULTIPLYING = frozenset(("each", "every", "twice", "another"))
_PREFIXES = "un", "in", "im", "non", "dis", "ir", "il"
_AGENT = re.compile(r"\b(?:by|von|vom|durch)\b")
_COORDINATED = frozenset(("and", "or", "with", "und", "oder", "mit", "between", "zwischen", "both"))


class Token(NamedTuple):
    """A word: folded, its stem, whether it is written as a name or is a number, and what stands before it."""

    word: str
    stem: str
    is_name: bool
    is_number: bool
    article: str = ""

    @property
    def kind(self) -> str:
        """What it can be another one of."""
        if self.is_number:
            return "number"
        if self.word in _GROUPS:
            return f"row {_GROUPS[self.word][0][0]}"
        return "name" if self.is_name else "word"


Tokens = tuple[Token, ...]


@lru_cache(maxsize=65_536)
def _plain(word: str) -> str:
    """A word folded, with digits for a number word."""
    return fold(word) if word in _PRONOUNS else number_words_to_digits(fold(word)) or word


@lru_cache(maxsize=16_384)
def tokens(text: str) -> Tokens:
    """The words of a text that a claim may differ in."""
    words = list(_WORD.finditer(text))
    shouted = sum(match[0][0].isupper() for match in words) > _SHOUTED * len(words)  # a heading
    found: list[Token] = []
    end = -1  # of the name before
    for place, match in enumerate(words):
        raw = match[0]
        word = _plain(raw)
        is_number = word.lstrip("-")[:1].isdigit() and not (
            place and words[place - 1][0].lower() in NUMBERED  # "step 4" is a name
        )
        capital = raw[0].isupper() and len(raw) > _INITIAL and not shouted and word not in STOPWORDS
        is_name = capital and place > 0 and word not in _GROUPS  # at the beginning any word has one
        if word in STOPWORDS and word not in _GROUPS:
            continue
        if is_name and found and end == match.start() - 1:
            before = found.pop()
            both = f"{before.stem} {strip_ending(word)}"
            found.append(before._replace(word=f"{before.word} {word}", stem=both))
        else:
            stem = word.replace(",", "") if is_number else strip_ending(word)
            article = words[place - 1][0].lower() if place else ""
            found.append(Token(word, stem, is_name, is_number, article))
        end = match.end() if is_name else -1
    return tuple(found)


@lru_cache(maxsize=4_096)
def difference(claim: str, sentence: str) -> tuple[str, str] | None:
    """Return a word of a claim and the one in its place in a sentence that says the same otherwise.

    Numbers, names, and words that exclude each other count. None where the sentence is another one,
    or both agree.

    Examples
    --------
    >>> difference("A ticket costs 9 euros.", "A ticket costs 9 crowns.")
    ('euros', 'crowns')
    >>> difference("Some rooms have a bath.", "Most rooms have a bath.")
    """
    own, other = tokens(claim), tokens(sentence)
    own, other = _count_one(own, other, ("one",)), _count_one(other, own, _ARTICLES)
    if len(other) > _LONGEST or not own:
        return None
    stems, others = {each.stem for each in own}, {each.stem for each in other}
    new = stems - others
    if not new:
        return _exchanged(own, other, claim, sentence)
    replaced = list(_replaced(own, other))
    pairs = [
        (mine, its)
        for mine, its in replaced
        if mine.stem not in others and its.stem not in stems
        if _excludes(mine, its) and not _is_opposite_denied(mine, its, claim, sentence)
    ]
    rest = stems.difference(mine.stem for mine, _ in pairs)
    named = any(mine.is_name for mine, _ in pairs)  # both names may be told of in one sentence
    held = rest & others
    if not pairs or not held:
        return None
    held |= {mine.stem for mine, its in replaced if _groups(mine) & _groups(its)}  # a synonym
    same = rest == others.difference(its.stem for _, its in pairs)
    if not same and len(held) < max(_FEWEST, (1 if named else SAME) * len(rest)):
        return None
    return pairs[0][0].word, pairs[0][1].word


def _count_one(own: Tokens, other: Tokens, articles: Collection[str]) -> Tokens:
    """The words of a text, with a 1 before the one that has an article, and in the other text a number."""
    counted = {its.stem for number, its in pairwise(other) if number.is_number}
    places = [n for n, t in enumerate(own) if t.article in articles and t.stem in counted]
    if len(places) != 1 or not _MULTIPLYING.isdisjoint(
        {t.word for t in own} ^ {t.word for t in other}
    ):
        return own  # two make a sum
    one = Token("1", "1", is_name=False, is_number=True)
    return *own[: places[0]], one, *own[places[0] :]


def _replaced(own: Tokens, other: Tokens) -> Iterator[tuple[Token, Token]]:
    """The words of two texts that stand between, or beside, the same words."""
    matcher = SequenceMatcher(None, [t.stem for t in own], [t.stem for t in other], autojunk=False)
    for tag, start, end, left, right in matcher.get_opcodes():
        if tag == "replace" and end - start == 1 == right - left:
            yield own[start], other[left]
        elif tag == "replace" and max(end - start, right - left) <= _STRETCH:
            # Words that only one of them has may stand there, too: of a kind, there is one.
            for kind in {token.kind: None for token in own[start:end] if token.kind != "word"}:
                mine = [token for token in own[start:end] if token.kind == kind]
                its = [token for token in other[left:right] if token.kind == kind]
                if len(mine) == 1 == len(its):
                    yield mine[0], its[0]


def _groups(token: Token) -> frozenset[tuple[int, int]]:
    return frozenset(_GROUPS.get(token.word, ()))


def _excludes(mine: Token, its: Token) -> bool:
    if mine.is_number or its.is_number:
        return mine.is_number and its.is_number and _is_year(mine.word) == _is_year(its.word)
    groups, others = _groups(mine), _groups(its)
    if not {row for row, _ in groups}.isdisjoint(row for row, _ in others):
        return groups.isdisjoint(others)
    if _is_opposite(mine.word, its.word):
        return True
    return mine.is_name and its.is_name and not _same_name(mine.word, its.word)


def _is_opposite_denied(mine: Token, its: Token, claim: str, sentence: str) -> bool:
    """Whether one text says by a denial what the other says by an opposite."""
    if mine.is_number or mine.is_name:
        return False
    denied, its_denied = is_denied(claim, mine.word), is_denied(sentence, its.word)
    return denied != its_denied and (denied or mine.word in _HALVES or mine.word not in _GROUPS)


def _is_opposite(one: str, other: str) -> bool:
    """Whether one of two words is the other with "un" before it."""
    short, long = sorted((one, other), key=len)
    return long.endswith(short) and long.removesuffix(short) in _PREFIXES


def _same_name(one: str, other: str) -> bool:
    """Whether two names share a word, in whatever form."""
    return any(_same_word(a, b) for a in one.split() for b in other.split())


def _same_word(one: str, other: str) -> bool:
    beginning = max(3, min(len(one), len(other)) - 2)
    return one[:beginning] == other[:beginning]


def _is_year(word: str) -> bool:
    return len(word) == 4 and word.isdecimal() and word[:2] in {"17", "18", "19", "20"}


def _exchanged(own: Tokens, other: Tokens, claim: str, sentence: str) -> tuple[str, str] | None:
    """Two names, or two numbers, that stand in each other's place among the same words."""
    if len(own) < 3 or any(_AGENT.search(fold(text)) for text in (claim, sentence)):
        return None
    if not _COORDINATED.isdisjoint(fold(claim).split()):
        return None
    stems = [t.stem for t in own]
    row = [t for t in other if t.stem in stems]
    if len(row) != len(own) or sorted(t.stem for t in row) != sorted(stems):
        return None
    changed = [(mine, its) for mine, its in zip(own, row, strict=True) if mine.stem != its.stem]
    names = {t.stem for t in (*own, *row) if t.is_name}
    alike = all(mine.is_number and its.is_number for mine, its in changed) or all(
        {mine.stem, its.stem} <= names for mine, its in changed
    )
    return (changed[0][0].word, changed[0][1].word) if changed and alike else None
