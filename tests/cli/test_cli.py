"""The command line: what it prints, its exit codes, and one sentence for a mistake."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from misslink.types import Estimate


def write(name, *items):
    path = Path(name)
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    return path


def lines(name):
    return [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def files():
    gold = write(
        "gold.jsonl",
        {"id": "a", "question": "When does it leave?", "relevant": ["p"], "reference": "At seven."},
        {"id": "b", "question": "Who runs it?", "relevant": ["q"]},
    )
    traces = write(
        "traces.jsonl",
        {
            "case_id": "a",
            "retrieved": [{"id": "p", "text": "The ferry leaves at seven."}],
            "answer": "The ferry leaves at seven.",
        },
        {
            "case_id": "b",
            "retrieved": [{"id": "p", "text": "The ferry leaves at seven."}],
            "answer": "Captain Ahab commands the vessel.",
        },
    )
    return gold, traces


def test_evaluate_traces_prints_the_contracted_document_and_nothing_else(misslink, files):
    gold, traces = files
    code, out, err = misslink(
        "evaluate", "--traces", traces, "--goldset", gold, "--judge", "heuristic", "--json"
    )
    assert code == 0, err
    document = json.loads(out)
    assert (document["cases"], document["judge"], document["k"]) == (2, "heuristic", 5)
    names = {
        "retrieval": ["hit@5", "mrr", "recall@5", "precision@5", "ndcg@5"],
        "generation": ["faithfulness", "fully_faithful", "answer_relevance", "context_utilization"],
        "answer": ["correctness", "abstention"],
        "link": [
            "risk_given_none",
            "risk_given_some",
            "risk_given_all",
            "failed",
            "risk_difference",
            "risk_ratio",
            "attributable_fraction",
        ],
    }
    for level, metrics in names.items():
        for metric in metrics:
            Estimate.model_validate(document[level][metric])
    assert document["link"]["exposure"] is None, "fewer than 10 cases have all"
    assert document["link"]["table"]["left_out"] == 2
    assert document["link_correctness"].keys() == document["link"].keys()
    assert document["link_correctness"]["reliability"] is None
    told = document["link"]["reliability"]
    assert told["judge"] == document["judge"]
    assert set(told["given"]) <= {"labels", "references", "corpus"}
    assert told["owner_right"].keys() == told["named"].keys() == document["link"]["failed"].keys()
    assert document["link"]["failures"] == {"retrieval_miss": 1, "passed": 1}
    assert document["coverage"]["faithfulness"] == {"scored": 2, "skipped": 0, "failed": 0}
    assert set(document["usage"]) == {
        "calls",
        "not_asked",
        "from_cache",
        "prompt_tokens",
        "completion_tokens",
        "cost",
        "stopped_by",
        "in_batches",
        "generations",
        "generations_kept",
    }
    folder = Path(document["run"])
    assert json.loads((folder / "summary.json").read_text(encoding="utf-8")) == document
    assert Path(".misslink/cache.sqlite").exists()


def test_without_a_cache_no_reply_is_written(misslink, files):
    gold, traces = files
    arguments = ("evaluate", "--traces", traces, "--goldset", gold, "--judge", "heuristic")
    assert misslink(*arguments, "--cache", "none")[0] == 0
    assert not Path(".misslink/cache.sqlite").exists()
    assert not Path("none").exists()


def test_every_line_of_verdicts_and_links_has_the_contracted_keys(misslink, files):
    gold, traces = files
    misslink("evaluate", "--traces", traces, "--goldset", gold, "--out", "run")
    verdicts = lines("run/verdicts.jsonl")
    for verdict in verdicts:
        assert {
            "case_id", "metric", "status", "value", "probability", "reason", "judge", "prompt",
            "claims",
        } <= set(verdict)  # fmt: skip
        for claim in verdict["claims"]:
            assert {"text", "start", "end", "support", "probability", "evidence"} <= set(claim)
            for evidence in claim["evidence"]:
                assert {"passage_id", "quote", "start", "end"} <= set(evidence)
    for link in lines("run/links.jsonl"):
        assert {"case_id", "retrieval", "answer", "failure", "missed", "claims", "basis"} <= set(
            link
        )
        for missed in link["missed"]:
            assert {"passage_id", "grade", "true_rank", "miss_type"} <= set(missed)
        for claim in link["claims"]:
            assert {"index", "passage_id", "relation"} <= set(claim)


def test_evaluate_for_people_ends_with_the_path_of_the_report(misslink, files):
    gold, traces = files
    code, out, _ = misslink("evaluate", "--traces", traces, "--goldset", gold, "--out", "run")
    assert code == 0
    assert re.search(r"of 2 answers (is|are) flagged[.]", out)
    assert out.strip().endswith("report: run/report.html")


def test_report_renders_a_run_again(misslink, files):
    gold, traces = files
    misslink("evaluate", "--traces", traces, "--goldset", gold, "--out", "run")
    page = Path("run/report.html").read_bytes()
    Path("run/report.html").unlink()
    code, out, _ = misslink("report", "run")
    assert (code, out.splitlines()[-1]) == (0, "report: run/report.html")
    assert Path("run/report.html").read_bytes() == page
    code, out, _ = misslink("report", "run", "--out", "elsewhere.html", "--json")
    assert json.loads(out)["report"] == "elsewhere.html"


def test_a_run_of_the_same_inputs_is_replaced_and_others_need_overwrite(misslink, files):
    gold, traces = files
    common = ("evaluate", "--traces", traces, "--goldset", gold, "--out", "run")
    assert misslink(*common)[0] == 0
    assert misslink(*common)[0] == 0
    code, _, err = misslink(*common, "--k", "3")
    assert code == 2
    assert (
        "run: this folder has a run of other inputs (k was not given, is 3); choose another" in err
    )
    assert misslink(*common, "--k", "3", "--overwrite")[0] == 0
    write("gold.jsonl", {"id": "a", "question": "Why?"})
    write("traces.jsonl", {"case_id": "a", "answer": "So."})
    code, _, err = misslink(*common, "--k", "3", "--judge", "none")
    assert code == 2
    differs = "judge was heuristic, is none; goldset has changed; traces has changed"
    assert re.search(rf"\({differs}; and [0-9]+ more\)", err), err


LOUD = """
import os
print("hello from the import")
def app(question):
    print("hello from the app")
    os.system("echo hello from a program")
    return {"answer": "caf\u00e9", "retrieved": [{"id": "p", "text": "caf\u00e9"}]}
"""


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_what_the_app_prints_is_not_on_stdout_whatever_the_encoding(encoding):
    Path("loud.py").write_text(LOUD, encoding="utf-8")
    write("gold.jsonl", {"id": "a", "question": "Q?", "relevant": ["p"], "category": "caf\u00e9"})
    program = "from misslink.cli.main import main; main()"
    options = ["evaluate", "loud.py:app", "--goldset", "gold.jsonl", "--judge", "none", "--json"]
    done = subprocess.run(
        [sys.executable, "-c", program, *options],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
    )
    assert json.loads(done.stdout.decode(encoding))["slices"]["category"]["caf\u00e9"]["n"] == 1
    assert done.stderr.count(b"hello") >= 3


def test_an_interrupted_run_says_how_to_go_on(misslink, files, monkeypatch):
    gold, traces = files

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("misslink.pipeline.evaluate.evaluate", interrupt)
    code, _, err = misslink("evaluate", "--traces", traces, "--goldset", gold, "--out", "run")
    assert code == 130
    assert "the same command with  --out run  resumes" in err


def test_a_password_in_an_address_is_in_no_file(misslink, files, judge_server):
    gold, traces = files
    address = judge_server.url.replace("://", "://bob:hunter2@")
    code, _, err = misslink(
        "evaluate", "--traces", traces, "--goldset", gold, "--out", "run",
        "--judge", "openai:test-judge", "--base-url", address,
    )  # fmt: skip
    assert code == 0, err
    for path in [*Path("run").iterdir(), *Path(".misslink").iterdir()]:
        assert b"hunter2" not in path.read_bytes(), path


GOOD = {"id": "a", "question": "Q?", "relevant": ["p"]}
TRACE = {"case_id": "a", "retrieved": ["p"], "answer": "A."}


@pytest.mark.parametrize(
    ("gold", "traces", "options", "code", "message"),
    [
        ([{"id": "a"}], [TRACE], [], 2, "gold.jsonl, line 1, field 'question'"),
        ([GOOD, GOOD], [TRACE], [], 2, "gold.jsonl, line 2, field 'id'"),
        ([{**GOOD, "refs": 1}], [TRACE], [], 2, "gold.jsonl, line 1, field 'refs'"),
        ([], [TRACE], [], 2, "gold.jsonl: the file is empty"),
        ([GOOD], [], [], 2, "traces.jsonl: the file is empty"),
        ([GOOD], [{**TRACE, "prompted": ["x"]}], [], 2, "traces.jsonl, line 1, field 'prompted'"),
        ([GOOD], [{**TRACE, "case_id": "z"}], [], 2, "the ids of both files must agree"),
        ([GOOD], [TRACE], ["--judge", "opanai:x"], 2, "did you mean 'openai'"),
        ([GOOD], [TRACE], ["--judge", "openai:x"], 2, "OPENAI_API_KEY"),
        ([GOOD], [TRACE], ["--judge", "openai"], 2, "openai"),
        ([GOOD], [TRACE], ["--judge", "heuristic:huge"], 2, "huge"),
        ([GOOD], [TRACE], ["--judge", "openai:x", "--base-url", "http://127.0.0.1:9"], 3, "127.0"),
        ([GOOD], [TRACE], ["--out", "gold.jsonl"], 2, "gold.jsonl: this is a file"),
        ([GOOD], [TRACE], ["--out", "gold.jsonl/run"], 2, "cannot be written"),
        ([GOOD], [TRACE], ["--cache", "gold.jsonl"], 2, "gold.jsonl"),
        ([GOOD], [TRACE], ["--out", "."], 2, "folder"),
        ([GOOD], [TRACE], ["--k", "0"], 2, "--k"),
    ],
)
def test_a_mistake_is_one_sentence_and_an_exit_code(misslink, gold, traces, options, code, message):
    gold_file, traces_file = write("gold.jsonl", *gold), write("traces.jsonl", *traces)
    got, out, err = misslink(
        "evaluate", "--traces", traces_file, "--goldset", gold_file, "--json", *options
    )
    assert got == code, err
    assert message in err
    assert "Traceback" not in err
    assert out == ""
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("harbour", "harbour"),
        ("no_such_module:chain", "no_such_module"),
        ("broken.py:chain", "broken.py"),
        ("apps.py:chian", "did you mean 'chain'"),
        ("missing.py:chain", "missing.py"),
    ],
)
def test_an_app_that_does_not_import_is_told(misslink, spec, message):
    write("gold.jsonl", GOOD)
    Path("broken.py").write_text("import os\nraise ValueError('no key')\n", encoding="utf-8")
    Path("apps.py").write_text("def chain(question):\n    return 'x'\n", encoding="utf-8")
    code, out, err = misslink("evaluate", spec, "--goldset", "gold.jsonl", "--judge", "none")
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert out == ""


def test_no_command_prints_help_and_version_prints_the_version(misslink):
    assert "evaluate" in misslink("--help")[1]
    assert misslink("--version")[1].strip()


LIGHT = """
import sys, time
{statement}
heavy = {{"torch", "chromadb", "langchain", "langchain_core", "pandas", "openai", "scipy", *{more}}}
print(sorted(heavy & set(sys.modules)), time.process_time())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "more"),
    [
        ("import misslink", ["pydantic", "misslink.types"]),
        ("import misslink.types, misslink.registry, misslink.io", []),
        (
            (
                "sys.argv = ['misslink', '--help']\n"
                "from misslink.cli.main import main\n"
                "try:\n    main()\nexcept SystemExit:\n    pass"
            ),
            ["numpy", "jinja2", "misslink.types", "misslink.documents"],
        ),
    ],
)
def test_importing_misslink_and_asking_for_help_import_nothing_heavy(statement, more):
    done = subprocess.run(
        [sys.executable, "-c", LIGHT.format(statement=statement, more=more)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip().splitlines()[-1].startswith("[] ")
