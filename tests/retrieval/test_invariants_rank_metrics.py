"""What holds for every registered rank metric, whoever wrote it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.registry import rank_metrics
from misslink.retrieval import (
    collect_hits,
    format_metric_name,
    metric_bounds,
    parse_metric,
    score_cases,
)
from misslink.types import Case, Passage, Trace
from naive_hits import hits_of_qrels, metric_values

EVERY = [
    format_metric_name(name, k, p)
    for name in rank_metrics.names()
    for k, p in (("1", "0.5"), ("3", "0.8"), ("10", "0.95"))
]
EVERY = list(dict.fromkeys(EVERY))
SAID = {name: parse_metric(name).about_judgements for name in EVERY}
# What says how good a ranking is; others are of labels, or of what is better when it is less.
OF_THE_SET = "set-precision"  # divided by how many were returned
OF_THE_RANKING = [name for name in EVERY if not SAID[name] and parse_metric(name).better == "high"]

identifiers = st.sampled_from("abcdefgh")
rankings = st.lists(identifiers, unique=True, max_size=8)
longer = rankings.filter(lambda ids: len(ids) > 1)
judgements = st.dictionaries(identifiers, st.integers(0, 3), max_size=6)
batches = st.lists(st.tuples(judgements, rankings), max_size=5)
texts = st.dictionaries(
    identifiers, st.lists(st.sampled_from(["one", "two", "three"]), max_size=3), min_size=8
)
NEAR = 1e-12


def ranked(ids, written=None):
    return tuple(
        Passage(id=name, rank=rank, text="" if written is None else written[name])
        for rank, name in enumerate(ids, start=1)
    )


def batch(pairs):
    cases = [Case(id=str(n), question="?", relevant=rel) for n, (rel, _) in enumerate(pairs)]
    traces = [Trace(case_id=str(n), retrieved=ranked(ids)) for n, (_, ids) in enumerate(pairs)]
    return cases, traces


def every(relevant, ids, names=EVERY):
    cases, traces = batch([(relevant, ids)])
    return {name: column["0"] for name, column in score_cases(cases, traces, names).items()}


@given(batches, st.randoms())
def test_the_order_of_cases_and_traces_does_not_matter(pairs, chance):
    cases, traces = batch(pairs)
    before = score_cases(cases, traces, EVERY)
    chance.shuffle(cases)
    chance.shuffle(traces)
    assert score_cases(cases, traces, EVERY) == before


@pytest.mark.slow
@given(batches)
def test_a_case_has_among_others_the_value_that_it_has_alone(pairs):
    cases, traces = batch(pairs)
    together = score_cases(cases, traces, EVERY)
    for case, (relevant, ids) in zip(cases, pairs, strict=True):
        assert {name: together[name][case.id] for name in EVERY} == every(relevant, ids)


@given(batches)
def test_values_lie_within_0_and_1_and_are_none_where_there_is_none(pairs):
    cases, traces = batch(pairs)
    for name, column in score_cases(cases, traces, EVERY).items():
        for case, trace in zip(cases, traces, strict=True):
            value = column[case.id]
            if not parse_metric(name).without_relevant:  # such a metric says itself when
                assert (value is None) == (not any(case.relevant.values()))
            elif name.startswith("judged@"):
                assert (value is None) == (not case.relevant or not trace.retrieved)
            assert value is None or 0 <= value <= 1


@given(judgements, longer, st.data())
def test_none_falls_when_a_better_passage_moves_up(relevant, ids, data):
    at = data.draw(st.integers(1, len(ids) - 1))
    above, below = (relevant.get(ids[place]) for place in (at - 1, at))
    if below and below > (above or 0):
        better = [*ids[: at - 1], ids[at], ids[at - 1], *ids[at + 1 :]]
        before, after = every(relevant, ids), every(relevant, better)
        for name in EVERY:
            if before[name] is None:
                assert after[name] is None, name
                continue
            assert after[name] - before[name] >= -NEAR, name


@given(texts, longer, st.data())
def test_none_falls_when_evidence_moves_up_past_a_passage_without_any(words, ids, data):
    asked = Case(id="c", question="?", evidence={"one": 1, "two": 2, "three": 1})
    written = {name: "- " + " - ".join([*carried, "-"]) for name, carried in words.items()}
    at = data.draw(st.integers(1, len(ids) - 1))
    if words[ids[at]] and not words[ids[at - 1]]:
        better = [*ids[: at - 1], ids[at], ids[at - 1], *ids[at + 1 :]]
        old, new = (Trace(case_id="c", retrieved=ranked(r, written)) for r in (ids, better))
        before, after = (score_cases([asked], [trace], OF_THE_RANKING) for trace in (old, new))
        for name in OF_THE_RANKING:
            assert 0 <= before[name]["c"] <= after[name]["c"] + NEAR, name
            assert after[name]["c"] <= 1


@given(judgements, rankings)
def test_what_follows_the_last_judged_passage_changes_nothing_but_how_much_is_open(relevant, ids):
    longer_ids = [*ids, "never judged"]
    before, after = every(relevant, ids), every(relevant, longer_ids)
    for name in OF_THE_RANKING:
        if not name.startswith(OF_THE_SET):
            assert after[name] == before[name]


@given(judgements.filter(lambda relevant: any(relevant.values())))
def test_an_empty_ranking_has_0_and_the_best_has_what_its_length_allows(relevant):
    best = sorted((name for name in relevant if relevant[name]), key=lambda name: -relevant[name])
    nothing, everything = every(relevant, []), every(relevant, best)
    length = len(best)
    for name in OF_THE_RANKING:
        assert nothing[name] == 0
        if (parse_metric(name).k or length) >= length:  # a metric may need all passages
            assert everything[name] > 0
    for k in (1, 3, 10):
        filled = min(k, length)
        assert everything[f"hit@{k}"] == everything[f"ndcg@{k}"] == 1
        assert everything[f"precision@{k}"] == pytest.approx(filled / k)
        assert everything[f"recall@{k}"] == pytest.approx(filled / length)
        assert everything[f"map@{k}"] == pytest.approx(filled / length)
        assert everything[f"f1@{k}"] == pytest.approx(2 * filled / (k + length))
    for name in ("mrr", "map", "r-precision", "bpref", "judged@3"):
        assert everything[name] == 1
    for p in (0.5, 0.8, 0.95):
        assert everything[f"rbp@{p}"] == pytest.approx(1 - p**length)
    assert nothing["judged@3"] is None


@given(judgements.filter(lambda relevant: any(relevant.values())), rankings)
def test_no_ranking_is_better_than_the_ideal_one(relevant, ids):
    ideal = sorted(relevant, key=lambda name: -relevant[name])
    unlisted = [name for name in ids if name not in relevant]
    best, other = every(relevant, [*ideal, *unlisted]), every(relevant, ids)
    for name in OF_THE_RANKING:
        if name.startswith(OF_THE_SET):  # the best returns nothing else
            best[name] = 1.0
        assert other[name] <= best[name] + NEAR, name


@pytest.mark.parametrize("name", EVERY)
def test_no_cases_at_all_have_no_values(name):
    assert score_cases([], [], [name]) == {name: {}}
    empty = collect_hits([], [])
    assert metric_values(parse_metric(name), empty) == []
    assert [len(end) for end in metric_bounds(parse_metric(name), empty)] == [0, 0]


@pytest.mark.parametrize("name", EVERY)
def test_a_metric_is_a_value_that_prints_as_its_name_and_says_what_it_means(name):
    metric = parse_metric(name)
    assert str(metric) == name
    assert metric == parse_metric(f" {name} ")
    assert hash(metric) == hash(parse_metric(name))
    assert {"Formula:", "Range:", "trec_eval:", "Use it:"} <= {
        line.strip().partition(" ")[0] if "Use it" not in line else "Use it:"
        for line in metric.function.__doc__.splitlines()
    }


@given(st.lists(st.tuples(judgements, rankings), max_size=3), st.sampled_from([1, 2, 3]))
def test_the_value_lies_between_its_bounds_at_every_relevance_level(pairs, level):
    qrels = {str(n): relevant for n, (relevant, _) in enumerate(pairs)}
    hits = hits_of_qrels(qrels, {str(n): ids for n, (_, ids) in enumerate(pairs)}, level)
    for name in EVERY:
        metric = parse_metric(name)
        ends = metric_bounds(metric, hits, grade=level)
        low, high = (hits.best(end, without_relevant=metric.without_relevant) for end in ends)
        for least, value, most in zip(low, metric_values(metric, hits), high, strict=True):
            if value is None:
                assert (least, most) == (None, None)
            else:
                assert 0 <= least <= value <= most <= 1
