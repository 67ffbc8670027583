"""Judge every case, and calibrate the judge on human labels."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from misslink.calibration import calibrate, stored_calibration, verdicts_from_run
from misslink.calibration.advice import TOO_FEW
from misslink.calibration.judge_accuracy import error_by_exposure
from misslink.calibration_document import CalibrationDocument, CalibrationSource
from misslink.documents import Drift, calibrations_of
from misslink.engines.shard import RunFacts
from misslink.errors import InputError, JudgeUnreachableError
from misslink.io.labels import Labels
from misslink.judge.calibration import Calibration
from misslink.pipeline.context import EvaluationContext
from misslink.pipeline.shards import evaluate_shards
from misslink.render.format import as_sentence, pluralize
from misslink.retrieval import case_exposures, cluster_cases
from misslink.types import Outcome, Reason, Run, Trace, Verdict

_log = logging.getLogger(__name__)


class CalibratedRun(NamedTuple):
    """The judged run, not yet linked, with its calibrations; and the one that linking uses.

    ``source`` is where that one is from, for the manifest; ``notes`` say what labels did not carry.
    """

    run: Run
    calibration: Calibration | None
    source: CalibrationSource | None
    notes: tuple[str, ...]


async def judge_cases(context: EvaluationContext, traces: Sequence[Trace]) -> Sequence[Verdict]:
    """Return the verdicts of every judged metric on every case; none without a judge.

    Raises
    ------
    JudgeUnreachableError
        The judge failed on every case.
    InputError
        The budget does not suffice for one question.
    """
    judge, repeats = context.judge, context.config.judging.repeats
    if judge is None:
        return ()

    facts = RunFacts(context.k, context.metrics, context.prompts, repeats)
    verdicts = await evaluate_shards(context, facts, traces)
    failed = [score for score in verdicts.light if score.status == "failed"]
    if failed and not judge.not_asked and all(v.status != "scored" for v in verdicts.light):
        raise JudgeUnreachableError(
            f"the judge {judge.name} failed on every case; the first time {failed[0].reason}"
        )
    usage = judge.usage()
    if judge.not_asked and not usage.calls and not usage.from_cache:
        raise InputError(f"the judge was asked no question: {judge.stopped_by}")
    return verdicts


def calibrate_run(
    context: EvaluationContext, traces: Sequence[Trace], verdicts: Sequence[Verdict]
) -> CalibratedRun:
    """Return the run with the given calibration, or one from the given labels, metric by metric.

    Labels that cannot support a calibration do not stop the evaluation: they are noted and warned
    about.
    """
    run = Run(
        manifest={
            "k": context.k,
            "judge": context.judge_name,
            "inputs": dict(context.inputs),
        },
        cases=context.gold.cases,
        traces=traces,
        verdicts=verdicts,
        links=(),
        summary={},
    )
    document, calibration, notes = context.calibration_document, context.calibration, list[str]()
    if context.labels is not None:
        document, calibration = _calibrate_on_labels(context, context.labels, run, notes)
    for note in notes:
        _log.warning("%s", note)
    source = None
    if calibration is not None and document is not None:
        source = CalibrationDocument.read(document).source
    run = run.model_copy(update={"calibration": document and dict(document)})
    return CalibratedRun(run, calibration, source, tuple(notes))


def _calibrate_on_labels(
    context: EvaluationContext, labels: Labels, run: Run, notes: list[str]
) -> tuple[dict[str, Any] | None, Calibration | None]:
    config, unverified = context.config, 0
    document: dict[str, Any] | None = None
    for metric in labels.metrics if labels.items else ():
        try:
            where = str(config.out or "this run")
            judged = verdicts_from_run(run, metric, where, labels.cases)
            calibrated = calibrate(judged, labels, known_only=config.known_only, seed=config.seed)
        except InputError as problem:  # the judge calls are paid for: a label must not lose them
            notes.append(f"{metric} was not compared with its labels: {problem}.")
            continue
        document = stored_calibration.merge_calibration(document, calibrated.document())
        if others := calibrated.labels_of_other_answers:
            notes.append(f"{pluralize(others, 'label')} of {metric} left out: of other answers.")
        unverified += calibrated.unverified_labels
        if calibrated.verdict == "do not use":
            notes.append(f"The labels of {metric} say not to use this judge.")
        elif calibrated.verdict == TOO_FEW:
            notes.append(f"The labels of {metric} are too few to say whether to use this judge.")
    if unverified:
        sentence = str(Reason(code="unverified_labels", n=unverified))
        notes.append(as_sentence(sentence))
    if not labels.items:
        notes.append("No case that was evaluated is labelled.")
    if document is None:
        return None, None
    if document["metric"] != stored_calibration.LINKING_METRIC:
        notes.append("There are no labels of faithfulness, so failure modes are not corrected.")
    elif weakness := _weakness_of_labels(document):
        notes.append(
            f"The labels of faithfulness are not enough for a calibration ({weakness}), so failure "
            "modes are not corrected by it."
        )
        document["notes"] = [*document["notes"], notes[-1]]
    else:
        return document, Calibration.from_document(document, labels.name)
    return document, None


def measure_error_by_exposure(run: Run, links: Sequence[Outcome], seed: int) -> Run:
    """Return the run whose own calibrations say how the judge errs at each exposure.

    Judges are calibrated before the cases are linked, and the exposure is known after.
    """
    document: dict[str, Any] | None = None
    own, exposures = stored_calibration.current_calibrations(run), case_exposures(links)[1]
    for metric, stored in calibrations_of(run).items():
        plain = dict(stored_calibration.stored_calibrations(run)[metric])
        if metric in own and stored.threshold is not None:
            plain["by_exposure"] = error_by_exposure(
                {case_id: share >= 1 / 2 for case_id, share in stored.labelled.items()},
                stored_calibration.verdict_scores(run, metric),
                stored.threshold,
                exposures,
                cluster_cases(run.cases),
                seed=seed,
            ).document()
        document = stored_calibration.merge_calibration(document, plain)
    return run.model_copy(update={"calibration": document}) if document else run


def score_drift(run: Run) -> dict[str, Drift]:
    """Return by metric how the judge's scores moved since its calibration; warn of each."""
    drifts = {}
    for metric, document in calibrations_of(run).items():
        if (
            drift := stored_calibration.detect_drift(
                document, stored_calibration.verdict_scores(run, metric).values()
            )
        ) is not None:
            _log.warning("%s", drift.sentence)
            drifts[metric] = drift.summary_entry()
    return drifts


def _weakness_of_labels(document: Mapping[str, Any]) -> str | None:
    """Why labels do not show that a judge is better than chance; None where they do."""
    rates = stored_calibration.judge_error_rates(CalibrationDocument.read(document))
    if rates is None:
        return str(Reason(code="no_error_rates"))
    accuracy = rates.balanced_accuracy
    if accuracy.value is None or accuracy.low is None:
        return accuracy.reason or str(Reason(code="no_labels"))
    if accuracy.low <= 1 / 2:
        measured = {"accuracy": accuracy.value, "low": accuracy.low}
        return str(Reason(code="judge_not_above_chance", n=rates.n, **measured))
    return None
