from __future__ import annotations

import asyncio
import json
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from made_pools import corpus, goldset, pool_of, ranked
from misslink.embedding import open_embedder
from misslink.errors import AppUnreachableError, InputError
from misslink.goldset.pooling.pool import band_sizes, draw_passages, question_generator
from misslink.goldset.pooling.rankings import (
    PassageRanking,
    match_corpus_ids,
    query_retriever,
    read_rankings,
    retriever_names,
)
from misslink.text.normalization import content_id


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


TREC = "q0 Q0 d1 1 2.0 a\nq0 Q0 d2 2 3.0 a\nq9 Q0 d5 1 1 a\nq0 Q0 d0 3 3.0 a\n"


def test_a_trec_run_is_ranked_by_score_and_ties_by_id_descending(tmp_path):
    found = read_rankings(written(tmp_path / "a.trec", TREC), "a", {"q0"}, 2)
    assert found.passages == {"q0": ("d2", "d0")}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", json.dumps({"q0": ["d2", "d0", "d1"]})),
        ("a.json", json.dumps({"q0": {"d1": 1, "d0": 2, "d2": 2.5}})),
        ("a.tsv", "query_id\tdoc_id\trank\nq0\td1\t3\nq0\td2\t1\nq0\td0\t2\n"),
        ("a.jsonl", json.dumps({"case_id": "q0", "retrieved": ["d2", "d0", "d1"]}) + "\n"),
    ],
    ids=["lists", "scores", "ranks", "traces"],
)
def test_every_form_of_a_run_gives_the_same_ranking(tmp_path, name, text):
    if name == "a.jsonl":
        rows = [{"id": i, "text": i} for i in ("d2", "d0", "d1")]
        text = json.dumps({"case_id": "q0", "retrieved": rows}) + "\n"
    found = read_rankings(written(tmp_path / name, text), "a", {"q0"}, 10)
    assert found.passages == {"q0": ("d2", "d0", "d1")}


def test_a_run_of_other_questions_is_told(tmp_path):
    with pytest.raises(InputError, match="contains no question of the gold set"):
        read_rankings(written(tmp_path / "a.trec", TREC), "a", {"other"}, 2)


def test_a_passage_ranked_twice_is_told(tmp_path):
    text = "q0 Q0 d1 1 2.0 a\nq0 Q0 d1 2 1.0 a\n"
    with pytest.raises(InputError, match="'d1' twice"):
        read_rankings(written(tmp_path / "a.trec", text), "a", {"q0"}, 2)


def test_a_passage_that_the_corpus_lacks_is_told_with_the_way_out(tmp_path):
    found = read_rankings(written(tmp_path / "a.trec", TREC), "a", {"q0"}, 5)
    with pytest.raises(InputError, match=r"a\.trec: .*\('d1', 'd2'\). Give the corpus"):
        match_corpus_ids(found, {"d0": "text"})


def test_a_retriever_given_twice_is_told_and_files_of_one_name_keep_their_folders():
    assert retriever_names(["x/run.trec", "y/run.trec"]) == ["run", "y/run.trec"]
    with pytest.raises(InputError, match="named twice"):
        retriever_names(["a.trec", "a.trec", "a.trec"])
    with pytest.raises(InputError, match="named twice"):
        retriever_names(["a.trec", "./a.trec"])


def asked(app, **options):
    return asyncio.run(query_retriever(app, "app", goldset(2).cases, 4, **options))


def bm25_retriever(**options):
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Retriever(BaseRetriever):
        k: int = 2

        def _get_relevant_documents(self, query, *, run_manager):
            topic = query.rstrip("?").split()[-1]
            found = [one for one in corpus() if topic in one.text][: self.k]
            return [Document(one.text, id=one.id if options.get("ids", True) else None)
                    for one in found]  # fmt: skip

    return Retriever()


def test_a_live_retriever_is_asked_as_deep_as_the_pool():
    assert asked(bm25_retriever()).passages == {
        "q0": ("d0", "d6", "d12", "d18"),
        "q1": ("d1", "d7", "d13", "d19"),
    }


def test_passages_without_an_id_are_found_in_the_corpus_by_their_text():
    found = asked(bm25_retriever(ids=False))
    texts = {passage.id: passage.text for passage in corpus()}
    assert found.passages["q0"][0] == content_id(texts["d0"])
    assert match_corpus_ids(found, texts).passages["q0"] == ("d0", "d6", "d12", "d18")


def test_a_retriever_that_never_answers_is_an_outage():
    def broken(question):
        raise ConnectionError("no such host")

    with pytest.raises(AppUnreachableError, match="no such host"):
        asked(broken)


TEXTS = [
    "The ferry leaves the harbour at noon.",
    "A bridge over the harbour, the old harbour and the new harbour.",
    "Museum of bread.",
    "Ferries and bridges: a long text about ferries, timetables, tickets, dogs and bicycles.",
    "",
    "The harbour museum.",
]


class OfWords(Embeddings):
    """A model without a server."""

    model = "of-words"
    inner = DeterministicFakeEmbedding(size=12)

    def embed_documents(self, texts):
        return self.inner.embed_documents(texts)

    def embed_query(self, text):
        return self.inner.embed_query(f"query: {text}")


def test_by_words_the_nearest_share_the_rarest_words():
    assert PassageRanking(TEXTS).order("old bridge").tolist() == [1, 3, 0, 2, 4, 5]


@pytest.mark.parametrize("question", ["???", "zebra", "\ud800 <script>"])
def test_a_question_without_a_known_word_leaves_the_order_of_the_corpus(question):
    assert PassageRanking(TEXTS).order(question).tolist() == list(range(len(TEXTS)))


def test_a_corpus_without_a_word_has_an_order():
    assert PassageRanking(["", "..."]).order("harbour").tolist() == [0, 1]


def test_by_meaning_the_order_is_that_of_the_cosines():
    model = OfWords()
    questions = ["Where is the ferry?", "Which museum?"]
    nearness = PassageRanking(TEXTS, open_embedder(model, cache=None), questions)
    given = np.array(model.embed_documents(TEXTS))
    for question in questions:
        asked = np.array(model.embed_query(question))
        cosines = given @ asked / np.linalg.norm(given, axis=1) / np.linalg.norm(asked)
        filled = [at for at in np.argsort(-cosines, kind="stable").tolist() if TEXTS[at]]
        order = nearness.order(question).tolist()
        assert sorted(order) == list(range(len(TEXTS)))
        assert [at for at in order if TEXTS[at]] == filled
    assert "of-words" in nearness.name


def drawn(count=60, pooled=range(5), known=(), **options):
    options = {"depth": 3, "random": 3, "stratified": 6, **options}
    generator = question_generator(options.pop("seed", 0), "q")
    strata, places = draw_passages(range(count), pooled, known, generator=generator, **options)
    return SimpleNamespace(strata=strata, places=places)


@given(
    count=st.integers(1, 300), pooled=st.integers(0, 20), random=st.integers(0, 12),
    stratified=st.integers(0, 25), depth=st.integers(1, 20), seed=st.integers(0, 99),
)  # fmt: skip
def test_strata_cover_the_corpus_and_weights_add_up_to_it(
    count, pooled, random, stratified, depth, seed
):
    found = drawn(count, range(min(pooled, count)), random=random, stratified=stratified,
                  depth=depth, seed=seed)  # fmt: skip
    assert sum(stratum.size for stratum in found.strata) == count
    places = [place for place, _ in found.places]
    assert len(set(places)) == len(places)
    counts = Counter(stratum for _, stratum in found.places)
    for at, stratum in enumerate(found.strata):
        assert counts[at] == stratum.drawn <= stratum.size
    outside = count - min(pooled, count)
    assert len(places) - min(pooled, count) == min(outside, random + stratified) or stratified
    if random + stratified:
        weights = sum(found.strata[at].weight for _, at in found.places)
        assert weights == pytest.approx(count)


def test_everything_that_a_retriever_brings_is_asked_about_with_weight_1():
    found = drawn(pooled=[7, 3, 9])
    assert {place for place, at in found.places if at == 1} == {3, 7, 9}
    assert found.strata[1].weight == 1


def test_what_has_a_grade_is_neither_asked_nor_drawn():
    found = drawn(pooled=[0, 1], known=[1, 40])
    assert found.strata[0].size == 2
    assert not {1, 40} & {place for place, _ in found.places}


def test_a_band_is_drawn_from_alike_given_how_many_were_drawn():
    """Over many draws every passage of a band stands for as many as its weight says."""
    sums = np.zeros(60)
    draws = 3000
    for seed in range(draws):
        found = drawn(pooled=(), seed=seed, random=4, stratified=8)
        for place, at in found.places:
            sums[place] += found.strata[at].weight
    assert sums.mean() / draws == pytest.approx(1)
    # A weight is at most 15 here, so each mean has a standard error below sqrt(15 / 3000).
    assert np.abs(sums / draws - 1).max() < 4 * np.sqrt(15 / draws)


def test_near_bands_are_drawn_from_more_densely():
    found = drawn(5000, depth=10, random=0, stratified=8)
    assert [stratum.size for stratum in found.strata[2:]] == [10, 100, 1000, 3885]
    weights = [stratum.weight for stratum in found.strata[2:]]
    assert weights == sorted(weights)
    assert len({stratum.drawn for stratum in found.strata[2:]}) == 1


@pytest.mark.parametrize(("outside", "stratified"), [(0, 10), (1, 10), (3, 0), (11, 4), (9999, 25)])
def test_bands_are_never_empty(outside, stratified):
    sizes = band_sizes(outside, stratified, 10)
    assert sum(sizes) == outside
    assert all(sizes)


def test_the_same_seed_draws_the_same_and_another_another():
    assert pool_of().items == pool_of().items
    assert pool_of().items != pool_of(seed=1).items


def test_one_question_more_changes_no_draw_of_another():
    def of(pool):
        return {item.item: item.weight for item in pool.items if item.case_id == "q0"}

    assert of(pool_of()) == of(pool_of(gold=goldset(2)))


@pytest.mark.slow
def test_the_order_tells_nothing_of_the_retriever():
    """Which of a question's items comes first is as often a pooled one as their share."""
    first, share = [], []
    for seed in range(300):
        items = [item for item in pool_of(seed=seed).items if item.case_id == "q0"]
        first.append(items[0].stratum == 1)
        share.append(sum(item.stratum == 1 for item in items) / len(items))
    expected = np.mean(share)
    assert abs(np.mean(first) - expected) < 4 * np.sqrt(expected * (1 - expected) / 300)


def test_questions_come_one_after_the_other_in_another_order_than_in_the_gold_set():
    order = [item.case_id for item in pool_of(gold=goldset(6)).items]
    starts = [case for at, case in enumerate(order) if at == 0 or order[at - 1] != case]
    assert sorted(starts) == [f"q{n}" for n in range(6)]
    assert starts != sorted(starts)


def test_a_grade_of_the_gold_set_is_asked_about_again_on_request():
    gold = goldset(1, relevant={"d0": 1, "d6": 0})
    runs = (ranked("a", {"q0": ["d0", "d6", "d12"]}),)
    kept = {item.passage_id for item in pool_of(gold, runs).items}
    assert not kept & {"d0", "d6"}
    again = {item.passage_id for item in pool_of(gold, runs, rejudge=True).items}
    assert {"d0", "d6", "d12"} <= again


def test_a_pool_of_which_everything_has_a_grade_is_told_with_the_way_out():
    gold = goldset(1, relevant={"d0": 1})
    with pytest.raises(InputError, match="Grade them again with --rejudge"):
        pool_of(gold, (ranked("a", {"q0": ["d0"]}),), random=0, stratified=0)
