"""How the report writes numbers, in one place: a share, a difference, a ratio, and what is missing.

What could not be measured is written as "not measured" with its reason, never as 0 or a blank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue, ValidationError

from misslink.types import Estimate

__all__ = [
    "MISSING",
    "Bar",
    "Shown",
    "decimal",
    "estimate_in",
    "mapping_in",
    "percent",
    "plural",
    "shown",
]

MISSING = "not measured"
_MINUS = "\u2212"
# Ranking means are read as decimals by the people who use them; everything else is a share.
_DECIMAL = ("mrr", "ndcg", "map", "bpref", "rbp")
_UNITS = {"risk_difference": "points", "risk_ratio": "ratio"}


@dataclass(frozen=True)
class Bar:
    """An interval drawn on an axis from 0 to 100: ``x`` of its value and of its two ends."""

    value: float
    low: float
    high: float


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
    reason = estimate.reason or ""
    if estimate.value is None:
        return Shown(name, MISSING, "", estimate.n, reason, estimate.method, None)
    unit = _unit(name)
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
        bar=_bar(estimate) if unit in ("share", "decimal") else None,
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
    return f"{_signed(f'{whole:.0f}')} %"


def decimal(value: float, digits: int = 2) -> str:
    """A number with a fixed count of digits and a real minus sign."""
    return _signed(f"{value:.{digits}f}")


def plural(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun: "1 case", "12 cases"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def estimate_in(summary: Mapping[str, JsonValue], *path: str, why: str = "") -> Estimate:
    """Read the estimate at `path` of a run's summary; a missing one says why.

    Parameters
    ----------
    summary : mapping
    path : str
        Keys from the outside in.
    why : str
        The reason to give where nothing is found.
    """
    found: JsonValue = dict(summary)
    for key in path:
        found = mapping_in(found).get(key)
    if not isinstance(found, Mapping):
        return Estimate.missing(why or "this run did not compute it")
    try:
        return Estimate.model_validate(dict(found))
    except ValidationError as problem:
        where = problem.errors()[0]
        place = ".".join(map(str, where["loc"])) or "the number"
        return Estimate.missing(f"the summary's entry cannot be read ({place}: {where['msg']})")


def mapping_in(value: JsonValue) -> Mapping[str, JsonValue]:
    """`value` where it is a JSON object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def _unit(name: str) -> str:
    base = name.partition("@")[0]
    return _UNITS.get(base, "decimal" if base.startswith(_DECIMAL) else "share")


def _bar(estimate: Estimate) -> Bar | None:
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return None
    value, low, high = (
        round(100 * min(max(x, 0.0), 1.0), 1) for x in (estimate.value, estimate.low, estimate.high)
    )
    return Bar(value, low, high)


def _signed(digits: str) -> str:
    if digits.lstrip("-").strip("0.") == "":
        return digits.lstrip("-")  # no "-0"
    return digits.replace("-", _MINUS)


def _bare_points(value: float) -> str:
    return _signed(f"{100 * value:.0f}")


def _bare_percent(value: float) -> str:
    return percent(value).removesuffix(" %")


def _named_points(value: float) -> str:
    whole = _bare_points(value)
    plus = "" if whole.startswith(_MINUS) or whole == "0" else "+"
    return f"{plus}{whole} points"


def _times(value: float) -> str:
    return f"{decimal(value, 1)} times"


def _bare_times(value: float) -> str:
    return decimal(value, 1)


# By unit: how a value is written, and how an end of its interval is.
_WRITERS: dict[str, tuple[Callable[[float], str], Callable[[float], str]]] = {
    "share": (percent, _bare_percent),
    "decimal": (decimal, decimal),
    "points": (_named_points, _bare_points),
    "ratio": (_times, _bare_times),
}
