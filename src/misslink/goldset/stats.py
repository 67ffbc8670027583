"""Descriptive statistics of a gold set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from misslink.types import Case

_QUANTILES = (0, 0.25, 0.5, 0.75, 1)
_NO_VALUE = ""  # the key of cases without a value


def describe_goldset(cases: Sequence[Case]) -> dict[str, Any]:
    """Describe a gold set by counts.

    Returns
    -------
    dict
        ``cases``; ``categories``, ``tiers`` and ``tags`` (tag to value to count; the key is empty
        for cases without a value); ``answerable`` (yes, no, unknown); ``with`` (cases that have
        relevant passages, alternatives, evidence, references, a date); ``grades`` (of passages and
        evidence); and ``relevant``, ``evidence``, ``references`` (counts a case) and
        ``question_words``, each with minimum, quartiles and maximum, or None without cases.
    """
    tags = sorted({name for case in cases for name in case.tags})
    return {
        "cases": len(cases),
        "categories": _value_counts(case.category for case in cases),
        "tiers": _value_counts(case.tier for case in cases),
        "tags": {name: _value_counts(case.tags.get(name) for case in cases) for name in tags},
        "answerable": {
            name: sum(case.expects_answer is value for case in cases)
            for name, value in (("yes", True), ("no", False), ("unknown", None))
        },
        "with": {
            "relevant": sum(any(case.relevant.values()) for case in cases),
            "relevant_any": sum(bool(case.relevant_any) for case in cases),
            "evidence": sum(any(case.evidence.values()) for case in cases),
            "references": sum(bool(case.references) for case in cases),
            "asked_at": sum(case.asked_at is not None for case in cases),
        },
        "grades": _value_counts(
            str(grade)
            for case in cases
            for graded in (case.relevant, case.evidence)
            for grade in graded.values()
        ),
        "relevant": _five_numbers(cases, lambda case: sum(g > 0 for g in case.relevant.values())),
        "evidence": _five_numbers(cases, lambda case: sum(g > 0 for g in case.evidence.values())),
        "references": _five_numbers(cases, lambda case: len(case.references)),
        "question_words": _five_numbers(cases, lambda case: len(case.question.split())),
    }


def _value_counts(values: Iterable[str | None]) -> dict[str, int]:
    """How often each value occurs, the most frequent first, then by name."""
    counts = Counter(_NO_VALUE if value is None else value for value in values)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _five_numbers(cases: Sequence[Case], count: Callable[[Case], int]) -> dict[str, float] | None:
    """Minimum, lower quartile, median, upper quartile and maximum."""
    import numpy as np

    if not cases:
        return None
    quantiles = np.quantile([count(case) for case in cases], _QUANTILES)
    names = ("least", "lower_quartile", "median", "upper_quartile", "most")
    return dict(zip(names, map(float, quantiles), strict=True))
