"""Options held against today: rank metrics paired case by case, what they cost, what they save."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from misslink.linking.whatif.forecast import Change
from misslink.linking.whatif.today import Today, Tried, tokens
from misslink.retrieval import score
from misslink.stats import mean
from misslink.stats.paired import Paired, holm, paired_difference
from misslink.stats.written import p_value, points
from misslink.types import Case, Estimate, Trace

__all__ = ["Compared", "finding", "measured_today", "metrics_of"]

_AT_CUTOFF = ("hit", "recall", "precision", "ndcg")
_SIGNIFICANT = 0.05
_NO_VALUE = "no case has relevant passages and a ranking"

Scores = dict[str, dict[str, float | None]]
Compared = dict[str, dict[str, Any]]


def measured_today(today: Today, seed: int) -> tuple[Scores, dict[str, Estimate]]:
    """Today's values by metric and case, and their means."""
    scores = _scores(today.cases, today.traces, today.k, today.k)
    return scores, {name: _mean(list(of.values()), seed) for name, of in scores.items()}


def metrics_of(today: Today, before: Scores, tried: Sequence[Tried], seed: int) -> list[Compared]:
    """Every metric of every option: its mean, and the paired difference to today's.

    The p-values of one metric are corrected over the options (Holm). A metric at k is taken at k
    times as many passages as the option hands over more, under today's name.
    """
    paired: list[dict[str, tuple[Estimate, Paired]]] = []
    for option in tried:
        after = _scores(option.cases, option.traces, today.k, today.cutoff(option.width))
        row = {}
        for name, of in before.items():
            values = [after[name][case.id] for case in today.cases]
            difference = paired_difference(list(of.values()), values, seed=seed)
            row[name] = _mean(values, seed), difference
        paired.append(row)
    corrected = {name: holm([row[name][1].p for row in paired]) for name in before}
    return [
        {
            name: {
                "b": value.model_dump(),
                "difference": found.difference.model_dump(),
                "p": found.p,
                "p_holm": corrected[name][at],
                "detectable": found.detectable,
                "winner": _winner(found, corrected[name][at]),
            }
            for name, (value, found) in row.items()
        }
        for at, row in enumerate(paired)
    ]


def context_tokens(today: Today, tried: Tried, seed: int) -> dict[str, Any]:
    """Tokens of the context, characters by four, today and with the option."""
    usual = _usual_length(today)
    now = [tokens(trace.context(today.k)) for trace in today.traces if trace.retrieved]
    then = []
    for trace in tried.traces:
        context = trace.retrieved[: tried.width]
        known = [passage for passage in context if passage.text]
        if not known:
            continue
        # A passage that nobody saw, between two that were, has the length of the others.
        unseen = (len(context) - len(known)) * (usual or 0.0)
        then.append((tokens(known) or 0.0) + unseen)
    return {
        "today": _tokens([one for one in now if one is not None], seed).model_dump(),
        "b": _tokens(then, seed).model_dump(),
    }


def finding(
    metric: str, compared: Mapping[str, Any], before: Estimate, saved: Estimate, bad: int
) -> str:
    """One sentence on an option: what changes of its metric, and what that would save."""
    difference = Estimate.model_validate(compared["difference"])
    after = Estimate.model_validate(compared["b"])
    if difference.value is None or before.value is None or after.value is None:
        return f"{metric} was not measured: {difference.reason or after.reason}."
    apart = points(difference)
    if compared["winner"] is None:
        return f"No detectable difference in {metric}: {apart}{_could(compared, difference.n)}."
    verb = "rises" if compared["winner"] == "option" else "falls"
    said = (
        f"{metric} {verb} from {_percent(before.value)} to {_percent(after.value)} %, {apart}"
        f" ({p_value(compared['p_holm'])} after Holm)"
    )
    return f"{said}; {_saves(saved, bad)}."


def _saves(saved: Estimate, bad: int) -> str:
    """What an option saves, said as certain as it is: an interval with 0 in it promises nothing."""
    if saved.value is None or saved.low is None or saved.high is None:
        return f"what that saves is not known: {saved.reason}"
    low, high = round(saved.low), round(saved.high)
    if low > 0:
        return f"about {saved.value:.1f} [{low}, {high}] fewer unfaithful answers, of {bad} now"
    if high < 0:
        more = f"about {-saved.value:.1f} [{-high}, {-low}] more unfaithful answers"
        return f"{more}, on top of the {bad} now"
    said = f"it may leave the unfaithful answers, {bad} now, as they are"
    if low == high:
        return said
    return f"{said}: the forecast runs from {_fewer(low)} to {_fewer(high)}"


def _fewer(count: int) -> str:
    return f"{-count} more" if count < 0 else f"{count or 'none'} fewer"


def counted(changed: Sequence[Change]) -> tuple[int, int]:
    """How many misses an option mends, and how many it makes."""
    mended = sum(one.mended for one in changed)
    return mended, len(changed) - mended


def _scores(cases: Sequence[Case], traces: Sequence[Trace], k: int, cutoff: int) -> Scores:
    """Values at `cutoff`, named as at `k`."""
    names = {f"{metric}@{cutoff}": f"{metric}@{k}" for metric in _AT_CUTOFF}
    found = score(cases, traces, [*names, "mrr"])
    return {names.get(name, name): of for name, of in found.items()}


def _mean(values: Sequence[float | None], seed: int) -> Estimate:
    known = [value for value in values if value is not None]
    return mean(known, seed=seed) if known else Estimate.missing(_NO_VALUE)


def _tokens(values: Sequence[float], seed: int) -> Estimate:
    if not values:
        return Estimate.missing("no passage has a text")
    return mean(values, seed=seed, bounds=None)


def _usual_length(today: Today) -> float | None:
    """Tokens of a passage, the mean over those that were retrieved with their text."""
    texts = [one for trace in today.traces for one in trace.retrieved if one.text]
    known = tokens(texts)
    return known / len(texts) if known and texts else None


def _winner(found: Paired, p_holm: float | None) -> str | None:
    value = found.difference.value
    if p_holm is None or value is None or p_holm >= _SIGNIFICANT or not value:
        return None
    return "option" if value > 0 else "today"


def _could(compared: Mapping[str, Any], n: int) -> str:
    cases = "1 case" if n == 1 else f"{n} cases"
    if compared["detectable"] is None:
        return f" over {cases}"
    return f"; {cases} could show one of {_percent(compared['detectable'])} points at 80 % power"


def _percent(value: float) -> str:
    return f"{100 * value:.0f}"
