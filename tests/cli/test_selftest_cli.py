"""`misslink selftest` from the shell."""

import json
import re
from pathlib import Path

import pytest

from good_runs import K, good_run, good_traces
from judged_app import JUDGE


@pytest.mark.slow
def test_a_run_gets_its_selftest_and_the_gate_reads_it(misslink):
    good_run(15, out="run")
    Path("gates.yaml").write_text(
        "gates:\n"
        "  - {name: owners, metric: selftest.owner_right, threshold: 0.7}\n"
        "  - {name: alarms, metric: selftest.false_alarm, at_most: 0.4}\n"
        "  - {name: found, metric: selftest.found, threshold: 0.999}\n",
        encoding="utf-8",
    )
    code, out, err = misslink("gate", "run", "--criteria", "gates.yaml")
    assert code == 1, err
    assert "misslink selftest" in out
    code, out, err = misslink("selftest", "run", "--judge", "heuristic", "--n", 3)
    assert code == 0, err
    assert out.splitlines()[0].startswith(("You can trust", "Use this judge", "Do not trust"))
    document = json.loads(Path("run/selftest.json").read_text(encoding="utf-8"))
    assert document["kinds"]["refusal"]["n"] == 3
    code, out, err = misslink("gate", "run", "--criteria", "gates.yaml", "--json")
    gates = {gate["name"]: gate["passed"] for gate in json.loads(out)["gates"]}
    assert (code, gates) == (1, {"owners": True, "alarms": True, "found": False}), err
    code, out, err = misslink("selftest", "run", "--judge", "heuristic", "--n", 1, "--json", "--out", "other")  # fmt: skip
    assert code == 0, err
    assert json.loads(out) == json.loads(Path("other/selftest.json").read_text(encoding="utf-8"))


@pytest.mark.slow
def test_a_forecast_makes_no_call(misslink, judge_server, monkeypatch):
    good_run(6, out="run")
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    code, out, err = misslink("selftest", "run", "--judge", JUDGE, "--n", 1, "--dry-run", "--json")
    assert code == 0, err
    assert json.loads(out)["calls"] >= 20
    assert judge_server.calls == []
    assert not Path("run/selftest.json").exists()
    code, out, err = misslink(
        "selftest", "run", "--judge", JUDGE, "--n", 1, "--judge-option", "max-calls=5", "--json"
    )
    assert code == 0, err
    document = json.loads(out)
    assert document["not_judged"] >= 15
    assert len(judge_server.calls) <= 5 + 1  # one finds out what the server supports


@pytest.mark.slow
def test_an_app_is_evaluated_first(misslink):
    gold, traces = good_traces(6)
    Path("gold.jsonl").write_text(
        "".join(case.model_dump_json(exclude_defaults=True) + "\n" for case in gold),
        encoding="utf-8",
    )
    told = {
        case.question: {
            "answer": trace.answer,
            "retrieved": [{"id": p.id, "text": p.text} for p in trace.retrieved[:K]],
        }
        for case, trace in zip(gold, traces, strict=True)
    }
    Path("told.json").write_text(json.dumps(told), encoding="utf-8")
    Path("app.py").write_text(
        "import json\nTOLD = json.load(open('told.json', encoding='utf-8'))\n"
        "def app(question):\n    return TOLD[question]\n",
        encoding="utf-8",
    )
    code, _, err = misslink(
        *("selftest", "app.py:app", "--goldset", "gold.jsonl", "--judge", "heuristic"),
        *("--n", 1, "--out", "run"),
    )
    assert code == 0, err
    assert json.loads(Path("run/selftest.json").read_text(encoding="utf-8"))["cases"] == 6
    assert Path("run/links.jsonl").is_file()


def test_mistakes_are_one_sentence(misslink):
    good_run(4, out="small")
    for arguments in (
        ("selftest", "nowhere", "--judge", "heuristic"),
        ("selftest", "small", "--judge", "heuristic"),
        ("selftest", "small"),
        ("selftest", "app.py:app", "--judge", "heuristic"),
        ("selftest", "small", "--judge", "heuristic", "--n", 0),
        ("selftest", "app.py:none", "--goldset", "gold.jsonl", "--judge", "heuristic"),
        ("selftest", "app.py:x", "--goldset", "g.jsonl", "--judge", "heuristic", "--dry-run"),
    ):
        code, out, err = misslink(*arguments)
        assert (code, out) == (2, "")
        assert "Traceback" not in err


def test_a_gold_set_of_the_settings_makes_no_app_of_a_run(misslink):
    good_run(8, out="run")
    Path("misslink.toml").write_text('goldset = "gold.jsonl"\n', encoding="utf-8")
    code, out, err = misslink("selftest", "run", "--judge", "heuristic", "--n", 1, "--json")
    assert code == 0, err
    assert json.loads(out)["cases"] > 0


@pytest.mark.slow
def test_an_evaluation_by_the_heuristic_judge_plants_a_few(misslink):
    gold, traces = good_traces(9)
    for name, rows in (("gold.jsonl", gold), ("traces.jsonl", traces)):
        text = "".join(row.model_dump_json(exclude_defaults=True) + "\n" for row in rows)
        Path(name).write_text(text, encoding="utf-8")
    arguments = ("evaluate", "--traces", "traces.jsonl", "--goldset", "gold.jsonl", "--out", "run")
    code, out, err = misslink(*arguments)
    assert code == 0, err
    (line,) = (line for line in out.splitlines() if line.startswith("Selftest: "))
    found, planted, alarms, changed = map(int, re.findall(r"\d+", line))
    assert planted + changed >= 20
    assert found >= planted - 3
    assert alarms <= 2
    assert not Path("run/selftest.json").exists()
    code, out, _ = misslink(*arguments, "--no-selftest")
    assert code == 0
    assert "Selftest" not in out


@pytest.mark.slow
def test_the_gate_does_not_decide_by_the_selftest_of_another_judge(
    misslink, judge_server, monkeypatch
):
    good_run(6, out="run")
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    code, _, err = misslink("selftest", "run", "--judge", JUDGE, "--n", 1)
    assert code == 0, err
    Path("gates.yaml").write_text(
        "gates: [{name: owners, metric: selftest.owner_right, threshold: 0.1}]", encoding="utf-8"
    )
    code, out, err = misslink("gate", "run", "--criteria", "gates.yaml")
    assert code == 1, err
    assert f"the selftest is of the judge {JUDGE}" in " ".join(out.split())
