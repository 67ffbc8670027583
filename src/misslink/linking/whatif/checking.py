"""The forecast held against real answers: affected cases generated and judged again."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from misslink.linking.facts import gather
from misslink.linking.whatif.forecast import Change, Table, risk_after
from misslink.linking.whatif.today import Today, Tried
from misslink.stats import mean
from misslink.types import Case, Estimate, Passage, Trace, Verdict

__all__ = ["Rerun", "check"]

Rerun = Callable[[Case, Sequence[Passage]], Awaitable[tuple[Trace, Mapping[str, Verdict]]]]


async def check(
    today: Today,
    option: str,
    tried: Tried,
    changed: Sequence[Change],
    *,
    rerun: Rerun,
    sample: int,
    table: Table,
    confirmed: Estimate | None,
    seed: int,
) -> dict[str, Any]:
    """Generate and judge affected cases with an option's passages.

    Parameters
    ----------
    today, tried : Today, Tried
    option : str
        Its name.
    changed : sequence of Change
        The affected cases.
    rerun : callable
        Takes a case and passages, and returns a trace and verdicts by metric.
    sample : int
        How many cases at most, drawn without replacement.
    table, confirmed
        What the forecast was made from.
    seed : int

    Returns
    -------
    dict
        ``forecast`` and ``measured`` are unfaithful answers avoided among those checked;
        ``error`` is the mean over them of forecast less measured, in [-1, 1]: above 0 the
        forecast promises too much.
    """
    judged = [one for one in changed if one.bad is not None]
    chosen = random.Random(seed).sample(judged, min(sample, len(judged)))  # noqa: S311 (a sample)
    promised: list[float] = []
    came: list[int] = []
    skipped: list[dict[str, str]] = []
    for change in sorted(chosen, key=lambda one: one.place):
        case = today.cases[change.place]
        passages = tried.traces[change.place].retrieved[: tried.width]
        trace, verdicts = await rerun(case, passages)
        answer = gather(case, trace, verdicts, tried.width).answer
        if trace.error is not None or trace.unmeasured is not None:
            skipped.append({"case_id": case.id, "reason": trace.error or trace.unmeasured or ""})
        elif answer == "unknown":
            skipped.append({"case_id": case.id, "reason": "the new answer was not judged"})
        else:
            now = int(bool(change.bad))
            promised.append(now - risk_after(table, change, confirmed))
            came.append(now - int(answer == "unfaithful"))  # to decline is not unfaithful
    return {
        "option": option,
        "affected": len(judged),
        "checked": len(came),
        "forecast": sum(promised) if came else None,
        "measured": sum(came) if came else None,
        "error": _error(promised, came, seed).model_dump(),
        "skipped": skipped,
    }


def _error(promised: Sequence[float], came: Sequence[int], seed: int) -> Estimate:
    if not came:
        return Estimate.missing("no affected case could be generated and judged again")
    errors = [a - b for a, b in zip(promised, came, strict=True)]
    return mean(errors, seed=seed, bounds=(-1.0, 1.0))
