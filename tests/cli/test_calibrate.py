"""misslink calibrate: one document or a page of text, kept in the run, and exit codes."""

import csv
import json
import re
from pathlib import Path

import pytest

import misslink as package
from labelled import METRIC, label, table
from misslink.io import read_run
from misslink.io.manifest import answer_hash

HARBOUR = Path(__file__).parents[2] / "examples" / "harbour"
HOSTILE = "<script>alert(1)</script>\x1b[31m[bold]"


def lines(name, rows):
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return name


@pytest.fixture
def files():
    """Verdicts and labels of 100 cases in ./v.jsonl and ./l.jsonl."""
    verdicts, labels = table(judge="openai:m")
    return lines("v.jsonl", verdicts), lines("l.jsonl", labels)


@pytest.fixture(scope="session")
def harbour(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrated") / "run"
    package.evaluate(
        f"{HARBOUR / 'app.py'}:chain", HARBOUR / "goldset.jsonl", k=2, cache=None, out=folder
    )
    return folder


def labelled(folder, name="labels.csv", comment=""):
    """Labels of the run's verdicts, every fourth against the judge."""
    said = [v for v in read_run(folder).verdicts if v.metric == METRIC and v.value is not None]
    with Path(name).open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["case_id", "metric", "label", "annotator", "comment"])
        for place, one in enumerate(said):
            good = bool(one.label) ^ (place % 4 == 3)
            out.writerow([one.case_id, METRIC, int(good), f"ada{HOSTILE}", comment])
    return name, len(said)


def test_one_json_document_and_nothing_else_on_stdout(misslink, files):
    code, out, err = misslink("calibrate", "--verdicts", files[0], "--labels", files[1], "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert (document["judge"], document["n"], document["threshold"]) == ("openai:m", 100, 0.5)
    assert document["agreement"]["kappa"]["value"] == pytest.approx(0.4)


def test_the_tables_fit_80_columns_and_the_verdict_comes_first(misslink, files, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    given = ("calibrate", "--verdicts", files[0], "--labels", files[1])
    code, out, _ = misslink(*given, "--verbose")
    assert code == 0
    assert out.splitlines()[0] == "openai:m on faithfulness: caution"
    drawn = [line for line in out.splitlines() if "  0." in line]
    assert any("Cohen's kappa" in line and "0.40 [" in line for line in drawn)
    assert max(map(len, out.splitlines())) <= 80
    short = misslink(*given)[1].splitlines()
    assert short[0] == out.splitlines()[0]
    assert len(short) < 16 < len(out.splitlines()), "verdict and reasons"
    assert not any("Cohen's kappa  " in line for line in short)


def test_decimals_are_written_as_on_the_page(misslink):
    """A judge that is always wrong, of as many good as bad cases: kappa is -1; one annotator."""
    verdicts = [{"case_id": f"c{i}", "metric": METRIC, "value": i % 2} for i in range(40)]
    labels = [
        {"case_id": f"c{i}", "metric": METRIC, "label": 1 - i % 2, "annotator": "ada"}
        for i in range(40)
    ]
    given = ("--verdicts", lines("v.jsonl", verdicts), "--labels", lines("l.jsonl", labels))
    _, out, _ = misslink("calibrate", *given, "--verbose")
    assert re.search(r"Cohen's kappa +\u22121\.00", out)
    assert re.search(r"AUROC +0\.00 \[0\.00, 0\.\d\d\]", out)
    assert "alpha not measured: " in out


def test_what_is_required_and_not_met_exits_1_with_the_document_printed(misslink, files):
    given = ("calibrate", "--verdicts", files[0], "--labels", files[1], "--json")
    assert misslink(*given, "--require", "caution")[0] == 0
    code, out, _ = misslink(*given, "--require", "trust")
    assert (code, json.loads(out)["verdict"]) == (1, "caution")


def test_other_limits_make_another_verdict(misslink, files):
    Path("c.toml").write_text(
        "[trust]\nkappa_low = 0.1\nover_majority_low = 0\nbalanced_accuracy_low = 0.5\ncalibration_error_low = 1\n"
    )
    given = ("calibrate", "--verdicts", files[0], "--labels", files[1], "--limits", "c.toml")
    assert misslink(*given, "--require", "trust")[0] == 0


@pytest.mark.slow
def test_a_run_keeps_the_document_and_its_page_shows_it(misslink, harbour):
    labels, n = labelled(harbour, comment=HOSTILE)
    code, out, err = misslink("calibrate", harbour, "--labels", labels, "--json")
    assert code == 0, err
    document = json.loads(out)
    assert document["n"] == n
    assert json.loads((harbour / "calibration.json").read_text(encoding="utf-8")) == document
    assert read_run(harbour).calibration == document
    page = (harbour / "report.html").read_text(encoding="utf-8")
    assert "Compared with human labels of faithfulness" in page
    assert HOSTILE not in page


@pytest.mark.slow
def test_a_calibration_on_other_labels_is_replaced_with_a_note(misslink, harbour):
    labels, n = labelled(harbour)
    given = ("calibrate", harbour, "--labels", labels)
    assert all("replaces" not in misslink(*given)[1] for _ in range(2))
    note = f"replaces the run's calibration of faithfulness on {n} labelled cases of "
    assert note in " ".join(misslink(*given, "--threshold", 0.99)[1].split())
    assert note in misslink(*given, "--json")[2]


@pytest.mark.slow
def test_labels_that_do_not_count_or_may_not_are_said_without_verbose(misslink, harbour):
    """Found: n was smaller, or as if all were well, and the count stood under --verbose alone."""
    labels, n = labelled(harbour)
    said = misslink("calibrate", harbour, "--labels", labels)[1]
    assert f"Labels that do not say which answer they are of (answer_hash): {n};" in said
    first, *others = read_run(harbour).traces
    rows = [f"{t.case_id},{METRIC},1,ada,{'ab' * 32}" for t in others]
    rows.append(f"{first.case_id},{METRIC},1,ada,{answer_hash(first.answer)}")
    lines = ["case_id,metric,label,annotator,answer_hash", *rows]
    Path("hashed.csv").write_text("\n".join(lines), encoding="utf-8")
    said = misslink("calibrate", harbour, "--labels", "hashed.csv")[1]
    assert f"Labels of other answers left out: {len(others)}." in said


@pytest.mark.slow
def test_the_verdicts_of_a_run_folder_as_a_file_give_the_same_agreement(misslink, harbour):
    labels, _ = labelled(harbour)
    by_run = json.loads(misslink("calibrate", harbour, "--labels", labels, "--json")[1])
    given = ("--verdicts", harbour / "verdicts.jsonl", "--labels", labels, "--json")
    by_file = json.loads(misslink("calibrate", *given)[1])
    same = ("threshold", "agreement", "confusion", "prompts", "judge")  # a run has clusters, too
    assert {name: by_file[name] for name in same} == {name: by_run[name] for name in same}


@pytest.mark.slow
def test_hostile_names_do_not_reach_the_terminal_as_they_are(misslink, harbour):
    labels, _ = labelled(harbour)
    with Path(labels).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    other = [{**row, "annotator": f"bob{HOSTILE}", "label": 0} for row in rows]
    name = lines("two.jsonl", rows + other)
    code, out, err = misslink("calibrate", harbour, "--labels", name, "--verbose")
    assert code == 0, err
    assert "They disagree on" in out
    assert "\x1b[31m" not in out
    assert "[bold]" in out  # written out, not obeyed


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--labels", "l.jsonl"), "Name a run folder, or a file with --verdicts"),
        (("run", "--verdicts", "v.jsonl", "--labels", "l.jsonl"), "one of the two"),
        (("--verdicts", "none.jsonl", "--labels", "l.jsonl"), "none.jsonl: there is no such file"),
        (("--verdicts", "v.jsonl", "--labels", "none.csv"), "none.csv: there is no such file"),
        (("nowhere", "--labels", "l.jsonl"), "nowhere: this is not a run folder"),
        (
            ("--verdicts", "v.jsonl", "--labels", "l.jsonl", "--metric", "correctnes"),
            "no verdict is of the metric 'correctnes'",
        ),
        (
            ("--verdicts", "v.jsonl", "--labels", "other.jsonl"),
            "other.jsonl: none of its cases is in v.jsonl: these labels belong to another run",
        ),
        (
            ("--verdicts", "v.jsonl", "--labels", "one.jsonl"),
            "one.jsonl, line 2, field 'case_id': there is no case 'zzz' in v.jsonl",
        ),
        (
            ("--verdicts", "v.jsonl", "--labels", "l.jsonl", "--limits", "none.toml"),
            "none.toml: there is no such file",
        ),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_2(misslink, files, given, said):
    lines("other.jsonl", [label("zzz", 1)])
    lines("one.jsonl", [label("c1", 1), label("zzz", 1)])
    code, out, err = misslink("calibrate", *given)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_labels_of_unknown_cases_can_be_left_out(misslink, files):
    lines("one.jsonl", [label("c1", 1), label("zzz", 1)])
    code, out, _ = misslink(
        "calibrate", "--verdicts", files[0], "--labels", "one.jsonl", "--known-only", "--json"
    )
    document = json.loads(out)
    assert (code, document["n"], document["unknown_labels"]) == (0, 1, 1)
    assert "Labels of unknown cases left out: 1." in document["notes"]


def test_labels_of_an_unknown_metric_are_refused_with_their_line(misslink, files):
    """A misspelt metric was ignored."""
    rows = [json.loads(line) for line in Path(files[1]).read_text().splitlines()]
    labels = lines("typo.jsonl", [*rows, {**rows[0], "metric": "faithfulnes"}])
    code, out, err = misslink("calibrate", "--verdicts", files[0], "--labels", labels)
    assert (code, out) == (2, "")
    assert f"line {len(rows) + 1}, field 'metric': there is no metric 'faithfulnes'" in err
    assert "did you mean 'faithfulness'?" in err
    others = lines("other.jsonl", [*rows, {**rows[0], "metric": "answer_relevance"}])
    assert misslink("calibrate", "--verdicts", files[0], "--labels", others)[0] == 0
