"""A pool made of a gold set, a corpus and what retrievers bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from misslink.errors import InputError
from misslink.files.goldset import GoldSet
from misslink.goldset.pooling.drawing import Drawn, Nearness, draw, in_any_order, seeded
from misslink.goldset.pooling.folder import Pool, PoolItem, item_id, listed
from misslink.goldset.pooling.rankings import Ranked, placed
from misslink.types import Case, Passage

__all__ = ["make_pool"]

_ORDER = "the order of the questions"


def make_pool(
    goldset: GoldSet,
    corpus: Sequence[Passage],
    runs: Sequence[Ranked],
    nearness: Nearness,
    *,
    depth: int = 10,
    random: int = 5,
    stratified: int = 10,
    seed: int = 0,
    rejudge: bool = False,
    inputs: Mapping[str, str] | None = None,
) -> Pool:
    """Draw a pool.

    Parameters
    ----------
    goldset : GoldSet
        A passage that it has a grade for, 0 included, or lists in a set that suffices
        (``relevant_any``), is not asked about.
    corpus : sequence of Passage
    runs : sequence of Ranked
        Whose best `depth` are asked about, at least one.
    nearness : Nearness
        Over the passages of the corpus, in its order.
    depth : int
    random, stratified : int
        How many passages of each question that no retriever brings are asked about: drawn from
        all of them, and from bands of their rank by `nearness`.
    seed : int
    rejudge : bool
        Ask about what the gold set has a grade for, too.
    inputs : mapping of str to str or None
        What it is drawn from, for people.

    Returns
    -------
    Pool
        One question after the other, in any order; its passages in any order.

    Raises
    ------
    InputError
        A retriever brings passages that the corpus does not hold, or there is nothing to ask.
    """
    texts = {passage.id: passage.text for passage in corpus}
    place = {passage.id: at for at, passage in enumerate(corpus)}
    top = {run.name: placed(run, texts).of for run in runs}
    strata, asked = {}, {}
    for case in goldset.cases:
        brought = dict.fromkeys(
            place[name] for of in top.values() for name in of.get(case.id, ())[:depth]
        )
        graded = () if rejudge else listed(case)
        drawn = draw(
            nearness.order(case.question),
            list(brought),
            {place[name] for name in graded if name in place},
            depth=depth,
            random=random,
            stratified=stratified,
            generator=seeded(seed, case.id),
        )
        strata[case.id] = drawn.strata
        asked[case.id] = _items(case, drawn, corpus)
    order = in_any_order([case.id for case in goldset.cases], seeded(seed, _ORDER))
    items = tuple(item for case_id in order for item in asked[case_id])
    if not items:
        raise InputError(
            "there is nothing to ask: it has a grade for all that the retrievers bring, and "
            "nothing else was drawn; --rejudge asks again, --random draws others",
            path=goldset.name,
        )
    return Pool(
        goldset=goldset,
        items=items,
        strata=strata,
        rankings={name: {c: names[:depth] for c, names in of.items()} for name, of in top.items()},
        depth=depth,
        random=random,
        stratified=stratified,
        seed=seed,
        corpus=len(corpus),
        bands_by=nearness.name,
        rejudged=rejudge,
        inputs=dict(inputs or {}),
    )


def _items(case: Case, drawn: Drawn, corpus: Sequence[Passage]) -> list[PoolItem]:
    found = []
    for at, stratum in drawn.places:
        passage, weight = corpus[at], drawn.strata[stratum].weight
        found.append(
            PoolItem(
                item=item_id(case.id, case.question, passage.id, passage.text),
                case_id=case.id,
                question=case.question,
                passage_id=passage.id,
                text=passage.text,
                stratum=stratum,
                weight=weight or 1.0,
            )
        )
    return found
