import pytest


@pytest.fixture(autouse=True)
def _no_judge_in_the_environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "SYSTEMONE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
