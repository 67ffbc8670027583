"""How a p-value and a difference are written in a sentence, the same wherever one is said."""

from __future__ import annotations

from misslink.types import Estimate

__all__ = ["named_points", "p_value", "percent", "points", "whole_points"]

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


def percent(share: Estimate) -> str:
    """A share that has a value, in per cent with its interval, or with n where it has none.

    Examples
    --------
    >>> percent(Estimate(value=0.62, low=0.51, high=0.72, n=87, method="wilson"))
    '62 % [51, 72]'
    """
    if share.value is None:
        raise ValueError("a missing share is no per cent")
    ends = [None if end is None else whole_points(end) for end in (share.low, share.high)]
    value = f"{whole_points(share.value)} %"
    if not any(ends):
        return f"{value}, n = {share.n}"
    return f"{value} [{ends[0] or 'unbounded'}, {ends[1] or 'unbounded'}]"


def points(difference: Estimate) -> str:
    """A difference of two shares that has a value, in percentage points with its interval.

    Examples
    --------
    >>> points(Estimate(value=0.081, low=-0.004, high=0.13, n=87, method="bootstrap"))
    '+8 points [0, 13]'
    """
    if difference.value is None:
        raise ValueError("a missing difference is no number of points")
    ends = [None if end is None else whole_points(end) for end in (difference.low, difference.high)]
    # One end alone is open; without either there is no interval.
    interval = f" [{ends[0] or 'unbounded'}, {ends[1] or 'unbounded'}]" if any(ends) else ""
    return named_points(difference.value) + interval


def named_points(difference: float) -> str:
    """A difference of two shares in percentage points, with its sign.

    Examples
    --------
    >>> named_points(0.081), named_points(-0.001)
    ('+8 points', '0 points')
    """
    whole = whole_points(difference)
    plus = "" if whole == "0" or whole.startswith(_MINUS) else "+"
    return f"{plus}{whole} points"


def whole_points(share: float) -> str:
    """A share or a difference of two in per cent, without decimals.

    Its minus sign is a real one, and no 0 has one: what is written "-0" has no direction.

    Examples
    --------
    >>> whole_points(0.616), whole_points(-0.001)
    ('62', '0')
    """
    return str(round(100 * share)).replace("-", _MINUS)
