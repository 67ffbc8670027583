"""Ask a judge everything that the metrics want to know of one case, each question once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from misslink.errors import MisslinkError
from misslink.judging.examination import Examination, ExaminationWithReference, LabelAlone
from misslink.judging.metric import (
    EMPTY_ANSWER,
    ONE_WORD,
    Finding,
    JudgedMetric,
    Subject,
    failed,
    skipped,
)
from misslink.judging.protocol import Ask, Judge, NotAskedError, Reply, TryAgainError, total_usage
from misslink.judging.repeats import in_one
from misslink.types import Usage, Verdict

__all__ = ["Unasked", "judge_case", "put"]

# All verdicts of a case are checked in one go: the same checks in two thirds of the time.
_VERDICTS = TypeAdapter(tuple[Verdict, ...])
_Fields = Mapping[str, Any]  # of a Verdict that is to be checked


class Unasked(Reply):
    """Stands where a reply would: the question was not put, on purpose; ``problem`` says why."""


async def put(judge: Judge, ask: Ask) -> Reply:
    """Ask; what a judge of somebody's own raises loses this reply, not the run.

    Returns
    -------
    Reply
        An `Unasked` where the question was not put, the one of ``Reply.nothing`` where nothing
        came.

    Raises
    ------
    MisslinkError
        Asking on is pointless, or a person must put something right first.
    """
    try:
        return await judge.ask(ask)
    except MisslinkError:
        raise
    except NotAskedError as limit:
        return Unasked.nothing(limit.reason)
    except TryAgainError as trouble:  # a judge that nobody throttles
        return Reply.nothing(trouble.problem)
    except Exception as error:  # noqa: BLE001 (it is told in the problem)
        return Reply.nothing(f"the judge raised {type(error).__name__}: {error}")


async def judge_case(
    subject: Subject, metrics: Sequence[JudgedMetric], judge: Judge, *, repeats: int = 1
) -> tuple[Verdict, ...]:
    """Return one verdict for each metric, in their order.

    Parameters
    ----------
    subject : Subject
    metrics : sequence of JudgedMetric
    judge : Judge
    repeats : int
        How often each question is put; a verdict is then that of all samples together.

    Raises
    ------
    JudgeUnreachableError
        Asking on is pointless. A single reply that cannot be had or read is a failed verdict, a
        question that was not put (the budget is spent) a skipped one.
    """
    wanted = [metric.ask(subject) for metric in metrics]
    asks = {ask.key: ask for ask in wanted if isinstance(ask, Ask)}
    samples = [(key, number) for key in asks for number in range(repeats)]
    calls = [put(judge, replace(asks[key], repeat=n) if n else asks[key]) for key, n in samples]
    answers = [await calls[0]] if len(calls) == 1 else await asyncio.gather(*calls)
    replies: dict[str, list[_Heard]] = {key: [] for key in asks}
    for (key, _), answer in zip(samples, answers, strict=True):
        replies[key].append(_heard(asks[key], answer))
    verdicts: list[_Fields] = []
    charged: set[str] = set()
    for metric, ask in zip(metrics, wanted, strict=True):
        if isinstance(ask, str):
            found = _of_nothing(subject, metric) if ask == EMPTY_ANSWER else skipped(ask)
            verdicts.append(_verdict(subject, metric, judge, found))
            continue
        mine = replies[ask.key]
        finding, which = in_one([_read(subject, metric, heard) for heard in mine])
        first = ask.key not in charged
        charged.add(ask.key)
        verdict = _verdict(
            subject,
            metric,
            judge,
            finding,
            ask,
            mine[which].reply,
            usage=total_usage(heard.reply for heard in mine) if first else None,
            first=first,
        )
        verdicts.append(verdict)
    return _VERDICTS.validate_python(verdicts)


def _of_nothing(subject: Subject, metric: JudgedMetric) -> Finding:
    """Read an empty answer as one that declines, which needs no judge to say."""
    said: dict[str, Any] = {"claims": (), "passages": (), "response": "declines"}
    if subject.case.references and subject.expects_answer is not False:
        parsed: Examination = ExaminationWithReference(**said, reference_claims=())
    else:
        parsed = Examination(**said)
    finding = metric.read(subject, Reply(parsed, raw=""))
    return finding if finding.value is not None else skipped(EMPTY_ANSWER, parts=finding.parts)


class _Heard(NamedTuple):
    """A reply, and what holds of it for every metric that reads it."""

    reply: Reply
    unreadable: Finding | None  # what each of them finds where there is nothing to read
    one_word: bool


def _heard(ask: Ask, reply: Reply) -> _Heard:
    parsed = reply.parsed
    one_word = isinstance(parsed, LabelAlone)
    unreadable = None
    if isinstance(reply, Unasked):
        unreadable = skipped(reply.problem or "the question was not put")
    elif parsed is None:
        unreadable = failed(reply.problem or "the judge's reply cannot be read")
    elif not one_word and not isinstance(parsed, ask.schema):
        kind = type(parsed).__name__
        unreadable = failed(f"the judge gave {kind} where {ask.schema.__name__} was asked for")
    return _Heard(reply, unreadable, one_word)


def _read(subject: Subject, metric: JudgedMetric, heard: _Heard) -> Finding:
    if heard.unreadable is not None:
        return heard.unreadable
    if heard.one_word and not getattr(metric, "reads_one_word", False):
        return failed(ONE_WORD)
    return metric.read(subject, heard.reply)


def _verdict(
    subject: Subject,
    metric: JudgedMetric,
    judge: Judge,
    finding: Finding,
    ask: Ask | None = None,
    reply: Reply | None = None,
    *,
    usage: Usage | None = None,
    first: bool = False,
) -> _Fields:
    """The fields of a verdict; those of a case are checked together."""
    with_raw = reply is not None and bool(reply.raw) and (first or finding.status == "failed")
    return {
        "case_id": subject.case.id,
        "metric": metric.name,
        "status": finding.status,
        "value": finding.value,
        "label": finding.label,
        "probability": finding.probability,
        "claims": finding.claims,
        "passages": finding.passages or {},
        "parts": finding.parts or {},
        "repeats": finding.repeats,
        "reason": finding.reason,
        "judge": (reply.judge if reply else None) or judge.name,
        "prompt": ask.prompt if ask else None,
        "usage": usage,
        "raw": reply.raw if reply and with_raw else None,
    }
