"""misslink judge audit: does the judge's word change with what must not matter?"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.again import judge_as_in_run, put_into_run, terms_as_in_run
from misslink.cli.audit_table import print_audit
from misslink.cli.options import AS_JSON, CONCURRENCY, LEDGER
from misslink.cli.output import interruptible, print_forecast, print_json, progress_bars
from misslink.cli.terms import CAPS, MODEL, PACE, PRICES, Given, asks_judge
from misslink.errors import InputError, JudgeUnreachableError, MisslinkError, known_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from misslink.answer.preference import Pair
    from misslink.judging.audits import Heard, Sample
    from misslink.judging.forecast import Forecast
    from misslink.judging.metric import JudgedMetric, Subject
    from misslink.judging.opening import Opened
    from misslink.judging.protocol import Ask
    from misslink.judging.terms import Terms
    from misslink.types import Run

__all__ = ["audit"]

_USUAL = ("faithfulness", "answer_relevance", "correctness")
_CUT_OFF = 5  # what `misslink evaluate` takes, for a run whose manifest does not say


@dataclass(frozen=True)
class _Request:
    """What is asked of an audit on the command line."""

    folder: Path
    judge: str | None
    sample: int
    metrics: tuple[str, ...]
    against: Path | None
    seed: int
    ledger: Path | None
    concurrency: int


@asks_judge(*MODEL, "context_length", *PACE, *PRICES, *CAPS)
def audit(
    run: Path = typer.Argument(..., help="A run folder, which keeps the result."),
    judge: str | None = typer.Option(
        None, "--judge", help="Such as openai:MODEL.", show_default="the run's"
    ),
    sample: int = typer.Option(
        50, "--sample", min=1, help="Cases at most, half of each call where there are so many."
    ),
    metric: list[str] | None = typer.Option(
        None,
        "--metric",
        help="A metric to audit; may be repeated. By the first one's verdicts cases are drawn.",
        show_default=", ".join(_USUAL),
    ),
    against: Path | None = typer.Option(
        None,
        "--against",
        help="Another run over the same gold set: which answer is better, asked in both orders.",
        show_default=False,
    ),
    seed: int = typer.Option(0, "--seed", help="Of the draws and the intervals."),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Say what the judge would be asked and cost; ask it nothing."
    ),
    concurrency: int = CONCURRENCY,
    ledger: Path | None = LEDGER,
    *,
    given: Given,
    as_json: bool = AS_JSON,
) -> None:
    """Change cases in ways that must not matter, and see whether the judge's verdicts move.

    padding: the answer twice as long by sentences of its passages, or by its own said again.

    reversed, shuffled: the passages in another order.

    asked again: nothing is changed; what flips then flips by itself.

    A case costs up to 6 questions, 5 where the ledger has what the run asked; a second audit costs
    nothing. The run keeps the result as audit.json.
    """
    import asyncio

    from misslink.files import read_whole

    whole = read_whole(run)
    terms = terms_as_in_run(whole, judge, **given)
    names = tuple(dict.fromkeys(metric or ()))
    request = _Request(run, judge, sample, names, against, seed, ledger, concurrency)
    if dry_run:
        forecast = asyncio.run(_foreseen(whole, request, terms))
        print_json(asdict(forecast)) if as_json else print_forecast(forecast)
        return
    with interruptible("the same command goes on"):
        document = asyncio.run(_audited(whole, request, terms))
    put_into_run(run, whole, "audit", document)
    if as_json:
        print_json(document)
    else:
        print_audit(document)


async def _audited(run: Run, request: _Request, terms: Terms) -> dict[str, Any]:
    import datetime as dt

    from misslink.answer.preference import refuse_without_preference
    from misslink.judging.audits import compared, deterministic, in_vain, notes, put_to, settled
    from misslink.manifest import by_name, shown_path

    metrics, sample = _drawn(run, request)
    async with judge_as_in_run(
        run, request.judge, terms, ledger=request.ledger, concurrency=request.concurrency
    ) as judge:
        if request.against is not None:
            refuse_without_preference(judge)  # before anything else is asked and paid for
        with progress_bars() as tick:
            heard = await put_to(
                judge,
                _subjects(run, sample, terms),
                metrics,
                repeat=terms.repeats,
                seed=request.seed,
                tick=lambda done, total: tick("judge", done, total),
            )
        names = [metric.name for metric in metrics]
        again = not deterministic(judge)
        numbers = compared(heard, names, again=again, seed=request.seed)
        if why := in_vain(numbers):
            raise _in_vain(why, heard, judge)
        preferred = await _preferred(run, request, sample, judge, terms)
        asked = {v.prompt for one in heard for v in one.base.values() if v.prompt}
        return {
            "judge": judge.name,
            "judge_identity": by_name({"judge_identity": judge.identity}),
            "prompts": {ref.name: ref.sha256 for ref in sorted(asked, key=lambda ref: ref.name)},
            "created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "run": shown_path(request.folder),
            "against": shown_path(request.against) if request.against else None,
            "seed": request.seed,
            "cases": len(heard),
            "drawn_by": names[0],
            "good": sample.good,
            "bad": sample.bad,
            **settled(numbers, preferred),
            "notes": notes(judge, heard, sample, names[0], judge.not_asked),
            "usage": judge.usage(),
        }


def _in_vain(why: str, heard: Sequence[Heard], judge: Opened) -> MisslinkError:
    """The error of an audit that measured nothing: the judge's where it failed."""
    said = f"nothing was measured: {why}"
    verdicts = (v for one in heard for by in (one.base, *one.changed.values()) for v in by.values())
    if not any(verdict.status == "failed" for verdict in verdicts):
        more = "; give it more of the budget or the time" if judge.not_asked else ""
        return InputError(said + more)
    way_on = "" if judge.not_asked else "; try the judge with  misslink judge ping"
    return JudgeUnreachableError(said + way_on)


async def _foreseen(run: Run, request: _Request, terms: Terms) -> Forecast:
    from misslink.judging.audits import variants
    from misslink.judging.forecast import forecast

    metrics, sample = _drawn(run, request)
    async with judge_as_in_run(
        run, request.judge, terms, ledger=request.ledger, concurrency=request.concurrency
    ) as judge:
        subjects = _subjects(run, sample, terms)
        more = list(variants(subjects, metrics, judge, repeat=terms.repeats, seed=request.seed))
        if request.against:
            more += _preference_asks(run, request, sample, terms)
        return await forecast((), (), judge, more)


def _drawn(run: Run, request: _Request) -> tuple[list[JudgedMetric], Sample]:
    """The metrics to audit and the cases that are drawn; raises an InputError without any."""
    from misslink.judging.audits import AUDITED, draw
    from misslink.registry import judged_metrics

    for name in request.metrics:
        if name not in AUDITED:
            hint = known_names(name, sorted(AUDITED), " to audit")
            raise InputError(f"the metric '{name}' cannot be audited; {hint}")
    judged = {verdict.metric for verdict in run.verdicts if verdict.label is not None}
    names = request.metrics or tuple(name for name in _USUAL if name in judged) or _USUAL
    sample = draw(run, names[0], request.sample, request.seed)
    if not sample.cases:
        raise InputError(
            f"no case of this run has an answer with a verdict of {names[0]}; name another metric "
            "with --metric, or evaluate the app first",
            path=request.folder,
        )
    return [judged_metrics.get(name) for name in names], sample


def _subjects(run: Run, sample: Sample, terms: Terms) -> list[Subject]:
    from misslink.judging.metric import Subject
    from misslink.prompting import Prompts

    prompts, k = Prompts.of(terms.prompts), run.manifest.get("k")
    width = k if isinstance(k, int) and k > 0 else _CUT_OFF
    traces = {trace.case_id: trace for trace in run.traces}
    return [Subject(case, traces[case.id], width, prompts) for case in sample.cases]


async def _preferred(
    run: Run, request: _Request, sample: Sample, judge: Opened, terms: Terms
) -> dict[str, Any] | None:
    """Which answer is better, each pair in both orders; None without another run."""
    from misslink.answer.preference import prefer, preference
    from misslink.prompting import Prompts

    if request.against is None:
        return None
    outcomes = await prefer(
        _pairs(run, request, sample),
        judge,
        concurrency=request.concurrency,
        prompts=Prompts.of(terms.prompts),
    )
    return preference(outcomes)


def _preference_asks(run: Run, request: _Request, sample: Sample, terms: Terms) -> list[Ask]:
    from misslink.answer.preference import which_is_better
    from misslink.prompting import Prompts

    prompts = Prompts.of(terms.prompts)
    return [
        which_is_better(pair.question, first, second, prompts=prompts)
        for pair in _pairs(run, request, sample)
        if pair.reason is None and pair.a.strip() != pair.b.strip()
        for first, second in ((pair.a, pair.b), (pair.b, pair.a))
    ]


def _pairs(run: Run, request: _Request, sample: Sample) -> list[Pair]:
    """The answers of both runs to the cases that were drawn."""
    from misslink.answer.preference import pair_up
    from misslink.files import read_whole
    from misslink.manifest import shown_path

    other = request.against or request.folder
    names = shown_path(request.folder), shown_path(other)
    drawn = {case.id for case in sample.cases}
    return [pair for pair in pair_up(run, read_whole(other), names=names) if pair.case_id in drawn]
