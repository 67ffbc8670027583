"""A saved run is judged again without its app, and then two runs are of one judge."""

import json
import shutil
from contextlib import chdir
from pathlib import Path

import pytest

import misslink
from fake_judge import FakeJudge, answer_to
from judged_app import app_was_asked, short_cases
from misslink.comparison.compare_runs import compare_runs
from misslink.comparison.pairing import NamedRun
from misslink.errors import InputError
from misslink.gates.baseline_diff import read_baseline
from misslink.gates.criteria import read_criteria
from misslink.gates.decision import decide_gates
from misslink.io import read_run
from misslink.judge import Reply
from misslink.judge.config import JudgeConfig
from misslink.pipeline.rejudge import draw_cases
from misslink.pipeline.summary import separate_change
from misslink.types import Verdict

COUNT = 12


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A run of an app that is gone, in ./main."""
    folder = tmp_path_factory.mktemp("saved")
    with chdir(folder):
        short_cases(COUNT)
        misslink.evaluate("app.py:app", "gold.jsonl", out="main", cache=None)
        assert app_was_asked() == COUNT
        Path("app.py").unlink()
        Path("gold.jsonl").unlink()
    return folder


@pytest.fixture(autouse=True)
def _saved_run(saved, tmp_path, monkeypatch):
    """A copy of it for each test."""
    shutil.copytree(saved, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def strict(ask):
    """A reply that supports no claim."""
    answer = ask.inputs["answer"] if ask.name == "examination" else ""
    spans = [f"{part.strip().rstrip('.')}." for part in answer.split(".") if part.strip()]
    claims = [{"span": span, "claim": span, "support": "unsupported"} for span in spans]
    return Reply(answer_to(ask, **({"claims": claims} if spans else {})), "by hand")


@pytest.mark.slow
def test_the_same_judge_finds_the_same():
    main, again = read_run("main"), misslink.rejudge("main", judge="heuristic", out="again")
    assert app_was_asked() == COUNT
    for part in ("cases", "traces", "verdicts", "links"):
        assert getattr(again, part) == getattr(main, part)
        one, two = (Path(folder, f"{part}.jsonl").read_text() for folder in ("main", "again"))
        assert one == two
    same = ("retrieval", "generation", "answer", "link", "diagnosis", "headline", "hashes", "k")
    assert {name: again.summary[name] for name in same} == {n: main.summary[n] for n in same}
    assert (again.manifest["app"], again.manifest["work"]) == ("app.py:app", main.manifest["work"])
    assert again.manifest["rejudged"] == "main"


def test_what_the_judge_changed_is_measured_over_the_same_answers():
    again = misslink.rejudge("main", judge=FakeJudge(strict, name="strict"), cache=None)
    about = again.summary["rejudged"]
    assert (about["run"], about["judge"], about["cases"], about["of"]) == (
        "main",
        "heuristic",
        COUNT,
        COUNT,
    )
    difference = about["difference"]["faithfulness"]
    assert difference["n"] == COUNT
    assert difference["value"] < 0
    compared = compare_runs([NamedRun("main", read_run("main")), NamedRun("again", again)])
    assert compared["metrics"]["faithfulness"]["difference"]["value"] == difference["value"]
    assert compared["metrics"]["mrr"]["difference"]["value"] == 0


def test_a_gate_decides_once_both_runs_are_of_one_judge(tmp_path):
    """Today's run is of a new judge; the baseline is judged again, or a part of it is."""
    judge = FakeJudge(strict, name="strict")
    today = misslink.rejudge("main", judge=judge, out="today", cache=None)
    worse = today.verdicts
    assert worse
    criteria = tmp_path / "c.yaml"
    criteria.write_text("gates: [{metric: faithfulness, regression_max: 0.1}]", encoding="utf-8")

    def against(folder):
        return decide_gates(today, read_criteria(criteria), read_baseline(folder), folder="today")

    assert against("main").outcomes[0].reasons[0].code == "judge_differs"
    part = misslink.rejudge("main", judge=judge, out="part", sample=5, cache=None)
    assert len(part.cases) == 5
    assert (part.summary["rejudged"]["cases"], part.summary["rejudged"]["of"]) == (5, COUNT)
    decided = against("part")
    assert decided.passed
    assert decided.comparable == {"judge": True, "questions": 5, "of": COUNT, "labels": True}


def test_samples_are_paired_and_nested():
    ids = [f"case-{n}" for n in range(200)]
    small, large = draw_cases(ids, 20, 1), draw_cases(ids, 50, 1)
    assert len(small) == 20
    assert small < large
    assert draw_cases(ids[::-1], 20, 1) == small
    assert draw_cases(ids, 20, 2) != small
    shared = frozenset(ids[:150])  # another run has other cases beside these
    assert small & shared <= draw_cases([*ids[:150], "new"], 20, 1)
    assert draw_cases(ids, None, 1) == frozenset(ids)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"judge": "none"}, "no judge is named"),
        ({"judge": "heuristic", "out": "main"}, "this is the run itself"),
        ({"judge": "heuristic", "sample": 0}, "--sample is 0"),
    ],
)
def test_what_cannot_be_judged_again_is_refused(options, message):
    before = Path("main/manifest.json").read_bytes()
    with pytest.raises(InputError, match=message):
        misslink.rejudge("main", **options)
    assert Path("main/manifest.json").read_bytes() == before
    with pytest.raises(InputError, match="not a run folder"):
        misslink.rejudge("nowhere", judge="heuristic")


def test_an_interrupted_rejudge_is_replaced_and_another_run_is_not():
    misslink.rejudge("main", judge="heuristic", out="again", sample=3)
    misslink.rejudge("main", judge="heuristic", out="again", sample=3)
    with pytest.raises(InputError):
        misslink.rejudge("main", judge="heuristic", out="again", sample=4)
    assert json.loads(Path("again/summary.json").read_text())["cases"] == 3


def _later_run(answer, judge):
    """A run of the same questions by an app that answers otherwise."""
    main = read_run("main")
    traces = [trace.model_copy(update={"answer": answer(trace)}) for trace in main.traces]
    return misslink.evaluate(goldset=main.cases, traces=traces, judge=judge, cache=None)


def _blue(trace):
    return trace.answer.split(".")[0] + "."


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "later", "judge", "larger", "cases"),
    [
        (_blue, _blue, FakeJudge(strict, name="strict"), "judge", 8),
        (_blue, lambda _: "Ships sail on rivers of gold.", "heuristic", "app", 8),
        (_blue, _blue, "heuristic", None, COUNT),
    ],
)
def test_a_sample_grows_until_app_and_judge_are_told_apart(before, later, judge, larger, cases):
    """Of 4, 8 and 12 cases, 8 that all differ are the first with p under a third of 5%."""
    old = _later_run(before, "heuristic")
    new = _later_run(later, judge)
    again = misslink.rejudge(old, judge=judge, later=new, sample=4, out="again")
    about = read_run("again").summary["rejudged"]
    assert about == again.summary["rejudged"]
    assert (about["separation"]["larger"], about["cases"]) == (larger, cases)
    assert about["separation"]["metric"] == "fully_faithful"
    parts = {part: about["separation"][part]["value"] for part in ("app", "judge")}
    expected = {"app": 0, "judge": 0} | ({larger: -1} if larger else {})
    assert parts == expected


def test_a_run_of_another_judge_or_other_questions_cannot_be_set_against():
    other = misslink.rejudge("main", judge=FakeJudge(strict, name="strict"), cache=None)
    with pytest.raises(InputError, match="did not judge the run it is set against"):
        misslink.rejudge("main", judge="heuristic", later=other)
    questions = [case.model_copy(update={"question": "Why?"}) for case in other.cases]
    with pytest.raises(InputError, match="no question in common"):
        misslink.rejudge(
            "main", judge="heuristic", later=other.model_copy(update={"cases": questions})
        )
    with pytest.raises(InputError, match="needs a cache"):
        misslink.rejudge("main", judge="heuristic", later=other, cache=None)


def test_limits_hold_over_all_samples_together():
    judge = FakeJudge(strict, name="strict")
    later = misslink.rejudge("main", judge=judge, cache=None)
    asked, most = len(judge.asked), 7
    again = misslink.rejudge(
        "main", judge=judge, later=later, sample=2, judge_config=JudgeConfig(max_calls=most)
    )
    assert len(judge.asked) - asked <= most
    assert again.summary["rejudged"]["separation"]["larger"] is None


def _verdicts(values):
    fields = {"metric": "faithfulness", "status": "scored", "judge": "j"}
    return [
        Verdict(case_id=str(n), value=float(good), label=bool(good), **fields)
        for n, good in enumerate(values)
    ]


def test_parts_that_cancel_are_not_ranked():
    """The judge takes 30 answers, the app gives 30 others back: none of both is the larger part."""
    before, again, after = [1] * 40 + [0] * 40, [1] * 10 + [0] * 70, [1] * 10 + [0] * 40 + [1] * 30
    parts = separate_change(*map(_verdicts, (before, again, after)), level=0.95, seed=0)
    assert parts.gap.low > 0
    assert parts.larger is None
