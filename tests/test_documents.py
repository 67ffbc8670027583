"""The typed documents inside a run."""

import pytest

from misslink import documents
from misslink.errors import InputError
from proven_run import proven_run


def test_documents_are_read_once_and_leave_the_run_as_it_was():
    run, same = proven_run(), proven_run()
    summary = documents.summary_of(run)
    assert documents.summary_of(run) is summary
    assert run == same
    assert run.model_dump() == same.model_dump()


def test_a_copy_with_another_summary_does_not_read_the_old_one():
    run = proven_run()
    assert documents.summary_of(run).link.table.total > 0
    assert documents.summary_of(run.model_copy(update={"summary": {}})) == documents.Summary()


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
    assert (read.link.table.none["bad"], read.link.table.all["good"]) == (3, 4)
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
