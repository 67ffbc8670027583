"""A gold set cut into parts that share no source, so that nothing tuned on one leaks into another.

Cases that rest on the same passage, the same document or the same evidence are one group, and so
are, by way of them, cases that share nothing with each other. Groups are dealt out whole, the
largest first, each to the part that it brings nearest to what the part is to have of each category
(the greedy rule of Sechidis, Tsoumakas and Vlahavas, 2011, On the stratification of multi-label
data, with whole groups in place of single cases).
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from misslink.errors import InputError, known_names
from misslink.text import fold
from misslink.types import Case

__all__ = ["BY", "Part", "Split", "parse_parts", "split"]

BY = ("source", "category", "none", "tag:NAME")
_SOURCE_TAGS = ("source", "document", "doc")
_DIGITS = 9  # so that a tie is not decided by rounding
_CHUNK = "#"  # between a document's id and the number of its chunk


@dataclass(frozen=True)
class Part:
    """One part of a split gold set.

    Parameters
    ----------
    name : str
    wanted : float
        Share of the cases that was asked for, in (0, 1).
    cases : tuple of Case
        In the order of the gold set.
    groups : int
        How many groups it was dealt.
    """

    name: str
    wanted: float
    cases: tuple[Case, ...]
    groups: int


@dataclass(frozen=True)
class Split:
    """A gold set in parts.

    Parameters
    ----------
    parts : tuple of Part
    groups : int
        Sets of cases that had to stay together.
    largest : int
        Cases of the largest of them.
    without_source : int
        Cases that name no passage, no evidence and no source: each a group of its own.
    by_evidence_alone : int
        By source: cases that name evidence and no document, so that only those with the same
        evidence text are kept together.
    """

    parts: tuple[Part, ...]
    groups: int
    largest: int
    without_source: int
    by_evidence_alone: int


def parse_parts(text: str) -> dict[str, float]:
    """Read what parts are wanted.

    >>> parse_parts("dev=0.8,test=0.2")
    {'dev': 0.8, 'test': 0.2}

    Raises
    ------
    InputError
        A part has no share between 0 and 1, a name is no file's, or the shares do not add to 1.
    """
    parts: dict[str, float] = {}
    for one in text.split(","):
        name, equals, share = (piece.strip() for piece in one.partition("="))
        try:
            value = float(share)
        except ValueError:
            value = math.nan
        if not (name and equals and 0 < value < 1):
            raise InputError(
                f"'{one.strip()}' is no part; write parts as name=share with shares between "
                "0 and 1, such as dev=0.8,test=0.2"
            )
        if not name.replace("-", "").replace("_", "").isalnum():
            raise InputError(f"'{name}' names a file; use letters, digits, - and _ alone")
        if name in parts:
            raise InputError(f"the part '{name}' is named twice")
        parts[name] = value
    if not math.isclose(sum(parts.values()), 1, abs_tol=1e-6):
        raise InputError(f"the shares of {text} add to {sum(parts.values()):g}; make them add to 1")
    return parts


def split(cases: Sequence[Case], parts: Mapping[str, float], *, by: str, seed: int = 0) -> Split:
    """Deal cases out to parts.

    Parameters
    ----------
    cases : sequence of Case
        At least as many groups as parts.
    parts : mapping of str to float
        Name to share of the cases; they add to 1.
    by : str
        What must not be torn: 'source' (passages, documents, evidence), 'category', 'tag:NAME',
        or 'none'.
    seed : int
        Which of the equally good splits it is.

    Returns
    -------
    Split
        Every case in just one part. Shares come as near as whole groups allow.

    Raises
    ------
    InputError
        `by` is unknown or no case has that tag, or there are fewer groups than parts.
    """
    groups, without = _groups(cases, by)
    if len(groups) < len(parts):
        raise InputError(
            f"the {len(cases)} cases make {len(groups)} group{'s' * (len(groups) != 1)} by {by}, "
            f"too few for {len(parts)} parts; ask for fewer parts or another --by"
        )
    dealt = _dealt(cases, groups, parts, seed)
    found = tuple(
        Part(
            name,
            wanted,
            tuple(cases[at] for at in sorted(at for group in dealt[name] for at in group)),
            len(dealt[name]),
        )
        for name, wanted in parts.items()
    )
    alone = sum(_evidence_alone(case) for case in cases) if by == "source" else 0
    return Split(found, len(groups), max(map(len, groups)), without, alone)


def _groups(cases: Sequence[Case], by: str) -> tuple[list[list[int]], int]:
    """Places of the cases that stay together, and how many cases name nothing to go by."""
    keys = [tuple(_keys(case, by)) for case in cases]
    if by.startswith("tag:") and not any(keys):
        tags = sorted({name for case in cases for name in case.tags})
        wanted = by.removeprefix("tag:")
        hint = known_names(wanted, tags) if tags else "no case has tags"
        raise InputError(f"no case has the tag '{wanted}'; {hint}")
    parent = list(range(len(cases)))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    first: dict[Hashable, int] = {}
    for at, named in enumerate(keys):
        for key in named:
            parent[root(at)] = root(first.setdefault(key, at))
    together: dict[int, list[int]] = {}
    for at in range(len(cases)):
        together.setdefault(root(at), []).append(at)
    return list(together.values()), sum(not named for named in keys)


def _keys(case: Case, by: str) -> Iterable[Hashable]:
    """What a case shares with those that it must stay with."""
    if by == "none":
        return
    if by == "category":
        yield case.category
    elif by.startswith("tag:"):
        if (said := case.tags.get(by.removeprefix("tag:"))) is not None:
            yield said
    elif by == "source":
        yield from _sources(case)
    else:
        raise InputError(f"cases are not kept together by '{by}'; {known_names(by, BY)}")


def _evidence_alone(case: Case) -> bool:
    return {kind for kind, _ in _sources(case)} == {"evidence"}


def _sources(case: Case) -> Iterable[tuple[str, str]]:
    """The documents and the evidence that a case rests on."""
    listed = [unit for unit, grade in case.relevant.items() if grade > 0]
    for passage in (*listed, *(one for ids in case.relevant_any for one in ids)):
        yield "document", passage.rpartition(_CHUNK)[0] or passage
    for text, grade in case.evidence.items():
        if grade > 0:
            yield "evidence", fold(text)
    for tag in _SOURCE_TAGS:
        if tag in case.tags:
            yield "document", case.tags[tag]


def _dealt(
    cases: Sequence[Case], groups: Sequence[list[int]], parts: Mapping[str, float], seed: int
) -> dict[str, list[list[int]]]:
    """The groups of each part; every part has at least one."""
    order = list(groups)
    random.Random(seed).shuffle(order)  # noqa: S311 - no secret
    order.sort(key=len, reverse=True)  # the shuffle decides among groups of one size
    of_category = Counter(case.category for case in cases)
    lacks = {
        name: {category: count * share for category, count in of_category.items()}
        for name, share in parts.items()
    }
    dealt: dict[str, list[list[int]]] = {name: [] for name in parts}
    for turn, group in enumerate(order):
        held = Counter(cases[at].category for at in group)
        empty = [name for name in parts if not dealt[name]]
        # The last groups go to parts that have none yet.
        among = empty if len(order) - turn <= len(empty) else list(parts)
        best = min(among, key=lambda name: round(_harm(lacks[name], held), _DIGITS))
        dealt[best].append(group)
        for category, count in held.items():
            lacks[best][category] -= count
    return dealt


def _harm(lacks: Mapping[str | None, float], held: Counter[str | None]) -> float:
    """What a group adds to a part's squared distance from what it is to have."""
    return sum(count * (count - 2 * lacks[category]) for category, count in held.items())
