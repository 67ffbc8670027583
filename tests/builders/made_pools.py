"""Pools of made-up questions, of which it is known what is relevant, and people who grade them."""

from misslink.goldset.pooling.annotation import PoolAnnotationSession
from misslink.goldset.pooling.pool import make_pool, write_pool
from misslink.goldset.pooling.rankings import PassageRanking, RetrieverRankings
from misslink.io.goldset import read_goldset
from misslink.types import Passage

HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m\u2028{{7*7}}"
TOPICS = ("harbour", "ferry", "bridge", "museum", "market", "tower")


def corpus(passages=60):
    """Passages d0, d1, ..., each of a topic in turn; d3 is hostile."""
    return [
        Passage(
            id=f"d{n}",
            text=f"The {TOPICS[n % 6]} of passage {n}. {HOSTILE if n == 3 else ''}".strip(),
            rank=n + 1,
        )
        for n in range(passages)
    ]


def goldset(questions=3, **more):
    return read_goldset(
        [{"id": f"q{n}", "question": f"What of the {TOPICS[n]}?", **more} for n in range(questions)]
    )


def truth(case_id, passage_id):
    """The grade of a passage: of the question's topic every second is highly relevant."""
    question, passage = int(case_id[1:]), int(passage_id[1:])
    if passage % 6 != question:
        return 0
    return 1 + (passage // 6) % 2


def ranked(name, of):
    return RetrieverRankings(name, f"{name}.trec", {case: tuple(ids) for case, ids in of.items()})


def two_runs(questions=3):
    """One that finds some of the topic's passages, and one that finds others and nonsense."""
    good = {f"q{n}": [f"d{n + 6 * i}" for i in range(4)] for n in range(questions)}
    poor = {f"q{n}": [f"d{n + 24}", f"d{n + 1}", f"d{n + 2}"] for n in range(questions)}
    return ranked("good", good), ranked("poor", poor)


def pool_of(gold=None, runs=None, passages=60, **options):
    texts = corpus(passages)
    options = {"depth": 3, "random": 2, "stratified": 4, **options}
    nearness = PassageRanking([passage.text for passage in texts])
    return make_pool(gold or goldset(), texts, runs or two_runs(), nearness, **options)


def put_pool(folder, **options):
    """Write a pool, and return it."""
    pool = pool_of(**options)
    write_pool(pool, folder)
    return pool


def grade_all(folder, annotator, grade_of=None, *, upto=None, adjudicate=False):
    """Grade the first items as `grade_of(item)` says, by default truly; None skips."""
    with PoolAnnotationSession(folder, adjudicate=adjudicate) as desk:
        for at in range(len(desk.tasks) if upto is None else upto):
            item = desk._items[desk.tasks[at].case.id]
            said = truth(item.case_id, item.passage_id) if grade_of is None else grade_of(item)
            desk.label(annotator, at, "relevance", None, said, "")
