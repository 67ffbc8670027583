"""Run the app, or take its recorded traces, and score what its retriever returned."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

from misslink.capture import (
    Watcher,
    check_gold_ids,
    labelled_ids,
    match_labels,
    settle_prompts,
)
from misslink.documents import DEFAULT_K, manifest_of
from misslink.engines.protocol import AppSpec, capture_case
from misslink.errors import AppUnreachableError
from misslink.parts import LazyMapping, by_case, light_items
from misslink.pipeline.config import EvaluationConfig
from misslink.pipeline.context import EvaluationContext
from misslink.render.format import shorten
from misslink.retrieval import LabelledNeed, case_needs, match_needs, score_cases, unmatched_reason
from misslink.timeouts import map_concurrently
from misslink.types import Case, Observed, Passage, Reason, Run, Trace

_log = logging.getLogger(__name__)

# Passages of the app's index that are listed for ids, ranks, BM25 and chunk quality. Listing a
# larger index would take longer than evaluating the app; the passages in the traces replace it.
MAX_LISTED = 10_000
_NO_TRACE = "there is no trace of this case"
_SLOW_CASE_S = 60.0  # of one case, after which a way out of a hung app is named
_NEIGHBORS = 20  # cases before and after, whose questions an app that remembers has in its prompt
_MOST_QUOTES = 20  # evidence texts that are looked for in all passages, where no case finds its own
_FEW_QUOTES = 5
_QUOTE = 60  # characters of one in a message
_TELLING_LENGTH = 15  # characters of a question; a shorter one may be part of any text


class Against(NamedTuple):
    """A run that the judge judged already, and the confidence level of the comparison with it."""

    run: Run
    level: float


class CaptureResult(NamedTuple):
    """The traces of all cases, the passages of the index, and what could not be captured."""

    traces: Sequence[Trace]  # one for each case, in the order of the gold set
    corpus: tuple[Passage, ...] | None
    watcher: Watcher | None  # None: the traces were recorded
    warnings: list[Reason]
    k: int  # the given cutoff, or the number of passages in most of the app's prompts
    saved: Run | None = None  # the run that the traces are of, when it is judged again
    against: Against | None = None


class RankingResult(NamedTuple):
    """Each rank metric by case, and why none could be measured."""

    by_metric: dict[str, Mapping[str, float | None]]
    judged_share: Mapping[str, float | None]  # judged@k: about the labels, never compared or gated
    unmatched: Reason | None


async def capture_traces(context: EvaluationContext) -> CaptureResult:
    """Return a trace for every case, with the ids of the gold set, and what could not be seen.

    Raises
    ------
    InputError
        The app's store or the corpus does not hold the labelled passages.
    AppUnreachableError
        The app failed on every case.
    """
    config, gold, corpus = context.config, context.gold, context.corpus
    captured, watcher, verified = context.recorded or (), None, False
    if context.recorded is None:
        labels = labelled_ids(gold.cases)
        watcher = Watcher(context.app, id_key=config.id_key, labels=labels, **_options(context))
        captured, verified = await _watch_app(context, watcher)
        if corpus is None:
            corpus = await watcher.corpus(MAX_LISTED)
    recorded = by_case(captured)
    traces: Mapping[str, Trace] = LazyMapping(
        {case.id: case.id for case in gold.cases},
        lambda name: recorded.get(name) or Trace(case_id=name, unmeasured=_NO_TRACE),
    )
    traces, corpus, warnings = match_labels(
        gold, traces, corpus, id_key=None if watcher else config.id_key, verified=verified
    )
    if unquoted := _unmatched_evidence(gold.cases, traces, corpus or ()):
        warnings.append(unquoted)
        by_evidence = {case.id for case in gold.cases if case.evidence}
        traces = _change(traces, by_evidence, {"unmatched": unquoted})
    if watcher and watcher.id_key != config.id_key:
        warnings.insert(0, Reason(code="id_key_used", key=watcher.id_key))
    if watcher is not None:
        traces = settle_prompts(traces)
    kept = _keep(context, _without_search(traces, light_items(captured)))
    rows = light_items(kept)
    k = _context_size(config, rows)
    warnings = [
        *_capture_gaps(rows, k, is_app=watcher is not None),
        *(() if config.k else _cutoff_too_large(gold.cases, rows, k)),
        *_shared_memory(gold.cases, kept),
        *warnings,
    ]
    for warning in warnings:
        _log.warning("%s", str(warning))
    return CaptureResult(kept, corpus, watcher, warnings, k)


def _keep(context: EvaluationContext, traces: Mapping[str, Trace]) -> Sequence[Trace]:
    """The traces of all cases, written as they are made."""
    writer = context.open_part("traces")
    writer.add_all(traces[case.id] for case in context.gold.cases)
    return writer.part()


def _change(
    traces: Mapping[str, Trace], names: Container[str], update: Mapping[str, Any]
) -> Mapping[str, Trace]:
    """The traces, some of them changed."""
    return LazyMapping(
        {name: name for name in traces},
        lambda name: traces[name].model_copy(update=update) if name in names else traces[name],
    )


def reuse_traces(
    context: EvaluationContext, saved: Run, against: Against | None = None
) -> CaptureResult:
    """Return the traces of a saved run as they are: the app does not run."""
    manifest, traces = manifest_of(saved), by_case(saved.traces)
    kept = _keep(context, traces)
    is_app = bool(manifest.app) and not manifest.traces
    warnings = [
        *_capture_gaps(light_items(kept), context.k, is_app=is_app),
        *_shared_memory(context.gold.cases, kept),
    ]
    return CaptureResult(kept, context.corpus, None, warnings, context.k, saved, against)


def score_ranks(context: EvaluationContext, captured: CaptureResult) -> RankingResult:
    """Return the rank metrics of every case at the cutoff."""
    cases, traces = context.gold.cases, captured.traces
    judged = f"judged@{context.k}"
    cutoffs = [f"{metric}@{context.k}" for metric in ("hit", "recall", "precision", "ndcg")]
    further = [f"recall@{k}" for k in context.config.recall_cutoffs if k != context.k]
    scores = score_cases(cases, traces, ["mrr", *cutoffs, *further, judged])
    context.tick("level 1", len(cases), len(cases))
    judged_share = scores.pop(judged)
    return RankingResult(scores, judged_share, unmatched_reason(traces))


def _options(context: EvaluationContext) -> Mapping[str, Any]:
    """How the app is watched, here and by the engine."""
    config = context.config
    return {
        "depth": config.depth,
        "input_key": config.input_key,
        "timeout": config.app_timeout,
        "settings": context.app_config,
    }


async def _watch_app(context: EvaluationContext, watcher: Watcher) -> tuple[list[Trace], bool]:
    """Run the app for every case, and ask its retriever for the ranks of missed passages.

    The second value says whether the app's store is known to hold every labelled passage.
    """
    config, gold = context.config, context.gold
    staging = context.staging if config.spec else None
    saved = staging.traces if staging else {}
    if saved and staging:
        fix = (
            f"remove {staging.folder} to start over"
            if config.overwrite
            else "--overwrite starts over"
        )
        _log.warning("%d traces of the unfinished run are used again; %s", len(saved), fix)
    verified: bool | None = None

    @cache
    def warn_of_slow_app(limit: float | None) -> None:
        if limit is None:
            _log.warning(
                "the app has not answered a question for %g s; --app-timeout SECONDS ends such a case",
                _SLOW_CASE_S,
            )

    async def capture(case: Case, observe: Callable[[Case], Awaitable[Trace]]) -> Trace:
        nonlocal verified
        if case.id in saved:
            return saved[case.id]
        hint = asyncio.get_running_loop().call_later(
            _SLOW_CASE_S, warn_of_slow_app, config.app_timeout
        )
        try:
            trace = await observe(case)
        finally:
            hint.cancel()
        if verified is None:  # before it is saved, so that the same command reports the same error
            verified = await check_gold_ids(watcher, gold, trace)
        if staging and trace.error is None:
            staging.save(trace)
        return trace

    # The first case alone and in this process: it shows the app's store, and a wrong passage id is
    # reported before the other cases run.
    if not watcher.takes_history and (later := [c for c in gold.cases if c.history]):
        raise gold.error(
            later[0].id,
            "history",
            "The app has no place for earlier messages. Give it a parameter 'history', a prompt "
            "with 'chat_history', a state with 'messages', or {history} in the body of its request.",
        )
    first, *other_cases = gold.cases
    trace = await capture(first, lambda case: capture_case(watcher, case, context.k))
    total = len(gold.cases)
    context.tick("app", 1, total)
    options = {**_options(context), "id_key": watcher.id_key}
    spec = AppSpec(context.app, config.spec, context.k, options)
    observe_by_engine = context.engine.observe(watcher, spec)
    other_traces = await map_concurrently(
        other_cases,
        lambda case: capture(case, observe_by_engine),
        context.engine.at_once("app", config.concurrency),
        lambda done, _: context.tick("app", done + 1, total),
    )
    traces = [trace, *other_traces]
    # A retriever has neither an answer nor an error, and level 1 alone is measured.
    if not any(t.error is None if t.answer is None else t.answer.strip() for t in traces):
        why = next((t.error for t in traces if t.error), "every answer is empty")
        raise AppUnreachableError(f"the app answered none of {total} questions: {why}")
    return traces, bool(verified)


def _unmatched_evidence(
    cases: Sequence[Case], traces: Mapping[str, Trace], corpus: Sequence[Passage]
) -> Reason | None:
    """Why evidence cannot be looked for: no passage of the run or the corpus has any of it."""
    if not any(case.evidence for case in cases):
        return None
    quotes: list[LabelledNeed] = []
    passages = list(corpus)
    for case in cases:
        found = traces[case.id].retrieved
        passages += (*found, *traces[case.id].deeper)
        needs = [n for needs in case_needs(case, found) for n in needs if n.evidence is not None]
        if match_needs(needs, found):
            return None
        quotes += needs
    indexed = {passage.id for passage in corpus}
    if (
        not quotes
        # They may be those that are not indexed: there are few, or other labels are of this corpus.
        or (corpus and len(quotes) < _FEW_QUOTES)
        or any(not indexed.isdisjoint(case.relevant) for case in cases if not case.evidence)
        or not any(passage.text for passage in passages)
        or any(map(partial(match_needs, passages=passages), zip(quotes[:_MOST_QUOTES])))
    ):
        return None
    return Reason(code="evidence_unmatched", evidence=shorten(str(quotes[0].evidence), _QUOTE))


def _without_search(
    traces: Mapping[str, Trace], captured: Sequence[Observed]
) -> Mapping[str, Trace]:
    """The traces; where others show searches, a case that shows none made none."""
    if not any(trace.calls for trace in captured if trace.case_id in traces):
        return traces
    silent = {trace.case_id for trace in captured if trace.unmeasured and not trace.error}
    return _change(traces, silent, {"unmeasured": None, "prompted": ()})


def _context_size(config: EvaluationConfig, traces: Iterable[Observed]) -> int:
    """The given k, or as many passages as the app puts in most of its prompts; 5 if none was seen."""
    sizes = Counter(trace.prompted_count for trace in traces if trace.prompted_count)
    return config.k or max(sizes, key=lambda size: (sizes[size], size), default=DEFAULT_K)


def _cutoff_too_large(
    cases: Iterable[Case], traces: Iterable[Observed], k: int
) -> Iterator[Reason]:
    """That the k which nobody gave is more than the app ever retrieves, so that its name says too much."""
    most = max((len(trace.retrieved) for trace in traces), default=0)
    labelled = any(case.relevant or case.relevant_any or case.evidence for case in cases)
    if labelled and 0 < most < k:
        yield Reason(code="cutoff_too_large", k=k, most=most)


def _shared_memory(cases: Sequence[Case], traces: Sequence[Trace]) -> Iterator[Reason]:
    """Cases whose prompt has the question of another case: their answers depend on the others."""
    mixed: list[tuple[str, str]] = []
    for place, (case, row) in enumerate(zip(cases, light_items(traces), strict=True)):
        if not row.prompt:
            continue
        trace = traces[place]
        history = (message.content for message in (*case.history, *trace.history))
        passages = (passage.text for passage in trace.retrieved)
        own = "\n".join((case.question, *history, *passages))
        for other in cases[max(0, place - _NEIGHBORS) : place + _NEIGHBORS + 1]:
            question = other.question
            if (
                len(question) >= _TELLING_LENGTH
                and question in (trace.prompt or "")
                and question not in own
            ):
                mixed.append((case.id, other.id))
                break
    if mixed:
        about = dict(zip(("first", "other"), mixed[0], strict=True))
        yield Reason(code="shared_memory", n=len(mixed), cases=len(cases), **about)


def _capture_gaps(traces: Sequence[Observed], k: int, *, is_app: bool) -> Iterator[Reason]:
    """What could not be seen: it is missing from the numbers, and readers must know."""
    failed = [trace.error for trace in traces if trace.error]
    absent = [trace.case_id for trace in traces if trace.unmeasured == _NO_TRACE]
    unseen = [
        trace.unmeasured
        for trace in traces
        if trace.unmeasured and not trace.error and trace.unmeasured != _NO_TRACE
    ]
    if failed:
        yield Reason(code="app_failed", n=len(failed), cases=len(traces), first=failed[0])
    if absent:
        yield Reason(code="traces_absent", n=len(absent), cases=len(traces), first=absent[0])
    if unseen:
        yield Reason(code="retrieval_unseen", n=len(unseen), cases=len(traces), why=unseen[0])
    merged = sum(
        trace.prompted_count is None
        and len(trace.retrieved) > k
        and sum(not call.nested for call in trace.calls) > 1
        for trace in traces
    )
    if merged:
        yield Reason(code="searches_merged", n=merged, cases=len(traces), k=k)
    elif is_app:  # what an app returns, and a recorded trace, is what reached the prompt
        assumed = (
            trace.prompted_count is None and trace.answered and trace.retrieved and trace.calls
            for trace in traces
        )
        if n := sum(map(bool, assumed)):
            yield Reason(code="prompt_unseen", n=n, cases=len(traces), k=k)
