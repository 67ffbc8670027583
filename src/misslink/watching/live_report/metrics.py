"""What is measured of the units of a live experiment: user metrics and guardrails."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from misslink.errors import InputError, known_names
from misslink.stats.unit_values import unit_values
from misslink.watching.live.records import KINDS, Exposure, Feedback
from misslink.watching.live_report.units import Unit

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["GUARDS", "Guardrail", "LiveMetric", "Measured", "guardrail", "measure", "metrics_of"]

_FAILED = ("fell_back", "failed")
# When, what it adds to numerator and denominator, and the request it is about, where one is known.
Event = tuple[float, float, float, str | None]
_PER_REQUEST = {"reformulation": "reformulations", "click": "clicks", "use": "uses"}


@dataclass(frozen=True)
class LiveMetric:
    """A ratio over the units of a variant.

    Parameters
    ----------
    name : str
    words : str
        What it is.
    better : {'high', 'low'}
    unit : {'share', 'rate', 'seconds', 'money', 'number'}
    kind : str
        Of the feedback, or the column of the requests, that it is made of.
    """

    name: str
    words: str
    better: Literal["high", "low"]
    unit: str
    kind: str

    @property
    def bounds(self) -> tuple[float, float] | None:
        """What a value can be at least and at most, where that is known."""
        if self.unit == "share":
            return (0.0, 1.0)
        return None if self.unit == "number" else (0.0, math.inf)


GUARDS = (
    LiveMetric("latency", "seconds to a complete answer", "low", "seconds", "latency"),
    LiveMetric("errors", "share of requests that failed or fell back", "low", "share", "errors"),
    LiveMetric("cost", "cost of a request", "low", "money", "cost"),
)
_KNOWN = (
    LiveMetric(
        "task_done", "share of answers about which users said done", "high", "share", "task_done"
    ),
    LiveMetric("satisfaction", "share of thumbs that are up", "high", "share", "thumbs"),
    LiveMetric("thumbs_up", "thumbs up a request, silence included", "high", "rate", "thumbs"),
    LiveMetric("reformulations", "questions asked again a request", "low", "rate", "reformulation"),
    LiveMetric("clicks", "clicks a request", "high", "rate", "click"),
    LiveMetric("uses", "passages used a request", "high", "rate", "use"),
)


@dataclass(frozen=True)
class Measured:
    """One metric of many units.

    Parameters
    ----------
    metric : LiveMetric
    where, at, above, below : array
        One entry an event: the place of its unit, when it was, and what it adds to the unit's
        numerator and denominator.
    before : tuple of (float or None)
        The metric of each unit in the pre-period, None where it had none.
    """

    metric: LiveMetric
    where: NDArray[Any]
    at: NDArray[Any]
    above: NDArray[Any]
    below: NDArray[Any]
    before: tuple[float | None, ...]

    def totals(self, until: float = math.inf) -> tuple[NDArray[Any], NDArray[Any]]:
        """Numerator and denominator of every unit, from what there was by `until`."""
        import numpy as np

        now = self.at <= until
        count = len(self.before)
        above = np.bincount(self.where[now], self.above[now], count)
        return above, np.bincount(self.where[now], self.below[now], count)

    def values(
        self, chosen: NDArray[Any], until: float = math.inf
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """`unit_values` of those `chosen` that have a denominator, and their places."""
        import numpy as np

        above, below = self.totals(until)
        places = np.flatnonzero(chosen & (below > 0))
        return unit_values(above[places], below[places]), places


@dataclass(frozen=True)
class Guardrail:
    """How much worse a metric may get.

    Parameters
    ----------
    metric : str
    margin : float
        From 0, in the unit of the metric; where `is_relative`, as a share of control's value.
    is_relative : bool
    """

    metric: str
    margin: float
    is_relative: bool


def guardrail(given: str) -> Guardrail:
    """Read a guardrail as the command line has it.

    Parameters
    ----------
    given : str
        NAME:at_most=NUMBER, the number in the metric's unit or in per cent of control's value.

    Raises
    ------
    InputError
        It is written otherwise, or the number is below 0.

    Examples
    --------
    >>> guardrail("latency:at_most=10%")
    Guardrail(metric='latency', margin=0.1, is_relative=True)
    """
    name, _, rule = given.partition(":")
    key, _, number = rule.partition("=")
    is_relative = number.endswith("%")
    try:
        margin = float(number.removesuffix("%")) / (100 if is_relative else 1)
    except ValueError:
        margin = math.nan
    if not name or key != "at_most" or not 0 <= margin < math.inf:
        raise InputError(
            f"the guardrail '{given}' cannot be read: write NAME:at_most=NUMBER, such as "
            "latency:at_most=0.2 (seconds more than control) or latency:at_most=10%"
        )
    return Guardrail(name, margin, is_relative)


def metrics_of(units: Sequence[Unit], lower_is_better: Sequence[str] = ()) -> list[LiveMetric]:
    """Return the user metrics that the feedback of `units` speaks of, the foremost first.

    Raises
    ------
    InputError
        `lower_is_better` names a kind of feedback of which there is none.
    """
    kinds = dict.fromkeys(one.kind for unit in units for one in unit.feedback)
    own = sorted(kind for kind in kinds if kind not in KINDS)
    for name in lower_is_better:
        if name not in own:
            raise InputError(
                f"--lower-is-better names '{name}', of which there is no feedback; "
                + known_names(name, own, " own kinds")
            )
    found = [metric for metric in _KNOWN if metric.kind in kinds]
    return found + [
        LiveMetric(
            name, f"mean of {name}", "low" if name in lower_is_better else "high", "number", name
        )
        for name in own
    ]


def measure(
    metric: LiveMetric, units: Sequence[Unit], weights: Mapping[str, float] | None = None
) -> Measured:
    """Measure one metric of all units, and of their pre-period.

    Parameters
    ----------
    metric : LiveMetric
    units : sequence of Unit
    weights : mapping of str to float, or None
        Of the requests; what is about a unit has the weight of its latest request by then, and a
        unit without weights none. None: all count alike.
    """
    import numpy as np

    rows = [
        (place, *event)
        for place, unit in enumerate(units)
        for event in _weighted(metric, unit, weights)
    ]
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    return Measured(
        metric=metric,
        where=table[:, 0].astype(np.int64),
        at=table[:, 1],
        above=table[:, 2],
        below=table[:, 3],
        before=tuple(_before(metric, unit) for unit in units),
    )


def _weighted(
    metric: LiveMetric, unit: Unit, weights: Mapping[str, float] | None
) -> Iterator[tuple[float, float, float]]:
    """When, and what it adds to numerator and denominator."""
    for at, above, below, about in _events(metric, unit.requests, unit.feedback):
        weight = 1.0
        if weights is not None:
            weight = weights.get(_latest(unit, at) if about is None else about, 0.0)
        yield at, above * weight, below * weight


def _latest(unit: Unit, at: float) -> str:
    """The last request by then; the first where there is none."""
    place = bisect.bisect_right(unit.requests, at, key=lambda one: one.at)
    return unit.requests[max(place - 1, 0)].id


def _before(metric: LiveMetric, unit: Unit) -> float | None:
    events = list(_events(metric, unit.before_requests, unit.before_feedback))
    below = math.fsum(event[2] for event in events)
    return math.fsum(event[1] for event in events) / below if below else None


def _events(
    metric: LiveMetric, requests: Sequence[Exposure], feedback: Sequence[Feedback]
) -> Iterator[Event]:
    if metric in GUARDS:
        yield from _guarded(metric.name, requests, feedback)
        return
    is_per_request = metric.unit == "rate"
    if is_per_request:
        yield from ((one.at, 0.0, 1.0, one.id) for one in requests)
    for one in feedback:
        if one.kind == metric.kind:
            value = float(one.value != 0) if one.kind in _PER_REQUEST else one.value
            yield one.at, value, 0.0 if is_per_request else 1.0, one.exposure


def _guarded(
    name: str, requests: Sequence[Exposure], feedback: Sequence[Feedback]
) -> Iterator[Event]:
    stayed = [one for one in requests if one.outcome != "left"]  # nobody knows what became of them
    if name == "errors":
        yield from ((one.at, float(one.outcome in _FAILED), 1.0, one.id) for one in stayed)
        return
    told = {one.exposure: one.value for one in feedback if one.kind == name and one.exposure}
    for one in stayed:
        own = one.latency_s if name == "latency" else one.cost
        value = told.get(one.id, own)  # the app knows better what its user waited for or paid
        if value is not None and 0 <= value < math.inf:
            yield one.at, value, 1.0, one.id
