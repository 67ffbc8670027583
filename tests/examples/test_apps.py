"""Every shape of app in examples/apps is evaluated as its README says."""

import importlib
import json
import re
import subprocess
import threading
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from misslink.examples import copy_example

APPS = Path(__file__).parents[2] / "examples" / "apps"
SHAPES = sorted(set(APPS.glob("*.py")) - {APPS / "desk.py", APPS / "http_service.py"})

pytestmark = [pytest.mark.slow, pytest.mark.source]


@pytest.fixture
def evaluate(warm_commands, tmp_path):
    def run(app):
        copy_example("ferry", tmp_path / "ferry")
        done = subprocess.run(
            [
                *(warm_commands / "misslink", "evaluate", app),
                *("--goldset", "ferry/goldset.jsonl", "--out", "run", "--json"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        lines = (tmp_path / "run/traces.jsonl").read_text(encoding="utf-8").splitlines()
        return json.loads(done.stdout), [json.loads(line) for line in lines]

    return run


def test_there_are_ten_shapes_of_forty_lines():
    rows = re.findall(r"^\| .* \| (.*) \|$", (APPS / "README.md").read_text(), re.MULTILINE)
    assert len(rows) == 11  # with the heading
    for path in APPS.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 40, path.name
        assert path.name == "desk.py" or path.name in "".join(rows)


@pytest.mark.parametrize("path", SHAPES, ids=lambda path: path.stem)
def test_an_app_is_watched(path, evaluate):
    summary, traces = evaluate(f"{path}:app")
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


def test_a_service_behind_http(tmp_path, monkeypatch, evaluate):
    monkeypatch.syspath_prepend(str(APPS))
    service = importlib.import_module("http_service")
    server = ThreadingHTTPServer(("127.0.0.1", 0), service.Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    settings = (APPS / "http_service.toml").read_text()
    (tmp_path / "service.toml").write_text(settings.replace("8123", str(server.server_port)))
    try:
        summary, traces = evaluate("service.toml")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert all(trace["retrieved"] and trace["answer"] for trace in traces)
    assert summary["cases"] == 40
