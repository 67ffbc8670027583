"""Formats numbers, estimates, p-values and counts as text, in one place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from misslink.types import Estimate

_SMALLEST_P = 0.001  # what a permutation test can resolve
_MINUS_SIGN = "\u2212"


def format_p_value(p: float | None) -> str:
    """Write a p-value, small ones as a bound; "" if there is none.

    Examples
    --------
    >>> format_p_value(0.0132), format_p_value(0.00004), format_p_value(0.21), format_p_value(None)
    ('p = 0.013', 'p < 0.001', 'p = 0.21', '')
    """
    if p is None:
        return ""
    if p < _SMALLEST_P:
        return f"p < {_SMALLEST_P}"
    return f"p = {p:.3f}" if p < 0.1 else f"p = {p:.2f}"


def format_share_interval(share: Estimate) -> str:
    """Write a share as a percentage with its interval, or with n if it has no interval.

    Examples
    --------
    >>> format_share_interval(Estimate(value=0.62, low=0.51, high=0.72, n=87, method="wilson"))
    '62 % [51, 72]'
    """
    if share.value is None:
        raise ValueError("a missing share cannot be written as a percentage")
    value = f"{format_whole_points(share.value)} %"
    return value + (_format_interval(share, format_whole_points) or f", n = {share.n}")


def format_points_interval(difference: Estimate) -> str:
    """Write a difference of two shares in percentage points with its interval.

    Examples
    --------
    >>> format_points_interval(Estimate(value=0.081, low=-0.004, high=0.13, n=87, method="bootstrap"))
    '+8 points [0, 13]'
    """
    if difference.value is None:
        raise ValueError("a missing difference cannot be written in points")
    return format_points(difference.value) + _format_interval(difference, format_whole_points)


def _format_interval(estimate: Estimate, write: Callable[[float], str]) -> str:
    """The interval after a space; "" if both ends are open."""
    if estimate.low is None and estimate.high is None:
        return ""
    low, high = (
        "unbounded" if end is None else write(end) for end in (estimate.low, estimate.high)
    )
    return f" [{low}, {high}]"


def format_points(difference: float) -> str:
    """Write a difference of two shares in percentage points with its sign.

    Examples
    --------
    >>> format_points(0.081), format_points(-0.001)
    ('+8 points', '0 points')
    """
    whole = format_whole_points(difference)
    plus = "" if whole == "0" or whole.startswith(_MINUS_SIGN) else "+"
    return f"{plus}{whole} points"


def format_whole_points(share: float) -> str:
    """Write a share or a difference as whole percent, with a true minus sign and never "-0".

    Examples
    --------
    >>> format_whole_points(0.616), format_whole_points(-0.001)
    ('62', '0')
    """
    return str(round(100 * share)).replace("-", _MINUS_SIGN)


NOT_MEASURED = "not measured"
# Means of ranking metrics are written as decimals, all other metrics as percentages.
_DECIMAL_METRICS = ("mrr", "ndcg", "map", "bpref", "rbp")
_UNITS = {
    "risk_difference": "points",
    "risk_ratio": "ratio",
    "unfaithful_avoided": "count",
    "context_tokens": "count",
}


@dataclass(frozen=True)
class IntervalBar:
    """An interval drawn on an axis from 0 to 100: ``x`` of its value and of its two ends.

    ``signed``: the axis runs from -1 to 1, and its middle, 50, is no difference.
    """

    value: float
    low: float
    high: float
    signed: bool = False


@dataclass(frozen=True)
class FormattedEstimate:
    """An estimate as text.

    Parameters
    ----------
    name : str
        Of the metric.
    value, interval : str
        Such as "62 %" and "[51, 72]"; "not measured" and "" where there is no value.
    n : int
        Number of cases.
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
    bar: IntervalBar | None

    @property
    def measured(self) -> bool:
        """Whether there is a value."""
        return self.value != NOT_MEASURED

    @property
    def brief(self) -> str:
        """Value and interval, such as "62 % [51, 72]"; the reason where there is no value."""
        if not self.measured:
            return f"{NOT_MEASURED}: {self.reason}"
        return f"{self.value} {self.interval}".rstrip()

    @property
    def text(self) -> str:
        """Everything in one line, such as "62 % [51, 72], n = 87"."""
        return f"{self.brief}, n = {self.n}" if self.measured else self.brief


def format_estimate(name: str, estimate: Estimate) -> FormattedEstimate:
    """Write `estimate` in the unit of the metric `name`.

    Examples
    --------
    >>> format_estimate("recall@5", Estimate(value=0.62, low=0.51, high=0.72, n=87, method="wilson")).text
    '62 % [51, 72], n = 87'
    >>> format_estimate("recall@5", Estimate.missing("no case has a relevant passage")).text
    'not measured: no case has a relevant passage'
    """
    return _format_in_unit(name, estimate, _metric_unit(name))


def format_decimal_estimate(name: str, estimate: Estimate) -> FormattedEstimate:
    """Write `estimate` as a decimal, as kappa, AUROC and coefficients are read.

    Examples
    --------
    >>> found = Estimate(value=0.416, low=0.3, high=0.53, n=87, method="bootstrap")
    >>> format_decimal_estimate("kappa", found).brief
    '0.42 [0.30, 0.53]'
    """
    return _format_in_unit(name, estimate, "decimal")


def format_difference(name: str, estimate: Estimate) -> FormattedEstimate:
    """Write the difference of two values of the metric `name`, with its sign.

    Examples
    --------
    >>> found = Estimate(value=0.081, low=0.03, high=0.13, n=87, method="bootstrap")
    >>> format_difference("recall@5", found).brief, format_difference("mrr", found).brief
    ('+8 points [3, 13]', '+0.08 [0.03, 0.13]')
    """
    return _format_in_unit(name, estimate, "gain" if _metric_unit(name) == "decimal" else "points")


def _format_in_unit(name: str, estimate: Estimate, unit: str) -> FormattedEstimate:
    reason = estimate.reason or ""
    if estimate.value is None:
        return FormattedEstimate(name, NOT_MEASURED, "", estimate.n, reason, estimate.method, None)
    write, write_end = _FORMATTERS[unit]
    return FormattedEstimate(
        name=name,
        value=write(estimate.value),
        interval=_format_interval(estimate, write_end).lstrip(),
        n=estimate.n,
        reason=reason,
        method=estimate.method,
        bar=_interval_bar(estimate, signed=unit in ("points", "gain"))
        if unit in _UNITS_WITH_BAR
        else None,
    )


def format_percent(value: float) -> str:
    """Write a share as whole percent; nearly 0 % and nearly 100 % are not rounded to them.

    Examples
    --------
    >>> format_percent(0.616), format_percent(0.004), format_percent(0.999), format_percent(0.0)
    ('62 %', '<1 %', '>99 %', '0 %')
    """
    whole = 100 * value
    if 0 < whole < 0.5:
        return "<1 %"
    if 99.5 <= whole < 100:
        return ">99 %"
    return f"{format_whole_points(value)} %"


def format_decimal(value: float, digits: int = 2) -> str:
    """Write a number with a fixed count of decimals and a true minus sign."""
    return _with_minus_sign(f"{value:.{digits}f}")


def pluralize(count: int, singular: str, plural: str | None = None) -> str:
    """Write a count with its noun: "1 case", "12 cases"."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def format_number(value: float) -> str:
    """Write a number of no known unit: three significant digits, whole numbers in full.

    Examples
    --------
    >>> format_number(812.0), format_number(0.8149), format_number(12345.6)
    ('812', '0.815', '12,346')
    """
    if value == int(value) or abs(value) >= 1000:
        return _with_minus_sign(f"{value:,.0f}")
    return _with_minus_sign(f"{value:.3g}")


def shorten(text: str, limit: int) -> str:
    """Return `text` on one line, cut to `limit` characters.

    Examples
    --------
    >>> shorten("one  two three", 9)
    'one two …'
    """
    line = " ".join(text[: 4 * limit].split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _metric_unit(name: str) -> str:
    base = name.partition("@")[0]
    return _UNITS.get(base, "decimal" if base.startswith(_DECIMAL_METRICS) else "share")


def _interval_bar(estimate: Estimate, *, signed: bool) -> IntervalBar | None:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return None
    ends = [estimate.value, estimate.low, estimate.high]
    if signed:
        ends = [(x + 1) / 2 for x in ends]
    value, low, high = (round(100 * min(max(x, 0.0), 1.0), 1) for x in ends)
    return IntervalBar(value, low, high, signed)


def _with_minus_sign(digits: str) -> str:
    if digits.lstrip("-").strip("0.") == "":
        return digits.lstrip("-")  # no "-0"
    return digits.replace("-", _MINUS_SIGN)


def _bare_percent(value: float) -> str:
    return format_percent(value).removesuffix(" %")


def _format_ratio(value: float) -> str:
    return f"{format_decimal(value, 1)} times"


def _bare_ratio(value: float) -> str:
    return format_decimal(value, 1)


def _format_gain(value: float) -> str:
    written = format_decimal(value)
    return written if value <= 0 or not written.strip("0.") else f"+{written}"


def _bare_count(value: float) -> str:
    return format_number(round(value, 1))


_UNITS_WITH_BAR = ("share", "decimal", "points", "gain")  # units whose axis has two ends
# By unit: how a value is written, and how an end of its interval is.
_FORMATTERS: dict[str, tuple[Callable[[float], str], Callable[[float], str]]] = {
    "share": (format_percent, _bare_percent),
    "decimal": (format_decimal, format_decimal),
    "points": (format_points, format_whole_points),
    "ratio": (_format_ratio, _bare_ratio),
    "gain": (_format_gain, format_decimal),
    "count": (_bare_count, _bare_count),
}
