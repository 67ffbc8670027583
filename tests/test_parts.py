"""A run that is not held whole gives the same as one that is, byte for byte."""

import gc
import gzip
import json
import shutil
from collections import Counter
from contextlib import chdir
from pathlib import Path

import pytest
from typer.testing import CliRunner

import misslink
from misslink import parts
from misslink.api.saved_run import SavedRun
from misslink.calibration.labelled_failures import apply_labels
from misslink.cli.main import app
from misslink.comparison.shared_part import share_cases
from misslink.documents import calibrations_of
from misslink.errors import InputError
from misslink.io import read_complete_run, read_run, run_folder
from misslink.report.disagreements import group_disagreements
from misslink.types import Link, LinkRow, ScoreRow, Trace, Verdict

GROUND = "The ferry to {} leaves from pier {} at {} in the morning."
TOWNS = ("Alder", "Birk", "Cedar", "Dale", "Elm", "Fern", "Gorse", "Hazel", "Iris", "Juniper")


def write_inputs(folder):
    passages = [
        {"id": name, "text": GROUND.format(name, n + 2, n + 5)} for n, name in enumerate(TOWNS)
    ]
    gold, traces = [], []
    for n, name in enumerate(TOWNS):
        found = [passages[(n + step) % len(TOWNS)] for step in range(3)]
        if n % 3 == 0:  # a miss
            found = found[1:]
        answer = GROUND.format(name, n + 2, n + 5 if n % 4 else n + 40)
        reference = GROUND.format(name, n + 2, n + 5)
        gold.append(
            {
                "id": f"c{n}",
                "question": f"When does the ferry to {name} leave?",
                "relevant": [name],
                "reference": reference,
                "category": "even" if n % 2 else "odd",
            }
        )
        traces.append({"case_id": f"c{n}", "retrieved": found, "answer": answer})
    worse = [{**trace, "retrieved": trace["retrieved"][1:]} for trace in traces]
    rows_of = {"gold": gold, "traces": traces, "worse": worse, "corpus": passages}
    for name, rows in rows_of.items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    labels = [
        {"case_id": f"c{n}", "metric": "faithfulness", "label": int(n % 4 > 0), "annotator": "a"}
        for n in range(len(TOWNS))
    ]
    (folder / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in labels))
    (folder / "gates.yaml").write_text(
        "gates:\n"
        "  - {name: recall, metric: recall@3, threshold: 0.5}\n"
        "  - {name: faithful, metric: faithfulness, regression_max: 0.1, filter: {category: odd}}\n"
        "  - {name: failed, metric: link.failures.passed, threshold: 0.2}\n"
    )


def said(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exception is None or result.exit_code in (0, 1), result.output
    return result.exit_code, result.stdout


def evaluated(out, **files):
    given = {"goldset": "gold.jsonl", "traces": "traces.jsonl", "corpus": "corpus.jsonl"} | files
    options = [text for name, path in given.items() for text in (f"--{name}", path)]
    cache = ["--cache", f"{out}.sqlite"]
    code, _ = said("evaluate", *options, "--judge", "heuristic", "--out", out, *cache)
    assert code == 0


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Inputs, and a run of them in ./run."""
    folder = tmp_path_factory.mktemp("made")
    with chdir(folder):
        write_inputs(folder)
        evaluated("run")
    return folder


@pytest.fixture
def at_home(made, tmp_path, monkeypatch):
    """A copy of them for each test."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def readings():
    """What each command that reads a run prints or writes."""
    run = read_complete_run("run")
    yield "headline", run.headline
    yield "frame", run.to_pandas().to_csv()
    for form in ("html", "json", "markdown", "csv"):
        code, _ = said("report", "run", "--format", form, "--out", f"made.{form}")
        yield form, (code, Path(f"made.{form}").read_text(encoding="utf-8"))
    yield "compare", said("compare", "run", "other", "--json")
    yield "gate", said("gate", "run", "--criteria", "gates.yaml", "--baseline", "other", "--json")
    yield "diagnose", said("diagnose", "run", "--json")
    _, calibration = said("calibrate", "run", "--labels", "labels.jsonl", "--json")
    yield "calibrate", json.loads(calibration) | {"created": None}
    _, judged = said("rejudge", "run", "--judge", "heuristic", "--out", "again", "--json")
    yield "rejudge", json.loads(judged) | {"usage": None}  # the second time from the cache


@pytest.mark.slow
def test_each_command_says_the_same_of_a_run_that_is_not_held(at_home, monkeypatch):
    evaluated("other", traces="worse.jsonl")
    shutil.copytree("run", "first")
    whole = dict(readings())
    assert read_run("run").scores[0] == read_run("run").verdicts[0]
    shutil.rmtree("run")
    shutil.copytree("first", "run")
    monkeypatch.setattr(parts, "HELD_BYTES", 0)
    run = read_run("run")
    assert isinstance(run.scores[0], tuple)  # a row in place of the verdict
    assert dict(readings()) == whole


def test_what_is_not_held_is_read_again_and_can_be_selected(at_home, monkeypatch):
    whole = read_run("run")
    part = (at_home / "run/verdicts.jsonl").stat().st_size // 2
    monkeypatch.setattr(parts, "HELD_BYTES", part + 1_000 * len(whole.verdicts) // 2)
    run = read_run("run")  # cases and links are held, and not half of the verdicts
    assert run.cases[0] is run.cases.light[0]
    assert {type(row) for row in run.scores} == {ScoreRow}
    assert (run.cases, run.traces, run.verdicts, run.links) == (
        whole.cases,
        whole.traces,
        whole.verdicts,
        whole.links,
    )
    assert run.links[3:5] == list(whole.links)[3:5]
    assert run.traces[-1] is run.traces[-1]  # as a page that reads a case several times
    assert parts.by_case(run.links)["c7"] == whole.links[7]
    assert [v.metric for v in parts.group_by_case(run.verdicts)["c7"]] == [
        v.metric for v in whole.verdicts if v.case_id == "c7"
    ]
    assert {v.case_id: v.value for v in run.verdicts_of("faithfulness")} == {
        v.case_id: v.value for v in whole.verdicts if v.metric == "faithfulness"
    }


def test_a_packed_part_is_held_whole(at_home, monkeypatch):
    whole, path = read_run("run"), at_home / "run/links.jsonl"
    path.write_bytes(gzip.compress(path.read_bytes()))
    monkeypatch.setattr(parts, "HELD_BYTES", 0)
    assert read_run("run").links == whole.links


def test_a_broken_line_and_a_file_that_changes_are_a_sentence(at_home, monkeypatch):
    monkeypatch.setattr(parts, "HELD_BYTES", 0)
    run, path = read_run("run"), at_home / "run/links.jsonl"
    text = path.read_bytes()
    path.write_bytes(text.replace(b"case_id", b"another"))
    with pytest.raises(InputError, match="changed while it was read"):
        list(run.links)
    path.write_bytes(text[: len(text) // 2])
    line = path.read_bytes().count(b"\n") + 1
    with pytest.raises(InputError, match=rf"links.jsonl, line {line}: this is not JSON"):
        read_run("run")


def test_an_evaluation_that_holds_nothing_writes_the_same_run(at_home, monkeypatch):
    monkeypatch.setattr(parts, "HELD_BYTES", 0)
    evaluated("streamed")
    for name in ("cases.jsonl", "traces.jsonl", "verdicts.jsonl", "links.jsonl"):
        assert Path("streamed", name).read_bytes() == Path("run", name).read_bytes()
    whole, streamed = (
        json.loads(Path(name, "summary.json").read_text()) for name in ("run", "streamed")
    )
    assert streamed == whole | {"run": "streamed"}
    whole, streamed = (Path(name, "report.html").read_text() for name in ("run", "streamed"))
    assert abs(len(whole) - len(streamed)) < 200  # their names and times


def test_a_disk_that_is_full_in_the_middle_leaves_the_former_run(at_home, monkeypatch):
    former = {path.name: path.read_bytes() for path in Path("run").iterdir()}

    def full(self, items):
        with self._errors():
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(parts.PartWriter, "add_all", full)
    options = ["--goldset", "gold.jsonl", "--traces", "traces.jsonl", "--corpus", "corpus.jsonl"]
    options += ["--judge", "heuristic", "--out", "run"]
    result = CliRunner().invoke(app, ["evaluate", *options])
    assert isinstance(result.exception, InputError)
    assert "cannot be written (No space left on device)" in str(result.exception)
    assert {path.name: path.read_bytes() for path in Path("run").iterdir()} == former
    assert not [path for path in at_home.iterdir() if path.name.startswith(".run")]


@pytest.mark.slow
def test_of_a_run_that_is_not_held_only_rows_stay_in_memory(at_home, monkeypatch):
    monkeypatch.setattr(parts, "HELD_BYTES", 0)
    monkeypatch.setattr(parts, "_RECENT", 1)
    run = misslink.evaluate(
        goldset="gold.jsonl",
        traces="traces.jsonl",
        corpus="corpus.jsonl",
        cache=None,
        out="alone",
        embedding="none",
    )
    gc.collect()
    alive = Counter(type(item) for item in gc.get_objects() if isinstance(item, Trace | Verdict))
    assert alive[Verdict] <= 1
    assert alive[Trace] <= 3  # the last one read of the recording, of the capture and of the run
    assert len(run.verdicts) == 12 * len(TOWNS)
    assert len({score.case_id for score in run.scores}) == len(TOWNS)


@pytest.mark.slow
def test_runs_with_other_labels_compare_alike_where_they_are_not_held(at_home, monkeypatch):
    gold = Path("gold.jsonl").read_text(encoding="utf-8").replace('["Birk"]', '["Birk", "Cedar"]')
    Path("labels.jsonl").write_text(gold, encoding="utf-8")
    evaluated("other", goldset="labels.jsonl", traces="worse.jsonl")
    whole = said("compare", "run", "other", "--json")
    assert json.loads(whole[1])["notes"]  # of the other labels
    monkeypatch.setattr(parts, "HELD_BYTES", 0)
    assert said("compare", "run", "other", "--json") == whole
    pair = read_run("run"), read_run("other")
    rows = [link for run in share_cases(pair, {"c0", "c1"}).runs for link in run.links.light]
    assert [type(row) for row in rows] == [LinkRow] * 4  # relinked, and stored


@pytest.fixture
def read(monkeypatch):
    """How many items of each model are read of files that are not held."""
    counts, item = Counter(), parts.PartStore.item

    def counted(store, place):
        counts[store._model] += 1
        return item(store, place)

    monkeypatch.setattr(parts.PartStore, "item", counted)
    return counts


def test_a_page_reads_what_is_not_held_a_few_times(at_home, monkeypatch, read):
    monkeypatch.setattr(parts, "HELD_BYTES", 0)
    run = read_run("run")
    read.clear()
    run.html(at_home / "page.html")
    assert read[Link] <= 2 * len(TOWNS)  # each is shown; it was 40, then 7
    assert read[Trace] <= 4 * len(TOWNS)  # it was 11
    assert read[Verdict] <= 13 * len(TOWNS)  # 12 of each case are shown; it was 26, then 14


def test_an_evaluation_reads_what_is_not_held_a_few_times(at_home, monkeypatch, read):
    monkeypatch.setattr(parts, "HELD_BYTES", 0)
    evaluated("streamed")
    # The selftest's few cases are evaluated, too.
    assert read[Trace] <= 16 * len(TOWNS)  # it was 43
    assert read[Link] <= 5 * len(TOWNS)  # it was 13
    assert read[Verdict] <= 30 * len(TOWNS)  # 12 of each case are shown; it was 45


def test_groups_of_disagreements_read_only_their_own_cases(at_home, monkeypatch, read):
    said("calibrate", "run", "--labels", "labels.jsonl", "--json")
    monkeypatch.setattr(parts, "HELD_BYTES", 0)
    run = read_run("run")
    read.clear()
    group_disagreements(run, calibrations_of(run)["faithfulness"])
    assert read[Trace] < len(TOWNS)  # it was each, and all were held
    assert read[Verdict] < len(TOWNS)


def test_labels_change_links_that_are_not_held_where_they_say_so(at_home, monkeypatch):
    said("calibrate", "run", "--labels", "labels.jsonl", "--json")
    whole = apply_labels(read_run("run"))
    monkeypatch.setattr(parts, "HELD_BYTES", 0)
    run = read_run("run")
    labelled = apply_labels(run).links
    assert isinstance(labelled, parts.Part)
    assert labelled == whole.links
    assert labelled != run.links
    assert [row.failed for row in labelled.light] == [link.failed for link in whole.links]
    assert [json.loads(line)["failed"] for line in labelled.lines()] == [
        link.failed for link in whole.links
    ]
    assert labelled[2:] == list(whole.links)[2:]


def test_a_result_is_saved_without_reading_the_run_again(at_home, monkeypatch):
    saved, read = SavedRun.open("run"), []
    one_part = run_folder._read_part
    monkeypatch.setattr(
        run_folder,
        "_read_part",
        lambda path, *more: read.append(path.name) or one_part(path, *more),
    )
    saved.save("calibration", {"metric": "faithfulness"})
    assert read == ["links.jsonl"]
    assert json.loads(Path("run/calibration.json").read_text()) == {"metric": "faithfulness"}


def test_rows_of_two_runs_share_what_is_equal(at_home, monkeypatch):
    monkeypatch.setattr(parts, "HELD_BYTES", 0)
    pairs = list(zip(read_run("run").scores, read_run("run").scores, strict=True))
    assert all(a is b for pair in pairs for a, b in zip(*pair, strict=True))
    values = parts.CaseValues({"b": None, "a": 0.25}, {"a": 0, "b": 1})
    assert dict(values) == {"a": 0.25, "b": None}
    assert list(parts.CaseValues({"b": None}, {"a": 0})) == ["b"]


def test_of_a_file_too_large_to_be_held_no_item_is_held_while_it_is_read(at_home, monkeypatch):
    size = Path("run/verdicts.jsonl").stat().st_size
    lines = len(read_run("run").verdicts)
    held = []
    add = parts.PartStore.add
    monkeypatch.setattr(
        parts.PartStore,
        "add",
        lambda store, item, *at: held.append(not add(store, item, *at)),
    )
    for limit, is_held in ((size + 1_000 * lines, True), (size + 1_000 * lines - 1, False)):
        monkeypatch.setattr(parts, "HELD_BYTES", limit)
        held.clear()
        run_folder._read_part(Path("run/verdicts.jsonl"), Verdict, lines, lambda: None)
        assert held == [is_held] * lines
