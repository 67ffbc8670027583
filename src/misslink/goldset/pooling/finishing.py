"""A labelled pool put back into its gold set, with all that it says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from misslink.errors import InputError
from misslink.goldset.pooling.folder import Pool, labels_of, listed, read_pool
from misslink.goldset.pooling.prelabels import measured, read_prelabels
from misslink.goldset.pooling.recall import estimates
from misslink.goldset.pooling.settling import GRADES, agreement, read_grades, settled
from misslink.types import Case

__all__ = ["Finished", "finish"]


@dataclass(frozen=True)
class Finished:
    """A gold set with people's grades, and what was found.

    Parameters
    ----------
    cases : tuple of Case
        In the order of the gold set.
    document : dict
        JSON values; see `finish`.
    """

    cases: tuple[Case, ...]
    document: dict[str, Any]


def finish(
    folder: Path, *, accept_prelabels: bool = False, relevance_level: int = 1, seed: int = 0
) -> Finished:
    """Merge the settled grades of a pool into its gold set.

    Parameters
    ----------
    folder : Path
        The pool's.
    accept_prelabels : bool
        Take the judge's grade where no person's is settled; people must have graded some of what
        it graded, so that it is known how good it is.
    relevance_level : int
        Grade from which a passage is relevant, from 1.
    seed : int
        Of the intervals.

    Returns
    -------
    Finished
        Its document has ``items``, ``settled``, ``open``, ``grades`` (how many of each),
        ``merged`` and ``changed`` (grades that the gold set had otherwise), ``agreement``,
        ``queue`` (to be adjudicated), ``prelabels`` (None where no judge was asked), ``recall``
        (see `misslink.goldset.pooling.recall.estimates`) and ``notes``.

    Raises
    ------
    InputError
        It is no pool or a damaged one, nobody has labelled it, or the judge's grades cannot be
        taken.
    """
    pool = read_pool(folder)
    graded = read_grades(folder, pool)
    people = settled(graded)
    if not people.grades and not people.queue:
        raise InputError(
            f"nobody has labelled this pool; run  misslink annotate {folder}",
            path=labels_of(folder),
        )
    given = read_prelabels(folder, pool)
    prelabels = measured(given, people.grades, seed=seed) if given else None
    grades = dict(people.grades)
    if accept_prelabels:
        grades |= _accepted(folder, prelabels, {i: one.grade for i, one in given.items()}, grades)
    cases, merged, changed = _merged(pool, grades)
    document: dict[str, Any] = {
        "items": len(pool.items),
        "settled": len(people.grades),
        "open": len(pool.items) - len(people.grades),
        "grades": {
            name: sum(grade == at for grade in grades.values()) for at, name in enumerate(GRADES)
        },
        "merged": merged,
        "changed": changed,
        "accepted_prelabels": len(grades) - len(people.grades),
        "agreement": agreement(graded, len(pool.items), seed=seed),
        "queue": _queue(pool, people.queue),
        "prelabels": prelabels,
        "recall": estimates(pool, grades, relevance_level=relevance_level),
        "notes": _notes(pool, len(grades) - len(people.grades)),
    }
    return Finished(cases, _plain(document))


def _accepted(
    folder: Path,
    prelabels: Mapping[str, Any] | None,
    given: Mapping[str, int | None],
    grades: Mapping[str, int],
) -> dict[str, int]:
    if prelabels is None:
        raise InputError(
            "no judge was asked about this pool; there is nothing to accept", path=folder
        )
    if not prelabels["n"]:
        raise InputError(
            "nobody has graded what the judge graded, so it is not known how good it is; label "
            "some passages first",
            path=folder,
        )
    return {i: grade for i, grade in given.items() if grade is not None and i not in grades}


def _merged(pool: Pool, grades: Mapping[str, int]) -> tuple[tuple[Case, ...], int, int]:
    of_case: dict[str, dict[str, int]] = {}
    for item in pool.items:
        if item.item in grades:
            of_case.setdefault(item.case_id, {})[item.passage_id] = grades[item.item]
    changed = sum(
        listed(case).get(name, grade) != grade
        for case in pool.goldset.cases
        for name, grade in of_case.get(case.id, {}).items()
    )
    cases = tuple(
        case.model_copy(update={"relevant": {**case.relevant, **of_case[case.id]}})
        if case.id in of_case
        else case
        for case in pool.goldset.cases
    )
    return cases, sum(map(len, of_case.values())), changed


def _queue(pool: Pool, queue: tuple[Mapping[str, Any], ...]) -> list[dict[str, Any]]:
    named = {item.item: item for item in pool.items}
    return [
        {"case_id": named[one["item"]].case_id, "passage_id": named[one["item"]].passage_id, **one}
        for one in queue
    ]


def _notes(pool: Pool, accepted: int) -> list[str]:
    """What somebody should know who goes on with these grades and numbers."""
    cases = pool.goldset.cases
    by_text = sum(any(case.evidence.values()) for case in cases)
    in_sets = sum(any(case.relevant_any) for case in cases)
    known = pool.known
    strange = sum(len(known[case.id]) - pool.strata[case.id][0].size for case in cases)
    told = {
        "cases that give evidence texts, which count before ids: {}; their grades are kept in the "
        "gold set, and retrieval goes by them once the evidence is taken out": by_text,
        "cases with sets of ids that suffice (relevant_any), which count before single ids: {}; "
        "here each of those ids counts as relevant, and retrieval goes by the grades once the sets "
        "are taken out": in_sets,
        "graded ids of the gold set that the corpus does not hold: {}; no retriever can bring "
        "them, and recall counts them as missed where they are relevant": strange,
        "grades of the judge among those that recall is estimated from: {}; the intervals know "
        "nothing of its mistakes": accepted,
    }
    return [text.format(count) for text, count in told.items() if count]


def _plain(value: Any) -> Any:
    """Estimates as JSON values."""
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
