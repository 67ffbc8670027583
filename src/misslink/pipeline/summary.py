"""Summarize verdicts and rank scores: levels, slices, coverage, repeatability."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from misslink.case_fields import conversation_turns
from misslink.document_model import Estimates
from misslink.documents import (
    ChangeParts,
    Coverage,
    Repeatability,
    SampleMeans,
    Slice,
    VerdictRepeatability,
)
from misslink.judge.judged_metric import JudgedMetric
from misslink.metrics import GOOD_SHARES, NAMED_PARTS
from misslink.retrieval import mean_scores
from misslink.stats import mean, paired_difference, proportion
from misslink.types import Case, Estimate, Outcome, Reason, Repeats, Scored

_CASE_AXES = ("category", "tier")  # of a case; they come before its tags

RankScores = Mapping[str, Mapping[str, float | None]]  # rank metric -> case id -> value
Reading = Callable[[Scored], float | None]  # one number of a verdict, in [0, 1]


def level_estimates(
    scores: RankScores,
    verdicts: Sequence[Scored],
    level_of: Mapping[str, int],
    unmatched: Reason | None = None,
    *,
    seed: int,
) -> dict[str, Estimates]:
    """Return the estimates of the three levels.

    Parameters
    ----------
    scores : mapping of str to mapping of str to float or None
        Rank metric to case id to value.
    verdicts : sequence of Verdict
    level_of : mapping of str to int
        Judged metric to its level, 2 or 3; each appears even without any verdict.
    unmatched : Reason or None
        Why level 1 could not be measured.
    seed : int
        Of the bootstrap.

    Returns
    -------
    dict
        'retrieval', 'generation' and 'answer', each metric name to Estimate. ``fully_faithful`` and
        ``correct`` are the shares of answers whose faithfulness and correctness are good.
    """
    generation, answer, by_metric = Estimates(), Estimates(), _by_metric(verdicts)
    for metric, level in level_of.items():
        target = generation if level == 2 else answer
        for name, read in metric_readings(metric).items():
            target[name] = mean_reading(by_metric[metric], read, seed=seed)
    return {
        "retrieval": {
            metric: mean_scores(of_case.values(), unmatched, seed=seed)
            for metric, of_case in scores.items()
        },
        "generation": generation,
        "answer": answer,
    }


def slice_estimates(
    cases: Sequence[Case], scores: RankScores, verdicts: Sequence[Scored], *, k: int, seed: int
) -> dict[str, dict[str, Slice]]:
    """Return recall@k, faithful and correctness by category, by tier and by each tag.

    A tag that is called as one of the two, where cases have that one, is passed over.

    Returns
    -------
    dict
        'category', 'tier' or the tag's name, to the group's name, to its slice.
    """
    taken = {axis for axis in _CASE_AXES if any(getattr(case, axis) is not None for case in cases)}
    groups: dict[str, dict[str, set[str]]] = {}
    for case in cases:
        axes = {name: tag for name, tag in case.tags.items() if name not in taken}
        axes |= {axis: group for axis in taken if (group := getattr(case, axis)) is not None}
        for axis, group in axes.items():
            groups.setdefault(axis, {}).setdefault(group, set()).add(case.id)
    recall, by_metric = scores.get(f"recall@{k}", {}), _by_metric(verdicts)
    slices: dict[str, dict[str, Slice]] = {}
    for axis in sorted(groups, key=lambda name: (name not in _CASE_AXES, name)):
        for group, ids in sorted(groups[axis].items()):
            faithfulness = [v for v in by_metric["faithfulness"] if v.case_id in ids]
            correctness = [v for v in by_metric["correctness"] if v.case_id in ids]
            metrics = {
                f"recall@{k}": mean_scores([recall.get(i) for i in sorted(ids)], seed=seed),
                "fully_faithful": mean_reading(faithfulness, _verdict_label, seed=seed),
                "correctness": mean_reading(correctness, _verdict_value, seed=seed),
            }
            slices.setdefault(axis, {})[group] = Slice(n=len(ids), metrics=metrics)
    return slices


def _by_metric(verdicts: Iterable[Scored]) -> defaultdict[str, list[Scored]]:
    """The verdicts of each metric, in their order."""
    groups = defaultdict[str, list[Scored]](list)
    for verdict in verdicts:
        groups[verdict.metric].append(verdict)
    return groups


def conversation_estimate(cases: Sequence[Case], links: Iterable[Outcome]) -> Estimates:
    """Return ``conversations_passed``, the share whose turns all pass; nothing without any.

    A conversation without a failure and with an undecided turn is left out.
    """
    failed = {link.case_id: link.failed for link in links}
    turns: dict[str, set[bool | None]] = {}
    for case_id, (conversation, _) in conversation_turns(cases).items():
        turns.setdefault(conversation, set()).add(failed.get(case_id))
    passed = sum(of_one == {False} for of_one in turns.values())
    known = passed + sum(True in of_one for of_one in turns.values())
    share = proportion(passed, known) if known else Estimate.missing(Reason(code="not_judged"))
    return {"conversations_passed": share} if turns else {}


def verdict_coverage(verdicts: Sequence[Scored], metrics: Iterable[str]) -> dict[str, Coverage]:
    """Count the verdicts of each metric that are scored, skipped and failed."""
    counts = Counter((verdict.metric, verdict.status) for verdict in verdicts)
    return {
        metric: Coverage(
            scored=counts[metric, "scored"],
            skipped=counts[metric, "skipped"],
            failed=counts[metric, "failed"],
        )
        for metric in metrics
    }


def lower_is_better(metrics: Iterable[JudgedMetric]) -> list[str]:
    """Names of the numbers of `levels` that are good when they are low, sorted."""
    low = [metric.name for metric in metrics if metric.better == "low"]
    return sorted([*low, *NAMED_PARTS["abstention"].values()])


def metric_readings(metric: str) -> dict[str, Reading]:
    """What the verdicts of a judged metric say in numbers: the name of each, and how it is read.

    >>> list(metric_readings("faithfulness")), list(metric_readings("context_relevance"))
    (['faithfulness', 'fully_faithful'], ['context_relevance'])
    """
    numbers: dict[str, Reading] = {metric: _verdict_value}
    numbers |= {name: _verdict_part(part) for part, name in NAMED_PARTS.get(metric, {}).items()}
    if metric in GOOD_SHARES:
        numbers[GOOD_SHARES[metric]] = _verdict_label
    return numbers


def mean_reading(verdicts: Sequence[Scored], read: Reading, *, seed: int) -> Estimate:
    """Mean of one number of a metric's verdicts; missing where none has it, and then says why."""
    readings = [value for value in map(read, verdicts) if value is not None]
    return mean(readings, seed=seed) if readings else Estimate.missing(_missing_reason(verdicts))


def _verdict_value(verdict: Scored) -> float | None:
    return verdict.value


def _verdict_part(name: str) -> Reading:
    return lambda verdict: verdict.parts.get(name)


def _verdict_label(verdict: Scored) -> float | None:
    return None if verdict.label is None else float(verdict.label)


def _missing_reason(verdicts: Sequence[Scored]) -> Reason:
    """Say why no verdict has a value, the most frequent reason first."""
    if not verdicts:
        return Reason(code="not_judged")
    reasons = Counter(f"{v.status}: {v.reason}" for v in verdicts if v.value is None)
    if not reasons:
        return Reason(code="no_part")
    reason, count = reasons.most_common(1)[0]
    return Reason(
        code="no_verdict_value",
        verdicts=len(verdicts),
        n=count,
        why=reason,
        others=len(reasons) - 1,
    )


T = TypeVar("T")

_MIN_SAMPLES = 2  # fewer samples cannot differ
_LARGEST_SD = math.sqrt(0.5)  # of two or more values in [0, 1]: that of 0 and 1


def judge_differences(before: Sequence[Scored], now: Sequence[Scored], *, seed: int) -> Estimates:
    """Return by metric how far a judge's mean is from that of another on the same answers."""
    differences, later = {}, _by_metric(now)
    for metric, earlier in _by_metric(before).items():
        old, new = ({v.case_id: v for v in those} for those in (earlier, later[metric]))
        both = [(old[case_id], new[case_id]) for case_id in old if case_id in new]
        for name, read in metric_readings(metric).items():
            pairs = [(read(a), read(b)) for a, b in both]
            test = paired_difference([a for a, _ in pairs], [b for _, b in pairs], seed=seed)
            differences[name] = test.difference
    return differences


def separate_change(
    before: Sequence[Scored],
    again: Sequence[Scored],
    after: Sequence[Scored],
    *,
    level: float,
    seed: int,
) -> ChangeParts:
    """Return the app's and the judge's part of a change: `again` is `before` by the later judge.

    The metric is whether answers are fully faithful; without it, the first that all three have.
    """
    runs = [{(v.metric, v.case_id): v for v in run} for run in (before, again, after)]
    shared = [key for key in runs[1] if key in runs[0] and key in runs[2]]
    metric = min((key[0] for key in shared), key=lambda name: name != "faithfulness", default=None)
    if metric is None:
        return ChangeParts(metric=None, judge=None, app=None, gap=None, larger=None)
    name, read = list(metric_readings(metric).items())[-1]
    values = [[read(run[key]) for run in runs] for key in shared if key[0] == metric]
    rows = [[value for value in row if value is not None] for row in values if None not in row]

    def difference(a: list[float], b: list[float], most: float = 1.0) -> Estimate:
        return paired_difference(a, b, bounds=(0.0, most), level=level, seed=seed).difference

    old, new, other = ([row[at] for row in rows] for at in range(len(runs)))
    judge, app = difference(old, new), difference(new, other)
    twice = [2 * value for value in new]
    gap = difference(twice, [a + b for a, b in zip(old, other, strict=True)], 2.0)
    # With a sum above 0 the larger part is the one with the larger value; below 0, the other one.
    signs = _sign(gap) * _sign(difference(old, other))
    larger = {1: "app", -1: "judge"}.get(signs)
    return ChangeParts(metric=name, judge=judge, app=app, gap=gap, larger=larger)


def _sign(estimate: Estimate) -> int:
    """The sign of a difference; 0 where its interval has 0, or it has none."""
    if estimate.low is None or estimate.high is None:
        return 0
    return (estimate.low > 0) - (estimate.high < 0)


def judge_repeatability(
    verdicts: Sequence[Scored], metrics: Iterable[str], *, seed: int = 0
) -> Repeatability:
    """Return how much verdicts and means move between samples of the same questions.

    Parameters
    ----------
    verdicts : sequence of Verdict
    metrics : iterable of str
        The judged metrics; each appears, even where none of its verdicts was sampled twice.
    seed : int
        Random seed for bootstrap intervals.

    Returns
    -------
    Repeatability
        Empty, of no ``samples``, if no verdict was sampled more than once. Else by metric:

        ``metrics``
            ``n``: verdicts with two or more samples that have a value. ``incomplete``: verdicts
            where only some samples have a value. ``flip_rate``: Estimate, the share of verdicts
            whose labels are not unanimous; it grows with the number of samples.
            ``disagreement``: Estimate, the mean over verdicts of 2 k (m - k) / (m (m - 1)) for k
            good labels among m: how often two samples of the same question give different labels,
            whatever their number. ``spread``: Estimate, the mean of the verdicts' standard
            deviations (m - 1).
        ``run``
            ``values``: the metric's mean over the cases for each sample, as if it had been the
            only one; ``mean`` and ``sd`` (m - 1) of these; ``n``: the cases where every sample has
            a value, so that the values differ only by the judge;
            ``reason``: why they are None.

    References
    ----------
    The disagreement of two ratings is one minus the observed agreement of Fleiss (1971), Measuring
    nominal scale agreement among many raters.
    """
    of_metric: dict[str, list[Repeats]] = {metric: [] for metric in metrics}
    samples = 0
    for verdict in verdicts:
        if verdict.repeats is not None and len(verdict.repeats.values) >= _MIN_SAMPLES:
            samples = max(samples, len(verdict.repeats.values))
            if verdict.metric in of_metric:
                of_metric[verdict.metric].append(verdict.repeats)
    sampled = of_metric if samples else {}
    return Repeatability(
        samples=samples,
        metrics={name: _verdict_repeatability(r, seed) for name, r in sampled.items()},
        run={name: _sample_means(repeats) for name, repeats in sampled.items()},
    )


def _verdict_repeatability(repeats: Sequence[Repeats], seed: int) -> VerdictRepeatability:
    values = [_without_missing(repeat.values) for repeat in repeats]
    labels = [_without_missing(repeat.labels) for repeat in repeats]
    labels = [each for each in labels if len(each) >= _MIN_SAMPLES]
    spreads = [repeat.spread for repeat in repeats if repeat.spread is not None]
    flip_rate = disagreement = Estimate.missing(Reason(code="no_two_labels"))
    if labels:
        flip_rate = proportion(sum(len(set(each)) > 1 for each in labels), len(labels))
        counts = [(sum(each), len(each)) for each in labels]
        # How often two labels of a question, drawn at random, differ.
        disagreement = mean([2 * g * (m - g) / (m * (m - 1)) for g, m in counts], seed=seed)
    spread = Estimate.missing(Reason(code="no_two_values"))
    if spreads:
        spread = mean(spreads, seed=seed, bounds=(0.0, _LARGEST_SD))
    sizes = [(len(known), len(r.values)) for known, r in zip(values, repeats, strict=True)]
    return VerdictRepeatability(
        n=sum(known >= _MIN_SAMPLES for known, _ in sizes),
        incomplete=sum(0 < known < asked for known, asked in sizes),
        flip_rate=flip_rate,
        disagreement=disagreement,
        spread=spread,
    )


def _sample_means(repeats: Sequence[Repeats]) -> SampleMeans:
    """The metric's mean over the cases, sample by sample, over the cases that have them all."""
    samples = max((len(repeat.values) for repeat in repeats), default=0)
    whole = [v for r in repeats if len(v := _without_missing(r.values)) == samples]
    if not whole:
        reason = "no case has a value in every sample"
        return SampleMeans(n=0, mean=None, sd=None, values=(), reason=reason)
    values = tuple(map(statistics.mean, zip(*whole, strict=True)))
    return SampleMeans(
        n=len(whole),
        mean=statistics.mean(values),
        sd=statistics.stdev(values),
        values=values,
        reason=None,
    )


def _without_missing(values: Iterable[T | None]) -> list[T]:
    return [value for value in values if value is not None]
