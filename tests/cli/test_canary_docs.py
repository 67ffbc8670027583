"""What docs/canary.md shows runs as it stands, and every option and exit code in it is one."""

import json
import os
import re
import shlex
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
import typer

from misslink.canary.cli import app

PAGE = Path(__file__).parents[2] / "docs" / "canary.md"
TEXT = PAGE.read_text(encoding="utf-8")
BLOCK = re.compile(r"(?:`(\S+)`:\n\n)?```(\w+)\n(.*?)```", re.DOTALL)
BLOCKS = [(name, kind, text) for name, kind, text in BLOCK.findall(TEXT)]
COMMANDS = [
    line.partition("&& ")[2] if kind == "cron" else line
    for _, kind, text in BLOCKS
    if kind in {"sh", "cron"}
    for line in text.replace(" \\\n ", "").splitlines()
]
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

rows = [json.loads(line) for line in Path("passages.jsonl").read_text().splitlines()]
store = InMemoryVectorStore(Words())
store.add_documents([Document(id=row["id"], page_content=row["text"]) for row in rows])
retriever = store.as_retriever(search_kwargs={"k": 2})
"""
PASSAGES = {
    "hours": "The library is open on Saturday from ten to four.",
    "fines": "The fine for a late book is ten cents a day.",
    "cats": "Cats must stay outside.",
}


@pytest.fixture
def folder(own_folder, imports_forgotten):
    """What the page takes for granted: an app, its passages, a script that builds its index."""
    lines = (json.dumps({"id": name, "text": text}) for name, text in PASSAGES.items())
    Path("passages.jsonl").write_text("\n".join(lines), encoding="utf-8")
    Path("app.py").write_text(APP, encoding="utf-8")
    for name, _, text in BLOCKS:
        if name:
            Path(name).write_text(text, encoding="utf-8")


@pytest.fixture
def hook(monkeypatch):
    """A webhook, in the environment as the crontab wants it."""

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Taking) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        monkeypatch.setenv("HOOK", f"http://127.0.0.1:{server.server_port}/hook")
        monkeypatch.setenv("HOOK_SECRET", "long and secret")
        yield
        server.shutdown()


def in_process(command, misslink):
    program, *arguments = shlex.split(os.path.expandvars(command))
    assert program == "misslink"
    code, out, err = misslink(*arguments)
    assert code == 0, f"{command}\n{out}\n{err}"
    return out


def test_every_command_runs_in_its_order(folder, hook, misslink):
    assert len(COMMANDS) == 7
    for command in COMMANDS:
        if not command.startswith("python ") and " watch " not in command:
            in_process(command, misslink)
    assert Path("trend.html").stat().st_size > 5_000
    assert Path("summary.md").read_text(encoding="utf-8").startswith("## Canaries")
    document = json.loads(misslink("canary", "history", "--json")[1])
    assert [run["health"]["value"] for run in document["runs"]] == [1.0] * 3
    assert [run["canaries"] for run in document["runs"]] == [2] * 3


@pytest.mark.slow
def test_the_watch_runs(folder, misslink):
    (watch,) = (command for command in COMMANDS if " watch " in command)
    in_process(f"{watch} --runs 1", misslink)
    assert json.loads(misslink("canary", "history", "--json")[1])["runs"]


def test_every_option_on_the_page_is_one_of_the_program():
    group = typer.main.get_command(app)
    known = {name for command in group.commands.values() for p in command.params for name in p.opts}
    told = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", TEXT))
    assert len(told) >= 14
    assert told <= known


def test_the_exit_codes_on_the_page_are_those_of_the_help():
    told = re.findall(r"^\| (\d) \| ", TEXT, re.MULTILINE)
    assert told == ["0", "1", "2", "3"]
    said = typer.main.get_command(app).commands["run"].help
    assert re.findall(r"\b[0-3]\b(?= \w)", said.partition("Exit codes:")[2]) == told
