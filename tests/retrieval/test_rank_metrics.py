import math

import pytest

from misslink.errors import InputError
from misslink.registry import rank_metrics
from misslink.retrieval import collect_hits, format_metric_name, parse_metric, score_cases
from misslink.types import Case, Passage, Trace


def ranked(ids, texts=None):
    return tuple(
        Passage(id=name, rank=rank, text="" if texts is None else texts[name])
        for rank, name in enumerate(ids, start=1)
    )


def one(metric, relevant, ids):
    asked = Case(id="c", question="?", relevant=relevant)
    return score_cases([asked], [Trace(case_id="c", retrieved=ranked(ids))], [metric])[metric]["c"]


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        # x a y b, of which a has grade 1, b grade 2, y grade 0, and c with grade 3 is not there
        ("hit@1", 0),
        ("hit@2", 1),
        ("recall@2", 1 / 3),
        ("recall@4", 2 / 3),
        ("precision@2", 1 / 2),
        ("precision@10", 2 / 10),
        ("set-precision@2", 1 / 2),
        ("f1@2", 2 * (1 / 2) * (1 / 3) / (1 / 2 + 1 / 3)),
        ("f1@10", 2 * (2 / 10) * (2 / 3) / (2 / 10 + 2 / 3)),
        ("f1@1", 0),
        ("mrr", 1 / 2),
        ("mrr@1", 0),
        ("mrr@2", 1 / 2),
        ("ndcg@1", 0),
        ("ndcg@2", (1 / math.log2(3)) / (3 + 2 / math.log2(3))),
        ("ndcg@4", (1 / math.log2(3) + 2 / math.log2(5)) / (3 + 2 / math.log2(3) + 1 / 2)),
        ("ndcg_exp@2", (1 / math.log2(3)) / (7 + 3 / math.log2(3))),
        ("ndcg_exp@4", (1 / math.log2(3) + 3 / math.log2(5)) / (7 + 3 / math.log2(3) + 1 / 2)),
        ("map", (1 / 2 + 2 / 4) / 3),
        ("map@3", (1 / 2) / 3),
        ("r-precision", 1 / 3),
        ("bpref", (1 + (1 - 1 / 1)) / 3),  # y was judged not relevant, x never
        ("rbp@0.5", 0.5 * (0.5 + 0.5**3)),
        ("judged@1", 0),
        ("judged@2", 1 / 2),
        ("judged@10", 3 / 4),
    ],
)
def test_value_worked_by_hand(metric, value):
    assert one(metric, {"a": 1, "b": 2, "c": 3, "y": 0}, "xayb") == pytest.approx(value, abs=1e-12)


def test_ideal_ranking_is_cut_at_k_too():
    assert one("ndcg@1", {"a": 1, "b": 1}, "ab") == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("recal@5", "did you mean 'recall@5'"),
        ("P_5", "did you mean 'precision@5'"),
        ("P@5", "did you mean 'precision@5'"),
        ("ndcg_cut_10", "did you mean 'ndcg@10'"),
        ("recip_rank", "did you mean 'mrr'"),
        ("Rprec", "did you mean 'r-precision'"),
        ("success_5", "did you mean 'hit@5'"),
        ("map_cut_10", "did you mean 'map@10'"),
        ("ndcg@5 recall@10", "separate by commas: ndcg@5,recall@10"),
        ("mrr map", "separate by commas: mrr,map"),
        ("nDCG@10", "did you mean 'ndcg@10'"),
        ("mmr", "did you mean 'mrr'"),
        ("recall", "write for example recall@5"),
        ("recall@0", "k counts from 1"),
        ("recall@-1", "k counts from 1"),
        ("recall@five", "k counts from 1"),
        ("recall@05", "is written recall@5; write it so"),
        ("recall@", "k counts from 1"),
        ("mrr@0", "k counts from 1"),
        ("rbp", "needs p: write for example rbp@0.8"),
        ("rbp@1", "p lies between 0 and 1"),
        ("rbp@0.0", "p lies between 0 and 1"),
        ("rbp@0.80", "is written rbp@0.8; write it so"),
        ("rbp@nan", "p lies between 0 and 1"),
        ("rpb@0.9", "did you mean 'rbp@0.9'"),
        ("rpb@9", "did you mean 'rbp@0.8'"),
        ("recall@0.5", "k counts from 1"),
        ("bpref@5", "takes no cutoff: write bpref"),
        ("r_precision", "did you mean 'r-precision'"),
        ("zzz", f"known: {', '.join(map(format_metric_name, rank_metrics.names()))}"),
        ("", "unknown rank metric ''"),
    ],
)
def test_a_wrong_name_is_answered_with_the_way_out(name, message):
    with pytest.raises(InputError) as caught:
        parse_metric(name)
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
    return [score_cases([case], [trace], [metric])[metric]["c"] for metric in metrics]


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
    scores = score_cases([asked], [trace], ["hit@2", "hit@3", "mrr"])
    assert [scores[name]["c"] for name in scores] == pytest.approx([0, 1, 1 / 3])


def test_the_best_alternative_counts_for_each_metric_by_itself():
    asked = Case(id="c", question="?", relevant_any=[["a", "b", "q"], ["c"]])
    trace = Trace(case_id="c", retrieved=ranked("axbc"))
    scores = score_cases([asked], [trace], ["recall@4", "mrr", "precision@4", "recall@1"])
    assert [scores[name]["c"] for name in scores] == pytest.approx([1, 1, 1 / 2, 1 / 3])


def test_hits_keep_only_what_satisfies_a_need_or_was_judged():
    cases = [
        Case(id="none", question="?"),
        Case(id="two", question="?", relevant_any=[["b"], ["x", "a"]], relevant={"z": 0, "n": 0}),
        Case(id="one", question="?", relevant={"c": 2, "d": 1}),
        Case(id="wrong", question="?", relevant={"a": 0}),
    ]
    hits = collect_hits(cases, [ranked("ab"), ranked("zab"), ranked("cc"), ranked("ba")])
    assert hits.case.tolist() == [1, 1, 2, 3]
    assert hits.needs.tolist() == [1, 2, 2, 0]
    assert hits.nonrelevant.tolist() == [2, 2, 0, 1]
    assert hits.retrieved.tolist() == [3, 3, 2, 2]
    assert listed(hits.row, hits.rank, hits.gain, hits.satisfied) == [
        (0, 3, 1, 1),
        (1, 2, 1, 1),
        (2, 1, 2, 1),
    ]
    assert listed(hits.judged_row, hits.judged_rank, hits.judged_against) == [
        (0, 1, True),
        (0, 2, False),  # relevant for the other alternative
        (1, 1, True),
        (1, 3, False),
        (2, 2, False),  # the second 'c' is a repetition
        (3, 2, True),
    ]
    assert hits.ideal_gain.tolist() == [1, 1, 1, 2, 1]


def listed(*columns):
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_a_query_without_relevant_passages_has_no_value_but_for_judged():
    assert one("judged@2", {"a": 0}, "xa") == 1 / 2
    assert [one(name, {"a": 0}, "xa") for name in ("map", "bpref")] == [None] * 2


def test_where_nothing_was_judged_or_can_be_looked_for_nothing_has_a_value():
    assert one("judged@2", {}, "xa") is None
    blind = Case(id="c", question="?", evidence={"alpha": 1}, relevant={"x": 0})
    assert score_cases([blind], [Trace(case_id="c", retrieved=ranked("x"))], ["judged@1"]) == {
        "judged@1": {"c": None}
    }


def test_where_nothing_was_retrieved_there_is_no_share_that_was_judged():
    assert one("judged@5", {"a": 1}, "") is None


def test_evidence_judged_wrong_counts_against_and_what_repeats_evidence_does_not():
    asked = Case(id="c", question="?", evidence={"alpha holds here": 1, "nothing else": 0})
    hits = collect_hits([asked], [ranked(["y", "a", "a2", "x"], TEXTS)])
    assert listed(hits.judged_rank, hits.judged_against) == [(1, True), (3, False)]
    assert over(asked, ["y", "a", "a2", "x"], "judged@4", "bpref") == [3 / 4, 0]
    assert over(asked, ["a", "a2", "y"], "bpref") == [1]


def test_a_wrong_text_in_several_passages_takes_no_more_than_everything():
    asked = Case(id="c", question="?", evidence={"alpha holds here": 1, "follows after": 0})
    values = over(asked, ["b", "b", "a"], "bpref", "map", "judged@3")
    assert values == pytest.approx([0, 1 / 3, 1])


def test_a_passage_that_satisfies_two_needs_makes_the_binary_metrics_whole():
    complete = Case(id="c", question="?", evidence={"alpha holds here": 1, "beta follows after": 2})
    names = ("map", "map@1", "r-precision", "bpref", "ndcg_exp@3")
    assert over(complete, ["ab", "x"], *names) == [1] * 5


def test_a_grade_of_any_size_gives_a_finite_gain():
    assert one("ndcg_exp@2", {"a": 5000, "b": 4999}, "ba") == pytest.approx(
        (1 / 2 + 1 / math.log2(3)) / (1 + 1 / 2 / math.log2(3))
    )


def test_what_repeats_evidence_is_not_preferred_to_a_later_hit():
    evidence = {"alpha holds here": 1, "beta follows after": 1, "nothing else": 0}
    asked = Case(id="c", question="?", evidence=evidence)
    assert over(asked, ["a", "a2", "b", "y"], "bpref") == [1]
    assert over(asked, ["a", "y", "b", "a2"], "bpref") == [1 / 2]


def test_a_passage_retrieved_twice_stands_against_the_others_once():
    assert one("bpref", {"a": 1, "b": 1, "n": 0, "m": 0}, "nnab") == 1 / 2
