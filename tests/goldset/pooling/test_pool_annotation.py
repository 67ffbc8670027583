"""Grading a pool at the desk: blind in every byte, kept at once, undone, resumed, adjudicated."""

import csv
import io
import json

import pytest

from labelled_runs import ask, served
from made_pools import HOSTILE, grade_all, put_pool, truth
from misslink.annotation.session import NothingToUndoError
from misslink.errors import InputError
from misslink.goldset.pooling.annotation import PoolAnnotationSession, export_grades
from misslink.goldset.pooling.grades import JudgeGrade, ask_grade, write_prelabels
from misslink.io.label_folder import read_journal


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "pool"


@pytest.fixture
def pool(folder):
    return put_pool(folder, random=1000)


def grade(desk, at=0, label=2, who="ada", comment="", **more):
    return desk.label(who, at, more.get("metric", "relevance"), more.get("claim"), label, comment)


def post(port, name, **content):
    status, _, body = ask(port, f"/api/{name}", {"annotator": "ada", **content})
    return status, json.loads(body)


def test_nothing_that_the_page_receives_tells_who_brought_a_passage(pool, folder):
    """The bytes of every reply: no id, rank, score, retriever, stratum, weight or judge."""
    write_prelabels(folder, [JudgeGrade(one.item, 1, "openai:telltale") for one in pool.items])
    told = []
    with PoolAnnotationSession(folder) as desk, served(desk) as port:
        told.append(ask(port, "/api/session?annotator=ada")[2])
        places = range(len(pool.items))
        told += [ask(port, f"/api/item?annotator=ada&at={at}")[2] for at in places]
        told.append(ask(port, "/api/label", {"annotator": "ada", "at": 0, "metric": "relevance",
                                             "label": 1})[2])  # fmt: skip
        told.append(ask(port, "/api/reveal", {"annotator": "ada", "at": 0})[2])
        told.append(ask(port, "/api/undo", {"annotator": "ada"})[2])
    ids = {item.passage_id for item in pool.items}
    for text in told:
        for word in ("good", "poor", "stratum", "weight", "rank", "score", "telltale", "pooled"):
            assert f'"{word}' not in text
            assert word not in text
        assert not [name for name in ids if f'"{name}"' in text]
    fields = {frozenset(json.loads(text)) for text in told[1 : len(pool.items) + 1]}
    assert len(fields) == 1, "an item that says more than another tells them apart"


def test_pooled_and_drawn_passages_come_in_the_same_shape(pool, folder):
    with PoolAnnotationSession(folder) as desk:
        shapes = {
            (item.stratum == 1): {k: type(v) for k, v in desk.item("ada", at).items()}
            for at, item in enumerate(pool.items)
        }
    assert shapes[True] == shapes[False]


def test_a_grade_is_on_disk_when_it_is_answered(pool, folder):
    with PoolAnnotationSession(folder) as desk, served(desk) as port:
        status, item = post(port, "label", at=0, metric="relevance", label=2, comment=HOSTILE)
        assert (status, item["done"], item["labels"][0]["label"]) == (200, 1, 2)
        (entry,) = read_journal(folder / "labels" / "ada.jsonl").entries
    assert (entry.grade, entry.label, entry.comment) == (2, 1.0, HOSTILE)
    assert entry.case_id == pool.items[0].item


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"label": 3}, "'label' must be 0 (not relevant), 1 (relevant), 2 (highly relevant)"),
        ({"label": True}, "'label' must be"),
        ({"label": -1}, "'label' must be"),
        ({}, "'label' must be"),
        ({"label": 1, "claim": 0}, "no claims"),
        ({"label": 1, "metric": "faithfulness"}, "only relevance"),
        ({"label": 1, "at": 10**9}, "there is no case"),
        ({"label": 1, "comment": "x" * 2001}, "at most 2,000"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(pool, folder, content, told):
    with PoolAnnotationSession(folder) as desk, served(desk) as port:
        status, answer = post(port, "label", **{"at": 0, "metric": "relevance", **content})
    assert status == 400
    assert told in answer["error"]


def test_undo_takes_the_last_grade_back_also_of_an_earlier_session(pool, folder):
    with PoolAnnotationSession(folder) as desk:
        grade(desk, 0, 1), grade(desk, 1, 0), grade(desk, 1, 2)
    with PoolAnnotationSession(folder) as desk:
        assert desk.undo("ada")["at"] == 1
        assert desk.item("ada", 1)["labels"][0]["label"] == 0
        desk.undo("ada"), desk.undo("ada")
        with pytest.raises(NothingToUndoError):
            desk.undo("ada")
        assert desk.session("ada")["done"] == 0


def test_it_goes_on_where_one_stopped_and_a_half_line_of_a_killed_process_is_asked_again(
    pool, folder
):
    grade_all(folder, "ada", upto=3)
    path = folder / "labels" / "ada.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    with PoolAnnotationSession(folder) as desk:
        session = desk.session("ada")
    assert (session["done"], session["open"]) == (2, 2)
    assert "incomplete" in session["notes"][0]


def test_annotators_do_not_see_each_other(pool, folder):
    grade_all(folder, "bob", lambda _: 2)
    with PoolAnnotationSession(folder) as desk:
        assert desk.item("ada", 0)["labels"] == []
        assert desk.session("ada")["annotators"] == ["bob"]


def test_adjudication_asks_what_people_differ_on_and_shows_it_under_letters(pool, folder):
    grade_all(folder, "ada")
    grade_all(folder, "bob", lambda item: 2 if item.item == pool.items[4].item
              else truth(item.case_id, item.passage_id))  # fmt: skip
    differ = truth(pool.items[4].case_id, pool.items[4].passage_id) != 2
    with PoolAnnotationSession(folder, adjudicate=True) as desk:
        assert [task.case.id for task in desk.tasks] == [pool.items[4].item] * differ
        if differ:
            said = desk.item("", 0)["said"]
            assert sorted(one["who"] for one in said) == ["A", "B"]
            assert not {"ada", "bob"} & {one["who"] for one in said}


def test_ties_come_first_in_adjudication(pool, folder):
    """Of two passages that two people grade differently a third decides the first."""
    majority, tie = pool.items[:2]
    grade_all(folder, "ada", lambda _: 0)
    grade_all(folder, "bob", lambda item: 2 * (item in (majority, tie)))
    grade_all(folder, "cleo", lambda _: 0, upto=1)
    with PoolAnnotationSession(folder, adjudicate=True) as desk:
        assert [task.case.id for task in desk.tasks] == [tie.item, majority.item]


def test_there_is_nothing_to_adjudicate_before_anybody_graded(pool, folder):
    with pytest.raises(InputError, match="No annotator has labelled this pool"):
        PoolAnnotationSession(folder, adjudicate=True)


def test_a_pool_drawn_anew_under_the_desk_takes_no_grade(pool, folder):
    with PoolAnnotationSession(folder) as desk:
        (folder / "pool.json").write_text("{}", encoding="utf-8")
        with pytest.raises(InputError, match="the pool was redrawn since"):
            grade(desk)


def test_an_export_names_the_passages_and_holds_no_formula(pool, folder, tmp_path):
    with PoolAnnotationSession(folder) as desk:
        grade(desk, 0, 2, comment="=1+1"), grade(desk, 1, None)
        rows = list(csv.DictReader(io.StringIO(desk.export("csv"))))
        assert json.loads(desk.export("jsonl"))["grade"] == 2
    assert (rows[0]["passage_id"], rows[0]["grade"]) == (pool.items[0].passage_id, "2")
    assert not rows[0]["comment"].startswith("=")
    assert len(rows) == 1, "skipped ones are left out"
    assert export_grades(folder, tmp_path / "grades.jsonl") == 1
    with pytest.raises(InputError, match="folder of the pool"):
        export_grades(folder, folder / "grades.jsonl")


def test_a_journal_of_before_there_were_grades_reads_as_it_did(tmp_path):
    path = tmp_path / "ada.jsonl"
    line = {"case_id": "c", "metric": "faithfulness", "label": 1, "annotator": "ada", "at": ""}
    path.write_text(json.dumps(line) + "\n", encoding="utf-8")
    (entry,) = read_journal(path).entries
    assert (entry.label, entry.grade) == (1.0, None)
    assert json.loads(entry.line()) == line
    path.write_text(json.dumps({**line, "grade": -1}) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match="its grade"):
        read_journal(path)


def test_each_grade_means_to_people_what_it_means_to_a_judge(pool, folder):
    with PoolAnnotationSession(folder) as desk:
        (metric,) = desk.session("")["metrics"]
    prompt = " ".join(str(message) for message in ask_grade(pool.items[0]).messages)
    assert [f"({grade['means']})" in prompt for grade in metric["grades"]] == [True] * 3
