"""Gates that count cases: those that fail now and did not in the baseline."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from misslink.deciding.cause_words import FAILURES
from misslink.deciding.figures import cases_in_words
from misslink.deciding.gates import Gate, NewFailures
from misslink.deciding.lost import unmeasured, why_lost
from misslink.deciding.numbers import SHARES, UNKNOWN
from misslink.deciding.outcome import Outcome
from misslink.deciding.selection import fits, none_fits, selected
from misslink.deciding.sides import Sides
from misslink.deciding.unfinished import judged_metrics_of, unasked, why_unknown
from misslink.types import Estimate, Run

__all__ = ["new_failures"]

_OF_AXIS = {"causes": "the cause", "retrieval": "the outcome of retrieval"}


def new_failures(sides: Sides, gate: Gate, asked: NewFailures) -> Outcome:
    """Decide on the cases with this cause, or outcome of retrieval, now that had it not before.

    A case that the baseline does not have, or that asked something else there, is new. One that is
    undecided now, and was told not to have it before, may have it as well as not: the gate passes
    only where as many as may have it are allowed.

    Raises
    ------
    InputError
        The baseline has no cases.
    """
    baseline = sides.cases_before
    if baseline is None:
        raise sides.criteria.refusal(
            gate, "it counts cases, and a summary.json has none; name a run folder as --baseline"
        )
    axis, wanted = _asked(asked)
    fitting = {case.id for case in sides.run.cases if fits(case, asked)}
    told = _told_of(sides.run, axis, fitting)
    earlier = _told_of(baseline, axis, sides.both)
    known = {name: said for name, said in told.items() if said not in UNKNOWN}
    new = tuple(
        name for name, said in known.items() if said in wanted and earlier.get(name) not in wanted
    )
    unknown = tuple(
        name
        for name in told
        if name not in known and earlier.get(name, "undecided") not in {*UNKNOWN, *wanted}
    )
    outcome = Outcome(
        gate=gate,
        metric="new_failures",
        passed=len(new) + len(unknown) <= asked.at_most,
        estimate=Estimate(
            value=float(len(new)),
            low=None,
            high=None,
            n=len(known),
            method="count",
            reason="a count has no interval",
        ),
        reason=_reason(len(new), asked),
        notes=(*_notes(sides, new, len(told) - len(known)), *_judged(sides, axis)),
        cases=(*new, *unknown),
        lower_is_better=True,
    )
    if not fitting:
        return replace(outcome, passed=False, reason=none_fits(asked, sides.run))
    metrics = judged_metrics_of(sides.run, f"link.{axis}")
    if left := unasked(selected(sides.run, asked), metrics):
        return replace(outcome, passed=False, reason=why_unknown(left, "who fails"))
    waiting = {name for name in unasked(baseline, metrics) if earlier.get(name) in UNKNOWN}
    if unsettled := [name for name in new if name in waiting]:
        why = why_unknown(unsettled, "who failed before", "the baseline")
        certain = len(new) - len(unsettled) + len(unknown)
        if certain <= asked.at_most < certain + len(unsettled):
            return replace(outcome, reason=why)
        outcome = replace(outcome, notes=(*outcome.notes, f"{why[:1].upper()}{why[1:]}."))
    if not known:
        why = f"of no question {_OF_AXIS[axis]} is known, so new failures could not be counted"
        return replace(outcome, passed=False, reason=why)
    if unknown:
        why = _why_undecided(sides.run, axis, unknown)
        return replace(outcome, reason=f"{outcome.reason}; {why}")
    return outcome


def _asked(asked: NewFailures) -> tuple[str, frozenset[str]]:
    """Which of the axes of a link is asked of, and what on it is a failure."""
    if asked.retrieval is not None:
        return "retrieval", frozenset({asked.retrieval})
    return "causes", frozenset({asked.cause}) if asked.cause else FAILURES


def _told_of(run: Run, axis: str, ids: Collection[str]) -> dict[str, str]:
    told = SHARES[axis][1]
    return {link.case_id: told(link) for link in run.links if link.case_id in ids}


def _judged(sides: Sides, axis: str) -> tuple[str, ...]:
    return sides.judged_otherwise if axis == "causes" else ()


def _reason(count: int, asked: NewFailures) -> str:
    what = f"the cause {asked.cause}" if asked.cause else "a cause that is a failure"
    what = f"the retrieval outcome {asked.retrieval}" if asked.retrieval else what
    verb = "has" if count == 1 else "have"
    allowed = "none is" if not asked.at_most else "1 is" if asked.at_most == 1 else ""
    return (
        f"{cases_in_words(count)} {verb} {what} now and had not before; "
        f"{allowed or f'{asked.at_most:,} are'} allowed"
    )


def _why_undecided(run: Run, axis: str, unknown: tuple[str, ...]) -> str:
    """Why some may have failed anew, too."""
    many = len(unknown) != 1
    told = (
        f"{cases_in_words(len(unknown))} {'were' if many else 'was'} decided before and "
        f"{'are' if many else 'is'} not now, and may be among them"
    )
    nothing: Mapping[str, str] = unmeasured(run)
    gone = {name: nothing[name] for name in unknown if name in nothing}
    if gone:
        return f"{told} ({why_lost(gone)})"
    judged = "; the judge's verdicts do not settle the cause" if axis == "causes" else ""
    return f"{told}{judged}"


def _notes(sides: Sides, new: tuple[str, ...], undecided: int) -> list[str]:
    notes = []
    if added := sum(name not in sides.both for name in new):
        notes.append(f"{cases_in_words(added)} of these the baseline did not ask.")
    if undecided:
        be = "is" if undecided == 1 else "are"
        notes.append(f"{cases_in_words(undecided)} {be} undecided now and not counted.")
    return notes
