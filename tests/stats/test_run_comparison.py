import random

import pytest
from scipy import stats as scipy_stats

from misslink.stats import paired_difference
from misslink.stats.run_comparison import compare_paired_runs

N = 80


@pytest.fixture
def runs():
    """Three runs with a graded and a yes-or-no metric; the second is better, the third is not."""
    chance = random.Random(6)
    ndcg = [chance.random() for _ in range(N)]
    hit = [float(chance.random() < 0.5) for _ in range(N)]
    better = {
        "ndcg@10": [min(1.0, value + chance.choice([0, 0.1, 0.2])) for value in ndcg],
        "hit@5": [1.0 if chance.random() < 0.4 else value for value in hit],
    }
    alike = {
        "ndcg@10": [min(max(v + chance.gauss(0, 0.1), 0), 1) for v in ndcg],
        "hit@5": hit[::-1],
    }
    return {"ndcg@10": ndcg, "hit@5": hit}, better, alike


def test_every_test_is_that_of_scipy_and_statsmodels(runs):
    from statsmodels.stats.contingency_tables import mcnemar

    first, better, _ = runs
    [found] = compare_paired_runs([first, better])
    graded, yes_no = found["ndcg@10"], found["hit@5"]
    a, b = first["ndcg@10"], better["ndcg@10"]
    assert graded["t_test"]["p"] == pytest.approx(scipy_stats.ttest_rel(b, a).pvalue)
    theirs = scipy_stats.wilcoxon(
        [round(y - x, 12) for x, y in zip(a, b, strict=True)], method="asymptotic", correction=False
    )
    assert graded["wilcoxon"]["p"] == pytest.approx(theirs.pvalue)
    assert graded["mcnemar"] is None
    pairs = list(zip(first["hit@5"], better["hit@5"], strict=True))
    table = [[pairs.count((x, y)) for y in (1.0, 0.0)] for x in (1.0, 0.0)]
    assert yes_no["mcnemar"]["p"] == pytest.approx(mcnemar(table, exact=True).pvalue)
    assert yes_no["p"] == pytest.approx(paired_difference(*zip(*pairs, strict=True)).p)


@pytest.mark.slow
def test_holm_goes_over_all_metrics_and_runs(runs):
    from statsmodels.stats.multitest import multipletests

    found = compare_paired_runs(runs)
    rows = [row for run in found for row in run.values()]
    assert len(rows) == 4
    theirs = multipletests([row["p"] for row in rows], method="holm")[1]
    assert [row["p_holm"] for row in rows] == pytest.approx(list(theirs))
    assert [row["winner"] for row in rows] == ["b", "b", None, None]


def test_a_metric_that_is_good_when_low_has_the_other_winner(runs):
    first, better, _ = runs
    [found] = compare_paired_runs([first, better], lower_is_better={"ndcg@10"})
    assert found["ndcg@10"]["winner"] == "a"
    assert found["hit@5"]["winner"] == "b"


def test_cases_without_a_value_are_left_out_and_counted(runs):
    first, better, _ = runs
    holed = {name: [None, *values[1:]] for name, values in better.items()}
    [found] = compare_paired_runs([first, holed])
    assert found["ndcg@10"]["n"] == found["ndcg@10"]["a"]["n"] == N - 1
    [nothing] = compare_paired_runs([{"mrr": [None]}, {"mrr": [None]}])
    assert nothing["mrr"]["difference"]["reason"] == "no case has a value in both"
    assert (nothing["mrr"]["p"], nothing["mrr"]["p_holm"], nothing["mrr"]["winner"]) == (
        None,
        None,
        None,
    )


def test_with_clusters_no_test_takes_cases_for_independent(runs):
    first, better, _ = runs
    pairs = [number // 2 for number in range(N)]
    [found] = compare_paired_runs([first, better], clusters=pairs)
    row = found["hit@5"]
    assert row["difference"]["method"] == "cluster bootstrap"
    for test in ("t_test", "wilcoxon"):
        assert row[test]["p"] is None
        assert row[test]["reason"] == "cases of a cluster are not independent"
    assert row["mcnemar"] is None
    assert row["p"] is not None


def test_runs_with_other_metrics_are_refused():
    with pytest.raises(ValueError, match="different metrics"):
        compare_paired_runs([{"mrr": [1]}, {"map": [1]}])
