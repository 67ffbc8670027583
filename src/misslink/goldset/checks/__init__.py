"""Check a gold set: what is wrong with it, where, and how to fix it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from misslink.goldset.checks.coverage import (
    check_balance,
    check_duplicates,
    check_label_counts,
    check_leakage,
    check_metrics,
    check_unjudged,
)
from misslink.goldset.checks.power import check_power
from misslink.goldset.checks.protocol import SEVERITIES, CheckInputs, GoldSetFinding
from misslink.goldset.checks.stale_labels import (
    check_changed_passages,
    check_evidence,
    check_span_places,
    check_unreachable_ids,
)
from misslink.io.goldset import GoldSet

CHECKS: tuple[Callable[[GoldSet, CheckInputs], Sequence[GoldSetFinding]], ...] = (
    check_duplicates,
    check_leakage,
    check_label_counts,
    check_metrics,
    check_unreachable_ids,
    check_changed_passages,
    check_evidence,
    check_span_places,
    check_balance,
    check_unjudged,
    check_power,
)


def check_goldset(gold: GoldSet, inputs: CheckInputs | None = None) -> tuple[GoldSetFinding, ...]:
    """Check a gold set.

    Parameters
    ----------
    gold : GoldSet
    inputs : CheckInputs, optional
        What to compare it with. Default: only checks of the questions themselves.

    Returns
    -------
    tuple of GoldSetFinding
        The most severe first, whatever the order of the cases.

    >>> from misslink.io.goldset import read_goldset
    >>> gold = read_goldset([{"id": "a", "question": "Why?"}, {"id": "b", "question": "why ?"}])
    >>> [(finding.severity, finding.cases) for finding in check_goldset(gold)]
    [('error', ('a', 'b'))]
    """
    inputs = inputs or CheckInputs()
    findings = (finding for check in CHECKS for finding in check(gold, inputs))
    rank = SEVERITIES.index
    return tuple(sorted(findings, key=lambda f: (rank(f.severity), f.check, f.cases, f.message)))
