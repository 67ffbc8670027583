"""The batch engine: judge questions go to the provider's batch API."""

from __future__ import annotations

from misslink.engines.local import LocalEngine, refuse_cluster_options
from misslink.engines.protocol import Stage
from misslink.errors import InputError
from misslink.judge.backends.openai import OpenAIJudge
from misslink.judge.batch.judge import BatchJudge
from misslink.judge.batch.queue import BatchTiming
from misslink.judge.batch.service import MAX_QUESTIONS
from misslink.judge.middleware.budget import BudgetedJudge
from misslink.judge.middleware.throttle import ThrottledJudge
from misslink.judge.protocol import Judge
from misslink.judge.session import JudgeSpec
from misslink.registry import engines

_JUDGE_STAGES = ("judge", "link")  # the stages whose items wait for the judge
# Large enough that all questions of a run are submitted at once. A waiting question takes about
# 14 kB, a third of the memory of its case.
_MAX_CONCURRENCY = 20 * MAX_QUESTIONS


@engines.register("batch")
def open_batch(address: str | None = None, workers: int | None = None) -> BatchEngine:
    """Open the engine that asks the judge in batches; it takes neither address nor workers."""
    refuse_cluster_options(address, workers, "the engine 'batch' works at the judge's provider")
    return BatchEngine()


class BatchEngine(LocalEngine):
    """All work runs in this process, but judge questions go to the batch API."""

    name = "batch"

    def __init__(self, timing: BatchTiming | None = None) -> None:
        self._timing = timing or BatchTiming()

    def at_once(self, stage: Stage, concurrency: int) -> int:
        """A million for stages that wait for the judge only; else the requested number."""
        return max(concurrency, _MAX_CONCURRENCY) if stage in _JUDGE_STAGES else concurrency

    def reach(self, spec: JudgeSpec) -> Judge:
        """The judge in batches, within its limits.

        Raises
        ------
        InputError
            This judge has no batch service, or there is no cache to record batches.
        """
        bare = spec.judge
        if not isinstance(bare, OpenAIJudge) or bare.identity["judge"] == "azure":
            raise InputError(
                f"the judge {bare.name} has no batch service; --engine batch works with "
                "openai:MODEL, openai-responses:MODEL and cascade:heuristic,openai:MODEL, "
                "any other judge with --engine local"
            )
        if spec.cache is None:
            raise InputError(
                "--engine batch needs a response cache, which records submitted batches; name a file "
                "with --cache"
            )
        budget = BudgetedJudge(bare, spec.terms, spec.ledger)
        live = ThrottledJudge(budget, 1, spec.terms)  # live questions go one at a time
        return BatchJudge(live, budget, bare, spec.cache, spec.terms, self._timing)
