"""How the numbers of a gate are written: as many digits as it takes to tell them apart."""

from __future__ import annotations

__all__ = ["cases_in_words", "drop_in_words", "written"]

_MINUS = "\u2212"
_SAME = 1e-9
_MOST = 6  # digits
# Ranks weighed, agreement beyond chance, seconds, money: nobody reads these in per cent.
_DECIMAL = ("mrr", "ndcg", "map", "bpref", "rbp", "trust.", "latency", "usage.", "helpfulness")


def written(metric: str, *numbers: float) -> list[str]:
    """Write numbers of one metric so that those that differ look different.

    Examples
    --------
    >>> written("recall@5", 0.81, 0.85), written("recall@5", 0.8497, 0.85)
    (['81 %', '85 %'], ['84.97 %', '85.00 %'])
    >>> written("ndcg@10", 0.731, 0.7)
    ['0.73', '0.70']
    """
    decimal = metric.startswith(_DECIMAL) or metric.endswith("risk_ratio")
    scale, unit, least = (1, "", 2) if decimal else (100, " %", 0)
    for digits in range(least, _MOST + 1):
        texts = [_signed(f"{scale * number:.{digits}f}") for number in numbers]
        if _told_apart(numbers, texts):
            break
    return [text + unit for text in texts]


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
    bare = size.removesuffix(" %")
    return f"{bare} point" if bare == "1" else f"{bare} points"


def cases_in_words(count: int) -> str:
    """Write how many questions.

    >>> cases_in_words(1), cases_in_words(6)
    ('1 question', '6 questions')
    """
    return "1 question" if count == 1 else f"{count:,} questions"


def _told_apart(numbers: tuple[float, ...], texts: list[str]) -> bool:
    pairs = list(zip(numbers, texts, strict=True))
    return all(
        first[1] != other[1] or abs(first[0] - other[0]) <= _SAME
        for at, first in enumerate(pairs)
        for other in pairs[:at]
    )


def _signed(digits: str) -> str:
    bare = digits.removeprefix("-")
    return digits.replace("-", _MINUS) if bare.strip("0.") else bare  # no "-0"
