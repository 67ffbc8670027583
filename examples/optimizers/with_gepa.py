"""GEPA improves the instructions of a plain Python app; misslink says what each answer lacks.

pip install misslink gepa
python with_gepa.py
"""

from __future__ import annotations

import sys
from typing import Any

from ferry_desk import PASSAGES, START, questions, run_case
from gepa.core.result import GEPAResult
from gepa.optimize_anything import EngineConfig, GEPAConfig, ReflectionConfig, optimize_anything
from gepa.utils.stop_condition import ScoreThresholdStopper
from hold_out import confirm
from made_up_reader import MadeUpReader

import misslink

MOST_CALLS = 3_000


def metric(candidate: dict[str, str], example: dict[str, Any]) -> tuple[float, dict[str, str]]:
    """Return the score of one answer, and what the proposing model reads."""
    found = misslink.feedback(run_case(example, candidate), corpus=PASSAGES)
    return found["score"] or 0.0, {"Feedback": found["text"]}


def optimize(
    examples: list[dict[str, Any]], metric: Any = metric, seed: int = 0
) -> GEPAResult[Any, Any]:
    """Return what GEPA found; with a language model, give ``reflection_lm`` and no proposer."""
    return optimize_anything(
        seed_candidate=START,
        evaluator=metric,
        dataset=examples,
        config=GEPAConfig(
            engine=EngineConfig(max_metric_calls=MOST_CALLS, seed=seed, parallel=False),
            reflection=ReflectionConfig(custom_candidate_proposer=MadeUpReader(seed)),
            stop_callbacks=ScoreThresholdStopper(1.0),
        ),
    )


if __name__ == "__main__":
    asked = questions()
    found = optimize(asked[:13])
    calls = found.discovery_eval_counts[found.best_idx]
    print(f"After {calls} calls: {found.best_candidate}")
    sys.exit(not confirm(START, found.best_candidate, asked[13:]))
