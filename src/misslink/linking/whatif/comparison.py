"""Compare options with what the retriever did in the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from misslink.errors import InputError
from misslink.linking.missed_passages import PassagePool
from misslink.linking.whatif.effect_model import EXPOSURES, ExposureChange, has_failed
from misslink.render.format import format_p_value, format_points_interval, format_whole_points
from misslink.retrieval import (
    RetrievalOutcome,
    mean_scores,
    retrieval_outcome,
    score_cases,
    unmeasured_reason,
)
from misslink.stats import mean
from misslink.stats.paired_tests import (
    PairedComparison,
    detectable_after_holm,
    holm,
    paired_difference,
)
from misslink.types import Case, Estimate, Link, Passage, Run, Trace

CHARACTERS_PER_TOKEN = 4  # of English text, the customary estimate where no tokenizer is at hand


@dataclass(frozen=True)
class RetrievalBaseline:
    """A run's cases in order, each with its trace and its link.

    Parameters
    ----------
    cases, traces, links : sequence, of equal length
    k : int
        The run's cutoff.
    width : int
        How many passages the answer is written from: the most frequent number.
    listed : int
        How many passages the retriever gives: the most frequent number.
    """

    cases: tuple[Case, ...]
    traces: tuple[Trace, ...]
    links: tuple[Link, ...]
    k: int
    width: int
    listed: int

    @classmethod
    def from_run(cls, run: Run) -> RetrievalBaseline:
        """Read it off a run; InputError where a case of it has no trace or no link."""
        k = run.summary.get("k")
        if not isinstance(k, int) or isinstance(k, bool) or k < 1:
            raise InputError("the run's summary.json has no k; evaluate the app again")
        traces = {trace.case_id: trace for trace in run.traces}
        links = {link.case_id: link for link in run.links}
        for case in run.cases:
            if case.id not in traces or case.id not in links:
                raise InputError(f"the run has no trace or no link of case '{case.id}'")
        run_traces = [traces[case.id] for case in run.cases]
        return cls(
            cases=run.cases,
            traces=tuple(run_traces),
            links=tuple(links[case.id] for case in run.cases),
            k=k,
            width=_most_frequent((len(trace.context(k)) for trace in run_traces), k),
            listed=_most_frequent((len(trace.retrieved) for trace in run_traces), k),
        )

    def outcomes(self) -> tuple[RetrievalOutcome | None, ...]:
        """As `OptionResult.outcomes`, of what the run's own retriever gave."""
        return OptionResult(self.cases, self.traces, self.width).outcomes()

    def cutoff(self, width: int) -> int:
        """The run's k, scaled to a context of `width` passages in place of today's."""
        return max(1, round(self.k * width / self.width))


@dataclass(frozen=True)
class OptionResult:
    """What an option's retriever gives.

    Parameters
    ----------
    cases : sequence of Case
        Today's, in the same order; another chunking may ask for texts in place of ids.
    traces : sequence of Trace
        One a case, best first; ``unmeasured`` says why a case was not measured.
    width : int
        How many of the passages the answer would be written from.
    """

    cases: tuple[Case, ...]
    traces: tuple[Trace, ...]
    width: int

    def outcomes(self) -> tuple[RetrievalOutcome | None, ...]:
        """What is among the first `width`, whatever reached a prompt; None: none needed, unknown."""
        found = (
            retrieval_outcome(case, trace.model_copy(update={"prompted": None}), self.width)
            for case, trace in zip(self.cases, self.traces, strict=True)
        )
        return tuple(outcome if outcome.retrieval in EXPOSURES else None for outcome in found)


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
            better = EXPOSURES.index(now.retrieval) > EXPOSURES.index(was.retrieval)
            changes.append(ExposureChange(place, now.retrieval, better, has_failed(link)))
    return tuple(changes), sum(retrieved) if retrieved else None


def estimate_tokens(passages: Iterable[Passage]) -> float | None:
    """About how many tokens the passages have together; None where none has a text."""
    texts = [passage.text for passage in passages]
    if texts and not any(texts):
        return None
    return sum(map(len, texts)) / CHARACTERS_PER_TOKEN


def unmeasured_trace(trace: Trace, reason: str) -> Trace:
    """A trace of a case that an option could not be tried on; the run's own reason comes first."""
    return Trace(case_id=trace.case_id, unmeasured=unmeasured_reason(trace) or reason)


def _most_frequent(counts: Iterable[int], otherwise: int) -> int:
    """The most frequent of the counts above 0, of several the largest."""
    seen = Counter(count for count in counts if count)
    return max(seen, key=lambda count: (seen[count], count), default=otherwise)


# An index may well lack some of what is needed. One that lacks most of it is another corpus, in
# which every option would look harmful.
_MAX_MISSING_SHARE = 0.5
_QUESTIONS_NOTE = "The corpus is searched with the questions as the gold set has them."


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
        raise InputError("the corpus holds no text; give one with texts")
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
        notes.append(
            f"The corpus lacks {len(lacking)} of the {len(needed)} passages that the gold set "
            "names; no option can find them."
        )
    if not (pool.knows_ids or pool.knows_texts):
        notes.append("The corpus does not hold all that the app retrieved; it may be another one.")
    return pool.passages, [*notes, _QUESTIONS_NOTE]


def index_texts(run: Run, corpus: Sequence[Passage] | None) -> Mapping[str, Passage]:
    """Every passage with a text that the corpus or a trace of the run holds, by id."""
    seen = [passage for trace in run.traces for passage in (*trace.retrieved, *trace.deeper)]
    return {passage.id: passage for passage in (*seen, *(corpus or ())) if passage.text}


_CUTOFF_METRICS = ("hit", "recall", "precision", "ndcg")
_SIGNIFICANT = 0.05

MetricScores = dict[str, dict[str, float | None]]
MetricComparisons = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class UnknownMisses:
    """Cases that are misses or hits in the run and unknown for an option.

    ``reasons`` has the most frequent first.
    """

    cases: int
    of: int
    reasons: tuple[str, ...]

    @classmethod
    def count(cls, baseline: RetrievalBaseline, result: OptionResult) -> UnknownMisses | None:
        """Count them; None where there are none."""
        pairs = list(zip(baseline.outcomes(), result.outcomes(), result.traces, strict=True))
        reasons = Counter(
            trace.unmeasured or "no passage it needs can be told"
            for before, after, trace in pairs
            if before is not None and after is None
        )
        if not reasons:
            return None
        known_count = sum(before is not None for before, _, _ in pairs)
        return cls(
            reasons.total(), known_count, tuple(reason for reason, _ in reasons.most_common())
        )

    def __str__(self) -> str:
        return f"not known for {self.cases} of {self.of} cases: {'; '.join(self.reasons)}"


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
            comparison[name] = {
                "at": baseline.cutoff(result.width) if "@" in name else None,
                "a": old.model_dump(),
                "b": new.model_dump(),
                "difference": paired.difference.model_dump(),
                "p": paired.p,
                "p_holm": p_holm,
                "tests": sum(p is not None for p in corrected[name]),
                "detectable": detectable_after_holm(paired, corrected[name]),
                "winner": winner,
            }
        comparisons.append(comparison)
    return comparisons


def context_tokens(baseline: RetrievalBaseline, result: OptionResult, seed: int) -> dict[str, Any]:
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
        key: (
            mean(values, seed=seed, bounds=None)
            if values
            else Estimate.missing("no passage has a text")
        ).model_dump()
        for key, values in (("today", before), ("b", after))
    }


def option_finding(
    metric: str,
    compared: Mapping[str, Any],
    avoided: Estimate,
    bad: int,
    unknown: UnknownMisses | None,
) -> str:
    """Return one sentence on an option: the change of its metric, and what it would avoid."""
    difference, before, after = (
        Estimate.model_validate(compared[name]) for name in ("difference", "a", "b")
    )
    if difference.value is None or before.value is None or after.value is None:
        return f"{metric} was not measured: {unknown or difference.reason or after.reason}."
    gap = f"{format_points_interval(difference)}{_p_value_text(compared)}"
    if compared["winner"] is None:
        power = _power_text(compared, difference.n)
        finding = f"No detectable difference in {metric}: {gap}{power}"
        return f"{finding}; {unknown}." if unknown else f"{finding}."
    verb = "rises" if compared["winner"] == "option" else "falls"
    old, new = format_whole_points(before.value), format_whole_points(after.value)
    savings = unknown or _savings_text(avoided, bad)
    return f"{metric} {verb} from {old} to {new}%, {gap}; {savings}."


def _savings_text(avoided: Estimate, bad: int) -> str:
    """What an option avoids; an interval that includes 0 promises nothing."""
    if avoided.value is None or avoided.low is None or avoided.high is None:
        return f"failures avoided are not known: {avoided.reason}"
    low, high = round(avoided.low), round(avoided.high)
    size = f"{round(abs(avoided.value), 1) + 0.0:g}"
    if avoided.low > 0:
        return f"about {size} [{low}, {high}] fewer failures, of {bad} now"
    if avoided.high < 0:
        return f"about {size} [{-high}, {-low}] more failures, on top of the {bad} now"
    return f"not enough data to tell whether it avoids failures, of {bad} now"


def _score_at_cutoff(
    cases: Sequence[Case], traces: Sequence[Trace], k: int, cutoff: int
) -> MetricScores:
    """Scores at `cutoff`, named as at `k`."""
    names = {f"{metric}@{cutoff}": f"{metric}@{k}" for metric in _CUTOFF_METRICS}
    scores = score_cases(cases, traces, [*names, "mrr"])
    return {names.get(name, name): case_scores for name, case_scores in scores.items()}


def _p_value_text(compared: Mapping[str, Any]) -> str:
    """The p-value alone, and corrected where several options were tested."""
    p, corrected, tests = compared["p"], compared["p_holm"], compared["tests"]
    if p is None or corrected is None:
        return ""
    if tests == 1:
        return f" ({format_p_value(p)})"
    after = format_p_value(corrected).removeprefix("p ").removeprefix("= ")
    return f" ({format_p_value(p)} alone, {after} after Holm over {tests} options)"


def _power_text(compared: Mapping[str, Any], n: int) -> str:
    cases = "1 case" if n == 1 else f"{n} cases"
    if compared["detectable"] is None:
        return f" over {cases}"
    level = "; " if compared["tests"] == 1 else "; at the corrected level "
    detectable = format_whole_points(compared["detectable"])
    return f"{level}{cases} could show one of {detectable} points at 80% power"
