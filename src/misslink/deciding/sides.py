"""A run beside its baseline: what is in both, what was otherwise, how far a number changed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from misslink.deciding.baseline import Baseline, of_summary, settings, sizes
from misslink.deciding.circumstances import circumstances
from misslink.deciding.criteria import Criteria
from misslink.deciding.documents import NotThere
from misslink.deciding.gates import Gate
from misslink.deciding.lost import lost
from misslink.deciding.naming import bounds
from misslink.deciding.numbers import ROUNDING
from misslink.deciding.outcome import Change
from misslink.deciding.pairing import Named, pair
from misslink.deciding.selection import selected, where
from misslink.deciding.values import Value, value_of
from misslink.errors import InputError
from misslink.manifest import shown_path
from misslink.stats import paired_difference
from misslink.types import Run

__all__ = ["Sides", "before", "change", "sides_of"]


@dataclass(frozen=True)
class Sides:
    """The run and its baseline.

    Parameters
    ----------
    run : Run
    criteria : Criteria
    baseline : Baseline or None
    both : frozenset of str
        Cases that ask the same in both.
    notes : sequence of str
        What a reader must know of the two.
    judged_otherwise : sequence of str
        Those of the notes that concern what a judge said.
    """

    run: Run
    criteria: Criteria
    baseline: Baseline | None
    both: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    judged_otherwise: tuple[str, ...] = ()

    def lacks(self, gate: Gate, metric: str, why: str = "") -> InputError:
        """The error to raise where a baseline does not have what a gate holds against it."""
        way = "name the run folder it is of" if self.cases_before is None else "make it again"
        place = "" if self.baseline is None else f" {shown_path(self.baseline.path)}"
        return self.criteria.refusal(gate, f"the baseline{place} has no {metric}{why}; {way}")

    @property
    def cases_before(self) -> Run | None:
        """The baseline where it has cases."""
        return None if self.baseline is None else self.baseline.run


def sides_of(run: Run, criteria: Criteria, baseline: Baseline | None) -> Sides:
    """Hold a run beside its baseline.

    Raises
    ------
    InputError
        No case asks the same in both.
    """
    if baseline is None:
        return Sides(run, criteria, None)
    if baseline.run is None:
        alone = (
            "The baseline is a summary.json, which has numbers and no cases: nothing is paired, "
            "whether it asked the same questions is not known, and the change alone decides."
        )
        otherwise = settings(run.summary, baseline.summary)
        told = (alone, *sizes(len(run.cases), baseline.summary), *otherwise)
        return Sides(run, criteria, baseline, frozenset(), told, tuple(otherwise))
    earlier = Named(f"the baseline {shown_path(baseline.path)}", baseline.run)
    pairing = pair([Named("the run", run), earlier], "common")
    notes = [f"{note[:1].upper()}{note[1:]}." for note in pairing.notes[0]]
    if pairing.left_out[0]:
        notes.insert(
            0,
            f"The baseline is of other cases: {len(pairing.ids):,} ask the same in both, of "
            f"{len(run.cases):,} in the run and {len(baseline.run.cases):,} in the baseline.",
        )
    found = circumstances(run, baseline.run, ("the run", "the baseline"))
    return Sides(
        run,
        criteria,
        baseline,
        frozenset(pairing.ids),
        (*notes, *(one.sentence for one in found)),
        tuple(one.sentence for one in found if one.what not in {"misslink", "k"}),
    )


def before(sides: Sides, gate: Gate, value: Value) -> Value | None:
    """Return the same number of the baseline; None where it has none and none is demanded.

    Raises
    ------
    InputError
        It is demanded, and the baseline as a whole does not have it.
    """
    baseline, demanded = sides.baseline, gate.regression_max is not None
    if baseline is None:
        return None
    if baseline.run is None:
        return _of_numbers(sides, baseline, gate, value)
    try:
        whole = value_of(baseline.run, value.name)
    except InputError:  # a path into a document that the baseline does not have
        if demanded:
            raise sides.lacks(gate, value.name) from None
        return None
    if whole.estimate.value is None and demanded and value.estimate.value is not None:
        raise sides.lacks(gate, value.name, f" ({whole.estimate.reason})")
    return value_of(selected(baseline.run, gate), value.name) if where(gate) else whole


def _of_numbers(sides: Sides, baseline: Baseline, gate: Gate, value: Value) -> Value | None:
    demanded = gate.regression_max is not None
    if narrowed := where(gate):
        if demanded:
            raise sides.lacks(gate, value.name, f" of the cases with {narrowed} alone")
        return None
    try:
        found = of_summary(baseline.summary, value.name)
    except NotThere:
        if demanded:
            raise sides.lacks(gate, value.name) from None
        return None
    if found.value is None and demanded and value.estimate.value is not None:
        raise sides.lacks(gate, value.name, f" ({found.reason})")
    least, most = bounds(value.name) or (-math.inf, math.inf)
    if found.value is not None and not least - ROUNDING <= found.value <= most + ROUNDING:
        raise InputError(
            f"{value.name} is {found.value:g} in it, and lies between {least:g} and {most:g}; "
            "take the summary.json of a run as it is",
            path=baseline.path,
        )
    return Value(value.name, found, None, value.lower_is_better)


def change(
    sides: Sides, gate: Gate, value: Value, earlier: Value | None, run: Run
) -> Change | None:
    """Return how far a number of `run` changed for the worse; None where not both have a value."""
    if earlier is None or earlier.estimate.value is None or value.estimate.value is None:
        return None
    sign = 1.0 if value.lower_is_better else -1.0
    drop = sign * (value.estimate.value - earlier.estimate.value)
    gone = _lost(sides, gate, value, earlier, run)
    if value.of_case is None or earlier.of_case is None:
        return Change(drop, lost=gone)
    ids = [name for name in value.of_case if name in sides.both and name in earlier.of_case]
    a, b = [earlier.of_case[name] for name in ids], [value.of_case[name] for name in ids]
    found = paired_difference(a, b)
    pairs = {
        name: (was, now)
        for name, was, now in zip(ids, a, b, strict=True)
        if was is not None and now is not None
    }
    means = tuple(math.fsum(side) / len(pairs) for side in zip(*pairs.values(), strict=True))
    changed = {name: sign * (now - was) for name, (was, now) in pairs.items()}
    worse = {name: size for name, size in changed.items() if abs(size) > ROUNDING}
    if gate.regression_test == "paired" and found.difference.value is not None:
        drop = sign * found.difference.value
    return Change(
        drop,
        found.difference,
        found.p,
        tuple(sorted((name for name in worse if worse[name] > 0), key=lambda x: -worse[x])),
        tuple(sorted((name for name in worse if worse[name] < 0), key=lambda x: worse[x])),
        (means[0], means[1]) if means else None,
        gone,
    )


def _lost(sides: Sides, gate: Gate, value: Value, earlier: Value, run: Run) -> dict[str, str]:
    before = sides.cases_before
    if before is not None:
        return lost(run, value, (selected(before, gate), earlier), sides.both)
    counted = earlier.estimate.method != "recorded" and earlier.estimate.n > value.estimate.n
    return lost(run, value, None, ()) if counted else {}
