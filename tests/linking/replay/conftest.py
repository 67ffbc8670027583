"""A real server for the judge of every replay."""

import pytest

from judge_server import JudgeServer
from replayed_app import TEN, forget_stores, towns


@pytest.fixture(autouse=True, scope="module")
def stores_forgotten():
    yield
    forget_stores()


@pytest.fixture(autouse=True)
def server(judge_server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    return judge_server


@pytest.fixture(scope="module")
def missed(stores_forgotten):
    """An app that misses the passage of ten towns, and its run; nothing changes them."""
    with JudgeServer() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        return towns(server, missed=TEN)
