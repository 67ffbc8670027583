import contextlib
import io
import json
import re
import shutil
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import misslink
from misslink.cli.diagnose import diagnose
from misslink.cli.run_summary import print_run_summary
from misslink.cli.whatif import print_whatif, whatif
from misslink.errors import AppUnreachableError, InputError
from misslink.io import read_run
from misslink.report.fixes import count_fixes
from misslink.report.json_document import build_document
from misslink.report.page import build_page, render_markdown

TOWN = [
    "The ferry to Holm leaves the old harbour at seven.",
    "The museum of clocks is closed on Mondays.",
    "The bakery in Mill Lane opens at five.",
    "The library lends ten books for a month.",
    "The tower may be climbed in summer only.",
    "The market sells fish on Fridays.",
]
ASKED = [
    "When does the ferry to Holm leave?",
    "When is the museum of clocks closed?",
    "When does the bakery in Mill Lane open?",
    "How many books does the library lend?",
]
APP = """
from pathlib import Path
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.runnables import RunnableLambda

class Lengths(Embeddings):
    # no two passages are equally far from a question: an index may put such in any order
    model_name = "lengths"
    def embed_documents(self, texts):
        return [[float(len(text)), text.count("s") / 8] for text in texts]
    def embed_query(self, text):
        return [len(text) - 0.25, 0.0]

TEXTS = Path("town.txt").read_text(encoding="utf-8").splitlines()
store = Chroma("town", Lengths())
store.add_documents([Document(page_content=t, id=f"p{n}") for n, t in enumerate(TEXTS)])
retriever = store.as_retriever(search_kwargs={"k": 2})

def answer(question):
    found = retriever.invoke(question)
    return {"answer": found[0].page_content, "retrieved": found}

chain = RunnableLambda(answer)
"""


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A run folder over traces whose retriever finds the needed passage in one of four cases."""
    folder = tmp_path_factory.mktemp("town")
    gold, traces = [], []
    for n, question in enumerate(ASKED):
        gold.append({"id": f"c{n}", "question": question, "relevant": [f"p{n}"]})
        numbers = [n, 5] if n == 0 else [4, 5]
        listed = [{"id": f"p{m}", "text": TOWN[m]} for m in numbers]
        answer = TOWN[n] if n < 2 else "It is run by nine wardens with red hats."
        traces.append({"case_id": f"c{n}", "retrieved": listed, "answer": answer})
    with contextlib.chdir(folder):
        write("gold.jsonl", gold)
        write("traces.jsonl", traces)
        write("corpus.jsonl", [{"id": f"p{n}", "text": text} for n, text in enumerate(TOWN)])
        Path("town.txt").write_text("\n".join(TOWN), encoding="utf-8")
        Path("app.py").write_text(APP, encoding="utf-8")
        files = {"goldset": "gold.jsonl", "traces": "traces.jsonl"}
        misslink.evaluate(**files, judge="heuristic", out="run", k=2, cache=None)
    return folder


@pytest.fixture
def town(evaluated, tmp_path):
    """A copy of it for each test."""
    shutil.copytree(evaluated, tmp_path, dirs_exist_ok=True)
    return tmp_path


def write(name, rows):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    Path(name).write_text(lines, encoding="utf-8")


def run(*arguments):
    app = typer.Typer()
    app.command()(whatif)
    return CliRunner().invoke(app, ["run", *arguments])


def document(*arguments):
    found = run(*arguments, "--json")
    assert found.exception is None, found.output
    return json.loads(found.stdout)


@pytest.mark.usefixtures("town")
def test_one_json_document_is_printed_and_kept_in_the_run_folder():
    found = document("--corpus", "corpus.jsonl", "--options", "bm25")
    (option,) = found["options"]
    assert option["name"] == "bm25"
    assert option["metrics"]["recall@2"]["b"]["value"] == 1
    assert option["newly_retrieved"] == 3
    assert found["baseline"]["recall@2"]["value"] == 0.25
    assert read_run("run").whatif == found


@pytest.mark.usefixtures("town")
def test_without_a_corpus_the_table_says_what_was_not_tried():
    found = run()
    assert found.exception is None, found.output
    assert (
        "bm25, dense, hybrid, rerank, mmr, chunk, embedding: not tried, no corpus" in found.output
    )
    assert "give --corpus or --app to try other searches" in " ".join(found.output.split())


@pytest.mark.usefixtures("town")
def test_a_run_that_was_made_with_a_corpus_knows_it(caplog):
    sources = {"goldset": "gold.jsonl", "traces": "traces.jsonl", "corpus": "corpus.jsonl"}
    misslink.evaluate(**sources, out="run", k=2, cache=None, overwrite=True)
    found = document("--options", "bm25")
    assert found["options"][0]["newly_retrieved"] == 3
    assert found["corpus"]["source"] == "corpus.jsonl"
    misslink.rejudge("run", judge="heuristic", out="again", cache=None)
    assert read_run("again").manifest["corpus"] == "corpus.jsonl"
    Path("corpus.jsonl").unlink()
    run("--options", "k")
    assert "corpus.jsonl, the corpus of the run, is not there" in caplog.text


@pytest.mark.usefixtures("town")
def test_the_table_names_each_option_with_its_finding():
    found = run("--corpus", "corpus.jsonl", "--options", "bm25,k", "--passages", "4")
    assert found.exception is None, found.output
    assert "What if: recall@2 today 1 of 4" in found.output
    assert "bm25: " in found.output
    assert "k=4: recall@2 was not measured" in found.output
    assert "association" in found.output


@pytest.mark.usefixtures("town")
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--options", "bm52"], "did you mean 'bm25'"),
        (["--options", "bm25"], "no corpus is given"),
        (["--chunk", "10/20"], "need the corpus"),
        (["--corpus", "corpus.jsonl", "--chunk", "10/20"], "overlap is to be smaller"),
        (["--check", "3"], "name it with --app"),
        (["--corpus", "nowhere.jsonl"], "nowhere"),
    ],
)
def test_a_mistake_is_one_sentence_with_the_way_out(arguments, said):
    found = run(*arguments)
    assert isinstance(found.exception, InputError)
    assert said in str(found.exception)
    assert not (read_run("run").whatif)


@pytest.mark.usefixtures("town")
def test_triplets_are_written_beside():
    found = document("--triplets", "out.jsonl")
    rows = [json.loads(line) for line in Path("out.jsonl").read_text("utf-8").splitlines()]
    assert found["triplets"]["triplets"] == len(rows)
    assert sum(found["triplets"]["left_out"].values()) + len(rows) == 3  # passages missed


@pytest.mark.usefixtures("town")
@pytest.mark.parametrize("place", ["nowhere/out.jsonl", "run"])
def test_a_place_that_cannot_take_the_triplets_is_told_before_any_work(place):
    found = run("--triplets", place)
    assert isinstance(found.exception, InputError)
    assert place in str(found.exception)
    assert read_run("run").whatif is None


@pytest.mark.usefixtures("town")
def test_no_reranker_is_none():
    found = document("--corpus", "corpus.jsonl", "--reranker", "none")
    (rerank,) = [one for one in found["skipped"] if one["name"] == "rerank"]
    assert rerank["reason"] == "no reranker is named; name one with --reranker"
    assert document("--reranker", "none")["corpus"] is None


@pytest.mark.usefixtures("town")
def test_a_result_that_cannot_be_kept_is_printed_first():
    Path("run/report.html").unlink()
    Path("run/report.html").mkdir()
    found = run("--json")
    assert json.loads(found.stdout)["options"]
    assert isinstance(found.exception, InputError)
    assert "is printed and not saved" in str(found.exception)
    assert "--out" not in str(found.exception)


@pytest.mark.slow
@pytest.mark.usefixtures("town", "imports_forgotten")
def test_the_apps_own_ranking_is_read_for_the_check_of_a_larger_k():
    asked = ("--app", "app.py:chain", "--options", "k", "--passages", "6", "--check", "5")
    found = document(*asked, "--cache", "l.sqlite")
    assert found["options"][0]["newly_retrieved"] is None  # traces, which were not asked deeper
    rows = [json.loads(line) for line in Path("traces.jsonl").read_text("utf-8").splitlines()]
    for n, row in enumerate(rows[1:], start=1):
        row |= {"deeper": [{"id": f"p{n}", "text": TOWN[n], "rank": 4}], "depth": 6}
    write("deep.jsonl", rows)
    misslink.evaluate(
        goldset="gold.jsonl", traces="deep.jsonl", judge="heuristic", out="run", k=2, cache=None,
        overwrite=True,
    )  # fmt: skip
    check = document(*asked, "--cache", "l.sqlite")["check"]
    assert check["option"] == "k=6"
    assert (check["changed"]["checked"], check["unchanged"]["checked"]) == (3, 1)


@pytest.mark.usefixtures("town", "imports_forgotten")
def test_the_app_is_loaded_once_though_it_is_searched_asked_and_ranked():
    """Its file makes the index anew when it is imported, and takes it from who had the first."""
    anew = 'store = Chroma("town", Lengths())'
    rebuilding = """
import chromadb
client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
if "rebuilt" in [one.name for one in client.list_collections()]:
    client.delete_collection("rebuilt")
with Path("loads").open("a", encoding="utf-8") as loads:
    loads.write("loaded\\n")
store = Chroma("rebuilt", Lengths(), client=client)
"""
    inventing = APP.replace("found[0].page_content", '"It is run by nine wardens with red hats."')
    Path("app.py").write_text(inventing.replace(anew, rebuilding), encoding="utf-8")
    run_options = {"judge": "heuristic", "k": 2, "cache": None, "overwrite": True}
    misslink.evaluate("app.py:chain", "gold.jsonl", out="run", **run_options)
    Path("loads").unlink()
    asked = ("--app", "app.py:chain", "--options", "k", "--passages", "6", "--check", "5")
    check = document(*asked, "--cache", "l.sqlite")["check"]
    assert check["changed"]["checked"] == 3  # of four; one is found by its length
    assert Path("loads").read_text(encoding="utf-8") == "loaded\n"


@pytest.mark.usefixtures("town")
def test_zeros_have_no_sign_and_whole_numbers_no_decimal(capsys):
    found = document("--corpus", "corpus.jsonl", "--options", "bm25")
    (option,) = found["options"]
    option["failures_avoided"] |= {"value": -0.0, "low": -0.04, "high": 2.0, "reason": None}
    changed = {"cases": 9, "checked": 4, "failed_before": 3, "failed_after": 1}
    found["check"] = {
        "option": "bm25", "changed": changed, "unchanged": {"cases": 0}, "reason": None,
        "skipped": [],
    }  # fmt: skip
    print_whatif(found, None)
    printed = " ".join(capsys.readouterr().out.split())
    assert "-0" not in printed
    assert "0 [0, 2]" in printed
    assert "Of 9 cases that bm25 changes, 4 were run again: 3 failed before, 1 after." in printed


@pytest.mark.usefixtures("town", "imports_forgotten")
def test_the_corpus_and_the_embedding_are_the_apps_own():
    found = document("--app", "app.py:chain")
    assert found["corpus"] == {"passages": 6, "source": None}
    assert "lengths" in found["embedding"]
    assert {"dense", "bm25", "hybrid", "mmr"} <= {one["name"] for one in found["options"]}


@pytest.mark.usefixtures("town", "imports_forgotten")
def test_the_forecast_is_checked_by_asking_the_app_and_the_judge_again():
    found = document(
        *("--app", "app.py:chain", "--options", "bm25", "--check", "5", "--cache", "l.sqlite")
    )
    check = found["check"]
    assert check["option"] == "bm25"
    # No answer of the three misses stood in its context; the app now repeats its first passage.
    assert check["changed"] == {"cases": 3, "checked": 3, "failed_before": 3, "failed_after": 0}
    assert found["options"][0]["failures_avoided"]["n"] == check["asked"]


@pytest.mark.usefixtures("town", "imports_forgotten")
def test_a_forecast_is_checked_by_the_judge_of_a_file_that_judged_the_run():
    Path("judge.py").write_text(
        "from misslink.judge.backends.heuristic import open_heuristic\n"
        "def judge():\n"
        "    judge = open_heuristic()\n"
        "    judge.name = 'strict'\n"
        "    return judge\n",
        encoding="utf-8",
    )
    misslink.evaluate(
        goldset="gold.jsonl", traces="traces.jsonl", judge="judge.py:judge", out="run", k=2,
        cache=None, overwrite=True,
    )  # fmt: skip
    assert read_run("run").manifest["judge"] == "strict"
    found = document(
        *("--app", "app.py:chain", "--options", "bm25", "--check", "5", "--cache", "l.sqlite")
    )
    assert found["check"]["changed"]["checked"] == 3


@pytest.mark.usefixtures("town", "imports_forgotten")
def test_an_unknown_option_is_told_before_the_app_is_asked(tmp_path):
    (tmp_path / "app.py").write_text(
        APP.replace("def answer(question):", "def answer(question):\n    Path('asked').touch()"),
        encoding="utf-8",
    )
    found = run("--app", "app.py:chain", "--options", "bm52")
    assert "did you mean 'bm25'" in str(found.exception)
    assert not Path("asked").exists()
    assert document("--app", "app.py:chain", "--options", "k")["options"]
    assert Path("asked").exists()


@pytest.mark.usefixtures("town", "imports_forgotten")
def test_an_app_that_fails_is_out_of_reach_and_not_one_without_a_corpus(tmp_path):
    (tmp_path / "app.py").write_text(
        "def chain(question):\n    raise OSError('no such server')\n", encoding="utf-8"
    )
    found = run("--app", "app.py:chain")
    assert isinstance(found.exception, AppUnreachableError)
    assert "app.py:chain was called to find" in str(found.exception)
    assert "no such server" in str(found.exception)


@pytest.mark.usefixtures("town")
def test_no_escape_sequence_of_a_corpus_or_an_embedding_reaches_the_terminal(capsys):
    found = document("--corpus", "corpus.jsonl", "--options", "bm25")
    rude = "\x1b[2J[bold]" + "long" * 100
    found["options"][0] |= {"name": rude, "finding": rude}
    found |= {"notes": [rude], "skipped": [{"name": rude, "reason": rude}]}
    print_whatif(found, {"triplets": 1, "file": rude, "left_out": {rude: 1}})
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert printed.count("[2J[bold]longlong") >= 6


def fix_counts(name):
    """The cases that a fix reaches, by the view that says so, of the run in `run`."""
    read = read_run("run")
    (counted,) = [fix for fix in count_fixes(read) if fix.fix.name == name]
    render = {"terminal": render_terminal(), "markdown": render_markdown(build_page(read))}
    said = {
        view: re.search(r"reaches\s+(\d+)\s+failed\s+case", text) for view, text in render.items()
    }
    records = {"report.json": build_document(read)["fixes"]}
    records["diagnose"] = json.loads(invoke(diagnose, "run", "--json"))["fixes"]
    page = build_page(read).first.fixes
    return counted.label, {
        "page": next(len(fix.cases) for fix in page if fix.fix.name == name),
        "diagnose in the terminal": int(
            re.search(rf"{counted.label}\..* (\d+) failed case", invoke(diagnose, "run"))[1]
        ),
        **{view: int(found[1]) for view, found in said.items()},
        **{
            view: next(row["cases"] for row in rows if row["fix"] == name)
            for view, rows in records.items()
        },
    }


def invoke(command, *arguments):
    app = typer.Typer()
    app.command()(command)
    found = CliRunner().invoke(app, [*arguments])
    assert found.exception is None, found.output
    return found.stdout


def render_terminal():
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        print_run_summary(read_run("run"), "report.html")
    return shown.getvalue()


@pytest.mark.slow
@pytest.mark.usefixtures("town")
def test_one_number_stands_for_one_fix_in_every_view_before_and_after_what_if():
    gold = [
        json.loads(line) for line in Path("gold.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    gold = [{**row, "reference": text} for row, text in zip(gold, TOWN, strict=False)]
    misslink.evaluate("app.py:chain", gold, out="run", cache=None, overwrite=True)
    label, counts = fix_counts("larger_k")
    (reached,) = set(counts.values())
    assert reached > 0
    assert read_run("run").summary["first_step"]["cases"] == reached
    wider = re.search(r"Retrieve (\d+) passages", label)[1]
    found = document("--options", "k", "--passages", wider)
    assert len(found["options"][0]["reached"]) == reached
    relabelled, counts = fix_counts("larger_k")
    assert (relabelled, set(counts.values())) == (label, {reached})
