"""Describe and split a gold set, compare two versions of it, and merge several gold sets."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from misslink.errors import InputError, known_names
from misslink.io.goldset import GoldSet
from misslink.text.normalization import fold
from misslink.types import Case

MergePreference = Literal["first", "last", "grades-max"]
_FIELDS = tuple(
    name for name, field in Case.model_fields.items() if name != "id" and not field.exclude
)
_GRADED = {"relevant", "evidence"}


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
            if all(isinstance(change[time], dict) for time in ("before", "after"))
            and change["field"] in _GRADED
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
            only_grades = set(changed) <= _GRADED and not (first.spans or case.spans)
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


GROUPINGS = ("source", "category", "none", "tag:NAME")


_SOURCE_TAGS = ("source", "document", "doc")


_DIGITS = 9  # so that a tie is not decided by rounding


_CHUNK_MARK = "#"  # between a document's id and the number of its chunk


def apportion(n: int, weights: Mapping[str, float]) -> dict[str, int]:
    """Apportion `n` by the largest remainders; ties in the given order.

    Parameters
    ----------
    n : int
        At least 0.
    weights : mapping of str to float
        At least 0, with a sum above 0.

    >>> apportion(5, {"a": 2, "b": 1, "c": 0})
    {'a': 3, 'b': 2, 'c': 0}
    """
    total = sum(weights.values())
    exact = {name: n * weight / total for name, weight in weights.items()}
    whole = {name: int(share) for name, share in exact.items()}
    positive = [name for name in weights if weights[name] > 0]
    positive.sort(key=lambda name: whole[name] - exact[name])
    for name in positive[: n - sum(whole.values())]:
        whole[name] += 1
    return whole


@dataclass(frozen=True)
class SplitPart:
    """One part of a split gold set.

    Parameters
    ----------
    name : str
    wanted : float
        Target share of the cases, in (0, 1).
    cases : tuple of Case
        In the order of the gold set.
    groups : int
        Number of groups.
    """

    name: str
    wanted: float
    cases: tuple[Case, ...]
    groups: int


@dataclass(frozen=True)
class GoldSetSplit:
    """A gold set in parts.

    Parameters
    ----------
    parts : tuple of SplitPart
    groups : int
        Sets of cases that stay together.
    largest : int
        Cases of the largest group.
    without_source : int
        Cases that name no passage, no evidence and no source: each is its own group.
    by_evidence_alone : int
        By source: cases that name evidence and no document, so that only those with the same
        evidence text stay together.
    """

    parts: tuple[SplitPart, ...]
    groups: int
    largest: int
    without_source: int
    by_evidence_alone: int


def parse_parts(text: str) -> dict[str, float]:
    """Parse the ``--parts`` option.

    >>> parse_parts("dev=0.8,test=0.2")
    {'dev': 0.8, 'test': 0.2}

    Raises
    ------
    InputError
        A share is not between 0 and 1, a name cannot be a file's, or the shares do not add to 1.
    """
    parts: dict[str, float] = {}
    for option in text.split(","):
        name, _, share = (piece.strip() for piece in option.partition("="))
        try:
            value = float(share)
        except ValueError:
            value = math.nan
        if not (name and 0 < value < 1):
            raise InputError(
                f"--parts: '{option.strip()}' is not name=share with a share between 0 and 1. "
                "Write dev=0.8,test=0.2."
            )
        if not name.replace("-", "").replace("_", "").isalnum():
            raise InputError(f"--parts: '{name}' is a file name. Use letters, digits, - and _.")
        if name in parts:
            raise InputError(f"--parts: '{name}' is named twice. Use each name once.")
        parts[name] = value
    if not math.isclose(sum(parts.values()), 1, abs_tol=1e-6):
        raise InputError(f"--parts: the shares add to {sum(parts.values()):g}. Make them add to 1.")
    return parts


def split_goldset(
    cases: Sequence[Case], parts: Mapping[str, float], *, by: str, seed: int = 0
) -> GoldSetSplit:
    """Split cases into parts that share no source.

    Cases with the same passage, document or evidence, and the turns of a conversation or other
    cases of a ``group``, form a group, also if linked through others. Whole groups are assigned,
    largest first, each to the part whose category counts it moves closest to their targets.

    References
    ----------
    Sechidis, Tsoumakas and Vlahavas (2011), On the stratification of multi-label data.

    Parameters
    ----------
    cases : sequence of Case
        At least as many groups as parts.
    parts : mapping of str to float
        Name to share of the cases; they add to 1.
    by : str
        What stays together: 'source' (passages, documents, evidence), 'category', 'tag:NAME', or
        'none'. Unless 'none', cases of a ``group`` stay together too.
    seed : int
        Selects one of the equally good splits.

    Returns
    -------
    GoldSetSplit
        Every case is in exactly one part. Shares are as near as whole groups allow.

    Raises
    ------
    InputError
        `by` is unknown or no case has that tag, or there are fewer groups than parts.
    """
    groups, without = _linked_groups(cases, by)
    if len(groups) < len(parts):
        raise InputError(
            f"The {len(cases)} cases form {len(groups)} group{'s' * (len(groups) != 1)} by {by}, "
            f"too few for {len(parts)} parts. Use fewer parts or another --group-by."
        )
    assigned = _assign_groups(cases, groups, parts, seed)
    split = tuple(
        SplitPart(
            name,
            share,
            tuple(cases[index] for index in sorted(i for group in assigned[name] for i in group)),
            len(assigned[name]),
        )
        for name, share in parts.items()
    )
    only_evidence = [case for case in cases if {k for k, _ in _case_sources(case)} == {"evidence"}]
    by_evidence = len(only_evidence) if by == "source" else 0
    return GoldSetSplit(split, len(groups), max(map(len, groups)), without, by_evidence)


def _linked_groups(cases: Sequence[Case], grouping: str) -> tuple[list[list[int]], int]:
    """Indices of the cases that stay together, and the number of cases without a key."""
    from scipy.cluster.hierarchy import DisjointSet

    keys = [tuple(_group_keys(case, grouping)) for case in cases]
    if grouping.startswith("tag:") and not any(keys):
        tags = sorted({name for case in cases for name in case.tags})
        tag = grouping.removeprefix("tag:")
        hint = known_names(tag, tags) if tags else "no case has tags"
        raise InputError(f"No case has the tag '{tag}'; {hint}")
    if grouping != "none":
        keys = [
            own if case.group is None else (*own, ("group", case.group))
            for case, own in zip(cases, keys, strict=True)
        ]
    groups = DisjointSet(range(len(cases)))
    first: dict[Hashable, int] = {}
    for index, case_keys in enumerate(keys):
        for key in case_keys:
            groups.merge(index, first.setdefault(key, index))
    return sorted(map(sorted, groups.subsets())), sum(not case_keys for case_keys in keys)


def _group_keys(case: Case, grouping: str) -> Iterable[Hashable]:
    """Keys that a case shares with those of its group."""
    if grouping == "none":
        return ()
    if grouping == "category":
        return (case.category,)
    if grouping.startswith("tag:"):
        value = case.tags.get(grouping.removeprefix("tag:"))
        return () if value is None else (value,)
    if grouping == "source":
        return _case_sources(case)
    raise InputError(
        f"--group-by: unknown grouping '{grouping}'; {known_names(grouping, GROUPINGS)}"
    )


def _case_sources(case: Case) -> Iterable[tuple[str, str]]:
    """The documents and the evidence of a case."""
    relevant = [name for name, grade in case.relevant.items() if grade > 0]
    for passage in (*relevant, *(name for names in case.relevant_any for name in names)):
        yield "document", passage.rpartition(_CHUNK_MARK)[0] or passage
    for span in case.spans:
        yield "document", span.id
    for text, grade in case.evidence.items():
        if grade > 0:
            yield "evidence", fold(text)
    for tag in _SOURCE_TAGS:
        if tag in case.tags:
            yield "document", case.tags[tag]


def _assign_groups(
    cases: Sequence[Case], groups: Sequence[list[int]], parts: Mapping[str, float], seed: int
) -> dict[str, list[list[int]]]:
    """The groups of each part; every part has at least one."""
    order = list(groups)
    random.Random(seed).shuffle(order)  # noqa: S311 - no secret
    order.sort(key=len, reverse=True)  # the shuffle decides among groups of one size
    totals = Counter(case.category for case in cases)
    lacking = {
        name: {category: count * share for category, count in totals.items()}
        for name, share in parts.items()
    }
    assigned: dict[str, list[list[int]]] = {name: [] for name in parts}
    for turn, group in enumerate(order):
        counts = Counter(cases[index].category for index in group)

        def distance(name: str, counts: Counter[str | None] = counts) -> float:
            """What the group adds to the part's squared distance from its targets."""
            lack = lacking[name]
            added = sum(count * (count - 2 * lack[cat]) for cat, count in counts.items())
            return round(added, _DIGITS)

        empty = [name for name in parts if not assigned[name]]
        # The last groups go to parts that have none yet.
        best = min(empty if len(order) - turn <= len(empty) else parts, key=distance)
        assigned[best].append(group)
        for category, count in counts.items():
            lacking[best][category] -= count
    return assigned
