"""What stands beside the crude link: within groups of cases, by recall, and corrected.

Three questions of whoever doubts the headline: is it only the mix of categories; does the risk
fall as more of the needed passages arrive; and what is left when the judge's known errors are
taken out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report.documents import (
    count_in,
    estimate_in,
    mapping_in,
    number_in,
    rows_in,
    text_in,
)
from misslink.report.wording import Shown, p_value, plural, shown
from misslink.types import Run

__all__ = ["Adjusted", "Compared", "Corrected", "Dose", "Stratum", "adjusted", "corrected", "doses"]

_KINDS = (("unfaithful", "faithful"), ("wrong", "right"))
_RECALLS = {
    "none": "none of them",
    "some": "some of them",
    "all": "all of them",
}


@dataclass(frozen=True)
class Stratum:
    """One group of cases: bad answers and all answers after a miss and after a hit."""

    name: str
    miss: tuple[int, int]
    hit: tuple[int, int]
    risks: tuple[Shown, Shown]
    difference: Shown
    ratio: Shown


@dataclass(frozen=True)
class Compared:
    """A number in two versions: as counted, and after what was done to it."""

    label: str
    before: Shown
    after: Shown


@dataclass(frozen=True)
class Adjusted:
    """The link within groups, and pooled over them; ``warning`` is "" where they agree.

    Where they do not, it says on how many cases the pooled numbers rest. ``notes`` say whether the
    difference is another one in each group by more than chance, and which groups say nothing.
    """

    bad: str
    by: str
    strata: tuple[Stratum, ...]
    pooled: tuple[Compared, ...]
    notes: tuple[str, ...]
    warning: str


@dataclass(frozen=True)
class Dose:
    """The risk of a bad answer by how many of the needed passages reached the prompt."""

    bad: str
    groups: tuple[tuple[str, Shown], ...]
    trend: str


@dataclass(frozen=True)
class Corrected:
    """The numbers with the judge's measured error taken out.

    ``note`` says of how many of these cases the link knows no answer; "" where there is none.
    """

    rows: tuple[Compared, ...]
    sensitivity: Shown
    specificity: Shown
    warning: str
    note: str

    @property
    def brief(self) -> str:
        """The corrected attributable share in one line, "" where it is not known.

        The share as judged of the same cases stands beside it where it is not that of the headline.
        """
        of = {row.label: row for row in self.rows}["Attributable share"]
        if not of.after.measured:
            return ""
        before = f" (of the same cases as judged: {of.before.brief})" if self.note else ""
        return (
            "That is by the judge's calls. With the errors taken out that people found in them the "
            f"share is {of.after.brief}{before}."
        )


def adjusted(run: Run) -> tuple[Adjusted, ...]:
    """The link within categories, for unfaithful and for wrong answers; none in older runs."""
    found = (_adjusted(link, bad, good) for link, bad, good in _links(run))
    return tuple(one for one in found if one is not None)


def doses(run: Run) -> tuple[Dose, ...]:
    """Dose and response, for unfaithful and for wrong answers; none in older runs."""
    found = []
    for link, bad, _ in _links(run):
        document = mapping_in(link.get("dose_response"))
        groups = [
            (text_in(group, "recall"), estimate_in(group, "risk"))
            for group in rows_in(document.get("groups"))
        ]
        risks = tuple(risk.value for _, risk in groups)
        if any(risk is not None for risk in risks):
            found.append(
                Dose(
                    bad=bad,
                    groups=tuple(
                        (_RECALLS.get(recall, recall), shown("risk", risk))
                        for recall, risk in groups
                    ),
                    trend=_trend(mapping_in(document.get("trend")), bad, risks),
                )
            )
    return tuple(found)


def corrected(run: Run) -> Corrected | None:
    """The numbers corrected for the judge's error; None where no labels measured it."""
    link = mapping_in(run.summary.get("link"))
    document = mapping_in(link.get("corrected"))
    if not document:
        return None
    names = (
        ("Unfaithful after a miss", "risk_given_miss"),
        ("Unfaithful after a hit", "risk_given_hit"),
        ("Risk difference", "risk_difference"),
        ("Risk ratio", "risk_ratio"),
        ("Attributable share", "attributable_fraction"),
    )
    return Corrected(
        # Both versions count the same cases; the link's own numbers leave the uncertain ones out.
        rows=tuple(
            _compared(label, name, mapping_in(document.get("judged")) or link, document)
            for label, name in names
        ),
        sensitivity=shown("sensitivity", estimate_in(document, "sensitivity")),
        specificity=shown("specificity", estimate_in(document, "specificity")),
        warning=text_in(document, "warning"),
        note=_uncertain(document),
    )


def _uncertain(document: Mapping[str, JsonValue]) -> str:
    """Say why the numbers before the correction are not those of the headline."""
    many = count_in(document, "uncertain")
    if not many:
        return ""
    table = mapping_in(document.get("table"))
    placed = sum(count_in(table, name) for name in table if name != "left_out")
    among = f"{plural(placed, 'case')}, {many:,} " if placed else f"cases here, {many:,} "
    return (
        f"Of the {among}{'has a verdict' if many == 1 else 'have verdicts'} too uncertain for the "
        "link: both columns count them as the judge calls them, the headline and its table leave "
        "them out."
    )


def _links(run: Run) -> tuple[tuple[Mapping[str, JsonValue], str, str], ...]:
    link = mapping_in(run.summary.get("link"))
    documents = (link, mapping_in(link.get("wrong")))
    return tuple(
        (document, bad, good) for document, (bad, good) in zip(documents, _KINDS, strict=True)
    )


def _adjusted(link: Mapping[str, JsonValue], bad: str, good: str) -> Adjusted | None:
    document = mapping_in(link.get("adjusted"))
    strata = tuple(_stratum(row, bad, good) for row in rows_in(document.get("strata")))
    if not strata:
        return None
    names = (
        ("Risk difference", "risk_difference"),
        ("Risk ratio", "risk_ratio"),
        ("Attributable share", "attributable_fraction"),
    )
    warning = text_in(document, "warning")
    return Adjusted(
        bad=bad,
        by=text_in(document, "by") or "group",
        strata=strata,
        pooled=tuple(_compared(label, name, link, document) for label, name in names),
        notes=tuple(
            note
            for note in (
                _heterogeneity(mapping_in(document.get("heterogeneity"))),
                _silent(mapping_in(document.get("left_out"))),
            )
            if note
        ),
        warning=f"{warning} {_basis(strata)}" if warning else "",
    )


def _basis(strata: tuple[Stratum, ...]) -> str:
    """On how many cases the pooled numbers rest: those of groups with both misses and hits."""
    sizes = [(one.miss[1], one.hit[1]) for one in strata]
    used = sum(misses + hits for misses, hits in sizes if misses and hits)
    return f"The adjusted numbers rest on {used:,} of {plural(sum(map(sum, sizes)), 'case')}."


def _compared(
    label: str, name: str, before: Mapping[str, JsonValue], after: Mapping[str, JsonValue]
) -> Compared:
    return Compared(
        label, shown(name, estimate_in(before, name)), shown(name, estimate_in(after, name))
    )


def _stratum(row: Mapping[str, JsonValue], bad: str, good: str) -> Stratum:
    table = mapping_in(row.get("table"))

    def counts(outcome: str) -> tuple[int, int]:
        many = count_in(table, f"{outcome}_{bad}")
        return many, many + count_in(table, f"{outcome}_{good}")

    return Stratum(
        name=text_in(row, "name") or "none given",
        miss=counts("miss"),
        hit=counts("hit"),
        risks=(
            shown("risk", estimate_in(row, "risk_given_miss")),
            shown("risk", estimate_in(row, "risk_given_hit")),
        ),
        difference=shown("risk_difference", estimate_in(row, "risk_difference")),
        ratio=shown("risk_ratio", estimate_in(row, "risk_ratio")),
    )


_SIGNIFICANT = 0.05  # as everywhere in misslink


def _heterogeneity(test: Mapping[str, JsonValue]) -> str:
    p = number_in(test, "p")
    if p is None:
        reason = text_in(test, "reason")
        if not reason:
            return ""
        return f"Whether the risk difference differs between the groups was not tested: {reason}."
    how = _how(p, test)
    if p < _SIGNIFICANT:
        return (
            "The risk difference differs between the groups by more than chance would explain "
            f"({how}): read them one by one."
        )
    return (
        f"The risk difference differs between the groups no more than chance would explain ({how})."
    )


def _silent(left_out: Mapping[str, JsonValue]) -> str:
    groups, cases = count_in(left_out, "strata"), count_in(left_out, "cases")
    if not groups:
        return ""
    return (
        "Without both misses and hits, and so without a word on the difference: "
        f"{plural(groups, 'group')} ({plural(cases, 'case')})."
    )


def _trend(test: Mapping[str, JsonValue], bad: str, risks: tuple[float | None, ...]) -> str:
    p = number_in(test, "p")
    if p is None:
        reason = text_in(test, "reason")
        return f"A trend was not tested: {reason}." if reason else ""
    how = _how(p, test)
    known = [risk for risk in risks if risk is not None]
    if p >= _SIGNIFICANT or not known:
        return f"No trend beyond chance is seen ({how})."
    slope = number_in(test, "slope")
    # What was tested is the slope over all cases; the ends, all that an older run has, may be of
    # few cases and contradict it.
    falls = known[0] > known[-1] if slope is None else slope < 0
    turns = "falls" if falls else "rises"
    return f"The share of {bad} answers {turns} as more of what was needed arrives ({how})."


def _how(p: float, test: Mapping[str, JsonValue]) -> str:
    """The p-value with its test, which bears the names of people."""
    method = text_in(test, "method")
    for plain, name in (("cochran-armitage", "Cochran-Armitage"), ("cochran's q", "Cochran's Q")):
        method = method.replace(plain, name)
    return f"{p_value(p)}, {method}" if method else p_value(p)
