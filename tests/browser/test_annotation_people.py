"""Who labels, and what they see of the judge and of each other, in a real Chromium."""

import pytest

from annotation_desk import (
    Served,
    lines_of,
    open_case,
    said_of,
    saved,
    states,
)
from misslink.annotation.session import AnnotationSession
from misslink.io.labels import read_labels

ANSWER = ("with-exit", "faithfulness", None)


@pytest.mark.slow
def test_the_judge_is_hidden_until_asked_for_and_that_is_recorded(page, served, run):
    open_case(page, served, "with-exit")
    page.keyboard.press("o")
    page.get_by_role("dialog", name="Show the judge's opinion now?").wait_for()
    page.keyboard.press("Enter")  # the focus stands on the harmless choice
    assert not page.locator("#warned").is_visible()
    assert "rests on nothing" not in page.content()
    page.keyboard.press("1")
    saved(page, "Saved: claim 1")
    page.keyboard.press("o")
    page.get_by_role("button", name="Show it").click()
    page.locator("#judge", has_text="A claim rests on nothing.").wait_for()
    assert "P(faithful) 0.31" in page.inner_text("#judge")
    page.keyboard.press("2")
    saved(page, "Saved: claim 2")

    lines = lines_of(run, "anna")
    labels = {line["claim"]: line.get("judge_shown", False) for line in lines if "label" in line}
    assert labels == {0: False, 1: True}
    assert {line["event"] for line in lines if "event" in line} == {"revealed"}


def test_a_labelled_case_shows_the_judge_without_a_warning(page, served, run):
    open_case(page, served, "context")
    page.keyboard.press("2")
    saved(page, "Saved")
    page.keyboard.press("o")
    page.locator("#judge", has_text="you say unfaithful").wait_for()
    assert not page.locator("#warned").is_visible()
    page.keyboard.press("o")
    assert not page.locator("#judge").is_visible()

    assert not any(line.get("judge_shown") for line in lines_of(run, "anna"))


@pytest.mark.slow
def test_a_comment_goes_with_its_label_and_can_be_changed(page, served, run):
    open_case(page, served, "context")
    page.keyboard.press("c")
    page.keyboard.type("12 words")  # digits are keys elsewhere
    page.keyboard.press("Enter")
    assert not (run / "labels" / "anna.jsonl").exists() or lines_of(run, "anna") == []
    page.keyboard.press("1")
    saved(page, "Saved")
    page.keyboard.press("c")
    page.locator("#comment").fill("another")
    page.keyboard.press("Enter")
    page.locator(".remark", has_text="another").wait_for()
    saved(page, "Saved")

    assert [line.get("comment") for line in lines_of(run, "anna") if "label" in line] == [
        "12 words", "another"
    ]  # fmt: skip


@pytest.mark.slow
def test_a_comment_without_a_label_waits_for_it_on_its_own_question(page, served, run):
    open_case(page, served, "with-exit")
    page.keyboard.press("c")
    page.keyboard.type("first claim")
    page.keyboard.press("Enter")
    page.keyboard.press("j")
    assert page.input_value("#comment") == ""
    page.keyboard.press("1")
    page.keyboard.press("k")
    page.keyboard.press("k")
    assert page.input_value("#comment") == "first claim"
    page.keyboard.press("2")
    saved(page, "Saved: claim 1")

    assert {line["claim"]: line.get("comment", "") for line in lines_of(run, "anna")} == {
        1: "", 0: "first claim"
    }  # fmt: skip


@pytest.mark.slow
def test_two_people_do_not_see_each_other_and_write_files_of_their_own(page, served, run):
    open_case(page, served, "context", "anna")
    page.keyboard.press("1")
    saved(page, "Saved")
    page.get_by_role("button", name="Change").click()
    page.locator("#name").fill("ben")
    page.keyboard.press("Enter")
    page.locator(".question").first.wait_for()
    open_case(page, served, "context", "ben")
    assert states(page) == ["open"]
    page.keyboard.press("2")
    saved(page, "Saved")

    assert [said_of(run, name)["context", "faithfulness", None] for name in ("anna", "ben")] == [
        1,
        0,
    ]


def test_a_name_that_cannot_be_a_file_is_refused_in_a_sentence(page, served, run):
    page.goto(served.address)
    page.locator("#name").fill("../anna")
    page.keyboard.press("Enter")
    page.locator("#name-problem", has_text="letters").wait_for()
    page.said.clear()  # the browser notes the refusal (400)

    assert page.locator("#name").get_attribute("aria-invalid") == "true"
    assert not list(run.parent.rglob("*anna*"))


@pytest.mark.slow
def test_who_adjudicates_sees_what_was_said_beside_and_is_asked_no_more(page, run):
    with AnnotationSession(run) as desk:
        at = [task.case.id for task in desk.tasks].index("with-exit")
        for name, label in (("anna", 1), ("ben", 0)):
            desk.label(name, at, "faithfulness", None, label, "hard" if label else "")
            desk.label(name, at, "correctness", None, 1, "")
    server = Served(run, adjudicate=True)
    try:
        page.goto(server.address)
        page.locator(".others").wait_for()
        said = sorted(page.locator(".others li").all_inner_texts())
        assert [text[1:] for text in said] in (
            [": faithful, hard", ": unfaithful"], [": unfaithful", ": faithful, hard"]
        )  # fmt: skip
        assert "anna" not in page.inner_text("#desk")
        assert page.locator(".question").count() == 1
        page.get_by_role("button", name="Unfaithful", exact=True).click()
        page.locator("#done", has_text="1 of 1 done").wait_for()
    finally:
        server.stop()

    assert said_of(run, "adjudicated") == {ANSWER: 0}


@pytest.mark.slow
def test_export_hands_out_everybodys_labels(page, served):
    open_case(page, served, "context")
    page.keyboard.press("1")
    saved(page, "Saved")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()

    assert read_labels(
        download.value.path().rename(download.value.path().with_suffix(".csv"))
    ).items
