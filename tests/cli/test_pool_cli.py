"""misslink goldset pool and pool-apply: from two runs to a graded gold set, and what is told."""

import json
from pathlib import Path

import pytest

from honest_judge import fenced
from made_pools import corpus, goldset, grade_all, two_runs
from misslink import evaluate
from misslink.goldset.pooling.pool import read_pool
from misslink.io.goldset import read_goldset
from town import Hashed

RETRIEVER = """
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

class Retriever(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        print("hello from the retriever")
        return [Document("", id="d5"), Document("", id="d0")]

retriever = Retriever()
"""
BASE = ("goldset", "pool", "--goldset", "gold.jsonl", "--corpus", "corpus.jsonl", "--depth", 3)
RUNS = ("--run", "good.trec", "--run", "poor.trec")


@pytest.fixture(autouse=True)
def files():
    passages = [{"id": one.id, "text": one.text} for one in corpus()]
    cases = [{"id": case.id, "question": case.question} for case in goldset().cases]
    for name, rows in (("corpus", passages), ("gold", cases)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        Path(f"{name}.jsonl").write_text(text, encoding="utf-8")
    for run in two_runs():
        lines = [
            f"{case} Q0 {name} {rank} {-rank} {run.name}\n"
            for case, names in run.passages.items()
            for rank, name in enumerate(names, 1)
        ]
        Path(f"{run.name}.trec").write_text("".join(lines), encoding="utf-8")


def told(misslink, *arguments):
    code, out, err = misslink(*arguments, "--json")
    assert code == 0, err
    return json.loads(out)


def test_from_two_runs_to_a_graded_gold_set(misslink):
    drawn = told(misslink, *BASE, *RUNS, "--out", "pool", "--random", 2, "--stratified", 4)
    assert (drawn["questions"], drawn["written"]) == (3, True)
    assert drawn["items"] == drawn["pooled"] + drawn["outside"]
    for strata in drawn["strata"].values():
        assert sum(one["size"] for one in strata) == drawn["corpus"] == 60
    grade_all(Path("pool"), "ada")
    grade_all(Path("pool"), "bob")
    found = told(misslink, "goldset", "pool-apply", "pool", "--out", "graded.jsonl")
    assert found["agreement"]["kappa"]["value"] == 1
    recall = found["recall"]["retrievers"]["good"]["recall@3"]
    assert recall["estimated"]["low"] <= 0.3 <= recall["estimated"]["high"]
    assert recall["of_judged"]["value"] > recall["estimated"]["value"]
    graded = read_goldset("graded.jsonl")
    assert sum(len(case.relevant) for case in graded.cases) == found["merged"] == drawn["items"]
    code, out, _ = misslink("goldset", "pool-apply", "pool", "--out", "graded.jsonl")
    assert code == 0
    assert "weighted kappa" in out
    assert "recall@3" in out
    assert "Based on" in out
    assert "times as many (--random, --stratified)" in " ".join(out.split())


def test_the_same_command_keeps_the_pool_and_another_is_refused(misslink):
    told(misslink, *BASE, *RUNS, "--out", "pool")
    assert told(misslink, *BASE, *RUNS, "--out", "pool")["written"] is False
    code, _, err = misslink(*BASE, *RUNS, "--out", "pool", "--seed", 3)
    assert code == 2
    assert "contains another pool" in err


def test_a_live_retriever_may_talk_and_keeps_stdout_clean(misslink, imports_forgotten):
    Path("app.py").write_text(RETRIEVER, encoding="utf-8")
    drawn = told(misslink, *BASE, "--run", "good.trec", "--retriever", "app.py:retriever",
                 "--out", "pool")  # fmt: skip
    assert drawn["retrievers"] == {"good": 3, "app.py:retriever": 3}


def test_bands_go_by_an_embedding_on_request(misslink, imports_forgotten):
    Path("model.py").write_text(
        "from langchain_core.embeddings import DeterministicFakeEmbedding\n"
        "model = DeterministicFakeEmbedding(size=8)\n",
        encoding="utf-8",
    )
    near = told(misslink, *BASE, *RUNS, "--out", "near", "--embedding", "model.py:model")
    by_words = told(misslink, *BASE, *RUNS, "--out", "by_words")
    assert near["bands_by"] == "DeterministicFakeEmbedding"
    assert by_words["bands_by"] == "bm25"
    assert Path("near/pool.jsonl").read_bytes() != Path("by_words/pool.jsonl").read_bytes()
    assert (
        told(misslink, *BASE, *RUNS, "--out", "near", "--embedding", "model.py:model")["written"]
        is False
    )


def test_where_no_pool_can_lie_no_retriever_is_asked(misslink, imports_forgotten):
    asked = RETRIEVER.replace('print("', 'open("asked", "w").close(); print("')
    Path("app.py").write_text(asked, encoding="utf-8")
    code, _, err = misslink(*BASE, "--retriever", "app.py:retriever", "--out", ".")
    assert code == 2
    assert "contains other files" in err
    assert not Path("asked").exists()
    assert misslink(*BASE, "--retriever", "app.py:retriever", "--out", "pool")[0] == 0
    assert Path("asked").exists()


@pytest.mark.slow
def test_a_judge_grades_on_request_and_is_measured(misslink, judge_server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)

    def grader(body):
        texts = dict(fenced(body))
        near = texts["question"].rstrip("?").split()[-1] in texts["passage"]
        return {"grade": "relevant" if near else "not_relevant"}

    judge_server.script = grader
    options = (*BASE, *RUNS, "--out", "pool", "--prelabel", "openai:test-judge")
    drawn = told(misslink, *options)
    assert drawn["prelabels"]["labelled"] == drawn["items"]
    grade_all(Path("pool"), "ada", upto=8)
    kept = told(misslink, "goldset", "pool-apply", "pool", "--out", "kept.jsonl")
    assert kept["merged"] == kept["prelabels"]["n"] == 8
    code, out, _ = misslink(
        "goldset", "pool-apply", "pool", "--out", "all.jsonl", "--accept-prelabels"
    )
    assert code == 0
    assert "and annotators, weighted kappa over 8 passages" in out
    assert f"{drawn['items'] - 8} of its grades were used" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*BASE, "--out", "pool"), "No retriever is given"),
        ((*BASE, "--run", "gone.trec", "--out", "pool"), "gone.trec: there is no such file"),
        ((*BASE, *RUNS, "--out", "."), "contains other files"),
        ((*BASE, *RUNS, "--out", "gold.jsonl"), "gold.jsonl"),
        ((*BASE, *RUNS, "--out", "pool", "--prelabel", "heuristic"), "cannot grade passages"),
        ((*BASE, "--run", "corpus.jsonl", "--out", "pool"), "corpus.jsonl"),
        (("goldset", "pool-apply", "gone", "--out", "g.jsonl"), "Folder not found"),
        (("goldset", "pool-apply", ".", "--out", "x/g.jsonl"), "This is not a pool"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(misslink, arguments, message):
    code, out, err = misslink(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert not Path("pool").exists()


def test_a_file_that_is_there_is_not_written_over_nor_one_of_the_pool(misslink):
    told(misslink, *BASE, *RUNS, "--out", "pool")
    grade_all(Path("pool"), "ada")
    before = Path("gold.jsonl").read_bytes()
    for out in ("gold.jsonl", "pool/gold.jsonl", "pool/labels/ada.jsonl", "pool/new/g.jsonl"):
        code, _, err = misslink("goldset", "pool-apply", "pool", "--out", out)
        assert code == 2, err
    assert Path("gold.jsonl").read_bytes() == before


def test_annotate_opens_a_pool_and_exports_it_but_takes_no_option_of_a_run(misslink):
    told(misslink, *BASE, *RUNS, "--out", "pool")
    code, _, err = misslink("annotate", "pool", "--metric", "faithfulness")
    assert code == 2
    assert "are for runs" in err
    code, _, err = misslink("annotate", "pool", "--export", "grades.csv")
    assert code == 2
    assert "No annotator has labelled this pool" in err
    grade_all(Path("pool"), "ada", upto=3)
    assert told(misslink, "annotate", "pool", "--export", "grades.csv")["labels"] == 3
    code, out, _ = misslink("annotate", "pool", "--adjudicate")
    assert code == 0
    assert "misslink goldset pool-apply pool --out graded.jsonl" in out


CORPUS = [
    {"id": "times", "text": "The first ferry to Holm leaves at seven from the old harbour."},
    {"id": "bikes", "text": "A bicycle costs four euros for each crossing."},
    {"id": "cafe", "text": "The cafe on board sells soup and coffee."},
]
TRACES = [
    {
        "question": "When does the first ferry leave?",
        "retrieved": CORPUS[:1],
        "answer": "At seven.",
    },
    {
        "question": "How much is a bicycle?",
        "retrieved": CORPUS[2:],
        "answer": "A bicycle costs ten euros for each crossing.",
    },
]


def test_a_first_gold_set_comes_from_what_a_search_found(misslink):
    options = {"traces": TRACES, "corpus": CORPUS, "cache": None}
    run = evaluate(**options, embedding="none", out="run")
    assert "searched_by_words" in {note["code"] for note in run.summary["warnings"]}
    drawn = told(misslink, "goldset", "from-run", "run", "--out", "pool")
    assert (drawn["items"], drawn["inferred"], drawn["written"]) == (3, 1, True)
    pool = read_pool(Path("pool"))
    assert [item.passage_id for item in pool.items] == ["bikes", "cafe", "times"]
    assert (
        "3 passages to grade, first 1" in misslink("goldset", "from-run", "run", "--out", "pool")[1]
    )
    grade_all(Path("pool"), "ada", lambda _: 1, upto=1)
    told(misslink, "goldset", "pool-apply", "pool", "--out", "first.jsonl")
    cases = {case.question: case for case in read_goldset("first.jsonl").cases}
    assert set(cases["How much is a bicycle?"].relevant) == {"bikes"}
    assert not cases["When does the first ferry leave?"].relevant
    by_meaning = evaluate(**options, embedding=Hashed())
    assert "searched_by_words" not in {note["code"] for note in by_meaning.summary["warnings"]}
    ((miss,),) = (link.missed for link in by_meaning.links if link.basis == "inferred")
    assert (miss.passage_id, miss.measured["dense_rank"]) == ("bikes", 1)
