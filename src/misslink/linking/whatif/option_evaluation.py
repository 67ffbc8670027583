"""Try retriever options on the questions of a run, rank them, and check the best forecast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from misslink.errors import InputError
from misslink.linking.whatif.comparison import (
    MetricComparisons,
    OptionResult,
    RetrievalBaseline,
    UnknownMisses,
    baseline_metrics,
    check_corpus,
    compare_metrics,
    context_tokens,
    find_changes,
    index_texts,
    option_finding,
)
from misslink.linking.whatif.effect_model import (
    EffectModel,
    ExposureChange,
    has_failed,
)
from misslink.linking.whatif.forecast_check import ForecastCheck
from misslink.linking.whatif.options import (
    RetrieverOption,
    SearchContext,
    SearchTools,
    make_options,
)
from misslink.render.reasons import describe_reason
from misslink.retrieval import unmeasured_reason
from misslink.types import Estimate, Passage, Reason, Run

_NO_TOOLS = SearchTools()
# A search that returns other passages changes the tokens by some percent; more is another context.
_MAX_LENGTHENING = 1.2
_NO_CORPUS_NOTE = (
    "Without a corpus only a larger k was tried, from the ranks that the run knows; "
    "give --corpus or --app to try other searches."
)


@dataclass(frozen=True)
class _EvaluatedOption:
    option: RetrieverOption
    result: OptionResult
    changes: tuple[ExposureChange, ...]
    retrieved: int | None
    metrics: MetricComparisons
    avoided: Estimate
    unknown: UnknownMisses | None

    def order(self, metric: str) -> tuple[int, float, float]:
        """Best first: by the winner, then what is certainly avoided, then the difference."""
        compared = self.metrics[metric]
        place = ("option", None, "today").index(compared["winner"])
        low, high = self.avoided.low, self.avoided.high
        certain = low is not None and high is not None and (low > 0 or high < 0)
        avoided = (self.avoided.value or 0.0) if certain else 0.0
        return place, -avoided, -(compared["difference"]["value"] or 0.0)


async def evaluate_options(
    run: Run,
    corpus: Sequence[Passage] | None = None,
    tools: SearchTools = _NO_TOOLS,
    *,
    options: Sequence[str] | None = None,
    check: ForecastCheck | None = None,
    seed: int = 0,
    tick: Callable[[str, int, int], object] = lambda *_: None,
) -> dict[str, Any]:
    """Try other retrievers on a run's questions.

    Parameters
    ----------
    run : Run
    corpus : sequence of Passage or None
        What the app searches, with the same ids. None: only what the traces show is tried.
    tools : SearchTools
    options : sequence of str or None
        Names of `misslink.linking.whatif.options.OPTION_KINDS`. None: all that can be tried.
    check : ForecastCheck or None
        Generates and judges cases of the best option again. Its failures avoided are then those.
    seed : int
        Random seed for samples and intervals.
    tick : callable
        Called with a stage, how many options are done, and how many there are.

    Returns
    -------
    dict
        As in ``whatif.json``: the baseline's metrics, and the options, best first.

    Raises
    ------
    InputError
        An option is unknown or cannot be tried, all of them failed, or the corpus is not the one
        that the gold set names.
    """
    if any(width < 1 for width in tools.widths):
        raise InputError(f"k counts passages from 1, not {min(tools.widths)}")
    baseline = RetrievalBaseline.from_run(run)
    passages, notes = None, [_NO_CORPUS_NOTE]
    if corpus is not None:
        passages, notes = check_corpus(baseline, corpus)
    made, skipped = make_options(SearchContext(baseline, passages, tools), options)
    model = EffectModel.from_run(run)
    tried = await _try_options(baseline, made, skipped, tick)
    scores, before = baseline_metrics(baseline, seed)
    metrics = compare_metrics(baseline, scores, [result for _, result in tried], seed)
    main = f"recall@{baseline.k}"
    evaluated = []
    for (option, result), compared in zip(tried, metrics, strict=True):
        changes, retrieved = find_changes(baseline, result)
        unknown = UnknownMisses.count(baseline, result)
        if unknown:
            retrieved = retrieved or None  # of the misses that are not known nothing was counted
            avoided = Estimate.missing(Reason(code="misses_unknown", why=str(unknown)))
        elif _lengthens(baseline, result, seed):
            avoided = Estimate.missing(Reason(code="longer_context_unchecked"))
        else:
            avoided = model.avoided(changes, seed)
        evaluated.append(
            _EvaluatedOption(option, result, changes, retrieved, compared, avoided, unknown)
        )
    evaluated.sort(key=lambda evaluated_option: evaluated_option.order(main))
    checked = None
    if check is not None and check.sample > 0 and evaluated:
        best = evaluated[0]
        avoided, checked = await check.run(
            best.result, best.changes, run, index_texts(run, passages), seed
        )
        checked["option"] = best.option.name
        if avoided.value is not None or best.avoided.value is None:
            evaluated[0] = replace(best, avoided=avoided)
            evaluated.sort(key=lambda evaluated_option: evaluated_option.order(main))
    return {
        "run": run.summary.get("run"),
        "corpus": None if passages is None else {"passages": len(passages)},
        "embedding": tools.embedder.name if tools.embedder else None,
        "k": baseline.k,
        "context_passages": baseline.width,
        "baseline": {name: estimate.model_dump() for name, estimate in before.items()},
        "options": [
            _option_document(baseline, evaluated_option, main, seed)
            for evaluated_option in evaluated
        ],
        "skipped": skipped,
        "check": checked,
        "basis": "replayed" if model.replayed else "association",
        "notes": [*notes, *map(describe_reason, model.notes)],
        "seed": seed,
    }


def _lengthens(baseline: RetrievalBaseline, result: OptionResult, seed: int) -> bool:
    """Whether the generator gets more passages, or clearly more text."""
    tokens = context_tokens(baseline, result, seed)
    before, after = tokens["today"]["value"], tokens["b"]["value"]
    longer = before is not None and after is not None and after > _MAX_LENGTHENING * before
    return longer or result.width > baseline.width


async def _try_options(
    baseline: RetrievalBaseline,
    options: Sequence[RetrieverOption],
    skipped: list[dict[str, str]],
    tick: Callable[[str, int, int], object],
) -> list[tuple[RetrieverOption, OptionResult]]:
    """Try the options; add one that fails to `skipped`. Raises the first failure if all fail."""
    results, failures = [], []
    for done, option in enumerate(options):
        tick("options", done, len(options))
        try:
            results.append((option, await option.retrieve(baseline)))
        except InputError as error:
            failures.append(error)
            skipped.append({"name": option.name, "reason": str(error)})
    tick("options", len(options), len(options))
    if failures and not results:
        raise failures[0]
    return results


def _option_document(
    baseline: RetrievalBaseline,
    evaluated_option: _EvaluatedOption,
    main: str,
    seed: int,
) -> dict[str, Any]:
    unmeasured = Counter(
        after.unmeasured
        for before, after in zip(baseline.traces, evaluated_option.result.traces, strict=True)
        if after.unmeasured and not unmeasured_reason(before)
    )
    bad = sum(has_failed(link) is True for link in baseline.links)
    return {
        "name": evaluated_option.option.name,
        "what": evaluated_option.option.description,
        "passages": evaluated_option.result.width,
        "metrics": evaluated_option.metrics,
        "context_tokens": context_tokens(baseline, evaluated_option.result, seed),
        "newly_retrieved": evaluated_option.retrieved,
        "failures_avoided": evaluated_option.avoided.model_dump(),
        "unmeasured": dict(unmeasured),
        "finding": option_finding(
            main,
            evaluated_option.metrics[main],
            evaluated_option.avoided,
            bad,
            evaluated_option.unknown,
        ),
    }
