"""What the judge's errors depend on, over all answers and within a question."""

import json
import random
from pathlib import Path

import pytest

from json_values import as_json
from labelled import METRIC, held, label, verdict
from misslink.calibration import calibrate, read_verdicts
from misslink.calibration.bias import bias_findings, category_preference, length_preference
from misslink.calibration.inter_annotator import pair_answers as paired
from misslink.calibration.inter_annotator import settle_labels
from misslink.calibration_document import CalibrationDocument
from misslink.io.labels import read_labels
from misslink.stats.intervals import critical_value, wilson_interval

calibrate = as_json(calibrate)


def planted(n=400, seed=1, **about):
    """Verdicts right in nine of ten, but for longer answers called bad twice as often as right."""
    generator = random.Random(seed)
    verdicts, labels = [], []
    for number in range(n):
        good = generator.random() < 0.6
        length = generator.choice([100, 900])
        call = good if generator.random() < 0.9 else not good
        if length == 900 and about.get("hard_on_long") and generator.random() < 0.5:
            call = False
        kind = generator.choice(["law", "food", "<b>tax</b>"])
        if kind == "law" and about.get("kind_to_law") and generator.random() < 0.6:
            call = True
        score = 0.9 if call else 0.1
        more = {"answer": "x" * length, "category": kind, "passages": generator.choice([3, 5])}
        verdicts.append(verdict(f"c{number}", score, **more))
        labels.append(label(f"c{number}", good))
    return held(verdicts, labels)["bias"]


@pytest.mark.slow
def test_a_judge_that_is_hard_on_long_answers_is_found_out():
    found = planted(hard_on_long=True)
    assert found["length"]["coefficient"]["low"] > 0
    assert found["length"]["pull"]["high"] < 0
    assert found["length"]["finding"] == (
        "the judge errs more on longer answers; it is too strict on longer answers"
    )


def test_a_judge_that_is_kind_to_one_category_is_found_out():
    found = planted(kind_to_law=True)
    assert found["category: law"]["pull"]["low"] > 0
    assert "it is too lenient on answers with the category law" in found["category: law"]["finding"]


@pytest.mark.slow
def test_what_is_chance_is_seldom_called_a_bias():
    told = [
        name for seed in range(15) for name, entry in planted(120, seed).items() if entry["finding"]
    ]
    assert len(told) <= 3  # two families of tests at 5% each over 15 repetitions: 1.5 expected


def test_what_no_case_tells_stands_there_as_missing():
    found = planted()
    assert found["evidence_position"]["coefficient"]["value"] is None
    assert "too few labelled cases" in found["evidence_position"]["coefficient"]["reason"]
    assert found["model"]["finding"] is None


def test_two_kinds_are_told_once_for_they_mirror_each_other():
    verdicts = [verdict(f"c{n}", 0.9, model="ab"[n % 2]) for n in range(40)]
    labels = [label(f"c{n}", n % 3 > 0) for n in range(40)]
    names = [name for name in held(verdicts, labels)["bias"] if name.startswith("model")]
    assert names == ["model: b"]


def test_a_judge_without_errors_has_no_bias_and_says_so():
    verdicts = [verdict(f"c{n}", float(n % 2), answer="x" * (n + 1)) for n in range(40)]
    found = held(verdicts, [label(f"c{n}", n % 2) for n in range(40)])["bias"]
    assert found["length"]["coefficient"]["reason"] == "the judge makes no error here"


DATA = Path(__file__).parents[3] / "shared" / "data"


def answers(rows):
    """Verdicts and labels of (question, characters, score, good, model)."""
    verdicts, labels = [], []
    for n, (question, size, score, good, model) in enumerate(rows):
        told = {"question": question, "answer": "x" * size, "model": model}
        verdicts.append(verdict(f"c{n}", score, **told))
        labels.append(label(f"c{n}", good))
    return verdicts, labels


def matched(rows, kind=None):
    verdicts, labels = answers(rows)
    gold = settle_labels(read_labels(labels).items).gold
    pairs, _ = paired(gold, read_verdicts(verdicts, METRIC))
    return dict(category_preference(pairs, "model", kind) if kind else length_preference(pairs))


def planted_pairs(pull, questions=40, seed=3):
    """Two faithful answers and two others a question; a longer one scores `pull` more."""
    drawn = random.Random(seed)
    return [
        (f"q{q}", size, min(1.0, max(0.0, drawn.uniform(0.2, 0.7) + pull * (size > 200))), good, m)
        for q in range(questions)
        for good in (True, False)
        for size, m in ((drawn.randrange(50, 200), "a"), (drawn.randrange(201, 400), "b"))
    ]


def test_by_hand():
    rows = [
        ("q1", 10, 0.2, True, "a"), ("q1", 20, 0.6, True, "b"), ("q1", 30, 0.4, True, "b"),
        ("q1", 40, 0.9, False, "a"),  # nobody beside it has its label
        ("q2", 10, 0.5, True, "a"), ("q2", 20, 0.5, True, "b"),  # a tie
        ("q3", 10, 0.5, False, "a"), ("q3", 10, 0.9, False, "b"),  # as long as the other
        ("q4", 10, 0.9, False, "a"),
    ]  # fmt: skip
    found = matched(rows)
    assert (found["pairs"], found["ties"], found["questions"]) == (4, 1, 2)
    assert found["longer_preferred"].value == pytest.approx(2 / 3)
    assert found["longer_preferred"].n == 3
    assert found["p"] == 1.0  # one question of two says something


def test_a_pull_to_longer_answers_is_found_within_questions():
    document = held(*answers(planted_pairs(0.3)))
    found = document["bias"]["length"]["matched"]
    assert (found["pairs"], found["questions"]) == (80, 40)
    assert found["longer_preferred"]["low"] > 0.5
    assert found["difference"]["low"] > 0
    assert found["finding"].startswith(
        "of two answers to one question with the same label, the judge"
    )
    assert found["finding"] in bias_findings(CalibrationDocument.read(document).bias)


@pytest.mark.slow
def test_without_a_pull_nothing_is_found():
    found = [matched(planted_pairs(0.0, seed=seed))["p"] for seed in range(20)]
    assert sum(p < 0.05 for p in found) <= 3  # of 20, 1 expected


def test_the_model_that_answered_is_compared_the_same_way():
    found = matched(planted_pairs(0.3), "b")  # all longer answers are its
    assert found["preferred"] == matched(planted_pairs(0.3))["longer_preferred"]


@pytest.mark.slow
def test_the_interval_is_that_of_a_ratio_over_questions():
    """The variance is statsmodels' cluster-robust one, in Wilson's interval with Student's t."""
    api = pytest.importorskip("statsmodels.api")
    drawn = random.Random(1)
    rows, won, cluster = [], [], []
    for q in range(30):
        lean = drawn.choice([-0.3, 0.3])  # pairs of one question go together
        scores = [0.5, *(0.5 + lean * drawn.random() for _ in range(4))]
        sizes = [500, 10, 20, 30, 40]
        rows += [(f"q{q}", s, score, True, "a") for s, score in zip(sizes, scores, strict=True)]
        for i in range(5):
            for j in range(i + 1, 5):
                longer, shorter = (i, j) if sizes[i] > sizes[j] else (j, i)
                won.append(float(scores[longer] > scores[shorter]))
                cluster.append(q)
    rows.append(("other", 5, 0.5, False, "b"))
    found = matched(rows)["longer_preferred"]
    fitted = api.OLS(won, [1.0] * len(won)).fit(
        cov_type="cluster", cov_kwds={"groups": cluster, "use_correction": True}
    )
    share = float(fitted.params[0])
    worth = share * (1 - share) / float(fitted.cov_params()[0, 0])
    assert worth < len(won) / 2
    assert found.value == pytest.approx(share)
    student = float(pytest.importorskip("scipy.stats").t.ppf(0.975, 30 - 1))
    assert (found.low, found.high) == pytest.approx(wilson_interval(share, worth, student))


def test_questions_that_all_agree_are_worth_one_pair_each():
    rows = [(f"q{q}", size, size / 100, True, "a") for q in range(6) for size in (10, 20, 30)]
    found = matched([*rows, ("q0", 5, 0.5, False, "a")])["longer_preferred"]
    assert (found.value, found.n) == (1.0, 18)
    assert found.low == pytest.approx(wilson_interval(1.0, 6, critical_value(0.95))[0])


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([(f"q{n}", n + 9, 0.5, n % 2, "a") for n in range(20)], "no two answers to the same"),
        ([("q", 9, n / 20, n % 2, "a") for n in range(20)], "with the same label differ in this"),
        ([("q", n + 9, 0.5, n % 2, "a") for n in range(20)], "scores both answers of every pair"),
    ],
)
def test_without_pairs_it_is_missing_with_a_reason(rows, reason):
    found = matched(rows)
    assert found["longer_preferred"].value is None
    assert reason in found["longer_preferred"].reason
    assert found["difference"].reason


def test_very_many_answers_to_one_question_are_thinned():
    rows = [("q", n + 1, n / 2000, True, "a") for n in range(2000)]
    found = matched([*rows, ("q", 1, 0.5, False, "a")])
    assert 1000 < found["pairs"] <= 60 * 59 / 2
    assert found["longer_preferred"].value == 1.0


def test_a_group_goes_before_the_question_and_ids_may_be_numbers():
    rows = [
        verdict("a", 0.1, group=7.0, question="one"),
        verdict("b", 0.2, group="7", question="two"),
        verdict("c", 0.3, question="What  is  IT?"),
        verdict("d", 0.4, question="what is it?"),
        verdict("e", 0.5),
    ]
    items = read_verdicts(rows, METRIC).items
    assert items["a"].group == items["b"].group == "group 7"
    assert items["c"].group == items["d"].group == "what is it?"
    assert items["e"].group is None


@pytest.mark.slow
def test_the_answers_of_ragtruth_are_compared_within_their_questions():
    """Several models answered each question; lengths stand in for the judge, so all is known."""
    path = DATA / "faithfulness" / "ragtruth_qa_dev.jsonl"
    if not path.exists():
        pytest.skip("the data set faithfulness/ragtruth_qa_dev.jsonl is not here")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    longest = max(len(row["answer"]) for row in rows)
    verdicts = [
        verdict(row["id"], len(row["answer"]) / longest, answer=row["answer"],
                question=row["question"], model=row["model"])
        for row in rows
    ]  # fmt: skip
    labels = [label(row["id"], not row["human_hallucinated"]) for row in rows]
    bias = calibrate(read_verdicts(verdicts, METRIC), read_labels(labels))["bias"]
    found = bias["length"]["matched"]
    assert found["questions"] > 30
    assert found["longer_preferred"]["value"] == 1.0
    assert found["ties"] == 0
    models = [entry["matched"] for name, entry in bias.items() if name.startswith("model: ")]
    assert len(models) == len({row["model"] for row in rows})


def test_questions_with_a_pair_each_are_independent():
    rows = [(f"q{q}", size, (size + 7 * q) % 30 / 30, True, "a") for q in range(12)
            for size in (10, 25)]  # fmt: skip
    found = matched([*rows, ("q0", 5, 0.5, False, "a")])["longer_preferred"]
    assert 0 < found.value < 1
    assert (found.low, found.high) == pytest.approx(
        wilson_interval(found.value, 11, critical_value(0.95))
    )


@pytest.mark.slow
@pytest.mark.parametrize("lean", [0.5, 1.0, 5.0])
def test_the_interval_of_15_questions_holds_the_truth(lean):
    """Neither kind is preferred; each question leans its own way, and has from 1 to 28 pairs."""
    np = pytest.importorskip("numpy")
    generator, draws, covered = np.random.default_rng(15), 250, 0
    for _ in range(draws):
        rows = []
        for q in range(15):
            up = generator.beta(lean, lean)
            for n in range(1, int(generator.integers(2, 9))):
                score = 0.5 + (0.1 if generator.random() < up else -0.1)
                rows.append((f"q{q}", 10 + n, score, True, "b"))
            rows.append((f"q{q}", 10, 0.5, True, "a"))
        found = matched(rows, "b")["preferred"]
        covered += found.low <= 0.5 <= found.high
    assert covered / draws >= 0.92  # 0.95 less two standard errors
    assert covered / draws <= 0.995
