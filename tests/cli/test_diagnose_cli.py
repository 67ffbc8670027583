"""misslink diagnose: what it prints of a run folder, and runs that have nothing to print."""

import asyncio
import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import misslink
from misslink.cli.diagnose import diagnose
from misslink.errors import InputError
from misslink.linking.checklist import build_checklist
from misslink.linking.miss_measurement import measure_misses
from misslink.types import Case, Link, Passage, Trace

HOSTILE = "[red]When[/red] \x1b[31mdoes\x07\nit leave?"
app = typer.Typer()
app.command()(diagnose)


def command(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)


def write_run(folder, holes=(), *, measured=True):
    """Seven cases that miss their passage at rank 4, one whose passage is not indexed, one fine."""
    cases = [Case(id=f"c{at}", question=HOSTILE, relevant=[f"gold{at}"]) for at in range(9)]
    noise = [Passage(id=f"n{at}", text=f"Leave {at} leave.", rank=at) for at in (1, 2)]
    traces = []
    for at, case in enumerate(cases):
        gold = Passage(id=f"gold{at}", text=f"The gold of {at}, it leaves at noon.", rank=4)
        deeper = (gold,) if at < 7 else ()
        retrieved = noise if at < 8 else [gold.model_copy(update={"rank": 1}), *noise]
        traces.append(
            Trace(case_id=case.id, retrieved=retrieved[:2], deeper=deeper, depth=50, answer="a")
        )
    shown = {one.id: one for trace in traces for one in (*trace.retrieved, *trace.deeper)}
    found = asyncio.run(measure_misses(cases, traces, 2, embedder=None, corpus=[*shown.values()]))
    links = [
        Link(
            case_id=case.id, retrieval="miss", answer="unfaithful", failure="retrieval_miss",
            reason="r", missed=found.missed[case.id],
        )
        for case in cases
    ]  # fmt: skip
    diagnosis = {
        "embedding": None,
        "corpus": None,
        "checklist": [i.document() for i in build_checklist(cases, traces, found, 2)],
        "missing_labels": {"holes": list(holes), "metrics": {}},
    }
    folder = Path(folder)
    folder.mkdir()
    for part, nouns in {"cases": cases, "traces": traces, "verdicts": (), "links": links}.items():
        lines = "".join(f"{noun.model_dump_json()}\n" for noun in nouns)
        (folder / f"{part}.jsonl").write_text(lines, encoding="utf-8")
    (folder / "manifest.json").write_text("{}", encoding="utf-8")
    summary = {"diagnosis": diagnosis} if measured else {}
    (folder / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return folder


def test_json_groups_the_misses_by_subtype_the_largest_first():
    result = command(write_run("run"), "--json")
    found = json.loads(result.stdout)
    assert (found["run"], found["cases"], found["misses"]) == ("run", 9, 8)
    assert list(found["miss_types"]) == ["below_cutoff", "not_indexed"]
    group = found["miss_types"]["below_cutoff"]
    assert group["count"] == 7
    assert group["share"]["value"] == pytest.approx(7 / 8)
    assert group["share"]["method"] == "wilson"
    assert "larger k" in group["recommendation"]
    assert group["cases"][0]["case_id"] == "c0"
    assert group["cases"][0]["passage_id"] == "gold0"
    assert group["cases"][0]["true_rank"] == 4
    assert group["cases"][0]["reason"] == "it has rank 4, and the first 2 count"
    assert group["cases"][0]["measured"]["pool"] == 10
    assert found["checklist"][0]["name"] == "chunk_quality"
    assert found["missing_labels"] == {"holes": [], "metrics": {}}


def test_an_app_without_a_retriever_is_not_advised_to_ask_one_deeper():
    holm = {"id": "holm", "text": "Holm is an island."}
    misslink.evaluate(
        lambda _: {"answer": "At nine.", "documents": [holm]},
        [
            {"question": "What is Holm?", "relevant": ["holm"]},
            {"question": "When does the ferry leave?", "relevant": ["ferry"]},
        ],
        cache=None,
        embedding="none",
        out="plain",
    )
    ((kind, group),) = json.loads(command("plain", "--json").stdout)["miss_types"].items()
    assert (kind, group["cases"][0]["true_rank"]) == ("inconclusive", None)
    assert "--corpus" in group["recommendation"]
    assert "--depth" not in group["recommendation"]


def test_people_read_counts_advice_evidence_and_the_checklist():
    result = command(write_run("run"))
    assert result.exit_code == 0
    assert "8 relevant passages were missed in 9 cases (no embedding known; the" in result.stdout
    assert "below_cutoff: 7 of 8 missed passages\n" in result.stdout
    assert "needs 'gold0': it has rank 4, and the first 2 count" in result.stdout
    assert "and 2 more (--all shows them)" in result.stdout
    assert "needs 'gold7': the listed corpus of 10 passages does not hold it" in result.stdout
    assert "Are relevant passages among the first 2" in result.stdout
    assert "No missing label was found" in result.stdout


def test_all_shows_every_case():
    result = command(write_run("run"), "--all")
    assert "needs 'gold6'" in result.stdout
    assert "--all shows them" not in result.stdout


def test_a_question_is_no_markup_and_no_escape_sequence():
    result = command(write_run("run"))
    assert "[red]When[/red]" in result.stdout
    assert not {"\x1b", "\x07"} & set(result.stdout)


def test_a_run_without_a_diagnosis_says_how_to_get_one():
    with pytest.raises(InputError, match=r"run: this run has no diagnosis.*misslink evaluate"):
        command(write_run("run", measured=False))


def test_a_folder_that_is_no_run_is_refused():
    Path("empty").mkdir()
    with pytest.raises(InputError, match="not a run folder"):
        command("empty")


def test_a_passage_that_two_evidences_of_a_case_need_counts_and_prints_once():
    folder = write_run("run")
    path = folder / "links.jsonl"
    links = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    links[0]["missed"] *= 2
    path.write_text("".join(f"{json.dumps(link)}\n" for link in links), encoding="utf-8")
    found = json.loads(command(folder, "--json").stdout)
    assert found["misses"] == 8
    assert found["miss_types"]["below_cutoff"]["count"] == 7
    assert command(folder, "--all").stdout.count("needs 'gold0'") == 1


def test_a_question_with_numbers_and_no_verdict_is_not_called_unknown():
    folder = write_run("run")
    path = folder / "summary.json"
    summary = json.loads(path.read_text(encoding="utf-8"))
    row = {
        "name": "recall", "question": "[red]Is it?", "finding": "f", "ok": None,
        "numbers": {"recall_in_context": {"value": 0.8, "low": 0.7, "high": 0.9, "n": 9,
                                          "method": "bootstrap", "reason": None}},
    }  # fmt: skip
    summary["diagnosis"]["checklist"] = [row, row | {"numbers": {}}]
    path.write_text(json.dumps(summary), encoding="utf-8")
    printed = command(folder).stdout
    assert "not known" not in printed
    assert "[red]Is it?" in printed
    assert "inconclusive: the interval" in " ".join(printed.split())
    assert "not measured" in printed


def test_why_no_gold_hole_could_be_looked_for_is_said():
    folder = write_run("run")
    path = folder / "summary.json"
    summary = json.loads(path.read_text(encoding="utf-8"))
    summary["diagnosis"]["missing_labels"]["reason"] = "no language model judged"
    path.write_text(json.dumps(summary), encoding="utf-8")
    printed = command(folder).stdout
    assert "Missing labels were not looked for: no language model judged." in printed
    assert "No missing label was found" not in printed


def test_holes_are_shown_and_written_for_review():
    hole = {
        "case_id": "c0", "passage_id": "n2", "rank": 2, "question": "q", "reason": "it answers",
    }  # fmt: skip
    result = command(write_run("run", holes=[hole]), "--missing-labels", "holes.jsonl")
    assert result.exit_code == 0
    assert "c0  'n2' at rank 2: it answers" in result.stdout
    lines = Path("holes.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["c0"]
    assert json.loads(lines[0])["relevant"]["n2"] == 1


@pytest.mark.parametrize("place", ["no/such/folder/holes.jsonl", "."])
def test_a_place_that_cannot_be_written_is_named_without_holes_too_before_anything_is_said(
    place, capsys
):
    folder = write_run("run")
    with pytest.raises(InputError, match="ame another file with --missing-labels"):
        diagnose(folder, missing_labels=Path(place), corpus=None, every=False, as_json=False)
    assert capsys.readouterr().out == ""


def test_without_holes_no_file_is_written_and_that_is_said():
    folder = write_run("run")
    told = "No missing label, so nothing was written to holes.jsonl."
    result = command(folder, "--missing-labels", "holes.jsonl")
    assert result.exit_code == 0
    assert told in result.stdout
    result = command(folder, "--missing-labels", "holes.jsonl", "--json")
    assert json.loads(result.stdout)["missing_labels"]["holes"] == []
    assert told in result.stderr
    assert not Path("holes.jsonl").exists()


def test_a_corpus_shows_what_is_indexed_and_what_bm25_finds():
    folder = write_run("run")
    (folder / "manifest.json").write_text('{"k": 2, "seed": 0}')
    texts = {f"gold{at}": f"The gold of {at}, it leaves at noon." for at in range(1, 9)}
    rows = [{"id": name, "text": text} for name, text in texts.items()]
    rows += [{"id": f"n{at}", "text": f"Leave {at} leave."} for at in (1, 2)]
    Path("corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    document = json.loads(command(folder, "--corpus", "corpus.jsonl", "--json").stdout)
    kinds = {
        case["passage_id"]: kind
        for kind, group in document["miss_types"].items()
        for case in group["cases"]
    }
    assert document["corpus"] == 10
    assert kinds["gold0"] == "below_cutoff"  # it was seen at rank 4, whatever the corpus holds
    assert kinds["gold7"] != "not_indexed"
    before = json.loads(command(folder, "--json").stdout)
    assert "gold7" in [case["passage_id"] for case in before["miss_types"]["not_indexed"]["cases"]]
