"""What the run took: calls and tokens of the judge, their cost, and how long the app needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report.documents import count_in, mapping_in, number_in, text_in
from misslink.report.places import case, case_numbers
from misslink.report.wording import in_short, plain_number, plural
from misslink.types import Run, Usage

__all__ = ["Slow", "Used", "seconds", "used"]

_SLOWEST = 5
_QUESTION = 120  # characters of a question beside its time
_UNKNOWN = "not known"
_LATE, _FEWEST_LATE = 0.95, 20  # of fewer times than that one in twenty is no whole one
_TOKENS = (("prompt_tokens", "Prompt tokens"), ("completion_tokens", "Written tokens"))


@dataclass(frozen=True)
class Slow:
    """One of the slowest cases; ``fragment`` opens it."""

    number: int
    question: str
    latency: str
    fragment: str


@dataclass(frozen=True)
class Used:
    """What judge and app took, as labels and texts; what is not known says why."""

    judge: tuple[tuple[str, str], ...]
    app: tuple[tuple[str, str], ...]
    slowest: tuple[Slow, ...]


def used(run: Run) -> Used | None:
    """What the run took; None for one of which nothing of it is known.

    Parameters
    ----------
    run : Run
    """
    judge = tuple(_judge(run))
    took = {one.case_id: one.latency_s for one in run.traces if one.latency_s is not None}
    tokens = [one.usage for one in run.traces if one.usage is not None]
    if not (judge or took or tokens):
        return None
    times = _times(list(took.values()))
    return Used(judge, (*times, *_tokens(tokens, "answers")), _slowest(run, took))


def seconds(value: float) -> str:
    """A duration to three digits that count.

    Examples
    --------
    >>> seconds(0.01735), seconds(2.5), seconds(75.0), seconds(0.0)
    ('17.4 ms', '2.5 s', '75 s', '0 s')
    """
    return f"{plain_number(1000 * value)} ms" if 0 < value < 1 else f"{plain_number(value)} s"


def _judge(run: Run) -> Iterable[tuple[str, str]]:
    usage = mapping_in(run.summary.get("usage"))
    if run.manifest.get("judge") == "none" or not usage:
        return
    calls, kept = count_in(usage, "calls"), count_in(usage, "from_ledger")
    yield "Asked of the judge", plural(calls, "question")
    yield "From the ledger, free", plural(kept, "reply", "replies")
    if left := count_in(usage, "not_asked"):
        yield "Not asked", f"{plural(left, 'question')}: budget or time was used up"
    for name, label in _TOKENS if calls and not _embedded(run) else ():
        spent = number_in(usage, name)
        none = f"{_UNKNOWN}: the judge reported none"
        yield label, none if spent is None else plain_number(spent)
    yield "Cost", _cost(run, usage)
    said = [verdict.usage for verdict in run.verdicts if verdict.usage is not None]
    yield from _tokens(said, "all verdicts, whenever paid for")


def _cost(run: Run, usage: Mapping[str, JsonValue]) -> str:
    cost = number_in(usage, "cost")
    if cost is not None:
        return f"{cost:,.4g} (in the currency of the prices that were given)"
    if _embedded(run):
        return "nothing: the embedded judge runs on this machine"
    if not count_in(usage, "calls"):
        return "nothing: no question was paid for in this run"
    judging = mapping_in(run.manifest.get("judging"))
    given = number_in(judging, "price_in") is not None
    why = "the judge did not report its tokens" if given else "no prices were given"
    return f"{_UNKNOWN}: {why}"


def _embedded(run: Run) -> bool:
    return text_in(run.manifest, "judge").startswith("embedded")


def _times(took: Sequence[float]) -> Iterable[tuple[str, str]]:
    if not took:
        yield "Time per answer", f"{_UNKNOWN}: no trace has a latency"
        return
    import numpy as np

    from misslink.stats.median import median

    middle = median(took)
    value, low, high = (
        _UNKNOWN if one is None else seconds(one) for one in (middle.value, middle.low, middle.high)
    )
    interval = f"[{low}, {high}]" if middle.low is not None else f"({middle.reason})"
    yield "Time per answer, median", f"{value} {interval}, n = {middle.n:,}"
    n = len(took)
    if n < _FEWEST_LATE:
        late = f"{_UNKNOWN}: {plural(n, 'time')}, and it takes {_FEWEST_LATE}"
    else:  # a time that was taken, never one between two
        late = f"{seconds(float(np.quantile(took, _LATE, method='inverted_cdf')))}, n = {n:,}"
    yield "95 % take at most", late


def _tokens(said: Sequence[Usage], of: str) -> Iterable[tuple[str, str]]:
    for name, label in _TOKENS:
        known = [count for one in said if (count := getattr(one, name)) is not None]
        if known:
            yield f"{label}, {of}", f"{sum(known):,} (n = {len(known):,})"


def _slowest(run: Run, took: Mapping[str, float]) -> tuple[Slow, ...]:
    places = case_numbers(run.cases)
    questions = {one.id: one.question for one in run.cases}
    known = [(name, latency) for name, latency in took.items() if name in places]
    slow = sorted(known, key=lambda one: -one[1])[:_SLOWEST]
    return tuple(
        Slow(
            number=places[name],
            question=in_short(questions[name], _QUESTION),
            latency=seconds(latency),
            fragment=case(places[name]),
        )
        for name, latency in slow
    )
