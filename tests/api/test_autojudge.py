"""TREC AutoJudge runs misslink as a judge, by its own command."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from misslink.api.autojudge import MisslinkJudge

try:
    from autojudge_base import Leaderboard, LlmConfigBase, Request
    from autojudge_base.qrels import QrelRow, Qrels
    from autojudge_base.report import Report
except (ImportError, LookupError) as absent:  # it reads word lists of NLTK, which are downloads
    reason = f"autojudge-base cannot be imported: {str(absent).strip(' *')[:80]}"
    pytest.skip(reason, allow_module_level=True)

DOCUMENTS = {
    "fare": {"id": "fare", "text": "The ferry to Dalen costs 12 crowns."},
    "dogs": {"id": "dogs", "text": "Dogs travel free of charge on all boats."},
}
TOPICS = [
    {"request_id": "t1", "title": "What does the ferry to Dalen cost?"},
    {"request_id": "t2", "title": "Do dogs pay on the boats?"},
]
RIGHT = {
    "t1": [{"text": "The ferry to Dalen costs 12 crowns.", "citations": [0]}],
    "t2": [{"text": "Dogs travel free of charge.", "citations": [1]}],
}
WRONG = {
    "t1": [{"text": "The ferry to Dalen costs 40 crowns.", "citations": [0]}],
    "t2": [{"text": "Dogs travel free of charge.", "citations": [0]}],
}


def reports(run_id, answers, documents=DOCUMENTS):
    return [
        {
            "metadata": {"team_id": "us", "run_id": run_id, "narrative_id": topic},
            "references": ["fare", "dogs"],
            "answer": sentences,
            "documents": documents,
        }
        for topic, sentences in answers.items()
    ]


def judged(rows, **settings):
    return MisslinkJudge().judge(
        rag_responses=[Report.model_validate(row) for row in rows],
        rag_topics=[Request.model_validate(topic) for topic in TOPICS],
        llm_config=LlmConfigBase(model="test-judge", **settings.pop("llm", {})),
        nugget_banks=None,
        corpus=None,
        outdir=Path(),
        **settings,
    )


def values(leaderboard):
    return {(e.run_id, e.topic_id): e.values for e in leaderboard.entries}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(module, *arguments, folder):
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_commands_of_autojudge_rank_the_better_run_first(folder):
    runs = {"right": RIGHT, "mixed": {**RIGHT, "t1": WRONG["t1"]}, "wrong": WRONG}
    responses = folder / "responses"
    responses.mkdir()
    for name, answers in runs.items():
        (responses / name).write_text("\n".join(map(json.dumps, reports(name, answers))))
    (folder / "topics.jsonl").write_text("\n".join(map(json.dumps, TOPICS)))
    (folder / "workflow.yml").write_text(
        "judge_class: misslink.api.autojudge.MisslinkJudge\n"
        "create_nuggets: false\ncreate_qrels: false\n"
        "settings: {filebase: board}\njudge_settings: {judge: heuristic}\n"
    )
    given = ["--workflow", "workflow.yml", "--rag-responses", "responses"]
    given += ["--rag-topics", "topics.jsonl", "--out-dir", "out"]
    call("autojudge_base.cli", "run", *given, folder=folder)
    (file,) = (folder / "out").rglob("*.eval.txt")
    board = values(Leaderboard.load(file, format="ir_measures"))
    scores = {key: {name: float(v) for name, v in row.items()} for key, row in board.items()}
    assert scores["right", "all"]["PASSED"] == scores["right", "all"]["FAITHFULNESS"] == 1
    assert scores["wrong", "t1"]["FAITHFULNESS"] == scores["wrong", "t1"]["PASSED"] == 0
    assert scores["wrong", "t2"]["CITATION_CORRECTNESS"] == 0
    assert scores["right", "t2"]["CITATION_CORRECTNESS"] == 1

    pytest.importorskip("autojudge_evaluate", reason="autojudge-evaluate is not installed")
    grades = {"right": 3, "mixed": 2, "wrong": 1}
    truth = "".join(f"{r}\t{t}\tGRADE\t{g}\n" for r, g in grades.items() for t in ("t1", "t2"))
    (folder / "truth").write_text(truth)
    formats = ["--truth-format", "ir_measures", "--eval-format", "ir_measures"]
    measured = ["--eval-measure", "CITATION_CORRECTNESS", "--correlation", "kendall"]
    given = ["--truth-leaderboard", "truth", "--truth-drop-aggregate", "--output", "tau.jsonl"]
    given += [*formats, *measured, file]
    call("autojudge_evaluate", "meta-evaluate", *given, folder=folder)
    assert json.loads((folder / "tau.jsonl").read_text())["kendall"] == 1


def test_what_cannot_be_measured_has_no_row_and_a_missing_report_counts_zero():
    alone = {"t1": RIGHT["t1"]}
    board = values(judged(reports("half", alone), judge="heuristic"))
    assert board["half", "all"]["PASSED"] == 1 / 2
    assert ("half", "t2") not in board
    unread = values(judged(reports("bare", RIGHT, documents=None), judge="heuristic"))
    assert "FAITHFULNESS" not in unread["bare", "t1"]
    assert "FAITHFULNESS" not in unread["bare", "all"]


def test_the_model_of_autojudge_judges_and_qrels_are_labels(judge_server):
    rows = reports("right", RIGHT)
    qrels = Qrels(rows=[QrelRow("t1", "fare", 1), QrelRow("t2", "dogs", 2)])
    llm = {"base_url": judge_server.url, "api_key": "none"}
    board = values(judged(rows, llm=llm, qrels=qrels))
    assert judge_server.answered >= 2
    assert board["right", "all"]["FAITHFULNESS"] == 1
