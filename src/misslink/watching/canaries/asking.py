"""One run of the canaries against the live app, bounded in time whatever the app does."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from misslink.capture import Watcher
from misslink.embedding.identity import censored
from misslink.engines.local import each
from misslink.errors import InputError, JudgeUnreachableError
from misslink.judging.asking import judge_case
from misslink.judging.metric import Subject
from misslink.registry import judged_metrics
from misslink.retrieval import score
from misslink.types import Passage, Trace, Verdict
from misslink.watching.canaries.apart import Apart, HungError
from misslink.watching.canaries.relevance import Relevance, best_expected, by_cosine, by_score
from misslink.watching.canaries.request import Request, Seen
from misslink.watching.canaries.result import Asked, result_of

if TYPE_CHECKING:
    from misslink.embedding import Embedder
    from misslink.watching.canaries.canary_set import Canary
    from misslink.watching.canaries.fingerprint import Fingerprint

__all__ = ["ask_canaries"]

_log = logging.getLogger("misslink")
_LISTED = 100_000  # passages of the app's own store that are fingerprinted
_VECTORS = 10_000  # passages whose vectors are taken from the store in place of being made again
_EXCERPT = 300  # characters of what the app raised that are kept

Progress = Callable[[str, int, int], None]


@dataclass
class _Clock:
    """What is left of the time of a run."""

    deadline_s: float
    began: float = field(default_factory=time.monotonic)

    def left(self) -> float:
        return self.began + self.deadline_s - time.monotonic()


async def ask_canaries(request: Request, tick: Progress = lambda *_: None) -> Seen:
    """Ask the app every canary, and look at what it brought.

    What hangs is left behind after `timeout_s` and counted as not measured; what is left when
    `deadline_s` is over is not asked. Nothing that the app does is raised.

    Parameters
    ----------
    request : Request
    tick : callable
        Called with the stage, how many are done, and how many there are.

    Raises
    ------
    InputError
        The app cannot be asked at all, such as one whose question's key is not known.
    """
    at, clock = time.time(), _Clock(request.deadline_s)
    watcher = Watcher(request.app, id_key=request.id_key, input_key=request.input_key)
    apart = Apart()
    try:
        asked = await _ask_all(request, watcher, apart, clock, tick)
        notes: list[str] = []
        embedder = await _embedder(request, watcher, apart, notes)
        relevance = await _relevance(request, asked, embedder, apart, notes)
        passages = await _corpus(request, watcher, apart, notes)
        if embedder is not None and embedder is not request.embedder:
            embedder.close()
    finally:
        apart.close()
    verdicts, judge_problem = await _judged(request, asked, tick)
    coverage = _coverage(request, asked)
    results = tuple(
        result_of(
            canary,
            asked[canary.id],
            coverage.get(canary.id),
            relevance.get(canary.id),
            verdicts.get(canary.id),
            request.k,
        )
        for canary in request.canaries.canaries
    )
    return Seen(
        at=at,
        results=results,
        basis="score" if embedder is None else "cosine",
        fingerprint=_fingerprint(passages, embedder),
        corpus_known=passages is not None,
        notes=tuple(notes),
        hung=apart.hung,
        judge_problem=judge_problem,
    )


async def _ask_all(
    request: Request, watcher: Watcher, apart: Apart, clock: _Clock, tick: Progress
) -> dict[str, Asked]:
    async def ask(canary: Canary) -> Asked:
        seconds = min(request.timeout_s, clock.left())
        if seconds <= 0:
            late = f"it was not asked, the {request.deadline_s:g} seconds of the run were over"
            return Asked(None, "not_asked", late)
        try:
            trace = await apart.run(lambda: watcher.watch(canary.case), seconds)
        except HungError as hung:
            how = "stood still with the whole event loop" if hung.blocked else "did not answer"
            return Asked(None, "hung", f"the app {how} within {seconds:.3g} seconds")
        if trace.error is not None and trace.answer is None:
            said = censored(" ".join(trace.error.split()))[:_EXCERPT]
            return Asked(trace, "failed", f"the app failed: {said}")
        return Asked(trace, "answered")

    canaries = request.canaries.canaries
    asked = await each(
        canaries, ask, request.concurrency, lambda done, total: tick("app", done, total)
    )
    return {canary.id: one for canary, one in zip(canaries, asked, strict=True)}


async def _embedder(
    request: Request, watcher: Watcher, apart: Apart, notes: list[str]
) -> Embedder | None:
    """The embedding to measure by: the one that was named, or the app's own, opened here."""
    model = watcher.embeddings() if request.embedder is None and request.own_embedding else None
    if model is None:
        return request.embedder
    from misslink.embedding import open_embedder

    # Not kept between runs: a model that drifts behind its name is what is looked for.
    embedder = open_embedder(model, cache=None)
    try:
        embedder.know(await apart.run(lambda: watcher.vectors(_VECTORS), request.timeout_s))
    except (InputError, HungError) as trouble:
        notes.append(f"the app's store did not give its vectors out: {_told(trouble)}")
    return embedder


def _told(trouble: InputError | HungError) -> str:
    return "it did not end in its time" if isinstance(trouble, HungError) else str(trouble)


async def _relevance(
    request: Request,
    asked: Mapping[str, Asked],
    embedder: Embedder | None,
    apart: Apart,
    notes: list[str],
) -> dict[str, Relevance]:
    found: dict[str, tuple[str, Passage]] = {}
    for canary in request.canaries.canaries:
        trace = asked[canary.id].trace
        best = best_expected(canary, trace, request.k) if trace else None
        if best:
            found[canary.id] = (canary.case.question, best[1])
    if embedder is None:
        return by_score(found, [one.trace for one in asked.values() if one.trace])
    if not found:
        return {}
    try:
        return await apart.run(lambda: by_cosine(found, embedder), request.timeout_s)
    except (InputError, HungError) as trouble:
        said = _told(trouble)
        notes.append(f"relevance was not measured: {said}")
        return {name: Relevance(None, said) for name in found}


async def _corpus(
    request: Request, watcher: Watcher, apart: Apart, notes: list[str]
) -> Sequence[Passage] | None:
    """What the app retrieves from; None where that cannot be told."""
    if request.corpus is not None:
        return request.corpus
    passages = None
    try:
        passages = await apart.run(lambda: watcher.corpus(_LISTED), request.timeout_s)
    except HungError:
        notes.append("the app's store did not list its passages in its time")
    if passages is None:
        notes.append(
            "the app's store cannot be listed, so changes of the corpus are not seen; name the "
            "corpus with --corpus"
        )
    return passages


def _fingerprint(
    passages: Sequence[Passage] | None, embedder: Embedder | None
) -> Fingerprint | None:
    from misslink.watching.canaries.fingerprint import Fingerprint

    named = f"{embedder.name} {embedder.identity[:8]}" if embedder else None
    return None if passages is None and named is None else Fingerprint.of(passages or (), named)


def _coverage(request: Request, asked: Mapping[str, Asked]) -> dict[str, float | None]:
    cases = [one.case for one in request.canaries.canaries if one.expects_passages]
    traces = [one.trace for one in asked.values() if one.trace]
    name = f"recall@{request.k}"
    return score(cases, traces, [name])[name]


async def _judged(
    request: Request, asked: Mapping[str, Asked], tick: Progress
) -> tuple[dict[str, Verdict], str | None]:
    """A verdict on every answer of which something is expected; and why the judge gave up."""
    judge = request.judge
    if judge is None:
        return {}, None
    wanted = [
        (canary, one.trace)
        for canary in request.canaries.canaries
        if canary.expects_answer and (one := asked[canary.id]).trace and one.status == "answered"
    ]
    problems: list[str] = []

    async def ask(pair: tuple[Canary, Trace | None]) -> Verdict | None:
        canary, trace = pair
        if trace is None or problems:
            return None
        subject = Subject(canary.case, trace, request.k, request.prompts)
        which = "abstention" if canary.case.answerable is False else "correctness"
        try:
            (verdict,) = await judge_case(subject, [judged_metrics.get(which)], judge)
        except JudgeUnreachableError as gone:
            problems.append(str(gone))
            return None
        return verdict

    found = await each(
        wanted, ask, request.concurrency, lambda done, total: tick("judge", done, total)
    )
    verdicts = {one.case_id: one for one in found if one is not None}
    return verdicts, problems[0] if problems else None
