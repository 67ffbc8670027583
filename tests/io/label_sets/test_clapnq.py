"""CLAPNQ: questions with and without an answer, and nothing that gives away which is which."""

import json

import pytest

from misslink.errors import InputError
from misslink.io.label_sets import ImportOptions
from misslink.registry import importers

PASSAGE = {"title": "Bees", "text": "Bees dance. They tell of food.", "sentences": ["Bees dance."]}
ANSWERABLE = {
    "id": "138713725038644067",
    "input": "why do bees dance",
    "passages": [PASSAGE],
    "output": [{"answer": "To tell of food."}, {"answer": "They tell of food."}],
}
UNANSWERABLE = {
    "id": 2769033134349167616,
    "input": "where do bees sleep",
    "passages": [PASSAGE],
    "output": [{"answer": None, "meta": None}],
}


@pytest.fixture
def files(tmp_path):
    paths = []
    for row, name in ((ANSWERABLE, "answerable"), (UNANSWERABLE, "unanswerable")):
        paths.append(tmp_path / f"clapnq_dev_{name}.jsonl")
        paths[-1].write_text(json.dumps(row) + "\n", encoding="utf-8")
    return paths


def read(*paths, **wanted):
    return importers.get("clapnq")(paths, ImportOptions(**wanted))


def test_the_labels_say_whether_the_passage_holds_an_answer(files):
    found = {(one["case_id"], one["metric"]): one["label"] for one in read(*files).labels}
    assert found == {
        ("138713725038644067", "context_sufficiency"): 1,
        ("138713725038644067", "context_relevance"): 1,
        ("2769033134349167616", "context_sufficiency"): 0,
        ("2769033134349167616", "context_relevance"): 0,
    }


def test_nothing_that_a_judge_reads_tells_whether_there_is_an_answer(files):
    found = read(*files)
    assert len({trace.answer for trace in found.traces["traces.jsonl"]}) == 1
    assert all(case.references == () for case in found.goldsets["goldset.jsonl"])


def test_a_second_gold_set_has_peoples_answers(files):
    with_answer, without = read(*files).goldsets["goldset_with_answers.jsonl"]
    assert with_answer.references == ("To tell of food.", "They tell of food.")
    assert with_answer.relevant == {"138713725038644067-p1": 1}
    assert with_answer.tags == {"split": "dev"}
    assert without.references == ()
    assert without.answerable is False
    assert without.relevant == {}


def test_the_reduced_form_is_known_by_its_fields(tmp_path):
    row = {"id": "5", "question": "why", "contexts": ["x"], "answerable": False, "gold_answers": []}
    path = tmp_path / "reduced.jsonl"
    path.write_text(json.dumps(row), encoding="utf-8")
    assert read(path).goldsets["goldset.jsonl"][0].answerable is False


def test_a_split_is_told_by_the_files_name(files):
    with pytest.raises(InputError, match="--split test; known here: dev"):
        read(*files, split="test")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"input": "why"}, "line 2: this is not of CLAPNQ"),
        (ANSWERABLE | {"id": None}, "line 2, field 'id': an id is text or a whole number"),
        (ANSWERABLE | {"id": "1", "passages": "x"}, "line 2, field 'passages': "),
        (ANSWERABLE, "line 2, field 'id': .* occurs twice"),
        (
            {"id": "1", "question": "q", "contexts": [], "answerable": "yes"},
            "line 2, field 'answerable': ",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, row, problem):
    path = tmp_path / "bad.jsonl"
    path.write_text(f"{json.dumps(ANSWERABLE)}\n{json.dumps(row)}\n", encoding="utf-8")
    with pytest.raises(InputError, match=problem) as caught:
        read(path)
    assert caught.value.path == str(path)
