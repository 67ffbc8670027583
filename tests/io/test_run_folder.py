"""A run folder is whole or not there, and nothing of anybody else's is lost."""

import os
import re
from pathlib import Path

import pytest

from misslink.api.saved_run import report_writers
from misslink.errors import InputError
from misslink.io import RunStaging, add_to_run, read_complete_run, read_run
from misslink.registry import exporters
from misslink.types import Case, Claim, Evidence, Link, Passage, Run, Trace, Verdict


def example(inputs="i1"):
    claim = Claim(
        text="A\u2028\U0001f600",
        support="supported",
        probability=1 / 3,
        evidence=(Evidence(passage_id="p", quote="A", start=0, end=1),),
    )
    return Run(
        manifest={"misslink": "0", "inputs": {"k": inputs}, "k": 5},
        cases=(Case(id="a", question="A?", relevant={"p": 2}, evidence={"x": 1}),),
        traces=(Trace(case_id="a", retrieved=(Passage(id="p", text="A", rank=1, score=0.1),)),),
        verdicts=(
            Verdict(
                case_id="a", metric="m", status="scored", value=0.1, claims=(claim,), judge="j"
            ),
        ),
        links=(
            Link(
                case_id="a", retrieval="hit", answer="faithful", failure="passed", reason="as it is"
            ),
        ),
        summary={"link": {"n": None}},
    )


def publish(out, inputs="i1", **options):
    with RunStaging(out, {"k": inputs}, "w", **options) as staging:
        staging.publish(example(inputs), lambda path: path.write_text("page", encoding="utf-8"))


def kept_by(out, work):
    with RunStaging(out, {"k": "i1"}, work) as staging:
        return staging.traces


def test_a_run_round_trips_without_loss(tmp_path):
    publish(tmp_path / "run")
    assert read_run(tmp_path / "run") == example()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run"]


def test_a_run_of_the_same_inputs_is_replaced_and_one_of_others_is_refused(tmp_path):
    out = tmp_path / "run"
    publish(out)
    publish(out)
    with pytest.raises(
        InputError, match=r"has a run of other inputs \(k was i1, is i2\); choose another --out"
    ):
        RunStaging(out, {"k": "i2"}, "w")
    publish(out, "i2", overwrite=True)
    assert read_run(out).manifest["inputs"] == {"k": "i2"}


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ("0123456789abcdef", "fedcba9876543210", "goldset has changed"),
        (None, "fedcba9876543210", "goldset was not given, is given"),
        ("0123456789abcdef", None, "goldset was given, is not given"),
        ("0.5", "0.7", "goldset was 0.5, is 0.7"),
    ],
)
def test_a_changed_input_is_named_without_its_hash(tmp_path, old, new, difference):
    def inputs(value):
        return {"k": "3"} if value is None else {"k": "3", "goldset": value}

    with RunStaging(tmp_path / "run", inputs(old), "w") as staging:
        run = example().model_copy(
            update={"manifest": {**example().manifest, "inputs": inputs(old)}}
        )
        staging.publish(run, lambda path: path.write_text("page", encoding="utf-8"))
    with pytest.raises(InputError, match=rf"other inputs \({difference}\)"):
        RunStaging(tmp_path / "run", inputs(new), "w")


def test_a_folder_with_something_else_is_refused_and_with_overwrite_its_files_stay(tmp_path):
    out = tmp_path / "mine"
    out.mkdir()
    (out / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(InputError, match="has something that is not a run"):
        RunStaging(out, {"k": "i1"}, "w")
    publish(out, overwrite=True)
    assert (out / "thesis.txt").read_text(encoding="utf-8") == "years of work"
    assert read_run(out) == example()


def test_a_swap_cut_between_its_renames_is_finished_by_the_next_start(tmp_path):
    out = tmp_path / "run"
    publish(out)
    (out / "note.txt").write_text("kept", encoding="utf-8")
    out.rename(tmp_path / ".run.misslink-old")
    kept_by(out, "w")
    assert read_run(out) == example()
    publish(tmp_path / "other")
    (tmp_path / "run").rename(tmp_path / ".run.misslink-old")
    (tmp_path / "other").rename(out)
    kept_by(out, "w")
    assert (out / "note.txt").read_text(encoding="utf-8") == "kept"


def test_traces_of_an_interrupted_run_are_kept_up_to_the_last_whole_line(tmp_path):
    out = tmp_path / "run"
    with RunStaging(out, {"k": "i1"}, "w1") as first:
        first.save(Trace(case_id="a", answer="A\u2028B"))
        first.save(Trace(case_id="b"))
    with (tmp_path / ".run.misslink-partial" / "kept.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"case_id": "of another version"}\n{"case_id": "c", "ret')
    with RunStaging(out, {"k": "i2"}, "w1") as again:
        assert set(again.traces) == {"a", "b", "of another version"}
        assert again.traces["a"] == Trace(case_id="a", answer="A\u2028B")
        again.save(Trace(case_id="c"))
    assert set(kept_by(out, "w1")) == {"a", "b", "c", "of another version"}
    assert kept_by(out, "w2") == {}, "another app's traces must not be taken"


def test_a_line_of_another_version_is_asked_again(tmp_path):
    with RunStaging(tmp_path / "run", {"k": "i1"}, "w") as staging:
        staging.save(Trace(case_id="a"))
    with (tmp_path / ".run.misslink-partial" / "kept.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"case": "b"}\n')
    assert set(kept_by(tmp_path / "run", "w")) == {"a"}


def test_two_processes_do_not_write_one_run(tmp_path):
    with (
        RunStaging(tmp_path / "run", {"k": "i1"}, "w"),
        pytest.raises(InputError, match="another misslink is writing this run"),
    ):
        RunStaging(tmp_path / "run", {"k": "i1"}, "w")
    kept_by(tmp_path / "run", "w")


def test_a_second_start_during_the_swap_leaves_it_alone(tmp_path):
    """It must not put the former run back while the new one is about to take its place."""
    out, refused = tmp_path / "run", []
    publish(out)

    def start_another(path):
        path.write_text("new page", encoding="utf-8")
        out.rename(tmp_path / ".run.misslink-old")
        with pytest.raises(InputError, match="another misslink is writing this run"):
            RunStaging(out, {"k": "i1"}, "w")
        refused.append(not out.exists())

    with RunStaging(out, {"k": "i1"}, "w") as staging:
        staging.publish(example(), start_another)
    assert refused == [True]
    assert (out / "report.html").read_text(encoding="utf-8") == "new page"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("name", [".run.misslink-partial", ".run.misslink-old"])
def test_a_planted_link_is_refused_and_nothing_behind_it_is_touched(tmp_path, name):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work", encoding="utf-8")
    (tmp_path / name).symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match=rf"{name}: this is a link where misslink needs a folder"):
        publish(tmp_path / "run")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]


def test_a_foreign_file_of_our_name_is_moved_aside_not_lost(tmp_path):
    out = tmp_path / "site"
    out.mkdir()
    (out / "manifest.json").write_text('{"name": "my web app"}', encoding="utf-8")
    (tmp_path / ".site.old").mkdir()
    publish(out, overwrite=True)
    assert (out / "manifest.json.before").read_text(encoding="utf-8") == '{"name": "my web app"}'
    assert read_run(out) == example()
    assert (tmp_path / ".site.old").is_dir()


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "run").symlink_to(tmp_path / "disk")
    publish(tmp_path / "run")
    publish(tmp_path / "run")
    assert (tmp_path / "run").is_symlink()
    assert read_run(tmp_path / "disk") == example()


def test_a_run_that_kept_nothing_leaves_nothing(tmp_path):
    with RunStaging(tmp_path / "run", {"k": "i1"}, "w"):
        pass
    assert list(tmp_path.iterdir()) == []
    with RunStaging(tmp_path / "run", {"k": "i1"}, "w") as staging:
        staging.save(Trace(case_id="a"))
    assert set(kept_by(tmp_path / "run", "w")) == {"a"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="cannot be written"):
        RunStaging(tmp_path / "run", {"k": "i1"}, "w")


def test_a_file_where_a_folder_should_be_is_told(tmp_path):
    (tmp_path / "run").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match="this is a file; name a folder"):
        RunStaging(tmp_path / "run", {"k": "i1"}, "w")
    with pytest.raises(InputError, match="cannot be written"):
        RunStaging(tmp_path / "run" / "deep", {"k": "i1"}, "w")


def test_the_working_folder_itself_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="needs its own folder"):
        RunStaging(tmp_path, {"k": "i1"}, "w")


def test_what_is_no_run_folder_or_damaged_is_told(tmp_path):
    with pytest.raises(InputError, match="not a run folder"):
        read_run(tmp_path)
    publish(tmp_path / "run")
    (tmp_path / "run" / "links.jsonl").write_text('{"case_id": "a"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"links.jsonl, line 1, field 'retrieval'"):
        read_run(tmp_path / "run")
    (tmp_path / "run" / "summary.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match=r"links.jsonl|summary.json"):
        read_run(tmp_path / "run")


@pytest.mark.parametrize("part", ["cases", "traces", "verdicts", "links"])
def test_a_folder_that_lost_a_line_is_not_whole(tmp_path, part):
    publish(tmp_path / "run")
    summary = tmp_path / "run" / "summary.json"
    summary.write_text('{"cases": 1, "coverage": {"m": {"scored": 1}}}', encoding="utf-8")
    assert read_complete_run(tmp_path / "run").cases == example().cases
    (tmp_path / "run" / f"{part}.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"not complete \(\w+.jsonl has [01] entries of its cases"):
        read_complete_run(tmp_path / "run")


@pytest.mark.parametrize("part", ["traces", "verdicts", "links"])
def test_a_part_of_another_run_is_a_sentence(tmp_path, part):
    publish(tmp_path / "run")
    summary = tmp_path / "run" / "summary.json"
    summary.write_text('{"cases": 1, "coverage": {"m": {"scored": 1}}}', encoding="utf-8")
    file = tmp_path / "run" / f"{part}.jsonl"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"case_id":"a"', '"case_id":"old"'), encoding="utf-8")
    with pytest.raises(InputError, match=rf"not complete \({part}\.jsonl has 0 entries of its"):
        read_complete_run(tmp_path / "run")


@pytest.mark.parametrize("file", ["summary.json", "manifest.json", "verdicts.jsonl"])
def test_what_is_nested_too_deeply_is_told_not_a_traceback(tmp_path, file):
    publish(tmp_path / "run")
    (tmp_path / "run" / file).write_text('{"a":' * 200_000 + "1" + "}" * 200_000, encoding="utf-8")
    with pytest.raises(InputError, match="nested too deeply") as refused:
        read_run(tmp_path / "run")
    assert refused.value.path == str(tmp_path / "run" / file)


def page(run, path):
    path.write_text(f"{run.replay} {run.whatif} {run.links[0].basis}", encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    publish(tmp_path / "run")
    return tmp_path / "run"


def test_a_document_comes_with_its_links_and_a_page_of_both(folder):
    run = read_run(folder)
    replayed = run.model_copy(
        update={"links": (run.links[0].model_copy(update={"basis": "replayed"}),)}
    )
    made = add_to_run(folder, replayed, "replay", {"sample": 1}, {"report.html": page})
    assert read_run(folder) == made
    assert made.replay == {"sample": 1}
    assert (folder / "report.html").read_text(encoding="utf-8") == "{'sample': 1} None replayed"
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_the_reports_that_a_folder_has_are_all_written_anew(folder):
    (folder / "report.md").write_text("of before", encoding="utf-8")
    assert sorted(report_writers(folder)) == ["report.html", "report.md"]
    add_to_run(folder, read_run(folder), "replay", {"sample": 1}, report_writers(folder))
    assert "of before" not in (folder / "report.md").read_text(encoding="utf-8")
    assert not (folder / "report.csv").exists()


def test_a_report_of_any_format_goes_with_its_run_and_other_files_stay(folder, monkeypatch):
    monkeypatch.setitem(exporters._entries, "outside", page)
    monkeypatch.setitem(exporters._details, "outside", {"file": "cases.outside"})
    for name in ("cases.outside", "report.csv", "notes.txt"):
        (folder / name).write_text("of before", encoding="utf-8")
    publish(folder)
    assert (folder / "notes.txt").exists()
    assert not (folder / "cases.outside").exists()
    assert not (folder / "report.csv").exists()


def test_what_fails_while_it_is_written_changes_nothing(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fails(run, path):
        page(run, path)
        raise RuntimeError("out of ink")

    with pytest.raises(RuntimeError, match="out of ink"):
        add_to_run(folder, read_run(folder), "whatif", {"options": []}, {"report.html": fails})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="not a run folder"):
        add_to_run(tmp_path, example(), "replay", {}, {"report.html": page})


@pytest.mark.parametrize(
    ("name", "command"),
    [("calibration", "calibrate"), ("replay", "replay"), ("whatif", "whatif"), ("map", "evaluate")],
)
def test_a_broken_document_names_the_command_that_writes_it_again(folder, name, command):
    (folder / f"{name}.json").write_text('{"metric": ', encoding="utf-8")
    with pytest.raises(InputError, match=rf"{name}\.json: .*run  misslink {command}  again"):
        read_run(folder)


def test_what_a_run_repeats_is_held_once(tmp_path):
    run = example()
    again = [run.verdicts[0].model_copy(update={"metric": name}) for name in "mno"]
    other = run.verdicts[0].model_copy(update={"metric": "p", "claims": ()})
    run = run.model_copy(update={"verdicts": (*again, other)})
    with RunStaging(tmp_path / "run", {"k": "i1"}, "w") as staging:
        staging.publish(run, lambda path: path.write_text("page", encoding="utf-8"))
    read = read_run(tmp_path / "run")
    assert read == run
    assert len({id(verdict.claims[0]) for verdict in read.verdicts[:3]}) == 1
    names = [item.model_fields_set for item in (*read.cases, *read.traces, *read.verdicts)]
    assert len({id(each) for each in names}) == len({frozenset(each) for each in names})


def test_a_copy_with_a_change_leaves_the_names_of_others_as_they_are():
    first, second = Case(question="Why?"), Case(question="When?")
    before = set(second.model_fields_set)
    changed = first.model_copy(update={"category": "x"})
    assert changed.model_fields_set == before | {"category"}
    assert first.model_fields_set == second.model_fields_set == before
    again = second.model_copy(update={"category": "y"})
    assert again.model_fields_set is changed.model_fields_set


@pytest.mark.source
def test_duckdb_and_polars_read_a_run_as_the_page_says(tmp_path, monkeypatch):
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    page = Path(__file__).parents[2] / "docs" / "reference" / "run-folder.md"
    sql, query = re.search(
        r"```sql\n(.+?)```\s+```text\n(.+?)```", page.read_text(encoding="utf-8"), re.DOTALL
    ).groups()
    run = example()
    judged = run.verdicts[0].model_copy(update={"metric": "faithfulness"})
    monkeypatch.chdir(tmp_path)
    with RunStaging(Path("reports/today"), {"k": "i1"}, "w") as staging:
        staging.publish(run.model_copy(update={"verdicts": (judged,)}), lambda path: path.touch())
    assert duckdb.sql(sql).fetchall() == [("passed", 1, 0.1)]
    assert eval(query, {"polars": polars}).rows() == [("passed", 1)]  # noqa: S307 (our own page)
