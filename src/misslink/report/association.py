"""The association of misses with bad answers: headline, failure modes, strata and corrections."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from misslink.failure_modes import FAILURE_MODES, FAILURES
from misslink.render.format import FormattedEstimate, format_estimate, format_p_value, pluralize
from misslink.render.json_fields import JsonFields
from misslink.report.cases import rank_cases
from misslink.report.links import CORRECT_VALUES, case_fragment, number_cases, view_fragment
from misslink.report.overview import no_judge_reason
from misslink.types import Estimate, Run

_OUTCOMES = (("unfaithful", "faithful"), ("wrong", "right"))
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
    for link, bad, good in _associations(run):
        document = link.object("adjusted")
        strata = tuple(_stratum_row(row, bad, good) for row in document.rows("strata"))
        if not strata:
            continue
        notes = (
            _heterogeneity_note(document.object("heterogeneity")),
            _left_out_note(document.object("left_out")),
        )
        warning = document.text("warning")
        if warning:  # only groups with both misses and hits count
            sizes = [(stratum.miss[1], stratum.hit[1]) for stratum in strata]
            used = sum(misses + hits for misses, hits in sizes if misses and hits)
            total = pluralize(sum(map(sum, sizes)), "case")
            warning += f" The adjusted numbers rest on {used:,} of {total}."
        tables.append(
            AdjustedAssociation(
                bad=bad,
                by=document.text("by") or "group",
                strata=strata,
                pooled=_before_after(_ADJUSTED_EFFECTS, link, document),
                notes=tuple(filter(None, notes)),
                warning=warning,
            )
        )
    return tuple(tables)


def dose_responses(run: Run) -> tuple[DoseResponse, ...]:
    """Read the dose-response tables, for unfaithful and for wrong answers."""
    tables = []
    for link, bad, _ in _associations(run):
        document = link.object("dose_response")
        groups = document.rows("groups")
        risks = [risk for group in groups if (risk := group.estimate("risk").value) is not None]
        if risks:
            labelled = tuple(
                (
                    _EXPOSURE_LABELS.get(group.text("recall"), group.text("recall")),
                    group.formatted("risk"),
                )
                for group in groups
            )
            trend = _trend_note(document.object("trend"), bad, risks)
            tables.append(DoseResponse(bad, labelled, trend))
    return tuple(tables)


def correct_association(run: Run) -> CorrectedAssociation | None:
    """Read the numbers corrected for the judge's errors; None if no labels measured these."""
    link = JsonFields(run.summary).object("link")
    document = link.object("corrected")
    if not document:
        return None
    return CorrectedAssociation(
        # Both versions count the same cases; the link's own numbers leave the uncertain ones out.
        rows=_before_after(_RISKS | _ADJUSTED_EFFECTS, document.object("judged") or link, document),
        sensitivity=document.formatted("sensitivity"),
        specificity=document.formatted("specificity"),
        warning=document.text("warning"),
        note=_uncertainty_note(document),
    )


def _uncertainty_note(document: JsonFields) -> str:
    """Say why the numbers before the correction are not those of the headline."""
    uncertain = document.count("uncertain")
    if not uncertain:
        return ""
    table = document.object("table")
    counted = sum(table.count(name) for name in table if name != "left_out")
    among = (
        f"{pluralize(counted, 'case')}, {uncertain:,} "
        if counted
        else (f"cases here, {uncertain:,} ")
    )
    return (
        f"Of the {among}{'has a verdict' if uncertain == 1 else 'have verdicts'} too uncertain for "
        "the link: both columns count them as the judge calls them, the headline and its table "
        "leave them out."
    )


def _associations(run: Run) -> tuple[tuple[JsonFields, str, str], ...]:
    link = JsonFields(run.summary).object("link")
    documents = (link, link.object("wrong"))
    return tuple(
        (document, bad, good) for document, (bad, good) in zip(documents, _OUTCOMES, strict=True)
    )


def _before_after(
    names: dict[str, str], before: JsonFields, after: JsonFields
) -> tuple[BeforeAfter, ...]:
    return tuple(
        BeforeAfter(label, before.formatted(name), after.formatted(name))
        for name, label in names.items()
    )


def _stratum_row(row: JsonFields, bad: str, good: str) -> StratumRow:
    table = row.object("table")

    def counts(outcome: str) -> tuple[int, int]:
        failed = table.count(f"{outcome}_{bad}")
        return failed, failed + table.count(f"{outcome}_{good}")

    return StratumRow(
        name=row.text("name") or "none given",
        miss=counts("miss"),
        hit=counts("hit"),
        risks=(row.formatted("risk_given_miss"), row.formatted("risk_given_hit")),
        difference=row.formatted("risk_difference"),
        ratio=row.formatted("risk_ratio"),
    )


def _heterogeneity_note(test: JsonFields) -> str:
    p, reason = test.number("p"), test.text("reason")
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


def _left_out_note(left_out: JsonFields) -> str:
    groups, cases = left_out.count("strata"), left_out.count("cases")
    if not groups:
        return ""
    return (
        "Without both misses and hits, and so without a word on the difference: "
        f"{pluralize(groups, 'group')} ({pluralize(cases, 'case')})."
    )


def _trend_note(test: JsonFields, bad: str, risks: list[float]) -> str:
    p, reason = test.number("p"), test.text("reason")
    if p is None:
        return f"A trend was not tested: {reason}." if reason else ""
    if p >= _SIGNIFICANT:
        return f"No trend beyond chance is seen ({_test_name(p, test)})."
    slope = test.number("slope")
    # The test is of the slope over all cases. The ends, all that an older run has, may be of few
    # cases and contradict it.
    falls = risks[0] > risks[-1] if slope is None else slope < 0
    return (
        f"The share of {bad} answers {'falls' if falls else 'rises'} as more of what was needed "
        f"arrives ({_test_name(p, test)})."
    )


def _test_name(p: float, test: JsonFields) -> str:
    """The p-value with the name of its test."""
    method = test.text("method")
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
_FEW_CASES = 30  # with fewer bad answers the interval is so wide that the headline says so
_SEARCHED_QUESTIONS = "questions with a passage to find"


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
    link = JsonFields(run.summary).object("link")
    tables = (
        _contingency_table(run, link, "answer", ("unfaithful", "faithful"), "unfaithful faithful"),
        _contingency_table(run, link.object("wrong"), "correct", ("wrong", "right"), "no yes"),
    )
    return tuple(table for table in tables if table is not None)


def _contingency_table(
    run: Run, link: JsonFields, key: str, columns: tuple[str, str], values: str
) -> ContingencyTable | None:
    """A table of the document; `values` are those of the filter `key` for bad and for good."""
    table = link.object("table")
    numbers = number_cases(run.cases)

    def cell(row: str, column: str, value: str) -> ContingencyCell:
        """A cell with its view: by filters if these say it exactly, else by the cases' numbers."""
        count = table.count(f"{row}_{column}")
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

    (miss_bad, miss_good), (hit_bad, hit_good) = (
        [cell(row, *pair) for pair in zip(columns, values.split(), strict=True)]
        for row in ("miss", "hit")
    )
    if not (miss_bad.count or miss_good.count or hit_bad.count or hit_good.count):
        return None
    bad, good = columns
    return ContingencyTable(
        bad=bad.capitalize(),
        good=good.capitalize(),
        miss=(miss_bad, miss_good),
        hit=(hit_bad, hit_good),
        left_out=table.count("left_out"),
        risks=(link.formatted("risk_given_miss"), link.formatted("risk_given_hit")),
        numbers=tuple((label, link.formatted(name)) for name, label in _EFFECTS.items()),
    )


@dataclass(frozen=True)
class Headline:
    """The association in plain words: ``share`` is its number or "", ``words`` the rest of it.

    ``risks`` is what the sentence rests on and ``caution`` how far to take it, each on one line;
    ``paragraphs`` are both in full. ``fragment`` is the view of the unfaithful answers after a miss,
    the worst of them open; "" if there is none. ``n`` is how many cases the share rests on.
    """

    share: str
    interval: str
    words: str
    risks: str
    caution: str
    paragraphs: tuple[str, ...]
    fragment: str = ""
    n: int = 0


@dataclass(frozen=True)
class FailureModeRow:
    """A failure mode, how often it was the primary one, and the view of its cases."""

    key: str
    label: str
    count: int
    share: FormattedEstimate
    meaning: str
    action: str
    failure: bool
    fragment: str


def read_headline(run: Run) -> Headline:
    """State the association in one sentence, then what it rests on."""
    no_judge = no_judge_reason(run)
    summary = JsonFields(run.summary)
    link = summary.object("link")
    fraction = summary.estimate(
        "link", "attributable_fraction", why=no_judge or "this run holds no links"
    )
    left_out = _left_out_sentence(run)
    risks, risk_summary = _risk_sentences(link)
    if fraction.value is None:
        words = "Whether misses and unfaithful answers go together is not measured"
        why = f"The reason: {no_judge or fraction.reason}."
        short = _join_sentences(risk_summary or why, left_out)
        return Headline("", "", words, short, "", (_join_sentences(why, left_out), *risks))
    table = link.object("table")
    after_miss, after_hit = table.count("miss_unfaithful"), table.count("hit_unfaithful")
    total = after_miss + after_hit
    positive = fraction.value > 0
    counted = ""
    if positive and total:  # numerator and denominator; not the quotient if hits failed as well
        beyond = "; the share counts those beyond the rate after hits" if after_hit else ""
        counted = f"{after_miss:,} of {total:,} came after a miss{beyond}."
    few = ""
    if table:
        few = pluralize(total, "unfaithful answer") if total < _FEW_CASES else ""
    elif fraction.n < _FEW_CASES:
        few = pluralize(fraction.n, "case")
    short = _join_sentences(counted if total < _FEW_CASES else "", risk_summary, left_out)
    basis = _join_sentences(counted, *risks, left_out)
    paragraphs = (
        *filter(None, [basis]),
        _caution_paragraph(fraction, link, few),
        *_wrong_sentences(link),
    )
    caution = _join_sentences(
        "This is association, not cause.",
        "Its interval includes 0: no link is established." if _includes_zero(fraction) else "",
        f"Only {few}: a hint." if few else "",
    )
    if not positive:
        words = "Unfaithful answers are no more frequent after a miss than after a hit"
        return Headline("", "", words, short, caution, paragraphs)
    number = format_estimate("attributable_fraction", fraction)
    searched = f" to {_SEARCHED_QUESTIONS}" if left_out else ""
    words = f"of unfaithful answers{searched} go with a retrieval miss"
    return Headline(
        number.value,
        number.interval,
        words,
        short,
        caution,
        paragraphs,
        _miss_fragment(run),
        number.n,
    )


def failure_mode_rows(run: Run) -> tuple[FailureModeRow, ...]:
    """Return every failure mode that occurs, the worst first, with its share of linked cases."""
    from misslink.stats import proportion  # may import scipy

    counts: Counter[str] = Counter(link.failure for link in run.links)
    return tuple(
        FailureModeRow(
            key=key,
            label=mode.label,
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


def _left_out_sentence(run: Run) -> str:
    """The unfaithful answers that the share does not count."""
    other_counts: Counter[str] = Counter(
        link.retrieval
        for link in run.links
        if link.answer == "unfaithful" and link.retrieval not in TABLE_ROWS
    )
    reasons = {"none_needed": "with no passage to find", "unknown": "whose retrieval was not seen"}
    parts = [
        f"{other_counts[key]:,} {reason}" for key, reason in reasons.items() if other_counts[key]
    ]
    return f"Unfaithful answers left out: {', '.join(parts)}." if parts else ""


def _miss_fragment(run: Run) -> str:
    """The view of what the share counts, with its first case open."""
    bad = {
        link.case_id
        for link in run.links
        if link.retrieval == "miss" and link.answer == "unfaithful"
    }
    first = next((number for number in rank_cases(run) if run.cases[number - 1].id in bad), None)
    if first is None:
        return ""
    return f"{view_fragment(retrieval='miss', answer='unfaithful')}&{case_fragment(first)}"


def _join_sentences(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _risk_sentences(link: JsonFields) -> tuple[tuple[str, ...], str]:
    """The risks after a miss and after a hit, in full and in short."""
    miss, hit = link.formatted("risk_given_miss"), link.formatted("risk_given_hit")
    if not (miss.measured and hit.measured):
        return (), ""
    full = (
        f"After a miss, when no needed passage reached the prompt, {miss.brief} of answers were "
        f"unfaithful ({pluralize(miss.n, 'case')}); after a hit it was {hit.brief} "
        f"({pluralize(hit.n, 'case')})."
    )
    difference, ratio = link.formatted("risk_difference"), link.formatted("risk_ratio")
    if difference.measured:
        full += f" The difference is {difference.brief}"
        full += f", the ratio {ratio.brief}." if ratio.measured else "."
    short = (
        f"After a miss {miss.brief} of answers were unfaithful (n = {miss.n:,}), "
        f"after a hit {hit.brief} (n = {hit.n:,})."
    )
    return (full,), short


def _includes_zero(fraction: Estimate) -> bool:
    return (
        fraction.low is not None
        and fraction.high is not None
        and (fraction.low <= 0 <= fraction.high)
    )


def _caution_paragraph(fraction: Estimate, link: JsonFields, few: str) -> str:
    if fraction.value is not None and fraction.value > 0:
        meaning = (
            "The share is the part of unfaithful answers above what the rate after hits would "
            "give; it is what better retrieval could save at most if the link is causal."
        )
    else:
        brief = format_estimate("attributable_fraction", fraction).brief
        meaning = (
            f"The attributable fraction, {brief}, is not above 0: by these cases better retrieval "
            "would not make answers more faithful."
        )
    uncertain = link.object("corrected").count("uncertain")
    return _join_sentences(
        "This is association, not cause: what is hard to retrieve can also be hard to answer.",
        meaning,
        "The interval includes 0: these cases alone do not establish a link."
        if _includes_zero(fraction)
        else "",
        f"Only {few} could be used: take it as a hint." if few else "",
        f"Left out: {pluralize(uncertain, 'more case')} whose verdict is too uncertain by the "
        "judge's known error."
        if uncertain
        else "",
    )


def _wrong_sentences(link: JsonFields) -> tuple[str, ...]:
    fraction = link.estimate("wrong", "attributable_fraction")
    brief = format_estimate("attributable_fraction", fraction).brief
    if fraction.value is None:
        return ()
    sentence = (
        "Answers that are wrong by the reference are no more frequent after a miss than after a hit "
        f"(attributable fraction {brief})."
    )
    if fraction.value > 0:
        sentence = (
            f"Of answers to {_SEARCHED_QUESTIONS} that are wrong by the reference, {brief} go with "
            "a retrieval miss."
        )
    return (sentence,)
