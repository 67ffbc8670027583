"""Evidence found in a corpus by one search over all of it, against looking into each passage."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from misslink.linking.missed_passages import PassagePool
from misslink.retrieval import Need, match_needs, satisfies
from misslink.types import Passage, Trace

SYLLABLES = ["the ", "cat ", "sat ", "on ", "a ", "mat, ", "ten ", "often. ", "Caf\u00e9 ", "1.5 "]


def corpus_and_needs(seed):
    """A text cut into chunks, and pieces of it: some within a chunk, some over a boundary."""
    generator = np.random.default_rng(seed)
    text = "".join(generator.choice(SYLLABLES, 400))
    cuts = [0, *sorted(generator.choice(len(text), 12, replace=False)), len(text)]
    chunks = [text[at:end] for at, end in pairwise(cuts)]
    passages = [Passage(id=f"p{at}", text=c, rank=at) for at, c in enumerate(chunks, 1)]
    starts = generator.integers(0, len(text) - 90, 40)
    pieces = [text[at : at + generator.integers(8, 90)] for at in starts]
    return passages, [Need(f"evidence-{at}", 1, piece) for at, piece in enumerate(pieces, 1)]


def test_one_search_over_all_texts_finds_what_each_passage_holds():
    whole = split = nowhere = 0
    for seed in range(20):
        passages, needs = corpus_and_needs(seed)
        pool = PassagePool([], passages)
        for need in needs:
            found = pool.locate(need)
            alone = [one for one in passages if satisfies(need, one)]
            together = match_needs([need], passages)
            if alone:
                assert found.passages == (alone[0],)
                whole += 1
            elif together:
                assert found.split
                assert found.passages == together[0].passages
                split += 1
            else:
                assert found is None
                nowhere += 1
    assert min(whole, split, nowhere) > 20


def test_without_a_listed_corpus_nothing_is_located_or_lacking():
    seen = Passage(id="a", text="text", rank=1)
    pool = PassagePool([Trace(case_id="c", retrieved=[seen])], None)
    assert pool.passages == (seen,)
    assert pool.locate(Need("a", 1)) is None
    assert not pool.lacks(Need("z", 1))


def test_a_passage_listed_without_a_text_is_not_lacking():
    pool = PassagePool([], [Passage(id="bare", rank=1), Passage(id="full", text="text", rank=2)])
    assert not pool.lacks(Need("bare", 1))
    assert pool.lacks(Need("other", 1))
    assert list(pool.position) == ["full"]


def test_a_corpus_that_knows_the_texts_by_other_ids_can_lack_an_evidence_but_no_id():
    trace = Trace(case_id="c", retrieved=[Passage(id="app-1", text="The Text.", rank=1)])
    pool = PassagePool([trace], [Passage(id="file-1", text="the text.", rank=1)])
    assert pool.lacks(Need("evidence-1", 1, "Something else entirely."))
    assert not pool.lacks(Need("app-2", 1))
