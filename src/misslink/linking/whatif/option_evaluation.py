"""Try retriever options on the questions of a run, rank them, and check the best forecast."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from misslink.errors import InputError
from misslink.linking.case_evidence import CaseEvidence
from misslink.linking.judge_calibration import Calibration
from misslink.linking.whatif.comparison import (
    MetricComparisons,
    OptionResult,
    RetrievalBaseline,
    UnknownMisses,
    baseline_metrics,
    check_corpus,
    compare_metrics,
    context_tokens,
    index_texts,
    option_finding,
)
from misslink.linking.whatif.effect_model import (
    EffectModel,
    MissChange,
    estimate_avoided,
    find_changes,
    risk_after,
)
from misslink.linking.whatif.options import RetrieverOption, SearchContext, make_options
from misslink.linking.whatif.search import Chunking, Reranker
from misslink.retrieval import unmeasured_reason
from misslink.stats import mean
from misslink.types import Case, Estimate, Passage, Run, Trace, Verdict

if TYPE_CHECKING:
    from misslink.embedding import Embedder


RerunCase = Callable[[Case, Sequence[Passage]], Awaitable[tuple[Trace, Mapping[str, Verdict]]]]
DeeperSearch = Callable[[Case, int], Awaitable[Sequence[Passage]]]

_NO_CORPUS_NOTE = (
    "Without a corpus only a larger k was tried, from the ranks that the run knows; "
    "give --corpus or --app to try other searches."
)


@dataclass(frozen=True)
class _EvaluatedOption:
    option: RetrieverOption
    result: OptionResult
    changes: tuple[MissChange, ...]
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
    *,
    embedder: Embedder | None = None,
    other: Embedder | None = None,
    reranker: Reranker | None = None,
    chunking: Chunking | None = None,
    widths: Sequence[int] = (),
    options: Sequence[str] | None = None,
    rerun: RerunCase | None = None,
    deeper: DeeperSearch | None = None,
    sample: int = 0,
    seed: int = 0,
    tick: Callable[[str, int, int], object] = lambda *_: None,
) -> dict[str, Any]:
    """Try other retrievers on a run's questions.

    Parameters
    ----------
    run : Run
    corpus : sequence of Passage or None
        What the app searches, with the same ids. None: only what the traces show is tried.
    embedder : Embedder or None
        The app's own, for the options that search by embedding.
    other : Embedder or None
        Another embedding to try.
    reranker : Reranker or None
    chunking : Chunking or None
        Another chunk size to try.
    widths : sequence of int
        Numbers of passages to try; 2, 3 and 5 times the run's own if empty.
    options : sequence of str or None
        Names of `misslink.linking.whatif.options.OPTION_KINDS`. None: all that can be tried.
    rerun : callable or None
        Takes a case and passages, generates and judges again; with it the forecast is checked.
    deeper : callable or None
        Takes a case and a number, and returns as many passages of the app's own ranking; with it
        a larger k can be checked where the run knows only the ranks of missed passages.
    sample : int
        At most this many affected cases of the best option are checked.
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
    if any(width < 1 for width in widths):
        raise InputError(f"k counts passages from 1, not {min(widths)}")
    baseline = RetrievalBaseline.from_run(run)
    passages, notes = None, [_NO_CORPUS_NOTE]
    if corpus is not None:
        passages, notes = check_corpus(baseline, corpus)
    context = SearchContext(baseline, passages, embedder, other, reranker, chunking, tuple(widths))
    made, skipped = make_options(context, options)
    model = EffectModel.from_run(run, baseline)
    tried = await _try_options(baseline, made, skipped, tick)
    scores, before = baseline_metrics(baseline, seed)
    metrics = compare_metrics(baseline, scores, [result for _, result in tried], seed)
    main = f"recall@{baseline.k}"
    evaluated = []
    for (option, result), compared in zip(tried, metrics, strict=True):
        changes = find_changes(baseline, result)
        unknown = UnknownMisses.count(baseline, result)
        if unknown:
            avoided = Estimate.missing(f"misses are {unknown}", n=model.table.n)
        else:
            avoided = estimate_avoided(model.table, changes, pairs=model.pairs, seed=seed)
        evaluated.append(_EvaluatedOption(option, result, changes, compared, avoided, unknown))
    evaluated.sort(key=lambda evaluated_option: evaluated_option.order(main))
    error = None
    if rerun is not None and sample > 0:
        checker = _ForecastCheck(
            baseline=baseline,
            model=model,
            texts=index_texts(run, passages),
            rerun=rerun,
            deeper=deeper,
            sample=sample,
            calibration=Calibration.of_run(run),
            seed=seed,
        )
        error = await checker.check_best(evaluated)
    return {
        "run": run.summary.get("run"),
        "corpus": None if passages is None else {"passages": len(passages)},
        "embedding": embedder.name if embedder else None,
        "k": baseline.k,
        "context_passages": baseline.width,
        "today": {name: estimate.model_dump() for name, estimate in before.items()},
        "options": [
            _option_document(baseline, evaluated_option, model, main, seed)
            for evaluated_option in evaluated
        ],
        "skipped": skipped,
        "forecast_error": error,
        "basis": "replayed" if model.pairs else "association",
        "notes": [*notes, *model.notes],
        "seed": seed,
    }


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
    model: EffectModel,
    main: str,
    seed: int,
) -> dict[str, Any]:
    fixed_count = (
        None
        if evaluated_option.unknown
        else sum(change.mended for change in evaluated_option.changes)
    )
    unmeasured = Counter(
        after.unmeasured
        for before, after in zip(baseline.traces, evaluated_option.result.traces, strict=True)
        if after.unmeasured and not unmeasured_reason(before)
    )
    bad = model.table.miss_bad + model.table.hit_bad
    return {
        "name": evaluated_option.option.name,
        "what": evaluated_option.option.description,
        "passages": evaluated_option.result.width,
        "metrics": evaluated_option.metrics,
        "context_tokens": context_tokens(baseline, evaluated_option.result, seed),
        "unfaithful_avoided": evaluated_option.avoided.model_dump(),
        "misses_mended": fixed_count,
        "new_misses": None if fixed_count is None else len(evaluated_option.changes) - fixed_count,
        "unmeasured": dict(unmeasured),
        "finding": option_finding(
            main,
            evaluated_option.metrics[main],
            evaluated_option.avoided,
            bad,
            evaluated_option.unknown,
        ),
    }


@dataclass(frozen=True)
class _ForecastCheck:
    """Check a forecast on affected cases that are generated and judged again."""

    baseline: RetrievalBaseline
    model: EffectModel
    texts: Mapping[str, Passage]
    rerun: RerunCase
    deeper: DeeperSearch | None
    sample: int
    calibration: Calibration | None
    seed: int

    async def check_best(self, evaluated: Sequence[_EvaluatedOption]) -> dict[str, Any]:
        """Check the best option that changes judged cases and whose passages are known."""
        first = None
        for evaluated_option in evaluated:
            if evaluated_option.avoided.value is None or all(
                change.bad is None for change in evaluated_option.changes
            ):
                continue
            document = await self.check(evaluated_option)
            if document["asked"]:
                return document
            first = first or document
        reason = "no option changes a case with a judged answer"
        return first or {
            "option": None,
            **dict.fromkeys(("affected", "asked", "checked"), 0),
            **dict.fromkeys(("forecast", "measured")),
            "error": Estimate.missing(reason).model_dump(),
            "skipped": [],
        }

    async def check(self, evaluated: _EvaluatedOption) -> dict[str, Any]:
        """Return forecast and measured unfaithful answers avoided among the checked cases.

        ``asked`` counts the answers generated; ``error`` is the mean of forecast less measured
        over those that were judged, in [-1, 1]: above 0 the forecast promises too much.
        """
        result = evaluated.result
        judged = [change for change in evaluated.changes if change.bad is not None]
        drawn = random.Random(self.seed).sample(  # noqa: S311 (a sample)
            judged, min(self.sample, len(judged))
        )
        forecast: list[float] = []
        measured: list[int] = []
        skipped: list[dict[str, str]] = []
        checked_count = 0
        for change in sorted(drawn, key=lambda change: change.place):
            case = self.baseline.cases[change.place]
            passages = await self._option_passages(case, result.traces[change.place], result.width)
            if isinstance(passages, str):
                skipped.append({"case_id": case.id, "reason": passages})
                continue
            checked_count += 1
            trace, verdicts = await self.rerun(case, passages)
            evidence = CaseEvidence.from_verdicts(
                case, trace, verdicts, result.width, self.calibration
            )
            if trace.error is not None or trace.unmeasured is not None:
                reason = trace.error or trace.unmeasured or ""
                skipped.append({"case_id": case.id, "reason": reason})
            elif evidence.answer == "unknown":
                reason = evidence.unknown_reason or "the new answer was not judged"
                skipped.append({"case_id": case.id, "reason": reason})
            else:
                before = int(bool(change.bad))
                forecast.append(before - risk_after(self.model.table, change, self.model.pairs))
                # An answer that declines is not unfaithful.
                measured.append(before - int(evidence.answer == "unfaithful"))
        if measured:
            errors = [a - b for a, b in zip(forecast, measured, strict=True)]
            error = mean(errors, seed=self.seed, bounds=(-1.0, 1.0))
        else:
            reason = Counter(row["reason"] for row in skipped).most_common(1)[0][0]
            error = Estimate.missing(
                f"no affected case could be generated and judged again: {reason}"
            )
        return {
            "option": evaluated.option.name,
            "affected": len(judged),
            "asked": checked_count,
            "checked": len(measured),
            "forecast": sum(forecast) if measured else None,
            "measured": sum(measured) if measured else None,
            "error": error.model_dump(),
            "skipped": skipped,
        }

    async def _option_passages(
        self, case: Case, trace: Trace, width: int
    ) -> Sequence[Passage] | str:
        """The option's passages, all with their texts; or why they are not known."""
        passages = [
            passage
            if passage.text
            else passage.model_copy(update={"text": self.texts[passage.id].text})
            for passage in trace.retrieved[:width]
            if passage.text or passage.id in self.texts
        ]
        unseen = len(trace.retrieved[:width]) - len(passages)
        if not unseen:
            return passages
        if self.deeper is not None:
            deeper = [passage for passage in await self.deeper(case, width) if passage.text]
            if deeper:
                return deeper[:width]
        return f"{unseen} of the {width} passages are not known, as the app shows no deeper ranks"
