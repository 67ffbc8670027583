"""What tests of several rooms share."""

from __future__ import annotations

import os

import pytest

from judge_server import JudgeServer

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")


@pytest.fixture
def judge_server():
    """A running JudgeServer; give it a `script` to misbehave."""
    with JudgeServer() as server:
        yield server
