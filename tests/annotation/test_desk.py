"""The desk: what is asked next, what was said, the judge kept hidden, and undo."""

import json

import pytest

from labelled_runs import HOSTILE, label_all, put, run_of
from misslink.annotation import AnnotationSession
from misslink.annotation.session import NothingToUndoError
from misslink.errors import InputError
from misslink.io.labels import read_labels

BOTH = ("faithfulness", "answer_relevance")


@pytest.fixture
def folder(tmp_path):
    return put(tmp_path / "run", run_of([0.1, 0.4, 0.6, 0.9, None, 0.8], metrics=BOTH))


def label(desk, at=0, metric="faithfulness", said=1, claim=None, who="ada", comment=""):
    return desk.label(who, at, metric, claim, said, comment)


def kept(folder, name="ada"):
    lines = (folder / "labels" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_a_session_says_what_is_asked_and_how_far_one_is(folder):
    with AnnotationSession(folder) as desk:
        session = desk.session("ada")
        assert (session["mode"], session["total"], session["done"], session["open"]) == (
            "label", 6, 0, 0,
        )  # fmt: skip
        asked = {one["name"]: one for one in session["metrics"]}
        assert list(asked) == list(BOTH)
        assert [asked[m]["per_claim"] for m in BOTH] == [True, False]
        label(desk), label(desk, metric="answer_relevance")
        assert desk.session("ada")["open"] == 1
        assert desk.session("bob")["open"] == 0, "annotators do not see each other"
        assert desk.session("")["annotators"] == ["ada"]


def test_the_time_of_a_case_is_the_median_without_pauses(folder, monkeypatch):
    minutes = {0: 0, 1: 1, 2: 3, 3: 30, 4: 34}  # of the last label of each case; 27 are a pause
    with AnnotationSession(folder, metrics=["faithfulness"]) as desk:
        for at, minute in minutes.items():
            for seconds in ("00", "30") if at else ("30",):
                time = f"2026-01-01T10:{minute:02}:{seconds}+00:00"
                monkeypatch.setattr("misslink.annotation.session.utc_now", lambda time=time: time)
                reply = label(desk, at=at, claim=0 if seconds == "00" else None)
            if at == 2:
                assert reply["seconds_per_case"] is None
        assert reply["seconds_per_case"] == 120  # 60, 120, 240
    with AnnotationSession(folder, metrics=["faithfulness"]) as desk:
        assert desk.session("ada")["seconds_per_case"] == 120


def test_an_item_shows_what_the_answer_rests_on_and_no_label_of_others(folder):
    with AnnotationSession(folder) as desk:
        label(desk, who="bob", comment="secret")
        at = next(n for n, task in enumerate(desk.tasks) if task.case.id == "c0")
        item = desk.item("ada", at)
    assert HOSTILE in item["question"]
    assert item["passages"] == [{"rank": 1, "id": "p0", "text": "All of 0."}]
    assert [claim["index"] for claim in item["claims"]] == [0, 1]
    assert (item["labels"], item["judged"], item["judge_shown"], item["said"]) == (
        [], None, False, None,
    )  # fmt: skip
    assert "support" not in json.dumps(item["claims"])


def test_the_judge_is_shown_once_everything_asked_is_labelled_and_later_labels_say_so(folder):
    with AnnotationSession(folder) as desk:
        assert label(desk)["judged"] is None
        item = label(desk, metric="answer_relevance")
        assert set(item["judged"]) == set(BOTH)
        assert item["judge_shown"] is False
        desk.undo("ada")
        assert desk.item("ada", 0)["judged"] is None
        label(desk, metric="answer_relevance", said=0)
    labels = [line for line in kept(folder) if "event" not in line]
    assert [line.get("judge_shown", False) for line in labels] == [False, False, True]


def test_a_comment_that_comes_later_does_not_say_that_the_label_was_given_with_the_judge_in_view(
    folder,
):
    with AnnotationSession(folder) as desk:
        label(desk)
        label(desk, metric="answer_relevance")
        label(desk, metric="answer_relevance", comment="why")
        label(desk, said=0)
    labels = [line for line in kept(folder) if "event" not in line]
    assert [line.get("judge_shown", False) for line in labels] == [False, False, False, True]


def test_a_reveal_is_kept_and_marks_every_later_label_of_the_case_also_after_a_restart(folder):
    with AnnotationSession(folder) as desk:
        label(desk)
        item = desk.reveal("ada", 0)
        assert set(item["judged"]) == set(BOTH)
        assert item["judge_shown"] is True
    with AnnotationSession(folder) as desk:
        assert desk.item("ada", 0)["judge_shown"] is True
        label(desk, metric="answer_relevance")
        label(desk, at=1)
    shown = {
        (one.case_id, one.metric): one.judge_shown for one in read_labels(folder / "labels").items
    }
    first, second = desk.tasks[0].case.id, desk.tasks[1].case.id
    assert shown == {
        (first, "faithfulness"): False, (first, "answer_relevance"): True,
        (second, "faithfulness"): False,
    }  # fmt: skip


def test_undo_goes_back_label_by_label_and_over_a_restart(folder):
    with AnnotationSession(folder) as desk:
        label(desk, said=1)
        label(desk, said=0, comment="no")
    with AnnotationSession(folder) as desk:
        undone = desk.undo("ada")
        assert undone["undone"]["label"] == 0
        assert undone["undone"]["comment"] == "no"
        assert desk.item("ada", undone["at"])["labels"][0]["label"] == 1
        desk.undo("ada")
        assert desk.item("ada", 0)["labels"] == []
        with pytest.raises(NothingToUndoError, match="no label to undo"):
            desk.undo("ada")


def test_what_was_taken_back_is_counted_as_the_file_says_it(folder):
    """What is kept up label by label is what reading the file anew gives."""
    with AnnotationSession(folder, metrics=["faithfulness"]) as desk:
        for at, said, claim in (
            (0, 1, None),
            (1, 0, None),
            (0, 0, None),
            (1, 1, 0),
            (2, None, None),
        ):
            label(desk, at=at, said=said, claim=claim)
        for _ in range(3):
            desk.undo("ada")
        label(desk, at=3)
        here = [desk.item("ada", at)["labels"] for at in range(6)], desk.session("ada")
    with AnnotationSession(folder, metrics=["faithfulness"]) as desk:
        again = [desk.item("ada", at)["labels"] for at in range(6)], desk.session("ada")
    assert here == again
    assert (here[1]["done"], here[1]["open"]) == (3, 2)
    assert here[0][0][0]["label"] == 1


def test_a_label_goes_through_nothing_that_was_labelled_before(folder, monkeypatch):
    with AnnotationSession(folder) as desk:
        label_all(desk, "ada", lambda _: 1)
        asked = []
        of = desk._seen.content_hash
        monkeypatch.setattr(
            desk._seen, "content_hash", lambda *item: asked.append(item) or of(*item)
        )
        monkeypatch.setattr("misslink.io.label_folder.label_history", None)
        monkeypatch.setattr("misslink.io.label_folder.label_history", None)
        monkeypatch.setattr("misslink.annotation.tasks.is_finished", lambda task, said: (
            asked.append(task.case.id), all(item in said for item in task.asked))[1])  # fmt: skip
        label(desk, said=0)
        label(desk, metric="answer_relevance")
    assert len(asked) <= 4


def test_the_same_label_twice_is_one(folder):
    with AnnotationSession(folder) as desk:
        label(desk), label(desk)
        desk.undo("ada")
        assert desk.item("ada", 0)["labels"] == []


def test_a_skip_finishes_a_case_and_is_no_label(folder):
    with AnnotationSession(folder, metrics=["faithfulness"]) as desk:
        assert label(desk, said=None)["done"] == 1
        label(desk, at=1)
    assert len(read_labels(folder / "labels").items) == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"at": 6}, "there is no case at 6; there are 6"),
        ({"at": -1}, "there is no case at -1"),
        ({"metric": "correctness"}, "labelled for faithfulness, answer_relevance only"),
        ({"claim": 2}, "there is no claim 2 to label here; there are 2"),
        ({"claim": 0, "metric": "answer_relevance"}, "there are 0"),
        ({"comment": "x" * 2001}, "at most 2,000 characters"),
        ({"who": "../../x"}, "a name is 1 to 40"),
        ({"who": "adjudicated"}, "reserved for --adjudicate"),
    ],
)
def test_what_cannot_be_labelled_is_refused_and_not_kept(folder, change, told):
    with AnnotationSession(folder) as desk, pytest.raises(InputError, match=told):
        label(desk, **change)
    assert [path.name for path in (folder / "labels").iterdir()] == ["plan.json"]


def test_labels_of_answers_that_changed_are_asked_again_and_left_out(folder, caplog):
    with AnnotationSession(folder, metrics=["faithfulness"]) as desk:
        label_all(desk, "ada", lambda _: 1)
    answers = ["Another." if n == 2 else f"Answer {n}." for n in range(6)]
    put(folder, run_of([0.1, 0.4, 0.6, 0.9, None, 0.8], metrics=BOTH, answers=answers))
    with AnnotationSession(folder, metrics=["faithfulness"]) as desk:
        session = desk.session("ada")
        assert (session["done"], desk.tasks[session["open"]].case.id) == (5, "c2")
    assert {one.case_id for one in read_labels(folder / "labels").items} == {
        "c0", "c1", "c3", "c4", "c5",
    }  # fmt: skip
    assert "labels left out since the run no longer has their answers: 1" in caplog.text


def test_a_run_evaluated_anew_behind_an_open_page_takes_no_labels_of_the_old_one(folder):
    with AnnotationSession(folder) as desk:
        label(desk)
        again = run_of([0.1] * 6, metrics=BOTH)
        put(folder, again.model_copy(update={"manifest": {**again.manifest, "created": "now"}}))
        with pytest.raises(InputError, match="evaluated again since"):
            label(desk, at=1)
    assert len(kept(folder)) == 1, "labels outlive the swap of the folder"


def test_all_annotators_have_the_same_order_and_a_begun_one_stays(folder):
    with AnnotationSession(folder, seed=3) as desk:
        order = [task.case.id for task in desk.tasks]
        label(desk)
    with AnnotationSession(folder, seed=4) as desk:
        assert [task.case.id for task in desk.tasks] == order
        assert "keeps --seed 3" in desk.notes[0]
    with AnnotationSession(folder, metrics=["correctness", "faithfulness"]) as desk:
        assert [task.case.id for task in desk.tasks] == order


def test_an_order_by_which_nobody_labelled_is_drawn_anew_on_request(folder):
    orders = set()
    for seed in range(6):
        with AnnotationSession(folder, seed=seed) as desk:
            orders.add(tuple(task.case.id for task in desk.tasks))
            assert desk.notes == []
    assert len(orders) > 1


def test_a_run_with_other_cases_gets_a_new_order_and_says_so(folder):
    with AnnotationSession(folder) as desk:
        label(desk)
    put(folder, run_of([0.1, 0.4, 0.6, 0.9, None, 0.8, 0.7], metrics=BOTH))
    with AnnotationSession(folder) as desk:
        assert len(desk.tasks) == 7
        assert "a new order was drawn" in desk.notes[0]
        assert desk.session("ada")["annotators"] == ["ada"]


def test_a_run_without_judge_is_labelled_by_answer(tmp_path):
    folder = put(tmp_path / "run", run_of(["none"] * 3, references=("So.",)))
    with AnnotationSession(folder) as desk:
        assert desk.metrics == ("faithfulness", "answer_relevance", "correctness")
        assert desk.item("ada", 0)["claims"] == []
        assert desk.reveal("ada", 0)["judged"] == {}
        label(desk)
    assert [line.get("event") for line in kept(folder)] == [None]


def test_a_run_without_an_answer_is_told(tmp_path):
    folder = put(tmp_path / "run", run_of([0.5, 0.5], answers=[None, "  "]))
    with pytest.raises(InputError, match="no case has an answer that could be labelled"):
        AnnotationSession(folder)
    with pytest.raises(InputError, match=r"called 'faithfulnes'; did you mean 'faithfulness'"):
        AnnotationSession(folder, metrics=["faithfulnes"])
