"""Tell which numbers of a claim neither stand in a text nor follow from the numbers in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import date, timedelta
from functools import lru_cache
from itertools import chain, combinations, product

from misslink.matching.assertion import is_denied
from misslink.matching.quantities import (
    LONGEST_NUMBER,
    SCALES,
    Quantity,
    Value,
    find_quantities,
    number_values,
    other_amount,
    readable,
    same_amount,
    says,
)
from misslink.matching.same_place import NUMBERED, tokens

SMALL = 10  # whole numbers up to this count and list, and stand for themselves
ROUNDING = 0.02  # share by which a rounded number may differ
_MOST = 12  # numbers of quotes that are combined; more are a table
_PERCENTS = frozenset({"%", "percent"})
_TIMES = frozenset({"date", "clock", "weekday"})
_DURATIONS = frozenset({"time", "months"})
_FEW = 4  # of which all that arithmetic makes is tried
# How a text says itself that a number is rounded, and to which side.
_HEDGED = re.compile(
    r"(?<!\w)(?:(?P<up>almost|nearly|just under|fast|knapp)|(?P<down>over|more than|uber|mehr als)"
    r"|about|around|roughly|approximately|some|circa|ca\.|rund|etwa|ungefahr|~) ?[^\w\s]?$"
)
_ABOUT = 0.1  # share by which such a number may differ, at most
# In readable text: "a third of" is "a 3rd of".
_SHARES = {"half": 2, "3rd": 3, "third": 3, "quarter": 4, "5th": 5, "fifth": 5}
_SHARE = re.compile(r"\b(?:(\d) )?(half(?! an? | past)|(?:3rd|third|quarter|5th|fifth)(?=s? of\b))")
_PERCENT = re.compile(r"\s?(?:%|percent|per cent|prozent)")
_TOKEN = re.compile(
    r"(?<![\w.,\u0338])[-+]?(?:\d+(?:[.,\u00a0 ]\d{3})+(?:[.,]\d+)?|\d+(?:[.,]\d+)?)(?![\d])"
)
# "3rd", "1990s", "A320", "12:30", "3-1", "1.2.3" and "4x4" are names rather than amounts.
_NAMING = re.compile(
    r"(?:st|nd|rd|th|s|er|ste[rnsm]?|te[rnsm]?)\b|[:/]\d|\.\d|[a-z]+\d"
    r"|(?!(?:k|m|bn|x|[ckm]?m|[km]?g|ml|l|[kmgt]b|f|c|h|v|w|kw|mph|kmh?|min|sec|hz|ghz|mhz|px|pm|am|in|ft|lb|lbs|oz)\b)[a-z]+"
)
_NAMED = re.compile(rf"(?:\w[-/]|\d:|#|\b(?:{'|'.join(NUMBERED)}) )$")
_SCALES = {**SCALES, "hundred": 1e2, "k": 1e3, "m": 1e6}
_SCALE = re.compile(r"[ \u00a0-]?([a-z]+)")
_WORD = re.compile(r"\d+|[^\W\d]+")
_ONE = re.compile(r"(?<![\w-])[Oo]ne(?![\w-])")  # a pronoun more often than a number


@lru_cache(maxsize=4_096)
def numbers(text: str) -> tuple[tuple[str, tuple[float, ...], bool], ...]:
    """Return each number of a text: as written, the values it may have, and whether it is a name."""
    folded = readable(text)
    found = []
    for token in _TOKEN.finditer(folded):
        if len(token[0]) > LONGEST_NUMBER:
            continue
        rest = folded[token.end() : token.end() + 14]
        plain = token[0].lstrip("+-")
        values = {*number_values(plain), *number_values(plain.replace(",", "."))}
        scale = _SCALE.match(rest)
        if scale and scale[1] in _SCALES:
            values |= {value * _SCALES[scale[1]] for value in values}
        before = folded[max(0, token.start() - 10) : token.start()]
        naming = _NAMING.match(rest) is not None or _NAMED.search(before) is not None
        found.append((token[0], tuple(values), naming))
    return tuple(found)


def values_of(texts: Iterable[str]) -> frozenset[float]:
    """Return the values of all numbers of texts, those of names too."""
    return frozenset(value for text in texts for _, values, _ in numbers(text) for value in values)


@lru_cache(maxsize=4_096)
def doubtful_numbers(claim: str) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Return the numbers of a claim that need a basis: above 10 or with decimals, and no names.

    A year needs none: it is often added from general knowledge, and refusing it broke more than it caught.
    """
    return tuple(
        (token, values)
        for token, values, naming in numbers(claim)
        if not naming and not all(_is_year(v) or (v <= SMALL and v == int(v)) for v in values)
    )


def new_numbers(claim: str, known: Collection[float]) -> list[str]:
    """Return the numbers of `claim`, above 10 or with decimals, that are not in `known`."""
    return [
        token for token, values in doubtful_numbers(claim) if not any(v in known for v in values)
    ]


def unsaid_numbers(claim: str, texts: Sequence[str]) -> list[str]:
    """Return the numbers of `claim`, small ones too, that texts do not have, in no other unit either."""
    known = values_of(texts)
    return [
        token
        for token, values, _ in numbers(_ONE.sub(" ", claim))
        if known.isdisjoint(values) and not converts(token, claim, texts)
    ]


def underived_number(claim: str, quotes: Sequence[str], known: Collection[float]) -> str | None:
    """Return the first number of `claim`, above 10 or with decimals, that has no basis; else None.

    It has one if it is in `known`, the numbers of all that was shown and asked, or follows from the
    numbers of the quotes (`follows_from`), or is one of their quantities in another unit, up to 2%.
    """
    basis: frozenset[float] | None = None
    for token in new_numbers(claim, known):
        if basis is None:  # "68 years old in 2021" has its other number from the claim
            own = {value for value in values_of([claim]) if value in known or _is_year(value)}
            basis = values_of(quotes) | own
        if not _follows(token, claim, basis, quotes, ROUNDING):
            return token
        basis |= values_of([token])  # of the next step of a sum that the claim works out
    return None


def quantities_of(texts: Iterable[str]) -> tuple[Quantity, ...]:
    """Return the quantities of all texts."""
    return tuple(quantity for text in texts for quantity in find_quantities(readable(text)))


def unsaid_quantity(claim: str, said: Callable[[], Sequence[Quantity]]) -> str | None:
    """Return the first date, clock time or measure of `claim` that is not in `said`; else None.

    `said` returns the quantities of all that was shown and asked. A date may lack its year there.
    Of a measure only another unit with the same digits is told: "36 days" where 36 hours were shown.
    """
    own = [q for q in quantities_of([claim]) if q.unit and q.unit not in _PERCENTS]
    for quantity in filter(_is_exact, own):
        words = readable(claim)[quantity.start : quantity.end].strip()
        if any(says(one, quantity) or _is_date_of(one, quantity) for one in said()):
            continue
        if quantity.unit in _TIMES and _is_worked_out(quantity, own, said()):
            continue
        days = [one for one in said() if quantity.unit == one.unit == "weekday"]
        if not all(map(_is_exact, days)) and is_denied(claim, words):
            continue  # "weekdays" leave out Saturday
        same = [one for one in said() if one.digits == quantity.digits]
        if quantity.unit in _TIMES or (
            same and all(o.unit != quantity.unit and o.kinds & quantity.kinds for o in same)
        ):
            return words
    return None


def _is_worked_out(
    quantity: Quantity, claimed: Sequence[Quantity], said: Sequence[Quantity]
) -> bool:
    """Whether a claim states a time, a duration, and this as the time so much later or earlier."""
    starts = [one for one in claimed if any(says(other, one) for other in said)]
    return any(
        (kind, _shifted(at, of, sign * length)) in quantity.amounts
        for kind, at in chain.from_iterable(one.amounts for one in starts)
        for of, length in chain.from_iterable(one.amounts for one in claimed)
        if of in _DURATIONS and isinstance(length, float)
        for sign in (1, -1)
    )


def _shifted(at: Value, of: str, length: float) -> Value | None:
    """A clock time or a date so many seconds or months later."""
    if isinstance(at, float):
        return (at + length / 60) % 1440 if of == "time" else None
    year, month, day = at
    if of == "months":
        months = (month or 1) - 1 + int(length)
        return year and year + months // 12, months % 12 + 1, day
    with suppress(OverflowError, ValueError):
        then = date(year or 2001, month or 1, day or 1) + timedelta(seconds=length)
        return year and then.year, then.month, then.day
    return None


def _is_exact(quantity: Quantity) -> bool:
    """Whether it is no date without its day, which is often added from general knowledge, nor several days."""
    if quantity.unit == "weekday":
        return len(quantity.amounts) == 1
    return quantity.unit != "date" or any(
        isinstance(value, tuple) and value[-1] is not None for _, value in quantity.amounts
    )


def _is_date_of(one: Quantity, other: Quantity) -> bool:
    return one.unit == other.unit == "date" and not other_amount(one, other)


def follows_from(
    word: str, basis: Collection[float], *, is_percent: bool = False, rounding: float = ROUNDING
) -> bool:
    """Whether a number rounds one of `basis`, or is made of two of them, or is the sum of all.

    Rounds: differs by no more than the share `rounding`, or is as exact as it is written.
    Made of: as exact as it is written, their sum, difference, product, ratio, average or percentage.
    """
    own = [
        (value, _precision(token, value)) for token, values, _ in numbers(word) for value in values
    ]
    known = sorted(basis)[:_MOST]
    if any(
        abs(value - other) <= rounding * other
        for value, _ in own
        if not _is_year(value)
        for other in known
    ):
        return True
    results = {sum(known)} if len(known) > 1 else set[float]()
    for low, high in combinations(known, 2):
        results |= {low + high, high - low, low * high / 100}
        if is_percent and high:
            results |= {
                100 * low / high,
                100 * (1 - low / high),
                *((100 * (high / low - 1),) if low else ()),
            }
        if len(known) <= _FEW:
            results |= {low * high, (low + high) / 2, *((high / low,) if low else ())}
    results.update(known)
    return any(abs(value - other) <= margin for value, margin in own for other in results)


def _is_year(value: float) -> bool:
    return value == int(value) and 1_700 <= value < 2_100


def _precision(token: str, value: float, most: float = ROUNDING) -> float:
    """Half of the last place that a number is written to, at most a share of it."""
    digits = re.sub(r"[^\d.,]", "", token)
    decimals = len(re.split(r"[.,]", digits)[-1]) if value != int(value) else 0
    zeros = 0 if decimals else len(digits) - len(digits.rstrip("0"))
    return min(0.5 * 10.0 ** (zeros - decimals), max(most * value, 0.5 * 10.0**-decimals))


def converts(token: str, claim: str, quotes: Sequence[str]) -> bool:
    """Whether a number or a unit of a claim is, with the rest of its quantity, one of the quotes'."""
    digits, text = token.replace(",", "").replace(":", ".").lstrip("+-"), readable(claim)
    own = [
        q
        for q in find_quantities(text)
        if q.digits.lstrip("-") == digits or token in _WORD.findall(text[q.start : q.end])
    ]
    others = [quantity for quote in quotes for quantity in find_quantities(readable(quote))]
    return any(one.unit and same_amount(other, one, ROUNDING) for one in own for other in others)


def has_basis(
    pair: tuple[str, str], claim: str, sentences: Sequence[str], basis: Sequence[str]
) -> bool:
    """Whether a number of a claim follows from what stands in its place, or beside that."""
    mine, its = pair
    if mine.lstrip("-") == its.lstrip("-") or any(its == token.word for token in tokens(claim)):
        return False  # another sign, or two numbers that are exchanged
    known = values_of(basis) - values_of([mine])  # elsewhere it is of something else
    # "324" is no rounding of the "330" in its place: it is the more exact of the two.
    return _follows(mine, claim, known, sentences, rounding=0)


def _follows(
    token: str, claim: str, basis: Collection[float], texts: Sequence[str], rounding: float
) -> bool:
    """Whether a number of a claim follows from others, as a percentage also from a share in words."""
    percent = _is_percent(token, claim)
    return (
        follows_from(token, basis, is_percent=percent, rounding=rounding)
        or _rounds(token, claim, basis)
        or (percent and follows_from(token, _shares(texts)))
        or converts(token, claim, texts)
    )


def _rounds(token: str, claim: str, basis: Collection[float]) -> bool:
    """Whether a claim says that a number is rounded, and one of others rounds to it."""
    said = _HEDGED.search(readable(claim).partition(token)[0])
    rows = (values for written, values, _ in numbers(claim) if written == token)
    return said is not None and any(
        abs(value - other) * base <= min(_ABOUT * base, _precision(token, base, 1)) * value
        and not (other > value if said["up"] else said["down"] and other < value)
        for values in rows
        for base, value in product(filter(None, values), repeat=2)
        for other in basis
    )


def _shares(texts: Iterable[str]) -> set[float]:
    """The shares that texts have in words, as percentages."""
    found = (share for text in texts for share in _SHARE.finditer(readable(text)))
    return {100 * int(share[1] or 1) / _SHARES[share[2]] for share in found}


def _is_percent(token: str, claim: str) -> bool:
    plain = readable(claim)
    return _PERCENT.match(plain, plain.find(token) + len(token)) is not None
