"""misslink links retrieval misses to unfaithful answers in RAG apps.

>>> import misslink
>>> run = misslink.evaluate(chain, "gold.jsonl", judge="openai:MODEL")  # doctest: +SKIP
>>> run.html("reports/today.html")  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import misslink.judge as judge  # noqa: PLR0402 (mypy)
    import misslink.testing as testing  # noqa: PLR0402
    from misslink.api.calibrate import calibrate
    from misslink.api.compare import Comparison, compare
    from misslink.api.feedback import feedback
    from misslink.api.gate import gate
    from misslink.api.metrics import register_metric
    from misslink.api.replay import replay
    from misslink.api.selftest import selftest
    from misslink.api.whatif import whatif
    from misslink.calibration_document import CalibrationDocument
    from misslink.capture.watcher import record_retrieval
    from misslink.documents import Replay, WhatIf
    from misslink.errors import MisslinkError
    from misslink.gates.outcome import GateDecision
    from misslink.judge.config import JudgeConfig
    from misslink.judge.judged_metric import JudgedMetric
    from misslink.metrics.rubric import Rubric
    from misslink.pipeline.evaluate import evaluate, evaluate_async
    from misslink.pipeline.rejudge import rejudge
    from misslink.selftests.document import Selftest
    from misslink.types import Case, Claim, Estimate, Link, Passage, Run, Trace, Verdict

__all__ = [
    "CalibrationDocument",
    "Case",
    "Claim",
    "Comparison",
    "Estimate",
    "GateDecision",
    "JudgeConfig",
    "JudgedMetric",
    "Link",
    "MisslinkError",
    "Passage",
    "Replay",
    "Rubric",
    "Run",
    "Selftest",
    "Trace",
    "Verdict",
    "WhatIf",
    "__version__",
    "calibrate",
    "compare",
    "evaluate",
    "evaluate_async",
    "feedback",
    "gate",
    "judge",
    "record_retrieval",
    "register_metric",
    "rejudge",
    "replay",
    "selftest",
    "testing",
    "whatif",
]


__version__: str  # of the installed package; written in pyproject.toml only

_HOMES = {
    "api.calibrate": ("calibrate",),
    "api.compare": ("Comparison", "compare"),
    "api.feedback": ("feedback",),
    "api.gate": ("gate",),
    "api.metrics": ("register_metric",),
    "api.replay": ("replay",),
    "api.selftest": ("selftest",),
    "api.whatif": ("whatif",),
    "capture.watcher": ("record_retrieval",),
    "calibration_document": ("CalibrationDocument",),
    "documents": ("Replay", "WhatIf"),
    "errors": ("MisslinkError",),
    "gates.outcome": ("GateDecision",),
    "judge.config": ("JudgeConfig",),
    "judge.judged_metric": ("JudgedMetric",),
    "metrics.rubric": ("Rubric",),
    "pipeline.evaluate": ("evaluate", "evaluate_async"),
    "pipeline.rejudge": ("rejudge",),
    "selftests.document": ("Selftest",),
    "types": ("Case", "Claim", "Estimate", "Link", "Passage", "Run", "Trace", "Verdict"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import misslink`` stays light."""
    if name == "__version__":
        from importlib.metadata import version

        return version("misslink")
    import importlib

    if name in ("judge", "testing"):
        return importlib.import_module(f"misslink.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'misslink' has no attribute '{name}'")
    return getattr(importlib.import_module(f"misslink.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    """List the public names, also those not imported yet."""
    return sorted(__all__)
