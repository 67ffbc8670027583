"""The association of misses with bad answers: headline, failure modes, strata and corrections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from misslink.documents import (
    CorrectedRisks,
    RiskAssociation,
    Risks,
    Stratum,
    TestResult,
    summary_of,
)
from misslink.failure_modes import FAILURE_MODES, FAILURES
from misslink.render.format import FormattedEstimate, format_estimate, format_p_value, pluralize
from misslink.report.links import CORRECT_VALUES, number_cases, view_fragment
from misslink.types import Run

_EXPOSURE_LABELS = {"none": "none of them", "some": "some of them", "all": "all of them"}
_ADJUSTED_EFFECTS = {
    "risk_difference": "Risk difference",
    "risk_ratio": "Risk ratio",
    "attributable_fraction": "Attributable fraction",
}
_RISKS = {
    "risk_given_miss": "Unfaithful after a miss",
    "risk_given_hit": "Unfaithful after a hit",
}
_SIGNIFICANT = 0.05  # as everywhere in misslink


@dataclass(frozen=True)
class StratumRow:
    """One group of cases: bad answers and all answers after a miss and after a hit."""

    name: str
    miss: tuple[int, int]
    hit: tuple[int, int]
    risks: tuple[FormattedEstimate, FormattedEstimate]
    difference: FormattedEstimate
    ratio: FormattedEstimate


@dataclass(frozen=True)
class BeforeAfter:
    """A number as counted, and after adjustment or correction."""

    label: str
    before: FormattedEstimate
    after: FormattedEstimate


@dataclass(frozen=True)
class AdjustedAssociation:
    """The association within groups and pooled over them; ``warning`` is "" where they agree."""

    bad: str
    by: str
    strata: tuple[StratumRow, ...]
    pooled: tuple[BeforeAfter, ...]
    notes: tuple[str, ...]
    warning: str


@dataclass(frozen=True)
class DoseResponse:
    """The risk of a bad answer by how many of the needed passages reached the prompt."""

    bad: str
    groups: tuple[tuple[str, FormattedEstimate], ...]
    trend: str


@dataclass(frozen=True)
class CorrectedAssociation:
    """The numbers corrected for the judge's measured errors.

    ``note`` says how many of these cases the headline leaves out; "" if none.
    """

    rows: tuple[BeforeAfter, ...]
    sensitivity: FormattedEstimate
    specificity: FormattedEstimate
    warning: str
    note: str

    @property
    def brief(self) -> str:
        """The corrected attributable fraction in one line; "" if it is not known."""
        fraction = next(
            row for row in self.rows if row.label == _ADJUSTED_EFFECTS["attributable_fraction"]
        )
        if not fraction.after.measured:
            return ""
        # The share as judged of the same cases is not that of the headline where some are left out.
        before = f" (of the same cases as judged: {fraction.before.brief})" if self.note else ""
        return (
            "That is by the judge's calls. With the errors taken out that people found in them the "
            f"share is {fraction.after.brief}{before}."
        )


def adjust_associations(run: Run) -> tuple[AdjustedAssociation, ...]:
    """Read the association within categories, for unfaithful and for wrong answers."""
    tables = []
    for association, bad in _associations(run):
        adjusted = association.adjusted
        strata = tuple(map(_stratum_row, adjusted.strata))
        if not strata:
            continue
        notes = (_heterogeneity_note(adjusted.heterogeneity), _left_out_note(adjusted.left_out))
        warning = adjusted.warning
        if warning:  # only groups with both misses and hits count
            sizes = [(stratum.miss[1], stratum.hit[1]) for stratum in strata]
            used = sum(misses + hits for misses, hits in sizes if misses and hits)
            total = pluralize(sum(map(sum, sizes)), "case")
            warning += f" The adjusted numbers rest on {used:,} of {total}."
        tables.append(
            AdjustedAssociation(
                bad=bad,
                by=adjusted.by or "group",
                strata=strata,
                pooled=_before_after(_ADJUSTED_EFFECTS, association, adjusted),
                notes=tuple(filter(None, notes)),
                warning=warning,
            )
        )
    return tuple(tables)


def dose_responses(run: Run) -> tuple[DoseResponse, ...]:
    """Read the dose-response tables, for unfaithful and for wrong answers."""
    tables = []
    for association, bad in _associations(run):
        groups = association.dose_response.groups
        risks = [group.risk.value for group in groups if group.risk.value is not None]
        if risks:
            labelled = tuple(
                (
                    _EXPOSURE_LABELS.get(group.recall, group.recall),
                    format_estimate("risk", group.risk),
                )
                for group in groups
            )
            trend = _trend_note(association.dose_response.trend, bad, risks)
            tables.append(DoseResponse(bad, labelled, trend))
    return tuple(tables)


def correct_association(run: Run) -> CorrectedAssociation | None:
    """Read the numbers corrected for the judge's errors; None if no labels measured these."""
    corrected = summary_of(run).link.corrected
    if corrected is None:
        return None
    return CorrectedAssociation(
        # Both versions count the same cases; the link's own numbers leave the uncertain ones out.
        rows=_before_after(_RISKS | _ADJUSTED_EFFECTS, corrected.judged, corrected),
        sensitivity=format_estimate("sensitivity", corrected.sensitivity),
        specificity=format_estimate("specificity", corrected.specificity),
        warning=corrected.warning,
        note=_uncertainty_note(corrected),
    )


def _uncertainty_note(corrected: CorrectedRisks) -> str:
    """Say why the numbers before the correction are not those of the headline."""
    uncertain, counted = corrected.uncertain, corrected.table.total
    if not uncertain:
        return ""
    among = (
        f"{pluralize(counted, 'case')}, {uncertain:,} "
        if counted
        else (f"cases here, {uncertain:,} ")
    )
    return (
        f"Of the {among}{'has a verdict' if uncertain == 1 else 'have verdicts'} too uncertain for "
        "the link: both columns count them as the judge calls them, the table leaves them out."
    )


def _associations(run: Run) -> tuple[tuple[RiskAssociation, str], ...]:
    """The two associations, and what a bad answer is in each."""
    link = summary_of(run).link
    return (link, "unfaithful"), (link.wrong, "wrong")


def _before_after(names: dict[str, str], before: Risks, after: Risks) -> tuple[BeforeAfter, ...]:
    return tuple(
        BeforeAfter(
            label,
            format_estimate(name, getattr(before, name)),
            format_estimate(name, getattr(after, name)),
        )
        for name, label in names.items()
    )


def _stratum_row(row: Stratum) -> StratumRow:
    table = row.table
    return StratumRow(
        name=row.name or "none given",
        miss=(table.miss_bad, table.miss_bad + table.miss_good),
        hit=(table.hit_bad, table.hit_bad + table.hit_good),
        risks=_risk_pair(row),
        difference=format_estimate("risk_difference", row.risk_difference),
        ratio=format_estimate("risk_ratio", row.risk_ratio),
    )


def _risk_pair(risks: Risks) -> tuple[FormattedEstimate, FormattedEstimate]:
    """The risk after a miss and after a hit."""
    return (
        format_estimate("risk_given_miss", risks.risk_given_miss),
        format_estimate("risk_given_hit", risks.risk_given_hit),
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


def _left_out_note(left_out: Mapping[str, int]) -> str:
    groups, cases = left_out.get("strata", 0), left_out.get("cases", 0)
    if not groups:
        return ""
    return (
        "Without both misses and hits, and so without a word on the difference: "
        f"{pluralize(groups, 'group')} ({pluralize(cases, 'case')})."
    )


def _trend_note(test: TestResult, bad: str, risks: list[float]) -> str:
    p, reason = test.p, test.reason
    if p is None:
        return f"A trend was not tested: {reason}." if reason else ""
    if p >= _SIGNIFICANT:
        return f"No trend beyond chance is seen ({_test_name(p, test)})."
    # The test is of the slope over all cases. The ends, all that an older run has, may be of few
    # cases and contradict it.
    falls = risks[0] > risks[-1] if test.slope is None else test.slope < 0
    return (
        f"The share of {bad} answers {'falls' if falls else 'rises'} as more of what was needed "
        f"arrives ({_test_name(p, test)})."
    )


def _test_name(p: float, test: TestResult) -> str:
    """The p-value with the name of its test."""
    method = test.method
    for plain, name in (("cochran-armitage", "Cochran-Armitage"), ("cochran's q", "Cochran's Q")):
        method = method.replace(plain, name)
    return f"{format_p_value(p)}, {method}" if method else format_p_value(p)


# Row of the 2 x 2 table by outcome of retrieval; cases with another outcome are left out.
TABLE_ROWS = {"miss": "miss", "partial": "hit", "hit": "hit"}
_EFFECTS = {
    "attributable_fraction": "Attributable fraction",
    "risk_difference": "Risk difference",
    "risk_ratio": "Risk ratio",
}


@dataclass(frozen=True)
class ContingencyCell:
    """How many cases a cell counts, and the view of them; "" if there is none."""

    count: int
    fragment: str


@dataclass(frozen=True)
class ContingencyTable:
    """A 2 x 2 table: miss or hit against a bad or a good answer, with the risks of each row."""

    bad: str
    good: str
    miss: tuple[ContingencyCell, ContingencyCell]
    hit: tuple[ContingencyCell, ContingencyCell]
    left_out: int
    risks: tuple[FormattedEstimate, FormattedEstimate]
    numbers: tuple[tuple[str, FormattedEstimate], ...]


def contingency_tables(run: Run) -> tuple[ContingencyTable, ...]:
    """Return the 2 x 2 table of unfaithful answers, and that of wrong ones if there is one."""
    link = summary_of(run).link
    tables = (
        _contingency_table(run, link, "answer", ("unfaithful", "faithful"), "unfaithful faithful"),
        _contingency_table(run, link.wrong, "correct", ("wrong", "right"), "no yes"),
    )
    return tuple(table for table in tables if table is not None)


def _contingency_table(
    run: Run, association: RiskAssociation, key: str, columns: tuple[str, str], values: str
) -> ContingencyTable | None:
    """A table of the document; `values` are those of the filter `key` for bad and for good."""
    table = association.table
    numbers = number_cases(run.cases)

    def cell(count: int, row: str, value: str) -> ContingencyCell:
        """A cell with its view: by filters if these say it exactly, else by the cases' numbers."""
        outcomes = {
            numbers[link.case_id]: link.retrieval
            for link in run.links
            if (link.answer if key == "answer" else CORRECT_VALUES[link.correct]) == value
            and TABLE_ROWS.get(link.retrieval) == row
            and link.case_id in numbers
        }
        if not count or len(outcomes) != count:  # the summary is of other links
            return ContingencyCell(count, "")
        retrievals = set(outcomes.values())
        if len(retrievals) == 1:
            return ContingencyCell(count, view_fragment(retrieval=retrievals.pop(), **{key: value}))
        return ContingencyCell(count, view_fragment(ids=sorted(outcomes)))

    if not table.total:
        return None
    bad, good = values.split()
    return ContingencyTable(
        bad=columns[0].capitalize(),
        good=columns[1].capitalize(),
        miss=(cell(table.miss_bad, "miss", bad), cell(table.miss_good, "miss", good)),
        hit=(cell(table.hit_bad, "hit", bad), cell(table.hit_good, "hit", good)),
        left_out=table.left_out,
        risks=_risk_pair(association),
        numbers=tuple(
            (label, format_estimate(name, getattr(association, name)))
            for name, label in _EFFECTS.items()
        ),
    )


@dataclass(frozen=True)
class FailureModeRow:
    """A failure mode, how often it was the primary one, and the view of its cases."""

    key: str
    label: str
    owner: str
    count: int
    share: FormattedEstimate
    meaning: str
    action: str
    failure: bool
    fragment: str


def failure_mode_rows(run: Run) -> tuple[FailureModeRow, ...]:
    """Return every failure mode that occurs, the worst first, with its share of linked cases."""
    from misslink.stats import proportion  # may import scipy

    counts = Counter(link.failure for link in run.links if link.failure)
    return tuple(
        FailureModeRow(
            key=key,
            label=mode.label,
            owner=(mode.owner or "").replace("_", " ") if mode.failed else "",
            count=counts[key],
            share=format_estimate("share", proportion(counts[key], counts.total())),
            meaning=mode.meaning,
            action=mode.action,
            failure=key in FAILURES,
            fragment=view_fragment(failure=key),
        )
        for key, mode in FAILURE_MODES.items()
        if counts[key]
    )
