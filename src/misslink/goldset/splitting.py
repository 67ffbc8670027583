"""Split a gold set into parts that share no source, and apportion counts by weight.

Cases with the same passage, document or evidence, and the turns of a conversation or other cases
of a ``group``, form a group, also if linked through others.
Whole groups are assigned, largest first, each to the part whose category counts it moves
closest to their targets.

References
----------
Sechidis, Tsoumakas and Vlahavas (2011), On the stratification of multi-label data.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from misslink.errors import InputError, known_names
from misslink.text.normalization import fold
from misslink.types import Case

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
    """Split cases into parts.

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
