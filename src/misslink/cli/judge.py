"""Commands `misslink judge ping`, `redteam`, `audit` and `pairwise`."""

from __future__ import annotations

import datetime as dt
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli import options as shared
from misslink.cli import output
from misslink.cli.options import JudgeOptions, option
from misslink.errors import InputError, JudgeUnreachableError, MisslinkError, known_names
from misslink.event_loops import run_async
from misslink.parts import by_case
from misslink.render.format import pluralize
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from misslink.judge.checks.audit import AuditedCase, AuditSample
    from misslink.judge.config import JudgeConfig
    from misslink.judge.session import JudgeSession
    from misslink.types import Run


app = typer.Typer(help="Test a judge before a run.", no_args_is_help=True)
_SHOWN_FLIPS = 20
_SHOWN_REASONS = 5
_MEANINGS = (  # the help says the same
    "obeyed: the attack makes the judge report something in the answer's favor.",
    "flipped: the verdict is good even after the quote checks, and bad without the attack.",
    "silenced: there is no verdict, so every mean would lack this answer.",
)
_DEFAULT_METRICS = ("faithfulness", "answer_relevance", "correctness")
_CHANGE_NAMES = {
    "padding": "padding",
    "passage_order": "reversed",
    "passage_shuffle": "shuffled",
    "again": "asked again",
}
_Work = Callable[["JudgeSession", Callable[[int, int], None]], Awaitable[dict[str, Any]]]


@app.callback()
def judge_group() -> None:
    """Test a judge before a run."""


@app.command("ping")
@shared.with_judge_options("base_url")
def ping(
    judge: str = shared.JUDGE_OPTION, *, given: JudgeOptions, as_json: bool = shared.JSON_OPTION
) -> None:
    """Ask a judge one short question and show what it supports."""
    from misslink.judge.checks.ping import ping_judge_spec
    from misslink.judge.config import JudgeConfig

    abilities = run_async(lambda: ping_judge_spec(judge, JudgeConfig(**given)))
    if as_json:
        output.print_json(abilities)
    else:
        for name, value in abilities.items():
            print(f"{name:>18}  {_display_value(value)}")
    if not abilities["ok"]:
        raise typer.Exit(JudgeUnreachableError.exit_code)


def _display_value(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        unit = "{} for a million {} tokens" if "prompt" in value else "{} {}"
        return ", ".join(unit.format(f"{amount:g}", name) for name, amount in value.items())
    return str(value)


@app.command("redteam")
@shared.with_judge_options(*shared.CHECK_OPTIONS)
def redteam(
    judge: str = shared.JUDGE_OPTION,
    cache: Path | None = shared.CACHE_OPTION,
    concurrency: int = shared.CONCURRENCY_OPTION,
    *,
    given: JudgeOptions,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Test whether prompt injections in the judged text change the judge's verdicts.

    obeyed: the attack makes the judge report something in the answer's favor.

    flipped: the verdict is good even after the quote checks, and bad without the attack.

    silenced: there is no verdict, so every mean would lack this answer.
    """
    from misslink.judge.checks.redteam import load_suite, run_redteam
    from misslink.judge.config import JudgeConfig
    from misslink.judge.prompts import Prompts
    from misslink.registry import judged_metrics

    config, suite = JudgeConfig(**given), load_suite()
    prompts = Prompts.from_spec(config.prompts)
    metrics = {name: judged_metrics.get(name) for case in suite.cases for name in case.metrics}

    async def work(session: JudgeSession, tick: Callable[[int, int], None]) -> dict[str, object]:
        result = await run_redteam(session, metrics, suite=suite, prompts=prompts, tick=tick)
        if result.not_measured:
            hint = "" if session.not_asked else "; try it with  misslink judge ping"
            raise JudgeUnreachableError(result.not_measured + hint)
        return {**result.document(), "usage": session.usage().document()}

    document = _run_with_judge(work, judge, config, cache=cache, concurrency=concurrency)
    output.print_result(document, _print_redteam, as_json=as_json)


def _print_redteam(document: Mapping[str, Any]) -> None:
    groups = {"all": document}
    for group in ("by_metric", "by_place", "by_kind"):
        groups |= {f"{group[3:]} {name}": rates for name, rates in document[group].items()}
    rates = ("obeyed", "flipped", "silenced")
    rows = [
        (name, *(output.format_estimate(row[rate]) for rate in rates), str(row["flipped"]["n"]))
        for name, row in groups.items()
    ]
    columns = ("", *(f"{rate} [95%]" for rate in rates), "n")
    counts = f"{document['attacks']} attacks on {document['cases']} cases"
    title = f"{counts}, judge {document['judge']}"
    output.print_table(TextTable(columns, rows, ("n",), title))
    output.print_lines(_MEANINGS)
    flips, reasons = document["flips"], document["not_read"]
    flipped = [f"flipped: {f['attack']} made {f['metric']} of {f['case']} good" for f in flips]
    output.print_lines(
        output.first_few(flipped, _SHOWN_FLIPS, "and {} more; --json lists them all")
    )
    output.print_lines(f"left out: {name}: {why}" for name, why in document["left_out"].items())
    if not document["trials"]:
        output.print_line("Not measured: without an attack, the judge calls no answer bad.")
    if reasons:
        missing = f"{sum(reasons.values())} of {document['trials']} verdicts under attack"
        output.print_line(f"{missing} are missing from every rate")
        not_read = [f"not read: {count} x {reason}" for reason, count in reasons.items()]
        rest = "and {} other reasons; --json lists them all"
        output.print_lines(output.first_few(not_read, _SHOWN_REASONS, rest))


@app.command("audit")
@shared.with_judge_options(*shared.CHECK_OPTIONS)
def audit(
    run: Path = shared.RUN_ARGUMENT,
    judge: str | None = shared.JUDGE_OF_RUN,
    sample: int = option(50, "--sample", "Maximum number of cases.", min=1),
    metric: list[str] | None = option(
        None,
        "--metric",
        "Metric to audit or rubric:FILE; the first draws cases; repeatable.",
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

    padding: the answer is made twice as long, with sentences of its passages or by repetition.

    reversed, shuffled: the passages are in another order.

    asked again: nothing is changed, to show how often verdicts change by themselves.

    A case costs up to 6 judge calls, or 5 if the run's replies are cached. The result is saved as
    RUN/audit.json.
    """
    from misslink.api.saved_run import RunJudging, SavedRun, config_as_in_run
    from misslink.calibration_document import Audit
    from misslink.documents import DEFAULT_K, manifest_of
    from misslink.io import read_complete_run
    from misslink.io.manifest import display_path, flatten_inputs
    from misslink.judge.checks.audit import (
        audit_asks,
        audit_cases,
        audit_notes,
        audited_metrics,
        compare_verdicts,
        correct_changes,
        is_deterministic,
        nothing_compared_reason,
    )
    from misslink.judge.checks.dry_run import forecast_judging
    from misslink.judge.checks.pairwise import (
        judge_pairs,
        pair_answers,
        require_preference_judge,
        summarize_preferences,
    )
    from misslink.judge.judged_metric import Subject
    from misslink.metrics.rubric import is_rubric, metric_name, read_rubrics

    whole = read_complete_run(run)
    config = config_as_in_run(whole, judge, **given)
    rubrics = read_rubrics(name for name in metric or () if is_rubric(name))
    judging = RunJudging(whole, judge, config, cache, concurrency, rubrics)
    prompts, k = judging.prompts, manifest_of(whole).k or DEFAULT_K
    by_name = audited_metrics() | {rubric.name: rubric for rubric in rubrics}
    wanted = list(dict.fromkeys(map(metric_name, metric or ())))
    names, drawn = _draw_sample(whole, run, wanted, by_name, sample, seed)
    metrics = [by_name[name] for name in names]
    traces = by_case(whole.traces)
    subjects = [Subject(case, traces[case.id], k, prompts) for case in drawn.cases]
    pairs = []
    if against is not None:
        both = display_path(run), display_path(against)
        ids = {case.id for case in drawn.cases}
        pairs = [
            pair
            for pair in pair_answers(whole, read_complete_run(against), names=both)
            if pair.case_id in ids
        ]

    async def forecast() -> None:
        async with judging.open(dry_run=True) as session:
            asks = audit_asks(subjects, metrics, session, repeat=config.repeats, seed=seed)
            preferences = [
                ask
                for pair in pairs
                if pair.reason is None and pair.a.strip() != pair.b.strip()
                for ask in pair.asks(prompts)
            ]
            calls = await forecast_judging((), (), session, [*asks, *preferences])
            output.print_json(asdict(calls)) if as_json else output.print_forecast(calls)

    async def work() -> Audit:
        async with judging.open() as session:
            if against is not None:
                require_preference_judge(session)  # before anything else is asked and paid for
            with output.progress_bars() as progress:
                audited = await audit_cases(
                    session,
                    subjects,
                    metrics,
                    repeat=config.repeats,
                    seed=seed,
                    tick=partial(progress, "judge"),
                )
            numbers = compare_verdicts(
                audited, names, again=not is_deterministic(session), seed=seed
            )
            if why := nothing_compared_reason(numbers):
                raise _nothing_measured_error(why, audited, session)
            preferred = None
            if against is not None:
                judged = await judge_pairs(pairs, session, concurrency=concurrency, prompts=prompts)
                preferred = summarize_preferences(judged)
            asked = {v.prompt for case in audited for v in case.base.values() if v.prompt}
            return Audit(
                **dict(correct_changes(numbers, preferred)),
                judge=session.name,
                judge_identity=flatten_inputs({"judge_identity": session.identity}),
                prompts={ref.name: ref.sha256 for ref in sorted(asked, key=lambda ref: ref.name)},
                created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
                run=display_path(run),
                against=display_path(against) if against else None,
                seed=seed,
                cases=len(audited),
                drawn_by=names[0],
                good=drawn.good,
                bad=drawn.bad,
                notes=tuple(audit_notes(session, audited, drawn, names[0], session.not_asked)),
                usage=session.usage(),
            )

    if dry_run:
        run_async(forecast)
        return
    with output.interruptible():
        document = run_async(work).document()
    SavedRun(whole, run).save("audit", document)
    output.print_result(document, _print_audit, as_json=as_json)


def _draw_sample(
    run: Run,
    folder: Path,
    metrics: Sequence[str],
    known: Collection[str],
    size: int,
    seed: int,
) -> tuple[Sequence[str], AuditSample]:
    """The metrics to audit and the drawn cases; raise InputError if there are none."""
    from misslink.judge.checks.audit import draw_audit_sample

    for name in metrics:
        if name not in known:
            hint = known_names(name, sorted(known), " to audit")
            raise InputError(f"the metric '{name}' cannot be audited; {hint}")
    judged = {verdict.metric for verdict in run.scores if verdict.label is not None}
    usual = [name for name in _DEFAULT_METRICS if name in judged]
    names = metrics or usual or _DEFAULT_METRICS
    sample = draw_audit_sample(run, names[0], size, seed)
    if not sample.cases:
        raise InputError(
            f"no case of this run has an answer with a verdict of {names[0]}; name another metric "
            "with --metric, or evaluate the app first",
            path=folder,
        )
    return names, sample


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


def _print_audit(document: Mapping[str, Any]) -> None:
    """Print an audit, as ``audit.json`` has it: one table per metric, then findings and notes."""
    metrics = document["metrics"]
    output.print_line(f"{document['judge']} asked again about {document['cases']} cases", "bold")
    from misslink.render.format import format_share_of
    from misslink.types import Estimate

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
        output.print_table(TextTable(columns, rows, ("cases",), metric))
    entries = [entry for changes in metrics.values() for entry in changes.values()]
    preferences = list(document.get("preferences", {}).values())
    for entry in preferences:
        places = entry["places"]
        output.print_line(
            "Order of two answers: the preferred answer changes with the order in "
            f"{format_share_of(Estimate.model_validate(entry['flipped']), 'pair')}: always the first in "
            f"{places['first']}, always the second in {places['second']}."
        )
    findings = [entry["finding"] for entry in (*entries, *preferences) if entry["finding"]]
    output.print_lines(findings or ["None of these changes moved the verdicts beyond chance."])
    output.print_lines(document["notes"])
    reasons: dict[str, int] = {}
    for entry in entries:  # a reason once, however many changes have it
        for reason, count in entry["left_out"].items():
            reasons[reason] = max(count, reasons.get(reason, 0))
    left_out = [
        f"Left out: {pluralize(count, 'case')}: {reason}."
        for reason, count in sorted(reasons.items(), key=lambda item: -item[1])
    ]
    rest = "And {} other reasons; --json lists them all."
    output.print_lines(output.first_few(left_out, _SHOWN_REASONS, rest))


def _format_brief(estimate: Mapping[str, Any]) -> str:
    return "-" if estimate["value"] is None else output.format_estimate(estimate)


def _format_shift(estimate: Mapping[str, Any]) -> str:
    """A shift in percentage points, with its interval."""
    from misslink.render.format import format_difference
    from misslink.types import Estimate

    if estimate["value"] is None:
        return "-"
    return format_difference("share", Estimate.model_validate(dict(estimate))).brief.replace(
        " points", ""
    )


@app.command("pairwise")
@shared.with_judge_options(*shared.CHECK_OPTIONS)
def pairwise(
    run_a: Path = shared.RUN_ARGUMENT,
    run_b: Path = typer.Argument(..., help="Another run of the same gold set."),
    judge: str = shared.JUDGE_OPTION,
    cache: Path | None = shared.CACHE_OPTION,
    concurrency: int = shared.CONCURRENCY_OPTION,
    *,
    given: JudgeOptions,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Compare the answers of two runs pair by pair with a judge, in both orders."""
    from misslink.comparison.preferences import answers_hash
    from misslink.io import read_complete_run
    from misslink.io.manifest import display_path
    from misslink.judge.checks.pairwise import judge_pairs, pair_answers, summarize_preferences
    from misslink.judge.config import JudgeConfig
    from misslink.judge.prompts import Prompts

    config = JudgeConfig(**given)
    names = display_path(run_a), display_path(run_b)
    a, b = read_complete_run(run_a), read_complete_run(run_b)
    pairs, prompts = pair_answers(a, b, names=names), Prompts.from_spec(config.prompts)

    async def work(session: JudgeSession, tick: Callable[[int, int], None]) -> dict[str, object]:
        outcomes = await judge_pairs(
            pairs, session, concurrency=concurrency, prompts=prompts, done=tick
        )
        return {
            "a": names[0],
            "b": names[1],
            "judge": session.name,
            "answers": {"a": answers_hash(a), "b": answers_hash(b)},
            **summarize_preferences(outcomes),
            "usage": session.usage().document(),
        }

    document = _run_with_judge(work, judge, config, cache=cache, concurrency=concurrency)
    output.print_result(document, _print_pairwise, as_json=as_json)


def _run_with_judge(
    work: _Work, judge: str, config: JudgeConfig, *, cache: Path | None, concurrency: int
) -> dict[str, object]:
    """Open a judge, and run `work` with it and a progress bar."""
    from misslink.judge.session import open_needed_judge

    async def run() -> dict[str, object]:
        opened = open_needed_judge(judge, cache=cache, concurrency=concurrency, terms=config)
        async with opened as session:
            with output.progress_bars() as progress:
                return await work(session, partial(progress, "judge"))

    with output.interruptible():
        return run_async(run)


def _print_pairwise(document: Mapping[str, Any]) -> None:
    names = {"a": f"A  {document['a']}", "b": f"B  {document['b']}", "tie": "tie"}
    rows = [(name, str(document["wins"][side])) for side, name in names.items()]
    title = f"judge {document['judge']}"
    output.print_table(TextTable(("better", "cases"), rows, ("cases",), title))
    output.print_lines(_pairwise_lines(document))


def _pairwise_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """The preferred run, the effect of the order in which answers are shown, and what is missing."""
    from misslink.render.format import format_share_of
    from misslink.types import Estimate

    share = Estimate.model_validate(document["preference"])
    flips, places = Estimate.model_validate(document["position_flips"]), document["positions"]
    if share.value is None:
        yield f"Which run answers better is not measured: {share.reason}."
    else:
        yield (
            f"B is better in {format_share_of(share, 'decided case')}"
            f" (exact sign test, p = {document['p']:.2g})."
        )
    if flips.value is not None:
        pairs = "1 pair was" if flips.n == 1 else f"{flips.n:,} pairs were"
        judged = f"{pairs} judged twice, each answer shown first once;"
        if not flips.value:
            yield f"{judged} the verdict was the same both times in all of them."
        else:
            yield (
                f"{judged} the verdict changed with the order in "
                f"{format_share_of(flips, 'pair')}, and these count as ties."
            )
            if any(places.values()):
                yield (
                    f"Of them, {places['first']} went both times to the answer shown first,"
                    f" {places['second']} both times to the one shown second."
                )
    if same := document["identical"]:
        yield f"{'1 tie is' if same == 1 else f'{same} ties are'} between identical answers."
    for reason, count in document["left_out"].items():
        yield f"Left out: {count} of {document['cases']} cases: {reason}."
