"""The inputs of a check, what it finds, and the fixes it proposes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import TYPE_CHECKING, Any, Literal

from misslink.goldset.checks.passage_search import PassageSearch
from misslink.io.goldset import GoldSet
from misslink.io.trace_formats.requests import RequestLog
from misslink.retrieval.matching import case_needs
from misslink.types import Case, Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
REMATCHED_TAG = "rematched"
_MAX_COMBINATIONS = 64  # of the passages with the labelled texts, of one alternative


@dataclass(frozen=True)
class GateRequirement:
    """The limits of a gate.

    Parameters
    ----------
    name, metric : str
    cases : int
        Cases of the gold set that the gate selects and that can have a value.
    threshold, at_most : float or None
        Floor and ceiling of the value.
    regression_max : float or None
        Margin of the loss.
    min_cases : int or None
    share : bool
        Whether every value is between 0 and 1, so that its variance is bounded.
    """

    name: str
    metric: str
    cases: int
    threshold: float | None = None
    at_most: float | None = None
    regression_max: float | None = None
    min_cases: int | None = None
    share: bool = True


@dataclass(frozen=True)
class QuestionVectors:
    """Unit vectors of questions by their text, and the model's name."""

    model: str
    vectors: Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True)
class CheckInputs:
    """What to check a gold set against; a check whose input is None is skipped.

    Parameters
    ----------
    corpus : PassageSearch or None
        The current corpus.
    before : PassageSearch or None
        The corpus for which the gold set was made.
    documents : mapping of str to str, or None
        Id to text of the documents that labels are spans of.
    baseline : GoldSet or None
        An earlier version of the gold set, which matched the corpus of its time.
    log : RequestLog or None
        What users ask. Findings contain only counts of it.
    run : mapping of str to sequence of Passage, or None
        Case id to what was retrieved, best first.
    run_name : str
    k : int
        Cutoff of the run, from 1.
    demands : sequence of GateRequirement
    effect : float
        Distance from a threshold to detect, for gates without ``regression_max``.
    vectors : QuestionVectors or None
        Of the questions of the gold set and of the log. None: compare by words.
    expected_counts : mapping of str to (int, int), or None
        Least and most relevant passages of each category, 'unanswerable' being one. None: those of
        the generator's categories.
    """

    corpus: PassageSearch | None = None
    before: PassageSearch | None = None
    documents: Mapping[str, str] | None = None
    baseline: GoldSet | None = None
    log: RequestLog | None = None
    run: Mapping[str, tuple[Passage, ...]] | None = None
    run_name: str = "the run"
    k: int = 5
    demands: tuple[GateRequirement, ...] = ()
    effect: float = 0.05
    vectors: QuestionVectors | None = None
    expected_counts: Mapping[str, tuple[int, int]] | None = None


@dataclass(frozen=True)
class LabelProposal:
    """A proposed replacement of a label that no longer matches the corpus.

    Parameters
    ----------
    case_id : str
    field : {'evidence', 'relevant'}
    before, after : str
        An evidence text, or a passage id.
    passage : str
        Id of the passage that contains it now.
    sets : tuple of tuples of str
        Of an id, the alternatives of passages that have its text now, each sufficient.
    score : float
        Similarity of the two texts, folded (rapidfuzz's ratio), in [0, 1].
    meaning : str or None
        Why it may mean something else. Then only a person may accept it.
    """

    case_id: str
    field: Literal["evidence", "relevant"]
    before: str
    after: str
    passage: str
    score: float
    meaning: str | None = None
    sets: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class GoldSetFinding:
    """One problem or note.

    Parameters
    ----------
    check : str
        The check's name, such as 'leakage'.
    severity : {'error', 'warning', 'note'}
        Error: numbers from this gold set are wrong. Warning: they mean less than they seem to.
    message, fix : str
        What is wrong, and how to fix it.
    cases : sequence of str
        Ids, sorted; empty if it is about the whole set.
    numbers : mapping
        What was measured, for programs.
    proposals : sequence of LabelProposal
    """

    check: str
    severity: Severity
    message: str
    fix: str
    cases: tuple[str, ...] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)
    proposals: tuple[LabelProposal, ...] = ()

    def lines(self, gold: GoldSet) -> tuple[int | None, ...]:
        """Return the lines of its cases in their file; None without a file."""
        return tuple(gold.item(case_id).number for case_id in self.cases)


def labelled_ids(case: Case, *, relevant_only: bool = False) -> list[str]:
    """Return the passage ids of a case's labels, each once."""
    graded = (name for name, grade in case.relevant.items() if grade > 0 or not relevant_only)
    alternatives = (name for names in case.relevant_any for name in names)
    return list(dict.fromkeys([*graded, *alternatives]))


def evidence_texts(case: Case) -> list[str]:
    """Return the relevant evidence texts of a case."""
    return [text for text, grade in case.evidence.items() if grade > 0]


def accepted_proposals(findings: Iterable[GoldSetFinding], above: float) -> list[LabelProposal]:
    """Return the proposals that need no person, at most one a label.

    Parameters
    ----------
    findings : iterable of GoldSetFinding
    above : float
        Minimum score, in [0, 1]. Texts with other numbers, signs or negations are never accepted.
    """
    accepted: dict[tuple[str, str, str], LabelProposal] = {}
    for proposal in (proposal for finding in findings for proposal in finding.proposals):
        if proposal.meaning is None and proposal.score >= above:
            key = proposal.case_id, proposal.field, proposal.before
            accepted.setdefault(key, proposal)
    return list(accepted.values())


def apply_proposals(cases: Iterable[Case], proposals: Sequence[LabelProposal]) -> list[Case]:
    """Return the cases with every proposal in place of its label, at the same grade.

    A changed case gets the tag 'rematched': 'evidence', 'relevant', or both. Two labels that
    become one keep the better grade.
    """
    by_case: dict[str, list[LabelProposal]] = {}
    for proposal in proposals:
        by_case.setdefault(proposal.case_id, []).append(proposal)
    return [_apply_to_case(case, by_case.get(case.id, [])) for case in cases]


def _apply_to_case(case: Case, proposals: Sequence[LabelProposal]) -> Case:
    if not proposals:
        return case
    texts = {p.before: p.after for p in proposals if p.field == "evidence"}
    sets = {p.before: p.sets or ((p.after,),) for p in proposals if p.field == "relevant"}
    marks = [*filter(None, [case.tags.get(REMATCHED_TAG)]), *sorted({p.field for p in proposals})]
    return relabel_case(case, sets).model_copy(
        update={
            "evidence": _rename_units(case.evidence, texts),
            "tags": {**case.tags, REMATCHED_TAG: " and ".join(dict.fromkeys(marks))},
        }
    )


def relabel_case(case: Case, sets: Mapping[str, tuple[tuple[str, ...], ...]]) -> Case:
    """Return a case with each id replaced by the alternatives of passages that have its text.

    If a label has more than one, the combinations are the alternatives of the case.
    """
    graded: dict[str, int] = {}
    for name, grade in case.relevant.items():
        for new in (new for ids in sets.get(name, ((name,),)) for new in ids):
            graded[new] = max(grade, graded.get(new, 0))
    alternatives = case.relevant_any
    if not alternatives and any(len(sets.get(name, ())) > 1 for name in case.relevant):
        alternatives = (tuple(labelled_ids(case, relevant_only=True)),)
    combined = (
        tuple(dict.fromkeys(name for ids in chosen for name in ids))
        for names in alternatives
        for chosen in islice(
            product(*(sets.get(name, ((name,),)) for name in names)), _MAX_COMBINATIONS
        )
    )
    return case.model_copy(
        update={"relevant": graded, "relevant_any": tuple(dict.fromkeys(combined))}
    )


def derive_ids(case: Case, corpus: PassageSearch) -> Case:
    """Return a case whose ids are those of the passages that have its spans."""
    needs = case_needs(case, ())
    sets = {need.id: corpus.label_sets(need) for alternative in needs for need in alternative}
    if not all(sets.values()):
        return case
    grades = {need.id: need.grade for alternative in needs for need in alternative}
    irrelevant = {name: grade for name, grade in case.relevant.items() if grade == 0}
    several = tuple(tuple(need.id for need in needed) for needed in needs) if needs[1:] else ()
    labelled = case.model_copy(update={"relevant": grades, "relevant_any": several})
    derived = relabel_case(labelled, sets)
    return derived.model_copy(update={"relevant": {**irrelevant, **derived.relevant}})


def _rename_units(grades: dict[str, int], names: dict[str, str]) -> dict[str, int]:
    renamed: dict[str, int] = {}
    for name, grade in grades.items():
        new = names.get(name, name)
        renamed[new] = max(grade, renamed.get(new, 0))
    return renamed
