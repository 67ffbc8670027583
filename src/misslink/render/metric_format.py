"""Format the values of a metric by its name: percentages, decimals, seconds, counts."""

from __future__ import annotations

import re

from misslink.types import Estimate

_CUTOFF_SUFFIX = re.compile(r"(?:_at_|-at-|@)([0-9]+(?:[_.][0-9]+)?)$")
_CUTOFF = re.compile(r"@([1-9][0-9]*)$")
_LEVEL_PREFIXES = ("retrieval_", "generation_", "answer_")
_NAMESPACES = ("link", "coverage", "trust", "usage", "replay", "whatif", "repeats")
_LINK_GROUPS = ("failures", "retrieval", "answers", "adjusted", "wrong", "corrected", "table")
_OUTCOME_PREFIXES = ("link.failures.", "link.retrieval.", "link.answers.")
_SIGNED_METRICS = frozenset({"kappa", "gwet_ac1", "risk_difference"})
_RATES = frozenset({"risk_given_miss", "risk_given_hit", "flaky"})
_COUNT_PREFIXES = (
    "usage.",
    "link.table.",
    "link.wrong.table.",
    "latency",
)  # seconds are none, but as free
_UNBOUNDED = (0.0, float("inf"))


def metric_candidates(name: str) -> list[str]:
    """The metrics that the name of a gate may mean, the likeliest first.

    Examples
    --------
    >>> metric_candidates("retrieval_recall_at_5")[-1]
    'recall@5'
    >>> metric_candidates("link_attributable_fraction")[-1]
    'link.attributable_fraction'
    >>> metric_candidates("link_failures_retrieval_miss")[-1]
    'link.failures.retrieval_miss'
    """
    given_name = name.strip()
    cut = _CUTOFF_SUFFIX.sub(lambda at: "@" + at.group(1).replace("_", "."), given_name)
    candidates = [given_name, cut]
    candidates += [cut.removeprefix(level) for level in _LEVEL_PREFIXES if cut.startswith(level)]
    candidates += [candidate.replace("r_precision", "r-precision") for candidate in candidates]
    room, _, suffix = given_name.partition("_")
    if room in _NAMESPACES and suffix:
        candidates.append(f"{room}.{suffix}")
        group, _, last = suffix.partition("_")
        if group in _LINK_GROUPS and last:
            candidates.append(f"{room}.{group}.{last}")
    return list(dict.fromkeys(candidates))


def metric_bounds(name: str) -> tuple[float, float] | None:
    """What the values of a metric lie between; None where its name does not say so.

    Examples
    --------
    >>> metric_bounds("recall@5"), metric_bounds("link_risk_difference"), metric_bounds("usage.calls")
    ((0.0, 1.0), (-1.0, 1.0), (0.0, inf))
    >>> metric_bounds("retrieval.recall@5"), metric_bounds("slices.category.easy.metrics.mrr")
    ((0.0, 1.0), (0.0, 1.0))
    >>> metric_bounds("coverage.faithfulness"), metric_bounds("coverage.faithfulness.failed"), metric_bounds("cases")
    ((0.0, 1.0), (0.0, inf), (0.0, inf))
    """
    metric = base_metric(metric_candidates(name)[-1])
    room, _, suffix = metric.partition(".")
    last = suffix.rpartition(".")[2]
    if last in _SIGNED_METRICS:
        return -1.0, 1.0
    if last.endswith("attributable_fraction"):
        return float("-inf"), 1.0
    if metric.startswith(_COUNT_PREFIXES) or metric in {"cases", "k"} or last == "risk_ratio":
        return _UNBOUNDED
    if room == "coverage":
        return _UNBOUNDED if "." in suffix else (0.0, 1.0)
    if room == "trust" or metric.startswith(_OUTCOME_PREFIXES) or last in _RATES:
        return 0.0, 1.0
    return None if "." in metric.partition("@")[0] else (0.0, 1.0)


def base_metric(metric: str) -> str:
    """A metric without the level, or the slice of the cases, that its path leads through.

    >>> base_metric("retrieval.recall@5"), base_metric("slices.category.easy.metrics.ndcg@5"), base_metric("rbp@0.8")
    ('recall@5', 'ndcg@5', 'rbp@0.8')
    """
    level, _, suffix = metric.partition(".")
    if f"{level}_" in _LEVEL_PREFIXES:
        return suffix
    inner = metric.rpartition(".metrics.")[2]
    return metric if "." in inner.partition("@")[0] or "." in inner.partition("@")[2] else inner


def metric_cutoff(metric: str) -> int | None:
    """How many passages a rank metric looks at; None where it looks at all of them.

    >>> metric_cutoff("recall@5"), metric_cutoff("mrr"), metric_cutoff("rbp@0.8")
    (5, None, None)
    """
    match = _CUTOFF.search(metric)
    return int(match[1]) if match else None


_MINUS = "\u2212"
_TOLERANCE = 1e-9
_MAX_DIGITS = 6  # digits
_SECONDS_UNIT = " s"
# Ranks weighed, agreement beyond chance, seconds: nobody reads these in per cent.
_DECIMAL_METRICS = ("mrr", "ndcg", "map", "bpref", "rbp", "trust.", "latency", "helpfulness")


def format_values(metric: str, *numbers: float) -> list[str]:
    """Write numbers of one metric so that those that differ look different.

    Examples
    --------
    >>> format_values("recall@5", 0.81, 0.85), format_values("recall@5", 0.8497, 0.85)
    (['81 %', '85 %'], ['84.97 %', '85.00 %'])
    >>> format_values("ndcg@10", 0.731, 0.7), format_values("usage.calls", 1200, 80)
    (['0.73', '0.70'], ['1,200', '80'])
    >>> format_values("latency", 2.5, 3), format_values("latency", 0.0024)
    (['2.50 s', '3.00 s'], ['0.002 s'])
    """
    scale, unit, least = _metric_scale(metric, numbers)
    compared = (*numbers, 0.0) if unit == _SECONDS_UNIT else numbers  # no app takes 0.00 s
    for digits in range(least, _MAX_DIGITS + 1):
        texts = [_format_sign(f"{scale * number:,.{digits}f}") for number in compared]
        if _distinguishable(compared, texts):
            break
    return [text + unit for text in texts[: len(numbers)]]


def format_change(metric: str, change: Estimate) -> str:
    """Write a change with its interval; of a metric in per cent, in points.

    >>> found = Estimate(value=0.15, low=0.0604, high=0.27, n=40, method="bootstrap")
    >>> format_change("recall@5", found), format_change("mrr", found)
    ('15 points [6, 27]', '0.15 [0.06, 0.27]')
    """
    numbers = (change.value, change.low, change.high, 0.0)
    texts = format_values(metric, *(number for number in numbers if number is not None))
    value, *ends = [text.removesuffix(" %") for text in texts[:-1]]
    unit = "" if not texts[0].endswith(" %") else " point" if value == "1" else " points"
    return f"{value}{unit} [{', '.join(ends)}]" if ends else f"{value}{unit}"


def format_drop(metric: str, change: float) -> str:
    """Write the size of a change; of a metric in per cent, in points.

    Examples
    --------
    >>> format_drop("recall@5", 0.06), format_drop("recall@5", 0.0004)
    ('6 points', '0.04 points')
    >>> format_drop("mrr", 0.05), format_drop("recall@5", 0.01)
    ('0.05', '1 point')
    """
    (size, _) = format_values(metric, abs(change), 0.0)
    if not size.endswith(" %"):
        return size
    number = size.removesuffix(" %")
    return f"{number} point" if number == "1" else f"{number} points"


def question_count(count: int) -> str:
    """Write how many questions.

    >>> question_count(1), question_count(6)
    ('1 question', '6 questions')
    """
    return "1 question" if count == 1 else f"{count:,} questions"


def _metric_scale(metric: str, numbers: tuple[float, ...]) -> tuple[int, str, int]:
    """By what a number is multiplied, its unit, and its fewest digits."""
    name = base_metric(metric)
    within = metric_bounds(name)
    if name.startswith(_DECIMAL_METRICS) or within is None or within[1] > 1:
        whole = not name.startswith(_DECIMAL_METRICS) and all(
            number == int(number) for number in numbers
        )
        return 1, _SECONDS_UNIT if name.startswith("latency") else "", 0 if whole else 2
    return 100, " %", 0


def _distinguishable(numbers: tuple[float, ...], texts: list[str]) -> bool:
    pairs = list(zip(numbers, texts, strict=True))
    return all(
        first[1] != other[1] or abs(first[0] - other[0]) <= _TOLERANCE
        for index, first in enumerate(pairs)
        for other in pairs[:index]
    )


def _format_sign(digits: str) -> str:
    size = digits.removeprefix("-")
    return digits.replace("-", _MINUS) if size.strip("0.") else size  # no "-0"
