"""What could not be seen of an app, said aloud."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from misslink.files import GoldSet
from misslink.types import Trace

__all__ = ["warn_of_gaps"]

_log = logging.getLogger(__name__)


def warn_of_gaps(traces: Sequence[Trace], gold: GoldSet) -> None:
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
    listed = {one for case in gold.cases if not case.evidence for one in case.relevant}
    seen = {passage.id for trace in traces for passage in (*trace.retrieved, *trace.deeper)}
    if listed and seen and not listed & seen:
        _log.warning(
            "none of the %d relevant ids was ever retrieved, down to the depth asked; "
            "passages have ids like '%s', gold ids are like '%s': see --id-key",
            len(listed),
            min(seen),
            min(listed),
        )
