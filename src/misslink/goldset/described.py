"""What a gold set holds, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from misslink.types import Case

__all__ = ["described"]

_QUANTILES = (0, 0.25, 0.5, 0.75, 1)
_WITHOUT = ""  # the key of cases that do not say


def described(cases: Sequence[Case]) -> dict[str, Any]:
    """Count what cases say.

    Parameters
    ----------
    cases : sequence of Case
        A whole gold set: these are counts of it, not estimates of anything.

    Returns
    -------
    dict
        ``cases``; ``categories``, ``tiers`` and ``tags`` (tag to value to count; the key is empty
        for cases that do not say); ``answerable`` (yes, no, unknown); ``with`` (cases that have
        relevant passages, alternatives, evidence, references, a date); ``grades`` (of passages and
        evidence); and ``relevant``, ``evidence``, ``references`` (counts a case) and
        ``question_words``, each with its least, quartiles and most, or None for no case at all.
    """
    tags = sorted({name for case in cases for name in case.tags})
    return {
        "cases": len(cases),
        "categories": _counts(case.category for case in cases),
        "tiers": _counts(case.tier for case in cases),
        "tags": {name: _counts(case.tags.get(name) for case in cases) for name in tags},
        "answerable": {
            said: sum(case.expects_answer is value for case in cases)
            for said, value in (("yes", True), ("no", False), ("unknown", None))
        },
        "with": {
            "relevant": sum(any(case.relevant.values()) for case in cases),
            "relevant_any": sum(bool(case.relevant_any) for case in cases),
            "evidence": sum(any(case.evidence.values()) for case in cases),
            "references": sum(bool(case.references) for case in cases),
            "asked_at": sum(case.asked_at is not None for case in cases),
        },
        "grades": _counts(
            str(grade)
            for case in cases
            for graded in (case.relevant, case.evidence)
            for grade in graded.values()
        ),
        "relevant": _spread(cases, lambda case: sum(g > 0 for g in case.relevant.values())),
        "evidence": _spread(cases, lambda case: sum(g > 0 for g in case.evidence.values())),
        "references": _spread(cases, lambda case: len(case.references)),
        "question_words": _spread(cases, lambda case: len(case.question.split())),
    }


def _counts(values: Iterable[str | None]) -> dict[str, int]:
    """How often each value stands, the most frequent first, then by name."""
    found: Counter[Hashable] = Counter(_WITHOUT if value is None else value for value in values)
    return {
        str(value): count
        for value, count in sorted(found.items(), key=lambda p: (-p[1], str(p[0])))
    }


def _spread(cases: Sequence[Case], count: Callable[[Case], int]) -> dict[str, float] | None:
    """Least, lower quartile, median, upper quartile and most."""
    import numpy as np

    if not cases:
        return None
    found = np.quantile([count(case) for case in cases], _QUANTILES)
    names = ("least", "lower_quartile", "median", "upper_quartile", "most")
    return dict(zip(names, map(float, found), strict=True))
