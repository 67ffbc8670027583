from __future__ import annotations

import numpy as np
import pytest

from made_pools import goldset, pool_of, ranked, truth, two_runs
from misslink.goldset.pooling.recall import (
    SampledCell,
    estimate_recall,
    estimate_total,
    group_into_bands,
    project_draws,
)
from misslink.retrieval import evaluate_run


def true_grades(pool):
    return {item.item: truth(item.case_id, item.passage_id) for item in pool.items}


def of(found, name, metric):
    return found["retrievers"][name][metric]


def test_a_corpus_labelled_entirely_gives_the_true_recall_without_doubt():
    pool = pool_of(random=1000)
    found = estimate_recall(pool, true_grades(pool))
    good = of(found, "good", "recall@3")["estimated"]
    assert good.value == pytest.approx(3 / 10)
    assert good.low == good.high == good.value
    assert found["outside"].value == found["outside"].low == 30 - 12  # 4 of each 10 are pooled


def test_of_the_known_ones_recall_is_that_of_misslink_retrieval():
    pool = pool_of()
    grades = true_grades(pool)
    qrels: dict[str, dict[str, int]] = {}
    for item in pool.items:
        qrels.setdefault(item.case_id, {})[item.passage_id] = grades[item.item]
    for name in ("good", "poor"):
        run = {case: list(ids) for case, ids in pool.rankings[name].items()}
        want = list(evaluate_run(qrels, run, ["recall@3"]).per_query().values())
        got = of(estimate_recall(pool, grades), name, "recall@3")["of_judged"].value
        assert got == pytest.approx(sum(one["recall@3"] for one in want) / len(want))


@pytest.mark.slow
def test_over_many_draws_the_estimate_is_right_on_average_and_its_interval_holds_the_truth():
    values, inside = [], 0
    for seed in range(60):
        pool = pool_of(seed=seed, random=4, stratified=8)
        found = of(estimate_recall(pool, true_grades(pool)), "good", "recall@3")["estimated"]
        values.append(1 / found.value)  # what is estimated without bias is the denominator
        inside += found.low <= 0.3 <= found.high
    assert inside >= 54
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - 10 / 3) < 4 * error


def test_a_question_with_an_open_passage_is_left_out_and_says_why():
    pool = pool_of()
    grades = true_grades(pool)
    gone = next(i.item for i in pool.items if i.case_id == "q1" and i.stratum == 1)
    del grades[gone]
    found = estimate_recall(pool, grades)
    assert found["left_out"] == {"q1": "1 of 6 pooled passages have no resolved grade"}
    assert found["questions"] == 2


def test_a_disputed_passage_does_not_drop_its_question_and_widens_the_interval():
    pool = pool_of(random=1000)
    grades = true_grades(pool)
    item = next(i for i in pool.items if (i.case_id, i.passage_id) == ("q1", "d1"))
    settled = of(estimate_recall(pool, grades), "good", "recall@3")["estimated"]
    del grades[item.item]
    found = estimate_recall(pool, grades, {item.item: [0, 1]})
    disputed = of(found, "good", "recall@3")["estimated"]
    assert found["left_out"] == {}
    assert found["questions"] == 3
    assert found["disputed"] == 1
    assert settled.value == pytest.approx(9 / 30)
    assert disputed.value == pytest.approx(8.5 / 29.5)  # one of two votes
    assert disputed.low == pytest.approx(8 / 29)  # ranked: not relevant, or relevant
    assert disputed.high == pytest.approx(9 / 30)


def test_the_interval_covers_both_outcomes_of_every_disputed_passage():
    """Found: 116 [61, 228] unseen relevant passages, and there were 9; recall 30% [18, 44], and 75%."""
    pool = pool_of(random=4, stratified=8)
    truly = true_grades(pool)
    ties = {i.item: [0, 2] for i in pool.items if i.stratum > 1 and truly[i.item] == 0}
    settled = {item: grade for item, grade in truly.items() if item not in ties}
    found = estimate_recall(pool, settled, ties)
    assert found["disputed"] == len(ties) > 20
    outcomes = [estimate_recall(pool, settled | dict.fromkeys(ties, grade)) for grade in (0, 2)]
    for read in (
        lambda document: document["outside"],
        lambda document: of(document, "good", "recall@3")["estimated"],
    ):
        estimate, ends = read(found), [read(outcome) for outcome in outcomes]
        assert estimate.low <= min(end.low for end in ends)
        assert estimate.high >= max(end.high for end in ends)
    assert found["outside"].low <= 18 <= found["outside"].high, "the truth"
    for more in found["sample"]["more"]:
        assert more["low"] <= 18 <= more["high"]


def test_grades_that_differ_and_are_both_relevant_are_no_doubt():
    pool = pool_of(random=1000)
    grades = true_grades(pool)
    both = {item: [1, 2] for item, grade in grades.items() if grade > 0}
    found = estimate_recall(pool, {i: g for i, g in grades.items() if i not in both}, both)
    settled = estimate_recall(pool, grades)
    assert found["outside"].value == found["outside"].low == found["outside"].high == 18
    for name in ("good", "poor"):
        one, two = (of(document, name, "recall@3")["estimated"] for document in (found, settled))
        assert (one.value, one.low, one.high) == (two.value, two.low, two.high)
    strict = estimate_recall(
        pool, {}, both | {i: [g, g] for i, g in grades.items() if g == 0}, relevance_level=2
    )
    assert strict["outside"].low < strict["outside"].value < strict["outside"].high


def test_a_band_whose_only_passage_is_disputed_keeps_its_question():
    pool = pool_of(random=0, stratified=4)
    grades = true_grades(pool)
    drawn = [i.item for i in pool.items if (i.case_id, i.stratum) == ("q2", 2)]
    for item in drawn:
        del grades[item]
    assert "q2" not in estimate_recall(pool, grades, {item: [0, 2] for item in drawn})["left_out"]


def test_a_band_of_which_nothing_was_graded_leaves_its_question_out():
    pool = pool_of()
    grades = {
        item.item: 0 for item in pool.items if (item.case_id, item.stratum) != ("q2", 2)
    }  # fmt: skip
    assert "no passage drawn from ranks" in estimate_recall(pool, grades)["left_out"]["q2"]


def test_without_a_sample_recall_is_missing_with_its_reason():
    pool = pool_of(random=0, stratified=0)
    found = estimate_recall(pool, true_grades(pool))
    assert found["outside"].value is None
    good = of(found, "good", "recall@3")
    assert good["estimated"].value is None
    assert "nothing outside the pool was drawn" in good["estimated"].reason
    assert good["of_judged"].value == pytest.approx(3 / 4)  # of the pooled ones alone


def test_nothing_labelled_and_nothing_relevant_are_missing_and_not_0():
    pool = pool_of()
    nothing = estimate_recall(pool, {})
    assert nothing["questions"] == 0
    assert of(nothing, "good", "recall@3")["estimated"].value is None
    none = estimate_recall(pool, {item.item: 0 for item in pool.items})
    assert of(none, "good", "recall@3")["estimated"].reason == "nothing relevant was found"


def test_the_relevance_level_decides_what_counts():
    pool = pool_of(random=1000)
    found = estimate_recall(pool, true_grades(pool), relevance_level=2)
    assert of(found, "good", "recall@3")["estimated"].value == pytest.approx(1 / 5)


def test_what_the_gold_set_knows_counts_without_being_asked():
    gold = goldset(1, relevant={"d0": 2, "d54": 1, "d1": 0})
    pool = pool_of(gold, (ranked("a", {"q0": ["d0", "d1", "d6"]}),), random=1000)
    found = estimate_recall(pool, true_grades(pool))
    assert of(found, "a", "recall@3")["estimated"].value == pytest.approx(2 / 10)


def test_an_id_of_a_set_that_suffices_counts_as_relevant_without_being_asked():
    gold = goldset(1, relevant={"d1": 0}, relevant_any=[["d0", "d54"], ["d6"]])
    pool = pool_of(gold, (ranked("a", {"q0": ["d0", "d1", "d6"]}),), random=1000)
    assert not {"d0", "d1", "d54", "d6"} & {item.passage_id for item in pool.items}
    found = estimate_recall(pool, true_grades(pool))
    assert of(found, "a", "recall@3")["estimated"].value == pytest.approx(2 / 10)


def test_it_says_on_what_the_estimate_rests_and_that_more_draws_narrow_it():
    pool = pool_of()
    grades = true_grades(pool)
    found = estimate_recall(pool, grades)
    drawn = [item for item in pool.items if item.stratum > 1]
    sample = found["sample"]
    assert sample["labelled"] == len(drawn) == found["outside"].n
    assert sample["passages"] == sum(s.size for of in pool.strata.values() for s in of[2:])
    assert sample["relevant"] == sum(grades[item.item] > 0 for item in drawn)
    assert sample["weight"] == max(item.weight for item in drawn)
    widths = [one["high"] - one["low"] for one in sample["more"]]
    assert found["outside"].high - found["outside"].low > widths[0] > widths[1]


def test_where_all_is_graded_more_draws_change_nothing():
    pool = pool_of(random=1000)
    found = estimate_recall(pool, true_grades(pool))
    ends = {(one["low"], one["high"]) for one in found["sample"]["more"]}
    assert ends == {(found["outside"].value, found["outside"].value)}


def test_a_question_that_a_retriever_was_not_asked_counts_as_0_and_is_said():
    good, _ = two_runs()
    part = ranked("part", {"q0": good.passages["q0"]})
    pool = pool_of(runs=(good, part), random=1000)
    found = of(estimate_recall(pool, true_grades(pool)), "part", "recall@3")["estimated"]
    assert found.value == pytest.approx(3 / 30)
    assert "2 questions" in found.reason


def test_one_band_without_a_known_part_is_clopper_and_pearsons_interval():
    """A cell so large that nothing of it is known."""
    from statsmodels.stats.proportion import proportion_confint

    found = estimate_total([([SampledCell(10**9, 40, 3)])])
    low, high = proportion_confint(3, 40, method="beta")
    assert (found.value, found.n) == (3 / 40 * 10**9, 40)
    assert found.low == pytest.approx(low * 10**9, rel=1e-6)
    assert found.high == pytest.approx(high * 10**9, rel=1e-6)


def test_the_value_is_horvitz_and_thompsons():
    cells = [SampledCell(100, 5, 2), SampledCell(7, 7, 3), SampledCell(1000, 4, 0)]
    inclusion = [5 / 100, 7 / 7, 4 / 1000]
    by_hand = sum(cell.relevant / chance for cell, chance in zip(cells, inclusion, strict=True))
    assert estimate_total(group_into_bands(enumerate(cells))).value == pytest.approx(by_hand)


def test_a_band_that_is_known_entirely_leaves_no_doubt():
    found = estimate_total([([SampledCell(8, 8, 3), SampledCell(5, 5, 0)])])
    assert (found.low, found.value, found.high) == (3, 3, 3)


def test_nothing_found_still_leaves_doubt_and_what_was_found_is_the_least():
    found = estimate_total([([SampledCell(100, 10, 0)])])
    assert (found.low, found.value) == (0, 0)
    assert found.high > 20
    some = estimate_total([([SampledCell(100, 10, 2)])])
    assert some.low >= 2


def test_four_times_the_draws_halve_the_doubt_and_never_pass_what_there_is():
    bands = [([SampledCell(10**6, 50, 20)])]
    once, more = estimate_total(bands), estimate_total(project_draws(bands, 4))
    assert more.value == once.value
    assert (more.high - more.low) / (once.high - once.low) == pytest.approx(0.5, rel=0.05)
    (all_of_it,) = project_draws([([SampledCell(30, 10, 2)])], 16)
    assert all_of_it == [SampledCell(30, 30, 6)]


def test_no_band_at_all_is_a_total_of_0():
    found = estimate_total([])
    assert (found.low, found.value, found.high, found.n) == (0, 0, 0, 0)


def test_there_are_never_more_than_there_are_passages():
    found = estimate_total([([SampledCell(12, 10, 10)])])
    assert found.high == 12


@pytest.mark.parametrize("relevant", [3, 80])
def test_the_interval_holds_the_truth_in_95_of_100_draws_and_the_value_is_right_on_average(
    relevant,
):
    generator = np.random.default_rng(relevant)
    truth = [generator.permutation(200) < relevant for _ in range(4)]
    draws, inside, values = 400, 0, []
    for _ in range(draws):
        cells = [
            (band, SampledCell(100, 8, int(generator.permutation(of[band * 100 : band * 100 + 100])[:8]
                                    .sum())))
            for of in truth
            for band in (0, 1)
        ]  # fmt: skip
        found = estimate_total(group_into_bands(cells))
        values.append(found.value)
        inside += found.low <= 4 * relevant <= found.high
    assert inside / draws >= 0.92
    error = np.std(values) / np.sqrt(draws)
    assert abs(np.mean(values) - 4 * relevant) < 4 * error
