"""The workflow of examples/ci: its commands run as they stand, and its rights are the least."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from misslink.gates.criteria import read_criteria
from misslink.report.gate_reports import comment_marker

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


@pytest.mark.slow
def test_every_misslink_command_runs_as_it_stands(workflow, tmp_path, warm_commands):
    pytest.importorskip("langchain_core")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "gate").mkdir()
    path = f"{warm_commands}{os.pathsep}{os.environ['PATH']}"
    github = {"SERVER_URL": "https://github.com", "REPOSITORY": "me/rag", "RUN_ID": "7"}
    given = {f"GITHUB_{name}": value for name, value in github.items()}
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
            env={**os.environ, "PATH": path, "RUNNER_TEMP": str(tmp_path), **given},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    written = (tmp_path / "gate" / "comment.md").read_text(encoding="utf-8")
    assert written.startswith(comment_marker(read_criteria(CI / "ship-criteria.yaml").name))
    assert "https://github.com/me/rag/actions/runs/7" in written
    assert (tmp_path / "gate" / "gate.xml").stat().st_size > 100


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


GH = """#!/bin/sh
case "$*" in *--paginate*) echo "$KNOWN" ;; *) echo "$*" >> "$RUNNER_TEMP/calls" ;; esac
"""


@pytest.fixture
def posted(workflow, tmp_path):
    """Run the step that posts, with a stand-in for gh; returns its calls and the comment."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH, encoding="utf-8")
    (tmp_path / "bin" / "gh").chmod(0o755)
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / "comment.md").write_text("committed in the branch", encoding="utf-8")
    step = workflow["jobs"]["comment"]["steps"][-1]

    def run(known=""):
        given = {"LOG": "https://log.example/1", "COMMENTS": "all", "ONE": "one", "KNOWN": known}
        environment = {
            **os.environ,
            **given,
            "MARKER": step["env"]["MARKER"],
            "RUNNER_TEMP": str(tmp_path),
            "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        }
        command = ["bash", "-e", "-c", step["run"]]
        subprocess.run(command, cwd=tmp_path / "checkout", env=environment, check=True)
        calls = (tmp_path / "calls").read_text(encoding="utf-8")
        return calls, (tmp_path / "gate" / "comment.md").read_text(encoding="utf-8")

    return run


def test_where_nothing_was_decided_the_comment_says_so_and_links_the_log(posted):
    calls, text = posted(known="7")
    assert "--method PATCH one/7" in calls, "an older verdict must not stand"
    assert text.startswith(f"{comment_marker(read_criteria(CI / 'ship-criteria.yaml').name)}\n")
    assert "Could not be decided" in text
    assert "https://log.example/1" in text


def test_the_decision_is_posted_from_outside_the_checkout(posted, tmp_path):
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate" / "comment.md").write_text("<!-- misslink gate: x -->\nfine", "utf-8")
    calls, text = posted()
    assert calls.startswith("api --method POST all --field body=@")
    assert str(tmp_path / "gate" / "comment.md") in calls
    assert text.endswith("fine")


def test_the_comment_names_both_commits(workflow, tmp_path):
    (step,) = [s for s in workflow["jobs"]["gate"]["steps"] if "BASELINE" in s.get("env", {})]
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate" / "comment.md").write_text("decided\n", encoding="utf-8")
    commits = {"RUN": "aaa1", "BASELINE": "misslink-baseline-bbb2"}
    places = {"RUNNER_TEMP": str(tmp_path), "GITHUB_STEP_SUMMARY": str(tmp_path / "page")}
    environment = {**os.environ, **commits, **places}
    subprocess.run(["bash", "-e", "-c", step["run"]], env=environment, check=True)
    told = "decided\n\nRun: aaa1. Baseline: bbb2.\n"
    assert (tmp_path / "gate" / "comment.md").read_text(encoding="utf-8") == told
    assert (tmp_path / "page").read_text(encoding="utf-8") == told
