"""The judge of one's own that CONTRIBUTING shows is whole, and judges."""

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from judged_app import app_was_asked, short_cases
from misslink.cli.main import main

CONTRIBUTING = Path(__file__).parents[1] / "CONTRIBUTING.md"
SECTION = "## A judge of your own\n"
FILE = re.compile(r"<!-- file: (\S+) -->\n```python\n(.*?)```", re.DOTALL)
SHELL = re.compile(r"```sh\n(.*?)```", re.DOTALL)


@pytest.fixture
def section():
    _, found, rest = CONTRIBUTING.read_text(encoding="utf-8").partition(SECTION)
    assert found
    return rest.partition("\n## ")[0]


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


def test_the_judge_that_is_shown_judges_a_run_and_is_not_fooled(section, program):
    ((block,),) = [SHELL.findall(section)]
    evaluate, attack = block.strip().splitlines()
    summary = program(evaluate, "--json")
    assert app_was_asked() == 2
    assert (summary["judge"], summary["errors"]["judge"]) == ("verbatim", 0)
    verdicts = Path("reports/verbatim/verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    found = [v for v in map(json.loads, verdicts) if v["metric"] == "faithfulness"]
    assert [(v["status"], v["value"]) for v in found] == [("scored", 0.5)] * 2
    supports = [[claim["support"] for claim in v["claims"]] for v in found]
    assert supports == [["supported", "unsupported"]] * 2
    assert program(evaluate, "--json")["usage"]["calls"] == 0
    assert program(attack, "--json")["by_metric"]["faithfulness"]["flipped"]["value"] == 0
