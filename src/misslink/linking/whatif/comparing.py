"""Options held against today: rank metrics paired case by case, what they cost, what they save."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from misslink.linking.whatif.forecast import Change
from misslink.linking.whatif.today import Today, Tried, tokens
from misslink.retrieval import score
from misslink.stats import mean
from misslink.stats.paired import Paired, detectable_after, holm, paired_difference
from misslink.stats.written import p_value, points, whole_points
from misslink.types import Case, Estimate, Trace

__all__ = [
    "Compared",
    "Unknown",
    "context_tokens",
    "counted",
    "finding",
    "measured_today",
    "metrics_of",
]

_AT_CUTOFF = ("hit", "recall", "precision", "ndcg")
_SIGNIFICANT = 0.05
_NO_VALUE = "no case has relevant passages and a ranking"

Scores = dict[str, dict[str, float | None]]
Compared = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Unknown:
    """Cases of which an option cannot tell whether they would be misses, though today can.

    Parameters
    ----------
    cases, of : int
        How many they are, and of how many it is known today.
    reasons : sequence of str
        The most frequent first.
    """

    cases: int
    of: int
    reasons: tuple[str, ...]

    @classmethod
    def among(cls, today: Today, tried: Tried) -> Unknown | None:
        """Count them; None where there are none."""
        was, now = today.misses(), tried.misses()
        lost = [at for at, miss in enumerate(was) if miss is not None and now[at] is None]
        if not lost:
            return None
        why = Counter(
            tried.traces[at].unmeasured or "no passage it needs can be told" for at in lost
        )
        known = sum(miss is not None for miss in was)
        return cls(len(lost), known, tuple(reason for reason, _ in why.most_common()))

    def __str__(self) -> str:
        return f"not known for {self.cases} of {self.of} cases: {'; '.join(self.reasons)}"


def measured_today(today: Today, seed: int) -> tuple[Scores, dict[str, Estimate]]:
    """Today's values by metric and case, and their means."""
    scores = _scores(today.cases, today.traces, today.k, today.k)
    return scores, {name: _mean(list(of.values()), seed) for name, of in scores.items()}


def metrics_of(today: Today, before: Scores, tried: Sequence[Tried], seed: int) -> list[Compared]:
    """Every metric of every option: its mean, today's over the same cases, and their difference.

    The p-values of one metric are corrected over the options (Holm). A metric at k is taken at k
    times as many passages as the option hands over more, under today's name; ``at`` says where.
    ``detectable`` is what the cases could show at the level that Holm leaves to this option.
    """
    paired: list[dict[str, tuple[Estimate, Estimate, Paired]]] = []
    for option in tried:
        after = _scores(option.cases, option.traces, today.k, today.cutoff(option.width))
        row = {}
        for name, of in before.items():
            a, b = list(of.values()), [after[name][case.id] for case in today.cases]
            both = [pair for pair in zip(a, b, strict=True) if None not in pair]
            then, now = (_mean([pair[side] for pair in both], seed) for side in (0, 1))
            row[name] = then, now, paired_difference(a, b, seed=seed)
        paired.append(row)
    corrected = {name: holm([row[name][2].p for row in paired]) for name in before}
    return [
        {
            name: {
                "at": today.cutoff(option.width) if "@" in name else None,
                "a": then.model_dump(),
                "b": value.model_dump(),
                "difference": found.difference.model_dump(),
                "p": found.p,
                "p_holm": corrected[name][place],
                "tests": _tests(corrected[name]),
                "detectable": detectable_after(found, corrected[name]),
                "winner": _winner(found, corrected[name][place]),
            }
            for name, (then, value, found) in row.items()
        }
        for place, (option, row) in enumerate(zip(tried, paired, strict=True))
    ]


def context_tokens(today: Today, tried: Tried, seed: int) -> dict[str, Any]:
    """Tokens of the context, characters by four, today and with the option."""
    usual = _usual_length(today)
    now = [tokens(trace.context(today.k)) for trace in today.traces if trace.retrieved]
    then = []
    for trace in tried.traces:
        context = trace.retrieved[: tried.width]
        # A passage that nobody saw, between two that were, has the length of the others.
        lengths = [tokens([passage]) if passage.text else usual for passage in context]
        known = [length for length in lengths if length is not None]
        if any(passage.text for passage in context) and len(known) == len(lengths):
            then.append(sum(known))
    return {
        "today": _tokens([one for one in now if one is not None], seed).model_dump(),
        "b": _tokens(then, seed).model_dump(),
    }


def finding(
    metric: str, compared: Mapping[str, Any], saved: Estimate, bad: int, unknown: Unknown | None
) -> str:
    """One sentence on an option: what changes of its metric, and what that would save."""
    difference, before, after = (
        Estimate.model_validate(compared[name]) for name in ("difference", "a", "b")
    )
    if difference.value is None or before.value is None or after.value is None:
        return f"{metric} was not measured: {unknown or difference.reason or after.reason}."
    apart = f"{points(difference)}{_chance(compared)}"
    if compared["winner"] is None:
        said = f"No detectable difference in {metric}: {apart}{_could(compared, difference.n)}"
        return f"{said}; {unknown}." if unknown else f"{said}."
    verb = "rises" if compared["winner"] == "option" else "falls"
    said = (
        f"{metric} {verb} from {whole_points(before.value)} to {whole_points(after.value)} %, "
        f"{apart}"
    )
    return f"{said}; {unknown or _saves(saved, bad)}."


def _saves(saved: Estimate, bad: int) -> str:
    """What an option saves, said as certain as it is: an interval with 0 in it promises nothing."""
    if saved.value is None or saved.low is None or saved.high is None:
        return f"what that saves is not known: {saved.reason}"
    low, high = round(saved.low), round(saved.high)
    if low > 0:
        return (
            f"about {_tenths(saved.value)} [{low}, {high}] fewer unfaithful answers, of {bad} now"
        )
    if high < 0:
        more = f"about {_tenths(-saved.value)} [{-high}, {-low}] more unfaithful answers"
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


def _tests(ps: Sequence[float | None]) -> int:
    """How many options were tested."""
    return sum(p is not None for p in ps)


def _chance(compared: Mapping[str, Any]) -> str:
    """The p-value alone, and corrected where several options were tested."""
    p, corrected, tests = compared["p"], compared["p_holm"], compared["tests"]
    if p is None or corrected is None:
        return ""
    if tests == 1:
        return f" ({p_value(p)})"
    after = p_value(corrected).removeprefix("p ").removeprefix("= ")
    return f" ({p_value(p)} alone, {after} after Holm over {tests} options)"


def _could(compared: Mapping[str, Any], n: int) -> str:
    cases = "1 case" if n == 1 else f"{n} cases"
    if compared["detectable"] is None:
        return f" over {cases}"
    level = "; " if compared["tests"] == 1 else "; at the corrected level "
    seen = whole_points(compared["detectable"])
    return f"{level}{cases} could show one of {seen} points at 80 % power"


def _tenths(count: float) -> str:
    """A count of cases with one decimal, whole ones and 0 without."""
    return f"{round(count, 1) + 0.0:g}"
