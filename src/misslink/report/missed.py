"""Why needed passages were missed: by subtype for the run, and measured for each passage."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from misslink.report import places
from misslink.report.glossary import FAILURES, MEASURED, SUBTYPES
from misslink.report.wording import Shown, decimal, percent, plain_number, plural, shown
from misslink.types import Link, Missed, Rival, Run, Subtype

__all__ = [
    "MissDetail",
    "RivalRow",
    "SubtypeRow",
    "distance_words",
    "miss_details",
    "misses",
    "subtype_rows",
]

_UNKNOWN = "not known"
_SHARES = ("cosine_percentile", "shared_stems", "shared_stems_percentile")


@dataclass(frozen=True)
class RivalRow:
    """A passage that stood above a missed one."""

    rank: int
    id: str
    score: str
    cosine: str
    duplicate_of: str


@dataclass(frozen=True)
class MissDetail:
    """What was measured of one missed passage; texts are "" where nothing was."""

    reason: str
    also: tuple[str, ...]
    distance: str
    measured: tuple[tuple[str, str], ...]
    above: tuple[RivalRow, ...]


@dataclass(frozen=True)
class SubtypeRow:
    """A reason for misses: how many, in how many failed cases, and what to do about it.

    ``example`` is the evidence of the first of them, ``example_at`` the fragment of its case, and
    ``fragment`` the view of all cases with this reason ("" where it is not known).
    """

    label: str
    count: int
    share: Shown
    failed: int
    advice: str
    example: str
    example_at: str
    fragment: str


def misses(links: Iterable[Link]) -> tuple[tuple[Link, Missed], ...]:
    """Every missed passage of every case, once, also where two evidences of the case need it.

    Of several entries the first with a subtype stands for the passage: to bring it back is one
    repair. Order is that of the links and of the entries in each.
    """
    found: dict[tuple[str, str], tuple[Link, Missed]] = {}
    for link in links:
        for one in link.missed:
            key = link.case_id, one.passage_id
            if key not in found or (found[key][1].subtype is None and one.subtype is not None):
                found[key] = link, one
    return tuple(found.values())


def subtype_rows(run: Run) -> tuple[SubtypeRow, ...]:
    """Missed passages by why they were missed, the most frequent first, each once in a case.

    None where nothing was missed, or where no miss has a subtype (older runs and traces from a
    file without ranks).
    """
    from misslink.linking.advice import recommendation  # its room brings numpy
    from misslink.stats import proportion

    found: dict[Subtype | None, list[tuple[str, Missed]]] = {}
    for link, one in misses(run.links):
        found.setdefault(one.subtype, []).append((link.case_id, one))
    if not found.keys() - {None}:
        return ()
    causes = {link.case_id: link.cause for link in run.links}
    numbers = places.case_numbers(run.cases)
    total = sum(map(len, found.values()))
    rows = []
    for subtype in sorted(found, key=lambda one: (one is None, -len(found[one]))):
        ones = found[subtype]
        told = next(((case, one) for case, one in ones if one.reason), ones[0])
        rows.append(
            SubtypeRow(
                label=SUBTYPES[subtype] if subtype else _UNKNOWN,
                count=len(ones),
                share=shown("share", proportion(len(ones), total)),
                failed=len({case for case, _ in ones if causes[case] in FAILURES}),
                advice=recommendation(subtype),
                example=told[1].reason or "",
                example_at=places.case(numbers[told[0]]) if told[0] in numbers else "",
                fragment=places.view(subtype=subtype) if subtype else "",
            )
        )
    return tuple(rows)


def miss_details(ones: Iterable[Missed]) -> tuple[MissDetail, ...]:
    """What was measured of a missed passage, each thing once where it carries several evidences."""
    found = dict.fromkeys(map(_detail, ones))
    return tuple(one for one in found if one.reason or one.distance or one.measured or one.above)


def distance_words(distance: int | None) -> str:
    """How far behind the cut-off a passage stands; "" where that is not known or within it.

    Examples
    --------
    >>> distance_words(12), distance_words(1), distance_words(None)
    ('12 ranks behind the cut-off', '1 rank behind the cut-off', '')
    """
    if distance is None or distance <= 0:
        return ""
    return f"{plural(distance, 'rank')} behind the cut-off"


def _detail(missed: Missed) -> MissDetail:
    return MissDetail(
        reason=missed.reason or "",
        also=tuple(SUBTYPES[other] for other in missed.also),
        distance=distance_words(missed.distance),
        measured=tuple(
            (MEASURED.get(name, name), _number(name, value))
            for name, value in missed.measured.items()
        ),
        above=tuple(map(_rival, missed.above)),
    )


def _rival(rival: Rival) -> RivalRow:
    return RivalRow(
        rank=rival.rank,
        id=rival.passage_id,
        score="" if rival.score is None else decimal(rival.score, 3),
        cosine="" if rival.cosine is None else decimal(rival.cosine),
        duplicate_of=rival.duplicate_of or "",
    )


def _number(name: str, value: float) -> str:
    if name in _SHARES:
        return percent(value)
    return decimal(value) if name.startswith("cosine") else plain_number(value)
