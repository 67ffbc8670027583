"""misslink compare: tables, JSON, pages, and what it refuses."""

import io
import json
import re
import sys
from pathlib import Path

import pytest

from small_runs import broken, small_run, write_run

N = 10


@pytest.fixture
def runs(tmp_path):
    """Two runs in ./runs, with reports beside."""
    write_run(Path("runs/a"), small_run([0] * N, faithful=[1] * N), report=True)
    write_run(Path("runs/b b"), small_run([1] * N, faithful=[1] * N), report=True)
    return "runs/a", "runs/b b"


def test_one_json_document_and_nothing_else_on_stdout(misslink, runs):
    code, out, _ = misslink("compare", *runs, "--json")
    document = json.loads(out)
    assert code == 0
    assert (document["a"], document["b"], document["paired"]) == ("runs/a", "runs/b b", N)
    assert document["metrics"]["recall@1"]["winner"] == "b"


def test_the_table_fits_80_columns(misslink, runs, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = misslink("compare", *runs)
    assert code == 0
    table = [line for line in out.splitlines() if re.match(r"(metric|\S+@1|\S+ness) ", line)]
    assert any("recall@1" in line and "better" in line for line in table)
    assert max(map(len, table)) <= 80
    assert out.startswith("b b beats a: 10 of 10 answers pass, up from 0. 10 fixed, 0 broken.\n")
    assert "The same in every case: faithfulness, fully_faithful." in out


def test_the_terminal_names_the_runs_and_lists_regressions(misslink, monkeypatch):
    """10 of 30 up and 1 down: 24 of 2^11 signs are as far off."""
    monkeypatch.setenv("COLUMNS", "80")
    write_run(Path("runs/a"), small_run([0] * 10 + [1] * 20))
    write_run(Path("runs/b"), small_run([1] * 29 + [0]))
    _, out, _ = misslink("compare", "runs/a", "runs/b", "--name", "chain", "--name", "wider")
    lines = out.splitlines()
    assert lines[0] == ("wider beats chain: 29 of 30 answers pass, up from 20. 10 fixed, 1 broken.")
    assert lines[2].split()[:3] == ["metric", "chain", "wider"]
    moves = "11 of 30 cases have another failure mode: Retrieval miss to Passed 10, Passed to"
    assert moves in " ".join(out.split())
    assert lines[-3] == "Broken answers: 1"
    assert lines[-1].split() == ["c30", "What", "of", "c30?", "Passed", "Retrieval", "miss"]


@pytest.mark.parametrize(
    ("folders", "names"),
    [
        (("runs/a", "runs/b"), ["a", "b"]),
        (("first/traces", "second/traces"), ["first/traces", "second/traces"]),
    ],
)
def test_runs_are_named_by_as_much_of_their_folders_as_tells_them_apart(misslink, folders, names):
    for folder, hits in zip(folders, ([0, 1], [1, 1]), strict=True):
        write_run(Path(folder), small_run(hits))
    assert json.loads(misslink("compare", *folders, "--json")[1])["names"] == names


def test_a_terminal_that_knows_no_minus_sign_has_another(misslink, monkeypatch):
    kept = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(kept, encoding="ascii"))
    write_run(Path("runs/a"), small_run([1] * N))
    write_run(Path("runs/b"), small_run([0] * N))
    code, _, _ = misslink("compare", "runs/a", "runs/b")
    sys.stdout.flush()
    assert code == 0
    assert re.search(r"recall@1 +100% +0% +-100 points", kept.getvalue().decode("ascii"))


def test_the_page_links_to_the_reports_beside(misslink, runs):
    code, out, _ = misslink("compare", *runs, "--html", "pages/ab.html", "--json")
    html = Path("pages/ab.html").read_text(encoding="utf-8")
    assert code == 0
    assert json.loads(out)["html"] == "pages/ab.html"
    assert 'href="../runs/a/report.html#case=1"' in html
    assert 'href="../runs/b%20b/report.html#case=1"' in html


def test_a_run_without_a_report_is_not_linked(misslink, runs):
    Path("runs/a/report.html").unlink()
    misslink("compare", *runs, "--html", "ab.html")
    html = Path("ab.html").read_text(encoding="utf-8")
    assert "runs/a/report.html" not in html
    assert "runs/b%20b/report.html" in html


def test_markdown_is_written(misslink, runs):
    code, out, _ = misslink("compare", *runs, "--markdown", "ab.md", "--metrics", "recall@1,mrr")
    assert code == 0
    assert "ab.md" in out
    written = Path("ab.md").read_text(encoding="utf-8")
    assert "`recall@1`" in written
    assert "`fully_faithful`" not in written


def test_markdown_links_to_the_page_that_is_written_with_it(misslink, runs):
    misslink("compare", *runs, "--markdown", "notes/ab.md", "--html", "pages/a b.html")
    written = Path("notes/ab.md").read_text(encoding="utf-8")
    assert "[the page](../pages/a%20b.html)" in written
    assert "(../pages/a%20b.html#case-1)" in written
    assert "(../runs/b%20b/report.html)" in written


def test_cases_are_taken_from_a_file(misslink, runs):
    Path("ids.txt").write_text("c2\n\nc5\n", encoding="utf-8")
    _, out, _ = misslink("compare", *runs, "--cases", "ids.txt", "--json")
    assert json.loads(out)["paired"] == 2


def test_three_runs_are_each_compared_with_the_first(misslink, runs):
    write_run(Path("runs/c"), small_run([1, 0] * 5, faithful=[1] * N))
    code, out, _ = misslink("compare", *runs, "runs/c", "--json")
    document = json.loads(out)
    assert code == 0
    assert [one["b"] for one in document["comparisons"]] == ["runs/b b", "runs/c"]
    assert "metrics" not in document


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["runs/a"], "one run cannot be compared"),
        (["runs/a", "runs/../runs/a"], "this is the same run as runs/a"),
        (["runs/a", "nowhere"], "nowhere: there is no such run folder or score table"),
        (["runs/a", "runs"], "not a run folder"),
        (["runs/a", "runs/b b", "--name", "x"], "field '--name': 2 runs need 2 different names"),
        (["runs/a", "runs/b b", "--name", "x", "--name", "x"], "2 different names"),
        (["runs/a", "runs/b b", "--metrics", "recal@1"], "did you mean 'recall@1'"),
        (["runs/a", "runs/b b", "--metrics", ","], "there is no metric to compare"),
        (["runs/a", "runs/b b", "--cases", "nothing.txt"], "nothing.txt"),
        (["runs/a", "runs/b b", "--preferences", "nothing.json"], "nothing.json"),
        (["runs/a", "runs/b b", "--html", "runs/a/report.html"], "a part of a run"),
        (["runs/a", "runs/b b", "--html", "runs"], "this is a folder"),
        (
            ["runs/a", "runs/b b", "--html", "out", "--markdown", "./out"],
            "out: --html and --markdown name the same file",
        ),
    ],
)
def test_a_mistake_is_one_sentence_and_2(misslink, runs, arguments, told):
    code, out, err = misslink("compare", *arguments)
    assert (code, out) == (2, "")
    assert told in err
    assert err.startswith("misslink: ")
    assert len(err.splitlines()) == 1
    assert not Path("out").exists()


def test_what_one_run_lacks_leads_and_is_counted(misslink, runs):
    b = broken(small_run([0] * N, faithful=[None] * 3 + [1] * (N - 3)), "c1", "c2", "c3")
    write_run(Path("runs/crashed"), b)
    code, out, _ = misslink("compare", "runs/a", "runs/crashed")
    assert code == 0
    assert out.startswith("3 cases of a have no value in crashed (the app failed). crashed passes ")
    assert "same in every" not in out
    row = next(line for line in out.splitlines() if line.startswith("recall@1"))
    assert re.search(r"the same in the rest\s+7$", row)
    assert "3 cases of a have no value in crashed (the app failed): recall@1, faithfulness" in out


def test_runs_over_other_gold_sets_are_compared_over_the_shared_cases(misslink, runs):
    write_run(Path("runs/other"), small_run([1, 1], ids=["c1", "new"]))
    code, out, _ = misslink("compare", "runs/a", "runs/other", "--json")
    assert (code, json.loads(out)["paired"]) == (0, 1)
    code, out, _ = misslink("compare", "runs/a", "runs/other")
    assert code == 0
    assert out.startswith("Over 1 shared case: ")


def test_hostile_texts_do_not_reach_the_terminal(misslink):
    ids = ["\x1b[2Jred", "b"]
    for name, hits in (("a", [0, 1]), ("b", [1, 1])):
        write_run(Path("runs") / name, small_run(hits, ids=ids))
    code, out, _ = misslink("compare", "runs/a", "runs/b")
    assert code == 0
    assert "\x1b[2J" not in out


def test_score_tables_are_compared_and_a_bad_one_ends_with_2(misslink, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("case,metric,value\n" + "".join(f"q{n},mine,0\n" for n in range(8)))
    Path("b.csv").write_text("case,metric,value\n" + "".join(f"q{n},mine,1\n" for n in range(8)))
    code, out, _ = misslink("compare", "a.csv", "b.csv", "--html", "compared.html")
    assert code == 0
    assert out.startswith("b.csv is better than a.csv on mine (+")
    assert "mine" in Path("compared.html").read_text()
    Path("b.csv").write_text("case,metric,value\nq1,mine,much\n")
    code, _, err = misslink("compare", "a.csv", "b.csv")
    assert (code, len(err.strip().splitlines())) == (2, 1)
    assert "b.csv, line 2, field 'mine': 'much' is not a number" in err
