import asyncio

import pytest

from json_values import as_json
from misslink.embedding import Embedder
from misslink.errors import InputError
from misslink.linking.whatif.option_evaluation import context_tokens
from misslink.linking.whatif.options import (
    OPTION_KINDS,
    RetrievalBaseline,
    SearchContext,
    SearchTools,
    larger_k,
    make_options,
)
from misslink.linking.whatif.search import Chunking
from misslink.retrieval import score_cases
from misslink.types import Case, Passage
from town import Hashed, corpus, run_of

context_tokens = as_json(context_tokens)


class Backwards:
    """A reranker that turns the order round."""

    name = "backwards"

    def __init__(self):
        self.given = []

    async def order(self, question, texts):
        self.given.append(len(texts))
        return list(range(len(texts)))[::-1]


def misses(result):
    """Whether each case is a miss; None where it is not known."""
    return tuple(found and found.retrieval == "miss" for found in result.outcomes())


def ground(places=(1, 5, 9, None), **given):
    passages = given.pop("corpus", corpus())
    tools = SearchTools(**{"embedder": Embedder(Hashed()), **given})
    return SearchContext(RetrievalBaseline.from_run(run_of(list(places))), passages, tools)


def tried(option, given):
    return asyncio.run(option.retrieve(given.baseline))


def test_a_larger_k_knows_the_true_ranks_and_nothing_else():
    given = ground()
    found = tried(larger_k(9), given)
    assert misses(found) == (False, False, False, True)
    ranks = score_cases(found.cases, found.traces, ["recall@9", "mrr"])
    assert ranks["mrr"] == {"c0": 1, "c1": 1 / 5, "c2": 1 / 9, "c3": 0}


def test_no_retriever_gives_more_passages_than_there_are():
    """Of 8 indexed ones, 3 of which were retrieved and a missed one seen at rank 6."""
    run = run_of([1, 6, None])
    shown = [trace.model_copy(update={"depth": 8}) for trace in run.traces]
    today = RetrievalBaseline.from_run(run.model_copy(update={"traces": tuple(shown)}))
    found = asyncio.run(larger_k(10, indexed=8).retrieve(today))
    assert [len(trace.retrieved) for trace in found.traces] == [8, 8, 8]
    assert misses(found) == (False, False, True)  # all were asked for, so none is unknown
    (needed,) = run.cases[1].relevant
    assert found.traces[1].retrieved[5].id == needed
    endless = asyncio.run(larger_k(10).retrieve(today))
    assert misses(endless) == (False, False, None)
    told = [context_tokens(today, option, 0)["b"]["value"] for option in (found, endless)]
    assert told[0] < told[1]


def test_of_the_usual_numbers_of_passages_none_is_larger_than_the_corpus():
    made, _ = make_options(ground(corpus=corpus()[:8]), ["k"])
    assert [option.name for option in made] == ["k=6", "k=8"]
    made, _ = make_options(ground(corpus=corpus()[:8], widths=(10,)), ["k"])
    assert [option.name for option in made] == ["k=10"]  # as asked for


def test_a_case_that_was_not_asked_deep_enough_is_not_measured():
    run = run_of([1, None])
    shallow = [trace.model_copy(update={"depth": 4}) for trace in run.traces]
    today = RetrievalBaseline.from_run(run.model_copy(update={"traces": tuple(shallow)}))
    found = asyncio.run(larger_k(6).retrieve(today))
    assert misses(found) == (False, None)  # nothing is missed of the first
    assert "not asked for 6" in found.traces[1].unmeasured


def test_without_a_corpus_only_a_larger_k_is_tried_and_the_rest_says_why():
    made, skipped = make_options(ground(corpus=None))
    assert [option.name for option in made] == ["k=6", "k=9", "k=15"]
    assert {one.name: one.reason for one in skipped} == dict.fromkeys(
        sorted(set(OPTION_KINDS) - {"k"}), "no corpus is given; give --corpus or --app"
    )


def test_without_an_embedding_what_needs_one_says_so():
    made, skipped = make_options(ground(embedder=None))
    assert [option.name for option in made] == ["k=6", "k=9", "k=15", "bm25"]
    reasons = {one.name: one.reason for one in skipped}
    assert set(reasons) == {"dense", "hybrid", "mmr", "rerank", "chunk", "embedding"}
    way = "no embedding is known; name one with --embedding, or the app with --app"
    assert {reasons[name] for name in ("dense", "hybrid", "mmr")} == {way}
    assert reasons["rerank"] == "no reranker is named; name one with --reranker"
    assert "--chunk" in reasons["chunk"]
    assert "--embedding beside --app" in reasons["embedding"]


def test_every_option_is_tried_where_everything_is_given():
    other = Embedder(Hashed(64))
    given = ground(reranker=Backwards(), other=other, chunking=Chunking(40, 0), widths=(4,))
    made, skipped = make_options(given)
    assert skipped == []
    names = [option.name for option in made]
    assert names == [
        *("k=4", "bm25", "dense", "hybrid", "rerank", "mmr", "chunk=40/0"),
        f"embedding={other.name}",
    ]
    for option in made:
        found = tried(option, given)
        assert [trace.case_id for trace in found.traces] == ["c0", "c1", "c2", "c3"]
        assert all(
            [one.rank for one in trace.retrieved] == list(range(1, len(trace.retrieved) + 1))
            for trace in found.traces
        )


def test_a_search_finds_by_its_own_ranking_and_as_many_as_today():
    given = ground()
    (option,), _ = make_options(given, ["bm25"])
    found = tried(option, given)
    assert [trace.retrieved[0].id for trace in found.traces] == ["p0", "p1", "p2", "p3"]
    assert {len(trace.retrieved) for trace in found.traces} == {3}


def test_a_reranker_is_given_the_first_fifty_and_its_order_counts():
    reranker = Backwards()
    given = ground(reranker=reranker)
    (option,), _ = make_options(given, ["rerank"])
    found = tried(option, given)
    assert reranker.given == [50] * 4
    order = asyncio.run(given.dense.rank([given.baseline.cases[0].question], 50))[0]
    assert [one.id for one in found.traces[0].retrieved] == [f"p{n}" for n in order[::-1][:3]]


def test_another_chunking_is_held_against_the_text_of_the_passages():
    given = ground(chunking=Chunking(400, 0), corpus=together())
    (option,), _ = make_options(given, ["chunk"])
    found = tried(option, given)
    assert misses(found) == (False,) * 4  # four passages and more are in a chunk


def test_chunks_shorter_than_what_ids_name_are_not_measured():
    given = ground(chunking=Chunking(40, 0))
    (option,), _ = make_options(given, ["chunk"])
    found = tried(option, given)
    assert misses(found) == (None,) * 4
    assert "evidence" in found.traces[0].unmeasured


def test_chunks_are_measured_by_evidence_however_short_they_are():
    run = run_of([1, 5])
    cases = [
        Case(id=one.id, question=f"What is run by warden {n}?", evidence=[f"run by warden {n}"])
        for n, one in enumerate(run.cases)
    ]
    today = RetrievalBaseline.from_run(run.model_copy(update={"cases": tuple(cases)}))
    tools = SearchTools(embedder=Embedder(Hashed()), chunking=Chunking(40, 0))
    given = SearchContext(today, corpus(), tools)
    (option,), _ = make_options(given, ["chunk"])
    assert misses(tried(option, given)) == (False, False)


def together():
    """The corpus as overlapping chunks of one document."""
    told, at = [], 0
    for one in corpus():
        metadata = {"source": "wards.md", "start_index": at}
        told.append(Passage(id=one.id, text=one.text, rank=one.rank, metadata=metadata))
        at += len(one.text) + 1
    return tuple(told)


def test_larger_chunks_of_what_cannot_be_put_together_are_not_tried():
    _, skipped = make_options(ground(chunking=Chunking(5000, 0)))
    reasons = {one.name: one.reason for one in skipped}
    assert "cannot be put together" in reasons["chunk"]


def test_an_unknown_option_names_the_nearest():
    with pytest.raises(InputError, match="did you mean 'hybrid'"):
        make_options(ground(), ["hibrid"])


@pytest.mark.parametrize("name", sorted(set(OPTION_KINDS) - {"k", "bm25"}))
def test_an_option_asked_for_that_cannot_be_tried_is_an_error_with_the_way_out(name):
    with pytest.raises(InputError, match=f"'{name}' cannot be tried: .*--"):
        make_options(ground(embedder=None), [name])


def test_the_context_is_as_wide_as_most_are():
    run = run_of([1, 1, 1])
    short = run.traces[0].model_copy(update={"prompted": ("p0",)})
    today = RetrievalBaseline.from_run(run.model_copy(update={"traces": (short, *run.traces[1:])}))
    assert (today.width, today.listed, today.cutoff(9)) == (3, 3, 9)
