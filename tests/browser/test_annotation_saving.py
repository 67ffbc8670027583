"""Labels while the server is away, and requests from elsewhere: nothing lost, nothing let in."""

import pytest

from annotation_desk import Served, open_case, said_of, small_run, write_run


@pytest.fixture
def page(noisy_page):
    """The page may say on its console that the server is away."""
    return noisy_page


@pytest.mark.slow
def test_labels_made_while_the_server_is_away_are_kept_and_saved_on_a_click(page, served, run):
    open_case(page, served, "with-exit")
    page.keyboard.press("1")
    page.locator("#saved", has_text="Saved").wait_for()
    served.stop()
    page.keyboard.press("2")
    page.locator("#banner").wait_for()
    page.keyboard.press("2")
    page.keyboard.press("2")
    page.locator("#unsaved li").nth(2).wait_for()
    assert page.locator("#unsaved li").count() == 3
    assert f"--port {served.port}" in page.inner_text("#trouble")
    assert page.inner_text("#saved") == "Not saved"
    assert page.locator(".state", has_text="not saved yet").count() == 3
    page.get_by_role("button", name="Try again").click()  # still away
    page.locator("#saved", has_text="Not saved").wait_for()
    served.start()
    # Not click(), which waits for a button that the page's own next try may hide first.
    page.get_by_role("button", name="Try again").dispatch_event("click")
    page.locator("#done", has_text="1 of 3 done").wait_for()

    assert not page.locator("#banner").is_visible()
    assert page.inner_text("#saved") == "Saved: answer incorrect"
    assert said_of(run, "anna") == {
        ("with-exit", "faithfulness", 0): 1,
        ("with-exit", "faithfulness", 1): 0,
        ("with-exit", "faithfulness", None): 0,
        ("with-exit", "correctness", None): 0,
    }


@pytest.mark.slow
def test_a_label_that_was_not_saved_outlives_the_page(page, served, run):
    page.spent = True
    page.on("dialog", lambda dialog: dialog.accept())  # leaving is asked about, and accepted
    open_case(page, served, "context")
    served.stop()
    page.keyboard.press("2")
    page.locator("#banner").wait_for()
    served.start()
    page.reload()
    page.locator(".state.bad").wait_for()

    assert said_of(run, "anna") == {("context", "faithfulness", None): 0}
    assert page.evaluate("Object.keys(localStorage)") == []


@pytest.mark.slow
def test_leaving_with_something_unsaved_is_asked_about(page, served):
    asked, page.spent = [], True
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    open_case(page, served, "context")
    served.stop()
    page.keyboard.press("2")
    page.locator("#banner").wait_for()
    page.goto("about:blank")
    served.start()

    assert asked == ["beforeunload"]


@pytest.mark.slow
def test_an_unsaved_label_that_is_undone_was_never_said(page, served, run):
    page.spent = True
    page.clock.install()  # so that the page does not look for the server by itself meanwhile
    page.clock.pause_at("2100-01-01")
    open_case(page, served, "with-exit")
    served.stop()
    page.keyboard.press("1")
    page.locator("#banner").wait_for()
    page.keyboard.press("2")
    page.locator("#unsaved li").nth(1).wait_for()
    served.start()
    page.keyboard.press("u")
    page.locator("#unsaved li").nth(1).wait_for(state="detached")
    page.get_by_role("button", name="Try again").click()
    page.locator("#banner").wait_for(state="hidden")

    assert said_of(run, "anna") == {("with-exit", "faithfulness", 0): 1}


@pytest.mark.slow
def test_a_label_is_not_saved_into_another_run_that_is_served_there_later(page, served, run):
    at = open_case(page, served, "context")
    served.stop()
    page.keyboard.press("2")
    page.locator("#banner").wait_for()
    served.run = write_run(run.parent / "other", small_run())
    served.start()
    page.get_by_role("button", name="Try again").click()
    page.locator("#trouble", has_text="another run").wait_for()
    assert page.locator("#unsaved li").inner_text().startswith(f"Case {at + 1}, the answer")
    assert said_of(served.run, "anna") == {}
    served.stop()
    served.run = run
    served.start()
    page.get_by_role("button", name="Try again").click()
    page.locator("#banner").wait_for(state="hidden")

    assert said_of(run, "anna") == {("context", "faithfulness", None): 0}


@pytest.mark.slow
def test_a_label_of_an_answer_that_changed_is_told_and_can_be_left_out(page, served, run):
    open_case(page, served, "context")
    served.stop()
    page.keyboard.press("2")
    page.locator("#banner").wait_for()
    path = run / "traces.jsonl"
    path.write_text(path.read_text().replace("It runs code on exit.", "It does something else."))
    served.start()
    page.get_by_role("button", name="Try again").click()
    page.locator("#trouble", has_text="no longer holds").wait_for()
    page.get_by_role("button", name="Leave the first one out").click()
    page.locator("#banner").wait_for(state="hidden")

    assert said_of(run, "anna") == {}
    assert page.evaluate("Object.keys(localStorage)") == []


@pytest.mark.slow
def test_a_case_that_could_not_be_opened_opens_on_a_click(page, served):
    open_case(page, served, "with-exit")
    before = page.inner_text(".meta")
    served.stop()
    page.keyboard.press("n")
    page.locator("#banner").wait_for()
    assert page.inner_text(".meta") == before
    served.start()
    page.get_by_role("button", name="Try again").click()
    page.locator("#banner").wait_for(state="hidden")

    assert page.inner_text(".meta") != before


def test_what_the_disk_refuses_is_told_and_kept(page, served, run, monkeypatch):
    from misslink.annotation import label_writer as keeping

    def full(keeper, *entries):
        raise keeping.UnsavedError("your label could not be saved (No space left on device)")

    open_case(page, served, "context")
    with monkeypatch.context() as patch:
        patch.setattr(keeping.LabelWriter, "save", full)
        page.keyboard.press("1")
        page.locator("#trouble", has_text="No space left").wait_for()
        assert "again in its terminal" not in page.inner_text("#trouble")
    page.get_by_role("button", name="Try again").click()
    page.locator("#banner").wait_for(state="hidden")

    assert said_of(run, "anna") == {("context", "faithfulness", None): 1}


def test_a_page_from_elsewhere_can_neither_label_nor_read(page, served, run):
    other, page.spent = Served(write_run(run.parent / "other", small_run())), True
    try:
        page.route("**/elsewhere", lambda route: route.fulfill(body="<title>elsewhere</title>"))
        page.goto(f"{other.origin}/elsewhere")  # another origin, without a policy of its own
        tried = page.evaluate(
            """async (address) => {
              const body = JSON.stringify({
                annotator: "eve", at: 0, metric: "faithfulness", claim: null, label: 0, comment: "",
              });
              const headers = { "Content-Type": "application/json" };
              const outcome = (path, options) =>
                fetch(address + path, options).then((one) => one.type, () => "refused");
              return [
                await outcome("api/session?annotator=eve"),
                await outcome("api/label", { method: "POST", body, headers }),
                await outcome("api/label", { method: "POST", body, mode: "no-cors" }),
              ];
            }""",
            f"{served.origin}/",
        )
    finally:
        other.stop()

    assert tried[:2] == ["refused", "refused"]  # the third is not told what it was answered
    assert not list((run / "labels").glob("eve.jsonl"))
    page.goto(served.address)  # it is there all the same
    page.locator("#name").wait_for()
