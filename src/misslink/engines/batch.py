"""The batch engine: the judge's questions go to its provider's batch service, cheaper and later."""

from __future__ import annotations

from dataclasses import replace

from misslink.engines.local import Local, refuse_cluster
from misslink.engines.protocol import Stage
from misslink.errors import InputError
from misslink.judging.batches.draft import MOST_QUESTIONS
from misslink.judging.batches.judge import InBatches
from misslink.judging.batches.timing import Timing
from misslink.judging.models.openai import OpenAIJudge
from misslink.judging.protocol import Judge
from misslink.judging.reaching import Asked, budgeted, throttled
from misslink.registry import engines

__all__ = ["Batch", "open_batch"]

_ASKING = ("judge", "link")  # the stages whose items wait for the judge
# So many that what a day's run asks goes out at once, and not a batch a day. One that waits takes
# about 14 kB beside its question, a third of what a run holds of a case anyway.
_AT_ONCE = 20 * MOST_QUESTIONS


@engines.register("batch")
def open_batch(address: str | None = None, workers: int | None = None) -> Batch:
    """Open the engine that asks the judge in batches.

    Raises
    ------
    InputError
        It is given an address or a number of workers, of which it knows nothing.
    """
    refuse_cluster(address, workers, "the engine 'batch' works at the judge's provider")
    return Batch()


class Batch(Local):
    """Everything in this process, but that the judge is asked through a batch service.

    Parameters
    ----------
    timing : Timing or None
        How long is waited for what.
    """

    name = "batch"

    def __init__(self, timing: Timing | None = None) -> None:
        self._timing = timing or Timing()

    def at_once(self, stage: Stage, concurrency: int) -> int:
        """A million, where they wait for the judge alone; else as many as were asked for."""
        return max(concurrency, _AT_ONCE) if stage in _ASKING else concurrency

    def reach(self, asked: Asked) -> Judge:
        """The judge in batches, within its limits.

        Raises
        ------
        InputError
            This judge has no batch service, or no ledger would keep what is out.
        """
        bare = asked.judge
        if not isinstance(bare, OpenAIJudge):
            raise InputError(
                f"the judge {bare.name} has no batch service; --engine batch goes with "
                "openai:MODEL, openai-responses:MODEL and cascade:embedded,openai:MODEL, "
                "any other judge with --engine local"
            )
        if asked.ledger is None:
            raise InputError(
                "--engine batch needs a ledger, in which is noted what is out and paid for; "
                "name a file"
            )
        one = replace(asked, concurrency=1)  # what is put live is one question at a time
        budget = budgeted(one)
        live = throttled(budget, one)
        return InBatches(live, budget, bare, asked.ledger, asked.terms, self._timing)
