"""Labels replaced by what was proposed for them, each of them marked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from misslink.goldset.checking.finding import Finding, Proposal
from misslink.types import Case

__all__ = ["TAG", "accepted", "fixed"]

TAG = "rematched"


def accepted(findings: Iterable[Finding], above: float) -> list[Proposal]:
    """The proposals that may be taken without a person, at most one for each label.

    Parameters
    ----------
    findings : iterable of Finding
    above : float
        The least score, in [0, 1]. What has other numbers, signs or negations is never taken.
    """
    found: dict[tuple[str, str, str], Proposal] = {}
    for proposal in (one for finding in findings for one in finding.proposals):
        if proposal.meaning is None and proposal.score >= above:
            found.setdefault((proposal.case_id, proposal.field, proposal.before), proposal)
    return list(found.values())


def fixed(cases: Iterable[Case], proposals: Sequence[Proposal]) -> list[Case]:
    """Return the cases with every proposal in place of its label, at the same grade.

    A case that was changed has the tag 'rematched', which says what of it was: 'evidence',
    'relevant', or both. Two labels that become one have the better grade.
    """
    by_case: dict[str, list[Proposal]] = {}
    for proposal in proposals:
        by_case.setdefault(proposal.case_id, []).append(proposal)
    return [_fixed(case, by_case[case.id]) if case.id in by_case else case for case in cases]


def _fixed(case: Case, proposals: Sequence[Proposal]) -> Case:
    texts = {one.before: one.after for one in proposals if one.field == "evidence"}
    ids = {one.before: one.after for one in proposals if one.field == "relevant"}
    marks = [*filter(None, [case.tags.get(TAG)]), *sorted({one.field for one in proposals})]
    return case.model_copy(
        update={
            "evidence": _renamed(case.evidence, texts),
            "relevant": _renamed(case.relevant, ids),
            "relevant_any": tuple(
                tuple(dict.fromkeys(ids.get(name, name) for name in names))
                for names in case.relevant_any
            ),
            "tags": {**case.tags, TAG: " and ".join(dict.fromkeys(marks))},
        }
    )


def _renamed(graded: dict[str, int], names: dict[str, str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, grade in graded.items():
        new = names.get(name, name)
        found[new] = max(grade, found.get(new, 0))
    return found
