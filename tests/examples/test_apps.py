"""Every shape of app in examples/apps is evaluated as its README says."""

import importlib
import json
import re
import subprocess
import sys
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from misslink.examples import copy_example

APPS = Path(__file__).parents[2] / "examples" / "apps"
SHAPES = sorted(set(APPS.glob("*.py")) - {APPS / "desk.py", APPS / "http_service.py"})
MISSLINK = [sys.executable, "-c", "from misslink.cli.main import main; main()"]

pytestmark = [pytest.mark.slow, pytest.mark.source]


def evaluate(app, folder):
    copy_example("ferry", folder / "ferry")
    command = [
        *MISSLINK,
        "evaluate",
        app,
        "--goldset",
        "ferry/goldset.jsonl",
        "--out",
        "run",
        "--json",
    ]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    traces = [json.loads(line) for line in (folder / "run/traces.jsonl").read_text().splitlines()]
    return json.loads(done.stdout), traces


def test_there_are_ten_shapes_of_forty_lines():
    rows = re.findall(r"^\| .* \| (.*) \|$", (APPS / "README.md").read_text(), re.MULTILINE)
    assert len(rows) == 11  # with the heading
    for path in APPS.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 40, path.name
        assert path.name == "desk.py" or path.name in "".join(rows)


@pytest.mark.parametrize("path", SHAPES, ids=lambda path: path.stem)
def test_an_app_is_watched(path, tmp_path):
    summary, traces = evaluate(f"{path}:app", tmp_path)
    recall = next(
        value for name, value in summary["retrieval"].items() if name.startswith("recall")
    )
    assert recall["value"] > 0.4
    assert all(trace["retrieved"] and trace["unmeasured"] is None for trace in traces)
    if path.stem != "langchain_retriever":
        assert all(trace["answer"] for trace in traces)
    if path.stem in (
        "langchain_chain",
        "langgraph_agent",
        "llamaindex_engine",
        "haystack_pipeline",
    ):
        assert all(trace["prompted"] for trace in traces)


def test_a_service_behind_http(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(APPS))
    service = importlib.import_module("http_service")
    server = ThreadingHTTPServer(("127.0.0.1", 0), service.Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    settings = (APPS / "http_service.toml").read_text()
    (tmp_path / "service.toml").write_text(settings.replace("8123", str(server.server_port)))
    try:
        summary, traces = evaluate("service.toml", tmp_path)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert all(trace["retrieved"] and trace["answer"] for trace in traces)
    assert summary["cases"] == 40
