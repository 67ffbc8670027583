"""A map of questions and passages in two dimensions (UMAP or PCA)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from misslink.parts import by_case
from misslink.render.format import shorten
from misslink.retrieval.matching import relevant_ids
from misslink.types import Case, Link, Passage, RetrievalMiss, Trace

if TYPE_CHECKING:
    import numpy as np

    from misslink.embedding import Embedder


# Of each kind: more overlap on a screen, and the page grows by 0.2 MB a thousand.
MAX_POINTS = 2_000
_MAX_TEXT = 300  # characters of a text that a reader sees
_MIN_POINTS = 3  # two points lie on a line whatever they are
# To import and compile UMAP takes some 12 s of CPU; of fewer points two components show as much.
_UMAP_MIN_POINTS = 100


async def build_embedding_map(
    cases: Sequence[Case],
    traces: Sequence[Trace],
    links: Sequence[Link],
    *,
    embedder: Embedder | None,
    seed: int,
    umap: bool = True,
) -> dict[str, Any] | None:
    """Lay the run's questions and passages out in a plane, similar texts close together.

    By UMAP if `umap`, where umap-learn is installed (the extra `map`) and there are enough points, else
    by the first two principal components. Neighbors mean much, distances across the map little.

    Parameters
    ----------
    cases, traces, links : sequence
        Of one run, matched by case id.
    embedder : Embedder or None
    seed : int
        Random seed of UMAP, and of the sample where there are more points than can be shown.
    umap : bool
        Whether UMAP may be used.

    Returns
    -------
    dict or None
        ``map.json``: ``method`` ('umap' or 'pca'), ``embedding``, ``queries`` and ``passages`` with
        ``id``, ``x`` and ``y`` in [0, 1] and ``text``, queries with their ``failure`` (None: not
        linked), ``lines`` from each missed case to each passage it needed, and the numbers ``left_out``
        and ``queries_left_out``. At most 2,000 passages, missed ones first, then other needed ones, and
        2,000 queries, those with misses first. A missed evidence without a known passage has the id
        'CASE: evidence-N'. None without an embedder or with fewer than 3 texts.

    References
    ----------
    McInnes, Healy and Melville (2018), UMAP: Uniform Manifold Approximation and Projection.
    """
    if embedder is None:
        return None
    import numpy as np

    from misslink.embedding.projection import project_pca, project_umap, scale_to_unit_square

    generator = np.random.default_rng(seed)
    texts, ranks = _passage_texts(cases, traces, links)
    passages = _sample_points(texts, ranks, generator)
    missed = {link.case_id for link in links if link.missed}
    questions = {case.id: case.judged_question for case in cases}
    queries = _sample_points(
        questions, {name: int(name not in missed) for name in questions}, generator
    )
    if len(queries) + len(passages) < _MIN_POINTS:
        return None
    embedded = [
        await embedder.queries(list(queries.values())),
        await embedder.documents(list(passages.values())),
    ]
    vectors = np.concatenate([part for part in embedded if len(part)])
    use_umap = umap and len(vectors) >= _UMAP_MIN_POINTS and find_spec("umap") is not None
    spots = scale_to_unit_square(
        await asyncio.to_thread(project_umap if use_umap else project_pca, vectors, seed)
    ).tolist()
    failure = {link.case_id: link.failure for link in links}
    lines = dict.fromkeys(
        (link.case_id, _point_id(link, miss), link.failure or "inconclusive")
        for link in links
        for miss in link.missed
    )
    return {
        "method": "umap" if use_umap else "pca",
        "embedding": embedder.name,
        "queries": [
            {**point, "failure": failure.get(point["id"])} for point in _as_points(queries, spots)
        ],
        "passages": _as_points(passages, spots[len(queries) :]),
        "lines": [
            {"case_id": case_id, "passage_id": passage_id, "failure": mode}
            for case_id, passage_id, mode in lines
            if case_id in queries and passage_id in passages
        ],
        "left_out": len(texts) - len(passages),
        "queries_left_out": len(questions) - len(queries),
    }


def _passage_texts(
    cases: Sequence[Case], traces: Sequence[Trace], links: Sequence[Link]
) -> tuple[dict[str, str], dict[str, int]]:
    """Texts of the passages needed or retrieved, by id; 0 the missed, 1 other needed, 2 the rest.

    Passages whose text is not known have no place on the map.
    """
    case_of = by_case(cases)
    texts: dict[str, str] = {}
    ranks: dict[str, int] = {}

    def enter(name: str, text: str, rank: int) -> None:
        if text.strip():
            texts.setdefault(name, text)
            ranks[name] = min(rank, ranks.get(name, rank))

    for trace in traces:
        met: tuple[Passage, ...] = (*trace.retrieved, *trace.deeper)
        case = case_of.get(trace.case_id)
        needed = relevant_ids(case, met) if case is not None else set()
        for passage in met:
            if passage.id in needed or passage in trace.retrieved:
                enter(passage.id, passage.text, 1 if passage.id in needed else 2)
    for link in links:
        for miss in link.missed:
            name = _point_id(link, miss)
            enter(name, texts.get(name) or miss.text or miss.evidence or "", 0)
    return texts, ranks


def _point_id(link: Link, miss: RetrievalMiss) -> str:
    """The id of a missed passage's point; 'evidence-N' is numbered in every case."""
    unknown = miss.evidence is not None and miss.passage_id.startswith("evidence-")
    return f"{link.case_id}: {miss.passage_id}" if unknown else miss.passage_id


def _sample_points(
    texts: Mapping[str, str], ranks: Mapping[str, int], generator: np.random.Generator
) -> dict[str, str]:
    """At most `MAX_POINTS` of the texts, low ranks first, drawn among equals; in their own order."""
    if len(texts) <= MAX_POINTS:
        return dict(texts)
    order = generator.permutation(len(texts))
    drawn = sorted(zip(texts, order, strict=True), key=lambda item: (ranks[item[0]], item[1]))
    sampled = {name for name, _ in drawn[:MAX_POINTS]}
    return {name: text for name, text in texts.items() if name in sampled}


def _as_points(texts: Mapping[str, str], spots: Sequence[Sequence[float]]) -> list[dict[str, Any]]:
    return [
        {"id": name, "x": x, "y": y, "text": shorten(text, _MAX_TEXT)}
        for (name, text), (x, y) in zip(texts.items(), spots, strict=False)
    ]
