"""misslink demo: two readers of the same passages, and their comparison."""

import json
from pathlib import Path

import pytest

from misslink.cli import demo

APP = """
def chain(question):
    return {"answer": "It muddles.", "retrieved": [{"id": "p", "text": "It sails at nine."}]}


def extractive(question):
    return {**chain(question), "answer": "It sails at nine."}
"""
GOLD = {"id": "sails", "question": "When does it sail?", "relevant": ["p"], "reference": "At nine."}


@pytest.fixture(autouse=True)
def small_demo(tmp_path, monkeypatch):
    """The demo's folder with a small app, so that no weights are needed."""
    folder = tmp_path / "python_reference"
    folder.mkdir()
    (folder / "app.py").write_text(APP, encoding="utf-8")
    (folder / "goldset.jsonl").write_text(json.dumps(GOLD) + "\n", encoding="utf-8")
    monkeypatch.setattr(demo, "_folder", lambda: folder)
    monkeypatch.setattr(demo, "_check_packages", lambda: None)


def test_it_writes_both_reports_and_ends_with_their_comparison(misslink):
    code, out, err = misslink("demo", "--judge", "heuristic")
    assert code == 0, err
    html = Path("reports/demo/compared.html").read_text(encoding="utf-8")
    for name in ("smollm2", "extractive"):
        assert Path(f"reports/demo/{name}/report.html").is_file()
        assert f'href="{name}/report.html"' in html
    assert "1 of 1 answer passes, 0 in smollm2. 1 fixed, 0 broken." in " ".join(out.split())
    assert out.splitlines()[-1] == "reports/demo/compared.html"


@pytest.mark.slow
def test_it_runs_again_and_prints_one_json_document(misslink):
    misslink("demo", "--judge", "heuristic")
    code, out, _ = misslink("demo", "--judge", "heuristic", "--json")
    document = json.loads(out)
    assert (code, list(document["runs"])) == (0, ["smollm2", "extractive"])
    assert document["comparison"]["passed"]["fixed"] == ["sails"]
