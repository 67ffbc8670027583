"""User metrics and guardrails, per unit of a live experiment."""

from __future__ import annotations

import bisect
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from misslink.errors import InputError, known_names
from misslink.io.numbers import as_finite, parse_decimal
from misslink.io.rows import read_rows
from misslink.live.assignment import SALT_ENV, keyed_hash, unit_hash
from misslink.live.log import KINDS, Exposure, Feedback, LiveData
from misslink.stats.experiments import AllocationStratum, unit_values

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Rows are written by several threads and processes, a request when it ends; what lies further
# back than this was not a matter of who wrote first.
_CLOCK_SLACK_S = 60.0
_LAST_COUNTS = ("thumbs", "task_done")  # of one request the last counts


@dataclass(slots=True)
class Unit:
    """A user or session.

    Parameters
    ----------
    id : str
        Its hash.
    variant : str
        Where it was first; what it did elsewhere later is left out.
    since : float
        Its first request, in seconds since 1970.
    requests, feedback : list
        What counts, in the order of the log.
    before_requests, before_feedback : list
        The same from before a ramp opened, when everybody got control.
    """

    id: str
    variant: str
    since: float
    requests: list[Exposure] = field(default_factory=list)
    feedback: list[Feedback] = field(default_factory=list)
    before_requests: list[Exposure] = field(default_factory=list)
    before_feedback: list[Feedback] = field(default_factory=list)


@dataclass(frozen=True)
class SortedUnits:
    """A log sorted out.

    Parameters
    ----------
    units : tuple of Unit
        By their first request.
    strata : tuple of Stratum
        How many units first came under which planned split.
    odd : mapping of str to int
        What is not as it should be, or was left out: name -> how many.
    """

    units: tuple[Unit, ...]
    strata: tuple[AllocationStratum, ...]
    odd: Mapping[str, int]


def sort_units(live: LiveData) -> SortedUnits:
    """Group assigned requests and feedback by unit, under the unit's first variant."""
    # Requests from before a ramp opened are the pre-period.
    odd: Counter[str] = Counter()
    units: dict[str, Unit] = {}
    strata: dict[tuple[tuple[str, float], ...], Counter[str]] = defaultdict(Counter)
    before: dict[str, list[Exposure]] = defaultdict(list)
    place: dict[str, Exposure] = {}
    moved: set[str] = set()
    for exposure in live.exposures:
        place[exposure.id] = exposure
        if exposure.mode in ("shadow", "interleaved"):
            continue
        if exposure.mode != "assigned" or exposure.unit is None or exposure.variant is None:
            odd["requests_not_assigned"] += 1
        elif not exposure.open_share:
            before[exposure.unit].append(exposure)
            odd["requests_before_ramp"] += 1
        else:
            unit = units.get(exposure.unit)
            if unit is None:
                unit = units[exposure.unit] = Unit(exposure.unit, exposure.variant, exposure.at)
                strata[tuple(sorted(live.planned(exposure).items()))][exposure.variant] += 1
            if unit.variant == exposure.variant:
                unit.requests.append(exposure)
            else:
                moved.add(exposure.unit)
                odd["requests_after_move"] += 1
    odd["units_in_several_variants"] = len(moved)
    for name, requests in before.items():
        if name in units:
            units[name].before_requests = requests
    _sort_feedback(live, units, place, odd)
    odd["clock_went_back"] = _steps_back(live)
    odd["rows_lost"] = live.lost
    for unit in units.values():
        with_feedback = {feedback.exposure for feedback in unit.feedback}
        if None not in with_feedback:  # what is about the unit may be about any of its requests
            silent = sum(request.id not in with_feedback for request in unit.requests)
            odd["requests_without_feedback"] += silent
    anomalies = {name: count for name, count in odd.items() if count}
    ordered = tuple(sorted(units.values(), key=lambda unit: (unit.since, unit.id)))
    groups = tuple(AllocationStratum(dict(plan), dict(counts)) for plan, counts in strata.items())
    return SortedUnits(ordered, groups, anomalies)


def _sort_feedback(
    live: LiveData, units: Mapping[str, Unit], place: Mapping[str, Exposure], odd: Counter[str]
) -> None:
    last: dict[tuple[str | None, str], Feedback] = {
        (feedback.exposure, feedback.kind): feedback
        for feedback in live.feedback
        if feedback.exposure is not None and feedback.kind in _LAST_COUNTS
    }
    for feedback in live.feedback:
        if last.get((feedback.exposure, feedback.kind), feedback) is not feedback:
            odd["feedback_changed_later"] += 1
            continue
        about = place.get(feedback.exposure) if feedback.exposure is not None else None
        if feedback.exposure is not None and about is None:
            odd["feedback_to_unknown_request"] += 1
        if about is not None and feedback.at < about.at - _CLOCK_SLACK_S:
            odd["feedback_before_its_request"] += 1
        if about is not None and about.mode in ("shadow", "interleaved"):
            continue
        unit = units.get(feedback.unit) if feedback.unit is not None else None
        if unit is None:
            odd["feedback_of_unknown_users"] += 1
        elif about is None:
            is_early = bool(unit.before_requests) and feedback.at < unit.since
            (unit.before_feedback if is_early else unit.feedback).append(feedback)
        elif about.mode != "assigned" or (about.open_share and about.variant != unit.variant):
            odd["feedback_left_out"] += 1
        else:
            (unit.feedback if about.open_share else unit.before_feedback).append(feedback)


def _steps_back(live: LiveData) -> int:
    latest, count = float("-inf"), 0
    for exposure in live.exposures:
        if exposure.mode == "shadow":
            continue
        ended = exposure.at + (exposure.latency_s or 0.0)
        if ended < latest - _CLOCK_SLACK_S:
            count += 1
            latest = ended  # one step back is counted once, not with every row after it
        latest = max(latest, ended)
    return count


_DEFAULT_COLUMN = "value"  # the column that serves every metric without one of its own


def read_past(path: Path, live: LiveData, metrics: Sequence[str]) -> dict[str, dict[str, float]]:
    """Read covariates of units from before an experiment.

    Parameters
    ----------
    path : Path
        CSV or JSONL with ``unit`` (the id of the user or session, as the app knows it) and
        ``value``, or a column with the name of a metric.
    live : Live
        The experiment, whose hash of units is looked up.
    metrics : sequence of str
        Of the report; other columns are passed over.

    Returns
    -------
    dict of str to dict of str to float
        By hash of the unit, and by column.

    Raises
    ------
    InputError
        The file cannot be read, has a line without a unit or a value that is no number, names a
        unit twice, or none of the experiment's, or the log was written with another salt.
    """
    rows = list(read_rows(path, str(path)))
    check = keyed_hash("check", "", live.experiment)[:8]
    if all(plan.salt_check != check for plan in live.plans):
        raise InputError(
            "The users of this file cannot be matched with the log, which has another salt. "
            f"Set {SALT_ENV} to the app's salt.",
            path=path,
        )
    past: dict[str, dict[str, float]] = {}
    for row in rows:
        unit = row.data.get("unit")
        if unit is None or isinstance(unit, bool | list | dict):
            raise row.error("The line has no user or session id. Add it as 'unit'.", "unit")
        key = unit_hash(str(unit), live.experiment)
        if key in past:
            raise row.error(f"The unit '{unit}' occurs twice. Keep one line for each.")
        past[key] = {}
        for name, value in row.data.items():
            if name not in (_DEFAULT_COLUMN, *metrics):
                continue
            number = as_finite(parse_decimal(str(value).strip()))
            if number is None:
                raise row.error(
                    f"'{value}' is not a number. Leave the field empty if the value is unknown.",
                    name,
                )
            past[key][name] = number
    if not any(past.values()):
        raise InputError(
            f"No column is named {_DEFAULT_COLUMN} or like a metric ({', '.join(metrics)}). Rename one.",
            path=path,
        )
    if past.keys().isdisjoint(exposure.unit for exposure in live.exposures):
        raise InputError(
            "None of these users is in the experiment. Use the ids that the app passes to the Router.",
            path=path,
        )
    return past


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
    LiveMetric("cost", "cost per request", "low", "money", "cost"),
)
_KNOWN_METRICS = (
    LiveMetric(
        "task_done", "share of answers that users marked as done", "high", "share", "task_done"
    ),
    LiveMetric("satisfaction", "share of thumbs that are up", "high", "share", "thumbs"),
    LiveMetric(
        "thumbs_up",
        "thumbs up per request, with requests without feedback",
        "high",
        "rate",
        "thumbs",
    ),
    LiveMetric("reformulations", "reworded questions per request", "low", "rate", "reformulation"),
    LiveMetric("clicks", "clicks per request", "high", "rate", "click"),
    LiveMetric("uses", "passages used per request", "high", "rate", "use"),
)


@dataclass(frozen=True)
class MeasuredUnits:
    """One metric of many units.

    Parameters
    ----------
    metric : LiveMetric
    units : sequence of Unit
    variants, since : array
        Of each unit.
    where, at, above, below : array
        One entry an event: the place of its unit, when it was, and what it adds to the unit's
        numerator and denominator.
    before : sequence of (float or None)
        The covariate of each unit: the metric in the pre-period; None where it is not known.
    """

    metric: LiveMetric
    units: Sequence[Unit]
    variants: NDArray[Any]
    since: NDArray[Any]
    where: NDArray[Any]
    at: NDArray[Any]
    above: NDArray[Any]
    below: NDArray[Any]
    before: Sequence[float | None]

    def values(self, variant: str, until: float = math.inf) -> tuple[NDArray[Any], NDArray[Any]]:
        """`unit_values` of a variant's units, from what there was by `until`, and their places."""
        import numpy as np

        now = self.at <= until
        above, below = (
            np.bincount(self.where[now], column[now], len(self.units)).astype(np.float64)
            for column in (self.above, self.below)
        )
        chosen = (self.variants == variant) & (self.since <= until) & (below > 0)
        places = np.flatnonzero(chosen)
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
            f"The guardrail '{given}' cannot be read. Write NAME:at_most=NUMBER, such as "
            "latency:at_most=0.2 (seconds more than control) or latency:at_most=10%"
        )
    return Guardrail(name, margin, is_relative)


def metrics_of(units: Sequence[Unit], lower_is_better: Sequence[str] = ()) -> list[LiveMetric]:
    """Return the user metrics that have feedback in `units`, the most important first."""
    kinds = dict.fromkeys(feedback.kind for unit in units for feedback in unit.feedback)
    own = sorted(kind for kind in kinds if kind not in KINDS)
    for name in lower_is_better:
        if name not in own:
            hint = known_names(name, own, " custom kinds") if own else "there is no custom kind"
            raise InputError(f"--lower-is-better: no feedback is of the kind '{name}'; {hint}")
    metrics = [metric for metric in _KNOWN_METRICS if metric.kind in kinds]
    return metrics + [
        LiveMetric(
            name, f"mean of {name}", "low" if name in lower_is_better else "high", "number", name
        )
        for name in own
    ]


def measure(
    metric: LiveMetric,
    units: Sequence[Unit],
    weights: Mapping[str, float] | None = None,
    past: Mapping[str, Mapping[str, float]] | None = None,
) -> MeasuredUnits:
    """Measure one metric of all units, and of their pre-period.

    Parameters
    ----------
    metric : LiveMetric
    units : sequence of Unit
    weights : mapping of str to float, or None
        Of the requests; what is about a unit has the weight of its latest request by then, and a
        unit without weights none. None: all count alike.
    past : mapping of str to mapping of str to float, or None
        As `read_past` returns it. None: the pre-period in the log itself.
    """
    import numpy as np

    rows: list[tuple[float, ...]] = []
    before: list[float | None] = []
    for place, unit in enumerate(units):
        for at, above, below, about in _events(metric, unit.requests, unit.feedback):
            weight = 1.0
            if weights is not None:
                # About a unit: the last request by then; the first where there is none.
                later = bisect.bisect_right(unit.requests, at, key=lambda request: request.at)
                latest = unit.requests[max(later - 1, 0)].id
                weight = weights.get(latest if about is None else about, 0.0)
            rows.append((place, at, above * weight, below * weight))
        if past is not None:
            covariates = past.get(unit.id, {})
            before.append(covariates.get(metric.name, covariates.get(_DEFAULT_COLUMN)))
        else:
            events = list(_events(metric, unit.before_requests, unit.before_feedback))
            count = math.fsum(event[2] for event in events)
            before.append(math.fsum(event[1] for event in events) / count if count else None)
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    return MeasuredUnits(
        metric=metric,
        units=units,
        variants=np.array([unit.variant for unit in units]),
        since=np.array([unit.since for unit in units]),
        where=table[:, 0].astype(np.int64),
        at=table[:, 1],
        above=table[:, 2],
        below=table[:, 3],
        before=before,
    )


def _events(
    metric: LiveMetric, requests: Sequence[Exposure], feedback: Sequence[Feedback]
) -> Iterator[Event]:
    name = metric.name
    if metric in GUARDS:
        given = {
            feedback_item.exposure: feedback_item.value
            for feedback_item in feedback
            if feedback_item.kind == name
        }
        for request in requests:
            if request.outcome == "left":  # nobody knows what became of it
                continue
            value: float | None = float(request.outcome in _FAILED)
            if name != "errors":  # the app knows better what its user waited for or paid
                own = request.latency_s if name == "latency" else request.cost
                value = given.get(request.id, own)
            if value is not None and 0 <= value < math.inf:
                yield request.at, value, 1.0, request.id
        return
    is_per_request = metric.unit == "rate"
    if is_per_request:
        yield from ((event.at, 0.0, 1.0, event.id) for event in requests)
    for event in feedback:
        if event.kind == metric.kind:
            value = float(event.value != 0) if event.kind in _PER_REQUEST else event.value
            yield event.at, value, 0.0 if is_per_request else 1.0, event.exposure
