"""What later commands add to a run folder."""

from __future__ import annotations

import pytest

from misslink.cli.report import report_writers
from misslink.errors import InputError
from misslink.io import RunStaging, add_to_run, read_run
from misslink.types import Case, Link, Run, Trace


def a_run():
    case = Case(id="c", question="q", relevant={"p": 1})
    link = Link(case_id="c", retrieval="miss", answer="unknown", failure="inconclusive", reason="r")
    manifest = {"misslink": "0", "inputs": {}}
    traces = (Trace(case_id="c"),)
    return Run(
        manifest=manifest, cases=(case,), traces=traces, verdicts=(), links=(link,), summary={}
    )


def page(run, path):
    path.write_text(f"{run.replay} {run.whatif} {run.links[0].basis}", encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    with RunStaging(tmp_path / "run", {}, "work") as staging:
        run = a_run()
        return staging.publish(run, lambda path: page(run, path))


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


def test_what_fails_while_it_is_written_changes_nothing(folder):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fails(run, path):
        page(run, path)
        raise RuntimeError("out of ink")

    with pytest.raises(RuntimeError, match="out of ink"):
        add_to_run(folder, read_run(folder), "whatif", {"options": []}, {"report.html": fails})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_another_folder_is_refused(tmp_path):
    with pytest.raises(InputError, match="no run folder"):
        add_to_run(tmp_path, a_run(), "replay", {}, {"report.html": page})


@pytest.mark.parametrize(
    ("name", "command"),
    [("calibration", "calibrate"), ("replay", "replay"), ("whatif", "whatif"), ("map", "evaluate")],
)
def test_a_broken_document_names_the_command_that_writes_it_again(folder, name, command):
    (folder / f"{name}.json").write_text('{"metric": ', encoding="utf-8")
    with pytest.raises(InputError, match=rf"{name}\.json: .*run  misslink {command}  again"):
        read_run(folder)
