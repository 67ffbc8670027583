"""When recall at a small cutoff no longer says enough, and ndcg@10 does."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from misslink.types import Case, Reason

_MANY_CASES = 5_000  # from here on small differences in order are seen, and recall has none
_MIN_PAIRS = 30  # a correlation of fewer says nothing
_LEAST_CORRELATION = 0.1  # below it two numbers do not go along
_NORMAL_95 = 1.96


def ndcg_reasons(
    cases: Sequence[Case],
    recall: Mapping[str, float | None] | None = None,
    passed: Mapping[str, bool] | None = None,
) -> tuple[Reason, ...]:
    """Return why ndcg@10 shows more than recall@5 on these cases; empty where it does not.

    Parameters
    ----------
    cases : sequence of Case
    recall : mapping of case id to recall@5, optional
    passed : mapping of case id to whether the answer passed, optional

    Examples
    --------
    >>> case = Case(id="a", question="Why?", relevant={"p": 2, "q": 1})
    >>> ndcg_reasons([case])
    (Reason(code='graded_labels'),)
    """
    reasons = []
    if len(cases) > _MANY_CASES:
        reasons.append(Reason(code="many_cases", n=len(cases)))
    labels = (each for case in cases for each in (case.relevant, case.evidence))
    if any(len({*grades.values()} - {0}) > 1 for grades in labels):
        reasons.append(Reason(code="graded_labels"))
    if recall is not None and passed is not None and _is_unrelated(recall, passed):
        reasons.append(Reason(code="recall_unrelated"))
    return tuple(reasons)


def _is_unrelated(recall: Mapping[str, float | None], passed: Mapping[str, bool]) -> bool:
    """Whether the whole interval of the correlation (Fisher's z) lies below what goes along."""
    pairs = [
        (value, float(passed[name]))
        for name, value in recall.items()
        if value is not None and name in passed
    ]
    n = len(pairs)
    if n < _MIN_PAIRS:
        return False
    mean_recall, mean_passed = (sum(column) / n for column in zip(*pairs, strict=True))
    spread = [
        math.fsum((pair[side] - mean) ** 2 for pair in pairs)
        for side, mean in ((0, mean_recall), (1, mean_passed))
    ]
    if not all(spread):
        return False
    both = math.fsum((a - mean_recall) * (b - mean_passed) for a, b in pairs)
    correlation = max(-0.999, min(0.999, both / math.sqrt(spread[0] * spread[1])))
    return math.tanh(math.atanh(correlation) + _NORMAL_95 / math.sqrt(n - 3)) < _LEAST_CORRELATION
