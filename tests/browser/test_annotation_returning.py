"""Two pages of one person, a server that comes back, and what the page says and redraws of it."""

import pytest

from annotation_desk import Served, open_case, said_of, saved, small_run, states, write_run
from misslink.types import Claim
from watch import listening

LOOKED_FOR = 3_100  # milliseconds after which the page has looked for the server


@pytest.fixture
def page(noisy_page):
    """The page may say on its console that the server is away."""
    return noisy_page


def green(page):
    """Whether the page's last word stands in the colour of what is well."""
    return page.evaluate(
        """() => {
          const seen = (one) => getComputedStyle(one).color;
          const probe = document.createElement("b");
          probe.style.color = "var(--calm)";
          document.body.append(probe);
          const same = seen(document.getElementById("saved")) === seen(probe);
          probe.remove();
          return same;
        }"""
    )


@pytest.mark.slow
def test_a_page_that_is_come_back_to_shows_what_another_page_labelled(browser, page, served):
    open_case(page, served, "with-exit")
    other = listening(browser.new_page())
    open_case(other, served, "with-exit")
    other.keyboard.press("2")
    saved(other, "Saved")
    other.keyboard.press("k")
    other.keyboard.press("c")
    other.keyboard.type("why")
    other.keyboard.press("Enter")
    other.locator(".remark", has_text="why").wait_for()
    other.close()
    assert states(page) == ["open"] * 4
    page.evaluate("dispatchEvent(new Event('focus'))")
    page.locator(".state.bad").wait_for()

    assert states(page) == ["not supported", "open", "open", "open"]
    assert page.input_value("#comment") == "why"
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    page.keyboard.press("2")  # nothing of it changes, so nothing is said anew
    assert not page.locator("#changed").is_visible()


@pytest.mark.slow
def test_the_page_finds_the_server_again_by_itself_and_saves_what_was_not_saved(page, served, run):
    page.spent = True
    page.clock.install()
    open_case(page, served, "context")
    served.stop()
    page.keyboard.press("2")
    page.locator("#banner").wait_for()
    page.clock.run_for(LOOKED_FOR)  # still away
    assert page.locator("#banner").is_visible()
    served.start()
    page.clock.run_for(LOOKED_FOR)
    page.locator("#banner").wait_for(state="hidden")

    assert said_of(run, "anna") == {("context", "faithfulness", None): 0}


@pytest.mark.slow
def test_a_case_that_could_not_be_opened_opens_once_the_server_is_back(page, served):
    page.spent = True
    page.clock.install()
    open_case(page, served, "with-exit")
    before = page.inner_text(".meta")
    served.stop()
    page.keyboard.press("n")
    page.locator("#banner").wait_for()
    served.start()
    page.clock.run_for(LOOKED_FOR)
    page.locator("#banner").wait_for(state="hidden")

    assert page.inner_text(".meta") != before


@pytest.mark.slow
def test_what_is_not_saved_is_not_told_in_green_and_in_the_words_of_the_page(page, served):
    open_case(page, served, "context")
    page.keyboard.press("1")
    saved(page, "Saved: answer faithful")
    assert green(page)
    served.stop()
    page.keyboard.press("2")
    saved(page, "Not saved")

    assert not green(page)
    assert page.locator("#unsaved li").inner_text().endswith("the answer, faithfulness: unfaithful")
    served.start()


@pytest.mark.slow
def test_a_label_that_is_changed_is_told_and_taken_back(page, served, run):
    open_case(page, served, "with-exit")
    for key in ("2", "2", "2"):
        page.keyboard.press(key)
    page.locator("#ask", has_text="reference").wait_for()
    saved(page, "Saved: answer unfaithful")
    assert not page.locator("#changed").is_visible()
    page.keyboard.press("k")
    page.keyboard.press("1")
    saved(page, "Saved: faithfulness changed from unfaithful to faithful, u undoes it")
    assert page.inner_text("#changed") == (
        "Faithfulness changed from unfaithful to faithful; u undoes it."
    )
    page.keyboard.press("u")
    saved(page, "Undone")

    assert states(page) == ["not supported", "not supported", "unfaithful", "open"]
    assert not page.locator("#changed").is_visible()


@pytest.mark.slow
def test_a_name_in_any_script_labels_and_one_way_of_writing_it_is_kept(page, served, run):
    page.goto(served.address)
    page.locator("#name").fill("Zoe\u0308 \u674e")
    page.keyboard.press("Enter")
    page.locator(".question").first.wait_for()
    assert page.inner_text("#annotator") == "Zo\u00eb \u674e"
    page.keyboard.press("s")
    saved(page, "Saved")

    assert len(said_of(run, "Zo\u00eb \u674e")) == 1
    page.goto("about:blank")
    page.goto(served.address)
    page.get_by_role("button", name="Zo\u00eb \u674e", exact=True).click()
    page.locator(".question").first.wait_for()


@pytest.mark.slow
def test_a_key_redraws_what_it_changes_and_no_more(page, served, run):
    said = small_run()
    verdicts = list(said.verdicts)
    text = " ".join(f"Claim {n}." for n in range(200))
    places = [text.index(f"Claim {n}.") for n in range(200)]
    claims = tuple(
        Claim(text=f"Claim {n}.", start=at, end=at + len(f"Claim {n}."), support="supported")
        for n, at in enumerate(places)
    )
    verdicts[0] = verdicts[0].model_copy(update={"claims": claims})
    traces = (said.traces[0].model_copy(update={"answer": text}), *said.traces[1:])
    many = said.model_copy(update={"verdicts": tuple(verdicts), "traces": traces})
    other = Served(write_run(run.parent / "many", many))
    try:
        open_case(page, other, "with-exit")
        assert page.locator(".question").count() == 202
        page.evaluate(
            """() => {
              window.changes = 0;
              new MutationObserver((all) => { window.changes += all.length; }).observe(
                document.getElementById("desk"), {
                  subtree: true, childList: true, attributes: true,
                });
            }"""
        )
        page.keyboard.press("2")
        saved(page, "Saved: claim 1 not supported")
        assert page.locator(".question .state.bad").count() == 1
        assert page.locator(".answer .claim.bad").all_inner_texts() == ["Claim 0."]
        assert page.locator(".answer .claim.lit").all_inner_texts() == ["Claim 1."]
        assert 0 < page.evaluate("window.changes") < 30
    finally:
        other.stop()
