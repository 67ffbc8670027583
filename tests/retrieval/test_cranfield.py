"""A real collection, really searched: Cranfield, its 225 queries, and the page that tells of it."""

import asyncio
import importlib.util
import itertools
import random

import pytest
from scipy import stats as scipy_stats

import cranfield
from misslink.embedding import open_embedder
from misslink.embedding.providers import MINILM_PACKAGES
from misslink.linking.corpus_search import LexicalSearch
from misslink.retrieval.evaluate import evaluate_run
from misslink.stats.run_comparison import compare_paired_runs

pytestmark = pytest.mark.skipif(
    not cranfield.DATA.is_dir(), reason="Cranfield is not beside the checkout"
)
QRELS = cranfield.DATA / "qrels.tsv"
QUERIES = 225
METRICS = ["ndcg@10", "mrr", "map", "recall@100"]


def by_words(collection):
    places = asyncio.run(
        LexicalSearch(list(collection.texts.values())).rank(
            list(collection.questions.values()), cranfield.DEPTH
        )
    )
    ids = list(collection.texts)
    return {
        q: [ids[at] for at in each] for q, each in zip(collection.questions, places, strict=True)
    }


@pytest.fixture(scope="module")
def runs():
    """BM25 over abstracts, over titles alone, and the first of these in any order."""
    whole = by_words(cranfield.read(cranfield.DATA))
    chance = random.Random(0)
    return {
        "whole": whole,
        "titles": by_words(cranfield.read(cranfield.DATA, "title")),
        "shuffled": {query: chance.sample(found, len(found)) for query, found in whole.items()},
    }


@pytest.mark.slow
def test_the_program_says_of_real_searches_what_pytrec_eval_and_scipy_say(runs, tmp_path):
    paths = cranfield.write_runs(runs, tmp_path)
    document = cranfield.scored(QRELS, paths, METRICS)
    # `check` holds each value of each query against pytrec_eval's.
    assert cranfield.check(QRELS, paths, document) == 3 * QUERIES * len(METRICS)
    for path in paths:
        counts = document["runs"][path.name]["counts"]
        assert counts["queries"] == counts["evaluated"] == QUERIES
        assert counts["missing_from_run"] == counts["not_in_qrels"] == 0
    own = document["runs"]["whole.trec"]["per_query"]
    for one in document["compare"]["comparisons"]:
        other = document["runs"][one["b"]]["per_query"]
        for name, found in one["metrics"].items():
            a, b = ([values[query][name] for query in own] for values in (own, other))
            if a != b:
                assert found["t_test"]["p"] == pytest.approx(scipy_stats.ttest_rel(b, a).pvalue)
            assert found["difference"]["value"] == pytest.approx((sum(b) - sum(a)) / QUERIES)
            assert found["difference"]["n"] == QUERIES


@pytest.mark.slow
def test_more_text_and_a_better_order_are_seen_to_be_better(runs):
    values = [
        {name: [one[name] for one in evaluate_run(QRELS, run, METRICS).per_query().values()]
         for name in METRICS}
        for run in runs.values()
    ]  # fmt: skip
    titles, shuffled = compare_paired_runs(values)
    assert titles["recall@100"]["winner"] == "a"
    for name in ("ndcg@10", "mrr", "map"):
        assert shuffled[name]["winner"] == "a"
    # The same passages in another order: what reads all 100 as a set does not tell them apart.
    same = shuffled["recall@100"]
    assert (same["difference"]["value"], same["winner"]) == (0, None)


@pytest.mark.slow
def test_the_first_query_is_counted_by_hand(runs):
    lines = [line.split() for line in QRELS.read_text(encoding="utf-8").splitlines()[1:]]
    relevant = {document for query, document, grade in lines if query == "1" and int(grade) > 0}
    found = relevant & set(runs["whole"]["1"][:10])
    value = evaluate_run(QRELS, runs["whole"], ["recall@10"]).per_query()["1"]["recall@10"]
    assert value == len(found) / len(relevant)
    assert 0 < value < 1


@pytest.mark.slow
@pytest.mark.skipif(
    not all(map(importlib.util.find_spec, MINILM_PACKAGES)),
    reason="the extra minilm is not installed",
)
def test_words_and_meaning_fused_find_more_than_either(tmp_path):
    """Titles of what was judged for some queries; benchmarks/retrieval/cranfield.md has all abstracts."""
    collection = cranfield.read(cranfield.DATA, "title")
    asked = dict(itertools.islice(collection.questions.items(), 80))
    lines = [line.split() for line in QRELS.read_text(encoding="utf-8").splitlines()[1:]]
    judged = {document for query, document, _ in lines if query in asked}
    texts = {name: text for name, text in collection.texts.items() if name in judged}
    part = cranfield.Collection(texts, asked)
    runs = asyncio.run(cranfield.search(part, open_embedder("minilm", cache=None)))
    paths = cranfield.write_runs(runs, tmp_path)
    # The other queries are missing from the runs, and count 0 in both.
    document = cranfield.scored(QRELS, paths, [*METRICS, cranfield.JUDGED], "--bounds")
    assert cranfield.check(QRELS, paths, document) == 3 * QUERIES * len(METRICS)
    for one in document["compare"]["comparisons"]:
        for name in ("ndcg@10", "map"):
            assert one["metrics"][name]["difference"]["value"] < 0, (one["b"], name)
    page = cranfield.page(document, part, 1, "Made by a test.")
    rows = [line for line in page.splitlines() if line.startswith("| ndcg@10 |")]
    assert len(rows) == 3
    for path in paths:
        mean = document["runs"][path.name]["metrics"]["ndcg@10"]
        assert cranfield.estimate(mean) in rows[0]
