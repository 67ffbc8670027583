"""The command line, to compare its documents with what the functions return."""

import json
import subprocess
import sys

import pytest


@pytest.fixture
def misslink_cli(tmp_path):
    """Run a command with --json and return its document."""

    def call(*arguments, code=0):
        done = subprocess.run(
            [sys.executable, "-m", "misslink", *map(str, arguments)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    return call
