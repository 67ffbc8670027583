"""Numbers written out as words, turned into digits, so that "seven" and "7" are one number."""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["numbers", "with_digits"]

_UNITS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_TEENS = (
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
# "second" is left out: a second is a time, too.
_ORDINALS = {
    "first": "1st",
    "third": "3rd",
    **{
        f"{stem}th": f"{value}th"
        for stem, value in zip(
            ("four", "fif", "six", "seven", "eigh", "nin", "ten", "eleven", "twelf"),
            range(4, 13),
            strict=True,
        )
    },
}
_VALUES = {
    "zero": 0,
    **{word: value for value, word in enumerate((*_UNITS, *_TEENS), start=1)},
    **{word: value for value, word in zip(range(20, 100, 10), _TENS, strict=True)},
}
_BELOW_100 = rf"(?:(?:{'|'.join(_TENS)})[ -](?:{'|'.join(_UNITS)})|{'|'.join(_VALUES)})"
_BELOW_1000 = rf"(?:(?:{_BELOW_100} )?hundred(?:(?: and)? {_BELOW_100})?|{_BELOW_100})"
_SPELT = re.compile(
    # "5 thousand" stays as it is: its words say the number already.
    rf"(?<!\d )\b(?:(?:{_BELOW_1000} )?thousand(?:(?: and)? {_BELOW_1000})?|{_BELOW_1000})\b"
    rf"|\b(?:{'|'.join(_ORDINALS)})\b"
)
# Where such a number may begin. Python's search skips at once what begins with no letter of these,
# but only if nothing stands before them, so the letter before is looked at last.
_WORDS = (*_VALUES, *_ORDINALS, "hundred", "thousand")
_BEGINS = re.compile(rf"(?:{'|'.join(sorted({word[:3] for word in _WORDS}))})(?<!\w...)")
_NUMBER = re.compile(r"\d+(?:\.\d+|,\d{3}(?!\d))*")


@lru_cache(maxsize=4_096)
def with_digits(folded: str) -> str:
    """`folded`, a text of lower case, with its written-out numbers below a million as digits."""
    pieces: list[str] = []
    end = 0
    for begin in _BEGINS.finditer(folded):
        at = begin.start()
        if at >= end and (found := _SPELT.match(folded, at)):
            pieces += (folded[end:at], _digits(found))
            end = found.end()
    return "".join((*pieces, folded[end:])) if end else folded


def numbers(folded: str) -> set[str]:
    """The numbers of a folded text, in digits or in words, without their thousands commas."""
    return {number.replace(",", "") for number in _NUMBER.findall(with_digits(folded))}


def _digits(found: re.Match[str]) -> str:
    if found[0] in _ORDINALS:
        return _ORDINALS[found[0]]
    thousands, below = 0, 0
    for word in found[0].replace("-", " ").split():
        if word == "thousand":
            thousands, below = (below or 1) * 1000, 0
        elif word == "hundred":
            below = (below or 1) * 100
        else:
            below += _VALUES.get(word, 0)  # "and" adds nothing
    return str(thousands + below)
