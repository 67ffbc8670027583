"""The typed documents inside a run."""

import json

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

import misslink
from misslink import documents
from misslink.calibration_document import Audit, CalibrationDocument
from misslink.cli.main import app
from misslink.document_model import Document
from misslink.errors import InputError
from misslink.examples import load_example
from misslink.selftests.document import Selftest
from proven_run import proven_run
from replayed_app import forget_stores, replayed, towns


def test_documents_are_read_once_and_leave_the_run_as_it_was():
    run, same = proven_run(), proven_run()
    summary = documents.summary_of(run)
    assert documents.summary_of(run) is summary
    assert run == same
    assert run.model_dump() == same.model_dump()


def test_a_copy_with_another_summary_does_not_read_the_old_one():
    run = proven_run()
    assert documents.summary_of(run).link.table.total > 0
    assert documents.summary_of(run.model_copy(update={"summary": {}})) == documents.Summary.read(
        {}
    )


def test_a_key_with_half_a_character_is_read_with_a_replacement():
    summary = documents.parse_document(
        documents.Summary, {"judge": "j", "a\ud83d": 1}, "summary.json"
    )
    assert (summary.judge, summary.model_extra) == ("j", {"a?": 1})


def test_both_kinds_of_bad_answers_are_read_into_one_table():
    link = {
        "link": {"table": {"none": {"bad": 3, "good": 0}, "all": {"bad": 0, "good": 4}}},
        "link_correctness": {"table": {"some": {"bad": 1, "good": 2}, "left_out": 5}},
    }
    read = documents.parse_document(documents.Summary, link, "x.json")
    assert (read.link.table.none.bad, read.link.table.all.good) == (3, 4)
    assert (read.link_correctness.table.left_out, read.link_correctness.table.total) == (5, 3)


@pytest.mark.parametrize(
    ("name", "content", "field"),
    [
        (
            "summary",
            {"link": {"table": {"none": {"bad": "three"}}}},
            "link.table.none.bad",
        ),
        ("summary", {"retrieval": {"mrr": {"value": 0.5}}}, "retrieval.mrr.low"),
        ("replay", {"failures": []}, "failures"),
        ("whatif", {"options": [{"newly_retrieved": 0.5}]}, "options.0.newly_retrieved"),
        ("calibration", {"threshold": float("nan")}, "threshold"),
    ],
)
def test_what_does_not_fit_is_named_by_file_and_field(name, content, field):
    run = proven_run().model_copy(update={name: content})
    with pytest.raises(InputError) as refused:
        getattr(documents, f"{name}_of")(run)
    assert (refused.value.path, refused.value.field) == (f"{name}.json", field)


def models(base=Document):
    for model in base.__subclasses__():
        yield model
        yield from models(model)


def test_where_a_document_is_written_no_field_has_a_default_and_no_other_key_goes_in():
    every = set(models())
    assert len(every) > 50
    defaults = [
        (model.__name__, name)
        for model in every
        for name, field in model.model_fields.items()
        if not field.is_required()
    ]
    assert defaults == []
    assert [model for model in every if model.model_config["extra"] != "forbid"] == []


def unset_and_unknown(model, written):
    """Keys that are missing and keys that no field has, with their places."""
    try:
        model.model_validate(written)  # as a writer: nothing is filled in
    except ValidationError as problem:
        return [(".".join(map(str, e["loc"])), e["type"]) for e in problem.errors()]
    return []


@pytest.mark.slow
def test_a_run_is_written_with_every_field_and_no_other():
    run = misslink.evaluate(**load_example("ferry"), cache=None)
    assert unset_and_unknown(documents.Manifest, run.manifest) == []
    assert unset_and_unknown(documents.Summary, run.summary) == []


@pytest.mark.slow
def test_what_is_found_of_a_run_is_written_with_every_field_and_no_other(tmp_path):
    out = tmp_path / "run"
    example = load_example("ferry")
    run = misslink.evaluate(**example, out=out, cache=None)
    labels = [
        {"case_id": v.case_id, "metric": v.metric, "label": int(v.value > 0.5), "annotator": "ada"}
        for v in run.verdicts
        if v.metric == "faithfulness" and v.value is not None
    ]
    misslink.whatif(out, corpus=example["corpus"], options=["bm25"])
    audit = ["judge", "audit", str(out), "--judge", "heuristic", "--sample", "3"]
    assert CliRunner().invoke(app, audit).exit_code == 0
    misslink.calibrate(out, labels)
    misslink.selftest(out, n=1, cache=None)
    for name, model in (
        ("whatif", documents.WhatIf),
        ("audit", Audit),
        ("calibration", CalibrationDocument),
        ("selftest", Selftest),
    ):
        written = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
        assert unset_and_unknown(model, written) == [], name


@pytest.mark.slow
def test_a_replay_is_written_with_every_field_and_no_other(judge_server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", judge_server.url)
    answering, run = towns(judge_server, missed=("1", "2"), found=("5",))
    found = replayed(run, answering)
    forget_stores()
    assert unset_and_unknown(documents.Replay, found.replay.document()) == []


def test_a_writer_that_forgets_or_renames_a_field_is_told_its_name():
    with pytest.raises(ValidationError, match=r"(?s)scored\s+Field required.*score\s+Extra inputs"):
        documents.Coverage(score=1, skipped=0, failed=0)
