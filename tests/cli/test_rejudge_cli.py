"""`misslink rejudge` from the shell."""

import json
from pathlib import Path

import pytest

from judged_app import JUDGE, app_was_asked, short_cases


@pytest.mark.slow
def test_a_run_is_judged_again_by_a_server_without_its_app(misslink, judge_server, monkeypatch):
    short_cases(4)
    code, _, err = misslink("evaluate", "app.py:app", "--goldset", "gold.jsonl", "--out", "main")
    assert code == 0, err
    Path("app.py").unlink()
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    arguments = ("rejudge", "main", "--judge", JUDGE, "--out", "again")
    code, out, err = misslink(*arguments, "--dry-run", "--json", "--sample", 3)
    assert code == 0, err
    assert 3 <= json.loads(out)["calls"] < 4 * 2
    assert judge_server.calls == []
    assert not Path("again").exists()
    code, out, err = misslink(*arguments, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert (document["judge"], document["cases"], app_was_asked()) == (JUDGE, 4, 4)
    assert {"retrieval", "generation", "answer", "link", "coverage", "usage"} <= document.keys()
    code, out, err = misslink(*arguments)
    assert code == 0, err
    assert f"The same answers by {JUDGE}, against heuristic in main (4 of 4 cases):" in out
    told = ("rejudge", "main", "--judge", JUDGE, "--later", "again", "--out", "told")
    code, out, err = misslink(*told)
    assert code == 0, err
    assert "fully_faithful: the app changed it by 0.00" in out, out
    code, out, err = misslink(*told, "--dry-run", "--json")
    assert code == 0, err
    assert json.loads(out)["calls"] == 0, out  # all replies are in the cache
    code, out, _ = misslink("compare", "main", "again")
    assert code == 0
    assert "have other judges, so neither wins" in out


def test_mistakes_are_one_sentence(misslink):
    for arguments in (
        ("rejudge", "nowhere", "--judge", "heuristic", "--out", "again"),
        ("rejudge", "nowhere", "--judge", "heuristic"),
        ("rejudge", "nowhere", "--out", "again"),
    ):
        code, out, err = misslink(*arguments)
        assert (code, out) == (2, "")
        assert "Traceback" not in err
