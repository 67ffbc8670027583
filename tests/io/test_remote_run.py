"""Runs in a storage: whole, or none; and no run there is replaced unasked."""

import json
from pathlib import Path

import pytest

from misslink.errors import InputError
from misslink.io import RunStaging, add_to_run, read_complete_run, read_run
from misslink.io.run_folder import RemoteRun
from misslink.types import RUN_FORMAT, Case, Link, Run, Trace

fsspec = pytest.importorskip("fsspec")

URL = "memory://runs/today"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def memory():
    storage = fsspec.filesystem("memory")
    yield storage
    storage.store.clear()


def names(memory, folder="/runs/today"):
    return {path.rpartition("/")[2] for path in memory.find(folder)}


def contents(memory):
    return {path: memory.cat_file(path) for path in memory.find("/runs/today")}


def a_run(inputs, **more):
    return Run(
        manifest={"format": RUN_FORMAT, "misslink": "0", "inputs": inputs},
        cases=(Case(id="a", question="A?"),),
        traces=(Trace(case_id="a"),),
        verdicts=(),
        links=(
            Link(case_id="a", retrieval="hit", answer="faithful", failure="passed", reason="is"),
        ),
        summary={"cases": 1},
        **more,
    )


def publish(inputs, run=None, **how):
    with RunStaging(URL, inputs, "work", **how) as staging:
        return staging.publish(run or a_run(inputs), lambda path: path.write_text("<p>", "utf-8"))


def read_cases(url=URL):
    return [case.id for case in read_run(url, anywhere=True).cases]


def test_a_run_is_copied_to_its_url_and_read_from_there(memory):
    local = publish({"k": "5"})
    assert local.is_relative_to(Path(".misslink/runs").resolve())
    assert names(memory) == {path.name for path in local.iterdir()} > {"manifest.json"}
    assert memory.cat("/runs/today/report.html") == b"<p>"
    assert read_run(Path(URL), anywhere=True) == read_run(local) == a_run({"k": "5"})
    assert not {".misslink-trial", "lock"} & names(memory)


def test_a_run_of_other_inputs_is_replaced_only_when_told_and_leaves_nothing(memory):
    publish({"k": "5"}, a_run({"k": "5"}, whatif={"old": 1}))
    before = contents(memory)
    with pytest.raises(InputError, match=r"memory://runs/today: .*other inputs \(k was 5, is 3\)"):
        publish({"k": "3"})
    assert contents(memory) == before
    assert "whatif.json" in names(memory)
    memory.pipe("/runs/today/notes.txt", b"mine")
    publish({"k": "3"}, overwrite=True)
    assert json.loads(memory.cat("/runs/today/manifest.json"))["inputs"] == {"k": "3"}
    assert "whatif.json" not in names(memory)
    assert "notes.txt" in names(memory)


def test_the_same_run_again_is_no_other(memory):
    publish({"k": "5"})
    publish({"k": "5"})
    assert read_cases() == ["a"]
    assert "manifest.json" in names(memory)


def test_a_copy_that_stops_in_the_middle_is_no_run_and_the_whole_one_is_here(memory):
    publish({"k": "5"})
    put, done = memory.put_file, []

    def fails(path, key, **more):
        if key.endswith("traces.jsonl"):
            raise OSError("no room at all")
        done.append(key)
        return put(path, key, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(memory), "put_file", lambda _, *given, **more: fails(*given, **more))
        with pytest.raises(
            InputError, match=r"no room at all.*the run is complete in .*last"
        ) as told:
            publish({"k": "5"})
    assert any(key.endswith("cases.jsonl") for key in done)
    with pytest.raises(InputError, match="not a run folder"):
        read_cases()
    whole = next(Path(".misslink/runs").resolve().iterdir())
    assert str(whole) in str(told.value)
    assert read_complete_run(whole) == a_run({"k": "5"})
    publish({"k": "5"})
    assert read_cases() == ["a"]


def test_where_nothing_may_be_written_is_told_before_anything_is_done(memory, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError

    monkeypatch.setattr(type(memory), "put_file", refuse)
    with pytest.raises(InputError, match=r"today/.*the storage does not allow this to be written"):
        RunStaging(URL, {}, "work")
    assert not Path(".misslink").exists()


def test_what_an_interrupted_run_kept_is_found_again(memory):
    with RunStaging(URL, {"k": "5"}, "work") as staging:
        staging.save(Trace(case_id="a", answer="paid for"))
    with RunStaging(URL, {"k": "5"}, "work") as again:
        assert again.traces["a"].answer == "paid for"
    assert names(memory) == set()


def test_what_is_wrong_in_a_stored_run_names_its_url(memory):
    publish({"k": "5"})
    memory.pipe("/runs/today/cases.jsonl", b'{"id": "a", "question": "A?"}\n{broken\n')
    with pytest.raises(InputError, match=r"^memory://runs/today/cases.jsonl, line 2: this is not"):
        read_cases()
    memory.pipe("/runs/today/cases.jsonl", b"")
    with pytest.raises(InputError, match=r"^memory://runs/today: this run folder is not complete"):
        read_complete_run(URL, anywhere=True)
    memory.rm("/runs/today/manifest.json")
    with pytest.raises(InputError, match=r"^memory://runs/today: this is not a run folder"):
        read_cases()
    with pytest.raises(
        InputError, match=r"^memory://runs/none: there is no file or folder with this name"
    ):
        read_cases("memory://runs/none")


@pytest.mark.usefixtures("memory")
def test_who_would_write_into_a_stored_run_is_told_to_copy_it():
    publish({"k": "5"})
    with pytest.raises(
        InputError, match=r"memory://runs/today: this run is in remote storage; copy it"
    ):
        read_complete_run(URL)
    with pytest.raises(InputError, match=r"memory://runs/today: this run is in remote storage"):
        add_to_run(URL, a_run({}), "replay", {}, {})


def test_something_else_called_manifest_is_not_overwritten(memory):
    memory.pipe("/runs/today/manifest.json", b"[]")
    with pytest.raises(
        InputError, match=r"manifest.json: this is not a manifest; name another --out"
    ):
        publish({})
    memory.pipe("/runs/today/manifest.json", b'{"name": "a web page"}')
    with pytest.raises(InputError, match=r"has something that is not a run"):
        publish({})
    publish({}, overwrite=True)


def test_two_urls_of_one_name_are_made_in_two_folders():
    places = {RemoteRun(f"memory://{where}/today").local for where in ("a", "b")}
    assert len(places) == 2
    assert {place.name.partition("-")[0] for place in places} == {"today"}


def made(created, **more):
    run = a_run({"k": "5"}, **more)
    return run.model_copy(update={"manifest": {**run.manifest, "created": created}})


def test_on_another_machine_what_was_found_of_a_stored_run_is_there_to_be_taken_over(
    tmp_path, monkeypatch
):
    publish({"k": "5"}, made("2026-01-02T00:00:00+00:00", calibration={"metric": "faithfulness"}))
    other = tmp_path / "another"
    other.mkdir()
    monkeypatch.chdir(other)
    with RunStaging(URL, {"k": "5"}, "work") as staging:
        assert read_run(staging.out).calibration == {"metric": "faithfulness"}
    assert not [path for path in staging.out.parent.iterdir() if path != staging.out]


def test_traces_of_a_stored_run_whose_judging_was_left_unfinished_are_used_elsewhere(
    tmp_path, monkeypatch
):
    run = made("2026-01-02T00:00:00+00:00")
    left = {**run.manifest, "work": "work", "unfinished": 3}
    publish({"k": "5"}, run.model_copy(update={"manifest": left}))
    other = tmp_path / "another"
    other.mkdir()
    monkeypatch.chdir(other)
    with RunStaging(URL, {"k": "5"}, "work") as staging:
        assert list(staging.traces) == ["a"]


def test_a_run_that_lies_here_and_is_newer_is_not_replaced_by_the_stored_one(memory):
    publish({"k": "5"}, made("2026-01-02T00:00:00+00:00", calibration={"metric": "old"}))
    stored = contents(memory)
    publish({"k": "5"}, made("2026-01-03T00:00:00+00:00", calibration={"metric": "new"}))
    for path, held in stored.items():
        memory.pipe(path, held)
    with RunStaging(URL, {"k": "5"}, "work") as staging:
        assert read_run(staging.out).calibration == {"metric": "new"}


@pytest.mark.usefixtures("memory")
def test_a_signed_address_and_a_bare_scheme_name_no_run():
    url = "https://127.0.0.1/runs/today?sig=s3cr3t"
    for act in (lambda: RemoteRun(url), lambda: read_run(url, anywhere=True)):
        with pytest.raises(InputError, match=r"^https://127.0.0.1/runs/today: a run is a folder"):
            act()
    for url in ("s3://", "file:///", "memory://"):
        with pytest.raises(InputError, match=r"this address names no folder; add one"):
            RemoteRun(url)
