"""What  misslink retrieval  prints, as data: metrics, counts, slices, curves, comparisons."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

from misslink.types import Estimate

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from misslink.retrieval.rank_scores import RankScores
    from misslink.stats.bands import Band

__all__ = ["CURVES", "DEPTH", "Groups", "compared", "curves", "document_of", "judged_names"]

CURVES = ("recall", "precision", "ndcg")
DEPTH = 100  # cut-offs of a curve
_ENOUGH = 0.9  # of the first k judged: below it the report warns
_NOT_SAID = "not said"


@dataclass(frozen=True)
class Groups:
    """A column that says of queries what they are of, by query id.

    Parameters
    ----------
    column : str
    of : mapping of str to str
    """

    column: str
    of: Mapping[str, str]

    def clusters(self, queries: Sequence[str]) -> list[Hashable]:
        """The cluster of each query; one of which nothing is said is a cluster of its own."""
        return [self.of.get(query, (at,)) for at, query in enumerate(queries)]

    def members(self, queries: Sequence[str]) -> dict[str, list[int]]:
        """Places of the queries of each group, sorted by name; those of none come last."""
        found: dict[str, list[int]] = {}
        unsaid: list[int] = []
        for at, query in enumerate(queries):
            group = self.of.get(query)
            (unsaid if group is None else found.setdefault(group, [])).append(at)
        named = {group: found[group] for group in sorted(found)}
        return {**named, **({_NOT_SAID: unsaid} if unsaid else {})}


def document_of(
    scores: RankScores,
    metrics: Sequence[str],
    *,
    by: Groups | None = None,
    cluster: Groups | None = None,
    per_query: bool = False,
) -> dict[str, Any]:
    """Everything of one run.

    Parameters
    ----------
    scores : RankScores
    metrics : sequence of str
        Those that are told; `scores` also has what `judged_names` adds.
    by : Groups or None
        Column by which the queries are sliced.
    cluster : Groups or None
        Column whose values are drawn anew for the intervals.
    per_query : bool
        Whether every value is told.

    Returns
    -------
    dict
        ``metrics``, ``counts``, ``judged`` (the share of the first k that was judged, as deep as
        the metrics go), ``warnings``, and where asked for ``bounds`` (``low`` and ``high``
        of each metric), ``slices`` and ``per_query``.
    """
    clusters = cluster.clusters(scores.queries) if cluster else None
    document: dict[str, Any] = {
        "metrics": {name: _mean(scores, name, clusters).model_dump() for name in metrics},
        "counts": dict(scores.counts),
        "judged": {
            name: _mean(scores, name, clusters).model_dump() for name in judged_names(metrics)
        },
    }
    if cluster:
        document["cluster"] = {"column": cluster.column, "clusters": len(set(clusters or ()))}
    if scores.lowest is not None and scores.highest is not None:
        document["bounds"] = {
            name: {
                end: _estimate(
                    values[scores.names.index(name)], scores, name, clusters
                ).model_dump()
                for end, values in (("low", scores.lowest), ("high", scores.highest))
            }
            for name in metrics
        }
    if by:
        document["slices"] = {by.column: _slices(scores, metrics, by, clusters)}
    document["warnings"] = _warnings(document)
    if per_query:
        places = [scores.names.index(name) for name in metrics]
        rows = zip(*(_listed(scores, at) for at in places), strict=True)
        document["per_query"] = {
            query: dict(zip(metrics, row, strict=True))
            for query, row in zip(scores.queries, rows, strict=True)
        }
    return document


def judged_names(metrics: Sequence[str]) -> list[str]:
    """Return judged@k for 10 and for every cut-off of the metrics, in their order.

    Examples
    --------
    >>> judged_names(["recall@5", "map", "ndcg@100", "recall@100"])
    ['judged@5', 'judged@10', 'judged@100']
    """
    from misslink.retrieval.metrics import parse

    cut_offs = (getattr(parse(name), "k", None) for name in metrics)
    return [f"judged@{k}" for k in sorted({10, *(k for k in cut_offs if isinstance(k, int))})]


def curves(scores: RankScores) -> dict[str, Band]:
    """The means at every cut-off from 1, of each metric of `CURVES`."""
    import numpy as np

    from misslink.stats.bands import band

    found = {}
    for base in CURVES:
        places = [scores.names.index(f"{base}@{k}") for k in range(1, DEPTH + 1)]
        known = np.logical_and.reduce(scores.known[places])
        found[base] = band(scores.values[np.ix_(places, known)])
    return found


def compared(
    runs: Mapping[str, RankScores],
    metrics: Sequence[str],
    *,
    cluster: Groups | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Hold every further run against the first, as  misslink compare --json  has it.

    Parameters
    ----------
    runs : mapping of str to RankScores
        Two or more, over the same qrels.
    metrics : sequence of str
        Those that tell of judgements alone (judged@k) are not tested.
    cluster : Groups or None
    seed : int

    Returns
    -------
    dict
        ``a``, and under ``comparisons`` for each further run ``letter``, ``b``, ``paired``
        (queries with a relevant document in the qrels), ``metrics`` and ``flipped``; of two runs
        these also stand at the top.
    """
    from misslink.retrieval.metrics import parse
    from misslink.stats.side_by_side import side_by_side

    parsed = {name: parse(name) for name in metrics}
    tested = [name for name in metrics if not getattr(parsed[name], "about_judgements", False)]
    low = {name for name in tested if getattr(parsed[name], "better", "high") == "low"}
    first, *others = runs.values()
    values = [
        {name: _listed(one, one.names.index(name)) for name in tested} for one in runs.values()
    ]
    clusters = cluster.clusters(first.queries) if cluster else None
    found = side_by_side(values, seed=seed, lower_is_better=low, clusters=clusters)
    names = list(runs)
    comparisons = [
        {
            "letter": ascii_uppercase[place],
            "b": names[place],
            "paired": first.counts["evaluated"],
            "metrics": found[place - 1],
            "flipped": _flipped(first.queries, values[0], values[place], low),
        }
        for place in range(1, len(others) + 1)
    ]
    top = comparisons[0] if len(comparisons) == 1 else {}
    return {"a": names[0], **top, "comparisons": comparisons}


def _warnings(document: Mapping[str, Any]) -> list[str]:
    """Say where so little was judged that the metrics say as much of the judgements."""
    little = [
        f"{100 * found['value']:.0f} % of the first {name.partition('@')[2]}"
        for name, found in document["judged"].items()
        if found["value"] is not None and found["value"] < _ENOUGH
    ]
    if not little:
        return []
    advice = "" if "bounds" in document else "; --bounds shows what that leaves open"
    told = ", ".join(little)
    return [f"Only {told} were ever judged, and what was not counts as not relevant{advice}."]


def _flipped(
    queries: Sequence[str],
    a: Mapping[str, Sequence[float | None]],
    b: Mapping[str, Sequence[float | None]],
    low: set[str],
) -> dict[str, dict[str, list[str]]]:
    """By yes-or-no metric, the queries that turned for the better and for the worse."""
    found = {}
    for name in a:
        pairs = [
            (query, x, y)
            for query, x, y in zip(queries, a[name], b[name], strict=True)
            if x is not None and y is not None
        ]
        if not pairs or {value for _, x, y in pairs for value in (x, y)} - {0.0, 1.0}:
            continue
        sign = -1 if name in low else 1
        found[name] = {
            "better": [query for query, x, y in pairs if sign * (y - x) > 0],
            "worse": [query for query, x, y in pairs if sign * (y - x) < 0],
        }
    return found


def _slices(
    scores: RankScores, metrics: Sequence[str], by: Groups, clusters: Sequence[Hashable] | None
) -> dict[str, Any]:
    import numpy as np

    slices = {}
    for group, places in by.members(scores.queries).items():
        inside = np.zeros(len(scores.queries), dtype=np.bool_)
        inside[places] = True
        slices[group] = {
            "n": len(places),
            "metrics": {
                name: _estimate(
                    scores.of(name)[0], scores, name, clusters, inside=inside
                ).model_dump()
                for name in metrics
            },
        }
    return slices


def _mean(scores: RankScores, name: str, clusters: Sequence[Hashable] | None) -> Estimate:
    if clusters is None:
        return scores.mean(name)
    return _estimate(scores.of(name)[0], scores, name, clusters)


def _estimate(
    values: NDArray[np.float64],
    scores: RankScores,
    name: str,
    clusters: Sequence[Hashable] | None,
    *,
    inside: NDArray[np.bool_] | None = None,
) -> Estimate:
    """Mean over the queries that have a value, of those that are `inside`."""
    import numpy as np

    from misslink.stats import mean
    from misslink.stats.clustered import clustered_mean

    known = scores.of(name)[1]
    taken = np.flatnonzero(known if inside is None else known & inside)
    if not len(taken):
        return Estimate.missing("no query has a value")
    listed = values[taken].tolist()
    if clusters is None:
        return mean(listed, seed=scores.seed)
    return clustered_mean(listed, [clusters[at] for at in taken.tolist()], seed=scores.seed)


def _listed(scores: RankScores, at: int) -> list[float | None]:
    """The value of each query, None where it has none."""
    import numpy as np

    values: list[float | None] = scores.values[at].tolist()
    for place in np.flatnonzero(~scores.known[at]).tolist():
        values[place] = None
    return values
