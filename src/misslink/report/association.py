"""Whether missing passages matter: bad answers by exposure, within groups, corrected, and replayed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from misslink.documents import (
    AdjustedRisks,
    LeftOut,
    Note,
    Replay,
    ReplayedArm,
    ReplayedCase,
    ReplayedFailure,
    RiskAssociation,
    Risks,
    Stratum,
    TestResult,
    TrendResult,
    calibrations_of,
    replay_of,
    summary_of,
)
from misslink.render.format import (
    FormattedEstimate,
    as_sentence,
    describe_negligible,
    format_difference,
    format_estimate,
    format_p_value,
    pluralize,
)
from misslink.render.reasons import describe_reason
from misslink.report.findings import replayed_owners
from misslink.report.glossary import ARMS, CAUSES
from misslink.report.links import (
    CORRECT_VALUES,
    LinkedCases,
    mode_label,
    number_cases,
    view_fragment,
)
from misslink.retrieval import case_exposures
from misslink.types import Estimate, Run

_EXPOSURE_LABELS = {"none": "none of them", "some": "some of them", "all": "all of them"}
_EFFECTS = {
    "attributable_fraction": "Attributable fraction",
    "risk_difference": "Risk difference",
    "risk_ratio": "Risk ratio",
}
_RISKS = {
    "risk_given_none": "Unfaithful with none of the relevant passages",
    "risk_given_some": "Unfaithful with some",
    "risk_given_all": "Unfaithful with all",
}
_SIGNIFICANT = 0.05  # as everywhere in misslink


BeforeAfter = tuple[str, FormattedEstimate, FormattedEstimate]  # name; as counted; corrected


@dataclass(frozen=True)
class CorrectedAssociation:
    """The numbers corrected for the judge's errors at each exposure, and how it errs there."""

    rows: tuple[BeforeAfter, ...]
    note: str

    @property
    def brief(self) -> str:
        """The corrected attributable fraction in one line, or why there is none."""
        (fraction,) = (
            after for label, _, after in self.rows if label == _EFFECTS["attributable_fraction"]
        )
        return f"Corrected for the judge's errors, the attributable fraction is {fraction.brief}."


@dataclass(frozen=True)
class AdjustedTable:
    """The association within groups."""

    bad: str
    by: str
    strata: tuple[Stratum, ...]
    pooled: tuple[BeforeAfter, ...]
    notes: tuple[str, ...]
    warning: str


@dataclass(frozen=True)
class CrossRow:
    """The bad and the good answers at an exposure, and the risk of a bad one."""

    label: str
    bad: LinkedCases
    good: LinkedCases
    risk: FormattedEstimate


@dataclass(frozen=True)
class CrossTable:
    """Answers by exposure; ``bad`` and ``good`` are the heads of its columns."""

    bad: str
    good: str
    rows: tuple[CrossRow, ...]
    left_out: int
    numbers: tuple[tuple[str, FormattedEstimate], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ReplayView:
    """What replay found; ``arms`` and ``failures`` have their labels."""

    facts: str
    causal: FormattedEstimate
    causal_words: str
    owners: str
    arms: tuple[tuple[str, ReplayedArm], ...]
    sentences: tuple[str, ...]
    failures: tuple[tuple[str, ReplayedFailure], ...]
    shares: tuple[tuple[str, str], ...]
    skipped: tuple[str, ...]


def adjust_associations(run: Run) -> tuple[AdjustedTable, ...]:
    """Read the association within categories, for unfaithful and for wrong answers."""
    tables, summary = [], summary_of(run)
    for association, bad in ((summary.link, "unfaithful"), (summary.link_correctness, "wrong")):
        adjusted = association.adjusted
        if all(stratum.risk_difference.value is None for stratum in adjusted.strata):
            continue
        notes = (
            _note_sentence(adjusted.change),
            _heterogeneity_note(adjusted.heterogeneity),
            _left_out_note(adjusted.left_out),
        )
        warning = _note_sentence(adjusted.warning)
        if warning:  # only groups with both none and all count
            tables_of = (stratum.table for stratum in adjusted.strata)
            sizes = [(table.none.total, table.all.total) for table in tables_of]
            used = sum(none + all_ for none, all_ in sizes if none and all_)
            total = pluralize(sum(map(sum, sizes)), "case")
            warning += f" The adjusted numbers rest on {used:,} of {total}."
        tables.append(
            AdjustedTable(
                bad=bad,
                by=adjusted.by or "group",
                strata=adjusted.strata,
                pooled=_before_after(_EFFECTS, association, adjusted),
                notes=tuple(filter(None, notes)),
                warning=warning,
            )
        )
    return tuple(tables)


def correct_association(run: Run) -> CorrectedAssociation | None:
    """Read the numbers corrected for the judge's errors; None without labels of faithfulness."""
    link = summary_of(run).link
    if "faithfulness" not in calibrations_of(run):
        return None
    errors = link.judge_error_by_exposure
    note = f"The judge's errors by exposure were not compared: {errors.reason}."
    if errors.p is not None:
        differ = "differ" if errors.differs else "do not differ by more than chance would explain"
        note = (
            "Between cases with none, some and all of their relevant passages, the judge's errors "
            f"{differ} ({format_p_value(errors.p)})."
        )
    rows = _before_after(_RISKS | _EFFECTS, link, link.corrected)
    if not any(after.measured for *_, after in rows):  # it was not evaluated with a calibration
        return None
    return CorrectedAssociation(rows, note)


def _note_sentence(note: Note | None) -> str:
    return as_sentence(note.message) if note else ""


def _before_after(
    names: dict[str, str], before: Risks, after: Risks | AdjustedRisks
) -> tuple[BeforeAfter, ...]:
    return tuple(
        (
            label,
            format_estimate(name, getattr(before, name)),
            format_estimate(name, getattr(after, name)),
        )
        for name, label in names.items()
    )


def _heterogeneity_note(test: TestResult) -> str:
    p, reason = test.p, test.reason
    if p is None:
        untested = (
            f"Whether the risk difference differs between the groups was not tested: {reason}."
        )
        return untested if reason else ""
    if p < _SIGNIFICANT:
        return (
            "The risk difference differs between the groups by more than chance would explain "
            f"({_test_name(p, test)}): read them one by one."
        )
    return (
        "The risk difference differs between the groups no more than chance would explain "
        f"({_test_name(p, test)})."
    )


def _left_out_note(left_out: LeftOut) -> str:
    if not left_out.strata:
        return ""
    return (
        "Groups without both none and all say nothing on the difference: "
        f"{pluralize(left_out.strata, 'group')} ({pluralize(left_out.cases, 'case')})."
    )


def _trend_note(test: TrendResult, bad: str) -> str:
    p, reason = test.p, test.reason
    if p is None:
        return f"A trend was not tested: {reason}." if reason else ""
    if p >= _SIGNIFICANT:
        return f"No trend beyond chance is seen ({_test_name(p, test)})."
    direction = "falls" if (test.slope or 0.0) < 0 else "rises"
    return (
        f"The share of {bad} answers {direction} as more of the relevant passages reach the prompt "
        f"({_test_name(p, test)})."
    )


def _test_name(p: float, test: TestResult) -> str:
    """The p-value with the name of its test."""
    method = test.method
    for plain, name in (("cochran-armitage", "Cochran-Armitage"), ("cochran's q", "Cochran's Q")):
        method = method.replace(plain, name)
    return f"{format_p_value(p)}, {method}" if method else format_p_value(p)


def contingency_tables(run: Run) -> tuple[CrossTable, ...]:
    """Return the table of unfaithful answers, and that of wrong ones if there is one."""
    summary = summary_of(run)
    link, correctness = summary.link, summary.link_correctness
    tables = (
        _contingency_table(run, link, "answer", ("unfaithful", "faithful"), "unfaithful faithful"),
        _contingency_table(run, correctness, "correct", ("wrong", "right"), "no yes"),
    )
    return tuple(table for table in tables if table is not None)


def _contingency_table(
    run: Run, association: RiskAssociation, key: str, columns: tuple[str, str], values: str
) -> CrossTable | None:
    """A table of the document; `values` are those of the filter `key` for bad and for good."""
    table = association.table
    numbers = number_cases(run.cases)

    exposures = case_exposures(run.outcomes, association.exposure)[1]
    numbers_at: dict[tuple[str, str], list[int]] = {}
    for link in run.outcomes:
        if link.case_id in exposures and link.case_id in numbers:
            said = link.answer if key == "answer" else CORRECT_VALUES[link.correct]
            at = exposures[link.case_id], said
            numbers_at.setdefault(at, []).append(numbers[link.case_id])

    def cell(count: int, row: str, value: str) -> LinkedCases:
        ids = numbers_at.get((row, value), [])
        known = count and len(ids) == count
        return LinkedCases(value, count, view_fragment(ids=sorted(ids)) if known else "")

    if not table.total:
        return None
    bad, good = values.split()
    return CrossTable(
        bad=columns[0].capitalize(),
        good=columns[1].capitalize(),
        rows=tuple(
            CrossRow(
                label.capitalize(),
                cell(getattr(table, name).bad, name, bad),
                cell(getattr(table, name).good, name, good),
                format_estimate("risk", getattr(association, f"risk_given_{name}")),
            )
            for name, label in _EXPOSURE_LABELS.items()
        ),
        left_out=table.left_out,
        numbers=tuple(
            (label, format_estimate(name, getattr(association, name)))
            for name, label in _EFFECTS.items()
        ),
        notes=tuple(
            filter(
                None,
                [
                    _trend_note(association.trend, columns[0]),
                    *map(_note_sentence, association.warnings),
                ],
            )
        ),
    )


_GOOD = "passed"


def read_replay(run: Run) -> ReplayView | None:
    """Read the results of replay; None if the run was not replayed."""
    replay = replay_of(run)
    if replay is None:
        return None
    reasons = Counter(case.reason for case in replay.skipped)
    return ReplayView(
        facts=_replay_facts(replay),
        causal=format_estimate("causal_fraction", replay.causal_fraction),
        causal_words=describe_causal_fraction(replay),
        owners=describe_owners(replay),
        arms=tuple((ARMS.get(row.arm, row.arm), row) for row in replay.arms if row.tried),
        sentences=tuple(
            _net_sentence(mode_label(mode), failure.net_fixed, failure.confirmed)
            for mode, failure in replay.failures.items()
            if failure.net_fixed.value is not None
        ),
        failures=tuple(
            (mode_label(mode), failure)
            for mode, failure in replay.failures.items()
            if failure.replayed
        ),
        shares=tuple(
            (words, format_estimate("share", share).text)
            for words, share in (
                ("Failed answers fixed by the missed passages", replay.fixed),
                ("Good answers broken by them", replay.broken),
                ("Good answers broken by irrelevant passages", replay.placebo_broken),
                ("Answers that turn with an irrelevant change (flaky)", replay.flaky),
            )
        ),
        skipped=tuple(
            f"{pluralize(count, 'case')}: {reason}" for reason, count in reasons.most_common()
        ),
    )


def describe_causal_fraction(replay: Replay) -> str:
    """Return the words after the number of the causal fraction."""
    words = "of failed answers are caused by missed passages"
    if little := describe_negligible(replay.causal_fraction):
        return f"{words}: {little}"
    return f"{words}{'; not enough data to tell' if _includes_zero(replay.causal_fraction) else ''}"


def describe_owners(replay: Replay) -> str:
    """Return how many replayed failures have a confirmed owner, and which; "" without failures."""
    found = replayed_owners(replay)
    if found is None:
        return ""
    calls = replay.calls_per_failure
    asked = f" The app answered {calls:.1f} times a failure." if calls is not None else ""
    return f"{as_sentence(describe_reason(found))}{asked}"


def describe_case_replays(run: Run) -> dict[str, tuple[str, ...]]:
    """Describe the replay of each case, by case id."""
    replay = replay_of(run)
    return {case.case_id: (_describe_replay(case),) for case in (replay.cases if replay else ())}


def _includes_zero(estimate: Estimate) -> bool:
    low, high = estimate.low, estimate.high
    return low is not None and high is not None and low <= 0 <= high


def _replay_facts(replay: Replay) -> str:
    calls, saved = replay.usage.calls, replay.usage.generations_kept
    parts = (
        replay.app and f"App {replay.app}",
        replay.judge and f"judge {replay.judge}",
        replay.sample and f"at most {pluralize(replay.sample, 'case')} a failure mode",
        "" if replay.seed is None else f"seed {replay.seed}",
        calls and f"{pluralize(calls, 'question')} to the judge",
        saved and f"{pluralize(saved, 'answer')} of the app reused",
    )
    facts = ", ".join(part for part in parts if part)
    sentences = [facts, *(note.message for note in replay.warnings)]
    return " ".join(as_sentence(text) for text in sentences if text)


def _net_sentence(label: str, net: Estimate, confirmed: Estimate) -> str:
    """Return such as "Retrieval miss: of 40 replayed cases the missed passage fixed ..."."""
    replayed = f"{label}, {pluralize(net.n, 'case')} replayed"
    if little := describe_negligible(net):
        return f"{replayed}: the missed passages fix {little} more than irrelevant ones do."
    if _includes_zero(net):
        return f"{replayed}: not enough data to tell whether the missed passages are the cause."
    effect = format_difference("net_fixed", net).brief
    more = ""
    if confirmed.value is not None:
        more = f" {round(confirmed.value * confirmed.n)} confirmed."
    return f"{replayed}: the missed passages fix {effect} more than irrelevant ones do.{more}"


def _describe_replay(case: ReplayedCase) -> str:
    outcomes = ", ".join(
        f"{ARMS.get(arm, arm)}: {outcome}" for arm, outcome in case.outcomes.items()
    )
    is_good = case.failure == _GOOD
    if case.confirmed:
        causes = [CAUSES.get(cause, cause) for cause in (case.cause or "").split("+")]
        verdict = f"Confirmed by replay, caused by {' together with '.join(causes)}"
    elif case.turned:
        verdict = (
            "Broken by the missed passage" if is_good else "Fixed by replay, and not confirmed"
        )
    else:
        verdict = "Not broken by the missed passage" if is_good else "Not confirmed by replay"
    notes = (
        "The answer is true by the missed passage; only its evidence was missing."
        if case.outcomes.get("observed") == "good" and not (is_good or case.confirmed)
        else "",
        "Flaky: an irrelevant change turns the answer, too." if case.flaky else "",
        as_sentence(case.note or ""),
    )
    text = f"{verdict}: {outcomes}." if outcomes else f"{verdict}."
    return " ".join(filter(None, (text, *notes)))
