"""What a text states that can be exchanged: numbers, units, dates, names, denials.

The patterns are this package's own: with those of the matcher, a judge would be tested on what it
can read alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple

from misslink.text.normalization import fold, stems

ValueKind = Literal["number", "date", "name"]


class Value(NamedTuple):
    """A number, date or name in a text."""

    kind: ValueKind
    text: str
    start: int
    end: int


MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
}
_MONTH_NAMES = [names.split() for names in MONTHS.values()]
_MONTH = "|".join(dict.fromkeys(name for names in _MONTH_NAMES for name in names))
_NUMBER_WORDS = (
    ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
    ["zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "elf", "zwölf"],
)
_WORD_NUMBER = "|".join(word for words in _NUMBER_WORDS for word in words)
_YEAR = r"(?:1[5-9]|20)\d\d"
_DATE = re.compile(
    rf"\b{_YEAR}-[01]\d-[0-3]\d\b|\b[0-3]?\d\.[01]?\d\.{_YEAR}\b"
    rf"|\b(?:[0-3]?\d\.? )?(?:{_MONTH}) (?:[0-3]?\d, )?{_YEAR}\b"
    rf"|\b[0-3]?\d\.? (?:{_MONTH})\b|\b(?:{_MONTH}) [0-3]?\d\b(?!,? \d)"
    rf"|(?<![\w.,$€£/-]){_YEAR}(?![\w%/]|[.,-]\d)"
)
_NUMBER = re.compile(
    r"(?<![\w.,:/\[(#^\u2020-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w\]):/]|[.,-]\d)"
    rf"|\b(?:{_WORD_NUMBER})\b"
)
_LIST_NUMBER = re.compile(r"(?m)^\s*\d+[.)]\s")
_NO_NAMES = (
    "I|Yes|No|The|A|An|It|This|That|These|Those|He|She|They|We|You|In|On|At|If|When|For|As|To|And|But"
    "|Or|Not|So|Der|Die|Das|Ein|Eine|Es|Er|Sie|Wir|Ja|Nein|Im|Am|Zum|Wenn|Und|Aber"
)
_NAME = re.compile(
    r"`[^`\n]{2,40}`|\b[a-zA-Z]\w*(?:[._]\w+)+(?:\(\))?|\b\w+\(\)"
    rf"|\b(?!(?:{_NO_NAMES}|{_MONTH})\b)[A-Z][\w'\u2019-]*(?: (?:of |van |von |de )?[A-Z][\w'\u2019-]*)*"
)
_WORD = re.compile(r"[^\W\d_]+")
_FUNCTION_WORDS = {
    "en": frozenset(
        [
            "the",
            "is",
            "are",
            "of",
            "and",
            "to",
            "in",
            "a",
            "an",
            "for",
            "with",
            "that",
            "was",
            "be",
            "by",
            "on",
            "it",
            "from",
        ]
    ),
    "de": frozenset(
        [
            "der",
            "die",
            "das",
            "ist",
            "sind",
            "und",
            "zu",
            "ein",
            "eine",
            "mit",
            "nicht",
            "von",
            "im",
            "den",
            "wird",
            "für",
            "auf",
        ]
    ),
}

# Units of one dimension; each is exchanged for the next one of its row.
_UNITS = (
    "seconds minutes hours days weeks months years",
    "second minute hour day week month year",
    "Sekunden Minuten Stunden Tage Wochen Monate Jahre",
    "mm cm m km", "mg g kg t", "ml l", "kB MB GB TB", "KB MB GB TB", "W kW MW", "kWh MWh GWh",
    "meters kilometers miles", "metres kilometres miles", "grams kilograms tons", "feet meters inches",
    "Meter Kilometer Meilen", "euros dollars pounds", "EUR USD GBP", "bar psi", "volts amperes watts",
    "million billion trillion", "Millionen Milliarden Billionen", "bytes bits", "knots degrees",
)  # fmt: skip
_NEXT_UNIT = {
    unit: row.split()[(place + 1) % len(row.split())]
    for row in _UNITS
    for place, unit in enumerate(row.split())
}
_SIGNS = {"€": "$", "$": "€", "£": "$"}
_MEASURE = re.compile(
    rf"(?<![\w.,])(?P<number>\d+(?:[.,]\d+)*|{_WORD_NUMBER})(?P<gap> ?)"
    rf"(?P<unit>%|€|{'|'.join(sorted(_NEXT_UNIT, key=len, reverse=True))})(?!\w)"
    r"|(?P<sign>[€$£])(?=\d)"
)

_DENIABLE = {
    "en": re.compile(r"\b(is|are|was|were|can|must|should|will|does|do|did)\b(?! not\b|n't)"),
    "de": re.compile(r"\b(ist|sind|war|waren|kann|können|muss|müssen|wird|werden)\b(?! nicht\b)"),
}
_DENIED = {
    "en": re.compile(
        r"\b(is|are|was|were|can|must|should|will|does|do|did)(?: not\b|n't\b)|\bcan(?:not)\b"
    ),
    "de": re.compile(r"\b(\w+) nicht\b"),
}
_NOT = {"en": "not", "de": "nicht"}
_OPPOSITES = tuple(
    tuple(pair.split("/"))
    for pair in [
        "always/never",
        "before/after",
        "more/less",
        "increases/decreases",
        "all/no",
        "allows/forbids",
        "minimum/maximum",
        "first/last",
        "above/below",
        "true/false",
        "immer/nie",
        "vor/nach",
        "mehr/weniger",
    ]
)
_LINKED = re.compile(r"\b(?:and|or|with|und|oder|mit|called|known|also|aka|as|like)\b|[,;:/()=]", re.IGNORECASE)  # fmt: skip
_MOST_BETWEEN = 60  # characters between two names whose roles are exchanged


def language_of(text: str) -> str | None:
    """Return 'en' or 'de' by function words; None for any other language."""
    words = [word.lower() for word in _WORD.findall(text)]
    counts = {name: sum(map(known.__contains__, words)) for name, known in _FUNCTION_WORDS.items()}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] >= max(1, len(words) / 12) else None


@lru_cache(maxsize=4_096)
def find_values(text: str) -> tuple[Value, ...]:
    """Return the dates, numbers and names of a text, in order."""
    taken = [span.span() for span in _LIST_NUMBER.finditer(text)]
    found: list[Value] = []
    patterns: tuple[tuple[ValueKind, re.Pattern[str]], ...] = (
        ("date", _DATE),
        ("number", _NUMBER),
        ("name", _NAME),
    )
    for kind, pattern in patterns:
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(start < stop and begin < end for begin, stop in taken):
                continue
            if kind == "name" and not _is_name(text, match[0], start):
                continue
            taken.append((start, end))
            found.append(Value(kind, match[0], start, end))
    return tuple(sorted(found, key=lambda value: value.start))


def _is_name(text: str, word: str, start: int) -> bool:
    """Whether a match is a name: a lone capitalized word that begins a sentence is none."""
    if not word[0].isupper() or " " in word or any(c.isupper() or c.isdigit() for c in word[1:]):
        return True
    before = text[:start].rstrip(" *_\"'`(")
    return bool(before) and before[-1] not in ".!?:\n-\u2022"


def states(text: str, value: str) -> bool:
    """Whether a text has a value as whole words."""
    return _as_word(value).search(text) is not None


def exchange(text: str, old: str, new: str) -> str:
    """Replace a value wherever it occurs as whole words."""
    return _as_word(old).sub(lambda _: new, text)


@lru_cache(maxsize=1_024)
def _as_word(value: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w]){re.escape(value)}(?![\w]|[.,]\d)")


def other_values(value: Value, texts: Iterable[str]) -> Iterator[str]:
    """Yield the values of the same kind in texts that share no word with it, each once."""
    own, seen = set(stems(value.text)) | {fold(value.text)}, set[str]()
    for text in texts:
        for other in find_values(text):
            words = {fold(other.text), *stems(other.text)}
            is_alike = other.kind == value.kind and _form(other) == _form(value)
            if is_alike and own.isdisjoint(words) and other.text not in seen:
                seen.add(other.text)
                yield other.text


def _form(value: Value) -> tuple[bool, ...]:
    """What two values need to have in common to stand in one place."""
    text = value.text
    if value.kind == "name":
        return (text[0] == "`", "." in text or "_" in text)
    return (text.isalpha(), value.kind == "date" and text.isdigit())


def near_value(value: Value) -> str | None:
    """Return a neighboring number or date; None for a name."""
    return _shifted(value, 1)


def far_value(value: Value) -> str | None:
    """Return a number or date far from it; None for a name."""
    return _shifted(value, 7)


def _shifted(value: Value, by: int) -> str | None:
    text = value.text
    for words in _NUMBER_WORDS:
        if text in words:
            return words[(words.index(text) + by) % len(words)]
    if value.kind == "name":
        return None
    year = re.search(_YEAR, text) if value.kind == "date" else None
    if year:
        return text.replace(year[0], str(int(year[0]) + (by if by == 1 else -37)))
    if value.kind == "date":
        for names in _MONTH_NAMES:
            for place, name in enumerate(names):
                if name in text:
                    return text.replace(name, names[(place + by) % len(names)])
        return None
    plain = float(text.replace(",", ""))
    digits = len(text.partition(".")[2])
    moved = plain + max(1, round(plain / 10)) if by == 1 else plain * 7 + 13
    return f"{moved:,.{digits}f}" if "," in text else f"{moved:.{digits}f}"


def exchange_unit(text: str) -> str | None:
    """Give the first measure of a text another unit of its dimension; None without a unit."""
    match = _MEASURE.search(text)
    if match is None:
        return None
    if sign := match["sign"]:
        return text[: match.start()] + _SIGNS[sign] + text[match.end() :]
    unit = match["unit"]
    other = {"%": " permille", "€": "$"}.get(unit) or match["gap"] + _NEXT_UNIT[unit]
    return text[: match.start("gap")] + other + text[match.end() :]


def deny(text: str) -> str | None:
    """Negate a sentence, or take its negation away; None where no rule fits."""
    language = language_of(text)
    if language is None:
        return None
    if denied := _DENIED[language].search(text):
        kept = denied[1] or "can"
        return text[: denied.start()] + kept + text[denied.end() :]
    if verb := _DENIABLE[language].search(text):
        return f"{text[: verb.end()]} {_NOT[language]}{text[verb.end() :]}"
    for one, other in _OPPOSITES:
        for old, new in ((one, other), (other, one)):
            if states(text, old):
                return exchange(text, old, new)
    return None


def exchange_roles(text: str) -> str | None:
    """Exchange two names of a sentence that some words tie together; None without such a pair."""
    names = [value for value in find_values(text) if value.kind == "name"]
    for one, other in pairwise(names):
        between = text[one.end : other.start]
        if fold(one.text) == fold(other.text) or _LINKED.search(between):
            continue
        if len(between) <= _MOST_BETWEEN and len(between.split()) >= 1 and between.strip():
            return text[: one.start] + other.text + between + one.text + text[other.end :]
    return None


@lru_cache(maxsize=4_096)
def numbers_of(text: str) -> frozenset[str]:
    """Return the digits of the numbers and dates of a text."""
    values = (value for value in find_values(text) if value.kind != "name")
    return frozenset(value.text.replace(",", "") for value in values)
