"""misslink goldset generate, as from a shell: documents, tables, mistakes, kill -9."""

import json
import signal

import pytest

import warm_program
from judge_server import JudgeServer
from misslink.io import read_goldset
from question_writer import TOWNS, Writer, islands

COMMAND = (
    "goldset", "generate", "--corpus", "isles.jsonl", "--judge", "openai:test-judge",
    "--out", "gold.jsonl", "--embedding", "none", "--cache", "cache.sqlite",
)  # fmt: skip


def write_corpus(folder, count=12):
    lines = "".join(json.dumps(row) + "\n" for row in islands(count))
    (folder / "isles.jsonl").write_text(lines, encoding="utf-8")


@pytest.fixture
def generate(misslink, judge_server, monkeypatch, tmp_path):
    """Generate from the islands in the working folder; returns code, stdout, stderr."""
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    write_corpus(tmp_path)
    judge_server.script = Writer(**{TOWNS[4]: "by_heart"})

    def run(*options):
        code, out, err = misslink(*COMMAND, *options)
        assert "Traceback" not in err
        return code, out, err

    return run


def test_the_document_counts_what_was_written_and_why_the_rest_was_dropped(generate, tmp_path):
    code, out, err = generate("-n", 12, "--categories", "simple_factual", "--json",
                              "--rejects", "rejects.jsonl")  # fmt: skip
    assert code == 0
    told = json.loads(out)
    dropped = [json.loads(line) for line in (tmp_path / "rejects.jsonl").read_text().splitlines()]
    assert told["goldset"] == "gold.jsonl"
    assert told["written"] == len(read_goldset("gold.jsonl").cases)
    assert told["written"] + len(dropped) == told["candidates"]
    assert told["by_category"] == {"simple_factual": told["written"]}
    assert told["rejected"]["known_by_heart"] == sum(
        one["reason"] == "known_by_heart" for one in dropped
    )
    assert told["usage"]["calls"] > 0
    assert ("missing" in err) is bool(told["missing"])


def test_passages_that_are_too_short_are_counted_with_the_option(generate, tmp_path):
    rows = [*islands(4), *({"id": f"s{n}", "text": f"Isle {n} is small."} for n in range(9))]
    (tmp_path / "isles.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, err = generate("-n", 30, "--categories", "simple_factual")
    said = "9 of 13 passages have fewer than 15 content words and were not used; to use them, lower"
    assert code == 0
    assert said in " ".join(out.split())
    assert said in " ".join(err.split())


def test_people_get_the_reject_table_with_an_example(generate):
    code, out, _ = generate("-n", 12, "--categories", "simple_factual", "--rejects", "r.jsonl")
    assert code == 0
    assert "known_by_heart" in out
    assert "without any passage the answer was" in out
    assert "r.jsonl" in out


def test_a_dry_run_asks_nothing_and_writes_nothing(generate, judge_server, tmp_path):
    code, out, _ = generate("-n", 5, "--dry-run", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["calls"] >= 15
    assert told["prompt_tokens"] > told["completion_tokens"] > 0
    assert judge_server.calls == []
    assert not (tmp_path / "gold.jsonl").exists()
    assert "No judge call was made." in generate("-n", 5, "--dry-run")[1]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--judge", "heuristic"), 2, "cannot write questions"),
        (("--judge", "none"), 2, "cannot write questions"),
        (("--corpus", "nowhere.jsonl"), 2, "nowhere.jsonl: there is no such file"),
        (("--corpus", "nowhere:loader"), 2, "no module 'nowhere'"),
        (("--categories", "simple"), 2, "did you mean 'simple_factual'"),
        (("--config", "absent.yaml"), 2, "absent.yaml: there is no such file"),
        (("--out", "no/such/gold.jsonl"), 2, "its folder does not exist"),
        (("--rejects", "gold.jsonl"), 2, "Name two files"),
        (("--rejects", "gold.jsonl.json"), 2, "Name two files"),
        (("--out", "isles.jsonl", "--overwrite"), 2, "This is an input"),
        (("--rejects", "isles.jsonl"), 2, "This is an input"),
        (("--embedding", "minilmm"), 2, "names no embedding"),
        (("--base-url", "http://127.0.0.1:9/v1"), 3, "127.0.0.1:9"),
        (("-n", "0"), 2, "-n"),
    ],
)
def test_a_mistake_is_one_sentence_and_asks_nothing(generate, judge_server, options, code, said):
    ended, out, err = generate(*options)
    assert ended == code
    assert said in " ".join(err.split())
    assert out == ""
    assert judge_server.calls == []


def test_hostile_names_move_no_cursor(generate, tmp_path):
    rows = [{**row, "id": f"\x1b[31m{row['id']}"} for row in islands(3)]
    (tmp_path / "isles.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, out, _ = generate("-n", 3, "--categories", "comparative", "--config", "c.yaml")
    assert code == 2  # there is no c.yaml
    code, out, err = generate("-n", 3, "--categories", "simple_factual")
    assert code == 0
    assert "\x1b[31m" not in out + err


def start(folder, server):
    return warm_program.start(
        [*COMMAND, "-n", "10"], folder, OPENAI_BASE_URL=server.url, OPENAI_API_KEY=""
    )


def finish(folder, server):
    code, told = warm_program.finish(start(folder, server), folder)
    assert code == 0, told


@pytest.mark.slow
def test_killed_twice_it_ends_as_if_it_had_not_been(tmp_path):
    class Killing(Writer):
        def __init__(self):
            super().__init__()
            self.process, self.left = None, -1

        def __call__(self, body):
            self.left -= 1
            if self.left == 0:
                self.process.kill()
            return super().__call__(body)

    writer = Killing()
    with JudgeServer(writer) as server:
        for name in ("undisturbed", "killed"):
            (tmp_path / name).mkdir()
            write_corpus(tmp_path / name)
        finish(tmp_path / "undisturbed", server)
        needed = len(server.calls)
        for moment in (9, 14):
            writer.left = -1
            process = writer.process = start(tmp_path / "killed", server)
            writer.left = moment
            code, told = warm_program.finish(process, tmp_path / "killed")
            assert code == -signal.SIGKILL, told
        writer.left = -1
        finish(tmp_path / "killed", server)
        lost = len(server.calls) - 2 * needed
        assert 0 <= lost <= 2 * 8  # what was in flight at each kill
    for name in ("gold.jsonl", "gold.jsonl.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (
            tmp_path / "undisturbed" / name
        ).read_bytes()
    assert not [path for path in (tmp_path / "killed").iterdir() if path.suffix == ".part"]
