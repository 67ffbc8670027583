"""Sample a gold set and traces from logs, with personal data masked first."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from misslink.embedding import Embedder
from misslink.errors import InputError
from misslink.goldset.logs.clustering import (
    QuestionGroup,
    group_questions,
    representatives,
    tf_idf_vectors,
)
from misslink.goldset.logs.failures import FAILURE_SIGNALS, failure_signals, unknown_feedback
from misslink.goldset.logs.masking import Masker, unnumber_masks
from misslink.goldset.splitting import apportion
from misslink.io.trace_formats.requests import LogRequest, RequestLog
from misslink.types import Case, Passage, Trace

SampleReason = Literal["head", "failure", "tail"]
VectorFunction = Callable[[Sequence[str]], Awaitable[Any]]
Signals = Sequence[tuple[str, ...]]

_MIN_REPEATS = 2  # a question that was asked once is not frequent
MAX_CLUSTERED = 20_000  # questions of the tail; of more, this many are drawn
_TOLERANCE = 1e-9
_ANY_MASK = re.compile(r"<[A-Z][A-Z0-9_]*>")
_NOT_LOGGED = "The log does not say what was retrieved."
_SHOWN_FEEDBACK = 3


@dataclass(frozen=True)
class SampleShares:
    """Shares of a gold set from logs; the three add up to 1."""

    head: float = 0.4
    tail: float = 0.4
    failures: float = 0.2

    def __post_init__(self) -> None:
        """Reject shares that do not add up to 1."""
        shares = (self.head, self.tail, self.failures)
        if not all(0 <= share <= 1 for share in shares) or abs(sum(shares) - 1) > _TOLERANCE:
            listed = ", ".join(f"{share:g}" for share in shares)
            raise InputError(
                f"The shares of --head, --tail and --failures ({listed}) add up to "
                f"{sum(shares):g}. Use three numbers from 0 to 1 that add up to 1."
            )

    def counts(self, n: int) -> tuple[int, int, int]:
        """Return how many of n questions each share gets, by largest remainder.

        >>> SampleShares(0.4, 0.4, 0.2).counts(7)
        (3, 3, 1)
        """
        counts = apportion(n, vars(self))
        return counts["head"], counts["tail"], counts["failures"]


@dataclass(frozen=True)
class SampledQuestion:
    """A sampled question.

    Parameters
    ----------
    group : QuestionGroup
    request : int
        Index of the request that represents the group.
    reason : {'head', 'failure', 'tail'}
    signals : sequence of str
        How requests of the group failed; see `failure_signals`.
    failed : int
        How many requests of the group failed.
    """

    group: QuestionGroup
    request: int
    reason: SampleReason
    signals: tuple[str, ...]
    failed: int


@dataclass(frozen=True)
class LogSample:
    """A sample of a log.

    Parameters
    ----------
    cases : sequence of Case
        Without relevant passages and references, which a log does not have.
    traces : sequence of Trace
        Of the cases whose request has an answer or retrieved passages.
    document : dict
        The JSON document of ``misslink goldset from-logs``, without file names.
    """

    cases: tuple[Case, ...]
    traces: tuple[Trace, ...]
    document: dict[str, Any]


async def sample_groups(
    requests: Sequence[LogRequest],
    groups: Sequence[QuestionGroup],
    failures: Signals,
    n: int,
    shares: SampleShares,
    *,
    vectors: VectorFunction | None = None,
    seed: int = 0,
) -> list[SampledQuestion]:
    """Sample up to n groups, each once: head, then failures, then tail.

    The head is the most frequent groups with at least two requests. Failures are the groups with
    the most failed requests, by turns of the signals. The tail is one group of each cluster of the
    rest. What the head or failures lack goes to the tail; what the tail lacks, to the next most
    frequent.

    Parameters
    ----------
    requests : sequence of LogRequest
    groups : sequence of QuestionGroup
        Of these requests, the largest first.
    failures : sequence of sequence of str
        The failure signals of each request.
    n : int
    shares : SampleShares
    vectors : callable, optional
        Returns unit vectors of questions. Default: TF-IDF of their words.
    seed : int
    """
    head, _, failed = shares.counts(n)
    rest = dict(enumerate(groups))
    sample: list[SampledQuestion] = []

    def take(indices: Sequence[int], reason: SampleReason) -> None:
        sample.extend(
            _sampled_question(rest.pop(index), reason, requests, failures) for index in indices
        )

    frequent = [index for index, group in rest.items() if len(group.members) >= _MIN_REPEATS]
    take(frequent[:head], "head")
    take(_most_failing(rest, failures, failed), "failure")
    tail = min(n - len(sample), len(rest)) if shares.tail else 0
    if tail:
        take(await _cluster_centers(rest, tail, vectors, seed), "tail")
    take(list(rest)[: n - len(sample)], "head")
    return sample


def _most_failing(groups: Mapping[int, QuestionGroup], failures: Signals, limit: int) -> list[int]:
    """Failed groups, one for each signal in turn, those with the most failures first."""
    by_signal: dict[str, list[tuple[int, int]]] = {signal: [] for signal in FAILURE_SIGNALS}
    for index, group in groups.items():
        failed = [failures[number] for number in group.members if failures[number]]
        if failed:
            surest = min((signals[0] for signals in failed), key=FAILURE_SIGNALS.index)
            by_signal[surest].append((-len(failed), index))
    queues = [sorted(queue, reverse=True) for queue in by_signal.values()]
    chosen: list[int] = []
    while len(chosen) < limit and any(queues):
        chosen += [queue.pop()[1] for queue in queues if queue]
    return chosen[:limit]


async def _cluster_centers(
    groups: Mapping[int, QuestionGroup], k: int, vectors: VectorFunction | None, seed: int
) -> list[int]:
    indices = list(groups)
    if len(indices) > MAX_CLUSTERED:
        indices = sorted(random.Random(seed).sample(indices, MAX_CLUSTERED))  # noqa: S311 (no secret)
    if vectors is None:
        rows = tf_idf_vectors([groups[index].stems for index in indices])
    else:
        rows = await vectors([groups[index].wording for index in indices])
    return [indices[row] for row in representatives(rows, min(k, len(indices)), seed)]


def _sampled_question(
    group: QuestionGroup, reason: SampleReason, requests: Sequence[LogRequest], failures: Signals
) -> SampledQuestion:
    failed = [number for number in group.members if failures[number]]
    signals = {signal for number in failed for signal in failures[number]}
    candidates: Sequence[int] = group.members
    if reason == "failure":
        surest = min((failures[number][0] for number in failed), key=FAILURE_SIGNALS.index)
        candidates = [number for number in failed if surest in failures[number]]
    else:
        worded = [n for n in candidates if " ".join(requests[n].question.split()) == group.wording]
        candidates = worded or candidates
    # The latest of the requests with the most information.
    request = max(
        candidates,
        key=lambda n: (requests[n].passages is not None, requests[n].answer is not None, n),
    )
    ordered = tuple(signal for signal in FAILURE_SIGNALS if signal in signals)
    return SampledQuestion(group, request, reason, ordered, len(failed))


async def sample_log(
    log: RequestLog,
    n: int = 100,
    *,
    shares: SampleShares | None = None,
    masker: Masker | None = None,
    embedder: Embedder | None = None,
    seed: int = 0,
) -> LogSample:
    """Sample questions from a log.

    Parameters
    ----------
    log : RequestLog
        See `read_logs`.
    n : int
        Number of questions, at least 1; fewer if the log has fewer different ones.
    shares : SampleShares, optional
        Default: 0.4 head, 0.4 tail and 0.2 failures.
    masker : Masker, optional
        Masks every text before anything else reads it.
    embedder : Embedder, optional
        Clusters the tail by meaning; it receives only masked questions. Default: by words.
    seed : int

    Raises
    ------
    InputError
        No question is left after masking.
    """
    masker = masker or Masker()
    for request in log.requests:
        for text in (request.question, request.answer, request.error, request.category):
            masker.reserve(text or "")
        for passage in request.passages or ():
            masker.reserve(passage.text)
    requests, failures, left_out = [], [], Counter(log.left_out)
    for request, signals in zip(log.requests, failure_signals(log.requests), strict=True):
        question = masker.masked(request.question)
        if any(sign.isalnum() for sign in _ANY_MASK.sub("", unnumber_masks(question))):
            requests.append(replace(request, question=question))
            failures.append(signals)
        else:
            left_out["questions of nothing but personal data or punctuation"] += 1
    if not requests:
        raise InputError("No question is left in the logs after masking. Read other logs.")
    groups = group_questions([request.question for request in requests])
    vectors = None if embedder is None else embedder.queries
    sample = await sample_groups(
        requests, groups, failures, n, shares or SampleShares(), vectors=vectors, seed=seed
    )
    cases = [_to_case(question, requests[question.request], masker) for question in sample]
    traces = [
        trace
        for case, question in zip(cases, sample, strict=True)
        if (trace := _to_trace(case.id, requests[question.request], masker))
    ]
    reasons = Counter(question.reason for question in sample)
    document = {
        "requests": len(requests),
        "different": len(groups),
        "wanted": n,
        "written": len(cases),
        "chosen": {reason: reasons[reason] for reason in ("head", "failure", "tail")},
        "requests_covered": sum(len(question.group.members) for question in sample),
        "failing": {
            signal: sum(signal in signals for signals in failures) for signal in FAILURE_SIGNALS
        },
        "with_trace": len(traces),
        "masked": dict(sorted(masker.counts.items())),
        "tail_by": "words" if embedder is None else embedder.name,
        "columns": dict(log.columns),
        "left_out": dict(left_out),
        "notes": _sample_notes(log, sample, len(groups), n, masker),
        "seed": seed,
    }
    return LogSample(tuple(cases), tuple(traces), document)


def _to_case(sampled: SampledQuestion, request: LogRequest, masker: Masker) -> Case:
    tags = {"origin": "logs", "chosen": sampled.reason, "asked": str(len(sampled.group.members))}
    if sampled.signals:
        tags |= {"failed": str(sampled.failed), "failure": ",".join(sampled.signals)}
    return Case.model_validate(
        {
            "question": " ".join(request.question.split()),
            "category": masker.masked(request.category) if request.category else None,
            "tags": tags,
            "asked_at": request.at.date() if request.at else None,  # the hour could identify a user
        }
    )


def _to_trace(case_id: str, request: LogRequest, masker: Masker) -> Trace | None:
    if request.answer is None and request.passages is None:
        return None
    retrieved: dict[str, Passage] = {}
    for passage in request.passages or ():
        name = masker.masked_id(passage.id)
        update = {"id": name, "text": masker.masked(passage.text), "rank": len(retrieved) + 1}
        retrieved.setdefault(name, passage.model_copy(update=update))
    return Trace(
        case_id=case_id,
        retrieved=tuple(retrieved.values()),
        answer=masker.masked(request.answer) if request.answer else None,
        latency_s=request.latency_s,
        error=masker.masked(request.error) if request.error else None,
        unmeasured=_NOT_LOGGED if request.passages is None else None,
    )


def _sample_notes(
    log: RequestLog, sample: Sequence[SampledQuestion], different: int, n: int, masker: Masker
) -> list[str]:
    notes = []
    if len(sample) < n:
        notes.append(f"The logs contain {different:,} different questions, fewer than {n:,}.")
    if not any(len(question.group.members) > 1 for question in sample):
        notes.append("No question occurs twice, so the tail gets the share of the head.")
    tail = different - sum(question.reason != "tail" for question in sample)
    if tail > MAX_CLUSTERED and any(question.reason == "tail" for question in sample):
        notes.append(f"The tail clusters {MAX_CLUSTERED:,} questions, drawn from {tail:,}.")
    if not any(request.feedback is not None for request in log.requests):
        notes.append("The logs contain no user feedback. Name its column: --column feedback=NAME.")
    if not any(request.session for request in log.requests):
        notes.append("The logs contain no sessions, so repeated questions cannot be detected.")
    if unknown := unknown_feedback(log.requests):
        words = ", ".join(
            f"'{masker.masked(word)[:40]}'" for word in list(unknown)[:_SHOWN_FEEDBACK]
        )
        notes.append(f"{unknown.total():,} feedback values were not understood, such as {words}.")
    notes.append("Names are masked only by --mask-names. Read the questions before you share them.")
    return notes
