"""Adjudication: what people disagree on, without their names, and the word that settles it."""

from collections import Counter

import pytest

from labelled_runs import label_all, put, run_of
from misslink.annotation import AnnotationSession
from misslink.calibration.inter_annotator import settle_labels
from misslink.errors import InputError
from misslink.io.labels import Label, read_labels

METRIC = "faithfulness"


@pytest.fixture
def folder(tmp_path):
    """Two people who disagree on c1 and on a claim of c2, and agree on the rest."""
    folder = put(tmp_path / "run", run_of([0.2, 0.4, 0.6, 0.8]))
    with AnnotationSession(folder) as desk:
        for who in ("ada", "bob"):
            label_all(desk, who, lambda case, who=who: int(case != "c1" or who == "ada"))
            at = next(n for n, task in enumerate(desk.tasks) if task.case.id == "c2")
            desk.label(who, at, METRIC, 1, int(who == "bob"), f"{who[0]}-comment")
    return folder


def test_reading_a_large_run_tells_how_far_it_is(tmp_path):
    folder = put(tmp_path / "run", run_of([0.2, 0.8] * 150))
    ticks = []
    with AnnotationSession(folder, progress=lambda *tick: ticks.append(tick)) as desk:
        assert len(desk.tasks) == 300
    entries = sum(path.read_bytes().count(b"\n") for path in folder.glob("*.jsonl"))
    assert {(stage, total) for stage, _, total in ticks} == {("reading", entries)}
    assert [done for _, done, _ in ticks] == [*range(256, entries, 256), entries]


def test_only_what_people_disagree_on_is_asked(folder):
    with AnnotationSession(folder, adjudicate=True) as desk:
        assert {task.case.id: task.asked for task in desk.tasks} == {
            "c1": (("c1", METRIC, None),), "c2": (("c2", METRIC, 1),),
        }  # fmt: skip
        assert desk.session("")["mode"] == "adjudicate"


def test_what_they_said_is_shown_without_their_names(folder):
    with AnnotationSession(folder, adjudicate=True) as desk:
        at = next(n for n, task in enumerate(desk.tasks) if task.case.id == "c2")
        item = desk.item("whoever", at)
    assert {one["who"] for one in item["said"]} == {"A", "B"}
    assert {one["comment"] for one in item["said"]} == {"a-comment", "b-comment"}
    assert {(one["claim"], one["label"]) for one in item["said"]} == {(1, 0), (1, 1)}
    assert item["judged"] is None
    assert "ada" not in str(item["said"])


def test_the_word_that_settles_is_kept_apart_and_decides(folder):
    with AnnotationSession(folder, adjudicate=True) as desk:
        for at, task in enumerate(desk.tasks):
            ((_, metric, claim),) = task.asked
            desk.label("eve", at, metric, claim, 0, "")
        assert desk.session("eve")["done"] == 2
    assert (folder / "labels" / "adjudicated.jsonl").exists()
    people = settle_labels(read_labels(folder / "labels").select_metric(METRIC).items)
    assert people.queue == ()
    assert people.gold["c1", None].good is False
    with AnnotationSession(folder, adjudicate=True) as desk:
        assert desk.session("")["done"] == 2, "what was settled stays on the desk, done"


def test_who_is_a_changes_from_case_to_case(tmp_path):
    folder = put(tmp_path / "run", run_of([0.5] * 24))
    with AnnotationSession(folder) as desk:
        label_all(desk, "ada", lambda _: 1)
        label_all(desk, "bob", lambda _: 0)
    with AnnotationSession(folder, adjudicate=True) as desk:
        first = {
            one["label"] for task in desk.tasks for one in task.other_labels if one["who"] == "A"
        }
    assert first == {0, 1}


def test_where_nobody_labelled_there_is_nothing_to_settle(tmp_path):
    folder = put(tmp_path / "run", run_of([0.5]))
    with pytest.raises(InputError, match="this run has no labels"):
        AnnotationSession(folder, adjudicate=True)


def test_adjudication_looks_at_each_label_once_and_not_once_a_case(tmp_path, monkeypatch):
    folder = put(tmp_path / "run", run_of([0.5] * 60))
    with AnnotationSession(folder) as desk:
        label_all(desk, "ada", lambda _: 1)
        label_all(desk, "bob", lambda _: 0)
    looked = Counter()
    plain = Label.__getattribute__

    def counting(one, field):
        looked[field] += 1
        return plain(one, field)

    monkeypatch.setattr(Label, "__getattribute__", counting)
    assert len(AnnotationSession(folder, adjudicate=True).tasks) == 60
    assert looked["annotator"] < 20 * 120


def test_ties_come_first(folder):
    """A third person makes c1 a majority; c2 has a claim that two label differently."""
    with AnnotationSession(folder) as desk:
        at = {task.case.id: place for place, task in enumerate(desk.tasks)}
        desk.label("cleo", at["c1"], METRIC, None, 1, "")
    with AnnotationSession(folder, adjudicate=True) as desk:
        assert [task.case.id for task in desk.tasks] == ["c2", "c1"]
