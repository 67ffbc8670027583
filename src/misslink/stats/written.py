"""How a p-value and a difference are written in a sentence, the same wherever one is said."""

from __future__ import annotations

from misslink.types import Estimate

__all__ = ["p_value", "points"]

_LEAST = 0.001  # the least p-value that is written; what a permutation test can tell apart
_MINUS = "\u2212"


def p_value(p: float) -> str:
    """A p-value, a small one as a bound.

    Examples
    --------
    >>> p_value(0.0132), p_value(0.00004), p_value(0.21)
    ('p = 0.013', 'p < 0.001', 'p = 0.21')
    """
    if p < _LEAST:
        return f"p < {_LEAST}"
    return f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"  # noqa: PLR2004 -- two digits that count


def points(difference: Estimate) -> str:
    """A difference of two shares that has a value, in percentage points with its interval.

    Examples
    --------
    >>> points(Estimate(value=0.081, low=-0.004, high=0.13, n=87, method="bootstrap"))
    '+8 points [0, 13]'
    """
    if difference.value is None:
        raise ValueError("a missing difference is no number of points")
    whole = _whole(difference.value)
    plus = "" if whole == "0" or whole.startswith(_MINUS) else "+"
    ends = ["?" if end is None else _whole(end) for end in (difference.low, difference.high)]
    interval = "" if ends == ["?", "?"] else f" [{ends[0]}, {ends[1]}]"
    return f"{plus}{whole} points{interval}"


def _whole(share: float) -> str:
    """Per cent without decimals, with a real minus sign and no minus zero."""
    return str(round(100 * share)).replace("-", _MINUS)
