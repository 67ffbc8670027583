"""RAGTruth: the two public files in any order, the reduced one, and what is wrong with others."""

import json

import pytest

from misslink.errors import InputError
from misslink.io.label_sets import ImportOptions
from misslink.registry import importers

PASSAGES = "passage 1:Bees dance to tell of food.\n\npassage 2:A hive has one queen.\n\n"
QA = {
    "source_id": "7",
    "task_type": "QA",
    "source": "MARCO",
    "source_info": {"question": "why do bees dance", "passages": PASSAGES},
    "prompt": f"Answer the question:\nwhy do bees dance\n{PASSAGES}output:",
}
SUMMARY = {
    "source_id": "8",
    "task_type": "Summary",
    "source": "CNN/DM",
    "source_info": "A bridge was closed on Monday.",
    "prompt": "Summarize this within 9 words:\nA bridge was closed on Monday.\noutput:",
}
DATA = {
    "source_id": "9",
    "task_type": "Data2txt",
    "source": "Yelp",
    "source_info": {"name": "Café Zoë", "hours": None},
    "prompt": "Describe the business.\nStructured data:\n{'name': 'Café Zoë', 'hours': None}",
}
INVENTED = {"start": 14, "end": 20, "text": "at dusk", "label_type": "Evident Baseless Info"}
TRUE_ALL_THE_SAME = {
    "start": 0,
    "end": 4,
    "text": "Bees",
    "label_type": "Subtle Baseless Info",
    "implicit_true": True,
}


def answer(number, source, *labels, **more):
    return {
        "id": str(number),
        "source_id": source,
        "model": "gpt-4-0613",
        "temperature": 0.7,
        "labels": list(labels),
        "split": "test",
        "quality": "good",
        "response": "Bees dance for food at dusk.",
    } | more


ANSWERS = [
    answer(1, "7"),
    answer(2, "7", INVENTED, TRUE_ALL_THE_SAME, model="llama-2-7b-chat"),
    answer(3, "7", TRUE_ALL_THE_SAME, split="train"),
    answer(4, "8", INVENTED),
    answer(5, "9"),
]


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path):
    answers = lines(tmp_path / "response.jsonl", ANSWERS)
    return [answers, lines(tmp_path / "source_info.jsonl", [QA, SUMMARY, DATA])]


def read(paths, **wanted):
    return importers.get("ragtruth")(paths, ImportOptions(**wanted))


def labels(found):
    return {label["case_id"]: label["label"] for label in found.labels}


def cases(found):
    return {case.id: case for case in found.goldsets["goldset.jsonl"]}


def traces(found):
    return {trace.case_id: trace for trace in found.traces["traces.jsonl"]}


def test_a_marked_answer_is_unfaithful_and_an_unmarked_one_faithful(files):
    assert labels(read(files)) == {"1": 1, "2": 0, "3": 0, "4": 0, "5": 1}


def test_the_files_may_be_named_in_any_order(files):
    assert read(files) == read(files[::-1])


def test_spans_that_are_true_though_no_passage_says_so_can_be_forgiven(files):
    found = read(files, implicit_true="faithful")
    assert labels(found) == {"1": 1, "2": 0, "3": 1, "4": 0, "5": 1}
    assert any(note.startswith("In 1 answers") for note in found.notes)


def test_the_comment_keeps_what_people_marked(files):
    comment = next(one["comment"] for one in read(files).labels if one["case_id"] == "2")
    assert comment.split("\n") == [
        "14-20 Evident Baseless Info: at dusk",
        "0-4 Subtle Baseless Info (true, though no passage says so): Bees",
    ]
    assert "comment" not in read(files).labels[0]


def test_numbered_passages_are_cut_and_shared_by_the_answers_of_a_question(files):
    found = traces(read(files))
    texts = [passage.text for passage in found["1"].retrieved]
    assert texts == ["Bees dance to tell of food.", "A hive has one queen."]
    assert found["1"].prompted == ("7-p1", "7-p2")
    assert found["1"].retrieved == found["2"].retrieved


def test_a_case_says_which_model_answered_which_source(files):
    found = cases(read(files))
    assert found["2"].question == "why do bees dance"
    assert found["2"].tags == {
        "model": "llama-2-7b-chat",
        "split": "test",
        "task": "QA",
        "source": "MARCO",
        "quality": "good",
    }


def test_a_summary_and_a_description_are_asked_by_the_prompt_up_to_their_source(files):
    found = read(files)
    assert cases(found)["4"].question == "Summarize this within 9 words:"
    assert cases(found)["5"].question == "Describe the business.\nStructured data:"
    assert traces(found)["4"].retrieved[0].text == "A bridge was closed on Monday."
    assert json.loads(traces(found)["5"].retrieved[0].text) == {"name": "Café Zoë", "hours": None}


def test_a_split_and_a_task_are_picked_and_the_rest_is_counted(files):
    found = read(files, split="test", task="QA")
    assert set(labels(found)) == {"1", "2"}
    assert found.left_out == {"another split or task": 3}


def test_an_unknown_split_or_task_gives_the_known_ones(files):
    with pytest.raises(InputError, match="--split dev; known here: test, train"):
        read(files, split="dev")
    with pytest.raises(InputError, match=r"--task qa; .*Known here: Data2txt, QA, Summary"):
        read(files, task="qa")
    with pytest.raises(InputError, match="--split train and --task Summary at once"):
        read(files, split="train", task="Summary")


def test_the_reduced_form_is_known_by_its_fields(tmp_path):
    row = {
        "id": "16",
        "source_id": "12",
        "question": "why do bees dance",
        "contexts": ["Bees dance to tell of food."],
        "answer": "For food.",
        "spans": [INVENTED],
        "model": "gpt-4-0613",
        "split": "test",
    }
    found = read([lines(tmp_path / "dev.jsonl", [row])])
    assert labels(found) == {"16": 0}
    assert traces(found)["16"].retrieved[0].id == "12-p1"


@pytest.mark.parametrize(
    ("kept", "problem"),
    [(0, r"response\.jsonl: .*name source_info\.jsonl"), (1, r"info\.jsonl: .*response\.jsonl")],
)
def test_one_file_of_the_two_asks_for_the_other(files, kept, problem):
    with pytest.raises(InputError, match=problem):
        read([files[kept]])


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"text": "x"}, r"line 2: this is not of RAGTruth \(it has the fields text\)"),
        (answer(9, "404"), "line 2, field 'source_id': there is no source '404'"),
        (answer(1, "7"), "line 2, field 'id': '1' occurs twice"),
        (answer(9, "7") | {"response": None}, "line 2, field 'response': "),
        (answer(9, "7") | {"labels": "none"}, "line 2, field 'labels': "),
        (answer(9, "7", {"start": "x", "end": 2, "text": ""}), "line 2, field 'labels.0.start': "),
        (answer(9, "7", {"start": 1, "text": ""}), "line 2, field 'labels.0.end': "),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, files, row, problem):
    bad = lines(tmp_path / "bad.jsonl", [answer(1, "7"), row])
    with pytest.raises(InputError, match=problem) as caught:
        read([bad, files[1]])
    assert caught.value.path == str(bad)


def test_a_source_that_stands_twice_or_has_no_known_task_is_refused(tmp_path, files):
    with pytest.raises(InputError, match="field 'source_id': '7' occurs twice"):
        read([*files, lines(tmp_path / "again.jsonl", [QA])])
    with pytest.raises(InputError, match="field 'task_type': "):
        read([files[0], lines(tmp_path / "poem.jsonl", [QA | {"task_type": "Poem"}])])
