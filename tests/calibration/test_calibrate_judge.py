"""A judge compared with human labels, made up and real."""

import json
import math
import random
from pathlib import Path

import pytest

from json_values import as_fields, as_json
from labelled import METRIC, held, label, table, verdict
from misslink.calibration import calibrate, read_verdicts
from misslink.calibration.inter_annotator import annotator_agreement, pair_answers, settle_labels
from misslink.calibration.judge_accuracy import judge_confusion
from misslink.calibration.verdicts import JudgedCase, MetricVerdicts
from misslink.errors import InputError
from misslink.io.label_sets import ImportOptions
from misslink.io.labels import Label, Labels, read_labels
from misslink.registry import importers
from misslink.types import Estimate

calibrate = as_json(calibrate)

annotator_agreement = as_fields(annotator_agreement)

CONTRACT = {
    "agreement": (
        "kappa", "gwet_ac1", "auroc", "sensitivity", "specificity", "precision", "recall", "f1",
        "balanced_accuracy",
    ),
    "detection": ("precision", "recall", "f1"),
    "corrected": ("judge_only", "labelled_only", "rogan_gladen", "prediction_powered"),
}  # fmt: skip


def numbers(item):
    if isinstance(item, dict):
        for value in item.values():
            yield from numbers(value)
    elif isinstance(item, list):
        for value in item:
            yield from numbers(value)
    elif isinstance(item, float):
        yield item


def test_the_contract_is_kept_and_every_estimate_is_one():
    document = held(*table())
    for part, names in CONTRACT.items():
        for name in names:
            Estimate.model_validate(document[part][name])
    assert (document["metric"], document["n"], document["positives"]) == (METRIC, 100, 50)
    assert Estimate.model_validate(document["human"]["alpha"]).value is None
    assert document["human"]["annotators"] == 1
    Estimate.model_validate(document["bias"]["length"]["coefficient"])
    assert document["verdict"] in {"trust", "caution", "do not use", "not enough labels"}
    assert all(isinstance(reason, str) for reason in document["reasons"])
    json.dumps(document, allow_nan=False)


def test_the_table_and_its_rates_are_those_counted_by_hand():
    document = held(*table(40, 10, 20, 30))
    assert document["confusion"] == {
        "true_good": 40, "false_good": 20, "true_bad": 30, "false_bad": 10,
    }  # fmt: skip
    assert document["agreement"]["sensitivity"]["value"] == 0.8
    assert document["agreement"]["specificity"]["value"] == 0.6
    assert document["agreement"]["kappa"]["value"] == pytest.approx(0.4)
    assert document["detection"]["precision"]["value"] == 0.75
    assert document["detection"]["recall"]["value"] == 0.6
    assert document["baselines"]["majority"] == {"accuracy": 0.5, "f1": 0.0}


def test_the_threshold_is_one_half_unless_something_else_is_known():
    verdicts, labels = table()
    assert held(verdicts, labels)["threshold"] == 0.5
    moved = held(verdicts, labels, threshold=0.85)
    assert (moved["threshold"], moved["confusion"]["false_good"]) == (0.85, 0)


def test_the_heuristic_judge_brings_its_own_cut():
    from misslink.matching import load_fit

    document = held(*table(judge="heuristic"))
    assert document["threshold"] == load_fit().cut
    assert document["threshold_from"] == "the judge's own"


def test_a_judge_whose_labels_follow_another_cut_is_read_by_it():
    rows = [
        {"case_id": f"c{n}", "metric": METRIC, "value": n / 10, "label": n == 10} for n in range(11)
    ]
    document = held(rows, [label(f"c{n}", n > 5) for n in range(11)])
    assert (document["threshold"], document["threshold_from"]) == (1.0, "the judge's own labels")
    assert document["confusion"]["true_good"] == 1


def test_a_case_exactly_at_the_threshold_is_called_good():
    rows = [verdict("a", 0.5), verdict("b", 0.4999)]
    document = held(rows, [label("a", 1), label("b", 0)])
    assert document["confusion"] == {
        "true_good": 1, "false_good": 0, "true_bad": 1, "false_bad": 0,
    }  # fmt: skip


def test_the_corrected_share_is_that_of_all_verdicts_with_labelled_cases_counted_once():
    verdicts, labels = table()
    others = [verdict(f"o{n}", 0.9 if n < 70 else 0.1) for n in range(100)]
    document = held(verdicts, labels, all_verdicts=verdicts[:60] + others)
    assert document["corrected"]["verdicts"] == 200
    assert document["corrected"]["judge_only"]["value"] == (60 + 70) / 200
    # corrected: 0.65 - 0.4 over 0.8 + 0.6 - 1
    assert document["corrected"]["rogan_gladen"]["value"] == pytest.approx(0.625)


def test_a_share_outside_what_the_labels_allow_is_missing_and_says_why():
    verdicts, labels = table()
    others = [verdict(f"o{n}", 0.9) for n in range(100)]
    found = held(verdicts, labels, all_verdicts=verdicts[:60] + others)["corrected"]["rogan_gladen"]
    assert found["value"] is None
    assert "differ from the rest" in found["reason"]


def test_labelled_cases_may_have_their_verdict_among_all_alone():
    verdicts, labels = table()
    document = held(verdicts[:50], labels, all_verdicts=verdicts)
    assert document["n"] == 100


def test_the_order_of_labels_and_verdicts_does_not_matter():
    verdicts, labels = table()
    first = held(verdicts, labels)
    generator = random.Random(3)
    generator.shuffle(verdicts)
    generator.shuffle(labels)
    second = held(verdicts, labels)
    for part in ("agreement", "confusion", "corrected", "detection"):
        assert list(numbers(second[part])) == pytest.approx(list(numbers(first[part])))


def test_the_same_seed_gives_the_same_document():
    first, second = (held(*table(), seed=7) for _ in range(2))
    assert {**first, "created": 0} == {**second, "created": 0}


def test_one_class_alone_still_tells_what_it_can():
    document = held(*table(40, 10, 0, 0))
    assert document["agreement"]["sensitivity"]["value"] == 0.8
    assert document["agreement"]["specificity"]["value"] is None
    assert document["agreement"]["auroc"]["reason"]
    assert document["corrected"]["labelled_only"]["value"] == 1.0
    assert document["corrected"]["rogan_gladen"]["value"] is None
    assert document["verdict"] == "not enough labels"
    assert any("Every labelled case (50) is good" in note for note in document["notes"])


def test_three_labels_say_that_they_are_three():
    document = held(*table(1, 0, 1, 1))
    assert document["n"] == 3
    assert document["agreement"]["sensitivity"]["value"] == 1.0
    assert document["corrected"]["prediction_powered"]["value"] is None
    assert "3 labels are too few" in document["corrected"]["prediction_powered"]["reason"]
    assert document["verdict"] == "not enough labels"
    assert document["reasons"][0] == ("Labelled cases: 3; at least 30 are needed to use it at all.")


def test_failed_verdicts_count_nowhere_and_are_told():
    verdicts, labels = table()
    failed = {"value": None, "probability": None, "status": "failed", "reason": "no JSON"}
    verdicts[0] |= failed
    verdicts[-1] |= {**failed, "status": "skipped", "reason": "the answer declines"}
    document = held(verdicts, labels)
    assert document["n"] == 98
    assert document["left_out"] == {"failed": 1, "skipped": 1}
    assert "1 verdict failed and not counted: 1 x no JSON." in document["notes"]


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [1.2, -0.1, math.nan, "high", 97])
def test_a_probability_that_cannot_be_makes_its_verdict_a_failed_one(wrong):
    verdicts, labels = table()
    verdicts[0]["probability"] = wrong
    if isinstance(wrong, float) and math.isnan(wrong):  # as a frame says that there is none
        assert held(verdicts, labels)["n"] == 100
        return
    document = held(verdicts, labels)
    assert document["n"] == 99
    assert any("its probability" in note for note in document["notes"])


def test_all_verdicts_failed_is_a_document_and_no_crash():
    verdicts, labels = table(1, 1, 1, 1)
    for one in verdicts:
        one |= {"value": None, "probability": None, "status": "failed", "reason": "timeout"}
    document = held(verdicts, labels)
    assert (document["n"], document["verdict"]) == (0, "not enough labels")
    assert document["agreement"]["kappa"]["value"] is None
    assert list(numbers(document["corrected"])) == []


def test_a_judge_of_one_word_gives_no_probabilities_and_no_band():
    verdicts, labels = table()
    for one in verdicts:
        del one["probability"]
    document = held(verdicts, labels)
    assert document["probability"] == {"brier": None, "ece": None}
    assert document["reliability"] == []
    assert document["uncertain_band"] is None
    assert document["recalibration"]["reason"] == "the judge gives no probability"
    assert document["agreement"]["auroc"]["value"] is not None


def test_a_judge_at_chance_is_not_to_be_used():
    document = held(*table(50, 50, 50, 50))
    assert document["verdict"] == "do not use"
    assert document["corrected"]["rogan_gladen"]["value"] is None


def test_a_judge_that_hardly_errs_is_trusted_with_what_holds_as_reasons():
    document = held(*table(97, 3, 3, 97))
    assert document["verdict"] == "trust"
    assert any(
        "Kappa of judge and annotators may be as low as 0.8" in reason
        for reason in document["reasons"]
    )


def test_labels_of_claims_make_the_answers_label_where_they_settle_it():
    def claims(*support):
        return [{"text": "It is so.", "support": one} for one in support]

    rows = [
        verdict("a", 1.0, claims=claims("supported", "supported")),
        verdict("b", 0.5, claims=claims("supported", "unsupported")),
        verdict("c", 0.5, claims=claims("supported", "unsupported")),
    ]
    labels = [
        label("a", 1, claim=0), label("a", 1, claim=1),  # all good: faithful
        label("b", 0, claim=1),  # one bad: unfaithful, whatever the other is
        label("c", 1, claim=0), label("c", 1, claim=7),  # not all known, one unheard of
    ]  # fmt: skip
    document = held(rows, labels)
    assert (document["n"], document["positives"]) == (2, 1)
    assert "Labels of claims without a verdict left out: 1." in document["notes"]
    assert document["claims"]["n"] == 4
    assert document["claims"]["without_verdict"] == 1
    assert document["claims"]["agreement"]["specificity"]["value"] == 1.0


def test_claims_of_one_person_do_not_settle_an_answer_that_two_are_tied_on():
    claims = [{"text": "It is so.", "support": "supported"}]
    rows = [verdict("a", 1.0, claims=claims), verdict("b", 1.0, claims=claims)]
    labels = [
        label("a", 0, claim=0, annotator="anna"), label("a", 0, annotator="anna"),
        label("a", 1, annotator="ben"),
        label("b", 1, claim=0, annotator="anna"), label("b", 1, annotator="ben"),
    ]  # fmt: skip
    document = held(rows, labels)
    assert (document["n"], document["positives"]) == (1, 1)
    assert document["human"]["unsettled"] == 1
    assert document["labelled"] == {"b": 1.0}


def test_unequal_chances_of_being_labelled_change_the_rates():
    verdicts, labels = table(20, 20, 10, 10)
    # people's good cases that the judge calls bad stand for ten cases each
    for one, said in zip(verdicts, labels, strict=True):
        said["weight"] = 1.0 if one["value"] >= 0.5 else 10.0
    document = held(verdicts, labels)
    assert document["confusion"]["true_good"] == 20  # plain counts
    assert document["agreement"]["sensitivity"]["value"] == pytest.approx(20 / 220)
    # 220 of 330, times (20 + 200 + 10 + 100)^2 / (20 + 2000 + 10 + 1000), as if of so many cases
    assert document["agreement"]["sensitivity"]["n"] == 24
    assert document["corrected"]["labelled_only"]["value"] == pytest.approx(220 / 330)


def test_verdicts_of_two_judges_are_not_mixed():
    verdicts, labels = table(judge="openai:a")
    others = [verdict("o", 0.9, judge="openai:b")]
    with pytest.raises(InputError, match="verdicts by openai:b, the labelled ones by openai:a"):
        held(verdicts, labels, all_verdicts=others)


def test_a_threshold_that_is_no_share_is_refused():
    with pytest.raises(InputError, match="not from 0 to 1"):
        held(*table(), threshold=43)


def test_no_path_of_this_machine_stands_in_the_document(tmp_path):
    verdicts, labels = table()
    path = tmp_path / "deep" / "labels.jsonl"
    path.parent.mkdir()
    path.write_text("\n".join(map(json.dumps, labels)), encoding="utf-8")
    document = held(verdicts, path)
    assert document["labels_from"] == "deep/labels.jsonl"
    assert str(tmp_path) not in json.dumps(document)


def test_an_answer_whose_claims_leave_people_tied_counts_half_in_the_corrected_share_alone():
    """Of 12 answers with one claim each people call 6 supported, 4 not, and are tied on 2."""
    claims = [{"text": "It is so.", "support": "supported"}]
    rows = [verdict(f"c{n}", 0.9 if n < 6 else 0.1, claims=claims) for n in range(12)]
    labels = [label(f"c{n}", n < 6, claim=0) for n in range(10)]
    for n in (10, 11):
        labels += [label(f"c{n}", word == "ada", word, claim=0) for word in ("ada", "ben")]
    document = held(rows, labels)
    assert (document["n"], document["positives"], document["corrected"]["ties"]) == (10, 6, 2)
    assert document["corrected"]["labelled_only"]["value"] == pytest.approx(7 / 12)
    (note,) = [one for one in document["notes"] if "tied" in one]
    assert note.startswith("2 tied items left out of agreement, error rates")
    assert "count 2 tied answers as half good" in note


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([label("a", 0)], "Every labelled case (1) is bad"),
        ([label("a", 1, claim=0)], "1 case got a label from the labels of the claims."),
        ([label("a", 1), label("x", 1)], "Labels of unknown cases left out: 1."),
        (
            [label("a", 1), label("b", 1), label("b", 0, "ben")],
            "1 tied item left out of agreement",
        ),
    ],
)
def test_one_of_a_kind_is_told_in_the_singular(labels, said):
    claims = [{"text": "It is so.", "support": "supported"}]
    document = held([verdict("a", 0.9, claims=claims), verdict("b", 0.9)], labels, known_only=True)
    assert any(note.startswith(said) for note in document["notes"]), document["notes"]
    assert document["reasons"][0].startswith("Labelled cases: 1; at least 30")


DATA = Path(__file__).parents[3] / "shared" / "data"


def imported(name, *parts, **wanted):
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the data set {'/'.join(parts)} is not here")
    return importers.get(name)([path], ImportOptions(**wanted))


@pytest.fixture(scope="module")
def relevance():
    """3,000 passages graded 0 to 4 by people and by a language model, as verdicts and labels."""
    found = imported("trec-rag", "judges", "rag25_human_vs_umbrela2.tsv")
    return found.verdicts[:3000], found.labels[:3000]


@pytest.mark.slow
def test_agreement_on_graded_relevance_is_what_scikit_learn_and_scipy_say(relevance):
    metrics = pytest.importorskip("sklearn.metrics")
    from scipy import stats

    verdicts, labels = relevance
    document = calibrate(read_verdicts(verdicts, "relevance"), read_labels(labels))
    score = [one["value"] for one in verdicts]
    human = [one["label"] for one in labels]
    good, called = [h >= 0.5 for h in human], [s >= 0.5 for s in score]
    found = {name: each["value"] for name, each in document["agreement"].items()}
    expected = {
        "kappa": metrics.cohen_kappa_score(good, called),
        "auroc": metrics.roc_auc_score(good, score),
        "average_precision": metrics.average_precision_score(good, score),
        "f1": metrics.f1_score(good, called),
        "precision": metrics.precision_score(good, called),
        "recall": metrics.recall_score(good, called),
        "balanced_accuracy": metrics.balanced_accuracy_score(good, called),
        "spearman": stats.spearmanr(human, score).statistic,
        "kendall": stats.kendalltau(human, score).statistic,
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    bad = metrics.f1_score([not g for g in good], [not c for c in called])
    assert document["detection"]["f1"]["value"] == pytest.approx(bad)
    assert document["threshold"] == 0.5


@pytest.mark.slow
def test_the_kappa_of_people_and_model_on_trec_rag_is_the_known_one():
    found = imported("trec-rag", "judges", "rag25_human_vs_umbrela2.tsv")
    gold = settle_labels(read_labels(found.labels).items).gold
    pairs, left_out = pair_answers(gold, read_verdicts(found.verdicts, "relevance"))
    assert (len(pairs), left_out) == (10_284, {})
    assert judge_confusion(pairs, 0.5).kappa.value == pytest.approx(0.43, abs=0.005)


def test_two_annotators_of_ragchecker_agree_on_every_second_pair():
    found = imported("ragchecker", "judges", "ragchecker_pairs_dev.jsonl")
    labels = read_labels(found.labels).select_metric("preference_grade")
    by_pair = {}
    for one in labels.items:
        by_pair.setdefault(one.case_id, []).append(one.value)
    exact = sum(a == b for a, b in by_pair.values()) / len(by_pair)
    assert exact == pytest.approx(0.55, abs=0.02)  # of the whole set, 0.55
    told = annotator_agreement(labels.items, {}, seed=0)
    assert told["annotators"] == 2
    assert told["percent"].value > exact  # on the better side or not, grades apart
    assert 0 < told["alpha_ordinal"].value < 1
    assert told["copies"] == ()


def test_the_length_alone_finds_seven_of_ten_in_ragtruth():
    found = imported("ragtruth", "faithfulness", "ragtruth_qa_dev.jsonl")
    verdicts = [
        {
            "case_id": trace.case_id,
            "metric": "faithfulness",
            "value": 1.0,
            "answer": trace.answer,
            "model": case.tags["model"],
        }
        for trace, case in zip(
            found.traces["traces.jsonl"], found.goldsets["goldset.jsonl"], strict=True
        )
    ]
    document = calibrate(read_verdicts(verdicts, "faithfulness"), read_labels(found.labels))
    assert document["baselines"]["length"]["auroc"] == pytest.approx(0.70, abs=0.005)
    assert (document["n"], document["positives"]) == (258, 208)
    assert document["verdict"] == "do not use"  # it calls everything good
    assert document["corrected"]["rogan_gladen"]["value"] is None
    assert document["corrected"]["labelled_only"]["value"] == pytest.approx(208 / 258)


def test_seven_answers_of_ragtruth_rest_on_spans_that_are_true():
    found = imported("ragtruth", "faithfulness", "ragtruth_qa_dev.jsonl", implicit_true="faithful")
    assert sum(label["label"] for label in found.labels) == 208 + 7


def test_half_of_clapnqs_questions_have_no_answer_in_their_passage():
    found = imported("clapnq", "faithfulness", "clapnq_dev.jsonl")
    good = [label["label"] for label in found.labels if label["metric"] == "context_sufficiency"]
    assert (len(good), sum(good)) == (275, 143)


def exposed(rows, none, all_):
    """Labels and verdicts of cases with none and with all; each (label, score) so many times."""
    items, labels, exposures = {}, [], {}
    for exposure, counts in (("none", none), ("all", all_)):
        for (good, score), count in counts.items():
            for _ in range(count):
                case_id = f"c{len(items)}"
                items[case_id] = JudgedCase(case_id, value=score)
                exposures[case_id] = exposure
                labels.append(
                    Label(case_id=case_id, metric=METRIC, value=float(good), annotator="ada")
                )
    verdicts = MetricVerdicts(
        items, "faithfulness", rows, frozenset(items), "j", exposures=exposures
    )
    return calibrate(verdicts, Labels(tuple(labels), "labels"))


RIGHT_90 = {(1, 1.0): 18, (1, 0.0): 2, (0, 0.0): 18, (0, 1.0): 2}
RIGHT_50 = {(1, 1.0): 10, (1, 0.0): 10, (0, 0.0): 10, (0, 1.0): 10}


def test_the_judges_error_is_measured_and_compared_by_exposure():
    found = exposed("made", RIGHT_90, RIGHT_50)["by_exposure"]
    assert found["none"]["sensitivity"]["value"] == 0.9
    assert found["all"]["specificity"]["value"] == 0.5
    assert found["some"]["specificity"]["value"] is None
    assert (found["tested"], found["differs"]) == (True, True)
    alike = exposed("made", RIGHT_90, RIGHT_90)["by_exposure"]
    assert (alike["tested"], alike["differs"], alike["p"]) == (True, False, 1.0)
    few = exposed("made", {(1, 1.0): 3, (0, 0.0): 3}, RIGHT_90)["by_exposure"]
    assert (few["tested"], few["differs"], few["p"]) == (False, None, None)
    assert "too few labels" in few["reason"]


def test_a_judge_that_adds_nothing_to_the_labels_is_reported():
    nothing = exposed("made", RIGHT_50, RIGHT_50)["reasons"]
    assert any("adds nothing to the labels" in reason for reason in nothing)
