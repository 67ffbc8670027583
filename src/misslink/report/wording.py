"""How the report writes numbers, in one place: a share, a difference, a ratio, and what is missing.

What could not be measured is written as "not measured" with its reason, never as 0 or a blank.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from misslink.stats import written
from misslink.types import Estimate

__all__ = [
    "MISSING",
    "Bar",
    "Shown",
    "decimal",
    "in_short",
    "p_value",
    "percent",
    "plain_number",
    "plural",
    "shown",
    "shown_decimal",
    "shown_difference",
]

MISSING = "not measured"
_MINUS = "\u2212"
# Ranking means are read as decimals by the people who use them; everything else is a share.
_DECIMAL = ("mrr", "ndcg", "map", "bpref", "rbp")
_UNITS = {
    "risk_difference": "points",
    "risk_ratio": "ratio",
    "unfaithful_avoided": "count",
    "context_tokens": "count",
}


@dataclass(frozen=True)
class Bar:
    """An interval drawn on an axis from 0 to 100: ``x`` of its value and of its two ends.

    ``signed``: the axis runs from -1 to 1, and its middle, 50, is no difference.
    """

    value: float
    low: float
    high: float
    signed: bool = False


@dataclass(frozen=True)
class Shown:
    """An estimate as people read it.

    Parameters
    ----------
    name : str
        The metric's name.
    value, interval : str
        Such as "62 %" and "[51, 72]"; "not measured" and "" where there is no value.
    n : int
        How many cases it rests on.
    reason : str
        Why there is no value, or no bounded interval; otherwise "".
    method : str
    bar : Bar or None
        Its plot, for shares with a bounded interval.
    """

    name: str
    value: str
    interval: str
    n: int
    reason: str
    method: str
    bar: Bar | None

    @property
    def measured(self) -> bool:
        """Whether there is a value."""
        return self.value != MISSING

    @property
    def brief(self) -> str:
        """Value and interval, such as "62 % [51, 72]"; the reason where there is no value."""
        if not self.measured:
            return f"{MISSING}: {self.reason}"
        return f"{self.value} {self.interval}".rstrip()

    @property
    def text(self) -> str:
        """Everything in one line, such as "62 % [51, 72], n = 87"."""
        return f"{self.brief}, n = {self.n}" if self.measured else self.brief


def shown(name: str, estimate: Estimate) -> Shown:
    """Write `estimate` in the unit of the metric `name`.

    Examples
    --------
    >>> shown("recall@5", Estimate(value=0.62, low=0.51, high=0.72, n=87, method="wilson")).text
    '62 % [51, 72], n = 87'
    >>> shown("recall@5", Estimate.missing("no case has a relevant passage")).text
    'not measured: no case has a relevant passage'
    """
    return _written(name, estimate, _unit(name))


def shown_decimal(name: str, estimate: Estimate) -> Shown:
    """Write `estimate` as a decimal, as kappa, AUROC and coefficients are read.

    Examples
    --------
    >>> found = Estimate(value=0.416, low=0.3, high=0.53, n=87, method="bootstrap")
    >>> shown_decimal("kappa", found).brief
    '0.42 [0.30, 0.53]'
    """
    return _written(name, estimate, "decimal")


def shown_difference(name: str, estimate: Estimate) -> Shown:
    """Write the difference of two values of the metric `name`, with its sign.

    Examples
    --------
    >>> found = Estimate(value=0.081, low=0.03, high=0.13, n=87, method="bootstrap")
    >>> shown_difference("recall@5", found).brief, shown_difference("mrr", found).brief
    ('+8 points [3, 13]', '+0.08 [0.03, 0.13]')
    """
    return _written(name, estimate, "gain" if _unit(name) == "decimal" else "points")


def _written(name: str, estimate: Estimate, unit: str) -> Shown:
    reason = estimate.reason or ""
    if estimate.value is None:
        return Shown(name, MISSING, "", estimate.n, reason, estimate.method, None)
    value, bare = _WRITERS[unit]
    ends = [None if end is None else bare(end) for end in (estimate.low, estimate.high)]
    if ends == [None, None]:
        interval = ""
    else:
        interval = f"[{ends[0] or 'unbounded'}, {ends[1] or 'unbounded'}]"
    return Shown(
        name=name,
        value=value(estimate.value),
        interval=interval,
        n=estimate.n,
        reason=reason,
        method=estimate.method,
        bar=_bar(estimate, signed=unit in ("points", "gain")) if unit in _DRAWN else None,
    )


def percent(value: float) -> str:
    """A share as whole per cent; what is nearly none or nearly all is not rounded to it.

    Examples
    --------
    >>> percent(0.616), percent(0.004), percent(0.999), percent(0.0)
    ('62 %', '<1 %', '>99 %', '0 %')
    """
    whole = 100 * value
    if 0 < whole < 0.5:  # noqa: PLR2004 -- would round to 0
        return "<1 %"
    if 99.5 <= whole < 100:  # noqa: PLR2004 -- would round to 100
        return ">99 %"
    return f"{written.whole_points(value)} %"


def decimal(value: float, digits: int = 2) -> str:
    """A number with a fixed count of digits and a real minus sign."""
    return _signed(f"{value:.{digits}f}")


def plural(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun: "1 case", "12 cases"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def p_value(p: float | None) -> str:
    """A p-value, small ones as a bound; "" where there is none.

    Examples
    --------
    >>> p_value(0.0132), p_value(0.00004), p_value(0.21), p_value(None)
    ('p = 0.013', 'p < 0.001', 'p = 0.21', '')
    """
    return "" if p is None else written.p_value(p)


def plain_number(value: float) -> str:
    """A number of no known unit, to three digits that count, whole ones in full.

    Examples
    --------
    >>> plain_number(812.0), plain_number(0.8149), plain_number(12345.6)
    ('812', '0.815', '12,346')
    """
    if value == int(value) or abs(value) >= 1000:  # noqa: PLR2004 -- no decimals from there
        return _signed(f"{value:,.0f}")
    return _signed(f"{value:.3g}")


def in_short(text: str, limit: int) -> str:
    """`text` on one line, cut to `limit` characters.

    Examples
    --------
    >>> in_short("one  two three", 9)
    'one two …'
    """
    line = " ".join(text[: 4 * limit].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _unit(name: str) -> str:
    base = name.partition("@")[0]
    return _UNITS.get(base, "decimal" if base.startswith(_DECIMAL) else "share")


def _bar(estimate: Estimate, *, signed: bool) -> Bar | None:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return None
    ends = [estimate.value, estimate.low, estimate.high]
    if signed:
        ends = [(x + 1) / 2 for x in ends]
    value, low, high = (round(100 * min(max(x, 0.0), 1.0), 1) for x in ends)
    return Bar(value, low, high, signed)


def _signed(digits: str) -> str:
    if digits.lstrip("-").strip("0.") == "":
        return digits.lstrip("-")  # no "-0"
    return digits.replace("-", _MINUS)


def _bare_percent(value: float) -> str:
    return percent(value).removesuffix(" %")


def _times(value: float) -> str:
    return f"{decimal(value, 1)} times"


def _bare_times(value: float) -> str:
    return decimal(value, 1)


def _gain(value: float) -> str:
    written = decimal(value)
    return written if value <= 0 or not written.strip("0.") else f"+{written}"


def _bare_count(value: float) -> str:
    return plain_number(round(value, 1))


_DRAWN = ("share", "decimal", "points", "gain")  # units whose axis has two ends
# By unit: how a value is written, and how an end of its interval is.
_WRITERS: dict[str, tuple[Callable[[float], str], Callable[[float], str]]] = {
    "share": (percent, _bare_percent),
    "decimal": (decimal, decimal),
    "points": (written.named_points, written.whole_points),
    "ratio": (_times, _bare_times),
    "gain": (_gain, decimal),
    "count": (_bare_count, _bare_count),
}
