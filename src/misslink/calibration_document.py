"""``calibration.json`` and ``audit.json`` as typed models: a judge compared with people, and tested."""

from __future__ import annotations

from typing import Annotated

from pydantic import JsonValue, NonNegativeInt

from misslink.document_model import Document, Estimates, Needed, Result
from misslink.field_markers import LowerIsBetter
from misslink.types import Estimate, Share


class JudgeUsage(Document):
    """Judge calls, tokens and cost; None where the judge reported nothing.

    The ``generations`` are the app's answers of a replay; ``generations_kept`` were reused.
    """

    calls: int
    from_cache: int
    not_asked: int
    stopped_by: str | None
    in_batches: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None
    generations: int | None
    generations_kept: int | None


NO_USAGE = JudgeUsage.read({"prompt_tokens": 0, "completion_tokens": 0})  # of a run without a judge


class ErrorTest(Document):
    """Whether the judge errs alike at each exposure."""

    tested: bool
    differs: bool | None
    p: float | None
    reason: str | None


class JudgeErrorTest(ErrorTest):
    """The test, and the judge's error rates at each exposure."""

    none: Estimates
    some: Estimates
    all: Estimates


class ReliabilityBinDocument(Document):
    """Labelled cases with a probability in one range; None where there are none."""

    low: float
    high: float
    n: int
    predicted: float | None
    good: Estimate


class DisputedLabel(Document):
    """A case, or one claim of it counted from 0, that annotators labelled differently."""

    case_id: str
    claim: int | None
    labels: dict[str, float]
    settled: bool


class AnnotatorSummary(Document):
    """How many items one annotator labelled, and the agreement with the others and the judge."""

    labels: int
    good: int
    others: Estimate
    judge: Estimate
    judge_kappa: Estimate


class CopiedLabels(Document):
    """Two annotators who never differ, although both labels occur."""

    annotators: tuple[str, str]
    labels: int


class AnnotatorAgreement(Document):
    """Agreement of the annotators with each other and with the judge."""

    annotators: int
    alpha: Estimate
    alpha_ordinal: Estimate | None
    percent: Estimate
    kappa: Estimate
    alpha_with_judge: Estimate
    each: dict[str, AnnotatorSummary]
    copies: tuple[CopiedLabels, ...]
    unsettled: int
    queue: tuple[DisputedLabel, ...]


class TrustCheck(Document):
    """One requirement for the judge, its limits and value, and the level that this value meets."""

    name: str
    value: float | None
    trust: float | None
    caution: float | None
    at_most: bool
    met: str | None
    says: str


class Confusion(Document):
    """Labelled cases by label and by the judge's call."""

    true_good: Annotated[NonNegativeInt, Needed]
    false_good: Annotated[NonNegativeInt, Needed]
    true_bad: Annotated[NonNegativeInt, Needed]
    false_bad: Annotated[NonNegativeInt, Needed]


class CorrectedPrevalence(Document):
    """The share of good cases among all verdicts, in several ways."""

    judge_only: Estimate | None
    labelled_only: Estimate | None
    rogan_gladen: Estimate | None
    rogan_gladen_posterior: Estimate | None
    prediction_powered: Estimate | None
    power: float | None
    worth: float | None
    label_error: Estimate | None
    verdicts: int
    ties: int


class LabelForecastDocument(Document):
    """The width of the corrected share's interval with so many labels."""

    labels: Annotated[int, Needed]
    width: float
    labelled_only: float


class LabelsNeeded(Document):
    """How many labels an interval of a given width takes; None: not even all of them suffice."""

    reason: str | None
    share: float | None
    unexplained: float | None
    verdicts: int
    curve: tuple[LabelForecastDocument, ...]
    for_width: dict[str, int | None]


class MatchedPairsDocument(Document):
    """Answers to one question with the same label: which of two is scored higher.

    ``longer_preferred`` of two lengths, ``preferred`` of a category and the others.
    """

    pairs: int
    ties: int
    questions: int
    preferred: Estimate | None
    longer_preferred: Estimate | None
    difference: Estimate
    p: float | None
    p_holm: float | None
    finding: str | None


class Bias(Document):
    """The judge's errors regressed on one property that should not matter."""

    coefficient: Estimate
    pull: Estimate | None
    p: float | None
    p_holm: float | None
    pull_p: float | None
    pull_p_holm: float | None
    n: int
    unit: str | None
    finding: str | None
    matched: MatchedPairsDocument | None


class ScoreDistribution(Document):
    """How often each score, rounded to two digits, was given."""

    n: int
    counts: dict[float, NonNegativeInt]


class Recalibration(Document):
    """Errors of probabilities after a curve, cross-fitted, and the curve of all labels."""

    brier: Estimate
    ece: Estimate
    curve: dict[str, JsonValue]


class Recalibrations(Document):
    """Both curves, or why there is none."""

    reason: str | None
    platt: Recalibration | None
    isotonic: Recalibration | None


class FittedThreshold(Document):
    """A threshold fitted on the labels, with its cross-fitted rates of finding what is bad."""

    threshold: float | None
    of_folds: tuple[float | None, ...]
    detection: Estimates


class ClaimAgreement(Document):
    """Agreement about single claims; ``without_verdict`` of the labels have none."""

    n: int
    positives: int
    without_verdict: int
    agreement: Estimates
    detection: Estimates


class AuditedChange(Document):
    """Verdicts before and after a change that must not matter; ``places`` of the favored answer.

    The order of two answers has no ``good`` or ``bad`` verdict that it could turn.
    """

    n: int
    good: int | None
    bad: int | None
    flipped: Estimate
    to_good: Estimate | None
    to_bad: Estimate | None
    shift: Estimate | None
    gained: int | None
    lost: int | None
    claims: Estimate | None
    may_lower: bool
    left_out: Annotated[dict[str, int], LowerIsBetter]
    places: dict[str, int]
    p: float | None
    p_more: float | None
    p_holm: float | None
    p_more_holm: float | None
    finding: str | None


class AuditFigures(Document):
    """What changed the verdicts of a judge, by metric and change, and which of two is better."""

    metrics: dict[str, dict[str, AuditedChange]]
    preferences: dict[str, AuditedChange]


class Audit(AuditFigures):
    """``audit.json``; the cases were ``drawn_by`` a metric, by the verdicts of the run."""

    judge: str
    judge_identity: dict[str, str]
    prompts: dict[str, str]
    created: str
    run: str
    against: str | None
    seed: int | None
    cases: int
    drawn_by: str
    good: int
    bad: int
    notes: tuple[str, ...]
    usage: Annotated[JudgeUsage, LowerIsBetter]


class CalibrationAudit(Document):
    """The audit of the calibrated judge, as far as it is of the calibrated metric."""

    judge: str
    created: str
    seed: int | None
    cases: int
    run: str
    changes: dict[str, AuditedChange]


class CalibrationSource(Document):
    """Where a calibration is from that decided the links of a run."""

    labels_from: str
    labels: int
    created: str
    verdicts_sha256: str | None


class CalibrationDocument(Result):
    """``calibration.json``: a judge against human labels, one metric; ``others`` by metric."""

    metric: str
    judge: str | None
    prompts: dict[str, str]
    judge_identity: dict[str, JsonValue]
    created: str
    misslink: str
    run: str | None
    verdicts_from: str
    labels_from: str
    labels: int
    seed: int | None
    verdicts_sha256: str | None
    n: int
    positives: int
    threshold: float | None
    threshold_from: str
    agreement: Estimates
    detection: Estimates
    confusion: Confusion | None
    baselines: dict[str, dict[str, float | None]]
    over_length: Estimate
    human: AnnotatorAgreement
    labelled: dict[str, float]
    label_weights: dict[str, float]
    label_strata: dict[str, str]
    label_disputes: dict[str, float]
    by_exposure: JudgeErrorTest
    probability: dict[str, float | None]
    probability_intervals: Estimates
    reliability: tuple[ReliabilityBinDocument, ...]
    recalibration: Recalibrations
    nested: dict[str, FittedThreshold | str | None]
    uncertain_band: tuple[Share, Share] | None
    uncertain_band_reason: str | None
    corrected: CorrectedPrevalence
    labels_needed: LabelsNeeded
    bias: dict[str, Bias]
    scores: ScoreDistribution
    claims: ClaimAgreement | None
    left_out: Annotated[dict[str, int], LowerIsBetter]
    unknown_labels: int
    labels_of_other_answers: int
    unverified_labels: int
    audit: CalibrationAudit | None
    audit_reason: str | None
    checks: tuple[TrustCheck, ...]
    verdict: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    others: dict[str, CalibrationDocument]

    @property
    def source(self) -> CalibrationSource:
        """Where it is from, for the manifest of a run that is linked by it."""
        return CalibrationSource(
            labels_from=self.labels_from,
            labels=self.labels,
            created=self.created,
            verdicts_sha256=self.verdicts_sha256,
        )

    @property
    def linking_inputs(self) -> tuple[object, ...]:
        """What decides the links: cut, uncertain band and rates."""
        named = map(self.agreement.get, ("sensitivity", "specificity"))
        return (self.threshold, self.uncertain_band, *named)

    def by_metric(self) -> dict[str, CalibrationDocument]:
        """Return every metric's own calibration, this one first."""
        own = {self.metric: self} if self.metric else {}
        return own | self.others | own


class AppliedCalibration(Document):
    """The rates and the cut of a calibration, as far as they decided the links of a run."""

    metric: str
    threshold: float | None
    sensitivity: Estimate
    specificity: Estimate
    uncertain_band: tuple[Share, Share] | None

    @property
    def calibration(self) -> CalibrationDocument:
        """What is known of the calibration."""
        rates = {"sensitivity": self.sensitivity, "specificity": self.specificity}
        return CalibrationDocument.read({**dict(self), "agreement": rates})

    @property
    def linking_inputs(self) -> tuple[object, ...]:
        """What decides the links, as of a whole calibration."""
        return self.calibration.linking_inputs
