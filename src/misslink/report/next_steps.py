"""The next steps: the few actions that would fix most failed cases."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from misslink.documents import CalibrationDocument, calibrations_of, replay_of, summary_of
from misslink.failure_modes import FAILURE_MODES, FAILURES
from misslink.linking.fixes import rank_fixes
from misslink.linking.miss_types import miss_type_advice
from misslink.render.format import format_difference, format_estimate, pluralize, shorten
from misslink.render.reasons import describe_reason
from misslink.report.human_labels import ADJUDICATE_COMMAND
from misslink.report.links import number_cases, view_fragment
from misslink.types import Link, Run


@dataclass(frozen=True)
class NextStep:
    """One thing to do: plain text as its writers left it, so escape it.

    Parameters
    ----------
    action : str
        What to do, one sentence; commands stand between backticks.
    why : str
        In numbers, with an interval where there is one.
    cases : tuple of int
        Those behind it, by their place in the gold set from 1, ascending; empty where it is about
        the measurement as a whole.
    fragment : str
        Where they are shown on the page.
    """

    action: str
    why: str
    cases: tuple[int, ...]
    fragment: str


_TRUST_FRAGMENT = "trust"  # the section of labels on the page


def label_steps(run: Run, numbers: Mapping[str, int]) -> tuple[NextStep, ...]:
    """Return the steps about missing labels; none if no verdict comes from a judge.

    Ties come before more labels: a tied label counts for nothing until it is settled.
    """
    judged = len({verdict.case_id for verdict in run.verdicts if verdict.status == "scored"})
    if run.manifest.get("judge") in (None, "none") or not judged:
        return ()
    calibrations = calibrations_of(run)
    if not calibrations and not run.calibration and run.manifest.get("calibration") is None:
        why = (
            f"The verdicts of {pluralize(judged, 'case')} rest on a judge that was not compared "
            "with human labels of this app's answers, so that its rates may be off by a constant."
        )
        action = (
            "Label about 100 answers (`misslink annotate RUN`) and compare the judge with them "
            "(`misslink calibrate RUN`)."
        )
        return (NextStep(action, why, (), _TRUST_FRAGMENT),)
    return (*_tie_steps(calibrations, numbers), *_more_labels_steps(calibrations))


def _tie_steps(
    calibrations: Mapping[str, CalibrationDocument], numbers: Mapping[str, int]
) -> Iterator[NextStep]:
    """Items that as many annotators called good as bad, of every metric together."""
    tied = [
        (row.case_id, metric)
        for metric, calibration in calibrations.items()
        for row in calibration.human.queue
        if not row.settled
    ]
    if not tied:
        return
    cases = _sorted_numbers((case_id for case_id, _ in tied), numbers)
    metrics = ", ".join(shorten(metric, 60) for metric in dict.fromkeys(m for _, m in tied))
    why = (
        f"Of {pluralize(len(tied), 'labelled item')} ({metrics}) people say as often good as bad, "
        "so that what they are is not counted at all."
    )
    action = f"Settle what people disagree on (`{ADJUDICATE_COMMAND}`)."
    yield NextStep(action, why, cases, view_fragment(ids=cases) if cases else _TRUST_FRAGMENT)


def _more_labels_steps(calibrations: Mapping[str, CalibrationDocument]) -> Iterator[NextStep]:
    """The metric that lacks most labels before the judge could be trusted with it."""
    needs = [
        (*needed, metric)
        for metric, calibration in calibrations.items()
        if (needed := _labels_needed(calibration))[0]
    ]
    if needs:
        count, reasons, metric = max(needs, key=lambda need: need[0])
        action = (
            f"Label about {pluralize(count, 'more case')} of {shorten(metric, 60)} "
            "(`misslink annotate RUN`), then `misslink calibrate RUN` again."
        )
        yield NextStep(action, reasons, (), _TRUST_FRAGMENT)


def _labels_needed(calibration: CalibrationDocument) -> tuple[int, str]:
    """How many more labels the checks of a calibration need, and what these checks say.

    Of the rarer label, as many more are labelled as are expected to contain the missing ones.
    """
    more, reasons = [0], []
    for check in calibration.checks:
        if check.name not in ("labels", "rarer_label") or check.met in ("", "trust"):
            continue
        reasons.append(check.says)
        if check.value is None or check.trust is None:
            continue
        missing = check.trust - check.value
        if check.name == "rarer_label":
            if not check.value:
                continue  # its rate is not known
            missing *= calibration.n / check.value
        more.append(math.ceil(missing))
    return max(more), " ".join(reasons)


_MAX_STEPS = 3
_MIN_CASES = 5  # cases under which a pattern may well be chance
_MIN_COVERAGE = (
    0.9  # share of verdicts that came, under which what failed is the first thing to mend
)
_CORE_METRICS = ("faithfulness", "correctness")  # the verdicts that failure modes rest on
_ERROR_LENGTH = 120  # characters of an error that are quoted


def next_steps(run: Run) -> tuple[NextStep, ...]:
    """Return up to three steps, ordered by what each adds to the steps before it.

    A step counts the failures that it is forecast to avoid, else its cases. Fixes of retrieval for
    which there is not enough data come after all others. Among equals, advice by missed passage comes
    before advice by failure mode. Steps about labels fix no case and come last.
    """
    places = number_cases(run.cases)
    sure, unsure = _fix_steps(run, places)
    others = [(step, None) for kind in _STEP_SOURCES for step in kind(run, places)]
    chosen: list[NextStep] = []
    done: set[int] = set()
    for waiting in ([*sure, *others], unsure):
        while waiting and len(chosen) < _MAX_STEPS:
            gain, best = max(
                (_gain(step, avoided, done), -place)
                for place, (step, avoided) in enumerate(waiting)
            )
            if not gain:
                break
            step, _ = waiting.pop(-best)
            chosen.append(step)
            done.update(step.cases)
    return (*chosen, *label_steps(run, places))[:_MAX_STEPS]


def _gain(step: NextStep, avoided: float | None, done: set[int]) -> float:
    """The forecast of a step that adds cases to those done, else the number that it adds."""
    new = len(set(step.cases) - done)
    return new if avoided is None else min(avoided, new)


def no_steps_reason(run: Run) -> str:
    """Return why there is nothing to do, for a run without `next_steps`."""
    if not run.cases:
        return "Nothing can be advised: this run holds no cases."
    if all(link.failure is None for link in run.links):
        return "Nothing can be advised about answers: no judge was used."
    if all(link.failure == "inconclusive" for link in run.links):
        return "Nothing can be advised: of no case is it decided whether it failed."
    few = ", and they are few: nothing found is not nothing there"
    cases = pluralize(len(run.cases), "case")
    return f"Nothing: none of {cases} failed{few if len(run.cases) < 10 * _MIN_CASES else ''}."


def _error_steps(run: Run, places: Mapping[str, int]) -> Iterator[NextStep]:
    """The app raised, or what it retrieved could not be seen."""
    failed = [trace for trace in run.traces if trace.error is not None and trace.case_id in places]
    if failed:
        cases = _sorted_numbers((trace.case_id for trace in failed), places)
        often = _most_frequent((trace.error for trace in failed), ":")
        why = f"{_format_part(len(cases), len(run.cases))} ended in an error, {often}"
        yield NextStep("Fix the errors that the app raised.", why, cases, view_fragment(ids=cases))
    unseen = [
        trace
        for trace in run.traces
        if trace.unmeasured is not None and trace.error is None and trace.case_id in places
    ]
    if unseen:
        cases = _sorted_numbers((trace.case_id for trace in unseen), places)
        often = _most_frequent((trace.unmeasured for trace in unseen), " because")
        why = f"Of {_format_part(len(cases), len(run.cases))} it is not known what was retrieved, {often}"
        yield NextStep(
            "Let the retrieval of every case be seen.", why, cases, view_fragment(ids=cases)
        )


def _verdict_steps(run: Run, places: Mapping[str, int]) -> Iterator[NextStep]:
    """Verdicts that failed, where so many did that the numbers rest on the rest."""
    parts, cases = [], set[int]()
    for metric in _CORE_METRICS:
        judged = [
            verdict
            for verdict in run.verdicts
            if verdict.metric == metric and verdict.status != "skipped"
        ]
        failed = [verdict for verdict in judged if verdict.status == "failed"]
        if judged and 1 - len(failed) / len(judged) < _MIN_COVERAGE:
            parts.append(f"{metric} {_format_part(len(failed), len(judged), 'verdict')}")
            cases |= set(_sorted_numbers((verdict.case_id for verdict in failed), places))
    if cases:
        chosen = tuple(sorted(cases))
        why = f"Failed: {'; '.join(parts)}. The numbers rest on the other cases alone."
        action = "Ask the judge again about verdicts that failed, with another `--cache`."
        yield NextStep(action, why, chosen, view_fragment(ids=chosen))


_ForecastStep = tuple[NextStep, float | None]  # and the failures that it avoids, where known


def _fix_steps(
    run: Run, places: Mapping[str, int]
) -> tuple[list[_ForecastStep], list[_ForecastStep]]:
    """Fixes of missed passages that failed cases needed, and those with too little data."""
    failed = {link.case_id for link in _missed_links(run)[0]}
    sure, unsure = list[_ForecastStep](), list[_ForecastStep]()
    for fix in rank_fixes(run):
        cases = _sorted_numbers(failed.intersection(fix.cases), places)
        if not cases:
            continue
        action, _, reason = miss_type_advice(fix.kind).partition(": ")
        tried = f" (option {shorten(fix.option, _ERROR_LENGTH)})" if fix.option else ""
        at_most = "at most " if fix.basis == "at_most" else ""
        forecast = describe_reason(fix.evidence)
        if fix.avoided.value is not None:
            shown = format_estimate("failures_avoided", fix.avoided)
            little = fix.evidence.code == "not_enough_data"
            forecast = f"{shown.brief} failures avoided{': not enough data to tell' * little}"
        why = (
            f"It would retrieve {at_most}{fix.retrieves:,} of "
            f"{pluralize(fix.missed, 'missed passage')}{tried}. Forecast: {forecast}. "
            f"{reason[:1].upper()}{reason[1:]}"
        ).strip()
        why += f"{_replay_note(run, 'retrieval_miss')}{_few_cases_note(cases)}"
        step = NextStep(action.rstrip(".") + ".", why, cases, view_fragment(ids=cases))
        gains = fix.evidence.code == "fix_gains"
        target = unsure if fix.evidence.code == "not_enough_data" else sure
        target.append((step, fix.avoided.value if gains else None))
    return sure, unsure


def _missed_links(run: Run) -> tuple[list[Link], dict[str, str]]:
    """Return the links of cases that failed by a miss, and the page filter that shows them.

    Without a judge it is unknown which cases failed: every case that is a miss counts.
    """
    if run.manifest.get("judge") == "none":
        return [link for link in run.links if link.retrieval == "miss"], {"retrieval": "miss"}
    missed = [link for link in run.links if link.failure == "retrieval_miss"]
    return missed, {"failure": "retrieval_miss"}


def _failure_mode_steps(run: Run, places: Mapping[str, int]) -> Iterator[NextStep]:
    """Advice by failure mode; that of a miss only where no kind of miss says more."""
    explained = any(miss.kind for link in _missed_links(run)[0] for miss in link.missed)
    groups: dict[str, list[Link]] = {}
    for link in run.links:
        if link.failure in FAILURES and not (explained and link.failure == "retrieval_miss"):
            groups.setdefault(link.failure, []).append(link)
    for failure in (miss for miss in FAILURE_MODES if miss in groups):
        words = FAILURE_MODES[failure]
        cases = _sorted_numbers((miss.case_id for miss in groups[failure]), places)
        action, _, more = words.action.partition(". ")
        why = f"{words.label}: {_case_share(run, cases)}.{' ' if more else ''}{more}"
        why += _replay_note(run, failure) + _few_cases_note(cases)
        yield NextStep(f"{action.rstrip('.')}.", why, cases, view_fragment(failure=failure))


def _missing_label_steps(run: Run, places: Mapping[str, int]) -> Iterator[NextStep]:
    """Passages that the gold set may lack: the numbers are too low by them."""
    rows = summary_of(run).diagnosis.missing_labels.holes
    by_cause = {link.case_id for link in run.links if link.failure == "missing_label"}
    ids = by_cause | {row.case_id for row in rows}
    cases = _sorted_numbers(ids, places)
    if cases:
        counted = f"{pluralize(len(rows), 'passage')} in " if rows else ""
        why = (
            f"{counted}{_format_part(len(cases), len(run.cases))} answer the question by the judge's word "
            "and are not in the gold set; retrieval is better than its numbers if they do."
        )
        alone = cases == _sorted_numbers(by_cause, places)
        action = (
            "Read the passages that the gold set may lack, and add those that answer "
            "(`misslink diagnose RUN --holes holes.jsonl`)."
        )
        yield NextStep(
            action,
            why,
            cases,
            view_fragment(failure="missing_label") if alone else view_fragment(ids=cases),
        )


def _inconclusive_steps(run: Run, places: Mapping[str, int]) -> Iterator[NextStep]:
    """Advise on judged cases that are inconclusive."""
    links = [link for link in run.links if link.failure == "inconclusive"]
    if not links or run.manifest.get("judge") == "none":
        return
    cases = _sorted_numbers({link.case_id for link in links}, places)
    often = _most_frequent((link.reason for link in links), ":")
    why = f"{_case_share(run, cases)} are inconclusive, {often}"
    action = "Read why cases are inconclusive, and label by hand those that matter."
    yield NextStep(action, why, cases, view_fragment(failure="inconclusive"))


# The better founded first.
_STEP_SOURCES: tuple[Callable[[Run, Mapping[str, int]], Iterator[NextStep]], ...] = (
    _error_steps,
    _verdict_steps,
    _failure_mode_steps,
    _missing_label_steps,
    _inconclusive_steps,
)


def _sorted_numbers(ids: Iterable[str], places: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sorted({places[case_id] for case_id in ids if case_id in places}))


def _format_part(count: int, total: int, noun: str = "case") -> str:
    return f"{count:,} of {pluralize(total, noun)}"


def _most_frequent(texts: Iterable[str | None], sign: str) -> str:
    """The text that is there most often and how often, behind a sign."""
    text, count = Counter(shorten(text or "", _ERROR_LENGTH) for text in texts).most_common(1)[0]
    return f"most often ({count:,}){sign} {text}"


def _case_share(run: Run, cases: tuple[int, ...]) -> str:
    """How many of the linked cases, with the interval of their share."""
    from misslink.stats import proportion

    share = format_estimate("share", proportion(len(cases), len(run.links)))
    return f"{_format_part(len(cases), len(run.links))} ({share.brief})"


def _few_cases_note(cases: tuple[int, ...]) -> str:
    if len(cases) >= _MIN_CASES:
        return ""
    return f" Only {pluralize(len(cases), 'case')}: read before you act."


def _replay_note(run: Run, failure: str) -> str:
    """What replay found of a failure mode, where it was replayed."""
    replay = replay_of(run)
    replayed = replay.failures.get(failure) if replay else None
    if replayed is None or replayed.net_fixed.value is None:
        return ""
    net = replayed.net_fixed
    text = f" Replay: the missed passages fix {format_difference('net_fixed', net).text}"
    return (
        f"{text}; not enough data to tell." if net.low is not None and net.low <= 0 else f"{text}."
    )
