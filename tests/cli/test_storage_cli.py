"""Gold sets, traces and runs by their URLs, on this disk and from a server, as typed in a shell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from file_server import serving
from misslink.io import read_run

fsspec = pytest.importorskip("fsspec")

SECRET = "s3cr3t-0123"


@pytest.fixture
def inputs(tmp_path):
    """Three cases in two shards each, and criteria; here is the working folder."""
    for name, lines in {
        "gold": [
            {"id": f"c{n}", "question": f"What is {n}?", "relevant": [f"d{n}"]} for n in (1, 2, 3)
        ],
        "traces": [
            {"case_id": f"c{n}", "answer": f"It is {n}.",
             "retrieved": [{"id": f"d{n + n % 2}", "text": f"It is {n}."}]}
            for n in (1, 2, 3)
        ],
    }.items():  # fmt: skip
        (tmp_path / name).mkdir()
        for at, some in enumerate((lines[:2], lines[2:])):
            text = "".join(f"{json.dumps(line)}\n" for line in some)
            (tmp_path / name / f"part-{at}.jsonl").write_text(text, encoding="utf-8")
    gate = "gates:\n  - {metric: recall@5, threshold: 0.1, on: value}\n"
    (tmp_path / "criteria.yaml").write_text(gate, encoding="utf-8")
    return tmp_path


@pytest.fixture
def server(tmp_path):
    """A server of the working folder that takes a name and a password in its address."""
    pytest.importorskip("aiohttp")
    with serving(tmp_path) as address:
        yield f"http://ada:{SECRET}@{address}"


def level_1(misslink, gold, traces, out):
    return misslink(
        "evaluate", "--goldset", gold, "--traces", traces, "--judge", "none", "--embedding", "none",
        "--out", out, "--json",
    )  # fmt: skip


def test_a_run_by_urls_is_the_run_by_paths_and_every_reader_takes_it(misslink, inputs):
    assert level_1(misslink, "gold", "traces/*.jsonl", "run")[0] == 0
    url = (inputs / "stored" / "night").as_uri()
    code, out, err = level_1(
        misslink, (inputs / "gold").as_uri(), (inputs / "traces").as_uri(), url
    )
    assert (code, json.loads(out)["run"]) == (0, url), err
    here, there = read_run("run"), read_run(inputs / "stored" / "night")
    assert (here.cases, here.traces, here.links) == (there.cases, there.traces, there.links)
    code, out, err = misslink("report", url, "--out", "page.html", "--json")
    assert (code, json.loads(out)["run"]) == (0, url), err
    assert (inputs / "page.html").is_file()
    code, _, err = misslink("report", url)
    assert (code, err) == (
        2, "misslink: The run is in remote storage. Name a local file for the report with --out.\n",
    )  # fmt: skip
    code, out, err = misslink("diagnose", url, "--json")
    assert (code, json.loads(out)["misses"]) == (0, 2), err
    code, out, err = misslink("compare", "run", url, "--json")
    assert code == 0, err
    assert url in out
    code, _, err = misslink("compare", url, url)
    assert (code, err) == (
        2, f"misslink: {url}: this is the same run as {url}; name another one\n",
    )  # fmt: skip
    code, out, err = misslink("gate", url, "--criteria", "criteria.yaml", "--json")
    assert code == 0, err
    for command in ("replay", "whatif", "annotate"):
        code, _, err = misslink(command, url)
        assert (code, err.count("\n")) == (2, 1), command
        assert f"{url}: this run is in remote storage; copy it to this disk" in err


@pytest.mark.slow
def test_from_a_server_everything_is_read_and_its_password_written_nowhere(
    misslink, inputs, server
):
    lines = "".join(path.read_text("utf-8") for path in sorted((inputs / "gold").iterdir()))
    (inputs / "gold.jsonl").write_text(lines, encoding="utf-8")
    gold, traces = f"{server}/gold.jsonl?sig={SECRET}", f"{server}/traces/"
    code, out, err = level_1(misslink, gold, traces, "run")
    assert code == 0, err
    said = [out, err]
    for arguments in (
        ("report", f"{server}/run", "--out", "page.html", "--json"),
        ("diagnose", f"{server}/run", "--json"),
        ("gate", f"{server}/run", "--criteria", "criteria.yaml", "--json"),
        ("goldset", "diff", gold, "gold", "--json"),
        ("goldset", "merge", gold, "gold", "--out", "merged.jsonl", "--json"),
    ):
        code, out, err = misslink(*arguments)
        assert code == 0, (arguments, err)
        said += [out, err]
    assert not [text for text in said if SECRET in text]
    assert not [path for path in inputs.rglob("*") if path.is_file() and of_secret(path)]


def of_secret(path: Path) -> bool:
    return SECRET.encode() in path.read_bytes()


@pytest.mark.parametrize(
    "arguments",
    [
        ("calibrate", "URL/run"),
        ("evaluate", "--goldset", "gold", "--traces", "traces", "--cache", "URL/l.sqlite"),
        ("goldset", "split", "gold", "--out", "URL/parts"),
        ("goldset", "merge", "gold", "gold", "--out", "URL/all.jsonl"),
        ("cache", "stats", "--cache", "URL/l.sqlite"),
        ("gate", "run", "--criteria", "URL/criteria.yaml"),
        ("goldset", "import", "URL/a.jsonl", "URL/b.jsonl", "--format", "ragtruth", "--out", "set"),
    ],
)
def test_where_no_url_is_taken_it_is_refused_in_a_sentence_and_makes_no_folder(
    misslink, inputs, arguments
):
    before = {path.name for path in inputs.iterdir()}
    given = [one.replace("URL", f"http://ada:{SECRET}@127.0.0.1:9") for one in arguments]
    code, out, err = misslink(*given)
    (told,) = [line for line in err.splitlines() if line.startswith("misslink:")]
    assert (code, out) == (2, "")
    assert told.startswith("misslink: http:/")
    wanted = ("here a file or folder of this disk is needed", "copy it to this disk")
    assert any(words in told for words in wanted)
    assert SECRET not in err
    assert {path.name for path in inputs.iterdir()} - before <= {".misslink", "reports"}


@pytest.mark.parametrize(("read", "out"), [("gold", "gold"), ("gold/*.jsonl", "gold")])
def test_parts_are_not_written_among_the_shards_that_are_cut(misslink, inputs, read, out):
    before = sorted((inputs / "gold").iterdir())
    code, _, err = misslink(
        "goldset", "split", read, "--parts", "part-0=0.6,test=0.4", "--out", out
    )
    assert code == 2
    assert "This is an input. Name another folder with --out" in err
    assert sorted((inputs / "gold").iterdir()) == before


def test_a_merged_set_is_not_written_over_a_shard_that_a_pattern_names(misslink, inputs):
    shard = inputs / "gold" / "part-0.jsonl"
    before = shard.read_bytes()
    code, _, err = misslink(
        "goldset", "merge", "gold/*.jsonl", "gold", "--out", shard, "--overwrite"
    )
    assert code == 2, err
    assert shard.read_bytes() == before
