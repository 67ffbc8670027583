"""Values of several metrics of the same hits; those that differ in their cut-off in one pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from misslink.errors import InputError
from misslink.retrieval.hits import Bools, Floats, Hits, Ints
from misslink.retrieval.metrics import RankMetric, told_by_name, without_relevant

__all__ = ["per_case"]

_ROUNDED = 1e-9  # by which a sum of floats may leave [0, 1]


def per_case(
    metrics: Sequence[RankMetric], hits: Hits, name: Callable[[int], str] = str
) -> tuple[Floats, Bools]:
    """Values of each case, of alternatives the best, and where there is one.

    Parameters
    ----------
    metrics : sequence of RankMetric
        Of one that has ``at_cutoffs`` all cut-offs that are asked for are computed in one pass.
    hits : Hits
    name : callable
        What a case is called in messages, by its number.

    Returns
    -------
    array of float, shape (metrics, cases)
        0 where there is no value.
    array of bool, shape (metrics, cases)
        False where there is none.

    Raises
    ------
    InputError
        A metric of another package failed, or gave something else than a number from 0 to 1 (or
        NaN) a row.

    Examples
    --------
    >>> from misslink.retrieval import collect, parse
    >>> from misslink.types import Case, Passage
    >>> case = Case(id="c1", question="Who?", relevant=["a", "b"])
    >>> hits = collect([case], [[Passage(id="a", rank=1)]])
    >>> per_case([parse("recall@1"), parse("precision@2"), parse("recall@5")], hits)[0].tolist()
    [[0.5], [0.5], [0.5]]
    """
    values, known = np.zeros((len(metrics), hits.cases)), np.zeros((len(metrics), hits.cases), bool)
    for places in _families(metrics):
        first = metrics[places[0]]
        of_rows = _at_cutoffs([metrics[at] for at in places], hits)
        also = without_relevant(first)
        counts = hits.needs >= (0 if also else 1)
        for place, row in _beyond(of_rows, counts):
            raise InputError(
                f"the metric '{metrics[places[place]]}' gave {of_rows[place, row]:g} for "
                f"'{name(int(hits.case[row]))}'; values of a rank metric lie between 0 and 1 "
                "(NaN where there is none)"
            )
        of_rows = np.clip(of_rows, 0.0, 1.0)
        values[places], known[places] = hits.per_case(of_rows, without_relevant=also)
    return values, known


def _families(metrics: Sequence[RankMetric]) -> list[Ints]:
    """Places of the metrics that are computed together."""
    found: dict[object, list[int]] = {}
    for at, metric in enumerate(metrics):
        together = hasattr(metric, "at_cutoffs") and getattr(metric, "k", None) is not None
        base = str(metric).partition("@")[0]
        found.setdefault((type(metric), base) if together else at, []).append(at)
    return [np.array(places, dtype=np.int64) for places in found.values()]


def _at_cutoffs(metrics: Sequence[RankMetric], hits: Hits) -> Floats:
    """Value of each row, a line a cut-off."""
    first, several = metrics[0], len(metrics) > 1
    with told_by_name(first):
        if several:
            ks = np.array([getattr(metric, "k", None) for metric in metrics], dtype=np.int64)
            given = first.at_cutoffs(hits, ks)  # type: ignore[attr-defined]
        else:
            given = first.of(hits)
    wanted = (len(metrics), hits.rows) if several else (hits.rows,)
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"the metric '{first}' gave no array of numbers, one a row") from None
    if values.shape != wanted:
        raise InputError(
            f"the metric '{first}' gave an array of shape {values.shape}, not {wanted}: a value "
            "for each row of the hits"
        )
    return values.reshape(len(metrics), hits.rows)


def _beyond(values: Floats, counts: Bools) -> Sequence[tuple[int, int]]:
    """Line and row of the first value outside [0, 1] that counts; nothing where there is none."""
    if not values.size or (values.min() >= 0 and values.max() <= 1):  # NaN is neither
        return ()
    outside = counts & ((values < -_ROUNDED) | (values > 1 + _ROUNDED))
    places = np.argwhere(outside)[:1]
    return [(int(place), int(row)) for place, row in places]
