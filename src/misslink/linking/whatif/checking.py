"""The forecast held against real answers: affected cases generated and judged again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from misslink.linking.calibration import Calibration
from misslink.linking.facts import gather
from misslink.linking.whatif.forecast import Change, Pairs, Table, risk_after
from misslink.linking.whatif.today import Today, Tried
from misslink.stats import mean
from misslink.types import Case, Estimate, Passage, Trace, Verdict

__all__ = ["Deeper", "Rerun", "check"]

Rerun = Callable[[Case, Sequence[Passage]], Awaitable[tuple[Trace, Mapping[str, Verdict]]]]
Deeper = Callable[[Case, int], Awaitable[Sequence[Passage]]]


async def check(
    today: Today,
    option: str,
    tried: Tried,
    changed: Sequence[Change],
    *,
    known: Mapping[str, Passage],
    rerun: Rerun,
    deeper: Deeper | None,
    sample: int,
    table: Table,
    pairs: Pairs | None,
    calibration: Calibration | None,
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
    known : mapping of str to Passage
        Passages with their texts, by id.
    rerun : callable
        Takes a case and passages, and returns a trace and verdicts by metric.
    deeper : callable or None
        Takes a case and a number, and returns as many passages of the app's own ranking, for
        options that know only where in it the needed ones stand.
    sample : int
        How many cases at most, drawn without replacement.
    table, pairs
        What the forecast was made from.
    calibration : Calibration or None
        Of the judge, as the run was linked with it.
    seed : int

    Returns
    -------
    dict
        ``forecast`` and ``measured`` are unfaithful answers avoided among those checked;
        ``asked`` counts the answers written; ``error`` is the mean over those that were judged of
        forecast less measured, in [-1, 1]: above 0 the forecast promises too much.
    """
    judged = [one for one in changed if one.bad is not None]
    chosen = random.Random(seed).sample(judged, min(sample, len(judged)))  # noqa: S311 (a sample)
    promised: list[float] = []
    came: list[int] = []
    skipped: list[dict[str, str]] = []
    asked = 0
    for change in sorted(chosen, key=lambda one: one.place):
        case = today.cases[change.place]
        passages = await _handed(case, tried.traces[change.place], tried.width, known, deeper)
        if isinstance(passages, str):
            skipped.append({"case_id": case.id, "reason": passages})
            continue
        asked += 1
        trace, verdicts = await rerun(case, passages)
        facts = gather(case, trace, verdicts, tried.width, calibration)
        if trace.error is not None or trace.unmeasured is not None:
            skipped.append({"case_id": case.id, "reason": trace.error or trace.unmeasured or ""})
        elif facts.answer == "unknown":
            reason = facts.missing or "the new answer was not judged"
            skipped.append({"case_id": case.id, "reason": reason})
        else:
            now = int(bool(change.bad))
            promised.append(now - risk_after(table, change, pairs))
            came.append(now - int(facts.answer == "unfaithful"))  # to decline is not unfaithful
    return {
        "option": option,
        "affected": len(judged),
        "asked": asked,
        "checked": len(came),
        "forecast": sum(promised) if came else None,
        "measured": sum(came) if came else None,
        "error": _error(promised, came, skipped, seed).model_dump(),
        "skipped": skipped,
    }


async def _handed(
    case: Case,
    trace: Trace,
    width: int,
    known: Mapping[str, Passage],
    deeper: Deeper | None,
) -> Sequence[Passage] | str:
    """The passages an app is handed, all with their texts; or why they are not known."""
    passages = [
        one if one.text else one.model_copy(update={"text": known[one.id].text})
        for one in trace.retrieved[:width]
        if one.text or one.id in known
    ]
    unseen = len(trace.retrieved[:width]) - len(passages)
    if not unseen:
        return passages
    asked = [one for one in await deeper(case, width) if one.text] if deeper else []
    if asked:
        return asked[:width]
    return f"{unseen} of the {width} passages are not known, as the app shows no deeper ranks"


def _error(
    promised: Sequence[float], came: Sequence[int], skipped: Sequence[Mapping[str, str]], seed: int
) -> Estimate:
    if not came:
        why = Counter(one["reason"] for one in skipped).most_common(1)[0][0]
        return Estimate.missing(f"no affected case could be generated and judged again: {why}")
    errors = [a - b for a, b in zip(promised, came, strict=True)]
    return mean(errors, seed=seed, bounds=(-1.0, 1.0))
