"""Cases on which annotators and the judge disagree, by what they share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from misslink.calibration_document import CalibrationDocument
from misslink.documents import manifest_of
from misslink.matching import Passages
from misslink.parts import by_case
from misslink.report.human_labels import read_human_labels
from misslink.report.links import case_fragment, number_cases, view_fragment
from misslink.text.normalization import content_words, fold
from misslink.types import Claim, Run, Trace, Verdict

_METRIC = "faithfulness"  # whose verdicts have claims
_MOST_CASES = 8  # of a group that are linked
_KNOWN = 0.5  # of a claim's content words; with fewer in the passages it is from elsewhere
_HEDGE = re.compile(
    r"\b(?:may|might|could|perhaps|maybe|probably|possibly|likely|seems?|appears?|suggests?"
    r"|generally|usually|typically|often|about|around|roughly)\b"
)
# What a group shares, and the rule that the prompt does not state; the first that fits.
_RULES = {
    "derived": ("A value that no passage states", "whether a value computed from passages counts"),
    "hedged": ("A hedged statement", "whether a hedged statement needs a passage"),
    "known": ("General knowledge", "whether what people know anyway needs a passage"),
    "other": ("Nothing that misslink knows of", ""),
}


@dataclass(frozen=True)
class DisagreementGroup:
    """Cases in which the judge is wrong by the annotators; ``cases`` are (number, fragment)."""

    shared: str
    direction: str
    rule: str
    n: int
    cases: tuple[tuple[int, str], ...]
    fragment: str


def group_disagreements(
    run: Run, calibration: CalibrationDocument
) -> tuple[DisagreementGroup, ...]:
    """Return the groups, the largest first; none of a metric whose verdicts have no claims."""
    metric, numbers = calibration.metric, number_cases(run.cases)
    if metric != _METRIC:
        return ()
    traces, verdicts = by_case(run.traces), by_case(run.verdicts_of(_METRIC))
    groups: dict[tuple[str, bool], list[int]] = {}
    for case_id, labels in read_human_labels(run).items():
        label = labels.get(metric)
        if label is None or label.stands != "disagree" or case_id not in numbers:
            continue
        is_good = label.share is not None and label.share >= 1 / 2
        shared = _shared_by(verdicts.get(case_id), traces.get(case_id), run, strict=is_good)
        groups.setdefault((shared, is_good), []).append(numbers[case_id])
    ordered = sorted(groups.items(), key=lambda group: (group[0][0] == "other", -len(group[1])))
    return tuple(_group(shared, cases, strict=strict) for (shared, strict), cases in ordered)


def _group(shared: str, cases: Sequence[int], *, strict: bool) -> DisagreementGroup:
    name, rule = _RULES[shared]
    return DisagreementGroup(
        name,
        "judge says bad, annotators say good" if strict else "judge says good, annotators say bad",
        f"State in the judge's prompt {rule}." if rule else "Read these cases.",
        len(cases),
        tuple((number, case_fragment(number)) for number in sorted(cases)[:_MOST_CASES]),
        view_fragment(ids=cases),
    )


def _shared_by(verdict: Verdict | None, trace: Trace | None, run: Run, *, strict: bool) -> str:
    """What the claims that are in question have in common with those of other cases."""
    if verdict is None or trace is None or not verdict.claims:
        return "other"
    texts = [passage.text for passage in trace.context(manifest_of(run).k or len(trace.retrieved))]
    shown, words = Passages(texts), {word for text in texts for word in content_words(text)}
    claims = [*_claims_in_question(verdict, strict=strict)]
    rules: tuple[tuple[str, Callable[[str], bool]], ...] = (
        ("derived", lambda text: bool(shown.new_numbers(text))),
        ("hedged", lambda text: _HEDGE.search(fold(text)) is not None),
        ("known", lambda text: _is_from_elsewhere(text, words)),
    )
    for rule, fits in rules:
        if any(fits(claim.text) for claim in claims):
            return rule
    return "other"


def _claims_in_question(verdict: Verdict, *, strict: bool) -> Iterator[Claim]:
    """Where the judge is stricter, the claims that it calls bad; else all."""
    for claim in verdict.claims:
        if not strict or claim.support != "supported":
            yield claim


def _is_from_elsewhere(text: str, known: set[str]) -> bool:
    words = content_words(text)
    return bool(words) and sum(word in known for word in words) < _KNOWN * len(words)
