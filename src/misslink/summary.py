"""From verdicts and rank scores to numbers fit to be read: levels, slices, coverage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from misslink.judging.shares import GOOD_SHARES
from misslink.stats import mean
from misslink.types import Case, Estimate, Verdict

__all__ = [
    "Reading",
    "Scores",
    "coverage",
    "levels",
    "lower_is_better",
    "mean_read",
    "mean_scores",
    "numbers_of",
    "slices",
]

_FIELDS = ("category", "tier")  # of a case; they come before its tags
_BAD_PARTS = ("over_refused", "should_have_abstained")  # of abstention, which is good when high
# Parts of verdicts that are numbers of their own, and what these are called.
_PARTS: dict[str, dict[str, str]] = {
    "correctness": {"precision": "correctness_precision", "recall": "correctness_recall"},
    "abstention": {
        "over_refused": "over_refused",
        "should_have_abstained": "should_have_abstained",
    },
    "citation_correctness": {"recall": "citation_recall"},
}

Scores = Mapping[str, Mapping[str, float | None]]  # rank metric -> case id -> value
Reading = Callable[[Verdict], float | None]  # one number of a verdict, in [0, 1]


def levels(
    scores: Scores, verdicts: Sequence[Verdict], level_of: Mapping[str, int], *, seed: int
) -> dict[str, dict[str, Any]]:
    """Return the estimates of the three levels.

    Parameters
    ----------
    scores : mapping of str to mapping of str to float or None
        Rank metric to case id to value.
    verdicts : sequence of Verdict
    level_of : mapping of str to int
        Judged metric to its level, 2 or 3; each appears even without any verdict.
    seed : int
        Of the bootstrap.

    Returns
    -------
    dict
        'retrieval', 'generation' and 'answer', each metric name to Estimate. ``faithful`` and
        ``correct`` are the shares of answers whose faithfulness and correctness are good.
    """
    generation: dict[str, Any] = {}
    answer: dict[str, Any] = {}
    for metric, level in level_of.items():
        mine = [verdict for verdict in verdicts if verdict.metric == metric]
        target = generation if level == 2 else answer  # noqa: PLR2004 (levels are numbered)
        for name, read in numbers_of(metric).items():
            target[name] = mean_read(mine, read, seed=seed).model_dump()
    return {
        "retrieval": {
            metric: mean_scores(of_case.values(), seed=seed).model_dump()
            for metric, of_case in scores.items()
        },
        "generation": generation,
        "answer": answer,
    }


def slices(
    cases: Sequence[Case], scores: Scores, verdicts: Sequence[Verdict], *, k: int, seed: int
) -> dict[str, dict[str, Any]]:
    """Return recall@k, faithful and correctness by category, by tier and by each tag.

    A tag that is called as one of the two, where cases have that one, is passed over.

    Returns
    -------
    dict
        'category', 'tier' or the tag's name, to the group's name, to ``{"n", "metrics"}``.
    """
    taken = {axis for axis in _FIELDS if any(getattr(case, axis) is not None for case in cases)}
    groups: dict[str, dict[str, set[str]]] = {}
    for case in cases:
        axes = {name: tag for name, tag in case.tags.items() if name not in taken}
        axes |= {axis: group for axis in taken if (group := getattr(case, axis)) is not None}
        for axis, group in axes.items():
            groups.setdefault(axis, {}).setdefault(group, set()).add(case.id)
    recall = scores.get(f"recall@{k}", {})
    found: dict[str, dict[str, Any]] = {}
    for axis in sorted(groups, key=lambda name: (name not in _FIELDS, name)):
        for group, ids in sorted(groups[axis].items()):
            mine = [verdict for verdict in verdicts if verdict.case_id in ids]
            faithfulness = [v for v in mine if v.metric == "faithfulness"]
            correctness = [v for v in mine if v.metric == "correctness"]
            metrics = {
                f"recall@{k}": mean_scores([recall.get(i) for i in sorted(ids)], seed=seed),
                "faithful": mean_read(faithfulness, _good, seed=seed),
                "correctness": mean_read(correctness, _value, seed=seed),
            }
            found.setdefault(axis, {})[group] = {
                "n": len(ids),
                "metrics": {name: value.model_dump() for name, value in metrics.items()},
            }
    return found


def coverage(verdicts: Sequence[Verdict], metrics: Iterable[str]) -> dict[str, dict[str, int]]:
    """Count the verdicts of each metric that are scored, skipped and failed."""
    counts = Counter((verdict.metric, verdict.status) for verdict in verdicts)
    return {
        metric: {status: counts[metric, status] for status in ("scored", "skipped", "failed")}
        for metric in metrics
    }


def lower_is_better(metrics: Iterable[object]) -> list[str]:
    """Names of the numbers of `levels` that are good when they are low, sorted.

    Parameters
    ----------
    metrics : iterable of JudgedMetric
    """
    low = [str(getattr(m, "name", "")) for m in metrics if getattr(m, "better", "high") == "low"]
    return sorted([*low, *_BAD_PARTS])


def numbers_of(metric: str) -> dict[str, Reading]:
    """What the verdicts of a judged metric say in numbers: the name of each, and how it is read.

    >>> list(numbers_of("faithfulness")), list(numbers_of("context_relevance"))
    (['faithfulness', 'faithful'], ['context_relevance'])
    """
    numbers: dict[str, Reading] = {metric: _value}
    numbers |= {shown: _part(part) for part, shown in _PARTS.get(metric, {}).items()}
    if metric in GOOD_SHARES:
        numbers[GOOD_SHARES[metric]] = _good
    return numbers


def mean_scores(values: Iterable[float | None], *, seed: int) -> Estimate:
    """Mean of a rank metric over the cases that have a value; missing where none has."""
    known = [value for value in values if value is not None]
    if not known:
        return Estimate.missing("no case has relevant passages and a ranking")
    return mean(known, seed=seed)


def mean_read(verdicts: Sequence[Verdict], read: Reading, *, seed: int) -> Estimate:
    """Mean of one number of a metric's verdicts; missing where none has it, and then says why."""
    known = [value for value in map(read, verdicts) if value is not None]
    return mean(known, seed=seed) if known else Estimate.missing(_why_none(verdicts))


def _value(verdict: Verdict) -> float | None:
    return verdict.value


def _part(name: str) -> Reading:
    return lambda verdict: verdict.parts.get(name)


def _good(verdict: Verdict) -> float | None:
    return None if verdict.label is None else float(verdict.label)


def _why_none(verdicts: Sequence[Verdict]) -> str:
    """Say why no verdict has a value, the most frequent reason first."""
    if not verdicts:
        return "no judge was asked"
    reasons = Counter(f"{v.status}: {v.reason}" for v in verdicts if v.value is None)
    if not reasons:
        return "no verdict has this part"
    reason, count = reasons.most_common(1)[0]
    others = len(reasons) - 1
    more = f", and {others} other reason{'s' * (others > 1)}" if others else ""
    return f"no case has a value ({count} of {len(verdicts)} {reason}{more})"
