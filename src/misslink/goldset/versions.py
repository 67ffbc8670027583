"""Describe a gold set, compare two versions of it, and merge several gold sets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from misslink.io.goldset import GoldSet
from misslink.text.normalization import fold
from misslink.types import Case

MergePreference = Literal["first", "last", "grades-max"]
_FIELDS = tuple(name for name in Case.model_fields if name != "id")
_GRADED = {"relevant", "evidence"}
_QUANTILES = (0, 0.25, 0.5, 0.75, 1)
_NO_VALUE = ""  # the key of cases without a value


def describe_goldset(cases: Sequence[Case]) -> dict[str, Any]:
    """Describe a gold set by counts.

    Returns
    -------
    dict
        ``cases``; ``categories``, ``tiers`` and ``tags`` (tag to value to count; the key is empty
        for cases without a value); ``answerable`` (yes, no, unknown); ``with`` (cases that have
        relevant passages, alternatives, evidence, references, a date); ``grades`` (of passages and
        evidence); and ``relevant``, ``evidence``, ``references`` (counts a case) and
        ``question_words``, each with minimum, quartiles and maximum, or None without cases.
    """
    tags = sorted({name for case in cases for name in case.tags})
    return {
        "cases": len(cases),
        "categories": _value_counts(case.category for case in cases),
        "tiers": _value_counts(case.tier for case in cases),
        "tags": {name: _value_counts(case.tags.get(name) for case in cases) for name in tags},
        "answerable": {
            name: sum(case.expects_answer is value for case in cases)
            for name, value in (("yes", True), ("no", False), ("unknown", None))
        },
        "with": {
            "relevant": sum(any(case.relevant.values()) for case in cases),
            "relevant_any": sum(bool(case.relevant_any) for case in cases),
            "evidence": sum(any(case.evidence.values()) for case in cases),
            "references": sum(bool(case.references) for case in cases),
            "asked_at": sum(case.asked_at is not None for case in cases),
        },
        "grades": _value_counts(
            str(grade)
            for case in cases
            for graded in (case.relevant, case.evidence)
            for grade in graded.values()
        ),
        "relevant": _five_numbers(cases, lambda case: sum(g > 0 for g in case.relevant.values())),
        "evidence": _five_numbers(cases, lambda case: sum(g > 0 for g in case.evidence.values())),
        "references": _five_numbers(cases, lambda case: len(case.references)),
        "question_words": _five_numbers(cases, lambda case: len(case.question.split())),
    }


def _value_counts(values: Iterable[str | None]) -> dict[str, int]:
    """How often each value occurs, the most frequent first, then by name."""
    counts = Counter(_NO_VALUE if value is None else value for value in values)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _five_numbers(cases: Sequence[Case], count: Callable[[Case], int]) -> dict[str, float] | None:
    """Minimum, lower quartile, median, upper quartile and maximum."""
    import numpy as np

    if not cases:
        return None
    quantiles = np.quantile([count(case) for case in cases], _QUANTILES)
    names = ("least", "lower_quartile", "median", "upper_quartile", "most")
    return dict(zip(names, map(float, quantiles), strict=True))


def diff_cases(before: Iterable[Case], after: Iterable[Case]) -> dict[str, Any]:
    """Compare two versions of a gold set, by the ids of their cases.

    The order of cases, of passages, of alternative sets and of references is ignored.

    Parameters
    ----------
    before, after : iterable of Case
        With unique ids; either may be empty.

    Returns
    -------
    dict
        ``same``: number of unchanged cases; ``added`` and ``removed``: ids; ``renamed``: removed to
        added ids with the same content; ``changed``: ``id``, ``field``, ``before`` and ``after`` of
        each changed field; ``grades``: ``id``, ``unit``, ``before`` and ``after`` of each changed
        grade of a passage or evidence, None if it had none.
    """
    old = {case.id: _canonical_fields(case) for case in before}
    new = {case.id: _canonical_fields(case) for case in after}
    changes = {
        case_id: _field_changes(case_id, fields, new[case_id])
        for case_id, fields in old.items()
        if case_id in new
    }
    added = [case_id for case_id in new if case_id not in old]
    removed = [case_id for case_id in old if case_id not in new]
    by_content = {json.dumps(new[case_id], sort_keys=True): case_id for case_id in added}
    renamed = {
        case_id: by_content[content]
        for case_id in removed
        if (content := json.dumps(old[case_id], sort_keys=True)) in by_content
    }
    changed = [change for several in changes.values() for change in several]
    return {
        "same": sum(not several for several in changes.values()),
        "added": added,
        "removed": removed,
        "renamed": renamed,
        "changed": changed,
        "grades": [
            {"id": change["id"], "unit": unit, "before": grades[0], "after": grades[1]}
            for change in changed
            if change["field"] in _GRADED
            for unit in dict.fromkeys([*change["before"], *change["after"]])
            if (grades := [change[time].get(unit) for time in ("before", "after")])
            and grades[0] != grades[1]
        ],
    }


def _field_changes(case_id: str, old: dict[str, Any], new: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"id": case_id, "field": name, "before": old[name], "after": new[name]}
        for name in _FIELDS
        if old[name] != new[name]
    ]


def _canonical_fields(case: Case) -> dict[str, Any]:
    """The fields but the id as JSON, with unordered ones sorted."""
    fields = case.model_dump(mode="json", exclude={"id"})
    fields["references"] = sorted(fields["references"])
    fields["relevant_any"] = sorted(sorted(ids) for ids in fields["relevant_any"])
    return fields


def merge_goldsets(
    sets: Sequence[GoldSet], prefer: MergePreference | None = None
) -> tuple[tuple[Case, ...], dict[str, Any]]:
    """Merge gold sets by case id; `prefer` resolves conflicts, else they raise InputError.

    Returns
    -------
    cases : tuple of Case
        In the order in which their ids occur.
    document : dict
        ``repeated``: number of cases that are equal in several sets; ``settled``: ids with
        different content, resolved by the preference; ``same_question``: groups of ids of different
        cases with the same question, except for case, blanks and punctuation.
    """
    merged: dict[str, tuple[Case, GoldSet]] = {}
    repeated = 0
    settled: dict[str, None] = {}
    for gold in sets:
        for case in gold.cases:
            if case.id not in merged:
                merged[case.id] = case, gold
                continue
            first, source = merged[case.id]
            changes = _field_changes(case.id, _canonical_fields(first), _canonical_fields(case))
            changed = [change["field"] for change in changes]
            if not changed:
                repeated += 1
                continue
            settled[case.id] = None
            only_grades = set(changed) <= _GRADED
            resolved = {"first": first, "last": case}.get(prefer or "")
            if prefer == "grades-max" and only_grades:
                resolved = first.model_copy(
                    update={
                        "relevant": _highest_grades(first.relevant, case.relevant),
                        "evidence": _highest_grades(first.evidence, case.evidence),
                    }
                )
            if resolved is None:
                hint = "Choose with --prefer first, last, grades-max, or correct one."
                if prefer:
                    hint = (
                        "grades-max resolves only grades. Use --prefer first or last, or correct "
                        "one."
                    )
                elif not only_grades:
                    hint = "Choose with --prefer first, last, or correct one."
                place = source.item(case.id).place
                problem = f"The case '{case.id}' differs from {place}. {hint}"
                raise gold.error(case.id, changed[0], problem)
            merged[case.id] = resolved, gold
    cases = tuple(case for case, _ in merged.values())
    questions: dict[str, list[str]] = {}
    for case in cases:
        words = fold(case.question)
        questions.setdefault("".join(filter(str.isalnum, words)) or words, []).append(case.id)
    same_question = [ids for ids in questions.values() if len(ids) > 1]
    document = {"repeated": repeated, "settled": list(settled), "same_question": same_question}
    return cases, document


def _highest_grades(first: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {unit: max(first.get(unit, 0), other.get(unit, 0)) for unit in {**first, **other}}
