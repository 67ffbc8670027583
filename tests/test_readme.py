"""What the README shows runs as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from misslink.judging.embedded import figures

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r"(?:<!-- file: (\S+) -->\n)?```(python|sh)\n(.*?)```", re.DOTALL)


def test_every_python_and_shell_block_runs(tmp_path, judge_server):
    """In one folder, in their order, as a reader would; the judge is a server on loopback."""
    pytest.importorskip("langchain_core")
    judge_server.models = ("gpt-4.1-mini",)
    blocks = BLOCK.findall(README.read_text(encoding="utf-8"))
    assert {language for _, language, _ in blocks} == {"python", "sh"}
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OPENAI_BASE_URL": judge_server.url,
        "OPENAI_API_KEY": "made-up",
    }
    for name, language, text in blocks:
        if name:
            (tmp_path / name).write_text(text, encoding="utf-8")
            continue
        command = [sys.executable, "-c", text] if language == "python" else ["bash", "-ec", text]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        if language == "python":
            assert "retrieval_miss" in done.stdout, "the example shows what misslink is for"
    for page in ("first.html", "reports/first.html", "reports/mine/report.html"):
        assert (tmp_path / page).stat().st_size > 10_000
    assert len(judge_server.calls) >= 2


def test_what_the_readme_points_to_is_there():
    text = README.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (README.parent / target).exists(), target


def test_the_figures_of_the_embedded_judge_are_those_that_were_measured():
    text = README.read_text(encoding="utf-8")
    for name, measured in figures().items():
        shown = (f"{measured[figure]:.2f}" for figure in ("auroc", "f1", "begin_auroc"))
        assert f"| `{name}` | {' | '.join(shown)} |" in text
