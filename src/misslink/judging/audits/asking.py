"""A judge asked about each case as it is, and with every change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from misslink.judging.asking import judge_case
from misslink.judging.audits.changes import AUDITED, padded, reordered
from misslink.judging.embedded import EmbeddedJudge
from misslink.judging.metric import JudgedMetric, Subject
from misslink.judging.protocol import Ask, Judge, Reply, innermost
from misslink.types import Verdict

__all__ = ["Heard", "deterministic", "put_to", "variants"]

_ORDERS = ("passage_order", "passage_shuffle")


@dataclass(frozen=True)
class Heard:
    """What a judge said of one case.

    Parameters
    ----------
    case_id : str
    answer : str
        As the app gave it.
    base : mapping of str to Verdict
        By metric, of the case as it is.
    changed : mapping of str to mapping of str to Verdict
        By change, then by metric.
    unchanged : mapping of str to mapping of str to str
        By change, then by metric: why the case could not be changed so.
    """

    case_id: str
    answer: str
    base: Mapping[str, Verdict]
    changed: Mapping[str, Mapping[str, Verdict]]
    unchanged: Mapping[str, Mapping[str, str]]


def deterministic(judge: Judge) -> bool:
    """Whether a judge gives the same answer to the same question by construction."""
    return isinstance(innermost(judge), EmbeddedJudge)


async def put_to(
    judge: Judge,
    subjects: Sequence[Subject],
    metrics: Sequence[JudgedMetric],
    *,
    repeat: int = 1,
    seed: int = 0,
    tick: Callable[[int, int], object] = lambda _, __: None,
) -> list[Heard]:
    """Ask a judge about every case as it is and with each change that a metric's verdict allows.

    Parameters
    ----------
    judge : Judge
        With its ledger around it: what it said of a case in a run is not paid for again.
    subjects : sequence of Subject
    metrics : sequence of JudgedMetric
        Of `AUDITED`.
    repeat : int
        The number of the sample that asking again takes, at least 1: one that the run has not
        asked for, or the ledger would only repeat what the judge said. A judge that is
        deterministic by construction is not asked again.
    seed : int
        Of fillers and orders.
    tick : callable
        Told how many cases are done, and how many there are.

    Returns
    -------
    list of Heard
        In the order of the cases.

    Raises
    ------
    JudgeUnreachableError
        Asking on is pointless; what was said is in the ledger.
    """
    again = None if deterministic(judge) else repeat
    done = 0

    async def one(subject: Subject) -> Heard:
        nonlocal done
        heard = await _one(judge, subject, metrics, again, seed)
        done += 1
        tick(done, len(subjects))
        return heard

    tasks = [asyncio.create_task(one(subject)) for subject in subjects]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def variants(
    subjects: Sequence[Subject],
    metrics: Sequence[JudgedMetric],
    judge: Judge,
    *,
    repeat: int = 1,
    seed: int = 0,
) -> Iterator[Ask]:
    """Every question that `put_to` would put if each case had a verdict; for a forecast."""
    put: set[tuple[str, int]] = set()
    for subject in subjects:
        others, _ = _changed(subject, [metric.name for metric in metrics], seed)
        asked = [(subject, 0), *((other, 0) for other, _ in others)]
        if not deterministic(judge):
            asked.append((subject, repeat))
        for each, number in asked:
            for metric in metrics:
                ask = metric.ask(each)
                if isinstance(ask, Ask) and (ask.key, number) not in put:
                    put.add((ask.key, number))
                    yield replace(ask, repeat=number)


async def _one(
    judge: Judge, subject: Subject, metrics: Sequence[JudgedMetric], again: int | None, seed: int
) -> Heard:
    base = {verdict.metric: verdict for verdict in await judge_case(subject, metrics, judge)}
    # Of what has no verdict as it stands, a change can turn nothing: it is not paid for.
    able = [metric for metric in metrics if base[metric.name].label is not None]
    by_name = {metric.name: metric for metric in able}
    asked, unchanged = _changed(subject, list(by_name), seed)
    calls = [(changes, judge_case(other, able, judge)) for other, changes in asked]
    if again is not None and able:
        everything = {("again", name) for name in by_name}
        calls.append((everything, judge_case(subject, able, _Numbered(judge, again))))
    said = await asyncio.gather(*(call for _, call in calls))
    changed: dict[str, dict[str, Verdict]] = {}
    for (changes, _), verdicts in zip(calls, said, strict=True):
        for verdict in verdicts:
            for change, name in changes:
                if name == verdict.metric:
                    changed.setdefault(change, {})[name] = verdict
    return Heard(subject.case.id, subject.answer, base, changed, unchanged)


def _changed(
    subject: Subject, names: Sequence[str], seed: int
) -> tuple[list[tuple[Subject, set[tuple[str, str]]]], dict[str, dict[str, str]]]:
    """The case with each change, with which (change, metric) it serves; and why others lack."""
    asked: list[tuple[Subject, set[tuple[str, str]]]] = []
    unchanged: dict[str, dict[str, str]] = {}

    def serve(found: Subject | str, change: str, served: Sequence[str]) -> None:
        if not isinstance(found, str):
            asked.append((found, {(change, name) for name in served}))
        elif served:
            unchanged.setdefault(change, {}).update(dict.fromkeys(served, found))

    fillers = dict.fromkeys(AUDITED[name].filler for name in names)
    for filler in fillers:
        served = [name for name in names if AUDITED[name].filler == filler]
        serve(padded(subject, filler, seed), "padding", served)
    for change in _ORDERS if names else ():
        serve(reordered(subject, change, seed), change, names)
    return asked, unchanged


class _Numbered:
    """A judge of whom another sample of each question is wanted than the first."""

    def __init__(self, judge: Judge, number: int) -> None:
        self.judge = judge
        self.name = judge.name
        self.identity: Mapping[str, Any] = judge.identity
        self._number = number

    async def ask(self, ask: Ask) -> Reply:
        """Ask for that sample."""
        return await self.judge.ask(replace(ask, repeat=self._number))

    async def close(self) -> None:
        """Close the judge."""
        await self.judge.close()
