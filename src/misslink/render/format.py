"""Formats numbers, estimates, metrics, p-values and counts as text, in one place."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from misslink.registry import judged_metrics, rank_metric_key, rank_metrics

if TYPE_CHECKING:  # the command line starts without the data models
    from misslink.types import Estimate

_SMALLEST_P = 0.001  # what a permutation test can resolve
_MINUS_SIGN = "\u2212"
MIN_PERCENT = 10  # of fewer, counts are written
_NEGLIGIBLE = 0.05  # an effect whose interval ends here says something even where it holds 0


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
    return f"{plus}{whole} point{'' if whole in ('1', f'{_MINUS_SIGN}1') else 's'}"


def format_whole_points(share: float) -> str:
    """Write a share or a difference as whole percent, with a true minus sign and never "-0".

    Examples
    --------
    >>> format_whole_points(0.616), format_whole_points(-0.001)
    ('62', '0')
    """
    return str(round(100 * share)).replace("-", _MINUS_SIGN)


NOT_MEASURED = "not measured"
_UNITS = {
    "risk_difference": "points",
    "risk_ratio": "ratio",
    "failures_avoided": "count",
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
        Such as "62%" and "[51, 72]"; "not measured" and "" where there is no value.
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
        """Value and interval, such as "62% [51, 72]"; the reason where there is no value."""
        if not self.measured:
            return f"{NOT_MEASURED}: {self.reason}"
        return f"{self.value} {self.interval}".rstrip()

    @property
    def text(self) -> str:
        """Everything in one line, such as "62% [51, 72], n = 87"."""
        if not self.measured or self.value.endswith(f" of {self.n}"):
            return self.brief
        return f"{self.brief}, n = {self.n:,}"


# The method of a share of cases, not a mean of scores, whose interval respects clusters.
CLUSTERED_SHARE = "cluster bootstrap of a share"


def format_estimate(name: str, estimate: Estimate) -> FormattedEstimate:
    """Write `estimate` in the unit of the metric `name`; of fewer than 10, no percentage.

    Examples
    --------
    >>> from misslink.types import Estimate
    >>> format_estimate("recall@5", Estimate(value=0.62, low=0.51, high=0.72, n=87, method="wilson")).text
    '62% [51, 72], n = 87'
    >>> format_estimate("hit@5", Estimate(value=0.75, low=0.41, high=0.93, n=8, method="wilson")).text
    '6 of 8'
    >>> format_estimate("recall@5", Estimate(value=0.7, low=0.4, high=0.9, n=8, method="bootstrap")).text
    '0.70 [0.40, 0.90], n = 8'
    >>> format_estimate("recall@5", Estimate.missing("no case has a relevant passage")).text
    'not measured: no case has a relevant passage'
    """
    return _format_in_unit(name, estimate, _metric_unit(name))


def format_share_of(share: Estimate, noun: str) -> str:
    """Write a measured share with what it is a share of.

    Examples
    --------
    >>> from misslink.types import Estimate
    >>> format_share_of(Estimate(value=0.62, low=0.51, high=0.72, n=87, method="wilson"), "pair")
    '62% [51, 72] of 87 pairs'
    >>> format_share_of(Estimate(value=0.75, low=0.41, high=0.93, n=8, method="wilson"), "pair")
    '6 of 8 pairs'
    """
    brief = format_estimate("share", share).brief
    return f"{brief.removesuffix(f' of {share.n}')} of {pluralize(share.n, noun)}"


def format_decimal_estimate(name: str, estimate: Estimate) -> FormattedEstimate:
    """Write `estimate` as a decimal, as kappa, AUROC and coefficients are read.

    Examples
    --------
    >>> from misslink.types import Estimate
    >>> found = Estimate(value=0.416, low=0.3, high=0.53, n=87, method="bootstrap")
    >>> format_decimal_estimate("kappa", found).brief
    '0.42 [0.30, 0.53]'
    """
    return _format_in_unit(name, estimate, "decimal")


def format_difference(name: str, estimate: Estimate) -> FormattedEstimate:
    """Write the difference of two values of the metric `name`, with its sign.

    Examples
    --------
    >>> from misslink.types import Estimate
    >>> found = Estimate(value=0.081, low=0.03, high=0.13, n=87, method="bootstrap")
    >>> format_difference("recall@5", found).brief, format_difference("mrr", found).brief
    ('+8 points [3, 13]', '+0.08 [0.03, 0.13]')
    """
    return _format_in_unit(name, estimate, "gain" if _metric_unit(name) == "decimal" else "points")


def _format_in_unit(name: str, estimate: Estimate, unit: str) -> FormattedEstimate:
    reason = estimate.reason or ""
    if estimate.value is None:
        return FormattedEstimate(name, NOT_MEASURED, "", estimate.n, reason, estimate.method, None)
    drawn = unit
    if estimate.n < MIN_PERCENT:
        unit = _FEW_UNITS.get(unit, unit)
    write, write_end = _FORMATTERS[unit]
    value, interval = write(estimate.value), _format_interval(estimate, write_end)
    if drawn == "share" != unit and estimate.method in ("wilson", CLUSTERED_SHARE):
        value, interval = f"{round(estimate.value * estimate.n)} of {estimate.n}", ""
    return FormattedEstimate(
        name=name,
        value=value,
        interval=interval.lstrip(),
        n=estimate.n,
        reason=reason,
        method=estimate.method,
        bar=_interval_bar(estimate, signed=drawn in ("points", "gain"))
        if drawn in _UNITS_WITH_BAR
        else None,
    )


@lru_cache(4096)  # a page writes the same few numbers again and again
def format_percent(value: float) -> str:
    """Write a share as whole percent; nearly 0% and nearly 100% are not rounded to them.

    Examples
    --------
    >>> format_percent(0.616), format_percent(0.004), format_percent(0.999), format_percent(0.0)
    ('62%', '<1%', '>99%', '0%')
    """
    whole = 100 * value
    if 0 < whole < 0.5:
        return "<1%"
    if 99.5 <= whole < 100:
        return ">99%"
    return f"{format_whole_points(value)}%"


def describe_negligible(effect: Estimate) -> str:
    """Return "at most 5%" for an effect that may be 0 and is no larger by its interval, else ""."""
    low, high = effect.low, effect.high
    is_small = low is not None and high is not None and low <= 0 <= high <= _NEGLIGIBLE
    return f"at most {format_percent(_NEGLIGIBLE)}" if is_small else ""


@lru_cache(4096)
def format_decimal(value: float, digits: int = 2) -> str:
    """Write a number with a fixed count of decimals and a true minus sign."""
    return _with_minus_sign(f"{value:.{digits}f}")


def format_cost(dollars: float) -> str:
    """Format what judge calls cost, with its currency.

    >>> format_cost(0.018677), format_cost(1234.5)
    ('0.019 USD', '1,234.50 USD')
    """
    return f"{dollars:,.2f} USD" if dollars >= 1 else f"{dollars:.2g} USD"


def as_sentence(text: str) -> str:
    """Return a text with a capital and a full stop; an empty one stays empty.

    >>> as_sentence("there are no cases")
    'There are no cases.'
    """
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def pluralize(count: int, singular: str, plural: str | None = None) -> str:
    """Write a count with its noun: "1 case", "12 cases"."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def list_first(items: Sequence[str], most: int, write: Callable[[str], str] = str) -> str:
    """Write the first items, and how many more there are.

    >>> list_first(["a", "b", "c"], 2, "'{}'".format)
    "'a', 'b' and 1 more"
    """
    more = len(items) - most
    return ", ".join(map(write, items[:most])) + (f" and {more:,} more" if more > 0 else "")


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
    return _UNITS.get(base, "decimal" if _is_decimal(name) else "share")


def _is_decimal(name: str) -> bool:
    """Whether a rank metric or a judged metric says that its mean is no percentage."""
    key = rank_metric_key(name)
    if key is not None:
        return rank_metrics.details(key).get("unit") == "decimal"
    return name in judged_metrics and judged_metrics.get(name).unit == "decimal"


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
    return format_percent(value).removesuffix("%")


def _format_ratio(value: float) -> str:
    return f"{format_decimal(value, 1)} times"


def _bare_ratio(value: float) -> str:
    return format_decimal(value, 1)


def _format_gain(value: float) -> str:
    written = format_decimal(value)
    return written if value <= 0 or not written.strip("0.") else f"+{written}"


def _bare_count(value: float) -> str:
    return format_number(round(value, 1))


_FEW_UNITS = {"share": "decimal", "points": "gain"}  # in place of percentages
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


_CUTOFF_SUFFIX = re.compile(r"(?:_at_|-at-|@)([0-9]+(?:[_.][0-9]+)?)$")
_CUTOFF = re.compile(r"@([1-9][0-9]*)$")
_LEVEL_PREFIXES = ("retrieval_", "generation_", "answer_")
_NAMESPACES = (
    "link_correctness",
    "link",
    "coverage",
    "trust",
    "usage",
    "replay",
    "whatif",
    "repeats",
)
_LINK_GROUPS = ("failures", "owners", "retrieval", "answers", "adjusted", "corrected", "table")
_OUTCOME_PREFIXES = ("link.failures.", "link.owners.", "link.retrieval.", "link.answers.")
_SIGNED_METRICS = frozenset({"kappa", "gwet_ac1", "risk_difference"})
_RATES = frozenset(
    (
        *("risk_given_none", "risk_given_some", "risk_given_all", "failed", "flaky"),
        *("found", "owner_right", "false_alarm"),
    )
)
_COUNT_PREFIXES = (
    "usage.",
    "link.table.",
    "link_correctness.table.",
    "latency",
)  # seconds are none, but as free
_UNBOUNDED = (0.0, float("inf"))


def metric_candidates(name: str) -> list[str]:
    """The metrics that the name of a gate may mean, the likeliest first.

    Examples
    --------
    >>> metric_candidates("retrieval_recall_at_5")[-1]
    'recall@5'
    >>> metric_candidates("link_attributable_fraction")[-1]
    'link.attributable_fraction'
    >>> metric_candidates("link_owners_retriever")[-1]
    'link.owners.retriever'
    """
    given_name = name.strip()
    cut = _CUTOFF_SUFFIX.sub(lambda at: "@" + at.group(1).replace("_", "."), given_name)
    candidates = [given_name, cut]
    candidates += [cut.removeprefix(level) for level in _LEVEL_PREFIXES if cut.startswith(level)]
    candidates += [candidate.replace("r_precision", "r-precision") for candidate in candidates]
    room = next((room for room in _NAMESPACES if given_name.startswith(f"{room}_")), None)
    if room is not None and (suffix := given_name.removeprefix(f"{room}_")):
        candidates.append(f"{room}.{suffix}")
        group, _, last = suffix.partition("_")
        if group in _LINK_GROUPS and last:
            candidates.append(f"{room}.{group}.{last}")
    return list(dict.fromkeys(candidates))


def metric_bounds(name: str) -> tuple[float, float] | None:
    """What the values of a metric lie between; None where its name does not say so.

    Examples
    --------
    >>> metric_bounds("recall@5"), metric_bounds("link_risk_difference"), metric_bounds("usage.calls")
    ((0.0, 1.0), (-1.0, 1.0), (0.0, inf))
    >>> metric_bounds("retrieval.recall@5"), metric_bounds("slices.category.easy.metrics.mrr")
    ((0.0, 1.0), (0.0, 1.0))
    >>> metric_bounds("coverage.faithfulness"), metric_bounds("coverage.faithfulness.failed"), metric_bounds("cases")
    ((0.0, 1.0), (0.0, inf), (0.0, inf))
    """
    metric = base_metric(metric_candidates(name)[-1])
    room, _, suffix = metric.partition(".")
    last = suffix.rpartition(".")[2]
    if last in _SIGNED_METRICS:
        return -1.0, 1.0
    if last.endswith("attributable_fraction"):
        return float("-inf"), 1.0
    if metric.startswith(_COUNT_PREFIXES) or metric in {"cases", "k"} or last == "risk_ratio":
        return _UNBOUNDED
    if room == "coverage":
        return _UNBOUNDED if "." in suffix else (0.0, 1.0)
    if room == "trust" or metric.startswith(_OUTCOME_PREFIXES) or last in _RATES:
        return 0.0, 1.0
    return None if "." in metric.partition("@")[0] else (0.0, 1.0)


def base_metric(metric: str) -> str:
    """A metric without the level, or the slice of the cases, that its path leads through.

    >>> base_metric("retrieval.recall@5"), base_metric("slices.category.easy.metrics.ndcg@5"), base_metric("rbp@0.8")
    ('recall@5', 'ndcg@5', 'rbp@0.8')
    """
    level, _, suffix = metric.partition(".")
    if f"{level}_" in _LEVEL_PREFIXES:
        return suffix
    inner = metric.rpartition(".metrics.")[2]
    return metric if "." in inner.partition("@")[0] or "." in inner.partition("@")[2] else inner


def metric_cutoff(metric: str) -> int | None:
    """How many passages a rank metric looks at; None where it looks at all of them.

    >>> metric_cutoff("recall@5"), metric_cutoff("mrr"), metric_cutoff("rbp@0.8")
    (5, None, None)
    """
    match = _CUTOFF.search(metric)
    return int(match[1]) if match else None


_TOLERANCE = 1e-9
_MAX_DIGITS = 6  # digits
_SECONDS_UNIT = " s"
# Agreement beyond chance and seconds are no percentages.
_DECIMAL_PREFIXES = ("trust.", "latency")


def format_values(metric: str, *numbers: float, n: int = MIN_PERCENT) -> list[str]:
    """Write numbers of one metric so that those that differ look different.

    Of `n` cases, fewer than 10, no percentage.

    Examples
    --------
    >>> format_values("recall@5", 0.81, 0.85), format_values("recall@5", 0.8497, 0.85)
    (['81%', '85%'], ['84.97%', '85.00%'])
    >>> format_values("ndcg@10", 0.731, 0.7), format_values("usage.calls", 1200, 80)
    (['0.73', '0.70'], ['1,200', '80'])
    >>> format_values("latency", 2.5, 3), format_values("latency", 0.0024)
    (['2.50 s', '3.00 s'], ['0.002 s'])
    >>> format_values("recall@5", 0.6, 0.8, n=5)
    ['0.60', '0.80']
    """
    scale, unit, least = _metric_scale(metric, numbers)
    if unit == "%" and n < MIN_PERCENT:
        scale, unit, least = 1, "", 2
    compared = (*numbers, 0.0) if unit == _SECONDS_UNIT else numbers  # no app takes 0.00 s
    for digits in range(least, _MAX_DIGITS + 1):
        texts = [_with_minus_sign(f"{scale * number:,.{digits}f}") for number in compared]
        if _distinguishable(compared, texts):
            break
    return [text + unit for text in texts[: len(numbers)]]


def format_change(metric: str, change: Estimate) -> str:
    """Write a change with its interval; of a metric in per cent, in points.

    >>> from misslink.types import Estimate
    >>> found = Estimate(value=0.15, low=0.0604, high=0.27, n=40, method="bootstrap")
    >>> format_change("recall@5", found), format_change("mrr", found)
    ('15 points [6, 27]', '0.15 [0.06, 0.27]')
    """
    numbers = (change.value, change.low, change.high, 0.0)
    texts = format_values(metric, *(x for x in numbers if x is not None), n=change.n)
    value, *ends = [text.removesuffix("%") for text in texts[:-1]]
    unit = "" if not texts[0].endswith("%") else " point" if value == "1" else " points"
    return f"{value}{unit} [{', '.join(ends)}]" if ends else f"{value}{unit}"


def format_drop(metric: str, change: float, n: int = MIN_PERCENT) -> str:
    """Write the size of a change; of a metric in per cent, in points.

    Examples
    --------
    >>> format_drop("recall@5", 0.06), format_drop("recall@5", 0.0004)
    ('6 points', '0.04 points')
    >>> format_drop("mrr", 0.05), format_drop("recall@5", 0.01)
    ('0.05', '1 point')
    """
    (size, _) = format_values(metric, abs(change), 0.0, n=n)
    if not size.endswith("%"):
        return size
    number = size.removesuffix("%")
    return f"{number} point{'' if number == '1' else 's'}"


def _metric_scale(metric: str, numbers: tuple[float, ...]) -> tuple[int, str, int]:
    """By what a number is multiplied, its unit, and its fewest digits."""
    name = base_metric(metric)
    within = metric_bounds(name)
    is_decimal = name.startswith(_DECIMAL_PREFIXES) or _is_decimal(name)
    if is_decimal or within is None or within[1] > 1:
        whole = not is_decimal and all(number == int(number) for number in numbers)
        return 1, _SECONDS_UNIT if name.startswith("latency") else "", 0 if whole else 2
    return 100, "%", 0


def _distinguishable(numbers: tuple[float, ...], texts: list[str]) -> bool:
    pairs = list(zip(numbers, texts, strict=True))
    return all(
        first[1] != other[1] or abs(first[0] - other[0]) <= _TOLERANCE
        for index, first in enumerate(pairs)
        for other in pairs[:index]
    )
