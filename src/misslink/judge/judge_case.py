"""Judge one case: ask each question once, combine repeated samples, and return verdicts."""

from __future__ import annotations

import asyncio
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter

from misslink.errors import MisslinkError
from misslink.judge import protocol
from misslink.judge.claims import settle_response
from misslink.judge.examination import Examination, ExaminationWithReference
from misslink.judge.judged_metric import (
    EMPTY_ANSWER,
    Finding,
    JudgedMetric,
    Subject,
    UncoveredAnswerError,
    failed_finding,
    skipped_finding,
)
from misslink.types import Repeats, Verdict

_MIN_SAMPLES = 2  # fewer samples have no spread and cannot flip


def combine_samples(findings: Sequence[Finding]) -> tuple[Finding, int]:
    """Return the finding of all samples together, and the place of the one it is shown by.

    Parameters
    ----------
    findings : sequence of Finding
        At least one, in the order of sampling. Those without a value count in no mean and have no
        vote; how many they are, and why the first of them has none, is added to the reason.

    Returns
    -------
    finding : Finding
        The only one as it stands. Otherwise value, probability and parts are means; the label is
        the most frequent one, bad on a tie; claims, passages and reason are those of the first
        sample with that label. Where none has a value, the first of those that share the most
        frequent status, failed on a tie.
    place : int

    Raises
    ------
    ValueError
        There is no sample.
    """
    if not findings:
        raise ValueError("a verdict needs at least one sample")
    if len(findings) == 1:
        return findings[0], 0
    scored = [index for index, finding in enumerate(findings) if finding.value is not None]
    votes = Counter(findings[index].label for index in scored if findings[index].label is not None)
    label = votes[True] > votes[False] if votes else None
    repeats = _summarize_samples(findings, votes)
    if not scored:
        counts = Counter(finding.status for finding in findings)
        status = "failed" if counts["failed"] >= counts["skipped"] else "skipped"
        index = next(place for place, finding in enumerate(findings) if finding.status == status)
        return findings[index]._replace(repeats=repeats), index
    index = next((index for index in scored if findings[index].label == label), scored[0])
    names = {name: None for index in scored for name in findings[index].parts or {}}
    parts = {
        name: _mean([(findings[index].parts or {}).get(name) for index in scored]) for name in names
    }
    combined = findings[index]._replace(
        value=_mean([findings[index].value for index in scored]),
        label=label,
        probability=_mean([findings[index].probability for index in scored]),
        parts=parts or None,
        reason=_with_missing_note(findings[index].reason, findings),
        repeats=repeats,
    )
    return combined, index


def _summarize_samples(findings: Sequence[Finding], votes: Counter[bool | None]) -> Repeats:
    """Each sample's value and label, and how far they lie apart."""
    values = [finding.value for finding in findings if finding.value is not None]
    vote_count = votes.total()
    return Repeats(
        values=tuple(finding.value for finding in findings),
        labels=tuple(None if finding.value is None else finding.label for finding in findings),
        spread=statistics.stdev(values) if len(values) >= _MIN_SAMPLES else None,
        flipped=min(votes[True], votes[False]) / vote_count if vote_count >= _MIN_SAMPLES else None,
    )


def _with_missing_note(reason: str | None, findings: Sequence[Finding]) -> str | None:
    """Add to the reason what became of the samples without a value."""
    missing = [finding for finding in findings if finding.value is None]
    if not missing:
        return reason
    note = (
        f"{len(missing)} of {len(findings)} samples have no value"
        f" ({missing[0].status}: {missing[0].reason})"
    )
    return f"{reason}; {note}" if reason else note


def _mean(values: Sequence[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    # Exact, so that samples that agree have the value they agree on.
    return statistics.mean(numbers) if numbers else None


# All verdicts of a case are checked in one go: the same checks in two thirds of the time.
_VERDICTS = TypeAdapter(tuple[Verdict, ...])


class SkippedReply(protocol.Reply):
    """In place of a reply: the question was skipped on purpose; ``problem`` says why."""


async def ask_safely(judge: protocol.Judge, ask: protocol.Ask) -> protocol.Reply:
    """Ask; an exception of a custom judge loses this reply, not the run.

    What an examination calls the response is settled by its claims (`settle_response`).

    Returns
    -------
    Reply
        A `SkippedReply` where the question was skipped on purpose; ``Reply.nothing`` where no reply
        arrived.

    Raises
    ------
    MisslinkError
        The judge cannot be reached, or a person must fix something first.
    """
    try:
        reply = await judge.ask(ask)
    except MisslinkError:
        raise
    except protocol.SkippedAskError as limit:
        return SkippedReply.nothing(str(limit))
    except protocol.RetryableError as trouble:  # a judge that nobody throttles
        return protocol.Reply.nothing(trouble.problem)
    except Exception as error:  # noqa: BLE001 (it is told in the problem)
        return protocol.Reply.nothing(f"the judge raised {type(error).__name__}: {error}")
    if isinstance(reply.parsed, Examination) and "answer" in ask.inputs:
        return replace(reply, parsed=settle_response(reply.parsed, ask.inputs["answer"]))
    return reply


async def judge_case(
    subject: Subject,
    metrics: Sequence[JudgedMetric],
    judge: protocol.Judge,
    *,
    repeats: int = 1,
    first_sample: int = 0,
) -> tuple[Verdict, ...]:
    """Return one verdict for each metric, in their order.

    Parameters
    ----------
    subject : Subject
    metrics : sequence of JudgedMetric
    judge : Judge
    repeats : int
        How often each question is put; a verdict is then that of all samples together.
    first_sample : int
        Number of the first sample of each question.

    Raises
    ------
    JudgeUnreachableError
        Asking on is pointless. A single reply that cannot be had or read is a failed verdict, a
        question that was not put (the budget is spent) a skipped one.
    """
    questions = [metric.ask(subject) for metric in metrics]
    asks = {ask.key: ask for ask in questions if isinstance(ask, protocol.Ask)}
    calls = [
        ask_safely(judge, replace(ask, repeat=number) if number else ask)
        for ask in asks.values()
        for number in range(first_sample, first_sample + repeats)
    ]
    answers = [await calls[0]] if len(calls) == 1 else await asyncio.gather(*calls)
    firsts = range(0, len(answers), repeats)
    replies = {
        key: answers[first : first + repeats] for key, first in zip(asks, firsts, strict=True)
    }
    verdicts: list[Mapping[str, Any]] = []
    charged: set[str] = set()
    for metric, ask in zip(metrics, questions, strict=True):
        reply, first, usage = None, False, None
        if ask == EMPTY_ANSWER:
            finding = _read_empty_answer(subject, metric)
        elif isinstance(ask, str):
            finding = skipped_finding(ask)
        else:
            of_ask = replies[ask.key]
            finding, which = combine_samples([_find(subject, metric, ask, r) for r in of_ask])
            reply, first = of_ask[which], ask.key not in charged
            usage = protocol.total_usage(of_ask) if first else None
            charged.add(ask.key)
        with_raw = first or finding.status == "failed"
        standalone_question = None
        if reply and first and not subject.case.standalone_question:
            standalone_question = getattr(reply.parsed, "standalone_question", None)
        verdicts.append(
            {
                **finding._asdict(),
                "case_id": subject.case.id,
                "metric": metric.name,
                "passages": finding.passages or {},
                "parts": finding.parts or {},
                "judge": (reply.judge if reply else None) or judge.name,
                "prompt": ask.prompt if isinstance(ask, protocol.Ask) else None,
                "usage": usage,
                "raw": reply.raw or None if reply and with_raw else None,
                "standalone_question": standalone_question,
            }
        )
    return _VERDICTS.validate_python(verdicts)


def _read_empty_answer(subject: Subject, metric: JudgedMetric) -> Finding:
    """Read an empty answer as one that declines, which needs no judge to say."""
    fields: dict[str, Any] = {"claims": (), "passages": (), "response": "declines"}
    if subject.case.references and subject.expects_answer is not False:
        parsed: Examination = ExaminationWithReference(**fields, reference_claims=())
    else:
        parsed = Examination(**fields)
    finding = read_metric(metric, subject, protocol.Reply(parsed, raw=""))
    return (
        finding if finding.value is not None else skipped_finding(EMPTY_ANSWER, parts=finding.parts)
    )


def _find(
    subject: Subject, metric: JudgedMetric, ask: protocol.Ask, reply: protocol.Reply
) -> Finding:
    """What a metric reads from a reply, or why there is nothing to read."""
    parsed = reply.parsed
    if isinstance(reply, SkippedReply):
        return skipped_finding(reply.problem or "the question was not asked")
    if parsed is None:
        return failed_finding(reply.problem or "the judge's reply cannot be read")
    if not isinstance(parsed, ask.schema):
        kind = type(parsed).__name__
        return failed_finding(f"the judge gave {kind} instead of {ask.schema.__name__}")
    declines = isinstance(parsed, Examination) and parsed.response == "declines"
    if declines and subject.coverage(reply).uncovered:  # an answer that states facts declines not
        return failed_finding(subject.coverage(reply).note or "")
    return read_metric(metric, subject, reply)


def read_metric(metric: JudgedMetric, subject: Subject, reply: protocol.Reply) -> Finding:
    """Read a reply; a finding that needs claims is failed where they do not cover the answer."""
    try:
        return metric.read(subject, reply)
    except UncoveredAnswerError as uncovered:
        return failed_finding(str(uncovered))
