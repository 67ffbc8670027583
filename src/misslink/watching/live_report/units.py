"""Who was in which variant: the requests and feedback of a live log, sorted by unit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from misslink.stats.sample_ratio import Stratum
from misslink.watching.live.records import Exposure, Feedback, Live

__all__ = ["Sorted", "Unit", "sort_out"]

# Rows are written by several threads and processes, a request when it ends; what lies further
# back than this was not a matter of who wrote first.
_CLOCK_SLACK_S = 60.0
_ONE_SAY = ("thumbs", "task_done")  # of one request the last counts


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
class Sorted:
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
    strata: tuple[Stratum, ...]
    odd: Mapping[str, int]


def sort_out(live: Live) -> Sorted:
    """Sort an experiment's requests and feedback by unit.

    Only requests that the split assigned count. Those from before a ramp opened are kept apart as
    the pre-period. A unit belongs to the variant that it saw first.
    """
    odd: Counter[str] = Counter()
    units: dict[str, Unit] = {}
    strata: dict[tuple[tuple[str, float], ...], Counter[str]] = defaultdict(Counter)
    before: dict[str, list[Exposure]] = defaultdict(list)
    place: dict[str, Exposure] = {}
    moved: set[str] = set()
    for one in live.exposures:
        place[one.id] = one
        if one.mode in ("shadow", "interleaved"):
            continue
        if one.mode != "assigned" or one.unit is None or one.variant is None:
            odd["requests_not_assigned"] += 1
        elif not one.open_share:
            before[one.unit].append(one)
            odd["requests_before_ramp"] += 1
        else:
            unit = units.get(one.unit)
            if unit is None:
                unit = units[one.unit] = Unit(one.unit, one.variant, one.at)
                strata[tuple(sorted(live.planned(one).items()))][one.variant] += 1
            if unit.variant == one.variant:
                unit.requests.append(one)
            else:
                moved.add(one.unit)
                odd["requests_after_move"] += 1
    odd["units_in_several_variants"] = len(moved)
    for name, requests in before.items():
        if name in units:
            units[name].before_requests = requests
    _sort_feedback(live, units, place, odd)
    odd["clock_went_back"] = _steps_back(live)
    odd["rows_lost"] = live.lost
    odd["requests_without_feedback"] = _silent(units)
    kept = {name: count for name, count in odd.items() if count}
    ordered = tuple(sorted(units.values(), key=lambda unit: (unit.since, unit.id)))
    groups = tuple(Stratum(dict(plan), dict(counts)) for plan, counts in strata.items())
    return Sorted(ordered, groups, kept)


def _sort_feedback(
    live: Live, units: Mapping[str, Unit], place: Mapping[str, Exposure], odd: Counter[str]
) -> None:
    for one in _last_said(live, odd):
        about = place.get(one.exposure) if one.exposure is not None else None
        if one.exposure is not None and about is None:
            odd["feedback_to_unknown_request"] += 1
        if about is not None and one.at < about.at - _CLOCK_SLACK_S:
            odd["feedback_before_its_request"] += 1
        if about is not None and about.mode in ("shadow", "interleaved"):
            continue
        unit = units.get(one.unit) if one.unit is not None else None
        if unit is None:
            odd["feedback_of_nobody"] += 1
        elif about is None:
            is_early = bool(unit.before_requests) and one.at < unit.since
            (unit.before_feedback if is_early else unit.feedback).append(one)
        elif about.mode != "assigned" or (about.open_share and about.variant != unit.variant):
            odd["feedback_left_out"] += 1
        else:
            (unit.feedback if about.open_share else unit.before_feedback).append(one)


def _last_said(live: Live, odd: Counter[str]) -> list[Feedback]:
    """All feedback, less what the same request was given another of the same kind after."""
    last: dict[tuple[str | None, str], int] = {
        (one.exposure, one.kind): place
        for place, one in enumerate(live.feedback)
        if one.exposure is not None and one.kind in _ONE_SAY
    }
    kept = [
        one
        for place, one in enumerate(live.feedback)
        if last.get((one.exposure, one.kind), place) == place
    ]
    odd["feedback_changed_later"] = len(live.feedback) - len(kept)
    return kept


def _steps_back(live: Live) -> int:
    latest, count = float("-inf"), 0
    for one in live.exposures:
        if one.mode == "shadow":
            continue
        ended = one.at + (one.latency_s or 0.0)
        if ended < latest - _CLOCK_SLACK_S:
            count += 1
            latest = ended  # one step back is counted once, not with every row after it
        latest = max(latest, ended)
    return count


def _silent(units: Mapping[str, Unit]) -> int:
    count = 0
    for unit in units.values():
        said = {one.exposure for one in unit.feedback}
        if None not in said:  # what is about the unit may be about any of its requests
            count += sum(request.id not in said for request in unit.requests)
    return count
