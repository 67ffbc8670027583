"""Cases whose number is gone: the app failed on them, or left nothing to measure.

A mean leaves them out, so an app that fails on its hard questions looks better by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from misslink.deciding.figures import cases_in_words
from misslink.deciding.values import Value
from misslink.types import Run

__all__ = ["lost", "notes_on_lost", "unmeasured", "why_lost"]

_FAILED = "the app failed on"
_UNMEASURED = "it is not known what was retrieved for"
_NO_TRACE = "there is no trace of"
_OVER_CASES = ("link.", "latency")  # of numbers without a value of each case


def unmeasured(run: Run) -> dict[str, str]:
    """Return the cases in which there was nothing to measure, each with why."""
    found = {case.id: _NO_TRACE for case in run.cases}
    for trace in run.traces:
        if trace.error is not None:
            found[trace.case_id] = _FAILED
        elif trace.unmeasured is not None:
            found[trace.case_id] = _UNMEASURED
        else:
            found.pop(trace.case_id, None)
    return found


def lost(
    run: Run, value: Value, before: tuple[Run, Value] | None, both: Collection[str]
) -> dict[str, str]:
    """Return the cases that a number leaves out now since nothing was measured, each with why.

    Parameters
    ----------
    run, value
        The run, or the selection of it, that the number is of.
    before : pair of Run and Value, or None
        The same of the baseline: then only cases that its number does not leave out. None: all.
    both : collection of str
        Cases that ask the same in both.
    """
    found = _left_out(run, value)
    if before is None:
        return found
    left_out = _left_out(*before)
    known = before[1].of_case
    return {
        name: why
        for name, why in found.items()
        if name in both and (name not in left_out if known is None else known.get(name) is not None)
    }


def why_lost(found: Mapping[str, str]) -> str:
    """In words, why cases have no number: ``the app failed on 3 questions``."""
    counts = Counter(found.values())
    return ", and ".join(f"{why} {cases_in_words(n)}" for why, n in counts.most_common())


def notes_on_lost(run: Run, value: Value) -> Iterator[str]:
    """Tell how many cases a number leaves out because nothing was measured."""
    if found := lost(run, value, None, ()):
        told = why_lost(found)
        it = "it" if len(found) == 1 else "them"
        yield f"{told[:1].upper()}{told[1:]}; {value.name} leaves {it} out."


def _left_out(run: Run, value: Value) -> dict[str, str]:
    if value.of_case is None and not value.name.startswith(_OVER_CASES):
        return {}
    known = value.of_case or {}
    return {name: why for name, why in unmeasured(run).items() if known.get(name) is None}
