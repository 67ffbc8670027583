"""misslink canary as a user runs it: a real store, its index edited, an app that hangs."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from misslink.canary.cli import lock_series

APP = """
import json, re
from pathlib import Path
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

class Words(Embeddings):
    def embed_query(self, text):
        found = [0.0] * 97
        for word in re.findall(r"\\w+", text.lower()):
            found[sum(map(ord, word)) % 97] += 1.0
        return found
    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

texts = json.loads(Path("docs.json").read_text(encoding="utf-8"))
store = InMemoryVectorStore(Words())
store.add_documents([Document(id=name, page_content=text) for name, text in texts.items()])
retriever = store.as_retriever(search_kwargs={"k": 2})

def broken(question):
    raise RuntimeError("no index")
"""
HANGING = """
import threading
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(1)
def app(question):
    return pool.submit(threading.Event().wait).result()
"""
RUN = ("canary", "run", "app.py:retriever", "--canaries", "canaries.jsonl", "--learn", "10")
PROGRAM = [sys.executable, "-c", "from misslink.cli.main import main; main()"]
TOWNS = ["Aachen", "Bonn", "Cork", "Dover", "Essen", "Faro", "Ghent", "Hull"]


def write_docs(gone=()):
    docs = {t: f"The river of {t} is called the {t}ach." for t in TOWNS if t not in gone}
    Path("docs.json").write_text(json.dumps({**docs, "x": "Other."}), encoding="utf-8")


@pytest.fixture(autouse=True)
def inputs(own_folder, imports_forgotten):
    write_docs()
    Path("app.py").write_text(APP, encoding="utf-8")
    rows = [
        {
            "id": town.lower(),
            "question": f"What is the river of {town} called?",
            "relevant": [town],
            "owner": "maps team",
        }
        for town in TOWNS
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    Path("canaries.jsonl").write_text(lines, encoding="utf-8")


@pytest.fixture
def run(misslink):
    def run(*options, expect=0):
        code, out, err = misslink(*RUN, "--json", *options)
        assert code == expect, err
        assert "Traceback" not in err
        return json.loads(out)

    return run


def repeated(times):
    """As if the first run had been seen so many times more."""
    columns = "name, at, key, accepted, n, measured, suspects, fingerprint, corpus_known, code"
    with sqlite3.connect(".misslink/canary.sqlite") as file:
        for number in range(times):
            file.execute(
                f"INSERT INTO runs (uid, {columns}, document) "  # noqa: S608 (its own columns)
                f"SELECT ?, {columns}, document FROM runs WHERE id = 1",
                (str(number),),
            )
            file.execute(
                "INSERT INTO results SELECT (SELECT max(id) FROM runs), place, canary, content "
                "FROM results WHERE run = 1"
            )
    file.close()


def test_an_edited_index_alarms_with_its_suspect_and_owner(run, misslink):
    assert run()["health"]["value"] == 1.0
    repeated(10)
    write_docs(gone=TOWNS[:7])
    found = run(expect=1)
    assert found["status"] == "alarm"
    assert found["changes"]["removed"] == TOWNS[:7]
    assert {one["owner"] for one in found["degraded"]} == {"maps team"}
    assert any("7 documents removed" in one for one in found["alarms"][0]["suspects"])
    assert len(found["results"]) == len(TOWNS)
    assert misslink(*RUN, "--fail-on", "never")[0] == 0
    accepted = run("--accept-change")
    assert (accepted["status"], accepted["degraded"]) == ("learning", [])


def test_history_prints_the_runs_and_writes_page_and_summary(run, misslink):
    run()
    run()
    code, out, _ = misslink("canary", "history", "--json", "--last", 1)
    document = json.loads(out)
    assert code == 0
    assert [one["run"] for one in document["runs"]] == [2]
    assert misslink("canary", "history", "--html", "t.html", "--markdown", "t.md")[0] == 0
    assert Path("t.html").read_text(encoding="utf-8").count("<section") >= 4
    assert "| 2 |" in Path("t.md").read_text(encoding="utf-8")
    _, table, _ = misslink("canary", "history")
    assert "8 of 8" in table


def test_a_run_prints_what_is_ill_and_why(misslink):
    write_docs(gone=["Bonn"])
    code, out, _ = misslink(*RUN, "--fail-on", "degraded")
    assert code == 0  # nothing was healthy before
    assert "no expected passage is among the first 5" in out
    assert "7 of 8" in out


def test_degraded_fails_where_that_is_wanted(run):
    run()
    write_docs(gone=["Bonn"])
    assert [one["id"] for one in run("--fail-on", "degraded", expect=1)["degraded"]] == ["bonn"]


def test_the_markdown_of_a_run_stands_alone_on_stdout(misslink):
    code, out, _ = misslink(*RUN, "--markdown", "-")
    assert code == 0
    assert out.startswith("## Canaries: main\n")


def test_an_app_that_answers_nothing_is_unreachable_and_kept(misslink):
    code, out, err = misslink(
        "canary", "run", "app.py:broken", "--canaries", "canaries.jsonl", "--json"
    )
    assert code == 3
    assert json.loads(out)["errors"] == len(TOWNS)
    assert "the app answered no canary" in err
    assert misslink("canary", "history")[0] == 0


def test_yaml_canaries_are_read_and_a_repeated_id_told_with_both_lines(misslink):
    entry = "- id: bonn\n  question: What is the river of Bonn called?\n  relevant: [Bonn]\n"
    Path("c.yaml").write_text(entry, encoding="utf-8")
    command = ("canary", "run", "app.py:retriever", "--canaries", "c.yaml")
    assert misslink(*command)[0] == 0
    Path("c.yaml").write_text("canaries:\n" + entry + entry, encoding="utf-8")
    code, _, err = misslink(*command)
    assert code == 2
    assert "c.yaml, line 5, field 'id': the id 'bonn' is used twice (first on line 2)" in err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--fail-on", "alarms"), "did you mean 'alarm'?"),
        (("--app-timeout", "0"), "--app-timeout is 0"),
        (("--run-timeout", "nan"), "--run-timeout is nan"),
        (("--webhook", "example.org"), "--webhook must begin with http://"),
        (("--webhook", "http://127.0.0.1:9", "--webhook-secret-env", "NOT_SET"), "NOT_SET"),
        (("--html", "nowhere/t.html"), "its folder does not exist"),
        (("--markdown", "canaries.jsonl"), "This is an input"),
        (("--markdown", "-", "--json"), "both print to stdout"),
        (("--corpus", "none.jsonl"), "there is no such file"),
        (("--judge", "nobody"), "nobody"),
        (("--history", "."), "This is a folder"),
        (("--learn", "3"), "--learn"),
        (("--name", " "), "--name is empty"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_kept(misslink, options, said):
    code, out, err = misslink(*RUN, *options)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_a_series_or_history_that_is_not_there_is_told(misslink, run):
    code, _, err = misslink("canary", "history")
    assert code == 2
    assert "There is no canary history here" in err
    run()
    code, _, err = misslink("canary", "history", "--name", "mian")
    assert code == 2
    assert "did you mean 'main'?" in err


def test_watch_refuses_wrong_options_at_once(misslink):
    watch = ("canary", "watch", *RUN[2:])
    assert misslink(*watch, "--every", "soon")[0] == 2
    assert misslink(*watch, "--every", "1h", "--kk", "3")[0] == 2
    with lock_series(Path(".misslink/canary.sqlite"), "main"):
        code, _, err = misslink(*watch, "--every", "1h")
    assert code == 2
    assert "Another process already watches" in err


@pytest.mark.slow
def test_an_app_that_hangs_in_a_pool_of_its_own_does_not_keep_the_program():
    Path("hanging.py").write_text(HANGING, encoding="utf-8")
    ended = subprocess.run(
        [
            *(*PROGRAM, "canary", "run", "hanging.py:app", "--canaries", "canaries.jsonl"),
            *("--app-timeout", "0.2", "--run-timeout", "1", "--json"),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 3, ended.stderr
    document = json.loads(ended.stdout)
    assert {one["status"] for one in document["results"]} <= {"hung", "not_asked"}


@pytest.mark.slow
def test_watch_runs_again_prints_a_line_each_and_ends_with_an_interrupt():
    # Tests that a shell runs in the background ignore Ctrl-C, and what they start would, too.
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    program = [*PROGRAM[:-1], listening + PROGRAM[-1]]
    command = [*program, "canary", "watch", *RUN[2:], "--every", "1s", "--json"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        documents = [json.loads(process.stdout.readline()) for _ in range(2)]
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert [one["run"] for one in documents] == [1, 2]
    assert process.returncode in {0, 130}
    assert "the next run begins at" in err
    assert "Traceback" not in err
