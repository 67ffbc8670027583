"""misslink cache: what it prints, its exit codes, and one sentence for a mistake."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from honest_judge import small_ask
from judge_faults import after
from judge_server import JudgeServer
from kept_replies import keep, own
from misslink.judge.backends.openai import open_openai
from misslink.judge.config import DEFAULT_CACHE, JudgeConfig
from misslink.judge.middleware.cache import CachedJudge
from misslink.judge.middleware.throttle import ThrottledJudge


@pytest.fixture
def cache(misslink):
    return lambda *arguments: misslink("cache", *arguments)


@pytest.fixture
def kept():
    """Three replies, one of them unreadable, where a run keeps them by default."""

    async def put(url):
        judge = open_openai("test-judge", base_url=url)
        stack = CachedJudge(ThrottledJudge(judge, 1, JudgeConfig(retries=0)), DEFAULT_CACHE)
        for n in range(3):
            await stack.ask(small_ask(n))
        await stack.close()

    with JudgeServer(after(2, lambda _: None, lambda _: '{"claims": [caf\u00e9')) as server:
        asyncio.run(put(server.url))
    return DEFAULT_CACHE


@pytest.mark.usefixtures("kept")
def test_stats_prints_lines_for_people_or_one_document(cache):
    found = json.loads(cache("stats", "--json")[1])
    code, out, err = cache("stats")
    assert (code, err) == (0, "")
    whole, name, counts = out.splitlines()
    assert whole.startswith(".misslink/cache.sqlite: 3 replies, ")
    assert name == "openai:test-judge, prompt examination"
    day = found["first"][:10]
    assert counts.startswith(
        f"    3 replies; 1 unreadable; {found['prompt_tokens']:,} prompt tokens"
    )
    assert counts.endswith(f"; {day}")
    assert (found["replies"], found["unreadable"]) == (3, 1)
    assert found["by_judge_and_prompt"][0]["judge"] == "openai:test-judge"


def test_tokens_that_nobody_reported_are_unknown_and_not_none(cache, kept):
    with sqlite3.connect(kept) as file:
        file.execute("UPDATE replies SET prompt_tokens = NULL, completion_tokens = NULL")
    file.close()
    assert "an unknown number of prompt tokens" in cache("stats")[1]
    assert json.loads(cache("stats", "--json")[1])["prompt_tokens"] is None


@pytest.mark.usefixtures("kept")
def test_with_prices_stats_says_what_was_paid(cache):
    (without,) = json.loads(cache("stats", "--json")[1])["by_judge_and_prompt"]
    assert without["cost"] is None
    assert "cost" not in cache("stats")[1]
    prices = ("--price-in", "1000", "--price-out", "5000")
    (found,) = json.loads(cache("stats", *prices, "--json")[1])["by_judge_and_prompt"]
    assert found["cost"] == pytest.approx(
        found["prompt_tokens"] / 1000 + found["completion_tokens"] / 200
    )
    assert f"; cost {found['cost']:.2f} USD;" in cache("stats", *prices)[1]
    code, out, err = cache("stats", "--price-in", "1")
    assert (code, out) == (2, "")
    assert "give both prices" in err


def test_tokens_that_nobody_reported_cost_nobody_knows_what(cache, kept):
    with sqlite3.connect(kept) as file:
        file.execute("UPDATE replies SET completion_tokens = NULL")
    file.close()
    found = json.loads(cache("stats", "--price-in", "1", "--price-out", "1", "--json")[1])
    assert found["by_judge_and_prompt"][0]["cost"] is None


@pytest.mark.usefixtures("kept")
def test_export_writes_json_lines_to_stdout(cache):
    code, out, err = cache("export")
    rows = [json.loads(line) for line in out.splitlines()]
    assert (code, err, len(rows)) == (0, "", 3)
    assert rows[2]["raw"] == '{"claims": [caf\u00e9'
    assert cache("export", "--only-judge", "openai:test-judge")[1] == out


@pytest.mark.usefixtures("kept")
def test_export_to_a_file_leaves_stdout_alone(cache):
    _, lines, _ = cache("export")
    code, out, err = cache("export", "--out", "new/kept.jsonl")
    assert (code, out) == (0, "")
    assert "3 replies written to new/kept.jsonl" in err
    assert Path("new/kept.jsonl").read_text(encoding="utf-8") == lines
    assert [file.name for file in Path("new").iterdir()] == ["kept.jsonl"]


def test_export_over_the_cache_or_into_nowhere_is_refused(cache, kept):
    before = kept.read_bytes()
    code, _, err = cache("export", "--out", kept)
    assert (code, kept.read_bytes()) == (2, before)
    assert "This is the cache. Name another file with --out." in err
    Path("file").touch()
    code, _, err = cache("export", "--out", "file/kept.jsonl")
    assert code == 2
    assert "file/kept.jsonl: it cannot be written (" in err
    assert "give another path" in err


@pytest.mark.slow
def test_a_reader_that_has_enough_is_no_mistake(kept):
    script = "from misslink.cli.main import main; main()"
    command = [sys.executable, "-c", script, "cache", "export"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()  # before a line is written
    assert process.stderr.read() == b""
    assert process.wait(timeout=300) == 141
    assert kept.exists()


@pytest.mark.usefixtures("kept")
def test_prune_says_what_would_go_and_goes_only_when_told(cache):
    code, out, _ = cache("prune", "--unreadable")
    assert (code, out) == (0, "This would remove 1 reply and leave 2. Add --yes to remove them.\n")
    assert json.loads(cache("stats", "--json")[1])["replies"] == 3
    code, out, _ = cache("prune", "--unreadable", "--yes")
    assert code == 0
    assert out.startswith("Removed 1 reply, left 2: ")
    assert json.loads(cache("stats", "--json")[1])["unreadable"] == 0
    assert cache("prune", "--unreadable")[1] == "This would remove 0 replies and leave 2.\n"


@pytest.mark.usefixtures("kept")
def test_prune_prints_one_document_too(cache):
    code, out, _ = cache("prune", "--older-than", "30d", "--json")
    assert code == 0
    assert (json.loads(out)["replies"], json.loads(out)["removed"]) == (0, False)


@pytest.mark.usefixtures("kept")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["prune"], "no condition selects replies"),
        (["prune", "--yes"], "no condition selects replies"),
        (["prune", "--older-than", "soon"], "--older-than is 'soon'"),
        (["prune", "--only-judge", "x"], "there are: openai:test-judge"),
        (["export", "--only-judge", "x"], "there are: openai:test-judge"),
        (["stats", "--cache", "nowhere"], "nowhere: There is no response cache"),
        (["export", "--cache", "nowhere", "--out", "o"], "nowhere: There is no response cache"),
        (["prune", "--cache", "nowhere", "--unreadable", "--yes"], "There is no response cache"),
        (["prune", "--cache", "nowhere"], "nowhere: There is no response cache"),
    ],
)
def test_a_mistake_is_one_sentence_and_makes_no_file(cache, arguments, said):
    code, out, err = cache(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1
    assert [file.name for file in Path().iterdir()] == [".misslink"]


def test_merging_prints_lines_for_people_or_one_document(misslink, tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    keep(a, own(), 1, 2)
    keep(b, own(raw="another"), 2, 3)
    code, out, err = misslink("cache", "merge", a, b)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{a}: 2 replies, 2 added",
        f"{b}: 2 replies, 1 added, 1 left out: the question has another reply",
        f"{DEFAULT_CACHE}: 3 replies",
    ]
    code, out, err = misslink("cache", "merge", a, "--cache", tmp_path / "into", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "cache": str(tmp_path / "into"),
        "sources": [{"from": str(a), "replies": 2, "added": 2, "already": 0, "different": 0}],
        "replies": 2,
    }
    assert "2 replies, 0 added, 2 already there" in misslink("cache", "merge", a)[1]


def test_a_mistake_is_one_sentence(misslink, tmp_path):
    for arguments, said in (
        (["none"], "none: there is no such file"),
        ([tmp_path], "this folder holds no file that ends in .sqlite, .sqlite3, .db"),
        (["gss://b/l"], "no storage is called 'gss'; did you mean 'gs'?"),
        ([], "Missing argument"),
    ):
        code, out, err = misslink("cache", "merge", *arguments)
        assert (code, out) == (2, "")
        assert said in err
        assert "Traceback" not in err
    assert not DEFAULT_CACHE.exists()
