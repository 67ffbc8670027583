"""Grading a pool in a real Chromium: keys, undo, adjudication, hostile text, a narrow screen."""

import pytest

from labelled_runs import TOKEN, served
from made_pools import HOSTILE, grade_all, put_pool, truth
from misslink.goldset.pooling.annotation import PoolAnnotationSession
from misslink.goldset.pooling.grades import read_grades


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "pool"


@pytest.fixture
def pool(folder):
    return put_pool(folder, random=1000)


def saved(page, text):
    page.locator("#saved", has_text=text).wait_for()


@pytest.mark.slow
def test_keys_grade_undo_and_go_on_and_no_other_key_labels(page, pool, folder):
    with PoolAnnotationSession(folder) as desk, served(desk) as port:
        page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}&annotator=anna")
        page.locator(".meta", has_text="Passage 1 of").wait_for()
        told = page.inner_text(".question")
        assert "highly relevant: it answers the question by itself" in told
        for key in ("g", "b", "3", "5", "o"):
            page.keyboard.press(key)
        page.keyboard.press("2")
        saved(page, "Saved: passage highly relevant")
        page.keyboard.press("Enter")
        page.locator(".meta", has_text="Passage 2 of").wait_for()
        page.keyboard.press("0")
        saved(page, "Saved: passage not relevant")
        page.keyboard.press("1")
        saved(page, "changed from not relevant to relevant, u undoes it")
        page.keyboard.press("u")
        saved(page, "Undone")
        assert page.inner_text(".question .state").endswith("not relevant")
        assert not page.locator("#opinion").is_visible()
    given = read_grades(folder, pool)["anna"]
    assert given == {pool.items[0].item: 2, pool.items[1].item: 0}


@pytest.mark.slow
def test_hostile_text_is_shown_as_text(page, pool, folder):
    at = next(n for n, item in enumerate(pool.items) if HOSTILE in item.text)
    with PoolAnnotationSession(folder) as desk, served(desk) as port:
        page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}#annotator=anna&case={at + 1}")
        page.locator(".answer", has_text="<img src=x onerror=alert(1)>").wait_for()
        assert page.locator("main img").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1200])
def test_it_fits_the_screen_and_buttons_stand_from_low_to_high(page, pool, folder, width):
    page.set_viewport_size({"width": width, "height": 800})
    with PoolAnnotationSession(folder) as desk, served(desk) as port:
        page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}&annotator=anna")
        page.locator(".meta", has_text="Passage 1 of").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") == width
        words = [text for text in page.locator("#choices button span").all_inner_texts() if text]
        assert words == ["Not relevant", "Relevant", "Highly relevant", "Skip"]


@pytest.mark.slow
def test_adjudication_shows_what_was_said_under_letters_and_ends_with_the_next_step(
    page, pool, folder
):
    item = next(one for one in pool.items if truth(one.case_id, one.passage_id) == 0)
    grade_all(folder, "ada")
    grade_all(folder, "bob", lambda one: 2 if one.item == item.item
              else truth(one.case_id, one.passage_id))  # fmt: skip
    with PoolAnnotationSession(folder, adjudicate=True) as desk, served(desk) as port:
        page.goto(f"http://127.0.0.1:{port}/?token={TOKEN}&case=end")
        page.locator("#start-title", has_text="Settle 1 passage").wait_for()
        page.get_by_role("button", name="Go to the first open one").click()
        page.locator(".meta", has_text="Passage 1 of 1").wait_for()
        told = sorted(page.locator(".others li").all_inner_texts())
        assert sorted(text.split(": ")[1] for text in told) == ["highly relevant", "not relevant"]
        page.keyboard.press("1")
        saved(page, "Saved: passage relevant")
        page.keyboard.press("Enter")
        page.locator("#start-title", has_text="Everything is settled").wait_for()
        assert "misslink goldset pool-apply" in page.inner_text(".command")
    assert read_grades(folder, pool)["adjudicated"] == {item.item: 1}
