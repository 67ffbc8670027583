"""Gates that count cases: those that fail now and did not in the baseline."""

from __future__ import annotations

from dataclasses import replace

from misslink.deciding.figures import cases_in_words
from misslink.deciding.gates import FAILURES, Gate, NewFailures
from misslink.deciding.outcome import Outcome
from misslink.deciding.selection import fits, none_fits, selected
from misslink.deciding.sides import Sides
from misslink.deciding.unfinished import judged_metrics_of, unasked, why_unknown
from misslink.types import Estimate

__all__ = ["new_failures"]


def new_failures(sides: Sides, gate: Gate, asked: NewFailures) -> Outcome:
    """Decide on the cases with this cause now that had it not in the baseline.

    A case that the baseline does not have, or that asked something else there, is new.

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
    causes = {asked.cause} if asked.cause else set(FAILURES)
    fitting = {case.id for case in sides.run.cases if fits(case, asked)}
    before = {link.case_id for link in baseline.links if link.cause in causes} & sides.both
    now = [link.case_id for link in sides.run.links if link.cause in causes]
    new = tuple(name for name in now if name in fitting and name not in before)
    outcome = Outcome(
        gate=gate,
        metric="new_failures",
        passed=len(new) <= asked.at_most,
        estimate=Estimate(
            value=float(len(new)),
            low=None,
            high=None,
            n=len(fitting),
            method="count",
            reason="a count has no interval",
        ),
        reason=_told(len(new), asked),
        notes=(*_added(sides, new), *sides.judged_otherwise),
        cases=new,
        lower_is_better=True,
    )
    if not fitting:
        return replace(outcome, passed=False, reason=none_fits(asked))
    left = unasked(selected(sides.run, asked), judged_metrics_of(sides.run, "link.causes"))
    if left:
        return replace(outcome, passed=False, reason=why_unknown(left, "who fails"))
    return outcome


def _told(count: int, asked: NewFailures) -> str:
    what = f"the cause {asked.cause}" if asked.cause else "a cause that is a failure"
    verb = "has" if count == 1 else "have"
    allowed = "none is" if not asked.at_most else "1 is" if asked.at_most == 1 else ""
    return (
        f"{cases_in_words(count)} {verb} {what} now and had not before; "
        f"{allowed or f'{asked.at_most:,} are'} allowed"
    )


def _added(sides: Sides, new: tuple[str, ...]) -> list[str]:
    added = sum(name not in sides.both for name in new)
    return [f"{cases_in_words(added)} of these the baseline did not ask."] if added else []
