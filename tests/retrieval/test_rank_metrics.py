import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from misslink.errors import InputError
from misslink.registry import rank_metrics
from misslink.retrieval import collect, parse, score
from misslink.retrieval.hits import Hits
from misslink.types import Case, Passage, Trace


def ranked(ids, texts=None):
    return tuple(
        Passage(id=name, rank=rank, text="" if texts is None else texts[name])
        for rank, name in enumerate(ids, start=1)
    )


def one(metric, relevant, ids):
    asked = Case(id="c", question="?", relevant=relevant)
    return score([asked], [Trace(case_id="c", retrieved=ranked(ids))], [metric])[metric]["c"]


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        # x a y b, of which a has grade 1, b grade 2, and c with grade 3 is not there
        ("hit@1", 0),
        ("hit@2", 1),
        ("recall@2", 1 / 3),
        ("recall@4", 2 / 3),
        ("precision@2", 1 / 2),
        ("precision@10", 2 / 10),
        ("mrr", 1 / 2),
        ("mrr@1", 0),
        ("mrr@2", 1 / 2),
        ("ndcg@1", 0),
        ("ndcg@2", (1 / math.log2(3)) / (3 + 2 / math.log2(3))),
        ("ndcg@4", (1 / math.log2(3) + 2 / math.log2(5)) / (3 + 2 / math.log2(3) + 1 / 2)),
    ],
)
def test_value_worked_by_hand(metric, value):
    assert one(metric, {"a": 1, "b": 2, "c": 3}, "xayb") == pytest.approx(value, abs=1e-12)


def test_ideal_ranking_is_cut_at_k_too():
    assert one("ndcg@1", {"a": 1, "b": 1}, "ab") == 1


@pytest.mark.parametrize("name", ["recall@5", "mrr", "mrr@10", "ndcg@1", "hit@3", "precision@100"])
def test_a_metric_is_a_value_that_prints_as_its_name(name):
    assert str(parse(name)) == name
    assert parse(name) == parse(f" {name} ")
    assert hash(parse(name)) == hash(parse(name))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("recal@5", "did you mean 'recall@5'"),
        ("nDCG@10", "did you mean 'ndcg@10'"),
        ("mmr", "did you mean 'mrr'"),
        ("recall", "write for example recall@5"),
        ("recall@0", "k counts from 1"),
        ("recall@-1", "k counts from 1"),
        ("recall@five", "k counts from 1"),
        ("recall@05", "k counts from 1"),
        ("recall@", "k counts from 1"),
        ("mrr@0", "k counts from 1"),
        ("zzz", "known: hit@k, mrr, mrr@k, ndcg@k, precision@k, recall@k"),
        ("", "unknown rank metric ''"),
    ],
)
def test_a_wrong_name_is_answered_with_the_way_out(name, message):
    with pytest.raises(InputError) as caught:
        parse(name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


TEXTS = {
    "a": "alpha holds here",
    "a2": "again alpha holds here",
    "ab": "alpha holds here and beta follows after",
    "b": "so beta follows after",
    "x": "nothing of it",
    "y": "nothing else",
}
BOTH = Case(
    id="c", question="?", evidence={"alpha holds here": 1, "beta follows after": 2, "gone": 1}
)


def over(case, ids, *metrics):
    trace = Trace(case_id="c", retrieved=ranked(ids, TEXTS))
    return [score([case], [trace], [metric])[metric]["c"] for metric in metrics]


def test_several_passages_with_the_same_evidence_count_once():
    values = over(BOTH, ["a", "a2", "x"], "recall@3", "precision@3", "ndcg@3")
    # ideal: grades 2, 1, 1
    assert values == pytest.approx([1 / 3, 1 / 3, 1 / (2 + 1 / math.log2(3) + 1 / 2)])


def test_a_passage_that_satisfies_two_needs_is_one_gain_here_and_in_the_ideal():
    values = over(BOTH, ["ab", "x"], "recall@1", "precision@1", "ndcg@2")
    # gains 2; ideal: 2 for both together, 1 for the missing one
    assert values == pytest.approx([2 / 3, 1, 2 / (2 + 1 / math.log2(3))])
    complete = Case(id="c", question="?", evidence={"alpha holds here": 1, "beta follows after": 2})
    assert over(complete, ["ab", "x"], "ndcg@1", "ndcg@5", "recall@1") == [1, 1, 1]


def test_split_evidence_is_a_hit_at_the_worse_rank():
    asked = Case(id="c", question="?", evidence=["a long evidence that a chunk boundary cuts"])
    texts = ["that a chunk boundary cuts in two", "nothing", "here is a long evidence"]
    passages = tuple(Passage(id=t, text=t, rank=n) for n, t in enumerate(texts, start=1))
    trace = Trace(case_id="c", retrieved=passages)
    scores = score([asked], [trace], ["hit@2", "hit@3", "mrr"])
    assert [scores[name]["c"] for name in scores] == pytest.approx([0, 1, 1 / 3])


def test_the_best_alternative_counts_for_each_metric_by_itself():
    asked = Case(id="c", question="?", relevant_any=[["a", "b", "q"], ["c"]])
    trace = Trace(case_id="c", retrieved=ranked("axbc"))
    scores = score([asked], [trace], ["recall@4", "mrr", "precision@4", "recall@1"])
    assert [scores[name]["c"] for name in scores] == pytest.approx([1, 1, 1 / 2, 1 / 3])


def test_hits_keep_only_what_satisfies_a_need():
    cases = [
        Case(id="none", question="?"),
        Case(id="two", question="?", relevant_any=[["b"], ["x", "a"]]),
        Case(id="one", question="?", relevant={"c": 2, "d": 1}),
    ]
    hits = collect(cases, [ranked("ab"), ranked("zab"), ranked("cc")])
    assert hits.case.tolist() == [1, 1, 2]
    assert hits.needs.tolist() == [1, 2, 2]
    columns = (hits.row, hits.rank, hits.gain, hits.found)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == [
        (0, 3, 1, 1),
        (1, 2, 1, 1),
        (2, 1, 2, 1),  # the second 'c' is a repetition
    ]
    assert hits.ideal_gain.tolist() == [1, 1, 1, 2, 1]


EVERY = [name.replace("{k}", k) for name in rank_metrics.names() for k in ("1", "3", "10")]
identifiers = st.sampled_from("abcdefgh")
rankings = st.lists(identifiers, unique=True, max_size=8)
judgements = st.dictionaries(identifiers, st.integers(0, 3), max_size=6)
batches = st.lists(st.tuples(judgements, rankings), max_size=5)
texts = st.dictionaries(
    identifiers, st.lists(st.sampled_from(["one", "two", "three"]), max_size=3), min_size=8
)


def batch(pairs):
    cases = [Case(id=str(n), question="?", relevant=rel) for n, (rel, _) in enumerate(pairs)]
    traces = [Trace(case_id=str(n), retrieved=ranked(ids)) for n, (_, ids) in enumerate(pairs)]
    return cases, traces


@settings(deadline=None)
@given(batches, st.randoms())
def test_every_metric_ignores_the_order_of_cases_and_traces(pairs, chance):
    cases, traces = batch(pairs)
    before = score(cases, traces, EVERY)
    chance.shuffle(cases)
    chance.shuffle(traces)
    assert score(cases, traces, EVERY) == before


@settings(deadline=None)
@given(batches)
def test_every_metric_is_within_0_and_1_and_none_exactly_where_nothing_is_needed(pairs):
    cases, traces = batch(pairs)
    scores = score(cases, traces, EVERY)
    for case in cases:
        for values in scores.values():
            value = values[case.id]
            assert (value is None) == (not any(case.relevant.values()))
            assert value is None or 0 <= value <= 1


@settings(deadline=None)
@given(judgements, rankings.filter(lambda ids: len(ids) > 1), st.data())
def test_no_metric_falls_when_a_better_passage_moves_up(relevant, ids, data):
    at = data.draw(st.integers(1, len(ids) - 1))
    grades = [relevant.get(ids[place], 0) for place in (at - 1, at)]
    if grades[1] > grades[0]:
        better = [*ids[: at - 1], ids[at], ids[at - 1], *ids[at + 1 :]]
        for name in EVERY:
            assert one(name, relevant, better) >= one(name, relevant, ids) - 1e-12


@settings(deadline=None)
@given(texts, rankings.filter(lambda ids: len(ids) > 1), st.data())
def test_no_metric_falls_when_evidence_moves_up_past_a_passage_without_any(words, ids, data):
    asked = Case(id="c", question="?", evidence={"one": 1, "two": 2, "three": 1})
    written = {name: "- " + " - ".join([*carried, "-"]) for name, carried in words.items()}
    at = data.draw(st.integers(1, len(ids) - 1))
    if words[ids[at]] and not words[ids[at - 1]]:
        better = [*ids[: at - 1], ids[at], ids[at - 1], *ids[at + 1 :]]
        old, new = (Trace(case_id="c", retrieved=ranked(r, written)) for r in (ids, better))
        before, after = score([asked], [old], EVERY), score([asked], [new], EVERY)
        for name in EVERY:
            assert 0 <= before[name]["c"] <= after[name]["c"] + 1e-12
            assert after[name]["c"] <= 1


@settings(deadline=None)
@given(judgements.filter(lambda rel: any(rel.values())))
def test_every_metric_is_0_for_an_empty_ranking_and_1_for_the_best_that_fits(relevant):
    best = sorted((name for name in relevant if relevant[name]), key=lambda name: -relevant[name])
    for name in EVERY:
        assert one(name, relevant, "") == 0
        full = {"precision": min(len(best) / max(parse(name).k or 1, 1), 1)}
        part = {"recall": min((parse(name).k or 1) / len(best), 1)}
        expected = {**full, **part}.get(name.partition("@")[0], 1)
        assert one(name, relevant, best) == pytest.approx(expected)


@pytest.mark.parametrize("name", EVERY)
def test_every_metric_takes_no_cases_at_all(name):
    assert score([], [], [name]) == {name: {}}
    empty = collect([], [])
    assert isinstance(empty, Hits)
    assert empty.best(parse(name).of(empty)) == []
