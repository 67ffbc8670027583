"""The sentences about gates: why one failed or passed, and what to know of its numbers."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from misslink.render.comparison_sentences import describe_unmeasured
from misslink.render.format import (
    format_change,
    format_drop,
    format_estimate,
    format_values,
    pluralize,
)
from misslink.types import Estimate


def metric_in_words(metric: str) -> str:
    """A metric as a sentence calls it: a path into the summary becomes words.

    >>> metric_in_words("link.owners.gold_set"), metric_in_words("recall@5")
    ('the share of cases with a failure of the gold set', 'recall@5')
    """
    group, _, name = metric.rpartition(".")
    if group == "link.owners":
        return f"the share of cases with a failure of the {name.replace('_', ' ')}"
    if group == "link.failures":
        return f"the share of cases that {'pass' if name == 'passed' else f'are {name!r}'}"
    return metric


def _gates_counted(gates: int, errors: int, warnings: int, questions: int) -> str:
    of, over = pluralize(gates, "gate"), f"over {pluralize(questions, 'question')}"
    if not errors + warnings:
        return f"All of {of} passed {over}."
    more = f"; {warnings:,}{' more' if errors else ''} {'warns' if warnings == 1 else 'warn'}"
    return f"{f'{errors:,}' if errors else 'None'} of {of} failed {over}{more if warnings else ''}."


def _called(metric: str, *, corrected: bool) -> str:
    name = metric_in_words(metric)
    return f"{name} (corrected)" if corrected else name


def _have(count: int) -> str:
    return f"{pluralize(count, 'question')} {'has' if count == 1 else 'have'}"


def _limit_not_met(
    metric: str, value: float, limit: float, n: int, *, side: str, end: str | None, corrected: bool
) -> str:
    number, needed = format_values(metric, value, limit, n=n)
    called = _called(metric, corrected=corrected)
    name = called if end is None else f"the {end} end of the interval of {called}"
    return f"{name} is {number}, {side} of {needed}"


def _no_interval_end(metric: str, end: str, why: str, *, corrected: bool) -> str:
    return f"{_called(metric, corrected=corrected)} has no {end} end of an interval: {why}"


def _not_computed(metric: str, why: str, *, corrected: bool) -> str:
    return f"{_called(metric, corrected=corrected)} could not be computed: {why}"


def _too_few(metric: str, n: int, needed: int, where: str = "") -> str:
    return f"only {_have(n)} a value of {metric}{where}, and {needed:,} must"


def _pairs_undecided(metric: str, n: int, allowed: float) -> str:
    return (
        f"only {_have(n)} a value of {metric} in both runs: even if all of them got worse, the "
        f"interval of the loss would reach below the margin of {format_drop(metric, allowed, n)}, so "
        "nothing is decided"
    )


def _no_baseline_value(metric: str, why: str, *, corrected: bool) -> str:
    return f"the baseline has no {_called(metric, corrected=corrected)} to compare with: {why}"


def _judge_differs(metric: str, was: str, now: str, baseline: str, spec: str) -> str:
    judges = f"by {was}, and this run by {now}"
    if was == now:
        judges = f"by {was} with another setting, prompt or rules than this run"
    return (
        f"the baseline was judged {judges}, so {metric} is not compared; judge the baseline again:  "
        f"misslink rejudge {baseline} --judge {shlex.quote(spec)} --out FOLDER"
    )


def _values_lost(metric: str, lost: int, reasons: Mapping[str, int]) -> str:
    return f"{_have(lost)} no value of {metric} now that had one: {describe_unmeasured(reasons)}"


def _fewer_values(metric: str, n: int, before: int, reasons: Mapping[str, int]) -> str:
    return (
        f"{metric} is over {pluralize(n, 'question')} now and was over {before:,}: "
        f"{describe_unmeasured(reasons)}"
    )


def _regressed(
    metric: str,
    before: float,
    value: float,
    drop: float,
    n: int,
    margin: Mapping[str, Any],
    *,
    corrected: bool,
    paired: bool,
) -> str:
    was, is_now = format_values(metric, before, value, n=n)
    text = (
        f"{_called(metric, corrected=corrected)} {'rose' if value > before else 'dropped'} from "
        f"{was} to {is_now}: a loss of {format_drop(metric, drop, n)}, more than the "
        f"{format_drop(metric, margin['allowed'], n)} allowed"
    )
    if margin["loss"] is None:
        return text
    text += f" ({_format_loss(metric, **margin)}"
    if not paired and not _exceeds(**margin):
        text += "; the interval reaches below the margin, but this gate goes by the change alone"
    return f"{text})"


def _exceeds(allowed: float, loss: Mapping[str, Any], **_: float) -> bool:
    low: float = loss["low"]
    return low > allowed


def _format_loss(metric: str, loss: Mapping[str, Any], level: float, **_: float) -> str:
    estimate = Estimate.model_validate(loss)
    over, interval = pluralize(estimate.n, "question"), format_change(metric, estimate)
    return f"over the {over} in both: loss {interval}, {100 * level:.3g}% interval"


def _met(
    metric: str,
    value: float,
    n: int,
    *,
    labels: int | None,
    corrected: bool,
    change: Mapping[str, Any] | None,
) -> str:
    (now,) = format_values(metric, value, n=n)
    text = f"{_called(metric, corrected=corrected)} is {now} over {pluralize(n, 'question')}"
    if labels is not None:
        text += f", by {pluralize(labels, 'label')}"
    return text if change is None else text + _met_change(metric, n, **change)


def _met_change(
    metric: str,
    n: int,
    by: str,
    before: float = 0.0,
    value: float = 0.0,
    margin: Mapping[str, Any] | None = None,
) -> str:
    if by == "no_baseline":
        return "; there is no baseline, so its regression was not checked"
    was, is_now = format_values(metric, before, value, n=n)
    text = {
        "value": f", was {was}",
        "error_rates": f"; by the judge's error rates alone it was {was} and is {is_now}",
        "pairs": f"; paired it was {was} and is {is_now}",
        "shared": f"; over the shared questions it was {was} and is {is_now}",
    }[by]
    if margin is None:
        return text
    text += f"; margin {format_drop(metric, margin['allowed'], n)}"
    if margin["loss"] is not None:
        text += f", {_format_loss(metric, **margin)}"
        if by == "pairs" and margin["drop"] > margin["allowed"]:
            text += ", which reaches below the margin: not enough data to tell"
    return text


def _unfinished_judging(run: str, unjudged: int, unknown: str) -> str:
    return (
        f"the judging of {run} was stopped early ({pluralize(unjudged, 'question')} left), so "
        f"{unknown} is not known; run the same  misslink evaluate  command again"
    )


def _new_failures(n: int, allowed: int, *, failure: str | None, retrieval: str | None) -> str:
    condition = f"the failure mode {failure}" if failure else "a failure mode"
    condition = f"the retrieval outcome {retrieval}" if retrieval else condition
    number = {0: "none is", 1: "1 is"}.get(allowed, f"{allowed:,} are")
    return f"{_have(n)} {condition} now and had not before; {number} allowed"


_AXES = {"failures": "failure mode", "retrieval": "retrieval outcome"}


def _outcomes_unknown(axis: str) -> str:
    return f"the {_AXES[axis]} of every case is unknown, so new failures could not be counted"


def _inconclusive_now(n: int, axis: str, reasons: Mapping[str, int]) -> str:
    were, are = ("was", "is") if n == 1 else ("were", "are")
    text = f"{pluralize(n, 'question')} {were} decided before and {are} inconclusive now"
    if reasons:
        return f"{text}, and may be among them ({describe_unmeasured(reasons)})"
    judged = "; the judge's verdicts do not settle the failure mode" if axis == "failures" else ""
    return f"{text}, and may be among them{judged}"


def _gameable(metrics: Sequence[str]) -> str:
    return (
        f"Warning: retrieval is gated by {' and '.join(metrics)} alone, for which one relevant "
        "passage is enough. Add a gate on recall@k or ndcg@k"
    )


def _unexplained(n: int, metric: str) -> str:
    have = "1 failed answer has" if n == 1 else f"{n:,} failed answers have"
    return f"{have} no known cause, and no part in {metric}"


def _few_retrieved(metric: str, k: int, most: int) -> str:
    were = "was" if most == 1 else "were"
    return f"{metric} covers the first {k:,}, and only {most:,} {were} retrieved"


def _raw_share(metric: str, raw: Mapping[str, Any], labels: int) -> str:
    share = format_estimate(metric, Estimate.model_validate(raw)).brief
    return f"by the judge alone it is {share}; corrected by {pluralize(labels, 'label')}"


def _corrected_share(metric: str, corrected: Mapping[str, Any], labels: int) -> str:
    share = format_estimate(metric, Estimate.model_validate(corrected)).brief
    return f"corrected for the judge's errors it is {share}, by {pluralize(labels, 'label')}"


def _corrected_by_exposure(labels: int, *, own: bool) -> str:
    whose = "this run's verdicts" if own else "another run"
    return f"at each exposure by itself, from {labels:,} labels of {whose}"


def _not_in_baseline(n: int) -> str:
    return f"{pluralize(n, 'question')} of these {'is' if n == 1 else 'are'} not in the baseline"


def _not_counted(n: int) -> str:
    are = "is" if n == 1 else "are"
    return f"{pluralize(n, 'question')} {are} inconclusive now and not counted"


def _summary_of_other_cases(baseline: int | None, run: int) -> str:
    count = "an unknown number of" if baseline is None else f"{baseline:,}"
    return f"the baseline has other cases: {count}, and the run has {run:,}"


GATE_SENTENCES: dict[str, str | Callable[..., str]] = {
    "gates_counted": _gates_counted,
    # why it failed or passed
    "met": _met,
    "below_floor": partial(_limit_not_met, side="below the floor"),
    "above_ceiling": partial(_limit_not_met, side="above the ceiling"),
    "no_interval_end": _no_interval_end,
    "not_computed": _not_computed,
    "too_few_cases": _too_few,
    "nothing_paired": (
        "no question has a value of {metric} in both runs, so nothing could be paired"
    ),
    "too_few_pairs": partial(_too_few, where=" in both runs"),
    "pairs_undecided": _pairs_undecided,
    "no_baseline_value": _no_baseline_value,
    "values_lost": _values_lost,
    "fewer_values": _fewer_values,
    "regressed": _regressed,
    "judge_differs": _judge_differs,
    "judge_unproven": lambda verdict, why: (
        f"misslink calibrate says '{verdict}' of the judge" + (f" ({why})" if why else "")
    ),
    "not_of_shared": "{metric} is not known of the shared questions alone, so it is not compared with "
    "the baseline ({why})",
    "questions_differ": "the baseline is a summary.json of other questions, so {metric} is not compared "
    "with it: name its run folder, whose shared questions can be",
    "labels_differ": "the baseline is a summary.json by other labels, so {metric} is not compared with "
    "it: name its run folder, which this run's labels can score",
    "no_case_in_run": "the run has no cases",
    "no_case_selected": "no question of the run has {selection}",
    "unfinished_judging": _unfinished_judging,
    "new_failures": _new_failures,
    "no_baseline": "there is no baseline, so new failures were not counted",
    "outcomes_unknown": _outcomes_unknown,
    "inconclusive_now": _inconclusive_now,
    # what to know of its numbers
    "retrieval_is_gameable": _gameable,
    "verdicts_failed": "{n:,} of its verdicts failed and are not counted",
    "unexplained_failures": _unexplained,
    "few_retrieved": _few_retrieved,
    "no_mean_over_questions": (
        "{metric} is not a mean over questions, so the change alone decides"
    ),
    "calibration_warns": (
        "Warning: its calibration of {metric} says '{verdict}', so do not rely on the "
        "corrected share; misslink calibrate gives the reasons"
    ),
    "raw_share": _raw_share,
    "corrected_share": _corrected_share,
    "share_not_corrected": "it could not be corrected for the judge's errors: {why}",
    "corrected_by_exposure": _corrected_by_exposure,
    "not_in_baseline": _not_in_baseline,
    "inconclusive_not_counted": _not_counted,
    "count_without_interval": "a count has no interval",
    # a baseline that is a summary
    "summary_setting_differs": "{setting} was {was} in the baseline and is {now} now",
    "summary_of_other_judge": "the baseline was judged with another model, prompt or rules",
    "baseline_without_cases": (
        "the baseline is a summary.json without cases: nothing is paired, and the change alone "
        "decides"
    ),
    "questions_unknown": "whether it has the same questions is unknown",
    "summary_of_other_cases": _summary_of_other_cases,
}
