"""A gold set that is written is read back without loss, and nothing that is there is lost."""

import pytest
from hypothesis import given

from goldset_cases import cases
from misslink.errors import InputError
from misslink.goldset.writer import write_goldset
from misslink.io.goldset import read_goldset
from misslink.types import Case


@given(cases())
def test_it_is_read_back_without_loss(tmp_path_factory, given_cases):
    path = tmp_path_factory.mktemp("gold") / "gold.jsonl"
    assert read_goldset(write_goldset(given_cases, path)).cases == given_cases


def test_a_file_that_holds_something_else_stays(tmp_path):
    path = tmp_path / "gold.jsonl"
    path.write_text("labels of many days\n")
    with pytest.raises(InputError, match="--overwrite"):
        write_goldset([Case(id="a", question="?")], path)
    assert path.read_text() == "labels of many days\n"
    write_goldset([Case(id="a", question="?")], path, overwrite=True)
    assert read_goldset(path).cases[0].id == "a"


def test_the_same_content_may_be_written_again(tmp_path):
    one = [Case(id="a", question="?")]
    path = write_goldset(one, tmp_path / "gold.jsonl")
    assert write_goldset(one, path) == path


def test_an_empty_gold_set_is_not_written(tmp_path):
    with pytest.raises(InputError, match="has no cases"):
        write_goldset([], tmp_path / "gold.jsonl")
    assert not (tmp_path / "gold.jsonl").exists()
