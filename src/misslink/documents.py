"""The JSON documents inside a run as typed models, and how they are read."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from pydantic import Field, JsonValue

from misslink.calibration_document import (
    AppliedCalibration,
    Audit,
    CalibrationDocument,
    CalibrationSource,
    ErrorTest,
    JudgeUsage,
)
from misslink.document_model import Absent, Document, DocumentT, Estimates, Result, parse_document
from misslink.field_markers import LowerIsBetter
from misslink.types import Estimate, Run

METRIC_LEVELS = ("retrieval", "generation", "answer")  # of the summary
DEFAULT_K = 5  # if neither a prompt nor the manifest says how many passages the app reads


class Answers(Document):
    """How many answers are bad and good."""

    bad: int
    good: int

    @property
    def total(self) -> int:
        """Number of answers."""
        return self.bad + self.good


class ExposureTable(Document):
    """Answers by how much of what a case needs was in the prompt."""

    none: Answers
    some: Answers
    all: Answers

    @property
    def total(self) -> int:
        """Number of cases in the table."""
        return sum(row.total for row in (self.none, self.some, self.all))


class CountedTable(ExposureTable):
    """The answers of a run, and the cases that are in no row."""

    left_out: Annotated[int, LowerIsBetter]
    not_needed: int


class TestResult(Document):
    """A significance test; ``p`` is None with a ``reason`` if it could not be made."""

    __test__ = False  # pytest

    p: float | None
    method: str
    reason: str | None


class TrendResult(TestResult):
    """A test whether answers get worse from all over some to none."""

    slope: float | None


class Risks(Document):
    """Risks of a bad answer by exposure, and how none and all differ."""

    risk_given_none: Annotated[Estimate, LowerIsBetter]
    risk_given_some: Annotated[Estimate, LowerIsBetter]
    risk_given_all: Annotated[Estimate, LowerIsBetter]
    risk_difference: Annotated[Estimate, LowerIsBetter]
    risk_ratio: Annotated[Estimate, LowerIsBetter]
    attributable_fraction: Annotated[Estimate, LowerIsBetter]


class Note(Document):
    """A code and its sentence."""

    code: str
    message: str


class Stratum(Risks):
    """One category, or one third of the cases by what `AdjustedRisks.by` names."""

    name: str
    table: ExposureTable


class LeftOut(Document):
    """Strata without a comparison, and their cases."""

    strata: int
    cases: int


class AdjustedRisks(Document):
    """The comparison of none with all within categories only, or within thirds of the cases."""

    risk_difference: Annotated[Estimate, LowerIsBetter]
    risk_ratio: Annotated[Estimate, LowerIsBetter]
    attributable_fraction: Annotated[Estimate, LowerIsBetter]
    by: str | None
    proxies: tuple[str, ...]
    strata: tuple[Stratum, ...]
    left_out: Annotated[LeftOut, LowerIsBetter]
    heterogeneity: TestResult
    warning: Note | None
    change: Note | None


class OwnerReliability(Document):
    """How often named owners are right: measured with what was ``given``, by ``source``."""

    given: tuple[str, ...]
    judge: str
    owner_right: Estimate
    named: Estimate
    source: str | None


class RiskAssociation(Risks):
    """``link`` and ``link_correctness`` in the summary: exposure and one kind of bad answers."""

    attributable_fraction: Annotated[
        Estimate, LowerIsBetter, Absent(Estimate.missing("this run has no links"))
    ]
    exposure: str | None
    table: CountedTable
    clusters: int
    corrected: Risks
    judge_error_by_exposure: ErrorTest
    adjusted: AdjustedRisks
    trend: TrendResult
    warnings: tuple[Note, ...]
    failed: Annotated[Estimate, LowerIsBetter]
    failures: dict[str, int]
    owners: dict[str, int]
    retrieval: dict[str, int]
    answers: dict[str, int]
    reliability: OwnerReliability | None


class ChecklistItem(Document):
    """One question of the retrieval checklist; ``ok`` is None where it could not be decided."""

    name: str
    question: str
    numbers: dict[str, Estimate | bool | int | float | str | None]
    finding: str
    ok: bool | None


class MissingLabelDocument(Document):
    """A retrieved passage that holds an answer and that the gold set does not label."""

    case_id: str
    passage_id: str
    rank: int
    question: str
    text: str
    reason: str


class MetricWithLabels(Document):
    """A rank metric without and with the missing labels."""

    without_labels: Estimate = Field(alias="without")
    with_labels: Estimate = Field(alias="with")


class MissingLabelsDocument(Document):
    """The missing labels of a run; ``reason`` says why none could be looked for."""

    holes: tuple[MissingLabelDocument, ...]
    metrics: dict[str, MetricWithLabels]
    reason: str | None


class Diagnosis(Document):
    """``diagnosis`` in the summary."""

    embedding: str | None
    corpus: int | None
    checklist: tuple[ChecklistItem, ...]
    missing_labels: MissingLabelsDocument


class Coverage(Document):
    """Verdicts of one metric, by status."""

    scored: int
    skipped: Annotated[int, LowerIsBetter]
    failed: Annotated[int, LowerIsBetter]


class VerdictRepeatability(Document):
    """How much the verdicts of one metric move between samples."""

    n: int
    incomplete: int
    flip_rate: Annotated[Estimate, LowerIsBetter]
    disagreement: Annotated[Estimate, LowerIsBetter]
    spread: Annotated[Estimate, LowerIsBetter]


class SampleMeans(Document):
    """A metric's mean by sample, over the ``n`` cases that have a value in every one."""

    n: int
    mean: float | None
    sd: float | None
    values: tuple[float, ...]
    reason: str | None


class Repeatability(Document):
    """``repeats`` in the summary, by metric."""

    samples: int
    metrics: dict[str, VerdictRepeatability]
    run: dict[str, SampleMeans]


class CascadeStage(Document):
    """A judge with all that come after it: how much it answered, and for what."""

    sure: int
    agreement: Estimate | None
    calls: int
    from_cache: int
    prompt_tokens: int | None
    completion_tokens: int | None
    cost: float | None


class Cascade(Document):
    """Which judge of a cascade answered what; `CascadeJudge.summary` says what the numbers are."""

    asked: int
    seen_by: dict[str, int]
    share_dear: Estimate
    sure: int
    drawn: int
    audited: int
    agreed: int
    agreement: Estimate
    stages: dict[str, CascadeStage]


class Slice(Document):
    """The metrics of one group of cases."""

    n: int
    metrics: Estimates


class ErrorCounts(Document):
    """Cases on which the app failed, on which the judge failed, and without an answer."""

    app: int
    judge: int
    no_answer: int


class CorrectedShare(Document):
    """A share of good answers, as the judge calls them and corrected ``by`` a method."""

    raw: Estimate
    estimate: Estimate
    by: str
    labels: int
    own: bool
    note: str


class Drift(Document):
    """How the judge's scores moved since it was calibrated."""

    distance: float
    p: float
    n_before: int
    mean_before: float
    n: int
    mean: float
    sentence: str


class ChangeParts(Document):
    """The app's and the judge's part of a change; no ``metric`` where the runs share none.

    ``gap`` is how much further the app moved; ``larger`` is None where it is not apart from 0.
    """

    metric: str | None
    judge: Estimate | None
    app: Estimate | None
    gap: Estimate | None
    larger: str | None


class Rejudged(Document):
    """The run whose answers were judged again, and how far the judge's means are from its own."""

    run: str | None
    judge: str
    cases: int
    of: int
    difference: Estimates
    separation: ChangeParts | None


class JudgeEpoch(Document):
    """Model, prompts and rules by which a run was judged; "" where it was not, or is not known."""

    model: str
    prompts: dict[str, str]
    rules: str

    def is_comparable(self, other: JudgeEpoch) -> bool:
        """Whether verdicts of both can be compared; cases may need other prompts of one judge."""
        prompts = self.prompts.keys() & other.prompts.keys()
        return (self.model, self.rules) == (other.model, other.rules) and all(
            self.prompts[name] == other.prompts[name] for name in prompts
        )


class FirstStep(Document):
    """The fix that the run's own evidence puts first, and how many failed cases it helps."""

    fix: str
    action: str
    owner: str
    cases: int
    basis: str


class Summary(Document):
    """``summary.json``."""

    run: str | None
    cases: int
    judge: str
    k: int
    retrieval: Estimates
    generation: Estimates
    answer: Estimates
    errors: ErrorCounts
    judged: Estimates
    corrected: dict[str, CorrectedShare]
    corrected_failed: Estimate
    drift: dict[str, Drift]
    warnings: tuple[Note, ...]
    link: RiskAssociation
    link_correctness: RiskAssociation
    diagnosis: Diagnosis
    first_step: FirstStep | None
    lower_is_better: tuple[str, ...]
    coverage: dict[str, Coverage]
    repeats: Repeatability
    cascade: Cascade | None
    usage: Annotated[JudgeUsage | None, LowerIsBetter]
    slices: dict[str, dict[str, Slice]]
    judge_epoch: JudgeEpoch | None
    hashes: dict[str, str]
    rejudged: Rejudged | None
    headline: str


class ReplayedFailure(Document):
    """What missed passages did in one failure mode; ``confirmed`` as the run names the owner."""

    cases: int
    replayed: int
    fixed: Estimate
    placebo_fixed: Estimate
    net_fixed: Estimate
    confirmed: Estimate


class ReplayedCase(Document):
    """One replayed case; ``outcomes`` by arm, ``turned`` means fixed, of a good answer broken.

    ``e`` is the evidence for the likeliest cause, ``held`` how many of the ``tried`` were good.
    """

    case_id: str
    failure: str
    turned: bool
    flaky: bool | None
    confirmed: bool | None
    cause: str | None
    owner: str | None
    outcomes: dict[str, str | None]
    e: float | None
    tried: dict[str, int]
    held: dict[str, int]
    note: str | None


class ReplayedArm(Document):
    """What one arm did to the failed answers that were ``tried`` with it, the first time."""

    arm: str
    owner: str
    tried: int
    held: Estimate
    placebo_held: Estimate


class SkippedCase(Document):
    """A case that was not run again, and why."""

    case_id: str
    reason: str


class SkippedReplay(SkippedCase):
    """A case that was not replayed."""

    failure: str


class SkippedOption(Document):
    """An option that was not tried, and why."""

    name: str
    reason: str


class ReplayFigures(Document):
    """What the answers of a replay show."""

    causal_fraction: Annotated[
        Estimate, LowerIsBetter, Absent(Estimate.missing("the replay has none"))
    ]
    failed: int
    failures: dict[str, ReplayedFailure]
    owners: dict[str, int]
    arms: tuple[ReplayedArm, ...]
    calls_per_failure: Annotated[float | None, LowerIsBetter]
    fixed: Estimate
    broken: Estimate
    placebo_broken: Estimate
    net_broken: Estimate
    flaky: Annotated[Estimate, LowerIsBetter]
    cases: tuple[ReplayedCase, ...]
    skipped: tuple[SkippedReplay, ...]


class Replay(ReplayFigures, Result):
    """``replay.json``; ``cases_kept`` are replayed cases that come from earlier replays alone."""

    run: str | None
    app: str | None
    judge: str
    sample: int
    cases_kept: int
    seed: int | None
    usage: Annotated[JudgeUsage, LowerIsBetter]
    warnings: tuple[Note, ...]


class OptionMetric(Document):
    """A metric of the run (``a``) and with an option (``b``), paired by case."""

    at: int | None
    a: Estimate | None
    b: Estimate
    difference: Estimate
    p: float | None
    p_holm: float | None
    tests: int
    detectable: float | None
    winner: str | None


class WhatIfOption(Document):
    """An option for the retriever and what it would change; counts are None where not known."""

    name: str
    what: str
    passages: int
    metrics: dict[str, OptionMetric]
    context_tokens: Annotated[Estimates, LowerIsBetter]
    newly_retrieved: int | None
    reached: tuple[str, ...] | None  # failed cases that get all that they lost
    failures_avoided: Estimate
    unmeasured: dict[str, int]
    finding: str


class CheckedStratum(Document):
    """How many cases were run again, and how many of those failed; None: none was."""

    cases: int
    checked: int | None
    failed_before: int | None
    failed_after: int | None


class OptionCheck(Document):
    """The cases of the best option that were run again, changed by it or not."""

    option: str
    asked: int
    changed: CheckedStratum
    unchanged: CheckedStratum
    reason: str | None
    skipped: tuple[SkippedCase, ...]


class WhatIfCorpus(Document):
    """How many passages were searched, and where they are from."""

    passages: int
    source: str | None


class WhatIf(Result):
    """``whatif.json``."""

    run: str | None
    app: str | None
    corpus: WhatIfCorpus | None
    embedding: str | None
    k: int
    context_passages: int
    baseline: Estimates
    options: tuple[WhatIfOption, ...]
    skipped: tuple[SkippedOption, ...]
    check: OptionCheck | None
    basis: str
    notes: tuple[str, ...]
    seed: int | None


class Judging(Document):
    """How a run was judged; ``spec`` is where a judge of the user's own is imported from."""

    abilities: dict[str, JsonValue] | None
    price_in: float | None
    price_out: float | None
    batch_price: float | None
    prompts: str | None
    repeats: int | None
    spec: str | None


class PromptFile(Document):
    """A prompt of the judge."""

    name: str
    version: int | None
    sha256: str


class Manifest(Document):
    """``manifest.json``: what is needed to repeat a run."""

    format: int | None
    misslink: str
    created: str
    command: str | None
    engine: str
    app: str | None
    traces: str | None
    goldset: str | None
    corpus: str | None
    labels: str | None
    embedding: str | None
    judge: str
    judge_note: str | None
    judging: Judging
    judge_epoch: JudgeEpoch | None
    hashes: dict[str, str]
    work: str
    k: int | None
    ks: str | tuple[int, ...] | None
    depth: int | None
    map_method: str | None
    seed: int | None
    id_key: str | None
    input_key: str | None
    app_config: str | None
    calibration: AppliedCalibration | None
    calibrated_by: CalibrationSource | None
    rejudged: str | None
    unfinished: int
    inputs: dict[str, JsonValue]
    prompts: tuple[PromptFile, ...]
    versions: dict[str, str]

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
    return document_of(run, "manifest", Manifest) or Manifest.read({})


def summary_of(run: Run) -> Summary:
    """Return the run's summary; raises InputError as `parse_document`."""
    return document_of(run, "summary", Summary) or Summary.read({})


def cutoff_of(run: Run) -> int:
    """Return the number of passages that the run's app puts in its prompt, or the default."""
    return summary_of(run).k or manifest_of(run).k or DEFAULT_K


def calibrations_of(run: Run) -> dict[str, CalibrationDocument]:
    """Return the run's calibrations by metric; raises InputError as `parse_document`."""
    calibration = calibration_of(run)
    return calibration.by_metric() if calibration else {}
