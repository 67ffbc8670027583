"""Labelling a run in a real Chromium, against the real server: keys, files, undo, coming back."""

import pytest

from annotation_desk import (
    FIRST,
    SECOND,
    lines_of,
    open_case,
    said_of,
    saved,
    states,
)
from misslink.io.labels import read_labels

CLAIM, ANSWER = ("with-exit", "faithfulness", 0), ("with-exit", "faithfulness", None)


@pytest.mark.slow
def test_a_whole_run_is_labelled_by_the_keyboard_alone(page, served, run):
    keys = {"with-exit": ["1", "2", "Enter", "1"], "context": ["2"], "unjudged": ["s"]}
    page.goto(served.address)
    page.locator("#name").wait_for()
    page.keyboard.type("anna")
    page.keyboard.press("Enter")
    for place in (1, 2, 3):
        page.locator(".meta", has_text=f"Case {place} of 3").wait_for()
        for key in keys[page.inner_text(".meta code")]:
            page.keyboard.press(key)
        page.locator("#done", has_text=f"{place} of 3 done").wait_for()
        page.keyboard.press("Enter")
    page.get_by_role("heading", name="Everything is labelled").wait_for()

    assert page.inner_text(".command") == f"misslink calibrate {run}"
    assert said_of(run, "anna") == {
        CLAIM: 1,
        ("with-exit", "faithfulness", 1): 0,
        ANSWER: 0,
        ("with-exit", "correctness", None): 1,
        ("context", "faithfulness", None): 0,
        ("unjudged", "faithfulness", None): None,
    }
    held = {
        (one.case_id, one.metric, one.claim): one.value for one in read_labels(run / "labels").items
    }
    assert held == {k: v for k, v in said_of(run, "anna").items() if v is not None}


def test_a_click_labels_as_a_key_does(page, served, run):
    open_case(page, served, "context")
    page.get_by_role("button", name="Unfaithful", exact=True).click()
    saved(page, "Saved: answer unfaithful")

    assert said_of(run, "anna") == {("context", "faithfulness", None): 0}
    assert (
        page.get_by_role("button", name="Unfaithful", exact=True).get_attribute("aria-pressed")
        == "true"
    )


@pytest.mark.slow
def test_claims_are_marked_where_they_stand_though_an_emoji_comes_before(page, served):
    open_case(page, served, "with-exit")

    assert page.locator(".answer .claim").all_inner_texts() == [FIRST, SECOND]
    assert page.locator(".answer .claim.lit").inner_text() == FIRST
    page.keyboard.press("j")
    assert page.locator(".answer .claim.lit").inner_text() == SECOND
    page.keyboard.press("ArrowUp")
    assert page.locator(".answer .claim.lit").inner_text() == FIRST
    page.locator(".answer .claim").nth(1).click()
    assert page.inner_text("#claim") == SECOND


@pytest.mark.slow
def test_whole_words_of_the_claim_in_focus_are_marked_in_passages(page, served):
    open_case(page, served, "with-exit")

    # "socket" and "withdrawn" are other words, "with" and "the" say nothing.
    assert page.locator(".passage mark").all_inner_texts() == ["statement", "sockets"]
    assert page.locator(".passage .found").all_inner_texts() == [
        "2 of 3 words of the claim", "0 of 3 words of the claim"
    ]  # fmt: skip
    for _ in range(3):
        page.keyboard.press("j")
    assert page.locator(".passage mark").count() == 0


@pytest.mark.slow
def test_a_long_passage_is_folded_and_a_key_opens_it(page, served):
    open_case(page, served, "context")
    passage = page.locator(".passage")

    assert passage.get_attribute("open") is None
    page.keyboard.press("e")
    assert passage.get_attribute("open") is not None


@pytest.mark.slow
def test_the_label_that_follows_is_offered_and_not_set(page, served, run):
    open_case(page, served, "with-exit")
    page.keyboard.press("1")
    assert not page.locator("#enter").is_visible()
    page.keyboard.press("1")
    page.get_by_role("button", name="Take faithful").wait_for()
    saved(page, "Saved: claim 2 supported")
    assert ANSWER not in said_of(run, "anna")
    page.keyboard.press("Enter")
    saved(page, "Saved: answer faithful")

    assert said_of(run, "anna")[ANSWER] == 1
    assert not page.locator("#enter").is_visible()
    assert page.inner_text("#place") == "Question 4 of 4, 1 open"


@pytest.mark.slow
def test_after_the_last_label_the_case_says_so_and_enter_goes_on(page, served):
    open_case(page, served, "with-exit")
    for key in ("1", "1", "Enter", "1"):
        page.keyboard.press(key)
    page.locator("#offer", has_text="This case is labelled.").wait_for()
    assert page.inner_text("#place") == "Question 4 of 4, none open"
    at = served.cases.index("with-exit")
    page.get_by_role("button", name="Next case" if at < 2 else "Finish").wait_for()
    page.keyboard.press("Enter")
    page.locator("#done", has_text="1 of 3 done").wait_for()
    page.locator(".meta code", has_text="with-exit").wait_for(state="detached")


@pytest.mark.slow
def test_a_key_labels_the_question_that_is_shown_and_no_other(page, served, run):
    open_case(page, served, "with-exit")
    for key in ("2", "2", "2"):
        page.keyboard.press(key)
    page.locator("#ask", has_text="reference").wait_for()
    page.keyboard.press("1")
    saved(page, "Saved: answer correct")
    for key in ("3", "4", "g", "b"):
        page.keyboard.press(key)

    assert states(page) == ["not supported", "not supported", "unfaithful", "correct"]
    assert [line["label"] for line in lines_of(run, "anna") if "label" in line] == [0, 0, 0, 1]


@pytest.mark.slow
def test_contradictory_labels_are_asked_about_once(page, served, run):
    open_case(page, served, "with-exit")
    for key in ("1", "1", "2"):
        page.keyboard.press(key)
    page.locator(
        "#offer", has_text="All claims are supported, but the answer is labelled"
    ).wait_for()
    assert (
        page.locator(".question[aria-current] .small").first.inner_text() == "Answer, faithfulness"
    )
    page.get_by_role("button", name="Keep both").wait_for()
    page.keyboard.press("Enter")
    page.locator("#ask", has_text="reference").wait_for()
    page.keyboard.press("k")
    page.keyboard.press("2")
    page.locator("#ask", has_text="reference").wait_for()
    page.keyboard.press("1")
    saved(page, "Saved: answer correct")

    assert said_of(run, "anna")[ANSWER] == 0


@pytest.mark.slow
def test_a_contradiction_by_a_claim_is_mended_by_the_answers_other_label(page, served, run):
    open_case(page, served, "with-exit")
    for key in ("j", "j", "1", "k", "k", "2"):
        page.keyboard.press(key)
    page.locator(
        "#offer", has_text="A claim is not supported, but the answer is labelled"
    ).wait_for()
    page.keyboard.press("2")
    saved(page, "changed from faithful to unfaithful")

    assert said_of(run, "anna")[ANSWER] == 0
    assert not page.locator("#enter").is_visible()


@pytest.mark.slow
def test_nothing_follows_from_a_claim_that_was_skipped(page, served):
    open_case(page, served, "with-exit")
    page.keyboard.press("1")
    page.keyboard.press("s")
    page.locator("#ask", has_text="Is every claim").wait_for()
    saved(page, "Saved: claim 2 skipped")
    page.keyboard.press("Enter")

    assert not page.locator("#enter").is_visible()
    assert states(page) == ["supported", "skipped", "open", "open"]


@pytest.mark.slow
def test_undo_takes_back_the_last_label_and_then_the_one_before(page, served, run):
    open_case(page, served, "with-exit")
    page.keyboard.press("1")
    page.keyboard.press("2")
    saved(page, "Saved: claim 2 not supported")
    page.keyboard.press("u")
    saved(page, "Undone")
    assert states(page) == ["supported", "open", "open", "open"]
    assert page.inner_text("#claim") == SECOND
    page.keyboard.press("Control+z")
    page.locator("#claim", has_text=FIRST).wait_for()
    assert states(page) == ["open"] * 4
    page.keyboard.press("u")
    saved(page, "you have no label to undo")

    assert [line.get("event") for line in lines_of(run, "anna")] == [None, None, "undone", "undone"]
    page.said.clear()  # the browser notes the refusal (409) on its console


@pytest.mark.slow
def test_undo_goes_back_to_the_case_of_the_label(page, served):
    open_case(page, served, "context")
    page.keyboard.press("1")
    saved(page, "Saved")
    open_case(page, served, "unjudged")
    page.keyboard.press("u")

    page.locator(".meta code", has_text="context").wait_for()


@pytest.mark.slow
def test_a_page_opened_again_goes_on_where_its_annotator_stopped(page, served):
    open_case(page, served, "with-exit")
    page.keyboard.press("1")
    saved(page, "Saved")
    page.reload()
    page.locator(".question").first.wait_for()
    assert states(page) == ["supported", "open", "open", "open"]
    assert page.inner_text("#claim") == SECOND

    first = page.goto(served.address) and page.get_by_role("button", name="anna", exact=True)
    first.click()
    page.locator(".meta", has_text="Case 1 of 3").wait_for()
    while page.locator("#done").inner_text() == "0 of 3 done":
        for _ in range(page.locator(".question").count()):
            page.keyboard.press("2")
        page.locator("#done", has_text="1 of 3 done").wait_for()
    page.goto("about:blank")
    page.goto(f"{served.address}#annotator=anna")
    page.locator(".meta", has_text="Case 2 of 3").wait_for()
    assert page.evaluate("location.hash") == "#annotator=anna&case=2"


@pytest.mark.slow
def test_back_in_the_browser_goes_to_the_case_before(page, served):
    page.goto(f"{served.address}#annotator=anna&case=1")
    page.locator(".meta", has_text="Case 1 of 3").wait_for()
    page.keyboard.press("n")
    page.locator(".meta", has_text="Case 2 of 3").wait_for()
    page.go_back()
    page.locator(".meta", has_text="Case 1 of 3").wait_for()
    page.keyboard.press("p")
    page.wait_for_timeout(50)
    assert "Case 1 of 3" in page.inner_text(".meta")


@pytest.mark.slow
def test_the_keys_are_shown_on_the_buttons_and_in_the_help(page, served):
    open_case(page, served, "with-exit")
    shown = dict(
        page.locator("#dock button:visible").evaluate_all(
            "all => all.map((one) => [...one.children].map((part) => part.textContent))"
        )
    )
    assert shown == {
        "Supported": "1", "Not supported": "2", "Skip": "s", "Previous": "p", "Next": "n",
        "Undo": "u", "Comment": "c", "Judge": "o", "Keys": "?",
    }  # fmt: skip
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog", name="Keys")
    dialog.wait_for()
    assert {"correctness: correct, incorrect", "skip: you cannot or will not say"} <= set(
        dialog.locator("dd").all_inner_texts()
    )
    page.keyboard.press("1")  # no label behind the open help
    page.keyboard.press("Escape")

    assert not dialog.is_visible()
    assert states(page) == ["open"] * 4
