"""The workflow of examples/ci: its commands run as they stand, and its rights are the least."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CI = ROOT / "examples" / "ci"


@pytest.fixture(scope="module")
def workflow():
    text = (CI / "misslink-gate.yml").read_text(encoding="utf-8")
    found = yaml.safe_load(text)
    found["on"] = found.pop(True)  # to YAML 1.1 "on" is a boolean
    return found


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_every_misslink_command_runs_as_it_stands(workflow, tmp_path):
    pytest.importorskip("langchain_core")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    commands = [
        line.strip()
        for step in steps(workflow)
        for line in step.get("run", "").splitlines()
        if line.strip().startswith("misslink ")
    ]
    assert [command.split()[1] for command in commands] == ["evaluate", "evaluate", "gate"]
    for command in commands:
        done = subprocess.run(
            ["bash", "-ec", command],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "comment.md").read_text(encoding="utf-8").startswith("<!-- misslink gate:")
    assert (tmp_path / "gate.xml").stat().st_size > 100


def test_nobody_has_more_rights_than_needed(workflow):
    assert set(workflow["on"]) == {"push", "pull_request"}
    assert workflow["permissions"] == {"contents": "read"}
    writers = {name for name, job in workflow["jobs"].items() if "permissions" in job}
    assert writers == {"comment"}
    comment = workflow["jobs"]["comment"]
    assert comment["permissions"] == {"pull-requests": "write"}
    assert not any("checkout" in step.get("uses", "") for step in comment["steps"])
    for step in steps(workflow):
        if "checkout" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] is False
        assert re.fullmatch(r"actions/[\w/-]+@v\d+", step.get("uses", "actions/x@v1"))
        assert "${{" not in step.get("run", ""), "what others write is no shell code"
        assert "secrets." not in str(step)


def test_the_shell_of_every_step_is_well_formed(workflow):
    for step in steps(workflow):
        subprocess.run(["bash", "-n", "-c", step.get("run", "")], check=True)
