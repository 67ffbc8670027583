"""Labels of several annotators: read, settled and compared."""

import json

import pytest

from json_values import as_fields
from judged_runs import labels_of
from misslink.calibration.inter_annotator import annotator_agreement, load_labels, settle_labels
from misslink.calibration_document import CopiedLabels
from misslink.errors import InputError
from misslink.io.labels import Label, read_labels

annotator_agreement = as_fields(annotator_agreement)


def of(case, **said):
    return [Label(case, "m", float(value), name) for name, value in said.items()]


def test_the_majority_settles_and_a_tie_waits_in_front_of_the_queue():
    labels = of("a", x=1, y=1, z=0) + of("b", x=1, y=0) + of("c", x=1, y=1)
    people = settle_labels(labels)
    assert {item: truth.good for item, truth in people.gold.items()} == {
        ("a", None): True, ("c", None): True,
    }  # fmt: skip
    assert [(entry.case_id, entry.settled) for entry in people.queue] == [
        ("b", False), ("a", True),
    ]  # fmt: skip
    assert people.queue[0].labels == {"x": 1.0, "y": 0.0}
    assert len(people.tied) == 1


def test_an_adjudicated_label_settles_against_the_majority_and_leaves_the_queue():
    people = settle_labels(of("a", x=1, y=1, Adjudicated=0))
    assert people.gold["a", None].good is False
    assert people.queue == ()


def test_the_adjudicator_is_none_of_the_annotators():
    found = annotator_agreement(of("a", x=1, y=1, adjudicated=0) + of("b", x=0, y=0), {}, seed=0)
    assert found["annotators"] == 2
    assert found["percent"].value == 1.0


def test_graded_labels_keep_their_mean_and_give_ordinal_alpha():
    labels = of("a", x=1, y=0.5) + of("b", x=0, y=0) + of("c", x=0.5, y=0.5)
    assert settle_labels(labels).gold["a", None].share == 0.75
    found = annotator_agreement(labels, {}, seed=0)
    assert found["alpha"].value == 1.0  # all on the same side of one half
    assert 0 < found["alpha_ordinal"].value < 1


def test_alpha_of_two_people_is_the_one_worked_out_by_hand():
    # pairs (1,1) (0,0) (1,0) (0,0): observed 1/4; of 8 values 3 are good: expected 2*3*5/(8*7)
    labels = of("a", x=1, y=1) + of("b", x=0, y=0) + of("c", x=1, y=0) + of("d", x=0, y=0)
    found = annotator_agreement(labels, {}, seed=0)
    assert abs(found["alpha"].value - (1 - (1 / 4) / (30 / 56))) < 1e-12
    assert found["kappa"].value == 0.5


def test_the_judge_is_held_against_each_person_and_beside_all():
    labels = of("a", x=1, y=1) + of("b", x=0, y=0) + of("c", x=1, y=0) + of("d", x=0, y=1)
    judge = {("a", None): True, ("b", None): False, ("c", None): True, ("d", None): False}
    found = annotator_agreement(labels, judge, seed=0)
    assert found["each"]["x"].judge.value == 1.0
    assert found["each"]["y"].judge.value == 0.5
    assert found["each"]["y"].others.value == 0.5
    assert found["alpha_with_judge"].value > found["alpha"].value


def test_one_person_alone_has_nobody_to_agree_with():
    found = annotator_agreement(of("a", x=1) + of("b", x=0), {("a", None): True}, seed=0)
    assert found["alpha"].value is None
    assert "only one annotator labelled" in found["alpha"].reason


def test_two_people_of_other_cases_have_nothing_in_common():
    found = annotator_agreement(of("a", x=1) + of("b", y=0), {}, seed=0)
    assert found["annotators"] == 2
    assert "no item was labelled by two annotators" in found["alpha"].reason


def test_people_who_never_differ_are_told_of():
    same = [one for n in range(20) for one in of(f"c{n}", x=n % 3 == 0, y=n % 3 == 0)]
    assert annotator_agreement(same, {}, seed=0)["copies"] == (
        CopiedLabels(annotators=("x", "y"), labels=20),
    )
    other = [*same, *of("d", x=1, y=0)]
    assert annotator_agreement(other, {}, seed=0)["copies"] == ()
    assert annotator_agreement(same[:-2], {}, seed=0)["copies"] == ()  # nineteen may be chance


@pytest.fixture
def file(tmp_path):
    def write(name, rows):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return path

    return write


def test_files_of_two_people_are_read_as_one(file):
    ada, bob = labels_of("110"), labels_of("101", annotator="bob")
    found = load_labels([file("a.jsonl", ada), file("b.jsonl", bob)])
    assert sorted((one.annotator, one.case_id, one.value) for one in found.items) == sorted(
        (one["annotator"], one["case_id"], float(one["label"])) for one in [*ada, *bob]
    )
    assert "a.jsonl" in found.name
    assert "b.jsonl" in found.name


def test_a_label_that_stands_in_two_files_counts_once(file):
    one, two = file("a.jsonl", labels_of("110")), file("b.jsonl", labels_of("11"))
    assert len(load_labels([one, two]).items) == 3
    assert len(load_labels([one, one]).items) == 3


def test_one_file_is_read_as_ever(file):
    path = file("a.jsonl", labels_of("110"))
    assert load_labels([path]) == load_labels(path) == read_labels(path)


def test_one_person_who_disagrees_with_oneself_is_told_with_both_places(file):
    one, two = file("a.jsonl", labels_of("110")), file("b.jsonl", labels_of("-0"))
    with pytest.raises(InputError, match=r"b\.jsonl.*ada labels this 0 here and 1 in .*a\.jsonl"):
        load_labels([one, two])


@pytest.mark.parametrize("rows", [labels_of("11", weight=3), labels_of("--1")])
def test_weights_are_of_all_files_or_of_none(file, rows):
    one = file("a.jsonl", labels_of("11", weight=2))
    with pytest.raises(InputError, match="weight"):
        load_labels([one, file("b.jsonl", rows)])


def test_no_source_is_an_error():
    with pytest.raises(InputError, match="no labels are given"):
        load_labels([])
