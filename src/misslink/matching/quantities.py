"""Quantities of texts: numbers with their units, and what amounts they mean."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_SCALES: dict[str, dict[str, float]] = {  # by kind of quantity, the value of each unit; English and German
    "time": {
        "ms millisecond milliseconds": 1e-3, "s sec secs second seconds sekunde sekunden": 1,
        "m min mins minute minutes minuten": 60, "h hr hrs hour hours stunde stunden": 3_600,
        "day days tag tage tagen": 86_400, "week weeks woche wochen": 604_800,
    },
    "length": {
        "mm millimeter millimeters millimetre millimetres": 1e-3, "m meter meters metre metres metern": 1,
        "cm centimeter centimeters centimetre centimetres": 1e-2, "foot feet ft": 0.3048,
        "km kilometer kilometers kilometre kilometres kilometern": 1e3, "inch inches": 0.0254,
        "yard yards": 0.9144, "mile miles meile meilen": 1_609.344,
    },
    "mass": {
        "mg milligram milligrams milligramm": 1e-3, "g gram grams gramm": 1,
        "kg kilo kilos kilogram kilograms kilogramm": 1e3, "t tonne tonnes tonnen": 1e6,
        "oz ounce ounces": 28.349523125, "lb lbs pound pounds": 453.59237,
    },
    "volume": {
        "ml milliliter milliliters millilitre millilitres": 1e-3, "cl": 1e-2, "dl": 0.1,
        "l liter liters litre litres litern": 1, "gallon gallons": 3.785411784,
    },
    "data": {"kb kilobyte kilobytes": 1e3, "mb megabyte megabytes": 1e6, "gb gigabyte gigabytes": 1e9,
             "tb terabyte terabytes": 1e12},
    "count": {
        "thousand tausend": 1e3, "m million millions mio millionen": 1e6,
        "bn billion billions mrd milliarde milliarden": 1e9, "trillion trillions": 1e12,
    },
    "percent": {"% percent prozent": 1},
    "celsius": {"\u00b0c celsius degrees": 1},
    "fahrenheit": {"\u00b0f fahrenheit degrees": 1},
    "morning": {"am a.m.": 1},
    "afternoon": {"pm p.m.": 1},
}  # fmt: skip
_READINGS: defaultdict[str, list[tuple[str, float]]] = defaultdict(list)  # "m" has several
for _kind, _units in _SCALES.items():
    for _names, _factor in _units.items():
        for _name in _names.split():
            _READINGS[_name].append((_kind, _factor))
_NAMES = "|".join(re.escape(name) for name in sorted(_READINGS, key=len, reverse=True))
# "1980s" is no time.
_QUANTITY = re.compile(
    rf"(?<![\w.,:])(-?\d+(?:,\d{{3}}(?!\d))*(?:\.\d+|:\d\d)*)(?:[ -]?(?:degrees )?(?<!\d(?=s\b))({_NAMES}))?(?![\w\u00b0%])"
)
_JOINT = re.compile(r",? (?:and |und )?")  # between the parts of "8 minutes and 20 seconds"
_GERMAN_THOUSANDS = re.compile(r"-?\d{1,3}(?:\.\d{3})+")


class Quantity(NamedTuple):
    """A number in a folded text: its place, its digits, its unit, and the amounts it may mean."""

    start: int
    end: int
    digits: str
    unit: str
    amounts: frozenset[tuple[str, float]]


def find_quantities(folded: str) -> Iterator[Quantity]:
    """Yield the quantities of a text, and after its parts what they make together."""
    before: Quantity | None = None
    for match in _QUANTITY.finditer(folded):
        digits, unit = match[1].replace(",", "").replace(":", "."), match[2] or ""
        values = [digits.replace(".", "")] if _GERMAN_THOUSANDS.fullmatch(digits) else []
        if digits.count(".") < 2:  # else a version
            values.append(digits)
        readings = _READINGS[unit] if unit else [("count", 1.0)]
        amounts = frozenset(
            (kind, round(float(value) * factor, 6)) for kind, factor in readings for value in values
        )
        found = Quantity(match.start(), match.end(), digits, unit, amounts)
        yield found
        if before and before.unit and unit and _JOINT.fullmatch(folded, before.end, found.start):
            sums = frozenset(
                (kind, round(more + less, 6))
                for kind, more in before.amounts
                for other, less in amounts
                if kind == other != "count" and 0 < less < more
            )
            if sums and before.unit != unit:
                found = Quantity(before.start, found.end, "", unit, sums)
                yield found
        before = found


class QuantityIndex:
    """The quantities of passages, to compare those of claims with.

    Parameters
    ----------
    texts : iterable of str
        Folded, with digits for number words.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._wording: dict[tuple[str, float], str] = {}
        self._by_digits: defaultdict[str, list[Quantity]] = defaultdict(list)
        for text in texts:
            for quantity in find_quantities(text):
                self._by_digits[quantity.digits.lstrip("-")].append(quantity)
                for amount in quantity.amounts:
                    self._wording.setdefault(amount, text[quantity.start : quantity.end])

    def in_passage_units(self, claim: str) -> str:
        """A folded claim whose quantities are written as in the passages, where they have them."""
        pieces, end = [claim], len(claim)
        for quantity in sorted(find_quantities(claim), key=lambda q: (-q.end, q.start)):
            wording = next(filter(None, map(self._wording.get, sorted(quantity.amounts))), None)
            if quantity.end > end or wording is None or self._has_same(quantity):
                continue
            head = pieces.pop()
            pieces += (head[quantity.end :], wording, head[: quantity.start])
            end = quantity.start
        return "".join(reversed(pieces))

    def other_units(self, claim: str) -> set[str]:
        """The numbers of a folded claim that the passages have with other units only."""
        return {
            quantity.digits
            for quantity in find_quantities(claim)
            if quantity.unit
            and (others := self._by_digits.get(quantity.digits.lstrip("-")))
            and all(other.unit and other.amounts.isdisjoint(quantity.amounts) for other in others)
        }

    def _has_same(self, quantity: Quantity) -> bool:
        others = self._by_digits.get(quantity.digits.lstrip("-"), ())
        return any(not other.amounts.isdisjoint(quantity.amounts) for other in others)
