"""A real server for the judge of every replay."""

import pytest

from replayed_app import forget_stores


@pytest.fixture(autouse=True)
def server(judge_server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    yield judge_server
    forget_stores()
