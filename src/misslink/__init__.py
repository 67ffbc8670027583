"""misslink links retrieval misses to unfaithful answers in RAG apps.

>>> import misslink
>>> run = misslink.evaluate(chain, "gold.jsonl", judge="openai:MODEL")  # doctest: +SKIP
>>> run.html("reports/today.html")  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from misslink.capture.watcher import record_retrieval
    from misslink.errors import MisslinkError
    from misslink.judge.config import JudgeConfig
    from misslink.pipeline.evaluate import evaluate, evaluate_async
    from misslink.pipeline.rejudge import rejudge
    from misslink.types import Run

__all__ = [
    "JudgeConfig",
    "MisslinkError",
    "Run",
    "__version__",
    "evaluate",
    "evaluate_async",
    "record_retrieval",
    "rejudge",
]


__version__: str  # of the installed package; written in pyproject.toml only

_HOME = {
    "MisslinkError": "misslink.errors",
    "Run": "misslink.types",
    "JudgeConfig": "misslink.judge.config",
    "record_retrieval": "misslink.capture.watcher",
    "evaluate": "misslink.pipeline.evaluate",
    "evaluate_async": "misslink.pipeline.evaluate",
    "rejudge": "misslink.pipeline.rejudge",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import misslink`` stays light."""
    if name == "__version__":
        from importlib.metadata import version

        return version("misslink")
    if name not in _HOME:
        raise AttributeError(f"module 'misslink' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """List the public names, also those not imported yet."""
    return sorted(__all__)
