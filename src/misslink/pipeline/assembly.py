"""Assemble the run from what the stages found, with earlier results that are still valid."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from misslink.calibration.labelled_failures import correct_failed
from misslink.calibration.stored_calibration import (
    corrected_shares,
    current_calibrations,
    merge_calibration,
    stored_calibrations,
)
from misslink.calibration.verdicts import hash_verdicts
from misslink.calibration_document import NO_USAGE, AppliedCalibration
from misslink.documents import (
    Diagnosis,
    FirstStep,
    JudgeEpoch,
    Judging,
    Manifest,
    Note,
    PromptFile,
    Rejudged,
    Summary,
    manifest_of,
    summary_of,
)
from misslink.errors import InputError
from misslink.field_markers import varying_fields
from misslink.io import read_run
from misslink.io.manifest import (
    content_hashes,
    display_path,
    hash_content,
    package_version,
    package_versions,
)
from misslink.io.storage import as_url, redact_url
from misslink.judge.config import is_custom_judge
from misslink.judge.epoch import judge_epoch
from misslink.judge.protocol import judge_info
from misslink.linking.association import association_warnings, summarize_association
from misslink.linking.checklist import build_checklist
from misslink.linking.findings import count_errors
from misslink.linking.missing_labels import find_missing_labels, missing_label_document
from misslink.linking.reliability import find_given, owner_reliability
from misslink.parts import replace_items
from misslink.pipeline.context import EvaluationContext
from misslink.pipeline.links import LinkResult
from misslink.pipeline.summary import (
    conversation_estimate,
    judge_differences,
    judge_repeatability,
    level_estimates,
    lower_is_better,
    separate_change,
    slice_estimates,
    verdict_coverage,
)
from misslink.pipeline.traces import CaptureResult, RankingResult
from misslink.pipeline.verdicts import CalibratedRun, measure_error_by_exposure, score_drift
from misslink.registry import late_function
from misslink.render.format import as_sentence
from misslink.retrieval import mean_scores
from misslink.types import RUN_FORMAT, Case, Reason, Run, Trace

_log = logging.getLogger(__name__)
# What the manifest says of the traces, also where they are judged again.
_OF_TRACES = ("app", "app_config", "depth", "goldset", "id_key", "input_key", "traces", "work")


def assemble_run(
    context: EvaluationContext,
    captured: CaptureResult,
    scores: RankingResult,
    judged: CalibratedRun,
    linked: LinkResult,
) -> Run:
    """Return the run: cases, traces, verdicts and links, with manifest and summary.

    Results of later commands are taken over from the run that it replaces if they are still valid.
    """
    staging, out = context.staging, context.config.out
    folder = staging.out if staging and as_url(str(out)) else out
    run = reuse_calibrations(judged.run, folder)
    run = run.model_copy(update={"links": linked.links, "map": linked.map})
    run = measure_error_by_exposure(run, run.outcomes, context.config.seed)
    manifest = _manifest(context, captured, judged)
    reasons = [
        *captured.warnings,
        *linked.warnings,
        *_other_epoch(context.gold.cases, manifest.judge_epoch),
    ]
    notes = _warnings(reasons, manifest.judge_note, judged.notes)
    diagnosis = _diagnosis(context, run, captured, scores, linked)
    summary = _summarize(context, run, scores, manifest, diagnosis)
    summary = summary.replace(
        warnings=(*notes, *summary.warnings), rejudged=_rejudged(context, captured, run)
    )
    documents = {"manifest": manifest.document(), "summary": summary.document()}
    run = reuse_results(run.model_copy(update=documents), folder)
    first_step = late_function("first_step", FirstStep)(run)
    told = {"headline": run.headline, "first_step": first_step and first_step.document()}
    return run.model_copy(update={"summary": run.summary | told})


def _rejudged(context: EvaluationContext, captured: CaptureResult, run: Run) -> Rejudged | None:
    """What judging again has changed; None: the app ran."""
    before, against, seed = captured.saved, captured.against, context.config.seed
    if before is None:
        return None
    separation = against and separate_change(
        before.verdicts, run.verdicts, against.run.verdicts, level=against.level, seed=seed
    )
    return Rejudged(
        run=summary_of(before).run,
        judge=manifest_of(before).judge,
        cases=len(run.cases),
        of=summary_of(before).cases,
        difference=judge_differences(before.scores, run.scores, seed=seed),
        separation=separation,
    )


def _manifest(
    context: EvaluationContext, captured: CaptureResult, judged: CalibratedRun
) -> Manifest:
    """What is needed to repeat the run."""
    config, judge, calibration = context.config, context.judge, judged.calibration
    verdicts = judged.run.scores
    unfinished = sum(verdict.status == "failed" for verdict in verdicts)
    prompts = sorted({v.prompt for v in verdicts if v.prompt}, key=lambda ref: ref.name)
    settings = context.settings | {
        "k": context.k,
        "app_config": _path_name(config.app_config),
        "id_key": captured.watcher.id_key if captured.watcher else config.id_key,
    }
    manifest = Manifest(
        format=RUN_FORMAT,
        misslink=package_version("misslink"),
        created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        command=config.command,
        engine=context.engine.name,
        goldset=display_path(context.gold.name),
        traces=_path_name(config.traces),
        corpus=_path_name(config.corpus),
        labels=context.labels and display_path(context.labels.name),
        judge_note=judge_info(judge).note if judge else None,
        judging=judge.about(_file_judge(config.judge)) if judge else Judging.read({}),
        judge_epoch=judge_epoch(judge.name, judge.identity, prompts) if judge else None,
        hashes=content_hashes(context.gold.cases, captured.traces),
        work=context.work,
        calibration=calibration and AppliedCalibration(**dict(calibration)),
        calibrated_by=judged.source,
        rejudged=None,
        unfinished=unfinished + (judge.not_asked if judge else 0),
        inputs=dict(context.inputs),
        prompts=tuple(PromptFile(**dict(ref)) for ref in prompts),
        versions=package_versions(context.judge_name),
        **settings,
    )
    if captured.saved is None:
        return manifest
    before = manifest_of(captured.saved)
    return manifest.replace(
        **{name: getattr(before, name) for name in _OF_TRACES},
        corpus=manifest.corpus or before.corpus,
        rejudged=summary_of(captured.saved).run,
    )


def _summarize(
    context: EvaluationContext,
    run: Run,
    scores: RankingResult,
    manifest: Manifest,
    diagnosis: Diagnosis,
) -> Summary:
    """Return the numbers of ``summary.json``; what is read off the whole run follows later."""
    cases, links, verdicts = run.cases, run.outcomes, run.scores
    judge, k, seed = context.judge, context.k, context.config.seed
    level_of = {metric.name: metric.level for metric in context.metrics}
    levels = level_estimates(scores.by_metric, verdicts, level_of, scores.unmatched, seed=seed)
    levels["answer"] |= conversation_estimate(cases, links)
    judged_share = mean_scores(scores.judged_share.values(), scores.unmatched, seed=seed)
    association = summarize_association(
        run,
        links,
        own=current_calibrations(run),
        seed=seed,
    )
    given = find_given(cases, corpus=bool(diagnosis.corpus))
    return Summary(
        run=redact_url(context.config.out) if context.config.out else None,
        cases=len(cases),
        judge=context.judge_name,
        k=k,
        retrieval=levels["retrieval"],
        generation=levels["generation"],
        answer=levels["answer"],
        errors=count_errors(run.traces, verdicts)[0],
        judged={f"judged@{k}": judged_share},
        corrected={name: share.summary_entry() for name, share in corrected_shares(run).items()},
        corrected_failed=correct_failed(run, seed=seed),
        drift=score_drift(run),
        warnings=tuple(association_warnings(association)),
        link=association["link"].replace(reliability=owner_reliability(given, manifest.judge)),
        link_correctness=association["link_correctness"],
        diagnosis=diagnosis,
        lower_is_better=tuple(lower_is_better(context.metrics)),
        coverage=verdict_coverage(verdicts, level_of),
        repeats=judge_repeatability(verdicts, level_of, seed=seed),
        cascade=judge.cascade() if judge else None,
        usage=judge.usage() if judge else NO_USAGE,
        slices=slice_estimates(cases, scores.by_metric, verdicts, k=k, seed=seed),
        judge_epoch=manifest.judge_epoch,
        hashes=manifest.hashes,
        rejudged=None,
        headline="",
        first_step=None,
    )


def _diagnosis(
    context: EvaluationContext,
    run: Run,
    captured: CaptureResult,
    scores: RankingResult,
    linked: LinkResult,
) -> Diagnosis:
    """Return the retrieval checklist and the missing labels."""
    k, seed = context.k, context.config.seed
    cases, traces, verdicts, measured = run.cases, run.traces, run.verdicts, linked.measured
    missing = find_missing_labels(cases, traces, verdicts, run.links, k)
    saved = summary_of(captured.saved) if captured.saved else None
    if saved and captured.corpus is None and saved.cases == len(cases):  # no judge is asked for it
        checklist = saved.diagnosis.checklist
    else:
        checklist = build_checklist(cases, traces, measured, k, corpus=captured.corpus, seed=seed)
    return Diagnosis(
        embedding=measured.embedding,
        corpus=measured.corpus,
        checklist=checklist,
        missing_labels=missing_label_document(
            cases, traces, verdicts, missing, k, scores=scores.by_metric, seed=seed
        ),
    )


def _file_judge(judge: object) -> str | None:
    """Where a judge of the user's own is imported from: its name does not say."""
    return display_path(judge) if isinstance(judge, str) and is_custom_judge(judge) else None


def _warnings(
    captured: Sequence[Reason], judge_note: str | None, label_notes: Sequence[str]
) -> list[Note]:
    """What a reader of any output must know, each with a code."""
    messages = [(reason.code, as_sentence(str(reason))) for reason in captured]
    messages += [("judge", f"Judge: {judge_note}.")] if judge_note else []
    messages += [("labels", f"Labels: {note}") for note in label_notes]
    return [Note(code=code, message=message) for code, message in messages]


def _other_epoch(cases: Sequence[Case], now: JudgeEpoch | None) -> Iterator[Reason]:
    """That the owners which promoted cases expect were named by another judge."""
    then = [JudgeEpoch.read(case.epoch) for case in cases if case.epoch]
    others = [epoch for epoch in then if now is not None and not epoch.is_comparable(now)]
    if others:
        was = others[0].model.split()[0]
        reason = Reason(code="suite_of_other_judge", n=len(others), of=len(cases), was=was)
        _log.warning("%s", str(reason))
        yield reason


def _path_name(source: object) -> str | None:
    """A file or address as the manifest has it; None for data that was passed as objects."""
    return display_path(redact_url(source)) if isinstance(source, str | Path) else None


def reuse_calibrations(run: Run, out: str | Path | None) -> Run:
    """Return the judged run with the calibrations of the run in `out` on the same verdicts."""
    before = _previous_run(out, ("calibration.json",))
    if before is None:
        return run
    calibration, stale = run.calibration, []
    for metric, document in stored_calibrations(before).items():
        if metric in stored_calibrations(run):
            continue
        calibrated_on = document.get("verdicts_sha256")  # None: calibrated on other verdicts too
        if hash_verdicts(run, metric) == (calibrated_on or hash_verdicts(before, metric)):
            calibration = merge_calibration(calibration, document)
        else:
            stale.append(f"calibrate {quote(str(out))} --metric {quote(metric)}")
    _warn_stale(stale)
    return run.model_copy(update={"calibration": calibration})


def reuse_results(run: Run, out: str | Path | None) -> Run:
    """Return the linked run with the audit, selftest, replay and what-if of the run in `out`.

    They are reused if nothing has changed that they depend on; a replay confirms the same links.
    """
    names = ("audit", "selftest", "replay", "whatif")
    before = _previous_run(out, [f"{name}.json" for name in names])
    if before is None:
        return run
    earlier = {name: getattr(before, name) for name in names if getattr(before, name) is not None}
    if change := _difference(before, run):
        commands = {"audit": "judge audit"}
        _warn_stale([f"{commands.get(name, name)} {quote(str(out))}" for name in earlier], change)
        return run
    basis = {link.case_id: link.basis for link in before.outcomes}
    changes = {
        place: run.links[place].model_copy(update={"basis": basis[link.case_id]})
        for place, link in enumerate(run.outcomes)
        if link.basis != basis[link.case_id]
    }
    return run.model_copy(update={**earlier, "links": replace_items(run.links, changes)})


def _previous_run(out: str | Path | None, files: Sequence[str]) -> Run | None:
    """The run in `out`, if it has one of these files and can be read."""
    if out is None or not any((Path(out) / name).is_file() for name in files):
        return None
    try:
        return read_run(out)
    except InputError as problem:
        _log.warning("results of the earlier run cannot be read, and are not reused: %s", problem)
        return None


def _difference(before: Run, run: Run) -> str | None:
    """Name the first difference on which replay, what-if and audit depend; None without any."""
    old, new = _fingerprints(before), _fingerprints(run)
    name = next((name for name in new if old[name] != new[name]), None)
    if name != "traces" or old[name].keys() != new[name].keys():
        return "the cases with an answer" if name == "traces" else name
    cases = [case_id for case_id, trace in new[name].items() if old[name][case_id] != trace]
    return f"the app's answers or passages in {len(cases)} of {len(new[name])} cases, such as '{cases[0]}'"


def _fingerprints(run: Run) -> dict[str, Any]:
    """Hashes of everything that these results depend on, by name; of traces by case."""
    manifest = manifest_of(run)
    prompts = {name: x for name, x in manifest.inputs.items() if name.startswith("prompts.")}
    varying = varying_fields(Trace)

    def misses() -> Iterator[list[Any]]:
        for link in run.links:
            missed = [(m.passage_id, m.grade, m.true_rank, m.text, m.evidence) for m in link.missed]
            outcome = (link.retrieval, link.answer, link.correct, link.failure, link.also)
            yield [link.case_id, outcome, missed]

    return {
        "the gold set": hash_content(run.cases),
        "the app's code or settings": hash_content([manifest.k, run.manifest.get("work")]),
        "traces": {
            trace.case_id: hash_content(trace.model_dump(exclude=varying)) for trace in run.traces
        },
        "the judge": hash_content([manifest.judge, manifest.judge_identity, prompts]),
        "the verdicts": [
            hash_verdicts(run, metric) for metric in sorted({v.metric for v in run.scores})
        ],
        "the ranks of missed passages": hash_content(misses()),
    }


def _warn_stale(commands: Sequence[str], change: str = "verdicts") -> None:
    if commands:
        _log.warning(
            "this run differs from the earlier one in its folder (%s), whose results are not reused; "
            "repeat them with  %s",
            change,
            "  and  ".join(f"misslink {command}" for command in commands),
        )
