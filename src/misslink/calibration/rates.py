"""How the judge errs, as a calibration document tells it, and what it said that this is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from misslink.files.numbers import estimate_of
from misslink.stats import Confusion, ErrorRates
from misslink.types import Estimate, Run, Verdict

__all__ = ["RATES", "estimate_at", "labels_in", "measured", "scores"]

RATES = ("sensitivity", "specificity")
_NONE = "its calibration holds no error rates of the judge"


def scores(run: Run, metric: str) -> dict[str, float]:
    """Return the probability of the good label, else the value, by case; scored verdicts alone."""
    return {
        verdict.case_id: _score(verdict)
        for verdict in run.verdicts
        if verdict.metric == metric and verdict.value is not None
    }


def measured(document: Mapping[str, Any]) -> Confusion | ErrorRates | str:
    """Return how the judge errs by a calibration, or why it does not say.

    Parameters
    ----------
    document : mapping
        Rates as over all cases, where labels were weighted, come before the plain table.
    """
    labels = document.get("n")
    counted = labels if isinstance(labels, int) and not isinstance(labels, bool) else None
    weighted = _rates(document.get("weighted"), counted)
    if weighted is not None:
        return weighted
    table = document.get("confusion")
    table = table if isinstance(table, Mapping) else {}
    cells = [table.get(name) for name in ("true_good", "false_bad", "false_good", "true_bad")]
    if all(isinstance(cell, int) and not isinstance(cell, bool) and cell >= 0 for cell in cells):
        return Confusion(*(int(cell) for cell in cells if cell is not None))
    return _rates(document.get("agreement"), counted) or _NONE


def labels_in(document: Mapping[str, Any]) -> int:
    """Return on how many labelled cases a calibration rests."""
    counted = document.get("n")
    if isinstance(counted, int) and not isinstance(counted, bool) and counted >= 0:
        return counted
    judge = measured(document)
    return 0 if isinstance(judge, str) else judge.n


def estimate_at(found: object) -> Estimate | None:
    """Return the estimate that a JSON value is; None where it is no object at all."""
    return estimate_of(found) if isinstance(found, Mapping) else None


def _rates(found: object, labels: int | None) -> ErrorRates | None:
    if not isinstance(found, Mapping):
        return None
    rates = [estimate_at(found.get(name)) for name in RATES]
    if any(
        one is None or (one.value is not None and not (0 <= one.value <= 1 and one.n))
        for one in rates
    ):
        return None
    sensitivity, specificity = (one for one in rates if one is not None)
    return ErrorRates(sensitivity, specificity, labels)


def _score(verdict: Verdict) -> float:
    known = verdict.value if verdict.probability is None else verdict.probability
    return 0.0 if known is None else known
