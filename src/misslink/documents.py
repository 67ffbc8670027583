"""The JSON documents inside a run as typed models, and how they are read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from pydantic import AliasPath, Field, JsonValue, NonNegativeInt, model_validator

from misslink.document_model import (
    NOT_COMPUTED,
    Document,
    DocumentT,
    Estimates,
    Result,
    parse_document,
)
from misslink.field_markers import LowerIsBetter
from misslink.types import Estimate, Run, Share

METRIC_LEVELS = ("retrieval", "generation", "answer")  # of the summary
DEFAULT_K = 5  # if neither a prompt nor the manifest says how many passages the app reads


class ExposureTable(Document):
    """Answers by how much of what a case needs was in the prompt."""

    none: dict[str, int] = {"bad": 0, "good": 0}
    some: dict[str, int] = {"bad": 0, "good": 0}
    all: dict[str, int] = {"bad": 0, "good": 0}
    left_out: Annotated[int, LowerIsBetter] = 0
    not_needed: int = 0

    @property
    def total(self) -> int:
        """Number of cases in the table."""
        return sum(sum(row.values()) for row in (self.none, self.some, self.all))


class TestResult(Document):
    """A significance test; ``p`` is None with a ``reason`` if it could not be made."""

    __test__ = False  # pytest

    p: float | None = None
    method: str = ""
    reason: str = ""
    slope: float | None = None


class Risks(Document):
    """Risks of a bad answer by exposure, and how none and all differ."""

    risk_given_none: Annotated[Estimate, LowerIsBetter] = NOT_COMPUTED
    risk_given_some: Annotated[Estimate, LowerIsBetter] = NOT_COMPUTED
    risk_given_all: Annotated[Estimate, LowerIsBetter] = NOT_COMPUTED
    risk_difference: Annotated[Estimate, LowerIsBetter] = NOT_COMPUTED
    risk_ratio: Annotated[Estimate, LowerIsBetter] = NOT_COMPUTED
    attributable_fraction: Annotated[Estimate, LowerIsBetter] = NOT_COMPUTED


class Note(Document):
    """A code and its sentence."""

    code: str = ""
    message: str = ""


class Stratum(Risks):
    """One category, or one third of the cases by what `AdjustedRisks.by` names."""

    name: str = ""
    table: ExposureTable = ExposureTable()


class AdjustedRisks(Risks):
    """The comparison of none with all within categories only, or within thirds of the cases."""

    by: str = ""
    proxies: tuple[str, ...] = ()
    strata: tuple[Stratum, ...] = ()
    left_out: Annotated[dict[str, int], LowerIsBetter] = {}
    heterogeneity: TestResult = TestResult()
    warning: Note = Note()
    change: Note = Note()


class JudgeErrorTest(TestResult):
    """Whether the judge errs alike at each exposure, and in a calibration its error rates there."""

    tested: bool = False
    differs: bool | None = None
    none: Estimates = {}
    some: Estimates = {}
    all: Estimates = {}


class OwnerReliability(Document):
    """How often named owners are right: measured with what was ``given``, by ``source``."""

    given: tuple[str, ...] = ()
    judge: str = ""
    owner_right: Estimate = NOT_COMPUTED
    named: Estimate = NOT_COMPUTED
    source: str = ""


class RiskAssociation(Risks):
    """``link`` and ``link_correctness`` in the summary: exposure and one kind of bad answers."""

    attributable_fraction: Annotated[Estimate, LowerIsBetter] = Estimate.missing(
        "this run has no links"
    )
    exposure: str = ""
    table: ExposureTable = ExposureTable()
    clusters: int = 0
    corrected: Risks = Risks()
    judge_error_by_exposure: JudgeErrorTest = JudgeErrorTest()
    adjusted: AdjustedRisks = AdjustedRisks()
    trend: TestResult = TestResult()
    warnings: tuple[Note, ...] = ()
    failed: Annotated[Estimate, LowerIsBetter] = NOT_COMPUTED
    failures: dict[str, int] = {}
    owners: dict[str, int] = {}
    retrieval: dict[str, int] = {}
    answers: dict[str, int] = {}
    reliability: OwnerReliability | None = None


class ChecklistItem(Document):
    """One question of the retrieval checklist; ``ok`` is None where it could not be decided."""

    name: str = ""
    question: str = ""
    numbers: dict[str, Estimate | bool | float | str | None] = {}
    finding: str = ""
    ok: bool | None = None


class MissingLabelDocument(Document):
    """A retrieved passage that holds an answer and that the gold set does not label."""

    case_id: str = ""
    passage_id: str = ""
    rank: int = 0
    question: str = ""
    text: str = ""
    reason: str = ""


class MetricWithLabels(Document):
    """A rank metric without and with the missing labels."""

    without_labels: Estimate = Field(NOT_COMPUTED, validation_alias="without")
    with_labels: Estimate = Field(NOT_COMPUTED, validation_alias="with")


class MissingLabelsDocument(Document):
    """The missing labels of a run; ``reason`` says why none could be looked for."""

    holes: tuple[MissingLabelDocument, ...] = ()
    metrics: dict[str, MetricWithLabels] = {}
    reason: str = ""


class Diagnosis(Document):
    """``diagnosis`` in the summary."""

    embedding: str = ""
    corpus: int = 0
    checklist: tuple[ChecklistItem, ...] = ()
    missing_labels: MissingLabelsDocument = MissingLabelsDocument()


class Coverage(Document):
    """Verdicts of one metric, by status."""

    scored: int = 0
    skipped: Annotated[int, LowerIsBetter] = 0
    failed: Annotated[int, LowerIsBetter] = 0


class VerdictRepeatability(Document):
    """How much the verdicts of one metric move between samples."""

    n: int = 0
    incomplete: int = 0
    flip_rate: Annotated[Estimate, LowerIsBetter] = NOT_COMPUTED
    disagreement: Annotated[Estimate, LowerIsBetter] = NOT_COMPUTED
    spread: Annotated[Estimate, LowerIsBetter] = NOT_COMPUTED


class Repeatability(Document):
    """``repeats`` in the summary; ``run`` by metric."""

    samples: int = 0
    metrics: dict[str, VerdictRepeatability] = {}
    run: dict[str, dict[str, JsonValue]] = {}


class Cascade(Document):
    """Which judge of a cascade answered what; a stage is a judge with all that come after it."""

    share_dear: Estimate = NOT_COMPUTED
    sure: int = 0
    agreement: Estimate = NOT_COMPUTED
    calls: int = 0
    cost: float | None = None
    stages: dict[str, Cascade] = {}


class JudgeUsage(Document):
    """Judge calls, tokens and cost; None where the judge reported nothing."""

    calls: int = 0
    from_cache: int = 0
    not_asked: int = 0
    stopped_by: str | None = None
    in_batches: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost: float | None = None
    generations: int = 0
    generations_kept: int = 0


class Slice(Document):
    """The metrics of one group of cases."""

    n: int = 0
    metrics: Estimates = {}


class Summary(Document):
    """``summary.json``."""

    run: str = ""
    cases: int = 0
    judge: str = ""
    k: int = 0
    retrieval: Estimates = {}
    generation: Estimates = {}
    answer: Estimates = {}
    judged: Estimates = {}
    warnings: tuple[dict[str, str], ...] = ()  # code and message
    corrected_failed: Estimate = NOT_COMPUTED
    link: RiskAssociation = RiskAssociation()
    link_correctness: RiskAssociation = RiskAssociation()
    diagnosis: Diagnosis = Diagnosis()
    first_step: dict[str, JsonValue] | None = None  # fix, owner, cases, basis, k
    lower_is_better: tuple[str, ...] = ()
    coverage: dict[str, Coverage] = {}
    repeats: Repeatability = Repeatability()
    cascade: Cascade | None = None
    usage: Annotated[JudgeUsage | None, LowerIsBetter] = None
    slices: dict[str, dict[str, Slice]] = {}


class ReliabilityBinDocument(Document):
    """Labelled cases with a probability in one range; None where there are none."""

    low: float
    high: float
    n: int = 0
    predicted: float | None = None
    good: Estimate = NOT_COMPUTED


class DisputedLabel(Document):
    """A case, or one claim of it counted from 0, that annotators labelled differently."""

    case_id: str = ""
    claim: int | None = None
    labels: dict[str, float] = {}
    settled: bool = False


class AnnotatorAgreement(Document):
    """Agreement of the annotators with each other and with the judge."""

    annotators: int = 0
    alpha: Estimate = NOT_COMPUTED
    alpha_ordinal: Estimate = NOT_COMPUTED
    percent: Estimate = NOT_COMPUTED
    kappa: Estimate = NOT_COMPUTED
    alpha_with_judge: Estimate = NOT_COMPUTED
    unsettled: int = 0
    queue: tuple[DisputedLabel, ...] = ()


class TrustCheck(Document):
    """One requirement for the judge, its value, and the level that this value meets."""

    name: str = ""
    value: float | None = None
    trust: float | None = None
    met: str = ""
    says: str = ""


class Confusion(Document):
    """Labelled cases by label and by the judge's call."""

    true_good: NonNegativeInt
    false_good: NonNegativeInt
    true_bad: NonNegativeInt
    false_bad: NonNegativeInt


class CorrectedPrevalence(Document):
    """The share of good cases among all verdicts, in several ways."""

    judge_only: Estimate | None = None
    labelled_only: Estimate | None = None
    rogan_gladen: Estimate | None = None
    rogan_gladen_posterior: Estimate | None = None
    prediction_powered: Estimate | None = None
    power: float | None = None
    worth: float | None = None
    label_error: Estimate | None = None
    verdicts: int = 0
    ties: int = 0


class LabelForecastDocument(Document):
    """The width of the corrected share's interval with so many labels."""

    labels: int
    width: float
    labelled_only: float


class LabelsNeeded(Document):
    """How many labels an interval of a given width takes; None: not even all of them suffice."""

    reason: str = ""
    verdicts: int = 0
    curve: tuple[LabelForecastDocument, ...] = ()
    for_width: dict[str, int | None] = {}


class MatchedPairsDocument(Document):
    """Answers to one question with the same label: which of two is scored higher."""

    pairs: int = 0
    questions: int = 0
    preferred: Estimate | None = None
    longer_preferred: Estimate | None = None
    p: float | None = None
    p_holm: float | None = None
    finding: str = ""


class Bias(Document):
    """The judge's errors regressed on one property that should not matter."""

    coefficient: Estimate = NOT_COMPUTED
    pull: Estimate | None = None
    p: float | None = None
    p_holm: float | None = None
    pull_p: float | None = None
    pull_p_holm: float | None = None
    n: int = 0
    unit: str = ""
    finding: str = ""
    matched: MatchedPairsDocument | None = None


class CalibrationDocument(Result):
    """``calibration.json``: a judge against human labels, one metric; ``others`` by metric."""

    metric: str = ""
    judge: str = ""
    prompts: dict[str, str] = {}
    judge_identity: dict[str, JsonValue] = {}
    created: str = ""
    verdicts_from: str = ""
    labels_from: str = ""
    labels: int = 0
    verdicts_sha256: str | None = None
    n: int = 0
    positives: int = 0
    threshold: float | None = None
    threshold_from: str = ""
    agreement: Estimates = {}
    detection: Estimates = {}
    confusion: Confusion | None = None
    baselines: dict[str, dict[str, float | None]] = {}
    human: AnnotatorAgreement = AnnotatorAgreement()
    labelled: dict[str, float] = {}
    label_weights: dict[str, float] = {}
    label_strata: dict[str, str] = {}
    label_disputes: dict[str, float] = {}
    by_exposure: JudgeErrorTest = JudgeErrorTest()
    probability: dict[str, float | None] = {}
    reliability: tuple[ReliabilityBinDocument, ...] = ()
    uncertain_band: tuple[Share, Share] | None = None
    uncertain_band_reason: str = ""
    corrected: CorrectedPrevalence = CorrectedPrevalence()
    labels_needed: LabelsNeeded = LabelsNeeded()
    bias: dict[str, Bias] = {}
    scores: dict[float, NonNegativeInt] = Field({}, validation_alias=AliasPath("scores", "counts"))
    left_out: Annotated[dict[str, int], LowerIsBetter] = {}
    checks: tuple[TrustCheck, ...] = ()
    verdict: str = ""
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    others: dict[str, CalibrationDocument] = {}

    @model_validator(mode="before")
    @classmethod
    def _read_manifest(cls, data: Any) -> Any:
        """A manifest has the two rates that linking used on top."""
        if isinstance(data, Mapping) and "sensitivity" in data:
            rates = {name: data.get(name) for name in ("sensitivity", "specificity")}
            return {**data, "agreement": {name: rate for name, rate in rates.items() if rate}}
        return data

    @property
    def linking_inputs(self) -> list[Any]:
        """What decides the links: cut, uncertain band and rates."""
        rates = self.agreement
        return [
            self.threshold,
            self.uncertain_band,
            *map(rates.get, ("sensitivity", "specificity")),
        ]

    def by_metric(self) -> dict[str, CalibrationDocument]:
        """Return every metric's own calibration, this one first."""
        own = {self.metric: self} if self.metric else {}
        return own | self.others | own


class ReplayedFailure(Document):
    """What missed passages did in one failure mode; ``confirmed`` as the run names the owner."""

    cases: int = 0
    replayed: int = 0
    fixed: Estimate = NOT_COMPUTED
    placebo_fixed: Estimate = NOT_COMPUTED
    net_fixed: Estimate = NOT_COMPUTED
    confirmed: Estimate = NOT_COMPUTED


class ReplayedCase(Document):
    """One replayed case; ``outcomes`` by arm, ``turned`` means fixed, of a good answer broken.

    ``e`` is the evidence for the likeliest cause, ``held`` how many of the ``tried`` were good.
    """

    case_id: str = ""
    failure: str = ""
    turned: bool = False
    flaky: bool | None = None
    confirmed: bool | None = None
    cause: str | None = None
    owner: str | None = None
    outcomes: dict[str, str | None] = {}
    e: float | None = None
    tried: dict[str, int] = {}
    held: dict[str, int] = {}
    note: str = ""


class ReplayedArm(Document):
    """What one arm did to the failed answers that were ``tried`` with it, the first time."""

    arm: str = ""
    owner: str = ""
    tried: int = 0
    held: Estimate = NOT_COMPUTED
    placebo_held: Estimate = NOT_COMPUTED


class Skipped(Document):
    """A case that was not replayed, or an option that was not tried, and why."""

    case_id: str = ""
    name: str = ""
    reason: str = ""


class Replay(Result):
    """``replay.json``."""

    run: str = ""
    app: str = ""
    judge: str = ""
    sample: int = 0
    seed: int | None = None
    causal_fraction: Annotated[Estimate, LowerIsBetter] = Estimate.missing("the replay has none")
    failed: int = 0
    failures: dict[str, ReplayedFailure] = {}
    owners: dict[str, int] = {}
    arms: tuple[ReplayedArm, ...] = ()
    calls_per_failure: Annotated[float | None, LowerIsBetter] = None
    fixed: Estimate = NOT_COMPUTED
    broken: Estimate = NOT_COMPUTED
    placebo_broken: Estimate = NOT_COMPUTED
    flaky: Annotated[Estimate, LowerIsBetter] = NOT_COMPUTED
    cases: tuple[ReplayedCase, ...] = ()
    usage: Annotated[JudgeUsage, LowerIsBetter] = JudgeUsage()
    skipped: tuple[Skipped, ...] = ()
    warnings: tuple[Note, ...] = ()


class OptionMetric(Document):
    """A metric of the run (``a``) and with an option (``b``), paired by case."""

    at: int | None = None
    a: Estimate | None = None
    b: Estimate = NOT_COMPUTED
    difference: Estimate = NOT_COMPUTED
    p: float | None = None
    p_holm: float | None = None
    tests: int = 0
    detectable: float | None = None
    winner: str = ""


class WhatIfOption(Document):
    """An option for the retriever and what it would change; counts are None where not known."""

    name: str = ""
    what: str = ""
    passages: int = 0
    metrics: dict[str, OptionMetric] = {}
    context_tokens: Annotated[Estimates, LowerIsBetter] = {}
    newly_retrieved: int | None = None
    reached: tuple[str, ...] | None = None  # failed cases that get all that they lost
    failures_avoided: Estimate = NOT_COMPUTED
    unmeasured: dict[str, int] = {}
    finding: str = ""


class OptionCheck(Document):
    """The cases of the best option that were run again; each stratum has counts by name."""

    option: str = ""
    asked: int = 0
    changed: dict[str, int] = {}
    unchanged: dict[str, int] = {}
    reason: str = ""


class WhatIfCorpus(Document):
    """How many passages were searched, and where they are from."""

    passages: int = 0
    source: str = ""


class WhatIf(Result):
    """``whatif.json``."""

    run: str = ""
    corpus: WhatIfCorpus | None = None
    embedding: str = ""
    k: int = 0
    context_passages: int = 0
    baseline: Estimates = {}
    options: tuple[WhatIfOption, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    check: OptionCheck | None = None
    basis: str = ""
    notes: tuple[str, ...] = ()
    seed: int | None = None


class AuditedChange(Document):
    """Verdicts before and after a change that must not matter; ``places`` of the favored answer."""

    n: int = 0
    good: int = 0
    bad: int = 0
    flipped: Estimate = NOT_COMPUTED
    to_good: Estimate = NOT_COMPUTED
    to_bad: Estimate = NOT_COMPUTED
    shift: Estimate | None = None
    claims: Estimate | None = None
    may_lower: bool = False
    left_out: Annotated[dict[str, int], LowerIsBetter] = {}
    places: dict[str, int] = {}
    p_holm: float | None = None
    p_more_holm: float | None = None
    finding: str = ""


class Audit(Document):
    """``audit.json``: by metric and change."""

    judge: str = ""
    created: str = ""
    run: str = ""
    seed: int | None = None
    cases: int = 0
    metrics: dict[str, dict[str, AuditedChange]] = {}
    preferences: dict[str, AuditedChange] = {}
    notes: tuple[str, ...] = ()
    usage: Annotated[JudgeUsage, LowerIsBetter] = JudgeUsage()


class Judging(Document):
    """How a run was judged."""

    abilities: dict[str, JsonValue] = {}
    price_in: float | None = None
    prompts: str | None = None
    repeats: int | None = None
    spec: str = ""


class PromptFile(Document):
    """A prompt of the judge."""

    name: str = ""
    version: int | None = None
    sha256: str = ""


class JudgeEpoch(Document):
    """Model, prompts and rules by which a run was judged; "" where it was not, or is not known."""

    model: str = ""
    prompts: dict[str, str] = {}
    rules: str = ""

    def is_that_of(self, other: JudgeEpoch) -> bool:
        """Whether verdicts of both can be compared; cases may need other prompts of one judge."""
        prompts = self.prompts.keys() & other.prompts.keys()
        return (self.model, self.rules) == (other.model, other.rules) and all(
            self.prompts[name] == other.prompts[name] for name in prompts
        )


class Manifest(Document):
    """``manifest.json``: what is needed to repeat a run."""

    misslink: str = ""
    created: str = ""
    command: str = ""
    app: str = ""
    traces: str = ""
    goldset: str = ""
    corpus: str = ""
    judge: str = ""
    judge_note: str = ""
    judging: Judging = Judging()
    judge_epoch: JudgeEpoch = JudgeEpoch()
    hashes: dict[str, str] = {}
    k: int | None = None
    seed: int | None = None
    id_key: str | None = None
    input_key: str | None = None
    app_config: str | None = None
    calibration: CalibrationDocument | None = None
    calibrated_by: CalibrationDocument = CalibrationDocument()
    unfinished: int = 0
    inputs: dict[str, JsonValue] = {}
    prompts: tuple[PromptFile, ...] = ()
    versions: dict[str, JsonValue] = {}

    @property
    def judge_identity(self) -> dict[str, str]:
        """What the judge's replies depend on, by name, such as ``model``."""
        start = "judge_identity."
        inputs = self.inputs.items()
        return {name.removeprefix(start): str(x) for name, x in inputs if name.startswith(start)}


def document_of(run: Run, name: str, model: type[DocumentT]) -> DocumentT | None:
    content = getattr(run, name)
    if content is None:
        return None
    # A copy of a run may share what was parsed, but not the content.
    parsed_from, document = run.parsed.get(name, (None, None))
    if parsed_from is not content:
        document = parse_document(model, content, f"{name}.json")
        run.parsed[name] = content, document
    return document  # type: ignore[no-any-return]


# Each raises InputError as `parse_document`.
calibration_of = partial(document_of, name="calibration", model=CalibrationDocument)
replay_of = partial(document_of, name="replay", model=Replay)
whatif_of = partial(document_of, name="whatif", model=WhatIf)
audit_of = partial(document_of, name="audit", model=Audit)


def manifest_of(run: Run) -> Manifest:
    """Return the run's manifest; raises InputError as `parse_document`."""
    return document_of(run, "manifest", Manifest) or Manifest()


def summary_of(run: Run) -> Summary:
    """Return the run's summary; raises InputError as `parse_document`."""
    return document_of(run, "summary", Summary) or Summary()


def cutoff_of(run: Run) -> int:
    """Return the number of passages that the run's app puts in its prompt, or the default."""
    return summary_of(run).k or manifest_of(run).k or DEFAULT_K


def calibrations_of(run: Run) -> dict[str, CalibrationDocument]:
    """Return the run's calibrations by metric; raises InputError as `parse_document`."""
    calibration = calibration_of(run)
    return calibration.by_metric() if calibration else {}
