"""The words of a selftest: its verdict, its kinds, and what it does not tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from misslink.render.format import format_estimate, list_first, pluralize, shorten

if TYPE_CHECKING:
    from misslink.selftests.document import Selftest, SelftestKind
    from misslink.types import Estimate

# Limits of the verdict, of faults found and of right answers flagged.
_TRUSTED, _FEW_ALARMS = 0.75, 0.2  # by the ends of the intervals
_USELESS, _MANY_ALARMS = 0.6, 0.3  # by the values
_TRUSTED_OWNERS = 0.75
_WEAK = 0.5  # share found of a kind
_MIN_MUTANTS = 5  # of a kind that is named as a weakness
_MOST_NAMED = 3
_LONGEST_NAME = 60  # characters

KIND_LABELS = {
    "passage_removed": "The passages of the answer rank below the cutoff",
    "part_removed": "The passage of one part of the answer missing",
    "passage_filtered": "A filter hides the passages of the answer",
    "dropped_from_prompt": "Retrieved passages dropped from the prompt",
    "cut_in_prompt": "Passages cut in the prompt",
    "stale_copy": "A stale copy in place of a passage",
    "passages_disagree": "Two passages that disagree",
    "wrong_reference": "A wrong reference",
    "unanswerable_flag": "A question flagged as unanswerable",
    "number_changed": "A number changed",
    "date_changed": "A date changed",
    "name_changed": "A name changed",
    "unit_changed": "A unit changed",
    "negated": "A statement negated",
    "roles_exchanged": "The roles of two names exchanged",
    "sentence_invented": "An invented sentence added",
    "part_left_out": "A part of the answer left out",
    "refusal": "A refusal although the passages hold the answer",
    "other_answer": "An answer to another question",
    "paraphrased": "A paraphrase",
    "reordered": "Other order of the sentences",
    "listed": "A list instead of prose",
    "marks_added": "Citation marks",
    "heading_added": "A heading",
    "sentence_repeated": "A repeated sentence",
    "form_changed": "Another form of a date, number or unit",
    "hedge_reworded": "A hedge reworded",
}
GROUPS = {
    "generator": "Faults in the answer",
    "retriever": "Faults of the retriever",
    "prompt": "Faults of the prompt",
    "index": "Faults of the index",
    "gold_set": "Faults of the gold set",
    "": "Harmless changes",
}
LIMITS = (
    "Planted faults are not natural ones: these may be easier or harder to find.",
    "Good cases are those that passed, so right answers that the judge always flags are not among them.",
    "The selftest measures no kind of fault outside this list.",
    "Human labels say more: label about 40 answers with `misslink annotate`.",
)


class SelftestVerdict(NamedTuple):
    """What a selftest says in one line: of the judge, and of the owners that misslink names."""

    judge: str  # trust, caution, do not use, or not measured
    about_judge: str
    blind_spots: str = ""
    about_owners: str = ""

    @property
    def line(self) -> str:
        """All sentences."""
        return " ".join(filter(None, (self.about_judge, self.blind_spots, self.about_owners)))


def _label(kind: str) -> str:
    """The words of a kind; of one that this version does not know its name."""
    return KIND_LABELS.get(kind) or shorten(kind.replace("_", " "), _LONGEST_NAME)


def describe_selftest(document: Selftest) -> SelftestVerdict:
    """Return the verdict on a judge, with the numbers that it rests on.

    Trusted: at least 75% of the faults are found, and at most 20% of the right answers flagged, by
    the ends of both intervals. Not to be used: under 60% found, or over 30% flagged.
    """
    found, alarms = document.found, document.false_alarm
    if found.value is None or alarms.value is None:
        return SelftestVerdict("not measured", f"Not measured: {found.reason or alarms.reason}.")
    numbers = (
        f"it finds {format_estimate('share', found).brief} of the planted faults and flags "
        f"{format_estimate('share', alarms).brief} of the right answers"
    )
    if found.value < _USELESS or alarms.value > _MANY_ALARMS:
        verdict, start = "do not use", "Do not trust this judge"
    elif _low(found) >= _TRUSTED and _high(alarms) <= _FEW_ALARMS:
        verdict, start = "trust", "On planted faults you can trust this judge"
    else:
        verdict, start = "caution", "Use this judge with care"
    weak = "" if verdict == "do not use" else _describe_weak_kinds(document)
    owners = _describe_owners(document, of_judge=verdict)
    return SelftestVerdict(verdict, f"{start}: {numbers}.", weak, owners)


def describe_few(document: Selftest | None) -> str:
    """Return the line of an evaluation about the few mutants that it planted."""
    if document is None:
        return "Selftest: not measured; too few cases are good."
    hits, alarms = (
        f"{round((rate.value or 0) * rate.n):,} of {rate.n:,}"
        for rate in (document.found, document.false_alarm)
    )
    return f"Selftest: {hits} planted faults found, {alarms} harmless changes flagged."


def _low(estimate: Estimate) -> float:
    return 0.0 if estimate.low is None else estimate.low


def _high(estimate: Estimate) -> float:
    return 1.0 if estimate.high is None else estimate.high


def _describe_weak_kinds(document: Selftest) -> str:
    weak = [
        (kind.found.value, _label(name))
        for name, kind in document.kinds.items()
        if kind.found and is_weak(kind)
    ]
    if not weak:
        return ""
    names = [f"{label[0].lower()}{label[1:]}" for _, label in sorted(weak)]
    return f"It misses over half of: {list_first(names, _MOST_NAMED)}."


def _describe_owners(document: Selftest, of_judge: str) -> str:
    right = document.owner_right
    if right.value is None:
        return ""
    if of_judge == "do not use":
        return f"Of what it finds, {format_estimate('share', right).brief} get the right owner."
    share = f"{format_estimate('share', right).brief} are right"
    if _low(right) >= _TRUSTED_OWNERS:
        return f"You can trust the named owners there: {share}."
    return f"Check the owners: {share}{_most_confused(document.kinds)}."


def _most_confused(kinds: Mapping[str, SelftestKind]) -> str:
    """The kind whose owner is wrong most often, and who is named instead."""
    wrong = {
        (name, owner): count
        for name, kind in kinds.items()
        for owner, count in kind.named.items()
        if owner != kind.expected_owner
    }
    if not wrong:
        return ""
    name, owner = max(wrong, key=lambda pair: wrong[pair])
    label = _label(name)
    return f" (most often wrong: {label[0].lower()}{label[1:]}, called {owner.replace('_', ' ')})"


def is_weak(kind: SelftestKind) -> bool:
    """Whether over half of the faults of a kind are missed, or of the harmless ones flagged."""
    found = kind.found.value if kind.found else None
    alarms = kind.false_alarm.value if kind.false_alarm else None
    missed = found is not None and found < _WEAK
    return kind.n >= _MIN_MUTANTS and (missed or (alarms is not None and alarms > _WEAK))


def selftest_groups(
    document: Selftest,
) -> Iterator[tuple[str, str, list[tuple[str, SelftestKind]]]]:
    """Yield owner, heading and kinds with their labels, the weakest first in each group."""
    for owner, heading in GROUPS.items():
        rows = [
            (_label(name), kind)
            for name, kind in document.kinds.items()
            if (kind.expected_owner or "") == owner
        ]
        if rows:
            yield owner, heading, sorted(rows, key=lambda row: _weakness(row[1]))


def _weakness(kind: SelftestKind) -> tuple[float, int]:
    rate = kind.found or kind.false_alarm
    value = rate.value if rate is not None and rate.value is not None else 1.0
    return (value if kind.found else -value), -kind.n


def selftest_notes(document: Selftest) -> Iterator[str]:
    """Yield what was left out of the numbers."""
    if document.not_judged:
        yield f"Not judged, and in no number: {pluralize(document.not_judged, 'mutant')}."
    for name, tried in document.left_out.items():
        label = _label(name)
        yield f"Not measured: {label[0].lower()}{label[1:]}. None of {pluralize(tried, 'case')} has a place for it."
