"""How the numbers of a gate are written: as many digits as it takes to tell them apart."""

from __future__ import annotations

from misslink.deciding.naming import bare, bounds
from misslink.types import Estimate

__all__ = ["cases_in_words", "drop_in_words", "interval_in_words", "written"]

_MINUS = "\u2212"
_SAME = 1e-9
_MOST = 6  # digits
_SECONDS = " s"
# Ranks weighed, agreement beyond chance, seconds: nobody reads these in per cent.
_DECIMAL = ("mrr", "ndcg", "map", "bpref", "rbp", "trust.", "latency", "helpfulness")


def written(metric: str, *numbers: float) -> list[str]:
    """Write numbers of one metric so that those that differ look different.

    Examples
    --------
    >>> written("recall@5", 0.81, 0.85), written("recall@5", 0.8497, 0.85)
    (['81 %', '85 %'], ['84.97 %', '85.00 %'])
    >>> written("ndcg@10", 0.731, 0.7), written("usage.calls", 1200, 80)
    (['0.73', '0.70'], ['1,200', '80'])
    >>> written("latency", 2.5, 3), written("latency", 0.0024)
    (['2.50 s', '3.00 s'], ['0.002 s'])
    """
    scale, unit, least = _scale(metric, numbers)
    apart = (*numbers, 0.0) if unit == _SECONDS else numbers  # no app takes 0.00 s
    for digits in range(least, _MOST + 1):
        texts = [_signed(f"{scale * number:,.{digits}f}") for number in apart]
        if _told_apart(apart, texts):
            break
    return [text + unit for text in texts[: len(numbers)]]


def interval_in_words(metric: str, change: Estimate) -> str:
    """Write a change with its interval; of a metric in per cent, in points.

    >>> found = Estimate(value=0.15, low=0.0604, high=0.27, n=40, method="bootstrap")
    >>> interval_in_words("recall@5", found), interval_in_words("mrr", found)
    ('15 points [6, 27]', '0.15 [0.06, 0.27]')
    """
    known = (change.value, change.low, change.high, 0.0)
    texts = written(metric, *(number for number in known if number is not None))
    value, *ends = [text.removesuffix(" %") for text in texts[:-1]]
    unit = "" if not texts[0].endswith(" %") else " point" if value == "1" else " points"
    return f"{value}{unit} [{', '.join(ends)}]" if ends else f"{value}{unit}"


def drop_in_words(metric: str, change: float) -> str:
    """Write the size of a change; of a metric in per cent, in points.

    Examples
    --------
    >>> drop_in_words("recall@5", 0.06), drop_in_words("recall@5", 0.0004)
    ('6 points', '0.04 points')
    >>> drop_in_words("mrr", 0.05), drop_in_words("recall@5", 0.01)
    ('0.05', '1 point')
    """
    (size, _) = written(metric, abs(change), 0.0)
    if not size.endswith(" %"):
        return size
    number = size.removesuffix(" %")
    return f"{number} point" if number == "1" else f"{number} points"


def cases_in_words(count: int) -> str:
    """Write how many questions.

    >>> cases_in_words(1), cases_in_words(6)
    ('1 question', '6 questions')
    """
    return "1 question" if count == 1 else f"{count:,} questions"


def _scale(metric: str, numbers: tuple[float, ...]) -> tuple[int, str, int]:
    """By what a number is multiplied, its unit, and its fewest digits."""
    name = bare(metric)
    within = bounds(name)
    if name.startswith(_DECIMAL) or within is None or within[1] > 1:
        whole = not name.startswith(_DECIMAL) and all(number == int(number) for number in numbers)
        return 1, _SECONDS if name.startswith("latency") else "", 0 if whole else 2
    return 100, " %", 0


def _told_apart(numbers: tuple[float, ...], texts: list[str]) -> bool:
    pairs = list(zip(numbers, texts, strict=True))
    return all(
        first[1] != other[1] or abs(first[0] - other[0]) <= _SAME
        for at, first in enumerate(pairs)
        for other in pairs[:at]
    )


def _signed(digits: str) -> str:
    size = digits.removeprefix("-")
    return digits.replace("-", _MINUS) if size.strip("0.") else size  # no "-0"
