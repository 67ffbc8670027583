"""Results of gates: one outcome per gate, and the decision over all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from misslink.calibration.stored_calibration import CorrectedRate
from misslink.comparison.run_metrics import ROUNDING_TOLERANCE
from misslink.gates.criteria import Gate, ShipCriteria
from misslink.registry import late_function
from misslink.render.markdown import single_line
from misslink.render.reasons import describe_reasons
from misslink.types import Estimate, Reason, Run

_MAX_LISTED = 5  # cases in a line of text


@dataclass(frozen=True)
class MetricChange:
    """A metric compared with its baseline.

    Parameters
    ----------
    drop : float
        Loss, in the metric's own unit; below 0 the metric is better.
    loss_at : callable or None
        The loss over the cases in both, by confidence level. None: no cases are paired.
    level : float
        Confidence level of `loss`; Holm's procedure raises it where several gates are paired.
    p : float or None
        Of the sign-flip test on these cases.
    worse : tuple of str
        Cases with a loss, the largest first.
    means : pair of float or None
        Of the baseline and of the run, over the paired cases, or `shared` over those that are alike.
    shared : bool
        Whether only a part of the run's cases is compared, and not pairwise.
    unmeasured : mapping of str to str
        Cases without a value now that had one before, each with the reason.
    """

    drop: float
    loss_at: Callable[[float], Estimate] | None = None
    level: float = 0.95
    p: float | None = None
    worse: tuple[str, ...] = ()
    means: tuple[float, float] | None = None
    shared: bool = False
    unmeasured: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def loss(self) -> Estimate | None:
        """The loss over the cases in both, at `level`."""
        return self.loss_at(self.level) if self.loss_at else None


@dataclass(frozen=True)
class GateOutcome:
    """The result of one gate.

    Parameters
    ----------
    gate : Gate
    metric : str
        Its name in the run; 'new_failures' for a count of cases.
    passed : bool
    estimate : Estimate
        In the run; missing with a reason if it could not be computed.
    baseline : Estimate or None
        In the baseline.
    change : MetricChange or None
        None unless both have a value.
    reasons : tuple of Reason
        Why the gate failed or passed.
    notes : tuple of str
    cases : tuple of str
        Cases to look at first: worse, newly failed, or lowest.
    lower_is_better : bool
    numbers_alone : bool
        Whether the baseline is a summary without cases.
    corrected : CorrectedRate or None
        The metric corrected for the judge's errors.
    """

    gate: Gate
    metric: str
    passed: bool
    estimate: Estimate
    reasons: tuple[Reason, ...]
    baseline: Estimate | None = None
    change: MetricChange | None = None
    notes: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    lower_is_better: bool = False
    numbers_alone: bool = False
    corrected: CorrectedRate | None = None

    @property
    def reason(self) -> str:
        """The reasons as one sentence."""
        return describe_reasons(self.reasons)

    @property
    def is_corrected(self) -> bool:
        """Whether the gate is on the corrected metric."""
        return self.gate.estimate == "corrected"

    @property
    def paired(self) -> bool:
        """Whether the interval of the paired loss decides."""
        change, test = self.change, self.gate.regression_test
        return test == "paired" and change is not None and change.loss_at is not None

    @property
    def loss_exceeds_margin(self) -> bool:
        """Whether the whole interval of the paired loss lies above the margin."""
        margin, loss = self.gate.regression_max, self.change.loss if self.change else None
        low = loss.low if loss else None
        return low is not None and margin is not None and low > margin + ROUNDING_TOLERANCE

    def document(self) -> dict[str, Any]:
        """The outcome as ``--json`` prints it."""
        gate, change = self.gate, self.change or MetricChange(0.0)
        spec = gate.new_failures or gate
        return {
            "name": gate.name,
            "metric": self.metric,
            "severity": gate.severity,
            "passed": self.passed,
            "value": self.estimate.value,
            "baseline": self.baseline and self.baseline.value,
            "threshold": gate.threshold,
            "at_most": spec.at_most,
            "regression": self.change and change.drop + 0.0,  # never -0.0
            "regression_max": gate.regression_max,
            "reason": self.reason,
            "reason_code": self.reasons[0].model_dump() if self.reasons else None,
            "reason_codes": [reason.model_dump() for reason in self.reasons],
            "notes": list(self.notes),
            "estimate": self.estimate.model_dump(),
            "estimated": gate.estimate,
            "corrected": self.corrected and self.corrected.estimate.model_dump(),
            "raw": self.corrected and self.corrected.raw.model_dump(),
            "loss": change.loss and change.loss.model_dump(),
            "loss_level": change.loss and change.level,
            "p": change.p,
            "lost": list(change.unmeasured),
            "lower_is_better": self.lower_is_better,
            "selection": {"tag": dict(spec.tag), "tier": spec.tier, "category": spec.category},
            "cases": list(self.cases),
        }


@dataclass(frozen=True)
class GateDecision:
    """The results of all gates of a criteria file.

    Parameters
    ----------
    criteria : ShipCriteria
    run : Run
    baseline : Run or None
        Scored by the labels of the run; None also for a baseline that is a summary alone.
    outcomes : tuple of GateOutcome
        In the order of the file.
    scope : tuple of str
        What is compared, where that is not all.
    notes : tuple of str
        About the comparison as a whole.
    places : dict of str to str
        Display names of the run and the baseline.
    both : frozenset of str
        Cases with the same question in the run and the baseline.
    comparable : dict or None
        Whether ``judge`` and ``labels`` are alike (None: not known), and how many ``questions``
        ``of`` the run. None: there is no baseline.
    """

    criteria: ShipCriteria
    run: Run
    baseline: Run | None
    outcomes: tuple[GateOutcome, ...]
    scope: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    places: dict[str, str] = field(default_factory=dict)
    both: frozenset[str] = frozenset()
    comparable: dict[str, Any] | None = None

    @property
    def passed(self) -> bool:
        """Whether no gate of severity error failed."""
        return all(outcome.gate.severity == "warning" for outcome in self.failed)

    @property
    def failed(self) -> tuple[GateOutcome, ...]:
        """The gates that failed, errors first."""
        failed = [outcome for outcome in self.outcomes if not outcome.passed]
        return tuple(sorted(failed, key=lambda outcome: outcome.gate.severity == "warning"))

    def text(self) -> str:
        """The failed gates, one per line, without control characters, for an assertion or log."""
        lines = [f"{self.criteria.name}: {self.counted()}", *self.scope]
        for outcome in self.failed:
            cases, more = ", ".join(outcome.cases[:_MAX_LISTED]), len(outcome.cases) - _MAX_LISTED
            cases += f" and {more} more" if more > 0 else ""
            line = f"{outcome.gate.severity} {outcome.gate.name}: {outcome.reason}"
            lines.append(f"{line} (look at {cases})" if cases else line)
        return "\n".join(map(single_line, [*lines, *self.notes]))

    def _repr_html_(self) -> str:
        """What a notebook shows: the gates, and which failed."""
        return late_function("result_html", str)(self)

    def counted(self) -> str:
        """How many gates failed and warn, in one sentence for every output."""
        errors = sum(outcome.gate.severity == "error" for outcome in self.failed)
        warnings = len(self.failed) - errors
        counts = {"gates": len(self.outcomes), "questions": len(self.run.cases)}
        return str(Reason(code="gates_counted", errors=errors, warnings=warnings, **counts))

    def document(self) -> dict[str, Any]:
        """The decision as ``--json`` prints it."""
        return {
            "passed": self.passed,
            "criteria": self.criteria.name,
            "run": self.places.get("run"),
            "baseline": self.places.get("baseline"),
            "comparable": self.comparable,
            "notes": [*self.scope, *self.notes],
            "gates": [outcome.document() for outcome in self.outcomes],
        }
