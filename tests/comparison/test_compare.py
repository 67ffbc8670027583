"""Two runs, case by case: against scipy, statsmodels and brute force, and against being misled."""

import json
from itertools import product
from statistics import stdev

import pytest
from scipy.stats import ttest_rel

from misslink.comparison.compare_runs import compare_runs
from misslink.errors import InputError
from misslink.report.comparison import build_comparison_page
from misslink.types import Message
from small_runs import broken, named, small_run

A = small_run([1, 0, 0, 0, 0, 0, 0, 1], faithful=[1, 1, 1, 1, 0, None, 1, 0])
B = small_run([1, 1, 1, 1, 1, 1, 1, 0], faithful=[1, 0, 1, 1, 1, 1, None, 0])
A_HITS, B_HITS = [1, 0, 0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1, 1, 0]


@pytest.fixture(scope="module")
def found():
    return compare_runs(named(A, B))


def test_only_cases_with_a_value_in_both_count(found):
    """Of 8 cases one is skipped in A alone and one in B alone: 6 remain, 4 and 4 of them good."""
    faithful = found["metrics"]["fully_faithful"]
    assert (found["paired"], faithful["n"]) == (8, 6)
    assert faithful["a"]["value"] == faithful["b"]["value"] == pytest.approx(4 / 6)
    assert (faithful["left_out"]["in_a"], faithful["left_out"]["in_b"]) == (1, 1)
    reason = {"run": "a", "reason": "skipped: the answer declines", "cases": 1}
    assert reason in faithful["left_out"]["reasons"]


def test_the_difference_is_b_minus_a(found):
    recall = found["metrics"]["recall@1"]
    assert recall["difference"]["value"] == pytest.approx(5 / 8)
    assert recall["difference"]["low"] < 5 / 8 < recall["difference"]["high"]


def test_p_is_that_of_every_sign_flip(found):
    differences = [b - a for a, b in zip(A_HITS, B_HITS, strict=True)]
    observed = abs(sum(differences))
    flips = [
        abs(sum(sign * each for sign, each in zip(signs, differences, strict=True)))
        for signs in product((-1, 1), repeat=len(differences))
    ]
    expected = sum(flip >= observed for flip in flips) / len(flips)
    assert found["metrics"]["recall@1"]["p"] == pytest.approx(expected)


def test_the_tests_beside_are_those_of_scipy_and_statsmodels(found):
    from statsmodels.stats.contingency_tables import mcnemar

    recall = found["metrics"]["recall@1"]
    assert recall["t_test"]["p"] == pytest.approx(ttest_rel(B_HITS, A_HITS).pvalue)
    assert recall["mcnemar"]["p"] == pytest.approx(mcnemar([[1, 1], [6, 0]], exact=True).pvalue)
    assert (recall["mcnemar"]["gained"], recall["mcnemar"]["lost"]) == (6, 1)
    assert recall["mcnemar"]["odds"]["value"] == pytest.approx(6.0)
    # Six of 8 differences are +1, one is -1, one 0: mean 5/8, squares around it 31/8 over 7.
    assert recall["effect"]["method"] == "cohen's d_z"
    assert recall["effect"]["value"] == pytest.approx((5 / 8) / ((31 / 8) / 7) ** 0.5)


def test_a_mean_that_is_no_share_has_d_z_and_no_mcnemar():
    shares = [0.5, 0.25, 1, 0.75, 0.5, 0.25]
    a = small_run([1] * 6, faithful=[0] * 6, faithfulness=[0.0, 0.25, 0.5, 0.5, 0.5, 0.0])
    b = small_run([1] * 6, faithful=[0] * 6, faithfulness=shares)
    metric = compare_runs(named(a, b))["metrics"]["faithfulness"]
    assert metric["mcnemar"] is None
    assert metric["effect"]["method"] == "cohen's d_z"
    # Differences 0.5, 0, 0.5, 0.25, 0, 0.25: mean 0.25, and squares around it 0.25 over 5.
    assert metric["effect"]["value"] == pytest.approx(0.25 / 0.05**0.5)


@pytest.mark.slow
def test_holm_goes_over_the_metrics_of_a_family_and_all_runs():
    from statsmodels.stats.multitest import multipletests

    third = small_run([1, 1, 0, 0, 1, 1, 0, 1], faithful=[0, 0, 1, 0, 0, 0, 1, 0])
    document = compare_runs(named(A, B, third))
    metrics = [m for one in document["comparisons"] for m in one["metrics"].values()]
    tested = 0
    for family in ("retrieval", "generation"):
        members = [m for m in metrics if m["level"] == family and m["p"] is not None]
        expected = multipletests([m["p"] for m in members], method="holm")[1]
        assert [m["p_holm"] for m in members] == pytest.approx(list(expected))
        tested += len(members)
    assert tested == 6


def test_metrics_of_answers_do_not_hide_a_loss_of_the_retriever():
    """Found: with 19 metrics a loss of 10 points of recall (p .004) was "not significant"."""
    size, lost = 90, 9
    quiet = {"faithful": [1, 0] * (size // 2), "over_refused": [0, 1] * (size // 2)}
    a = small_run([1] * size, **quiet)
    b = small_run([0] * lost + [1] * (size - lost), **quiet)
    many = [f"recall@{k}" for k in (1,)] + ["faithfulness", "fully_faithful", "over_refused"]
    recall = compare_runs(named(a, b), metrics=many)["metrics"]["recall@1"]
    assert 0.0025 < recall["p"] == recall["p_holm"] < 0.05
    assert recall["winner"] == "a"


def test_what_could_be_detected_is_at_the_level_that_holm_leaves():
    """Against the power of the paired t test by statsmodels: two runs, two tests, none rejected."""
    from statsmodels.stats.power import TTestPower

    a = small_run(A_HITS, faithful=[1, 1, 1, 1, 0, 0, 1, 0])
    b = small_run(B_HITS, faithful=[1, 0, 1, 1, 1, 0, 1, 1])
    metrics = compare_runs(named(a, b), metrics=["recall@1", "hit@1"])["metrics"]
    assert [metric["winner"] for metric in metrics.values()] == [None, None]
    spread = stdev([y - x for x, y in zip(A_HITS, B_HITS, strict=True)])
    effect = TTestPower().solve_power(nobs=8, alpha=0.05 / 2, power=0.8)
    assert metrics["recall@1"]["detectable"] == pytest.approx(effect * spread, rel=1e-3)
    alone = compare_runs(named(a, b), metrics=["recall@1"])["metrics"]["recall@1"]["detectable"]
    assert alone < metrics["recall@1"]["detectable"]


def test_cases_that_one_run_alone_lacks_are_told_with_the_reason():
    """In B the app failed on two, and another answer declines; what both skip is no news."""
    a = small_run([1, 1, 1, 1, 1], faithful=[1, 1, 1, 1, None])
    b = broken(small_run([1, 1, 1, 1, 1], faithful=[None, None, None, 1, None]), "c1", "c2")
    found = compare_runs(named(a, b))
    assert found["lacking"] == [
        {
            "run": "b",
            "reason": "the app failed",
            "cases": ["c1", "c2"],
            "metrics": ["recall@1", "faithfulness", "fully_faithful"],
        },
        {
            "run": "b",
            "reason": "skipped: the answer declines",
            "cases": ["c3"],
            "metrics": ["faithfulness", "fully_faithful"],
        },
    ]
    turned = compare_runs(named(b, a))["lacking"]
    assert [(one["run"], len(one["cases"])) for one in turned] == [("a", 2), ("a", 1)]


def test_nothing_is_lacking_where_both_have_the_same_cases():
    assert compare_runs(named(A, A))["lacking"] == []


def test_a_winner_is_beyond_chance_after_holm():
    n = 10
    document = compare_runs(named(small_run([0] * n), small_run([1] * n)))
    recall = document["metrics"]["recall@1"]
    assert recall["p"] == pytest.approx(2 / 2**n)
    assert recall["winner"] == "b"
    few = compare_runs(named(small_run([0] * 5), small_run([1] * 5)))
    assert few["metrics"]["recall@1"]["p"] == pytest.approx(2 / 2**5)
    assert few["metrics"]["recall@1"]["winner"] is None


def test_lower_is_better_where_it_is():
    """More refusals in B: B is worse, and each case that newly declines is one for the worse."""
    n = 10
    a = small_run([1] * n, over_refused=[0] * n)
    b = small_run([1] * n, over_refused=[1] * n)
    document = compare_runs(named(a, b), metrics=["over_refused"])
    metric = document["metrics"]["over_refused"]
    assert metric["lower_is_better"]
    assert metric["difference"]["value"] == 1.0
    assert metric["winner"] == "a"
    assert document["flipped"]["over_refused"]["better"] == []
    assert len(document["flipped"]["over_refused"]["worse"]) == n


def test_flipped_cases_are_named_in_the_gold_sets_order(found):
    assert found["flipped"]["fully_faithful"] == {"better": ["c5"], "worse": ["c2"]}
    flipped = found["flipped"]["recall@1"]
    assert flipped == {"better": ["c2", "c3", "c4", "c5", "c6", "c7"], "worse": ["c8"]}


def test_causes_are_crossed(found):
    failures = found["failures"]
    assert failures["a"] == {"passed": 2, "retrieval_miss": 6}
    assert failures["b"] == {"passed": 7, "retrieval_miss": 1}
    assert failures["changed"] == 7
    moves = {(move["from"], move["to"]): move["cases"] for move in failures["changes"]}
    assert moves["passed", "retrieval_miss"] == ["c8"]
    assert moves["passed", "passed"] == ["c1"]
    assert sum(move["n"] for move in failures["changes"]) == failures["n"] == 8


def test_the_document_is_json_with_the_keys_of_two_runs_on_top(found):
    again = json.loads(json.dumps(found, allow_nan=False))
    assert again["b"] == again["comparisons"][0]["b"] == "runs/b"
    wanted = {"a", "b", "difference", "p", "p_holm", "detectable", "winner"}
    assert wanted <= again["metrics"]["recall@1"].keys()


def test_a_run_compared_with_a_copy_has_no_winner():
    document = compare_runs(named(A, A))
    for metric in document["metrics"].values():
        assert metric["difference"]["value"] == 0.0
        assert (metric["p"], metric["winner"]) == (1.0, None)
        assert metric["effect"]["value"] in (None, 0.0)


def test_without_a_value_in_both_a_metric_says_why():
    a, b = small_run([1, 1], faithful=[None, None]), small_run([1, 1], faithful=[1, 1])
    metric = compare_runs(named(a, b))["metrics"]["fully_faithful"]
    assert metric["p"] is metric["p_holm"] is metric["winner"] is None
    assert "the answer declines" in metric["difference"]["reason"]


def test_a_metric_that_one_run_was_not_judged_by_is_missing_not_unknown():
    judged = small_run([1, 0], faithful=[1, 0])
    charming = tuple(v.model_copy(update={"metric": "charm"}) for v in judged.verdicts)
    b = judged.model_copy(update={"verdicts": (*judged.verdicts, *charming)})
    metric = compare_runs(named(judged, b), metrics=["charm"])["metrics"]["charm"]
    assert metric["difference"]["reason"] == "this run was not judged by it"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("recal@1", "did you mean 'recall@1'"),
        ("link.risk_ratio", "no value per case"),
        ("latency", "no value per case"),
    ],
)
def test_what_cannot_be_paired_is_refused(name, told):
    with pytest.raises(InputError, match=told):
        compare_runs(named(A, B), metrics=[name])


def test_a_metric_asked_for_twice_is_tested_once():
    document = compare_runs(named(A, B), metrics=["recall@1", "retrieval.recall@1"])
    assert list(document["metrics"]) == ["recall@1"]
    assert document["metrics"]["recall@1"]["p_holm"] == document["metrics"]["recall@1"]["p"]


def asked_after(run, content="Where?", **update):
    """The run with another message before its first question."""
    history = (Message(role="user", content=content), Message(role="assistant", content="Here."))
    first = run.cases[0].model_copy(update={"history": history, **update})
    return run.model_copy(update={"cases": (first, *run.cases[1:])})


def test_another_history_or_standalone_question_asks_something_else():
    one, two = small_run([1, 1]), small_run([1, 0])
    assert compare_runs(named(asked_after(one), asked_after(two)))["paired"] == 2
    for other in (asked_after(two, "When?"), asked_after(two, standalone_question="Where is c1?")):
        document = compare_runs(named(asked_after(one), other))
        assert document["left_out"] == {"asks_something_else": 1}
        assert document["cases"] == ["c2"]


def test_what_asks_the_same_is_compared_and_said_first():
    a = small_run([1, 0, 1, 0], ids=["x", "y", "z", "w"], questions=["X?", "Y?", "Z?", "W?"])
    b = small_run([1, 1, 1, None], ids=["y", "z", "v", "w"], questions=["Y?", "Q?", "V?", "W?"])
    document = compare_runs(named(a, b))
    assert document["paired"] == 2
    assert document["left_out"] == {"only_in_a": 1, "only_in_b": 1, "asks_something_else": 1}
    assert document["flipped"]["recall@1"]["better"] == ["y"]
    assert document["notes"][0].startswith("2 cases are compared")
    page = build_comparison_page(document, {"runs/a": a, "runs/b": b}, {})
    assert page.headline.startswith("Over 2 shared cases: ")


def labelled(run, labels, references=None):
    """The run with other labels, and other references of these cases."""
    cases = tuple(
        case.model_copy(
            update={
                "relevant": labels.get(case.id, case.relevant),
                "references": (references or {}).get(case.id, case.references),
            }
        )
        for case in run.cases
    )
    return run.model_copy(update={"cases": cases})


def test_one_set_of_labels_scores_both_rankings():
    """Found: the first run was scored by its own labels, the second by others."""
    run, other = small_run([1, 1, 1]), {"c1": {"elsewhere": 1}}
    document = compare_runs(named(run, labelled(run, other)))
    recall = document["metrics"]["recall@1"]
    assert recall["a"]["value"] == recall["b"]["value"] == pytest.approx(2 / 3)
    assert "the labels of runs/b score both rankings" in document["notes"][0]
    back = compare_runs(named(labelled(run, other), run))["metrics"]["recall@1"]
    assert back["a"]["value"] == back["b"]["value"] == 1.0


def test_verdicts_by_another_reference_are_left_out_of_both_runs():
    judged = small_run([1, 1, 1, 1], faithful=[1, 0, 1, 1])
    correct = tuple(v.model_copy(update={"metric": "correctness"}) for v in judged.verdicts)
    run = judged.model_copy(update={"verdicts": (*judged.verdicts, *correct)})
    other = labelled(run, {}, {"c2": ("Another answer.",)})
    document = compare_runs(named(run, other), metrics=["correctness", "faithfulness", "recall@1"])
    assert {name: m["n"] for name, m in document["metrics"].items()} == {
        "correctness": 3,
        "faithfulness": 4,
        "recall@1": 4,
    }
    assert document["failures"]["n"] == 3, "nor is its failure mode"


def test_named_cases_are_taken_and_must_be_there():
    document = compare_runs(named(A, B), cases=["c3", "c1"])
    assert document["paired"] == 2
    assert document["left_out"] == {"not_selected": 6}
    with pytest.raises(InputError, match="has no case 'ghost'"):
        compare_runs(named(A, B), cases=["c1", "ghost"])


def test_no_shared_case_is_refused():
    with pytest.raises(InputError, match="share no case"):
        compare_runs(named(small_run([1]), small_run([1], ids=["other"])))


def test_other_circumstances_are_noted():
    prompts = [[{"name": "examination", "version": v, "sha256": str(v) * 64}] for v in (1, 2)]
    a = small_run([1], prompts=prompts[0], inputs={"judge_identity.rules": "old"})
    b = small_run(
        [1],
        k=5,
        misslink="2.0",
        prompts=prompts[1],
        inputs={"judge_identity.rules": "new"},
        unfinished=3,
    )
    document = compare_runs(named(a, b))
    assert {one["what"] for one in document["differs"]} == {
        "misslink",
        "k",
        "the judge's rules",
        "the prompt 'examination'",
        "missing verdicts",
    }
    assert any(
        note.startswith("The cutoff k: 1 in runs/a, 5 in runs/b;") for note in document["notes"]
    )
    judges = compare_runs(named(a, small_run([1], judge="openai:m")))["notes"]
    assert any("heuristic in runs/a, openai:m in runs/b" in note for note in judges)


def test_no_winner_is_named_on_judged_metrics_of_two_judges():
    hits, good = ([1] * 12, [0] * 12), ([0] * 12, [1] * 12)
    a, b = (small_run(h, faithful=g) for h, g in zip(hits, good, strict=True))
    alike = compare_runs(named(a, b))
    assert alike["same_judge"]
    assert alike["metrics"]["fully_faithful"]["winner"] == "b"
    other = b.model_copy(update={"manifest": {**b.manifest, "judge": "openai:m"}})
    document = compare_runs(named(a, other))
    assert not document["same_judge"]
    assert document["metrics"]["fully_faithful"]["p_holm"] < 0.05
    assert document["metrics"]["fully_faithful"]["winner"] is None
    assert document["metrics"]["recall@1"]["winner"] == "a"
    page = build_comparison_page(document, {"runs/a": a, "runs/b": other}, {})
    verdicts = {row.name: row.verdict for row in page.comparisons[0].rows}
    assert (verdicts["fully_faithful"], verdicts["recall@1"]) == ("other judge", "worse")


def test_alike_circumstances_need_no_note(found):
    assert found["notes"] == []
    assert found["differs"] == []


HOSTILE = "=cmd()\x1b[2J<script>|`"


def test_hostile_ids_are_escaped_in_messages():
    a, b = small_run([1], ids=[HOSTILE]), small_run([1], ids=["plain"])
    with pytest.raises(InputError) as refused:
        compare_runs(named(a, b))
    assert "\x1b" not in str(refused.value)


def test_one_run_is_no_comparison():
    with pytest.raises(InputError, match="name at least two run folders"):
        compare_runs(named(A))


def test_what_passes_is_tested_once_with_the_cases_fixed_and_broken():
    """9 of 10 up and 1 down: of 2^10 signs, 22 are as far off."""
    a, b = small_run([0] * 9 + [1]), small_run([1] * 9 + [0])
    passed = compare_runs(named(a, b))["passed"]
    assert (passed["n"], passed["a"]["value"], passed["b"]["value"]) == (10, 0.1, 0.9)
    assert (passed["p"], passed["winner"]) == (pytest.approx(22 / 1024), "b")
    assert passed["fixed"] == [f"c{n}" for n in range(1, 10)]
    assert passed["broken"] == ["c10"]
    other_judge = small_run([1] * 9 + [0], judge="openai:m")
    assert compare_runs(named(a, other_judge))["passed"]["winner"] is None
