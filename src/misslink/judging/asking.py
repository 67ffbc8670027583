"""Ask a judge everything that the metrics want to know of one case, each question once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from misslink.errors import MisslinkError
from misslink.judging.examination import LabelAlone
from misslink.judging.metric import ONE_WORD, Finding, JudgedMetric, Subject, failed, skipped
from misslink.judging.protocol import Ask, Judge, NotAskedError, Reply, TryAgainError
from misslink.judging.repeats import in_one
from misslink.types import Usage, Verdict

__all__ = ["judge_case"]


@dataclass(frozen=True)
class _Unasked:
    """Stands where a reply would: the question was not put, on purpose."""

    reason: str


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
    put = [_ask(judge, replace(asks[key], repeat=n) if n else asks[key]) for key, n in samples]
    answers = [await put[0]] if len(put) == 1 else await asyncio.gather(*put)
    replies: dict[str, list[Reply | _Unasked]] = {key: [] for key in asks}
    for (key, _), answer in zip(samples, answers, strict=True):
        replies[key].append(answer)
    verdicts = []
    charged: set[str] = set()
    for metric, ask in zip(metrics, wanted, strict=True):
        if isinstance(ask, str):
            verdicts.append(_verdict(subject, metric, judge, skipped(ask)))
            continue
        mine = replies[ask.key]
        findings = [_read(subject, metric, reply) for reply in mine]
        finding, which = in_one(findings)
        first = ask.key not in charged
        charged.add(ask.key)
        came = [reply for reply in mine if isinstance(reply, Reply)]
        shown = mine[which]
        verdict = _verdict(
            subject,
            metric,
            judge,
            finding,
            ask,
            shown if isinstance(shown, Reply) else None,
            usage=_total(came) if first else None,
            first=first,
        )
        verdicts.append(verdict)
    return tuple(verdicts)


async def _ask(judge: Judge, ask: Ask) -> Reply | _Unasked:
    """Ask; what a judge of somebody's own raises loses this reply, not the run."""
    try:
        return await judge.ask(ask)
    except MisslinkError:
        raise
    except NotAskedError as limit:
        return _Unasked(limit.reason)
    except TryAgainError as trouble:  # a judge that nobody throttles
        return Reply.nothing(trouble.problem)
    except Exception as error:  # noqa: BLE001 (it is told in the verdict)
        return Reply.nothing(f"the judge raised {type(error).__name__}: {error}")


def _read(subject: Subject, metric: JudgedMetric, reply: Reply | _Unasked) -> Finding:
    if isinstance(reply, _Unasked):
        return skipped(reply.reason)
    if reply.parsed is None:
        return failed(reply.problem or "the judge's reply cannot be read")
    if isinstance(reply.parsed, LabelAlone) and not getattr(metric, "reads_one_word", False):
        return failed(ONE_WORD)
    return metric.read(subject, reply)


def _total(replies: Sequence[Reply]) -> Usage | None:
    """What several replies cost together; None where none says."""
    usages = [reply.usage for reply in replies if reply.usage is not None]
    if not usages:
        return None

    def total(counts: list[int | None]) -> int | None:
        known = [count for count in counts if count is not None]
        return sum(known) if known else None

    return Usage(
        prompt_tokens=total([usage.prompt_tokens for usage in usages]),
        completion_tokens=total([usage.completion_tokens for usage in usages]),
    )


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
) -> Verdict:
    with_raw = reply is not None and bool(reply.raw) and (first or finding.status == "failed")
    parts: Mapping[str, float | None] = finding.parts or {}
    return Verdict(
        case_id=subject.case.id,
        metric=metric.name,
        status=finding.status,
        value=finding.value,
        label=finding.label,
        probability=finding.probability,
        claims=finding.claims,
        passages=dict(finding.passages or {}),
        parts=dict(parts),
        repeats=finding.repeats,
        reason=finding.reason,
        judge=(reply.judge if reply else None) or judge.name,
        prompt=ask.prompt if ask else None,
        usage=usage,
        raw=reply.raw if reply and with_raw else None,
    )
