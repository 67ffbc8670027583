"""The judge of one's own that CONTRIBUTING shows is whole, and judges."""

import json
import re
import shlex
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from honest_judge import honest
from judged_app import app_was_asked, short_cases
from misslink.cli.main import main

ROOT = Path(__file__).parents[1]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PLACES = (ROOT, ROOT / "src", ROOT / "src/misslink")  # what paths are given from
SECTION = "## A judge of your own\n"
FILE = re.compile(r"`(\S+)`:\n\n```python\n(.*?)```", re.DOTALL)
PATH = re.compile(r"`(?!build/)([\w.-]+/[\w./-]+\.\w+)`")
SHELL = re.compile(r"```sh\n(.*?)```", re.DOTALL)


@pytest.mark.source
def test_a_file_that_a_recipe_names_is_there():
    pages = [CONTRIBUTING, *ROOT.glob("docs/contributing/*.md")]
    named = {path for page in pages for path in PATH.findall(page.read_text(encoding="utf-8"))}
    assert len(named) > 30
    assert {path for path in named if not any((place / path).exists() for place in PLACES)} == set()


@pytest.fixture
def section():
    _, found, rest = CONTRIBUTING.read_text(encoding="utf-8").partition(SECTION)
    assert found
    return rest.partition("\n## ")[0]


class _Model(BaseHTTPRequestHandler):
    """The example's model: its reply to the messages, as the schema wants it."""

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        wanted = {"response_format": {"json_schema": {"schema": body.pop("schema")}}}
        reply = json.dumps(honest(body | wanted)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


@pytest.fixture
def model(monkeypatch):
    with ThreadingHTTPServer(("127.0.0.1", 0), _Model) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("MY_MODEL_URL", f"http://127.0.0.1:{server.server_port}")
        yield
        server.shutdown()
        thread.join()


@pytest.fixture
def program(section, tmp_path, monkeypatch, capsys, imports_forgotten):
    """Run one of the section's commands beside the section's file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MISSLINK_JUDGE", raising=False)
    short_cases(2)
    cases = [json.loads(line) for line in Path("gold.jsonl").read_text("utf-8").splitlines()]
    lines = [json.dumps({**case, "reference": "Grass is red."}) + "\n" for case in cases]
    Path("gold.jsonl").write_text("".join(lines), encoding="utf-8")
    for name, text in FILE.findall(section):
        Path(name).write_text(text, encoding="utf-8")

    def run(command, *more):
        monkeypatch.setattr(sys, "argv", [*shlex.split(command), *more])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert not ended.value.code, printed.err
        return json.loads(printed.out)

    return run


@pytest.mark.slow
@pytest.mark.usefixtures("model")
def test_the_judge_that_is_shown_judges_a_run_and_is_not_fooled(section, program):
    ((block,),) = [SHELL.findall(section)]
    evaluate, attack = block.strip().splitlines()
    summary = program(evaluate, "--json")
    assert app_was_asked() == 2
    assert (summary["judge"], summary["errors"]["judge"]) == ("my-model", 0)
    verdicts = Path("reports/my-model/verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    found = [v for v in map(json.loads, verdicts) if v["metric"] == "faithfulness"]
    assert [(v["status"], v["value"]) for v in found] == [("scored", 0.5)] * 2
    supports = [[claim["support"] for claim in v["claims"]] for v in found]
    assert supports == [["supported", "unsupported"]] * 2
    assert program(evaluate, "--json")["usage"]["calls"] == 0
    assert program(attack, "--json")["by_metric"]["faithfulness"]["flipped"]["value"] == 0
