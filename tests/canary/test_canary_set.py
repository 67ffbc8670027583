"""A canary set says what a healthy app brings, and refuses what its history would not survive."""

import json

import pytest

from misslink.canary.canary_set import build_canary_set, read_canaries
from misslink.errors import InputError
from misslink.io.jsonl import SourceItem

PLAIN = {"id": "a", "question": "Who?", "relevant": ["p1"]}


def written(tmp_path, *items):
    path = tmp_path / "canaries.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    return path


def test_a_canary_is_a_case_with_an_owner_and_a_least_relevance(tmp_path):
    path = written(tmp_path, {**PLAIN, "owner": " search\nteam ", "min_relevance": 0.4})
    (canary,) = read_canaries(path).canaries
    assert (canary.owner, canary.min_relevance) == ("search team", 0.4)
    assert canary.case.relevant == {"p1": 1}
    assert canary.expects_passages
    assert not canary.expects_answer


def test_two_canaries_with_one_id_are_refused_with_both_lines(tmp_path):
    path = written(tmp_path, PLAIN, {**PLAIN, "id": "b"}, PLAIN)
    with pytest.raises(InputError, match=r"line 3.*'a' is used twice \(first on line 1\)"):
        read_canaries(path)


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"id": "a", "question": "Who?"}, "expects nothing"),
        ({**PLAIN, "min_relevance": "high"}, "field 'min_relevance': this must be a"),
        ({**PLAIN, "min_relevance": True}, "field 'min_relevance': this must be a"),
        ({**PLAIN, "owner": ""}, "field 'owner'"),
        ({**PLAIN, "onwer": "me"}, "field 'onwer': there is no such field"),
        ({"id": "a", "relevant": ["p1"]}, "field 'question'"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, item, said):
    with pytest.raises(InputError) as told:
        read_canaries(written(tmp_path, {**PLAIN, "id": "first"}, item))
    assert "canaries.jsonl, line 2, " in str(told.value)
    assert said in str(told.value)


def test_an_empty_set_is_refused():
    with pytest.raises(InputError, match="The file contains no canary"):
        build_canary_set([], "canaries.yaml")


def test_what_only_a_judge_could_tell_needs_one():
    fields = {"id": "a", "question": "Who?", "reference": "Ada"}
    found = build_canary_set([SourceItem(fields, "c.jsonl", 7)], "c.jsonl")
    with pytest.raises(InputError, match=r"c\.jsonl, line 7.*--judge"):
        found.refuse_unjudged()


def test_another_owner_is_the_same_set_and_another_expectation_is_not():
    def digest(**more):
        return build_canary_set([SourceItem({**PLAIN, **more}, "c", 1)], "c").digest

    assert digest() == digest(owner="ops", tags={"lang": "en"})
    assert len({digest(), digest(min_relevance=0.1), digest(relevant=["p2"])}) == 3


def test_the_names_of_other_canary_files_are_read(tmp_path):
    path = tmp_path / "canaries.json"
    item = {"query": "Who?", "expected_top_chunks": ["p1", "p2"], "min_relevance_score": 0.4}
    path.write_text(json.dumps([{**item, "owner": "search team"}]), encoding="utf-8")
    (canary,) = read_canaries(path).canaries
    assert (canary.case.question, canary.case.relevant) == ("Who?", {"p1": 1, "p2": 1})
    assert (canary.min_relevance, canary.owner) == (0.4, "search team")
    path.write_text(json.dumps([{**item, "relevant": ["p1"]}]), encoding="utf-8")
    with pytest.raises(InputError, match="'expected_top_chunks' and 'relevant' mean the same"):
        read_canaries(path)
