"""What became of the gates: each decided, with why, and all of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from misslink.calibration.kept import Corrected
from misslink.deciding.criteria import Criteria
from misslink.deciding.figures import cases_in_words
from misslink.deciding.gates import Gate
from misslink.files.markdown import in_line
from misslink.types import Estimate, Run

__all__ = ["Change", "Decision", "Outcome"]

_NAMED = 5  # cases in a line of text


@dataclass(frozen=True)
class Change:
    """A metric against its baseline.

    Parameters
    ----------
    drop : float
        How far it changed for the worse, in the metric's own sense; below 0 it got better.
    difference : Estimate or None
        Run minus baseline over the cases in both. None: there are no cases to pair.
    p : float or None
        Of the sign-flip test on these.
    worse, better : sequence of str
        Cases whose value changed, the largest change first.
    means : pair of float or None
        Of the baseline and of the run, over the cases that `difference` is over.
    lost : mapping of str to str
        Cases that the number leaves out now and did not before, since the app failed or nothing
        was measured, each with why; against a summary alone, where fewer have a value than had.
    """

    drop: float
    difference: Estimate | None = None
    p: float | None = None
    worse: tuple[str, ...] = ()
    better: tuple[str, ...] = ()
    means: tuple[float, float] | None = None
    lost: Mapping[str, str] = field(default_factory=dict)

    @property
    def by_chance(self) -> bool | None:
        """Whether chance alone gives such a change. None: there was nothing to tell it by."""
        found = self.difference
        if found is None or found.low is None or found.high is None:
            return None
        return found.low <= 0 <= found.high


@dataclass(frozen=True)
class Outcome:
    """A gate, decided.

    Parameters
    ----------
    gate : Gate
    metric : str
        As the run calls it; 'new_failures' where cases are counted.
    passed : bool
    estimate : Estimate
        Of the run; missing with a reason where it could not be computed.
    baseline : Estimate or None
        None: there is no baseline, or it was not needed and does not have this.
    change : Change or None
        None: not both have a value.
    reason : str
        Why it failed, or what it passed by, in one or more sentences.
    notes : sequence of str
        What a reader must know of it besides.
    cases : sequence of str
        Those to look at first: that got worse, that fail anew, or else that are lowest.
    lower_is_better : bool
    numbers_alone : bool
        Whether the baseline is a summary without cases.
    """

    gate: Gate
    metric: str
    passed: bool
    estimate: Estimate
    reason: str
    baseline: Estimate | None = None
    change: Change | None = None
    notes: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    lower_is_better: bool = False
    numbers_alone: bool = False
    corrected: Corrected | None = None

    @property
    def called(self) -> str:
        """What the number is called in a sentence."""
        return f"{self.metric} (corrected)" if self.gate.estimate == "corrected" else self.metric

    @property
    def paired(self) -> bool:
        """Whether the change is decided pair by pair."""
        found = self.change
        return (
            self.gate.regression_test == "paired"
            and found is not None
            and found.difference is not None
        )

    def document(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        gate, change = self.gate, self.change
        asked = gate.new_failures or gate
        return {
            "name": gate.name,
            "metric": self.metric,
            "severity": gate.severity,
            "passed": self.passed,
            "value": self.estimate.value,
            "baseline": None if self.baseline is None else self.baseline.value,
            "threshold": gate.threshold,
            "at_most": asked.at_most,
            "regression": None if change is None else change.drop,
            "regression_max": gate.regression_max,
            "reason": self.reason,
            "notes": list(self.notes),
            "estimate": self.estimate.model_dump(),
            "estimated": gate.estimate,
            "corrected": self.corrected and self.corrected.estimate.model_dump(),
            "raw": self.corrected and self.corrected.raw.model_dump(),
            "difference": None
            if change is None or change.difference is None
            else change.difference.model_dump(),
            "p": None if change is None else change.p,
            "lost": [] if change is None else list(change.lost),
            "lower_is_better": self.lower_is_better,
            "selection": {
                "tag": dict(asked.tag),
                "tier": asked.tier,
                "category": asked.category,
            },
            "cases": list(self.cases),
        }


@dataclass(frozen=True)
class Decision:
    """All gates of a criteria file, decided.

    Parameters
    ----------
    criteria : Criteria
    run : Run
    baseline : Run or None
        None also where the baseline is a summary alone.
    outcomes : sequence of Outcome
        In the order of the file.
    notes : sequence of str
        Of the comparison as a whole.
    shown : mapping of str to str
        What the run and the baseline are called.
    both : frozenset of str
        Cases that ask the same in the run and in the baseline.
    """

    criteria: Criteria
    run: Run
    baseline: Run | None
    outcomes: tuple[Outcome, ...]
    notes: tuple[str, ...] = ()
    shown: dict[str, str] = field(default_factory=dict)
    both: frozenset[str] = frozenset()

    @property
    def passed(self) -> bool:
        """Whether no gate of severity error failed."""
        return all(one.passed or one.gate.severity == "warning" for one in self.outcomes)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """The gates that failed, errors first."""
        missed = [one for one in self.outcomes if not one.passed]
        return tuple(sorted(missed, key=lambda one: one.gate.severity == "warning"))

    def text(self) -> str:
        """What failed, a line each, for an assertion or a log; no character that moves a cursor."""
        lines = [
            f"{one.gate.severity} {one.gate.name}: {one.reason}" + _in_cases(one)
            for one in self.failed
        ]
        head = f"{self.criteria.name}: {self.counted()}"
        return "\n".join(map(in_line, [head, *lines, *self.notes]))

    def counted(self) -> str:
        """How many gates failed and how many warn, in the one sentence that every output has."""
        failed, count = self.failed, len(self.outcomes)
        errors = sum(one.gate.severity == "error" for one in failed)
        warnings = len(failed) - errors
        of = f"{count:,} {'gate' if count == 1 else 'gates'}"
        cases = cases_in_words(len(self.run.cases))
        if not failed:
            return f"All of {of} passed over {cases}."
        more = f"; {warnings:,}{' more' if errors else ''} {'warns' if warnings == 1 else 'warn'}"
        said = f"{errors:,} of {of} failed" if errors else f"None of {of} failed"
        return f"{said} over {cases}{more if warnings else ''}."

    def document(self) -> dict[str, Any]:
        """As ``--json`` prints it."""
        return {
            "passed": self.passed,
            "criteria": self.criteria.name,
            "run": self.shown.get("run"),
            "baseline": self.shown.get("baseline"),
            "notes": list(self.notes),
            "gates": [one.document() for one in self.outcomes],
        }


def _in_cases(outcome: Outcome) -> str:
    named = ", ".join(outcome.cases[:_NAMED])
    more = f" and {len(outcome.cases) - _NAMED} more" if len(outcome.cases) > _NAMED else ""
    return f" (look at {named}{more})" if named else ""
