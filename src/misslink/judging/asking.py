"""Ask a judge everything that the metrics want to know of one case, each question once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from misslink.errors import MisslinkError
from misslink.judging.metric import Finding, JudgedMetric, Subject, failed, skipped
from misslink.judging.protocol import Ask, Judge, Reply
from misslink.types import Verdict

__all__ = ["judge_case"]


async def judge_case(
    subject: Subject, metrics: Sequence[JudgedMetric], judge: Judge
) -> tuple[Verdict, ...]:
    """Return one verdict for each metric, in their order.

    Parameters
    ----------
    subject : Subject
    metrics : sequence of JudgedMetric
    judge : Judge

    Raises
    ------
    JudgeUnreachableError
        Asking on is pointless. A single reply that cannot be had or read is a failed verdict.
    """
    wanted = [metric.ask(subject) for metric in metrics]
    asks = {ask.key: ask for ask in wanted if isinstance(ask, Ask)}
    answers = await asyncio.gather(*(_ask(judge, ask) for ask in asks.values()))
    replies = dict(zip(asks, answers, strict=True))
    verdicts = []
    charged: set[str] = set()
    for metric, ask in zip(metrics, wanted, strict=True):
        if isinstance(ask, str):
            verdicts.append(_verdict(subject, metric, judge, skipped(ask)))
            continue
        reply = replies[ask.key]
        if reply.parsed is None:
            finding = failed(reply.problem or "the judge's reply cannot be read")
        else:
            finding = metric.read(subject, reply)
        first = ask.key not in charged
        charged.add(ask.key)
        verdicts.append(_verdict(subject, metric, judge, finding, ask, reply, first=first))
    return tuple(verdicts)


async def _ask(judge: Judge, ask: Ask) -> Reply:
    """Ask; what a judge of somebody's own raises loses this reply, not the run."""
    try:
        return await judge.ask(ask)
    except MisslinkError:
        raise
    except Exception as error:  # noqa: BLE001 (it is told in the verdict)
        problem = f"the judge raised {type(error).__name__}: {error}"
        return Reply(parsed=None, raw="", problem=problem)


def _verdict(
    subject: Subject,
    metric: JudgedMetric,
    judge: Judge,
    finding: Finding,
    ask: Ask | None = None,
    reply: Reply | None = None,
    *,
    first: bool = False,
) -> Verdict:
    with_raw = reply is not None and bool(reply.raw) and (first or finding.status == "failed")
    return Verdict(
        case_id=subject.case.id,
        metric=metric.name,
        status=finding.status,
        value=finding.value,
        label=finding.label,
        probability=finding.probability,
        claims=finding.claims,
        passages=dict(finding.passages or {}),
        parts=dict(finding.parts or {}),
        reason=finding.reason,
        judge=judge.name,
        prompt=ask.prompt if ask else None,
        usage=reply.usage if reply and first else None,
        raw=reply.raw if reply and with_raw else None,
    )
