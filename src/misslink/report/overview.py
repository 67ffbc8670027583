"""The run in numbers: one a level, then every metric of every level, then groups of cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report.documents import estimate_in, mapping_in
from misslink.report.places import view
from misslink.report.truths import Truth, truths
from misslink.report.wording import Shown, shown
from misslink.types import Case, Run

__all__ = [
    "Level",
    "Measured",
    "Number",
    "Slice",
    "Slices",
    "levels",
    "little_judged",
    "no_judge",
    "numbers",
    "slices",
]

_ENOUGH_JUDGED = 0.9  # of the first k passages: below it rank metrics say as much of the judgements
_SMALL = 10  # cases under which a group is marked
_MANY = 12  # groups that a reader takes in at a glance
_FIELDS = ("category", "tier")  # what groups cases beside their tags
# Numbers that come from the verdicts of another metric.
_READ_OFF = {
    "faithful": "faithfulness",
    "correct": "correctness",
    "correctness_precision": "correctness",
    "correctness_recall": "correctness",
    "over_refused": "abstention",
    "should_have_abstained": "abstention",
    "citation_recall": "citation_correctness",
}


@dataclass(frozen=True)
class Number:
    """One of the three numbers: which level, what it asks, the estimate, what people would find."""

    level: str
    question: str
    shown: Shown
    truth: Truth | None = None


@dataclass(frozen=True)
class Measured:
    """A metric with what was scored, skipped and failed (None: not counted), why, and its sense.

    ``truth`` is the share that people would find, where human labels tell.
    """

    shown: Shown
    coverage: tuple[int, int, int] | None
    why: tuple[str, ...]
    low_is_good: bool
    truth: Truth | None = None


@dataclass(frozen=True)
class Level:
    """One level of the evaluation and its metrics; ``warning`` says what they do not tell."""

    title: str
    question: str
    metrics: tuple[Measured, ...]
    warning: str = ""

    @property
    def counted(self) -> bool:
        """Whether it was counted how many cases could be judged."""
        return any(metric.coverage for metric in self.metrics)


@dataclass(frozen=True)
class Slice:
    """A group of cases; ``small`` where it has so few that its numbers say little.

    ``fragment`` is the view of its cases.
    """

    name: str
    n: int
    small: bool
    metrics: tuple[Shown, ...]
    fragment: str


@dataclass(frozen=True)
class Slices:
    """All groups by category, by tier or by one tag: worst first, small ones last."""

    dimension: str
    metrics: tuple[str, ...]
    groups: tuple[Slice, ...]

    @property
    def long(self) -> bool:
        """Whether there are so many groups that the table is better opened on request."""
        return len(self.groups) > _MANY


def numbers(run: Run, k: int) -> tuple[Number, Number, Number]:
    """One number a level: recall@k, faithful, correctness."""
    summary, found = run.summary, truths(run)
    recall = f"recall@{k}"
    return (
        Number(
            "Retrieval",
            f"of the needed passages are among the first {k}",
            shown(recall, estimate_in(summary, "retrieval", recall)),
        ),
        Number(
            "Generation",
            "of answers claim nothing beyond their passages",
            shown("faithful", estimate_in(summary, "generation", "faithful", why=no_judge(run))),
            found.get("faithful"),
        ),
        Number(
            "Answer",
            "agreement with the reference answers (claim F1)",
            shown("correctness", estimate_in(summary, "answer", "correctness", why=no_judge(run))),
            found.get("correct"),
        ),
    )


def levels(run: Run) -> tuple[Level, ...]:
    """The three levels with every metric that the summary holds."""
    titles = (
        ("retrieval", "1. Retrieval", "Did the needed passages come back?"),
        ("generation", "2. Generation", "Does the answer stay with its passages?"),
        ("answer", "3. Answer", "Is the answer right?"),
    )
    found = truths(run)
    unscored: dict[str, Counter[str]] = {}
    for given in run.verdicts:
        if given.status != "scored":
            reasons = unscored.setdefault(given.metric, Counter())
            reasons[f"{given.status}: {given.reason}"] += 1
    return tuple(
        Level(
            title,
            question,
            tuple(
                _measured(
                    run, key, name, unscored.get(name, Counter()), _truth_of(run, name, found)
                )
                for name in mapping_in(run.summary.get(key))
            ),
            warning=little_judged(run) if key == "retrieval" else "",
        )
        for key, title, question in titles
    )


def little_judged(run: Run) -> str:
    """Say that few passages were judged, so that rank metrics tell as much of that; else ""."""
    for name in mapping_in(run.summary.get("judged")):
        share = estimate_in(run.summary, "judged", name)
        if share.value is not None and share.value < _ENOUGH_JUDGED:
            depth = name.partition("@")[2]
            return (
                f"The gold set says of only {shown(name, share).brief} of the first {depth} "
                "passages whether they are relevant, and all others count as not relevant; "
                "misslink retrieval --bounds tells what that leaves open."
            )
    return ""


def slices(run: Run) -> tuple[Slices, ...]:
    """Groups by category, tier and each tag, the lowest numbers first, small groups last."""
    found = []
    for dimension, groups in mapping_in(run.summary.get("slices")).items():
        names: dict[str, None] = {}  # in the order of their first appearance
        for group in mapping_in(groups).values():
            names |= dict.fromkeys(mapping_in(mapping_in(group).get("metrics")))
        rows = [
            (
                _mean_value(group, tuple(names)),
                _slice(name, group, tuple(names), _view(run.cases, dimension, name)),
            )
            for name, group in mapping_in(groups).items()
        ]
        rows.sort(key=lambda row: (row[1].small, row[0], row[1].name))
        if rows:
            found.append(Slices(dimension, tuple(names), tuple(row for _, row in rows)))
    return tuple(found)


def _truth_of(run: Run, name: str, found: Mapping[str, Truth]) -> Truth | None:
    """What people would find of the number `name`: of its share, else of the metric as a whole."""
    if name in found:
        return found[name]
    whole = next((one for one in found.values() if one.metric == name), None)
    told = [mapping_in(run.summary.get(level)) for level in ("generation", "answer")]
    return None if whole is None or any(whole.name in level for level in told) else whole


def _measured(
    run: Run, level: str, name: str, reasons: Counter[str], truth: Truth | None
) -> Measured:
    verdict = _READ_OFF.get(name, name)
    counted = mapping_in(mapping_in(run.summary.get("coverage")).get(verdict))
    numbers = [counted.get(status) for status in ("scored", "skipped", "failed")]
    coverage = [number for number in numbers if isinstance(number, int)]
    return Measured(
        shown=shown(name, estimate_in(run.summary, level, name)),
        coverage=(coverage[0], coverage[1], coverage[2]) if len(coverage) == len(numbers) else None,
        why=tuple(f"{count} {reason}" for reason, count in reasons.most_common(3)),
        low_is_good=name in _names(run.summary.get("lower_is_better")),
        truth=truth,
    )


def _names(listed: JsonValue) -> tuple[str, ...]:
    return tuple(map(str, listed)) if isinstance(listed, list | tuple) else ()


def _slice(name: str, group: JsonValue, metrics: tuple[str, ...], fragment: str) -> Slice:
    size = mapping_in(group).get("n")
    n = size if isinstance(size, int) else 0
    estimates = (estimate_in(mapping_in(group), "metrics", metric) for metric in metrics)
    return Slice(
        name=name,
        n=n,
        small=n < _SMALL,
        metrics=tuple(shown(*pair) for pair in zip(metrics, estimates, strict=True)),
        fragment=fragment,
    )


def _view(cases: Sequence[Case], axis: str, name: str) -> str:
    """The cases of a group; a tag may be called as a field is that no case has."""
    is_tag = any(axis in case.tags for case in cases)
    if axis in _FIELDS and not (is_tag and all(getattr(case, axis) is None for case in cases)):
        return view(**{axis: name})
    return view(tag=f"{axis}:{name}")


def _mean_value(group: JsonValue, metrics: tuple[str, ...]) -> float:
    values = [estimate_in(mapping_in(group), "metrics", metric).value for metric in metrics]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else 2.0  # nothing measured comes last


def no_judge(run: Run) -> str:
    """Why no judged metric exists; "" where a judge was asked."""
    return "no judge was asked" if run.manifest.get("judge") == "none" else ""
