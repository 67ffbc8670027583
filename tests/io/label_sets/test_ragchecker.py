"""RAGChecker's pairs: two people's grades as labels, its own scores as verdicts."""

import json

import pytest

from misslink.errors import InputError
from misslink.io.label_sets import ImportOptions
from misslink.registry import importers


def person(number, overall, **more):
    return {
        "instance_id": number,
        "dataset": "kiwi",
        "query_id": "41",
        "query": "why do bees dance",
        "gt_answer": "To tell of food.",
        "model1": {"model_name": "bm25_gpt_4", "response": "For fun."},
        "model2": {"model_name": "e5_gpt_4", "response": "For food."},
        "correctness_label": overall,
        "completeness_label": 0,
        "overall_label": overall,
    } | more


def scores(number, a, b):
    row = person(number, 0)
    for name, score in (("model1", a), ("model2", b)):
        row[name] = row[name] | {"ragchecker": {"overall_label": score}}
    return {key: value for key, value in row.items() if not key.endswith("_label")}


def array(path, rows):
    path.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return path


@pytest.fixture
def people(tmp_path):
    rows = [person(0, 2), person(0, 1), person(1, -1), person(1, 0)]
    return array(tmp_path / "human_labeled_data.json", rows)


def read(*paths, **wanted):
    return importers.get("ragchecker")(paths, ImportOptions(**wanted))


def labels(found, metric):
    return [
        (one["case_id"], one["annotator"], one["label"])
        for one in found.labels
        if one["metric"] == metric
    ]


def test_a_grade_becomes_a_label_from_0_to_1_of_each_of_two_people(people):
    assert labels(read(people), "preference_grade") == [
        ("ragchecker-0", "annotator-1", 1.0),
        ("ragchecker-0", "annotator-2", 0.75),
        ("ragchecker-1", "annotator-1", 0.25),
        ("ragchecker-1", "annotator-2", 0.5),
    ]


def test_who_sees_no_difference_prefers_neither(people):
    assert labels(read(people), "preference")[2:] == [("ragchecker-1", "annotator-1", 0.25)]


def test_the_answers_of_a_pair_stand_in_two_files_of_traces(people):
    found = read(people)
    sides = [[trace.answer for trace in found.traces[f"traces_{side}.jsonl"]] for side in "ab"]
    assert sides == [["For fun."] * 2, ["For food."] * 2]
    assert all(trace.unmeasured for trace in found.traces["traces_a.jsonl"])
    case = found.goldsets["goldset.jsonl"][0]
    assert case.references == ("To tell of food.",)
    assert case.tags == {"dataset": "kiwi", "system_a": "bm25_gpt_4", "system_b": "e5_gpt_4"}


def test_its_own_scores_become_verdicts(people, tmp_path):
    own = array(tmp_path / "baseline_ragchecker.json", [scores(0, 0.25, 0.75), scores(1, 0.5, 0.4)])
    verdicts = [one for one in read(own, people).verdicts if one["metric"] == "preference"]
    assert [one["value"] for one in verdicts] == pytest.approx([0.75, 0.45])
    assert {one["judge"] for one in verdicts} == {"ragchecker"}
    assert read(people).verdicts == []


def test_a_score_that_is_not_there_gives_no_verdict(people, tmp_path):
    own = array(tmp_path / "baseline.json", [scores(0, None, 0.5), scores(1, 0.5, 0.5)])
    assert {one["case_id"] for one in read(people, own).verdicts} == {"ragchecker-1"}


def test_the_reduced_form_is_known_by_its_fields(tmp_path):
    row = {
        "id": "ragchecker-4",
        "dataset": "kiwi",
        "question": "why",
        "reference_answer": "",
        "system_a": "x",
        "answer_a": "a",
        "system_b": "y",
        "answer_b": "",
        "human_overall": [1, -2],
        "human_correctness": [0, 0],
        "human_completeness": [0, 1],
        "ragchecker_delta_b_minus_a": {"overall_label": -0.5, "correctness_label": None},
    }
    found = read(array(tmp_path / "reduced.json", [row]))
    assert [value for *_, value in labels(found, "preference")] == [0.75, 0.0]
    assert [(one["metric"], one["value"]) for one in found.verdicts] == [
        ("preference", 0.25),
        ("preference_grade", 0.25),
    ]
    assert found.goldsets["goldset.jsonl"][0].references == ()


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (person(0, 1), "a third annotator"),
        (person(2, 3), "field 'overall_label': "),
        (person(2, None), "field 'overall_label': "),
        (person(1, 1, model1={"response": "Other."}), "the pair 1 has other answers"),
        (person(2, 1, model1="x"), "field 'model1': "),
        (scores(9, 0.5, 0.5), "field 'instance_id': people labelled no such pair"),
        (scores(0, 0.5, 7.0), "a difference of 6.5 is not one of scores from 0 to 1"),
        ({"query": "why"}, "this is not of RAGChecker's meta-evaluation"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(people, tmp_path, row, problem):
    bad = array(tmp_path / "bad.json", [row])
    with pytest.raises(InputError, match=problem) as caught:
        read(people, bad)
    assert caught.value.path == str(bad)
    assert caught.value.line is not None


def test_its_own_scores_alone_ask_for_peoples(tmp_path):
    own = array(tmp_path / "baseline_ragchecker.json", [scores(0, 0.1, 0.2)])
    with pytest.raises(InputError, match=r"name human_labeled_data\.json too"):
        read(own)


def test_it_has_no_splits(people):
    with pytest.raises(InputError, match="has no splits; leave --split out"):
        read(people, split="dev")
