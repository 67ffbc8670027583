"""Does the app's own corpus hold what the gold set asks for?"""

from __future__ import annotations

from misslink.capture.watcher import Watcher
from misslink.files import GoldSet
from misslink.types import Trace

__all__ = ["check_ids"]


async def check_ids(watcher: Watcher, gold: GoldSet, trace: Trace) -> bool:
    """Refuse a relevant id that the app's own store does not hold.

    Parameters
    ----------
    watcher : Watcher
        Which has watched at least one case, and so has seen the store.
    gold : GoldSet
        Cases that give evidence are not looked at: their ids do not count.
    trace : Trace
        Of the case that was watched.

    Returns
    -------
    bool
        Whether there is nothing more to check: false where this case retrieved nothing, so that
        the store was not seen. Where the store cannot be asked, or does not know by id what it has
        just given, nothing can be checked.

    Raises
    ------
    InputError
        Naming the file, the line and the id.
    """
    listed = {
        passage: case.id
        for case in reversed(gold.cases)
        if not case.evidence
        for passage in [*case.relevant, *(one for group in case.relevant_any for one in group)]
    }
    seen = {passage.id for passage in trace.retrieved}
    if not listed:
        return True
    if not seen:
        return False
    known = await watcher.known_ids(sorted(seen | set(listed)))
    if known is None or not seen <= known:
        return True
    unknown = sorted(set(listed) - known)
    if unknown:
        more = f" (and {len(unknown) - 1} more ids)" if len(unknown) > 1 else ""
        raise gold.error(
            listed[unknown[0]],
            "relevant",
            f"the app's own corpus holds no passage '{unknown[0]}'{more}; correct the id, "
            "name the metadata key that holds ids with --id-key, or give evidence texts",
        )
    return True
