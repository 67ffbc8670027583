"""Labels that people gave: numbers that scikit-learn gives too, and what is known of the sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from misslink.calibration import calibrate, read_verdicts
from misslink.calibration.inter_annotator import annotator_agreement, pair_answers, settle_labels
from misslink.calibration.judge_accuracy import judge_confusion
from misslink.io.label_sets import ImportOptions
from misslink.io.labels import read_labels
from misslink.registry import importers

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
    for label in labels.items:
        by_pair.setdefault(label.case_id, []).append(label.value)
    exact = sum(a == b for a, b in by_pair.values()) / len(by_pair)
    assert exact == pytest.approx(0.55, abs=0.02)  # of the whole set, 0.55
    told = annotator_agreement(labels.items, {}, seed=0)
    assert told["annotators"] == 2
    assert told["percent"].value > exact  # on the better side or not, grades apart
    assert 0 < told["alpha_ordinal"].value < 1
    assert told["copies"] == []


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
