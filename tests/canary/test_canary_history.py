"""The history enters whole runs, compares like with like, and tells each alarm once."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from canary_runs import finished, hung, result
from misslink.canary.history import HISTORY_FORMAT, CanaryHistory
from misslink.canary.report import run_parts
from misslink.canary.results import save_pending_run
from misslink.errors import InputError
from misslink.render.table import parts_markdown


@pytest.fixture
def path(tmp_path):
    return tmp_path / "canary.sqlite"


def enter(path, *runs):
    with CanaryHistory(path) as history:
        return [history.enter(run)[0] for run in runs]


@pytest.mark.slow
def test_an_alarm_comes_with_its_suspect_and_recovers(path):
    steady = [finished(n) for n in range(12)]
    edited = {"d1": "y", "d2": "z"}
    bad = [finished(12 + n, ill=range(8), documents=edited) for n in range(3)]
    good = [finished(15 + n, documents=edited) for n in range(40)]
    documents = enter(path, *steady, *bad, *good)
    assert [one["status"] for one in documents[8:13]] == ["learning", "ok", "ok", "ok", "alarm"]
    health = next(one for one in documents[12]["alarms"] if one["measure"] == "health")
    assert health["run"] == 13
    assert health["suspects"] == ["1 document added (d2); 1 document edited (d1)"]
    assert documents[12]["changes"]["added"] == ["d2"]
    assert documents[13]["suspects"] == []  # nothing changed after that
    assert documents[-1]["status"] == "ok"


def test_degraded_canaries_are_named_with_their_owner_and_what_was(path):
    (_, now) = enter(path, finished(0), finished(1, ill=(3,)))
    assert now["degraded"] == [
        {
            "id": "c3",
            "owner": "team 1",
            "before": "the first expected passage is at rank 1",
            "now": "no expected passage",
        }
    ]


@pytest.mark.slow
def test_news_is_kept_for_the_webhook_once_an_alarm_and_once_a_recovery(path):
    runs = [finished(n, notify=True) for n in range(12)]
    runs += [finished(12 + n, ill=range(8), notify=True) for n in range(6)]
    runs += [finished(18 + n, notify=True) for n in range(40)]
    enter(path, *runs)
    with CanaryHistory(path) as history:
        letters = list(history.letters("main").values())
    told = [(one["event"], news["measure"]) for one in letters for news in one["news"]]
    assert sorted(told) == [
        ("alarm", "coverage"),
        ("alarm", "health"),
        ("recovered", "coverage"),
        ("recovered", "health"),
    ]


def test_without_a_webhook_nothing_waits(path):
    enter(path, *(finished(n) for n in range(12)), finished(12, ill=range(10)))
    with CanaryHistory(path) as history:
        assert history.letters("main") == {}


def test_an_app_that_is_gone_is_told_once_and_is_no_zero(path):
    def gone(number):
        return finished(number, results=tuple(hung(f"c{n}") for n in range(10)), notify=True)

    documents = enter(path, finished(0, notify=True), gone(1), gone(2))
    assert documents[1]["health"]["value"] is None
    assert documents[1]["errors"] == 10
    with CanaryHistory(path) as history:
        (letter,) = history.letters("main").values()
    assert (letter["event"], letter["run"]) == ("unreachable", 2)


def test_only_runs_of_the_same_questions_are_compared(path):
    enter(path, *(finished(n) for n in range(12)), finished(12, ill=(1, 2, 3, 4), key="other"))
    with CanaryHistory(path) as history:
        assert [reading.run for reading in history.comparable("main")] == [13]
        assert history.runs("main", 1)[0]["status"] == "learning"


def test_an_accepted_change_is_learnt_anew(path):
    ill = (1, 2, 3, 4)
    runs = [finished(n) for n in range(12)]
    runs += [*(finished(12 + n, ill=ill) for n in range(8)), finished(20, ill=ill, accept=True)]
    runs += [finished(21 + n, ill=ill) for n in range(12)]
    documents = enter(path, *runs)
    assert documents[19]["status"] == "alarm"
    assert documents[20]["status"] == "learning"
    assert documents[-1]["status"] == "ok"
    assert documents[20]["degraded"] == []


def test_series_of_other_names_are_apart(path):
    enter(path, finished(0), finished(1, name="other", ill=(2,)))
    with CanaryHistory(path) as history:
        assert history.names() == ("main", "other")
        assert history.runs("other")[0]["degraded"] == []


def test_an_unknown_corpus_is_no_change(path):
    (_, blind, again) = enter(
        path,
        finished(0),
        finished(1, fingerprint=None),
        finished(2, documents={"d1": "x"}),
    )
    assert blind["changes"] is None
    assert again["changes"]["sentence"] == ""


def test_results_come_back_as_they_were(path):
    run = finished(0, results=(result("a\u2028<b>", None, score=0.25), hung("b")))
    enter(path, run)
    with CanaryHistory(path) as history:
        assert history.results(1) == run.results


def test_a_history_of_a_newer_misslink_is_refused(path):
    enter(path, finished(0))
    with sqlite3.connect(path) as file:
        file.execute(f"PRAGMA user_version = {HISTORY_FORMAT.version + 1}")
    with pytest.raises(InputError, match="written by a newer misslink"):
        CanaryHistory(path)


@pytest.mark.parametrize("content", [b"no database, but text of some length" * 9, b"\0" * 4096])
def test_what_is_no_history_is_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(InputError, match="choose another --history"):
        CanaryHistory(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_left_alone(path):
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE theirs (x)")
    with pytest.raises(InputError, match="another program's database"):
        CanaryHistory(path)


def test_a_run_kept_beside_is_entered_before_the_next_and_once(path):
    enter(path, finished(0))
    waiting = finished(1, ill=(3,))
    kept = save_pending_run(waiting, path)
    text = kept.read_text(encoding="utf-8")
    with CanaryHistory(path) as history:
        assert history.enter(finished(2))[1] == 1
    assert not kept.exists()
    kept.write_text(text, encoding="utf-8")  # as if killed before it could be removed
    with CanaryHistory(path) as history:
        history.enter(finished(3))
        runs = history.runs("main")
        assert history.results(2) == waiting.results
    assert [run["at"][11:13] for run in runs] == ["00", "01", "02", "03"]
    assert [one["id"] for one in runs[1]["degraded"]] == ["c3"]


def test_a_kept_run_that_cannot_be_read_is_left_and_told(path, caplog):
    broken = path.with_name(f"{path.name}.0.pending.json")
    broken.write_text('{"name": ', encoding="utf-8")
    enter(path, finished(0))
    assert broken.exists()
    assert "is not a saved run" in caplog.text


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from canary_runs import finished
from misslink.canary import history
whole = history.run_document
def die(*given):
    os.kill(os.getpid(), signal.SIGKILL)
history.run_document = die
with history.CanaryHistory(Path(sys.argv[1])) as file:
    file.enter(finished(1))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_process_killed_while_it_enters_a_run_leaves_no_half_of_it(path):
    enter(path, finished(0))
    here = str(Path(__file__).parents[1] / "builders")
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), here], env=dict(os.environ), check=False
    )
    assert ended.returncode == -signal.SIGKILL
    with CanaryHistory(path) as history:
        assert len(history.runs("main")) == 1
        assert history.results(2) == ()
        assert history.enter(finished(2))[0]["run"] == 2


def test_the_history_keeps_neither_questions_nor_addresses(path):
    enter(
        path,
        *(finished(n, notify=True) for n in range(12)),
        finished(12, ill=range(9), notify=True),
    )
    content = b"".join(one.read_bytes() for one in path.parent.iterdir())
    assert b"http" not in content


def test_a_document_is_json_without_nan(path):
    (document,) = enter(path, finished(0, results=(hung("a"),)))
    json.dumps(document, allow_nan=False)
    assert document["latency_s"] == {"median": None, "p95": None, "n": 0}


def test_an_accepted_change_closes_its_alarms_and_says_so_once(tmp_path):
    with CanaryHistory(tmp_path / "canary.sqlite") as history:
        for number in range(12):
            history.enter(finished(number, notify=True))
        history.enter(finished(12, ill=range(8), notify=True))
        after, _ = history.enter(finished(13, ill=range(8), notify=True, accept=True))
        history.enter(finished(14, ill=range(8), notify=True, accept=True))
        told = list(history.letters("main").values())
    assert (after["status"], after["alarms"]) == ("learning", [])
    assert [one["event"] for one in told] == ["alarm", "accepted"]
    closed = {(news["measure"], news["run"], news["state"]) for news in told[1]["news"]}
    assert closed == {(news["measure"], news["run"], "accepted") for news in told[0]["news"]}


def test_a_loss_of_many_canaries_is_news_in_the_second_run(path):
    documents = enter(
        path, finished(0, count=60, notify=True), finished(1, ill=range(16), count=60)
    )
    assert [document["status"] for document in documents] == ["learning", "alarm"]
    (alarm,) = documents[1]["alarms"]
    assert (alarm["chart"], alarm["run"], alarm["shift"]["n"]) == ("paired", 2, 60)
    assert len(documents[1]["degraded"]) == 16


def test_a_canary_that_fails_from_the_first_run_is_reported_while_the_charts_learn(path):
    (first, *_, last) = enter(path, *(finished(n, ill=(3,)) for n in range(10)))
    assert first["failing"] == [{"id": "c3", "owner": "team 1", "now": "no expected passage"}]
    assert first["degraded"] == []
    assert any("1 canary fails before the normal state is learned: c3" in n for n in first["notes"])
    assert "| c3 | team 1 | failing | no expected passage |" in parts_markdown(run_parts(first))
    assert last["status"] == "ok"
    assert not any("is learned" in note for note in last["notes"])
