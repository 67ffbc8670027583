"""What a type checker of a user reads: README's first call, and a whole program."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.source

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "python_api" / "check_run.py"
MISTAKES = """
import misslink

run = misslink.evaluate(None, "gold.jsonl", judge=5)
misslink.evaluate(None, "gold.jsonl", judje="heuristic")
text: str = run.metrics["recall@5"].value
misslink.gate(run, "ship.yaml").pased
misslink.compare(run, run).metrics["mrr"].differense
misslink.whatif(run).options[0].nam

async def later() -> None:
    await misslink.evaluate_async(None, "gold.jsonl", out=5)
"""


@pytest.mark.slow
def test_the_example_runs(tmp_path, capsys):
    main = runpy.run_path(str(EXAMPLE))["main"]
    assert main(tmp_path)
    assert "recall@2: 0.78 [0.63, 0.89], n = 37" in capsys.readouterr().out
    assert (tmp_path / "compared.html").exists()


@pytest.mark.slow
def test_strict_mypy_accepts_readme_and_example_and_finds_mistakes(tmp_path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    first = re.findall(r"^```python\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)[0]
    (tmp_path / "readme.py").write_text(first, encoding="utf-8")
    (tmp_path / "mistakes.py").write_text(MISTAKES, encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", tmp_path, EXAMPLE],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"(\w+)\.py:(\d+): error:", done.stdout)
    wanted = [("mistakes", line) for line in ("4", "5", "6", "7", "8", "9", "12")]
    assert found == wanted, done.stdout
