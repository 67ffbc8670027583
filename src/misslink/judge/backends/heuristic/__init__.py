"""The heuristic judge: word, number, and name overlap, fitted on human labels. No key, no network."""

from __future__ import annotations

from misslink.judge.backends.heuristic.judge import (
    HeuristicJudge,
    claim_relations,
    fit_figures,
    fit_note,
    match_claims,
    open_heuristic,
    rules_version,
)

__all__ = [
    "HeuristicJudge",
    "claim_relations",
    "fit_figures",
    "fit_note",
    "match_claims",
    "open_heuristic",
    "rules_version",
]
