"""May it ship? Every gate of the criteria decided on a run, if need be against a baseline.

Nothing passes by accident: what could not be computed fails its gate and says why, and what could
not be asked (a metric nobody knows, a regression without a baseline) is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from misslink.deciding.anew import new_failures
from misslink.deciding.baseline import Baseline, refuse_itself
from misslink.deciding.corrected import (
    changed_corrected,
    corrected_notes,
    corrected_share,
    labels_in_words,
    refuse_uncorrected,
)
from misslink.deciding.criteria import Criteria
from misslink.deciding.figures import cases_in_words, written
from misslink.deciding.gates import Gate
from misslink.deciding.lost import notes_on_lost
from misslink.deciding.naming import cut_of, readings
from misslink.deciding.numbers import ROUNDING
from misslink.deciding.outcome import Decision, Outcome
from misslink.deciding.regression import found_by_change, regressed, too_few_pairs
from misslink.deciding.selection import none_fits, selected
from misslink.deciding.sides import Sides, before, change, sides_of
from misslink.deciding.unfinished import judged_metrics_of, unasked, why_unknown
from misslink.deciding.values import (
    Value,
    has_direction,
    is_metric,
    is_rank,
    known_values,
    value_of,
)
from misslink.errors import InputError, did_you_mean
from misslink.files.addresses import shown
from misslink.manifest import shown_path
from misslink.types import Run

__all__ = ["decide"]

_EITHER_WAY = frozenset({"link.answers.abstained"})  # good where there is no answer to give
_WORST = 20  # cases kept for a reader where no change tells which


def decide(
    run: Run,
    criteria: Criteria,
    baseline: Baseline | None = None,
    *,
    folder: str | Path | None = None,
) -> Decision:
    """Decide every gate.

    Parameters
    ----------
    run : Run
        A whole one.
    criteria : Criteria
    baseline : Baseline or None
    folder : path or None
        Where the run was read from, for people.

    Raises
    ------
    InputError
        A gate's metric is not known, or it needs a baseline that is not given, or that does not
        have the metric or the cases, or that is the run itself.
    """
    metrics: dict[str, Value] = {}
    for gate in criteria.gates:  # what is wrong with the file is told before anything is decided
        if gate.new_failures is None:
            metrics[gate.name] = _metric(run, criteria, gate)
            _refuse_misdirected(run, criteria, gate, metrics[gate.name])
            refuse_uncorrected(run, criteria, gate, metrics[gate.name])
        if (gate.new_failures or gate.regression_max is not None) and baseline is None:
            raise criteria.refusal(
                gate,
                "it is about what changed, and there is no baseline; add --baseline with a run "
                "folder or a summary.json",
            )
    if baseline is not None:
        refuse_itself(run, folder, baseline)
    sides = sides_of(run, criteria, baseline)
    outcomes = tuple(
        new_failures(sides, gate, gate.new_failures)
        if gate.new_failures
        else _one(sides, gate, metrics[gate.name].name)
        for gate in criteria.gates
    )
    places = {"run": shown_path(shown(folder))} if folder is not None else {}
    if baseline is not None:
        places["baseline"] = shown_path(shown(baseline.path))
    return Decision(criteria, run, sides.cases_before, outcomes, sides.notes, places, sides.both)


def _metric(run: Run, criteria: Criteria, gate: Gate) -> Value:
    """The metric of a gate, of the whole run."""
    for name in [gate.metric] if gate.metric else readings(gate.name):
        try:
            return value_of(run, name)
        except InputError as unknown:
            if gate.metric:
                raise criteria.refusal(gate, str(unknown)) from None
    hint = did_you_mean(readings(gate.name)[-1], known_values(run))
    raise criteria.refusal(
        gate, f"its name says no metric; {f'{hint} Add' if hint else 'add'}  metric: NAME"
    )


def _refuse_misdirected(run: Run, criteria: Criteria, gate: Gate, value: Value) -> None:
    """Refuse a limit that the run keeps more easily the worse it gets, unless it is one of two."""
    floor, ceiling = gate.threshold is not None, gate.at_most is not None
    problem = ""
    if gate.regression_max is not None and not has_direction(run, value.name):
        problem = (
            f"it is not known whether a rise of {value.name} is for the worse; give a threshold "
            "or at_most in place of regression_max"
        )
    elif floor and not ceiling and value.lower_is_better and value.name not in _EITHER_WAY:
        problem = f"{value.name} is good when low; write at_most in place of threshold"
    elif ceiling and not floor and not value.lower_is_better and is_metric(run, value.name):
        problem = f"{value.name} is good when high; write threshold in place of at_most"
    if problem:
        raise criteria.refusal(gate, problem)


def _one(sides: Sides, gate: Gate, metric: str) -> Outcome:
    run = selected(sides.run, gate)
    value = value_of(run, metric)
    share = corrected_share(run, sides.run, value)
    earlier = before(sides, gate, value)
    found = change(sides, gate, value, earlier, run)
    if share is not None and gate.estimate == "corrected":
        value = replace(value, estimate=share.estimate)
        earlier, found = changed_corrected(sides, gate, value, earlier, found, run)
    outcome = Outcome(
        gate=gate,
        metric=metric,
        passed=False,
        estimate=value.estimate,
        reason="",
        baseline=None if earlier is None else earlier.estimate,
        change=found,
        notes=(*_notes(sides, gate, value, run), *corrected_notes(sides.run, gate, share)),
        cases=((*found.lost, *found.worse) if found else ()) or _lowest(value),
        lower_is_better=value.lower_is_better,
        numbers_alone=sides.baseline is not None and sides.cases_before is None,
        corrected=share,
    )
    if not run.cases:
        return replace(outcome, reason=none_fits(gate, sides.run))
    if value.estimate.value is None:
        why = value.estimate.reason
        return replace(outcome, reason=f"{outcome.called} could not be computed: {why}")
    if left := unasked(run, judged_metrics_of(run, metric)):
        return replace(outcome, reason=why_unknown(left, metric))
    if gate.regression_max is not None and (left := _unasked_before(sides, gate, metric)):
        why = why_unknown(left, f"how far {metric} changed", "the baseline")
        return replace(outcome, reason=why)
    too_few = [*_too_few(gate, _cases(outcome), metric), *too_few_pairs(outcome)]
    problems = [*too_few, *_limits(outcome), *regressed(outcome)]
    if problems and len(problems) == len(too_few):  # no question is to blame
        outcome = replace(outcome, cases=())
    return replace(outcome, passed=not problems, reason="; ".join(problems) or _passed_by(outcome))


def _unasked_before(sides: Sides, gate: Gate, metric: str) -> frozenset[str]:
    """Cases that the baseline's judging did not get to, of those that are compared."""
    baseline = sides.cases_before
    if baseline is None:
        return frozenset()
    return unasked(selected(baseline, gate), judged_metrics_of(baseline, metric)) & sides.both


def _cases(outcome: Outcome) -> int:
    """How many cases have a value; the n of a corrected share may be of its labels."""
    share = outcome.corrected if outcome.gate.estimate == "corrected" else None
    return outcome.estimate.n if share is None else share.raw.n


def _too_few(gate: Gate, n: int, metric: str) -> Iterator[str]:
    if gate.min_cases is not None and n < gate.min_cases:
        yield (
            f"only {cases_in_words(n)} {'has' if n == 1 else 'have'} a value of "
            f"{metric}, and {gate.min_cases:,} must"
        )


def _limits(outcome: Outcome) -> Iterator[str]:
    """What of the limits on the value itself is not kept."""
    gate, found, metric, called = outcome.gate, outcome.estimate, outcome.metric, outcome.called
    for limit, floor, end in ((gate.threshold, True, "low"), (gate.at_most, False, "high")):
        if limit is None:
            continue
        by_end = gate.on == end
        held = getattr(found, end) if by_end else found.value
        if held is None:
            yield f"{called} has no {end} end of an interval to go by: {found.reason}"
        elif (held - limit if floor else limit - held) < -ROUNDING:
            value, demanded = written(metric, held, limit)
            what = f"the {end} end of the interval of {called}" if by_end else called
            side = "below the floor" if floor else "above the ceiling"
            yield f"{what} is {value}, {side} of {demanded}"


def _passed_by(outcome: Outcome) -> str:
    """What a passed gate found."""
    found = outcome.estimate
    if found.value is None:
        return ""
    (now,) = written(outcome.metric, found.value)
    over = f"{outcome.called} is {now} over {cases_in_words(_cases(outcome))}"
    if outcome.corrected is not None and outcome.gate.estimate == "corrected":
        over += f", by {labels_in_words(outcome.corrected)}"
    return over + found_by_change(outcome)


def _lowest(value: Value) -> tuple[str, ...]:
    """Cases that drag the number down, the worst first."""
    if value.of_case is None:
        return ()
    best, sign = (0.0, -1.0) if value.lower_is_better else (1.0, 1.0)
    off = {name: sign * x for name, x in value.of_case.items() if x is not None and x != best}
    return tuple(sorted(off, key=lambda name: off[name])[:_WORST])


def _notes(sides: Sides, gate: Gate, value: Value, run: Run) -> Iterator[str]:
    metrics = judged_metrics_of(run, value.name)
    if metrics:
        yield from sides.judged_otherwise
    if failed := sum(v.status == "failed" and v.metric in metrics for v in run.verdicts):
        yield f"{failed:,} of its verdicts failed and are not counted."
    yield from notes_on_lost(run, value)
    k = cut_of(value.name) if is_rank(value.name) else None
    most = max((len(trace.retrieved) for trace in run.traces), default=0)
    if k is not None and 0 < most < k:
        were = "was" if most == 1 else "were"
        yield f"{value.name} looks at the first {k:,}, and only {most:,} {were} retrieved."
    if gate.regression_test == "paired" and sides.both and value.of_case is None:
        yield f"{value.name} is no mean over questions and is not paired; the change alone decides."
