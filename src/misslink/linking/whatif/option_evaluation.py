"""Try retriever options on the questions of a run, rank them, and check the best forecast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from misslink.document_model import Estimates
from misslink.documents import (
    OptionMetric,
    SkippedOption,
    WhatIf,
    WhatIfCorpus,
    WhatIfOption,
    summary_of,
)
from misslink.errors import InputError
from misslink.linking.findings import UNSEARCHABLE, fixable_losses, lost_passages
from misslink.linking.missed_passages import PassagePool
from misslink.linking.whatif.forecast import (
    EffectModel,
    ExposureChange,
    ForecastCheck,
)
from misslink.linking.whatif.options import (
    OptionResult,
    RetrievalBaseline,
    RetrieverOption,
    SearchContext,
    SearchTools,
    make_options,
)
from misslink.render.reasons import describe_note
from misslink.render.retrieval_sentences import describe_option
from misslink.retrieval import mean_scores, score_cases, unmeasured_reason
from misslink.retrieval.outcomes import EXPOSURE_BY_LABELS
from misslink.stats import mean
from misslink.stats.paired_tests import (
    PairedComparison,
    detectable_after_holm,
    holm,
    paired_difference,
)
from misslink.text.normalization import fold
from misslink.types import Case, Estimate, Passage, Reason, Run, Trace

CHARACTERS_PER_TOKEN = 4  # of English text, the customary estimate where no tokenizer is at hand
_NO_TOOLS = SearchTools()
# A search that returns other passages changes the tokens by some percent; more is another context.
_MAX_LENGTHENING = 1.2
_CUTOFF_METRICS = ("hit", "recall", "precision", "ndcg")
_SIGNIFICANT = 0.05

MetricScores = dict[str, Mapping[str, float | None]]
MetricComparisons = dict[str, OptionMetric]


@dataclass(frozen=True)
class _EvaluatedOption:
    option: RetrieverOption
    result: OptionResult
    changes: tuple[ExposureChange, ...]
    retrieved: int | None
    metrics: MetricComparisons
    avoided: Estimate
    unknown: str | None

    def order(self, metric: str) -> tuple[int, float, float]:
        """Best first: by the winner, then what is certainly avoided, then the difference."""
        compared = self.metrics[metric]
        place = ("option", None, "today").index(compared.winner)
        low, high = self.avoided.low, self.avoided.high
        certain = low is not None and high is not None and (low > 0 or high < 0)
        avoided = (self.avoided.value or 0.0) if certain else 0.0
        return place, -avoided, -(compared.difference.value or 0.0)


async def evaluate_options(
    run: Run,
    corpus: Sequence[Passage] | None = None,
    tools: SearchTools = _NO_TOOLS,
    *,
    options: Sequence[str] | None = None,
    check: ForecastCheck | None = None,
    seed: int = 0,
    tick: Callable[[str, int, int], object] = lambda *_: None,
) -> WhatIf:
    """Try other retrievers on a run's questions.

    Parameters
    ----------
    run : Run
    corpus : sequence of Passage or None
        What the app searches, with the same ids. None: only what the traces show is tried.
    tools : SearchTools
    options : sequence of str or None
        Names of `misslink.linking.whatif.options.OPTION_KINDS`. None: all that are possible.
    check : ForecastCheck or None
        Generates and judges cases of the best option again. Its failures avoided are then those.
    seed : int
        Random seed for samples and intervals.
    tick : callable
        Called with a stage, how many options are done, and how many there are.

    Returns
    -------
    WhatIf
        The baseline's metrics, and the options, best first.

    Raises
    ------
    InputError
        An option is unknown or cannot be tried, all of them failed, or the corpus is not the one
        that the gold set names.
    """
    if any(width < 1 for width in tools.widths):
        raise InputError(f"k counts passages from 1, not {min(tools.widths)}")
    baseline = RetrievalBaseline.from_run(run)
    passages, notes = None, [describe_note(Reason(code="larger_k_alone"))]
    if corpus is not None:
        passages, notes = check_corpus(baseline, corpus)
    if kept_out := sum(m.kind in UNSEARCHABLE for link in baseline.links for m in link.missed):
        notes.append(describe_note(Reason(code="kept_out_of_search", n=kept_out)))
    made, skipped = make_options(SearchContext(baseline, passages, tools), options)
    model = EffectModel.from_run(run)
    tried = await _try_options(baseline, made, skipped, tick)
    scores, before = baseline_metrics(baseline, seed)
    metrics = compare_metrics(baseline, scores, [result for _, result in tried], seed)
    main = f"recall@{baseline.k}"
    evaluated = []
    for (option, result), compared in zip(tried, metrics, strict=True):
        changes, retrieved = find_changes(baseline, result)
        unknown = _unknown_misses(baseline, result)
        if unknown:
            retrieved = retrieved or None  # of the misses that are not known nothing was counted
            avoided = Estimate.missing(Reason(code="misses_unknown", why=unknown))
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
            best.option.name, best.result, best.changes, run, index_texts(run, passages), seed
        )
        if avoided.value is not None or best.avoided.value is None:
            evaluated[0] = replace(best, avoided=avoided)
            evaluated.sort(key=lambda evaluated_option: evaluated_option.order(main))
    return WhatIf(
        run=summary_of(run).run,
        app=None,
        corpus=None if passages is None else WhatIfCorpus(passages=len(passages), source=None),
        embedding=tools.embedder.name if tools.embedder else None,
        k=baseline.k,
        context_passages=baseline.width,
        baseline=before,
        options=tuple(_option_document(baseline, each, main, seed) for each in evaluated),
        skipped=tuple(skipped),
        check=checked,
        basis="replayed" if model.replayed else "association",
        notes=(*notes, *map(str, model.notes)),
        seed=seed,
    )


def _lengthens(baseline: RetrievalBaseline, result: OptionResult, seed: int) -> bool:
    """Whether the generator gets more passages, or clearly more text."""
    tokens = context_tokens(baseline, result, seed)
    before, after = tokens["today"].value, tokens["b"].value
    longer = before is not None and after is not None and after > _MAX_LENGTHENING * before
    return longer or result.width > baseline.width


async def _try_options(
    baseline: RetrievalBaseline,
    options: Sequence[RetrieverOption],
    skipped: list[SkippedOption],
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
            skipped.append(SkippedOption(name=option.name, reason=str(error)))
    tick("options", len(options), len(options))
    if failures and not results:
        raise failures[0]
    return results


def _option_document(
    baseline: RetrievalBaseline,
    evaluated_option: _EvaluatedOption,
    main: str,
    seed: int,
) -> WhatIfOption:
    unmeasured = Counter(
        after.unmeasured
        for before, after in zip(baseline.traces, evaluated_option.result.traces, strict=True)
        if after.unmeasured and not unmeasured_reason(before)
    )
    bad = sum(link.failed is True for link in baseline.links)
    return WhatIfOption(
        name=evaluated_option.option.name,
        what=evaluated_option.option.description,
        passages=evaluated_option.result.width,
        metrics=evaluated_option.metrics,
        context_tokens=context_tokens(baseline, evaluated_option.result, seed),
        newly_retrieved=evaluated_option.retrieved,
        reached=reached_cases(baseline, evaluated_option.result),
        failures_avoided=evaluated_option.avoided,
        unmeasured=dict(unmeasured),
        finding=describe_option(
            main,
            evaluated_option.metrics[main],
            evaluated_option.avoided,
            bad,
            evaluated_option.unknown,
            evaluated_option.retrieved,
        ),
    )


def find_changes(
    baseline: RetrievalBaseline, result: OptionResult
) -> tuple[tuple[ExposureChange, ...], int | None]:
    """Return the cases whose exposure an option changes, and how many missed passages it retrieves.

    A relevant passage that is retrieved today and left out of the prompt is not fixed by another
    retriever. The number is None where it is known of no case.
    """
    # With the option's cases: another chunking asks for texts in place of ids.
    before = OptionResult(result.cases, baseline.traces, baseline.width).outcomes()
    changes, retrieved = [], list[int]()
    pairs = zip(baseline.links, before, result.outcomes(), strict=True)
    for place, (link, was, now) in enumerate(pairs):
        if was is None or now is None:
            continue
        found = {match.need.evidence or match.need.id for match in now.found}
        retrieved.append(sum((miss.evidence or miss.passage_id) in found for miss in was.missed))
        if was.retrieval != now.retrieval and was.retrieval == link.retrieval:
            levels = [*EXPOSURE_BY_LABELS]
            better = levels.index(now.retrieval) > levels.index(was.retrieval)
            changes.append(ExposureChange(place, now.retrieval, better, link.failed))
    return tuple(changes), sum(retrieved) if retrieved else None


def reached_cases(baseline: RetrievalBaseline, result: OptionResult) -> tuple[str, ...] | None:
    """Return the failed cases that get all that they lost; None where none is known to, and some may.

    A case is never reached whose passage the app's filter or index keeps from every search.
    """
    lost, known, reached = set[str](), True, list[str]()
    for name, misses in fixable_losses(baseline.links):
        if not any(miss.kind in UNSEARCHABLE for miss in misses):
            lost.add(name)
    for link, now in zip(baseline.links, result.outcomes(), strict=True):
        if link.case_id not in lost:
            continue
        if now is None:
            known = False
            continue
        found = {match.need.evidence or match.need.id for match in now.found}
        if all(
            (miss.evidence or miss.passage_id) in found
            for miss in lost_passages(link.needs, link.missed)
        ):
            reached.append(link.case_id)
    return tuple(reached) if reached or known else None


def _unknown_misses(baseline: RetrievalBaseline, result: OptionResult) -> str | None:
    """How many cases are misses or hits in the run and unknown for an option, and why."""
    pairs = list(zip(baseline.outcomes(), result.outcomes(), result.traces, strict=True))
    reasons = Counter(
        trace.unmeasured or str(Reason(code="relevant_unknown"))
        for before, after, trace in pairs
        if before is not None and after is None
    )
    known = sum(before is not None for before, _, _ in pairs)
    why = "; ".join(reason for reason, _ in reasons.most_common())
    code = Reason(code="cases_unknown", n=reasons.total(), of=known, why=why)
    return str(code) if reasons else None


def baseline_metrics(
    baseline: RetrievalBaseline, seed: int
) -> tuple[MetricScores, dict[str, Estimate]]:
    """The run's own scores by metric and case, and their means."""
    scores = _score_at_cutoff(baseline.cases, baseline.traces, baseline.k, baseline.k)
    return scores, {
        name: mean_scores(case_scores.values(), seed=seed) for name, case_scores in scores.items()
    }


def compare_metrics(
    baseline: RetrievalBaseline, before: MetricScores, results: Sequence[OptionResult], seed: int
) -> list[MetricComparisons]:
    """Compare every metric of every option with the baseline, paired by case.

    The p-values of one metric are corrected over the options (Holm). A metric at k is taken at k
    times as many passages as the option returns more, under the baseline's name; ``at`` is that
    cutoff. ``detectable`` is the difference the cases could show at the level that Holm leaves.
    """
    rows = []
    for result in results:
        cutoff = baseline.cutoff(result.width)
        after = _score_at_cutoff(result.cases, result.traces, baseline.k, cutoff)
        row: dict[str, tuple[Estimate, Estimate, PairedComparison]] = {}
        for name, case_scores in before.items():
            a, b = list(case_scores.values()), [after[name][case.id] for case in baseline.cases]
            both = [pair for pair in zip(a, b, strict=True) if None not in pair]
            old, new = (mean_scores([pair[side] for pair in both], seed=seed) for side in (0, 1))
            row[name] = old, new, paired_difference(a, b, seed=seed)
        rows.append(row)
    corrected = {name: holm([row[name][2].p for row in rows]) for name in before}
    comparisons = []
    for place, (result, row) in enumerate(zip(results, rows, strict=True)):
        comparison = {}
        for name, (old, new, paired) in row.items():
            p_holm, difference = corrected[name][place], paired.difference.value
            winner = None
            if p_holm is not None and p_holm < _SIGNIFICANT and difference:
                winner = "option" if difference > 0 else "today"
            comparison[name] = OptionMetric(
                at=baseline.cutoff(result.width) if "@" in name else None,
                a=old,
                b=new,
                difference=paired.difference,
                p=paired.p,
                p_holm=p_holm,
                tests=sum(p is not None for p in corrected[name]),
                detectable=detectable_after_holm(paired, corrected[name]),
                winner=winner,
            )
        comparisons.append(comparison)
    return comparisons


def context_tokens(baseline: RetrievalBaseline, result: OptionResult, seed: int) -> Estimates:
    """Tokens of the context (characters by four), of the run and with the option."""
    with_text = [p for trace in baseline.traces for p in trace.retrieved if p.text]
    total = estimate_tokens(with_text)
    usual = total / len(with_text) if total and with_text else None
    before = [
        tokens
        for trace in baseline.traces
        if trace.retrieved and (tokens := estimate_tokens(trace.context(baseline.k))) is not None
    ]
    after = []
    for trace in result.traces:
        context = trace.retrieved[: result.width]
        # A passage without a known text, between two that have one, counts as long as the others.
        lengths = [estimate_tokens([passage]) if passage.text else usual for passage in context]
        known_lengths = [length for length in lengths if length is not None]
        if any(passage.text for passage in context) and len(known_lengths) == len(lengths):
            after.append(sum(known_lengths))
    return {
        key: mean(values, seed=seed, bounds=None)
        if values
        else Estimate.missing(Reason(code="no_text"))
        for key, values in (("today", before), ("b", after))
    }


def estimate_tokens(passages: Iterable[Passage]) -> float | None:
    """About how many tokens the passages have together; None where none has a text."""
    texts = [passage.text for passage in passages]
    if texts and not any(texts):
        return None
    return sum(map(len, texts)) / CHARACTERS_PER_TOKEN


def _score_at_cutoff(
    cases: Sequence[Case], traces: Sequence[Trace], k: int, cutoff: int
) -> MetricScores:
    """Scores at `cutoff`, named as at `k`."""
    names = {f"{metric}@{cutoff}": f"{metric}@{k}" for metric in _CUTOFF_METRICS}
    scores = score_cases(cases, traces, [*names, "mrr"])
    return {names.get(name, name): case_scores for name, case_scores in scores.items()}


# An index may well lack some of what is needed. One that lacks most of it is another corpus, in
# which every option would look harmful.
_MAX_MISSING_SHARE = 0.5


def check_corpus(
    today: RetrievalBaseline, corpus: Sequence[Passage]
) -> tuple[tuple[Passage, ...], list[str]]:
    """The corpus' passages with a text, each id once, and what to know of them.

    Raises
    ------
    InputError
        It holds no text, or lacks more than half of the passages that the gold set names.
    """
    pool = PassagePool(today.traces, corpus)
    if not pool.passages:
        raise InputError("the corpus has no texts; give one with texts")
    needed = {
        id_
        for case in today.cases
        if not any(case.evidence.values())
        for id_ in (
            [id_in_set for group in case.relevant_any for id_in_set in group]
            or [name for name, grade in case.relevant.items() if grade > 0]
        )
    }
    lacking = needed - pool.position.keys()
    if len(lacking) > _MAX_MISSING_SHARE * len(needed):
        count = "none" if lacking == needed else f"only {len(needed) - len(lacking)}"
        raise InputError(
            f"the corpus holds {count} of the {len(needed)} passages that the gold set names (it "
            f"lacks '{min(lacking)}'); give the corpus that the app searches, with the same ids"
        )
    notes = []
    if lacking:
        notes.append(Reason(code="corpus_lacks", n=len(lacking), of=len(needed)))
    if not (pool.knows_ids or pool.knows_texts):
        notes.append(Reason(code="other_corpus"))
    if changed := _with_other_text(today.traces, pool):
        notes.append(Reason(code="other_texts", n=len(changed)))
    notes.append(Reason(code="searched_by_question"))
    if turns := sum(case.judged_question != case.question for case in today.cases):
        notes.append(Reason(code="searched_standalone", turns=turns))
    return pool.passages, [describe_note(note) for note in notes]


def _with_other_text(traces: Sequence[Trace], pool: PassagePool) -> set[str]:
    """Ids whose one text in the traces is not that of the corpus; those of documents have several."""
    seen: dict[str, set[str]] = {}
    for passage in (passage for trace in traces for passage in trace.retrieved if passage.text):
        seen.setdefault(passage.id, set()).add(passage.text)
    return {
        id_
        for id_, (text, *others) in seen.items()
        if not others
        and (indexed := pool.text(id_)) not in (None, text)
        and fold(indexed) != fold(text)
    }


def index_texts(run: Run, corpus: Sequence[Passage] | None) -> Mapping[str, Passage]:
    """Every passage with a text that the corpus or a trace of the run holds, by id."""
    seen = [passage for trace in run.traces for passage in (*trace.retrieved, *trace.deeper)]
    return {passage.id: passage for passage in (*seen, *(corpus or ())) if passage.text}
