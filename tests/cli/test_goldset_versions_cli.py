"""misslink goldset split, merge and diff, as from a shell."""

import json
from pathlib import Path

import pytest

LINES = [
    {"id": "a", "question": "Why?", "relevant": {"p": 1}, "category": "odd"},
    {"id": "b", "question": "How?", "relevant": {"q#1": 2}},
    {"id": "c", "question": "When?", "relevant": {"q#2": 1}},
]


@pytest.fixture
def gold():
    Path("gold.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    return "gold.jsonl"


def test_parts_merged_again_are_the_whole(misslink, gold):
    code, out, _ = misslink("goldset", "split", gold, "--out", "parts", "--json")
    document = json.loads(out)
    assert code == 0
    assert {name: part["cases"] for name, part in document["parts"].items()} == {
        "dev": 2,
        "test": 1,
    }
    assert document["notes"][0].startswith("The shares differ from --parts")
    files = [part["path"] for part in document["parts"].values()]
    assert misslink("goldset", "merge", *files, "--out", "whole.jsonl")[0] == 0
    code, out, _ = misslink("goldset", "diff", gold, "whole.jsonl", "--json")
    assert code == 0
    document = json.loads(out)
    assert (document["same"], document["added"], document["removed"]) == (3, [], [])


def test_a_review_says_what_changed_and_renders_nothing(misslink, gold):
    other = [{**LINES[0], "relevant": {"p": 2}, "category": "<img src=x>|"}, *LINES[1:2]]
    Path("new.jsonl").write_text("".join(json.dumps(line) + "\n" for line in other))
    code, out, _ = misslink(
        "goldset", "diff", gold, "new.jsonl", "--markdown", "review.md", "--json"
    )
    document = json.loads(out)
    assert code == 0
    assert document["grades"] == [{"id": "a", "unit": "p", "before": 1, "after": 2}]
    assert document["removed"] == ["c"]
    review = Path("review.md").read_text()
    assert "0 added, 1 removed, 1 changed, 1 unchanged" in review
    assert "<img" not in review


def test_mistakes_are_one_sentence(misslink, gold):
    for arguments, told in [
        (("merge", gold, "--out", "x.jsonl"), "needs at least two gold sets"),
        (("split", gold, "--out", "parts", "--group-by", "sorce"), "did you mean 'source'"),
        (("split", gold, "--out", "parts", "--parts", "a=2"), "'a=2' is not name=share"),
        (("diff", gold, "none.jsonl"), "none.jsonl"),
    ]:
        code, out, err = misslink("goldset", *arguments)
        assert (code, out) == (2, ""), arguments
        assert told in err
        assert err.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == ["gold.jsonl"]


def test_no_command_writes_over_a_gold_set_that_it_reads(misslink, gold):
    Path("other.jsonl").write_text(json.dumps({"id": "z", "question": "Who?"}) + "\n")
    held = {name: Path(name).read_bytes() for name in (gold, "other.jsonl")}
    for arguments in [
        ("diff", gold, "other.jsonl", "--markdown", gold),
        ("diff", gold, "other.jsonl", "--markdown", "other.jsonl"),
        ("merge", gold, "other.jsonl", "--out", "other.jsonl", "--overwrite"),
        ("split", gold, "--out", ".", "--parts", "gold=0.5,rest=0.5", "--overwrite"),
    ]:
        code, out, err = misslink("goldset", *arguments)
        assert (code, out) == (2, ""), arguments
        assert "This is an input" in err
        assert err.count("\n") == 1
    assert {name: Path(name).read_bytes() for name in held} == held


def test_a_split_that_is_refused_writes_no_part(misslink, gold):
    Path("parts").mkdir()
    Path("parts/test.jsonl").write_text(json.dumps({"question": "Who?"}) + "\n")
    code, _, err = misslink("goldset", "split", gold, "--out", "parts")
    assert code == 2
    assert "parts/test.jsonl: The file exists" in err
    assert [path.name for path in Path("parts").iterdir()] == ["test.jsonl"]
    assert misslink("goldset", "split", gold, "--out", "parts", "--overwrite")[0] == 0
    assert misslink("goldset", "split", gold, "--out", "parts")[0] == 0  # the same once more


def test_long_values_are_shown_where_they_differ(misslink):
    long = "The boiler may reach so much before the valve opens, and the engine is stopped at "
    for name, degrees in (("old.jsonl", "90"), ("new.jsonl", "95")):
        case = {"id": "a", "question": "?", "evidence": {"The same.": 1, f"{long}{degrees}.": 1}}
        Path(name).write_text(json.dumps(case) + "\n")
    code, out, _ = misslink("goldset", "diff", "old.jsonl", "new.jsonl")
    assert code == 0
    assert "90." in out
    assert "95." in out
    assert "The same" not in out
