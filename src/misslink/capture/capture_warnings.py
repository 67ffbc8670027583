"""Check what was captured against the gold set and warn about what could not be observed."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from misslink.capture.watcher import Watcher
from misslink.io import GoldSet
from misslink.types import Trace


async def check_gold_ids(watcher: Watcher, gold: GoldSet, trace: Trace) -> bool:
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
        for passage in [
            *case.relevant,
            *(passage_id for group in case.relevant_any for passage_id in group),
        ]
    }
    seen = {passage.id for passage in trace.retrieved}
    if not listed:
        return True
    if not seen:
        return False
    known_ids = await watcher.known_ids(sorted(seen | set(listed)))
    if known_ids is None or not seen <= known_ids:
        return True
    unknown = sorted(set(listed) - known_ids)
    if unknown:
        more = f" (and {len(unknown) - 1} more ids)" if len(unknown) > 1 else ""
        raise gold.error(
            listed[unknown[0]],
            "relevant",
            f"the app's own corpus holds no passage '{unknown[0]}'{more}; correct the id, "
            "name the metadata key that holds ids with --id-key, or give evidence texts",
        )
    return True


_log = logging.getLogger(__name__)


def warn_capture_gaps(traces: Sequence[Trace], gold: GoldSet) -> None:
    """Log what could not be seen; it is missing from the numbers, and readers must know."""
    failed = [trace.error for trace in traces if trace.error]
    if failed:
        _log.warning(
            "the app failed on %d of %d questions; the first time %s",
            len(failed),
            len(traces),
            failed[0],
        )
    unseen = [trace.unmeasured for trace in traces if trace.unmeasured and not trace.error]
    if unseen:
        _log.warning("in %d of %d cases %s", len(unseen), len(traces), unseen[0])
    listed = {
        passage_id for case in gold.cases if not case.evidence for passage_id in case.relevant
    }
    seen = {passage.id for trace in traces for passage in (*trace.retrieved, *trace.deeper)}
    if listed and seen and not listed & seen:
        _log.warning(
            "none of the %d relevant ids was ever retrieved, down to the depth asked; "
            "passages have ids like '%s', gold ids are like '%s': see --id-key",
            len(listed),
            min(seen),
            min(listed),
        )
