"""Shares of good answers corrected by labels, and their difference between runs."""

import itertools

import numpy as np
import pytest

from calibration_coverage_shares import drawn_by_plan, plan_world
from json_values import as_fields
from judged_runs import PROMPT, judged_run, keeping, labels_of
from judged_runs import held as run_calibration
from labelled import held, label, table, verdict
from misslink.calibration.corrected_prevalence import (
    compare_corrected_shares,
    correct_prevalence,
    corrected_share_difference,
    judge_mismatch,
    labels_for_share,
    labels_needed,
    share_width,
)
from misslink.calibration.inter_annotator import LabelPair, describe_sample, settle_labels
from misslink.calibration.verdicts import JudgedCase
from misslink.calibration_document import CalibrationDocument
from misslink.io.labels import read_labels
from misslink.stats import prevalence
from misslink.stats.prevalence import (
    poststratified_share,
    prediction_powered,
    remove_label_error,
)
from misslink.types import Estimate, PromptRef, Reason

correct_prevalence = as_fields(correct_prevalence)
labels_needed = as_fields(labels_needed)


def pair(case, good, score, weight=None):
    return LabelPair(
        case, bool(good), float(good), score, score, weight, JudgedCase(case, score, score)
    )


def test_prediction_powered_is_the_one_worked_out_by_hand():
    """y, f of 20 labelled cases without an error, 70 of 120 called good: 0.5 + b (7/12 - 0.5)."""
    pairs = [pair(f"c{n}", n % 2, float(n % 2)) for n in range(20)]
    scores = {f"o{n}": float(n < 60) for n in range(100)}
    found = correct_prevalence(pairs, scores, 0.5, seed=0)
    b = 0.25 / (70 / 120 * 50 / 120)
    assert found["prediction_powered"].value == pytest.approx(0.5 + b * (70 / 120 - 0.5))
    assert found["power"] == pytest.approx(b * 100 / 120)
    assert found["judge_only"].value == pytest.approx(70 / 120)
    assert found["labelled_only"].value == 0.5


def test_the_correction_undoes_what_the_judge_errs():
    verdicts, labels = table(80, 20, 10, 90)
    # among the others 30% are good: 0.3 * 0.8 + 0.7 * 0.1 = 31% are called good
    others = [verdict(f"o{n}", 0.9 if n < 310 else 0.1) for n in range(1000)]
    found = held(verdicts, labels, all_verdicts=others)["corrected"]
    everyone = (80 + 10 + 310) / 1200
    assert found["judge_only"]["value"] == pytest.approx(everyone)
    assert found["rogan_gladen"]["value"] == pytest.approx((everyone - 0.1) / 0.7)
    assert found["rogan_gladen"]["low"] < found["rogan_gladen_posterior"]["value"]


def two_annotators(n, share, wrong, seed):
    """Verdicts, and the labels of two annotators who err so often and by themselves."""
    rng = np.random.default_rng(seed)
    good = rng.random(n) < share
    votes = [good ^ (rng.random(n) < wrong) for _ in range(2)]
    verdicts = [verdict(f"c{at}", 0.8 if one else 0.3) for at, one in enumerate(good)]
    labels = [
        label(f"c{at}", int(vote[at]), annotator=name)
        for name, vote in zip("ab", votes, strict=True)
        for at in range(n)
    ]
    return verdicts, labels


@pytest.mark.slow
def test_the_error_of_two_annotators_is_estimated_and_taken_out():
    """With 10% error and 300 labels the truth was inside in 0.20 of runs."""
    inside, errors = [0, 0], []
    for seed in range(20):
        _, labels = two_annotators(300, 0.95, 0.1, seed)
        settled = settle_labels(read_labels(labels).items)
        names = {name: label for (name, _), label in (settled.gold | settled.tied).items()}
        pairs = [pair(name, label.good, 0.5) for name, label in names.items()]
        sample = describe_sample(names, {})
        found = correct_prevalence(pairs, {"other": 0.5}, 0.5, seed, sample=sample)
        alone, wrong = found["labelled_only"], found["label_error"]
        inside[0] += alone.low <= 0.95 <= alone.high
        inside[1] += wrong.low <= 0.1 <= wrong.high
        errors.append(wrong.value)
    assert min(inside) >= 17
    assert np.mean(errors) == pytest.approx(0.1, abs=0.01)


def test_the_error_is_not_known_of_one_annotator_or_after_disputes_were_settled():
    verdicts, labels = two_annotators(100, 0.8, 0.1, 1)
    one = held(verdicts, labels[:100])["corrected"]
    settled = [{**row, "annotator": "adjudicated"} for row in labels[:100]]
    for found in (one, held(verdicts, labels + settled)["corrected"]):
        assert found["label_error"]["value"] is None
        assert "two annotators" in found["label_error"]["reason"]


def test_labels_of_strata_are_poststratified():
    verdicts = [verdict(f"c{n}", 0.9 if n < 160 else 0.2) for n in range(200)]
    labels = [
        label(f"c{n}", int(n < 160 and n % 40 > 0), weight=weight, stratum=name)
        for name, weight, cases in (("high", 4.0, range(0, 160, 4)), ("low", 1.0, range(160, 200)))
        for n in cases
    ]
    found = held(verdicts, labels)["corrected"]
    bare = [{name: one for name, one in row.items() if name != "stratum"} for row in labels]
    by_weight = held(verdicts, bare)["corrected"]
    both = found["prediction_powered"], by_weight["prediction_powered"]
    assert [one["method"] for one in both] == ["post-stratified", "ppi++"]
    assert both[0]["value"] == pytest.approx(0.8 * 36 / 40)
    widths = [one["high"] - one["low"] for one in (both[0], found["labelled_only"])]
    assert widths[0] < widths[1]


def test_more_labels_never_widen_the_curve():
    verdicts, labels = table()
    others = [verdict(f"o{n}", 0.9) for n in range(2000)]
    found = held(verdicts, labels, all_verdicts=others)["labels_needed"]
    widths = [point["width"] for point in found["curve"]]
    assert widths == sorted(widths, reverse=True)
    assert [point["labels"] for point in found["curve"]] == [
        25, 50, 100, 200, 300, 500, 1000, 2000, 2100,
    ]  # fmt: skip
    assert all(p["width"] <= p["labelled_only"] + 1e-12 for p in found["curve"])
    assert found["for_width"]["0.2"] < found["for_width"]["0.1"]


def test_scores_that_do_not_vary_give_nothing_to_plan_with():
    verdicts = [verdict(f"c{n}", 0.9) for n in range(20)]
    found = held(verdicts, [label(f"c{n}", n % 2) for n in range(20)])
    assert found["labels_needed"]["unexplained"] == 1
    curve = found["labels_needed"]["curve"]
    assert curve
    assert all(point["width"] == point["labelled_only"] for point in curve)
    assert found["corrected"]["prediction_powered"]["value"] == 0.5


@pytest.mark.slow
@pytest.mark.parametrize("n", [3, 6, 12, 30])
@pytest.mark.parametrize("wrong", [0, 1])
def test_a_few_labels_never_say_that_one_is_enough(n, wrong):
    """Found: "1 label needed" beside an interval of 38 points, from labels that agree by luck."""
    verdicts = [verdict(f"c{at}", 0.9 if at % 3 else 0.1) for at in range(400)]
    labels = [label(f"c{at}", bool(at % 3) != (at < wrong)) for at in range(n)]
    document = held(verdicts, labels)
    shown, needed = document["corrected"]["prediction_powered"], document["labels_needed"]
    for width, count in needed["for_width"].items():
        if count is None:
            continue
        assert count >= 10, "fewer correct nothing"
        is_met = shown["low"] is not None and shown["high"] - shown["low"] <= float(width)
        assert count <= n if is_met else count > n, "as the interval beside it says"


def test_labels_on_every_verdict_are_enough_if_their_interval_says_so():
    verdicts = [verdict(f"c{at}", 0.9 if at % 3 else 0.1) for at in range(12)]
    document = held(verdicts, [label(f"c{at}", bool(at % 3)) for at in range(12)])
    shown = document["corrected"]["prediction_powered"]
    needed = document["labels_needed"]["for_width"]
    assert all(count is None or count <= 12 for count in needed.values())
    assert (needed["0.1"] is not None) == (shown["high"] - shown["low"] <= 0.1)


def test_without_a_label_there_is_no_curve():
    assert labels_needed([], 10)["curve"] == ()


def test_ties_of_people_count_half_and_leave_the_error_rates_alone():
    pairs = [pair(f"c{n}", n % 2, float(n % 2)) for n in range(20)]
    tied = [pair(f"t{n}", 0, 1.0) for n in range(5)]
    scores = {f"o{n}": float(n < 60) for n in range(100)} | {one.case_id: 1.0 for one in tied}
    found, without = (correct_prevalence(pairs, scores, 0.5, 0, some) for some in (tied, ()))
    assert found["labelled_only"].value == pytest.approx((10 + 2.5) / 25)
    assert found["prediction_powered"].n == 25
    assert (found["ties"], found["verdicts"]) == (5, 125)
    assert found["prediction_powered"].value < without["prediction_powered"].value
    for way in ("rogan_gladen", "rogan_gladen_posterior", "judge_only"):
        assert found[way] == without[way]


def test_left_out_ties_would_bias_the_share_that_people_would_find():
    """Half of the answers are good, a tenth split two people, and the judge calls those good."""
    pairs = [pair(f"c{n}", n < 200, float(n < 200)) for n in range(360)]
    tied = [pair(f"t{n}", 0, 1.0) for n in range(40)]
    found = correct_prevalence(pairs, {}, 0.5, 0, tied)["prediction_powered"]
    assert found.value == pytest.approx((200 + 20) / 400)


def by_weight(generator, n=400):
    """Of 4,000 cases, of which the judge calls 1,000 bad: half of the labels are of those."""
    truth = generator.random(4000) < np.where(np.arange(4000) < 1000, 0.3, 0.9)
    scores = np.where(np.arange(4000) < 1000, 0.1, 0.9)
    drawn = [*generator.choice(1000, n // 2, replace=False),
             *(1000 + generator.choice(3000, n // 2, replace=False))]  # fmt: skip
    weights = [1000 / (n // 2)] * (n // 2) + [3000 / (n // 2)] * (n // 2)
    pairs = [
        pair(f"c{at}", truth[at], float(scores[at]), weight)
        for at, weight in zip(drawn, weights, strict=True)
    ]
    return truth, pairs, {f"c{at}": float(scores[at]) for at in range(4000)}


def test_with_unequal_weights_rogan_and_gladen_go_by_the_weighted_rates():
    _, pairs, scores = by_weight(np.random.default_rng(3))
    found = correct_prevalence(pairs, scores, 0.5, 0)
    good = [(p.weight, p.score > 0.5) for p in pairs if p.good]
    bad = [(p.weight, p.score < 0.5) for p in pairs if not p.good]
    sensitivity, specificity = (
        sum(w for w, right in side if right) / sum(w for w, _ in side) for side in (good, bad)
    )
    wanted = (0.75 - 1 + specificity) / (sensitivity + specificity - 1)
    assert found["rogan_gladen"].value == pytest.approx(wanted)
    assert found["rogan_gladen"].low < wanted < found["rogan_gladen"].high
    assert found["rogan_gladen_posterior"].value == pytest.approx(wanted)


@pytest.mark.slow
def test_the_weighted_interval_of_rogan_and_gladen_holds_the_truth(monkeypatch):
    monkeypatch.setattr(prevalence, "_DRAWS", 100)  # of the posterior, which is not looked at
    generator, held_by, draws = np.random.default_rng(5), 0, 300
    for _ in range(draws):
        truth, pairs, scores = by_weight(generator, 200)
        found = correct_prevalence(pairs, scores, 0.5, 0)["rogan_gladen"]
        held_by += found.low <= truth.mean() <= found.high
    assert held_by / draws >= 0.93


def test_labels_needed_go_by_the_weighted_share():
    _, pairs, scores = by_weight(np.random.default_rng(3))
    found = labels_needed(pairs, len(scores))
    w = np.array([one.weight for one in pairs])
    good = np.array([float(one.good) for one in pairs])
    share = np.average(good, weights=w)
    assert share > good.mean() + 0.1
    # planned nearer to one half, as in 2 of 10 samples
    assert found["share"] == pytest.approx(share - 0.84 * np.sqrt(share * (1 - share) / len(pairs)))


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [0.0, 0.1])
def test_the_labels_that_are_said_to_be_needed_are_enough_in_8_of_10_cases(wrong):
    """With a median they were enough in 42% of runs."""
    enough = []
    for failing, area in itertools.product((0.05, 0.2, 0.5), (0.76, 0.9, 0.97)):
        rng = np.random.default_rng([round(100 * failing), round(100 * area)])
        bad, good = plan_world(rng, 60, failing, area, clustered=False)
        order, strata, sizes = drawn_by_plan(rng, good)
        votes = [~bad ^ (rng.random(bad.shape) < wrong) for _ in range(2)]

        def corrected(run, n, world=(order, strata, sizes, votes)):
            drawn, at = world[0][run, :n], world[1][run, world[0][run, :n]]
            told, other = (vote[run, drawn].astype(float) for vote in world[3])
            counts = np.maximum(np.bincount(at, minlength=world[2].shape[1]), 1)
            y = remove_label_error(
                (told + other) / 2, (told != other) * 1.0, (world[2][run] / counts)[at]
            )
            return poststratified_share(y, at, world[2][run])

        for run in range(60):
            value, low, high, worth = map(float, corrected(run, 50))
            now = Estimate(value=value, low=low, high=high, n=50, method="post-stratified")
            fifty = [pair(f"c{at}", at < 25, 0.5) for at in range(50)]
            needed = labels_needed(fifty, 1000, now, worth)["for_width"]["0.1"]
            if high - low > 0.1 and needed is not None and needed < 900:
                _, least, most, _ = corrected(run, needed)
                enough.append(most - least <= 0.101)
    assert len(enough) > 200
    assert np.mean(enough) >= 0.8


JUDGE = "1" * 60 + "0" * 40
PEOPLE = "1" * 30 + "0" * 5 + "-" * 25 + "0" * 28 + "1" * 2 + "-" * 10  # 65 labelled


parsed = CalibrationDocument.read


def test_the_difference_is_the_raw_one_over_what_the_judge_tells_apart():
    a = judged_run(JUDGE)
    b = judged_run("1" * 75 + "0" * 25)
    document = run_calibration(a, PEOPLE)
    found = corrected_share_difference(a, b, "faithfulness", parsed(document))
    gain = 30 / 32 + 28 / 33 - 1
    assert found.difference.value == pytest.approx(0.15 / gain)
    assert found.b.value - found.a.value == pytest.approx(found.difference.value)
    assert found.difference.low < found.difference.value < found.difference.high
    assert found.labels == 65


def test_cases_without_a_verdict_in_one_run_are_in_neither_share():
    a, b = judged_run("1" * 60 + "0" * 30 + "f" * 10), judged_run("f" * 20 + "1" * 80)
    found = corrected_share_difference(
        a, b, "faithfulness", parsed(run_calibration(judged_run(JUDGE), PEOPLE))
    )
    assert (found.a.n, found.b.n, found.difference.n) == (70, 70, 70)


def test_both_must_keep_a_calibration_and_who_does_not_is_told():
    a, b = judged_run(JUDGE), judged_run(JUDGE)
    assert compare_corrected_shares(a, b) == ({}, ())
    found, why = compare_corrected_shares(keeping(a, run_calibration(a, PEOPLE)), b)
    assert (found, why) == ({}, (Reason(code="one_run_uncalibrated", without="B", other="A"),))


def test_where_the_judges_differ_nobody_is_told_to_use_the_ones_calibration_for_the_other():
    a, b = judged_run(JUDGE), judged_run(JUDGE, judge="openai:n")
    found, why = compare_corrected_shares(keeping(a, run_calibration(a, PEOPLE)), b)
    judges = {"first": "openai:m", "second": "openai:n"}
    assert (found, why) == ({}, (Reason(code="runs_of_other_judges", **judges),))
    judges = {"first": "openai:n", "second": "openai:m"}
    assert compare_corrected_shares(b, keeping(a, run_calibration(a, PEOPLE)))[1] == (
        Reason(code="runs_of_other_judges", **judges),
    )


def test_the_calibration_with_more_labels_corrects_both():
    a, b = judged_run(JUDGE), judged_run("1" * 75 + "0" * 25)
    many, few = run_calibration(a, PEOPLE), run_calibration(b, "1" * 30 + "-" * 45 + "0" * 5)
    found, why = compare_corrected_shares(keeping(a, many), keeping(b, few))
    assert why == ()
    assert found["fully_faithful"].labels == 65
    assert found["fully_faithful"] == corrected_share_difference(a, b, "faithfulness", parsed(many))


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"judge": "openai:n"}, "runs_of_other_judges"),
        (
            {"prompt": PromptRef(name=PROMPT.name, version=2, sha256="cd" * 32)},
            "runs_of_other_prompts",
        ),
    ],
)
def test_another_judge_or_prompt_is_not_corrected_by_these_labels(changed, code):
    a, b = judged_run(JUDGE), judged_run(JUDGE, **changed)
    found, why = compare_corrected_shares(
        keeping(a, run_calibration(a, PEOPLE)), keeping(b, run_calibration(b, PEOPLE))
    )
    assert found == {}
    assert [reason.code for reason in why] == ["metric_not_corrected"]
    assert judge_mismatch(a, b, "faithfulness").code == code


def test_a_calibration_of_another_judge_is_told_though_the_runs_are_alike():
    a = judged_run(JUDGE)
    document = run_calibration(judged_run(JUDGE, judge="openai:n"), PEOPLE)
    assert judge_mismatch(a, a, "faithfulness", parsed(document)) == Reason(
        code="calibration_of_other_judge", calibrated="openai:n", judge="openai:m"
    )


def counted(good, said):
    """A calibration of nothing but the table of people against the judge."""
    cells = {"true_good": good & said, "false_bad": good & ~said}
    cells |= {"false_good": ~good & said, "true_bad": ~good & ~said}
    table = {name: int(cell.sum()) for name, cell in cells.items()}
    return {"metric": "faithfulness", "threshold": 0.5, "confusion": table}


def marks(said):
    return "".join("1" if one else "0" for one in said)


@pytest.mark.slow
def test_the_interval_covers_the_true_difference():
    """200 draws of two systems that are truly 60 and 72% good, judged and labelled with error."""
    draws, generator, covered = 200, np.random.default_rng(7), 0
    for _ in range(draws):
        good = generator.random((2, 300)) < np.array([[0.6], [0.72]])
        said = generator.random((2, 300)) < np.where(good, 0.85, 0.2)
        a, b = (judged_run(marks(one)) for one in said)
        document = counted(good[0][:100], said[0][:100])
        found = corrected_share_difference(a, b, "faithfulness", parsed(document)).difference
        covered += found.low <= 0.12 <= found.high
    assert covered / draws >= 0.93


def test_fewer_labels_make_the_interval_wider_about_the_same_difference():
    a, b = judged_run(JUDGE), judged_run("1" * 75 + "0" * 25)
    table = {"true_good": 18, "false_bad": 2, "false_good": 4, "true_bad": 16}
    many = {name: 50 * count for name, count in table.items()}
    few, sure = (
        corrected_share_difference(
            a, b, "faithfulness", parsed({"threshold": 0.5, "confusion": one})
        ).difference
        for one in (table, many)
    )
    assert few.value == pytest.approx(sure.value) == pytest.approx(0.15 / 0.7)
    assert few.high - few.low > sure.high - sure.low


def test_labels_are_read_by_case_and_not_by_place():
    a = judged_run(JUDGE)
    assert run_calibration(a, PEOPLE)["n"] == len(labels_of(PEOPLE))


@pytest.mark.parametrize(("share", "width"), [(0.5, 0.1), (0.9, 0.05), (0.02, 0.2), (1.0, 0.1)])
def test_one_label_fewer_is_too_wide(share, width):
    from statsmodels.stats.proportion import proportion_confint

    n = labels_for_share(share, width)
    wide = [np.diff(proportion_confint(share * m, m, method="wilson"))[0] for m in (n, n - 1)]
    assert wide[0] <= width < wide[1]


def test_verdicts_save_the_labels_that_prediction_powered_inference_says():
    generator = np.random.default_rng(1)
    y = (generator.random(2_000) < 0.4).astype(float)
    f = np.where(generator.random(2_000) < 0.9, y, 1 - y)
    found = prediction_powered(y[:150].tolist(), f[:150].tolist(), f[150:].tolist()).estimate
    unexplained = 1 - float(np.corrcoef(y[:150], f[:150])[0, 1]) ** 2
    planned = share_width(150, found.value, unexplained=unexplained, judged=2_000)
    assert found.high - found.low == pytest.approx(planned, rel=0.05)


def test_labels_on_every_case_may_not_be_enough():
    assert labels_for_share(0.5, 0.05, unexplained=0.19, judged=500) is None
    assert labels_for_share(0.5, 0.05, judged=500) is None
    assert labels_for_share(0.5, 0.1, unexplained=0.19, judged=500) < 381


def test_numbers_that_are_none_are_refused():
    for wrong in ({"share": 1.2}, {"share": 0.5, "unexplained": -1}):
        with pytest.raises(ValueError, match="out of range"):
            share_width(10, **wrong)
    with pytest.raises(ValueError, match="fewer than"):
        share_width(10, 0.5, unexplained=0.5)
    with pytest.raises(ValueError, match="width is between"):
        labels_for_share(0.5, 0)


def test_a_corrected_share_without_an_interval_is_not_taken_for_a_narrow_one():
    _, pairs, scores = by_weight(np.random.default_rng(3), 100)
    alone = Estimate(value=0.5, low=None, high=None, n=100, method="m", reason="too few groups")
    narrow = labels_needed(pairs, len(scores), alone)["for_width"]["0.1"]
    assert narrow is None or narrow > len(pairs)
