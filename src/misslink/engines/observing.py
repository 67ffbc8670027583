"""One case: the app is run, and its retriever asked deeper for what it missed."""

from __future__ import annotations

from misslink.capture import Watcher
from misslink.retrieval import still_wanted
from misslink.types import Case, Trace

__all__ = ["observe"]


async def observe(watcher: Watcher, case: Case, k: int) -> Trace:
    """Return what the app did for a case, with the true ranks of what was missed.

    Parameters
    ----------
    watcher : Watcher
    case : Case
    k : int
        How many passages count as the context where the prompt was not seen.
    """
    trace = await watcher.watch(case)
    wanted = still_wanted(case, trace, k)
    return await watcher.deepen(case, trace, wanted) if wanted else trace
