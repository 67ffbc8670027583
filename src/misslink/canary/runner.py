"""Runs the canaries against the live app, with time limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from misslink.canary.results import (
    CanaryObservation,
    CanaryResult,
    CanaryStatus,
    fingerprint_corpus,
)
from misslink.capture import Watcher, labelled_ids, match_labels
from misslink.errors import InputError, JudgeUnreachableError
from misslink.event_loops import APP_LOOP
from misslink.io.secrets import redact_secrets
from misslink.judge.judge_case import judge_case
from misslink.judge.judged_metric import Subject
from misslink.judge.prompts import BUILT_IN, Prompts
from misslink.registry import judged_metrics
from misslink.retrieval import case_needs, match_needs, score_cases, unmeasured_reason
from misslink.timeouts import TookTooLongError, map_concurrently
from misslink.types import Passage, Reason, Trace, Verdict

if TYPE_CHECKING:
    from misslink.canary.canary_set import Canary, CanarySet
    from misslink.embedding import Embedder
    from misslink.io import GoldSet
    from misslink.judge.session import JudgeSession


@dataclass(frozen=True)
class CanaryRequest:
    """The app, the canaries and the options of one run."""

    app: Any
    canaries: CanarySet
    k: int = 5
    judge: JudgeSession | None = None
    corpus: Sequence[Passage] | None = None  # None: list the app's own store, if possible
    embedder: Embedder | None = None
    app_embedding: bool = True  # without `embedder`, use the app's
    timeout_s: float = 30.0  # per question
    deadline_s: float = 600.0  # for all questions
    concurrency: int = 4
    id_key: str | None = None
    input_key: str | None = None
    prompts: Prompts = BUILT_IN


_DISTANCE_REASON = (
    "the retriever's scores rise with the rank, so they are distances; name an embedding with "
    "--embedding"
)
_NO_SCORE_REASON = (
    "the retriever gives no scores, and no embedding is known; name one with --embedding"
)


Relevance = tuple[float | None, str | None]  # of the best expected passage; or why it is unknown
CanaryMeasures = tuple[float | None, Relevance, Verdict | None]  # coverage is the first


def best_expected_passage(canary: Canary, trace: Trace, k: int) -> tuple[int, Passage] | None:
    """Rank and passage of the first expected one among the first `k`; None where there is none."""
    top = trace.retrieved[:k]
    finds = [match for need in case_needs(canary.case, top) for match in match_needs(need, top)]
    best = min(finds, key=lambda match: match.rank, default=None)
    return None if best is None else (best.rank, best.passages[-1])


async def cosine_relevance(
    best: Mapping[str, tuple[str, Passage]], embedder: Embedder
) -> dict[str, Relevance]:
    """The cosine of each question and its best expected passage, by the canary's id."""
    pairs = list(best.values())
    questions = await embedder.queries([question for question, _ in pairs])
    passages = await embedder.documents([passage.text for _, passage in pairs])
    return {
        name: (
            (float(question @ passage), None)
            if pair[1].text.strip()
            else (None, "the passage has no text to embed")
        )
        for name, pair, question, passage in zip(best, pairs, questions, passages, strict=True)
    }


def score_relevance(
    best: Mapping[str, tuple[str, Passage]], traces: Iterable[Trace]
) -> dict[str, Relevance]:
    """The retriever's own scores, where they fall with the rank and so are no distances."""
    rises = falls = 0
    for trace in traces:
        scores = [passage.score for passage in trace.retrieved if passage.score is not None]
        rises += len(scores) > 1 and scores[0] < scores[-1]
        falls += len(scores) > 1 and scores[0] > scores[-1]
    if rises > falls:
        return dict.fromkeys(best, (None, _DISTANCE_REASON))
    return {
        name: (passage.score, _NO_SCORE_REASON if passage.score is None else None)
        for name, (_, passage) in best.items()
    }


_MAX_LENGTH = 600  # characters of a reason


def canary_result(canary: Canary, trace: Trace, k: int, measured: CanaryMeasures) -> CanaryResult:
    """Return whether a canary that was answered is healthy, and why."""
    # One failed check makes it unhealthy. Otherwise one unmeasured check leaves it open.
    coverage, (score, why_no_score), verdict = measured
    best = best_expected_passage(canary, trace, k)
    rank = best[0] if best else None
    right = verdict.label if verdict and verdict.status == "scored" else None
    checks: list[tuple[bool | None, str]] = []
    if canary.expects_passages:
        unseen = unmeasured_reason(trace)
        if unseen or coverage is None:
            checks.append((None, unseen or "no retrieved passage has a text"))
        elif rank is None:
            checks.append((False, f"no expected passage is among the first {k}"))
        else:
            checks.append((True, f"the first expected passage is at rank {rank}"))
    if rank is not None and (least := canary.min_relevance) is not None:
        if score is None:
            reason = why_no_score or "the relevance of its passage was not measured"
            checks.append((None, reason))
        elif score < least:
            reason = f"the best expected passage has a relevance of {score:.3g}, below {least:g}"
            checks.append((False, reason))
    if canary.expects_answer and (verdict or not canary.expects_passages):
        texts = {None: "the answer was not judged", True: "the answer is right"}
        text = texts.get(right, "the answer is wrong")
        why = verdict.reason if verdict and not right else None
        checks.append((right, f"{text}: {why}" if why else text))
    states = {state for state, _ in checks}
    healthy = False if False in states else None if None in states else True
    reason = "; ".join(text for state, text in checks if state is healthy)
    return CanaryResult(
        canary=canary.id,
        owner=canary.owner,
        status="answered",
        healthy=healthy,
        reason=redact_secrets(reason)[:_MAX_LENGTH],
        rank=rank,
        coverage=coverage,
        score=score,
        right=right,
        latency_s=trace.latency_s,
    )


_MAX_LISTED = 100_000  # passages of the app's own store that are fingerprinted
_MAX_VECTORS = (
    10_000  # passages whose vectors are taken from the store in place of being made again
)
_EXCERPT_LENGTH = 300  # characters of what the app raised that are kept

Progress = Callable[[str, int, int], None]


async def run_canaries(
    request: CanaryRequest, tick: Progress = lambda *_: None
) -> CanaryObservation:
    """Call the app with every canary within the deadline; app errors count as not measured."""
    started_at, deadline = time.time(), time.monotonic() + request.deadline_s
    gold = request.canaries.gold
    watcher = Watcher(
        request.app,
        id_key=request.id_key,
        input_key=request.input_key,
        labels=labelled_ids(gold.cases),
    )
    hung_before = APP_LOOP.hung
    replies = await _call_app(request, watcher, deadline, tick)
    traces = {name: reply for name, reply in replies.items() if isinstance(reply, Trace)}
    traces, notes = _match_ids(gold, traces, watcher, request.id_key)
    replies |= traces
    embedder = await _resolve_embedder(request, watcher, notes)
    relevance = await _measure_relevance(request, traces, embedder, notes)
    passages = await _list_corpus(request, watcher, notes)
    if embedder is not None and embedder is not request.embedder:
        embedder.close()
    verdicts, judge_problem = await _judge_answers(request, traces, tick)
    cases = [canary.case for canary in request.canaries.canaries if canary.expects_passages]
    recall = f"recall@{request.k}"
    coverage = score_cases(cases, list(traces.values()), [recall])[recall]
    results = tuple(
        canary_result(
            canary,
            reply,
            request.k,
            (coverage.get(name), relevance.get(name, (None, None)), verdicts.get(name)),
        )
        if isinstance(reply, Trace)
        else reply
        for canary, (name, reply) in zip(request.canaries.canaries, replies.items(), strict=True)
    )
    model = f"{embedder.name} {embedder.identity[:8]}" if embedder else None
    is_unknown = passages is None and model is None
    return CanaryObservation(
        at=started_at,
        results=results,
        basis="score" if embedder is None else "cosine",
        fingerprint=None if is_unknown else fingerprint_corpus(passages or (), model),
        corpus_known=passages is not None,
        notes=tuple(notes),
        hung=APP_LOOP.hung - hung_before,
        judge_problem=judge_problem,
    )


def _match_ids(
    gold: GoldSet, traces: Mapping[str, Trace], watcher: Watcher, id_key: str | None
) -> tuple[dict[str, Trace], list[str]]:
    """The traces with the ids of the canaries, and notes on how these were found.

    Where no id matches, the canaries fail all the same: an outage looks like that too.
    """
    traces, _, warnings = match_labels(gold, traces)
    if watcher.id_key != id_key:
        warnings.insert(0, Reason(code="id_key_used", key=watcher.id_key))
    measured = {
        name: trace.model_copy(update={"unmatched": None}) for name, trace in traces.items()
    }
    return measured, list(map(str, warnings))


async def _call_app(
    request: CanaryRequest, watcher: Watcher, deadline: float, tick: Progress
) -> dict[str, Trace | CanaryResult]:
    """The trace of each canary that was answered, and the result of each other."""

    async def ask(canary: Canary) -> Trace | CanaryResult:
        def unanswered(status: CanaryStatus, reason: str) -> CanaryResult:
            return CanaryResult(canary.id, canary.owner, status, None, reason)

        seconds = min(request.timeout_s, deadline - time.monotonic())
        if seconds <= 0:
            late = f"it was not sent: the {request.deadline_s:g} seconds of the run were over"
            return unanswered("not_asked", late)
        try:
            trace = await APP_LOOP.run(lambda: watcher.watch(canary.case), seconds)
        except TookTooLongError as hung:
            how = (
                "blocked its event loop and did not answer"
                if hung.is_loop_blocked
                else "did not answer"
            )
            return unanswered("hung", f"the app {how} within {seconds:.3g} seconds")
        if trace.error is not None and trace.answer is None:
            error = redact_secrets(" ".join(trace.error.split()))[:_EXCERPT_LENGTH]
            return unanswered("failed", f"the app failed: {error}")
        return trace

    canaries = request.canaries.canaries
    replies = await map_concurrently(
        canaries, ask, request.concurrency, lambda done, total: tick("app", done, total)
    )
    return {canary.id: reply for canary, reply in zip(canaries, replies, strict=True)}


async def _resolve_embedder(
    request: CanaryRequest, watcher: Watcher, notes: list[str]
) -> Embedder | None:
    """The embedding to measure by: the one that was named, or the app's own, opened here."""
    model = watcher.embeddings() if request.embedder is None and request.app_embedding else None
    if model is None:
        return request.embedder
    from misslink.embedding import open_embedder

    # Not kept between runs: a model that drifts behind its name is what is looked for.
    embedder = open_embedder(model, cache=None)
    try:
        embedder.know(await APP_LOOP.run(lambda: watcher.vectors(_MAX_VECTORS), request.timeout_s))
    except (InputError, TookTooLongError) as trouble:
        notes.append(f"the app's store did not give its vectors out: {_describe_error(trouble)}")
    return embedder


def _describe_error(trouble: InputError | TookTooLongError) -> str:
    return "it took too long" if isinstance(trouble, TookTooLongError) else str(trouble)


async def _measure_relevance(
    request: CanaryRequest,
    traces: Mapping[str, Trace],
    embedder: Embedder | None,
    notes: list[str],
) -> dict[str, Relevance]:
    passages = {
        canary.id: (canary.case.question, best[1])
        for canary in request.canaries.canaries
        if canary.id in traces
        and (best := best_expected_passage(canary, traces[canary.id], request.k))
    }
    if embedder is None:
        return score_relevance(passages, traces.values())
    if not passages:
        return {}
    try:
        return await APP_LOOP.run(lambda: cosine_relevance(passages, embedder), request.timeout_s)
    except (InputError, TookTooLongError) as trouble:
        problem = _describe_error(trouble)
        notes.append(f"relevance was not measured: {problem}")
        return dict.fromkeys(passages, (None, problem))


async def _list_corpus(
    request: CanaryRequest, watcher: Watcher, notes: list[str]
) -> Sequence[Passage] | None:
    """What the app retrieves from; None where that is not known."""
    if request.corpus is not None:
        return request.corpus
    passages = None
    try:
        passages = await APP_LOOP.run(lambda: watcher.corpus(_MAX_LISTED), request.timeout_s)
    except TookTooLongError:
        notes.append("the app's store took too long to list its passages")
    if passages is None:
        notes.append(
            "the app's store cannot be listed, so changes of the corpus are not seen; name the "
            "corpus with --corpus"
        )
    return passages


async def _judge_answers(
    request: CanaryRequest, traces: Mapping[str, Trace], tick: Progress
) -> tuple[dict[str, Verdict], str | None]:
    """Judge every answer with an expectation; also return why the judge stopped, if it did."""
    judge = request.judge
    if judge is None:
        return {}, None
    canaries = [
        canary
        for canary in request.canaries.canaries
        if canary.expects_answer and canary.id in traces
    ]
    problems: list[str] = []

    async def ask(canary: Canary) -> Verdict | None:
        if problems:
            return None
        subject = Subject(canary.case, traces[canary.id], request.k, request.prompts)
        which = "abstention" if canary.case.answerable is False else "correctness"
        try:
            (verdict,) = await judge_case(subject, [judged_metrics.get(which)], judge)
        except JudgeUnreachableError as gone:
            problems.append(str(gone))
            return None
        return verdict

    replies = await map_concurrently(
        canaries, ask, request.concurrency, lambda done, total: tick("judge", done, total)
    )
    verdicts = {verdict.case_id: verdict for verdict in replies if verdict is not None}
    return verdicts, problems[0] if problems else None
