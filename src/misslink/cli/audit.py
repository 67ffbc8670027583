"""Command `misslink judge audit`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.cli import options as shared
from misslink.cli.options import JudgeOptions, option
from misslink.cli.output import (
    format_estimate,
    interruptible,
    print_forecast,
    print_json,
    print_line,
    print_result,
    print_table,
    progress_bars,
)
from misslink.cli.rerun_context import config_as_in_run, open_run_judge, save_to_run
from misslink.errors import InputError, JudgeUnreachableError, MisslinkError, known_names
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from misslink.judge.checks.audit_variants import AuditedCase, AuditSample
    from misslink.judge.checks.dry_run import JudgingForecast
    from misslink.judge.checks.pairwise import AnswerPair
    from misslink.judge.config import JudgeConfig
    from misslink.judge.judged_metric import JudgedMetric, Subject
    from misslink.judge.protocol import Ask
    from misslink.judge.session import JudgeSession
    from misslink.types import Run


_CHANGE_NAMES = {
    "padding": "padding",
    "passage_order": "reversed",
    "passage_shuffle": "shuffled",
    "again": "asked again",
}
_SHOWN_REASONS = 5


def print_audit(document: Mapping[str, Any]) -> None:
    """Print an audit, as ``audit.json`` has it: one table per metric, then findings and notes."""
    metrics = document["metrics"]
    print_line(f"{document['judge']} asked again about {document['cases']} cases", "bold")
    shares = ("flipped", "to_good", "to_bad")
    for metric, changes in metrics.items():
        columns = ("change", "cases", "flipped [95%]", "to good", "to bad", "score moved by")
        rows = [
            (
                _CHANGE_NAMES.get(change, change),
                str(entry["n"]),
                *(_format_brief(entry[name]) for name in shares),
                _format_shift(entry["shift"]),
            )
            for change, entry in changes.items()
        ]
        print_table(TextTable(columns, rows, ("cases",), metric))
    entries = [entry for changes in metrics.values() for entry in changes.values()]
    preferences = list(document.get("preferences", {}).values())
    for entry in preferences:
        places = entry["places"]
        print_line(
            "Order of two answers: the better one changes with it in "
            f"{_format_brief(entry['flipped'])} of {entry['n']} pairs; both times the first one "
            f"shown in {places['first']}, the second in {places['second']}.",
        )
    findings = [entry["finding"] for entry in (*entries, *preferences) if entry["finding"]]
    for line in findings or ["No verdict changes beyond chance with what must not matter."]:
        print_line(line)
    for note in document["notes"]:
        print_line(note)
    reasons: dict[str, int] = {}
    for entry in entries:  # a reason once, however many changes have it
        for reason, count in entry["left_out"].items():
            reasons[reason] = max(count, reasons.get(reason, 0))
    ordered = sorted(reasons.items(), key=lambda item: -item[1])
    for reason, count in ordered[:_SHOWN_REASONS]:
        print_line(f"Left out: {count} {'case' if count == 1 else 'cases'}: {reason}.")
    if len(ordered) > _SHOWN_REASONS:
        more = len(ordered) - _SHOWN_REASONS
        print_line(f"And {more} other reasons; --json lists them all.")


def _format_brief(estimate: Mapping[str, Any]) -> str:
    return "-" if estimate["value"] is None else format_estimate(estimate)


def _format_shift(estimate: Mapping[str, Any]) -> str:
    """A shift in percentage points, with its interval."""
    from misslink.render.format import format_points_interval
    from misslink.types import Estimate

    if estimate["value"] is None:
        return "-"
    return format_points_interval(Estimate.model_validate(dict(estimate))).replace(" points", "")


_DEFAULT_METRICS = ("faithfulness", "answer_relevance", "correctness")
_CUTOFF = 5  # what `misslink evaluate` takes, for a run whose manifest does not say


@dataclass(frozen=True)
class _AuditRequest:
    """The options of one audit."""

    folder: Path
    judge: str | None
    sample: int
    metrics: tuple[str, ...]
    against: Path | None
    seed: int
    cache: Path | None
    concurrency: int


@shared.with_judge_options(
    *shared.MODEL_OPTIONS, "context_length", *shared.PACE_OPTIONS, *shared.PRICE_OPTIONS,
    *shared.CAP_OPTIONS,
)  # fmt: skip
def audit(
    run: Path = shared.RUN_ARGUMENT,
    judge: str | None = shared.JUDGE_OF_RUN,
    sample: int = option(50, "--sample", "Maximum number of cases.", min=1),
    metric: list[str] | None = option(
        None,
        "--metric",
        "Metric to audit; the first one selects the cases; repeatable.",
        show_default=", ".join(_DEFAULT_METRICS),
    ),
    against: Path | None = option(
        None, "--against", "Another run, to compare answers in both orders.", show_default=False
    ),
    seed: int = shared.SEED_OPTION,
    dry_run: bool = shared.DRY_RUN_OPTION,
    concurrency: int = shared.CONCURRENCY_OPTION,
    cache: Path | None = shared.CACHE_OPTION,
    *,
    given: JudgeOptions,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Change cases in ways that must not matter, and test whether the verdicts change.

    padding: the answer twice as long, by sentences of its passages or by repetition.

    reversed, shuffled: the passages in another order.

    asked again: no change; shows how often verdicts change by themselves.

    A case costs up to 6 questions, 5 where the run's replies are cached. The run folder keeps the
    result as audit.json.
    """
    import asyncio

    from misslink.io import read_complete_run

    whole = read_complete_run(run)
    config = config_as_in_run(whole, judge, **given)
    names = tuple(dict.fromkeys(metric or ()))
    request = _AuditRequest(run, judge, sample, names, against, seed, cache, concurrency)
    if dry_run:
        forecast = asyncio.run(_dry_run(whole, request, config))
        print_json(asdict(forecast)) if as_json else print_forecast(forecast)
        return
    with interruptible():
        document = asyncio.run(_run_audit(whole, request, config))
    save_to_run(run, whole, "audit", document)
    print_result(document, print_audit, as_json=as_json)


async def _run_audit(run: Run, request: _AuditRequest, config: JudgeConfig) -> dict[str, Any]:
    import datetime as dt

    from misslink.io.manifest import display_path, flatten_inputs
    from misslink.judge.checks.audit import (
        audit_document,
        audit_notes,
        compare_verdicts,
        nothing_compared_reason,
    )
    from misslink.judge.checks.audit_variants import audit_cases, is_deterministic
    from misslink.judge.checks.pairwise import require_preference_judge

    metrics, sample = _draw_sample(run, request)
    async with open_run_judge(
        run, request.judge, config, cache=request.cache, concurrency=request.concurrency
    ) as judge:
        if request.against is not None:
            require_preference_judge(judge)  # before anything else is asked and paid for
        with progress_bars() as progress:
            audited = await audit_cases(
                judge,
                _audit_subjects(run, sample, config),
                metrics,
                repeat=config.repeats,
                seed=request.seed,
                tick=lambda done, total: progress("judge", done, total),
            )
        names = [metric.name for metric in metrics]
        again = not is_deterministic(judge)
        numbers = compare_verdicts(audited, names, again=again, seed=request.seed)
        if why := nothing_compared_reason(numbers):
            raise _nothing_measured_error(why, audited, judge)
        preferred = await _ask_preferences(run, request, sample, judge, config)
        prompts = {v.prompt for case in audited for v in case.base.values() if v.prompt}
        return {
            "judge": judge.name,
            "judge_identity": flatten_inputs({"judge_identity": judge.identity}),
            "prompts": {ref.name: ref.sha256 for ref in sorted(prompts, key=lambda ref: ref.name)},
            "created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "run": display_path(request.folder),
            "against": display_path(request.against) if request.against else None,
            "seed": request.seed,
            "cases": len(audited),
            "drawn_by": names[0],
            "good": sample.good,
            "bad": sample.bad,
            **audit_document(numbers, preferred),
            "notes": audit_notes(judge, audited, sample, names[0], judge.not_asked),
            "usage": judge.usage(),
        }


def _nothing_measured_error(
    why: str, audited: Sequence[AuditedCase], judge: JudgeSession
) -> MisslinkError:
    """The error of an audit that measured nothing: the judge's fault where its verdicts failed."""
    message = f"nothing was measured: {why}"
    verdicts = (
        verdict
        for case in audited
        for group in (case.base, *case.changed.values())
        for verdict in group.values()
    )
    if not any(verdict.status == "failed" for verdict in verdicts):
        more = "; raise its budget or time limit" if judge.not_asked else ""
        return InputError(message + more)
    hint = "" if judge.not_asked else "; try the judge with  misslink judge ping"
    return JudgeUnreachableError(message + hint)


async def _dry_run(run: Run, request: _AuditRequest, config: JudgeConfig) -> JudgingForecast:
    from misslink.judge.checks.audit_variants import audit_asks
    from misslink.judge.checks.dry_run import forecast_judging

    metrics, sample = _draw_sample(run, request)
    async with open_run_judge(
        run, request.judge, config, cache=request.cache, concurrency=request.concurrency
    ) as judge:
        subjects = _audit_subjects(run, sample, config)
        more = list(audit_asks(subjects, metrics, judge, repeat=config.repeats, seed=request.seed))
        if request.against:
            more += _preference_asks(run, request, sample, config)
        return await forecast_judging((), (), judge, more)


def _draw_sample(run: Run, request: _AuditRequest) -> tuple[list[JudgedMetric], AuditSample]:
    """The metrics to audit and the drawn cases; raise InputError if there are none."""
    from misslink.judge.checks.audit_variants import AUDITED, draw_audit_sample
    from misslink.registry import judged_metrics

    for name in request.metrics:
        if name not in AUDITED:
            hint = known_names(name, sorted(AUDITED), " to audit")
            raise InputError(f"the metric '{name}' cannot be audited; {hint}")
    judged = {verdict.metric for verdict in run.verdicts if verdict.label is not None}
    names = (
        request.metrics
        or tuple(name for name in _DEFAULT_METRICS if name in judged)
        or _DEFAULT_METRICS
    )
    sample = draw_audit_sample(run, names[0], request.sample, request.seed)
    if not sample.cases:
        raise InputError(
            f"no case of this run has an answer with a verdict of {names[0]}; name another metric "
            "with --metric, or evaluate the app first",
            path=request.folder,
        )
    return [judged_metrics.get(name) for name in names], sample


def _audit_subjects(run: Run, sample: AuditSample, config: JudgeConfig) -> list[Subject]:
    from misslink.judge.judged_metric import Subject
    from misslink.judge.prompts import Prompts

    prompts, k = Prompts.from_spec(config.prompts), run.manifest.get("k")
    width = k if isinstance(k, int) and k > 0 else _CUTOFF
    traces = {trace.case_id: trace for trace in run.traces}
    return [Subject(case, traces[case.id], width, prompts) for case in sample.cases]


async def _ask_preferences(
    run: Run, request: _AuditRequest, sample: AuditSample, judge: JudgeSession, config: JudgeConfig
) -> dict[str, Any] | None:
    """Judge the answers of both runs in both orders; None without another run."""
    from misslink.judge.checks.pairwise import judge_pairs, summarize_preferences
    from misslink.judge.prompts import Prompts

    if request.against is None:
        return None
    outcomes = await judge_pairs(
        _answer_pairs(run, request, sample),
        judge,
        concurrency=request.concurrency,
        prompts=Prompts.from_spec(config.prompts),
    )
    return summarize_preferences(outcomes)


def _preference_asks(
    run: Run, request: _AuditRequest, sample: AuditSample, config: JudgeConfig
) -> list[Ask]:
    from misslink.judge.checks.pairwise import preference_ask
    from misslink.judge.prompts import Prompts

    prompts = Prompts.from_spec(config.prompts)
    return [
        preference_ask(pair.question, first, second, prompts=prompts)
        for pair in _answer_pairs(run, request, sample)
        if pair.reason is None and pair.a.strip() != pair.b.strip()
        for first, second in ((pair.a, pair.b), (pair.b, pair.a))
    ]


def _answer_pairs(run: Run, request: _AuditRequest, sample: AuditSample) -> list[AnswerPair]:
    """The answers of both runs to the drawn cases."""
    from misslink.io import read_complete_run
    from misslink.io.manifest import display_path
    from misslink.judge.checks.pairwise import pair_answers

    other = request.against or request.folder
    names = display_path(request.folder), display_path(other)
    drawn = {case.id for case in sample.cases}
    return [
        pair
        for pair in pair_answers(run, read_complete_run(other), names=names)
        if pair.case_id in drawn
    ]
