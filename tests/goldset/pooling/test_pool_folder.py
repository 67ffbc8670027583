"""A pool on disk: read back as drawn, never drawn over labels, and damage told."""

import json
from dataclasses import replace

import pytest

from made_pools import HOSTILE, goldset, grade_all, pool_of, put_pool
from misslink.errors import InputError
from misslink.goldset.pooling.pool import read_pool, write_pool


def test_a_pool_is_read_back_as_it_was_drawn(tmp_path):
    pool = put_pool(tmp_path / "pool", random=1000)
    assert any(HOSTILE in item.text for item in pool.items)
    found = read_pool(tmp_path / "pool")
    assert found.items == pool.items
    assert found.strata == pool.strata
    assert found.rankings == pool.rankings
    assert found.goldset.cases == pool.goldset.cases
    assert found.gold_grades == pool.gold_grades


def test_the_same_pool_stays_with_its_labels_and_another_is_refused(tmp_path):
    pool = put_pool(tmp_path / "pool")
    grade_all(tmp_path / "pool", "ada", upto=2)
    labels = (tmp_path / "pool" / "labels" / "ada.jsonl").read_bytes()
    assert write_pool(pool, tmp_path / "pool") is False
    with pytest.raises(InputError, match="contains another pool"):
        write_pool(pool_of(seed=5), tmp_path / "pool")
    assert (tmp_path / "pool" / "labels" / "ada.jsonl").read_bytes() == labels


def test_from_another_working_folder_it_is_the_same_pool(tmp_path):
    pool = put_pool(tmp_path / "pool", inputs={"goldset": "gold.jsonl"})
    assert (
        write_pool(replace(pool, inputs={"goldset": "../gold.jsonl"}), tmp_path / "pool") is False
    )
    assert read_pool(tmp_path / "pool").inputs == {"goldset": "gold.jsonl"}


def test_what_the_gold_set_says_more_since_reaches_the_pool_that_stays(tmp_path):
    put_pool(tmp_path / "pool")
    grade_all(tmp_path / "pool", "ada", upto=1)
    more = pool_of(gold=goldset(category="procedural"))
    assert write_pool(more, tmp_path / "pool") is False
    assert {case.category for case in read_pool(tmp_path / "pool").goldset.cases} == {"procedural"}
    assert (tmp_path / "pool" / "labels" / "ada.jsonl").stat().st_size


def test_a_folder_of_other_things_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("precious", encoding="utf-8")
    with pytest.raises(InputError, match=r"contains other files \(mine\.txt\)"):
        write_pool(pool_of(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_draw_that_was_cut_off_is_no_pool_and_is_drawn_again(tmp_path):
    put_pool(tmp_path / "pool")
    (tmp_path / "pool" / "pool.json").unlink()
    with pytest.raises(InputError, match=r"not a pool\. Draw one"):
        read_pool(tmp_path / "pool")
    put_pool(tmp_path / "pool")
    read_pool(tmp_path / "pool")


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        ("pool.jsonl", lambda text: text.replace("harbour", "Harbour"), "file was changed"),
        ("pool.jsonl", lambda text: text[:-20], "file was changed"),
        ("pool.json", lambda text: text[:-20], "not JSON"),
        ("pool.json", lambda _: "[]", "pool.json"),
        ("pool.json", lambda text: text.replace('"depth": 3', '"depth": "x"'), "field 'depth'"),
        ("pool.json", lambda text: text.replace('"format": 1', '"format": 2'), "newer version"),
        ("gold.jsonl", lambda _: "", "gold.jsonl"),
        ("gold.jsonl", lambda text: text.split("\n", 1)[1], "not those of the pool"),
        ("gold.jsonl", lambda text: text + '{"id": "q9", "question": "?"}\n', "not those of the"),
    ],
)
def test_a_damaged_file_is_told_with_its_name(tmp_path, file, change, told):
    put_pool(tmp_path / "pool")
    path = tmp_path / "pool" / file
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(InputError, match=told):
        read_pool(tmp_path / "pool")


def test_an_items_id_tells_nothing_but_what_it_shows(tmp_path):
    put_pool(tmp_path / "pool")
    lines = (tmp_path / "pool" / "pool.jsonl").read_bytes().splitlines()
    ids = [json.loads(line)["item"] for line in lines]
    assert len(set(ids)) == len(ids)
    again = {item.passage_id: item.item for item in pool_of(seed=9).items if item.case_id == "q0"}
    for item in pool_of().items:
        if item.case_id == "q0" and item.passage_id in again:
            assert item.item == again[item.passage_id]
