"""Looking into a response cache, copying it out, thinning it."""

import asyncio
import datetime as dt
import json
import sqlite3
from dataclasses import replace

import pytest

from fake_judge import FakeJudge, answer_to
from honest_judge import small_ask
from misslink.errors import InputError
from misslink.judge.middleware import cache_admin as records
from misslink.judge.middleware.cache import CachedJudge
from misslink.judge.middleware.cache_admin import CacheSelection
from misslink.judge.protocol import Reply, SkippedAskError
from misslink.types import PromptRef, Usage


def own(name="own:a", usage=None, **info):
    """A judge that says readable things of even towns and prose of odd ones."""

    def reply(ask):
        if "town 1 " in ask.messages[1]["content"]:
            return Reply(None, "prose", usage, problem="the reply has no JSON object")
        answer = answer_to(ask, response="answers")
        return Reply(answer, "raw", usage, {"response": {"answers": 1.0}})

    return FakeJudge(reply, name, **info)


def keep(path, judge, *asks):
    async def put():
        kept = CachedJudge(judge, path)
        for ask in asks:
            await kept.ask(ask)
        await kept.close()

    asyncio.run(put())


def label_ask(n):
    ref = PromptRef(name="label", version=1, sha256="1" * 64)
    return replace(small_ask(n), prompt=ref, repeat=3)


@pytest.fixture
def path(tmp_path):
    """A response cache of two judges and two prompts, the first judge's replies a month old."""
    path = tmp_path / "l"
    keep(path, own("own:a", Usage(prompt_tokens=10, completion_tokens=2)), *map(small_ask, (1, 2)))
    with sqlite3.connect(path) as file:
        file.execute("UPDATE replies SET created = ?", (ago(days=31),))
    file.close()
    keep(path, own("own:b"), *map(small_ask, (1, 2)), label_ask(2))
    return path


def ago(**age):
    return (dt.datetime.now(dt.UTC) - dt.timedelta(**age)).isoformat(timespec="seconds")


def content(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_replies_are_counted_by_judge_and_prompt(path):
    found = records.cache_stats(path)
    assert found["bytes"] == path.stat().st_size
    assert (found["replies"], found["unreadable"]) == (5, 2)
    assert (found["prompt_tokens"], found["completion_tokens"]) == (20, 4)
    assert found["without_tokens"] == 3
    assert found["first"] < found["last"]
    groups = {(g["judge"], g["prompt"]): g for g in found["by_judge_and_prompt"]}
    assert {name: group["replies"] for name, group in groups.items()} == {
        ("own:a", "examination"): 2,
        ("own:b", "examination"): 2,
        ("own:b", "label"): 1,
    }
    reported, silent = groups["own:a", "examination"], groups["own:b", "label"]
    assert (reported["prompt_tokens"], reported["completion_tokens"]) == (20, 4)
    assert (silent["prompt_tokens"], silent["completion_tokens"]) == (None, None)
    assert (reported["unreadable"], silent["unreadable"]) == (1, 0)
    assert reported["first"] == reported["last"] == found["first"]


def test_an_empty_cache_has_no_dates_and_no_tokens(tmp_path):
    keep(tmp_path / "l", own())
    found = records.cache_stats(tmp_path / "l")
    assert (found["replies"], found["unreadable"], found["without_tokens"]) == (0, 0, 0)
    assert found["prompt_tokens"] is found["first"] is found["last"] is None
    assert found["by_judge_and_prompt"] == []
    assert list(records.export_replies(tmp_path / "l")) == []


def test_every_reply_is_exported_with_what_was_asked(path):
    rows = list(records.export_replies(path))
    assert [(row["judge"], row["prompt"]["name"], row["repeat"]) for row in rows] == [
        ("own:a", "examination", 0),
        ("own:a", "examination", 0),
        ("own:b", "examination", 0),
        ("own:b", "examination", 0),
        ("own:b", "label", 3),
    ]
    assert rows[0]["messages"] == [dict(message) for message in small_ask(1).messages]
    assert rows[0]["prompt"]["sha256"] == small_ask(1).prompt.sha256
    assert rows[0]["identity"] == {"judge": "own:a"}
    assert (rows[0]["raw"], rows[0]["parsed"]) == ("prose", None)
    assert rows[0]["problem"] == "the reply has no JSON object"
    assert rows[1]["parsed"]["response"] == "answers"
    assert rows[1]["probabilities"] == {"response": {"answers": 1.0}}
    assert rows[1]["usage"] == {"prompt_tokens": 10, "completion_tokens": 2}
    assert rows[2]["usage"] == {"prompt_tokens": None, "completion_tokens": None}
    assert [json.loads(json.dumps(row)) for row in rows] == rows


def test_one_judge_can_be_exported_alone(path):
    assert {row["judge"] for row in records.export_replies(path, "own:b")} == {"own:b"}


def test_a_misspelt_judge_is_told_with_those_there_are(path):
    with pytest.raises(
        InputError, match=r"judge 'own:c' is in this cache; there are: own:a, own:b"
    ):
        list(records.export_replies(path, "own:c"))
    with pytest.raises(
        InputError, match=r"prompt 'x' is in this cache; there are: examination, label"
    ):
        records.prune_replies(path, CacheSelection(prompt="x"), dry_run=True)


def test_looking_changes_nothing_and_leaves_nothing_behind(path):
    before = content(path.parent)
    records.cache_stats(path)
    list(records.export_replies(path))
    records.prune_replies(path, CacheSelection(unreadable=True), dry_run=True)
    assert content(path.parent) == before


def test_looking_goes_on_while_a_run_writes(path):
    async def run():
        kept = CachedJudge(own("own:c"), path)
        await kept.ask(small_ask(5))
        found = records.cache_stats(path)
        rows = records.export_replies(path)
        first = next(rows)
        await kept.ask(small_ask(6))  # while the export is under way
        rest = list(rows)
        await kept.close()
        return found, [first, *rest]

    found, rows = asyncio.run(run())
    assert found["replies"] == 6
    assert len(rows) in (6, 7)


@pytest.mark.parametrize(
    ("chosen", "left"),
    [
        (CacheSelection(unreadable=True), ["own:a", "own:b", "own:b"]),
        (CacheSelection(older_than=dt.timedelta(days=30)), ["own:b", "own:b", "own:b"]),
        (CacheSelection(older_than=dt.timedelta(days=32)), ["own:a"] * 2 + ["own:b"] * 3),
        (CacheSelection(judge="own:b"), ["own:a", "own:a"]),
        (CacheSelection(judge="own:b", prompt="examination"), ["own:a", "own:a", "own:b"]),
        (CacheSelection(unreadable=True, judge="own:a"), ["own:a", "own:b", "own:b", "own:b"]),
    ],
)
def test_only_what_meets_every_condition_goes(path, chosen, left):
    told = records.prune_replies(path, chosen, dry_run=True)
    assert [row["judge"] for row in records.export_replies(path)] == ["own:a"] * 2 + ["own:b"] * 3
    done = records.prune_replies(path, chosen, dry_run=False)
    assert [row["judge"] for row in records.export_replies(path)] == left
    assert told["replies"] == done["replies"] == 5 - len(left)
    assert told["left"] == done["left"] == len(left)
    assert (told["removed"], done["removed"]) == (False, True)
    for row in records.export_replies(path):
        assert row["messages"][1]["content"].startswith("<question ")


def test_what_nobody_refers_to_any_more_goes_too_and_the_file_shrinks(tmp_path):
    path = tmp_path / "l"
    keep(path, own("own:a", abilities={"seed": True}), *map(small_ask, range(200)))
    keep(path, own("own:b", abilities={"seed": False}), small_ask(0))
    done = records.prune_replies(path, CacheSelection(judge="own:a"), dry_run=False)
    assert done["note"] is None
    assert done["bytes_after"] == path.stat().st_size < done["bytes_before"] / 3
    with sqlite3.connect(path) as file:
        assert file.execute("SELECT name FROM judges").fetchall() == [("own:b",)]
    file.close()
    assert list(content(tmp_path)) == ["l"]


def test_pruned_replies_are_asked_again_and_the_others_are_not(path):
    records.prune_replies(path, CacheSelection(unreadable=True, judge="own:b"), dry_run=False)

    silent = FakeJudge(SkippedAskError("it was pruned"), "own:b")
    keep(path, silent, small_ask(2))
    with pytest.raises(SkippedAskError, match="pruned"):
        keep(path, silent, small_ask(1))


def test_pruning_beside_a_run_removes_and_says_that_the_file_is_no_smaller(path):
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM replies").fetchone()
    try:
        done = records.prune_replies(path, CacheSelection(judge="own:a"), dry_run=False)
    finally:
        reader.close()
    assert done["replies"] == 2
    assert "could not be shrunk (another program reads it)" in done["note"]
    assert {row["judge"] for row in records.export_replies(path)} == {"own:b"}


def test_pruning_everything_by_accident_is_refused(path):
    with pytest.raises(InputError, match="no condition selects replies"):
        records.prune_replies(path, CacheSelection(), dry_run=False)


@pytest.mark.parametrize(
    "look",
    [
        records.cache_stats,
        lambda path: next(records.export_replies(path)),
        lambda path: records.prune_replies(path, CacheSelection(unreadable=True), dry_run=True),
        lambda path: records.prune_replies(path, CacheSelection(unreadable=True), dry_run=False),
    ],
)
def test_what_is_no_cache_is_said_and_nothing_is_made(tmp_path, look):
    with pytest.raises(InputError, match="There is no response cache here"):
        look(tmp_path / "l")
    assert content(tmp_path) == {}


def test_an_empty_file_is_no_cache_to_look_into(tmp_path):
    (tmp_path / "l").touch()
    with pytest.raises(InputError, match="an empty file, not a response cache"):
        records.cache_stats(tmp_path / "l")


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("30d", dt.timedelta(days=30)),
        ("12h", dt.timedelta(hours=12)),
        (" 2 W ", dt.timedelta(weeks=2)),
        ("0d", dt.timedelta(0)),
        ("99999w", dt.timedelta(weeks=99999)),
    ],
)
def test_an_age_is_a_number_and_a_unit(path, text, age):
    assert records.parse_age(text) == age
    old = records.prune_replies(path, CacheSelection(older_than=age), dry_run=True)
    assert old["replies"] == (5 if age < dt.timedelta(hours=1) else 2 if age.days < 31 else 0)


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "1.5d", "30m", "9999999d", "30 days"])
def test_an_age_that_is_none_is_refused(text):
    with pytest.raises(InputError, match="--older-than is"):
        records.parse_age(text)
