"""The explorer of cases in a real Chromium: filters, addresses, keys, claims, paper, length."""

import csv
import itertools

import pytest

from example_run import example_run
from misslink.render.html import show_marks
from misslink.report.cases import build_case_entries
from misslink.report.page import write_html
from misslink.types import Case, Link, Passage, Run, Trace, Verdict
from proven_run import proven_run

CASE = "#case-title"


def shown(page):
    """The count over the list, once a search has ended."""
    page.wait_for_selector("#rows[aria-busy=false]")
    return page.inner_text("#shown")


def numbers(page):
    """Case numbers of the rows in the document, from the top down."""
    return page.evaluate(
        "[...document.querySelectorAll('.row')]"
        ".sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((row) => Number(row.dataset.number))"
    )


def until(page, true, arg=None):
    """Wait for a condition; the page's policy forbids Playwright's own waiting by a script."""
    for _ in range(1200):  # 30 s
        if page.evaluate(f"(arg) => Boolean({true})", arg):
            return
        page.wait_for_timeout(25)
    pytest.fail(f"never true: {true}")


def whole(text):
    """As a page shows it, which has no NUL and writes hidden marks out."""
    return show_marks(text.replace("\0", "\N{REPLACEMENT CHARACTER}"))


def row(page, number):
    return page.locator(f".row[data-number='{number}']")


def fragment(page):
    return page.evaluate("location.hash.slice(1)")


@pytest.mark.slow
def test_every_filter_narrows_the_list_and_they_combine(opened):
    assert shown(opened) == "14 of 14"
    opened.click("#more")
    opened.select_option("#by-retrieval", "miss")
    assert (shown(opened), fragment(opened)) == ("5 of 14", "retrieval=miss")
    for field, value, count in (
        ("answer", "unfaithful", 2), ("failure", "retrieval_miss", 1), ("correct", "no", 1),
        ("metric", "faithfulness", 1), ("category", "procedural", 1),
        ("tag", "topic:context managers", 1),
    ):  # fmt: skip
        opened.select_option(f"#by-{field}", value)
        assert shown(opened) == f"{count} of 14", field
    assert numbers(opened) == [14]
    assert fragment(opened) == (
        "failure=retrieval_miss&retrieval=miss&answer=unfaithful&correct=no&category=procedural"
        "&metric=faithfulness&tag=topic%3Acontext%20managers"
    )
    opened.select_option("#by-correct", "")
    opened.get_by_role("button", name="Remove: Failure mode: Retrieval miss").click()
    assert "failure" not in fragment(opened)


@pytest.mark.slow
def test_text_is_searched_in_questions_answers_passages_and_ids_all_words_of_it(opened):
    for text, found in (
        ("SOCKETS by", [14]),  # answer
        ("borrow checker", [3]),  # question
        ("with-exit", [14]),  # id
        ("traceback passed", [14]),  # a missed passage
        ("traceback maintains", []),
    ):
        opened.fill("#by-q", text)
        until(opened, "location.hash.includes(encodeURIComponent(arg))", text)
        assert shown(opened) == f"{len(found)} of 14", text
        assert numbers(opened) == found
    opened.fill("#by-q", "")
    until(opened, "location.hash === '#cases'")
    assert shown(opened) == "14 of 14"


def test_an_address_sets_every_filter_and_the_open_case(at):
    page = at("failure=retrieval_miss&q=sockets&sort=gold&case=14&claim=1")

    assert shown(page) == "1 of 14"
    assert page.input_value("#by-failure") == "retrieval_miss"
    assert page.input_value("#by-q") == "sockets"
    assert page.input_value("#by-sort") == "gold"
    assert page.inner_text(CASE) == "What does a with statement do when its suite raises?"
    assert page.locator("mark.lit").inner_text().startswith("its type, value")


def test_an_address_may_name_a_case_by_its_id(at):
    page = at("case=with-exit&claim=1")
    assert page.inner_text(CASE) == "What does a with statement do when its suite raises?"
    assert page.locator("mark.lit").inner_text().startswith("its type, value")


def told(page, given):
    """Follow an address; gives the count over the list, and what of it is told to be nowhere."""
    page.evaluate("location.hash = '#q=nowhere'")
    until(page, "document.querySelector('#by-q').value === 'nowhere'")
    page.evaluate("given => { location.hash = given }", given)
    until(page, "document.querySelector('#by-q').value !== 'nowhere'")
    told = page.get_by_role("status").and_(page.locator("#astray")).inner_text()
    return shown(page), told.replace("\u2068", "").replace("\u2069", "")


@pytest.mark.slow
def test_what_an_address_holds_never_does_harm(at):
    page = at("case=-1&claim=x&sort=toString")
    assert shown(page) == "14 of 14"
    for given, count in (
        ("nonsense=1&failure=passed", "3 of 14"), ("case=99999&failure=passed", "3 of 14"),
        ("case=-1&claim=x&sort=toString", "14 of 14"), ("failure=__proto__", "14 of 14"),
        ("q=%", "1 of 14"), ("ids=3,5,x,77", "2 of 14"), ("miss_type=vocabulary_mismatch", "1 of 14"),
        ("case=14&claim=99&passage=99", "14 of 14"), ("tag=no:such", "14 of 14"), ("=", "14 of 14"),
    ):  # fmt: skip
        assert told(page, given)[0] == count, given


@pytest.mark.slow
def test_what_an_address_names_in_vain_is_told_politely_and_leaves_it(at):
    page = at("case=999")
    assert page.inner_text("#astray") == "There is no case 999 in this report."
    assert fragment(page) == "cases"
    for given, said, left in (
        ("case=999", "There is no case 999 in this report.", "cases"),
        ("case=-1&failure=passed", "There is no “case=-1” in this report.", "failure=passed"),
        ("failure=no&tag=a:b&answer=faithful", "There is no “failure=no”, no “tag=a:b” in this report.",
         "answer=faithful"),
        ("ids=3,77,5,x", "There is no case 77, no “ids=x” in this report.", "ids=3,5"),
        ("case=14&claim=99", "There is no claim 99 of case 14 in this report.", "case=14"),
        ("case=14&passage=9", "There is no passage 9 of case 14 in this report.", "case=14"),
        ("sort=x&a=1&b=2&c=3&d=4",
         "There is no “sort=x”, no “a=1”, no “b=2”, nor 2 more of this address, in this report.",
         "cases"),
        ("x=<b>&q=sockets", "There is no “x=<b>” in this report.", "q=sockets"),
        ("correct=no&failure=missing_label&sort=gold&case=9&passage=2", "",
         "failure=missing_label&correct=no&sort=gold&case=9&passage=2"),
    ):  # fmt: skip
        assert told(page, given)[1] == said
        assert sorted(fragment(page).split("&")) == sorted(left.split("&"))
        page.select_option("#by-sort", "latency")
        assert page.inner_text("#astray") == ""
        page.select_option("#by-sort", "")


def test_a_long_name_in_an_address_is_told_in_short(at):
    line = at(f"failure={'W' * 5000}").inner_text("#astray")

    assert len(line) < 110
    assert "W…" in line


def test_a_changed_address_is_followed_and_a_section_s_anchor_leaves_the_filters(at):
    page = at("failure=passed")
    page.evaluate("location.hash = '#failure=fabricated'")
    until(page, "document.querySelector('#shown').innerText === '1 of 14'")
    page.evaluate("location.hash = '#failures'")
    until(page, "document.querySelector('#failures').getBoundingClientRect().top < 200")
    assert page.text_content("#shown") == "1 of 14"


@pytest.mark.slow
def test_opening_a_case_is_a_step_that_back_undoes_and_forward_repeats(opened):
    opened.click("#more")
    opened.select_option("#by-retrieval", "miss")
    row(opened, 14).click()
    until(opened, "location.hash === '#retrieval=miss&case=14'")
    row(opened, 4).click()
    until(opened, "location.hash === '#retrieval=miss&case=4'")
    opened.go_back()
    opened.wait_for_selector("#pane", state="hidden")
    assert fragment(opened) == "retrieval=miss"
    opened.go_forward()
    opened.wait_for_selector(CASE)
    assert fragment(opened) == "retrieval=miss&case=4"


@pytest.mark.slow
def test_filters_set_while_a_case_is_open_stay_when_it_is_closed(opened):
    row(opened, 14).click()
    opened.select_option("#by-failure", "passed")
    opened.click(".shut")
    until(opened, "location.hash === '#failure=passed'")
    assert shown(opened) == "3 of 14"
    assert opened.locator("#pane").is_hidden()
    opened.reload()
    assert shown(opened) == "3 of 14"


def test_the_list_is_worst_first_and_can_be_ordered_otherwise(opened):
    assert numbers(opened)[:3] == [14, 5, 3]
    opened.select_option("#by-sort", "gold")
    assert numbers(opened) == list(range(1, 15))
    opened.select_option("#by-sort", "faithfulness")
    assert numbers(opened)[:3] == [3, 6, 14]  # 0, 0 and 0.25
    assert set(numbers(opened)[-3:]) == {5, 11, 12}  # none has a verdict
    opened.select_option("#by-sort", "latency")
    assert numbers(opened)[0] == 14  # 2.34 s
    assert set(numbers(opened)[-2:]) == {4, 7}  # not measured


@pytest.mark.slow
def test_keys_move_open_close_filter_and_explain(opened):
    opened.keyboard.press("j")
    assert opened.evaluate("document.activeElement.id") == "rows"
    assert opened.get_attribute("#rows", "aria-activedescendant") == "row-5"
    opened.keyboard.press("ArrowDown")
    opened.keyboard.press("k")
    opened.keyboard.press("ArrowUp")
    assert opened.get_attribute("#rows", "aria-activedescendant") == "row-14"
    opened.keyboard.press("Enter")
    assert "with statement" in opened.inner_text(CASE)
    opened.keyboard.press("j")
    assert fragment(opened) == "case=5"
    opened.keyboard.press("Escape")
    opened.wait_for_selector("#pane", state="hidden")
    until(opened, "document.activeElement.id === 'rows'")
    opened.keyboard.press("End")
    assert opened.get_attribute("#rows", "aria-activedescendant") == "row-13"
    opened.keyboard.press("?")
    assert opened.locator("#keys-shown").is_visible()
    opened.keyboard.press("Escape")
    assert opened.locator("#keys-shown").is_hidden()
    opened.keyboard.press("/")
    opened.keyboard.type("jk/?")
    assert opened.input_value("#by-q") == "jk/?"
    assert opened.locator("#keys-shown").is_hidden()


@pytest.mark.slow
def test_escape_empties_the_text_field_and_then_leaves_it_to_the_keys(opened):
    opened.fill("#by-q", "sockets by")
    until(opened, "location.hash.includes('sockets')")
    opened.keyboard.press("Escape")
    assert (opened.input_value("#by-q"), fragment(opened)) == ("", "cases")
    assert shown(opened) == "14 of 14"
    assert opened.evaluate("document.activeElement.id") == "by-q"
    opened.keyboard.press("Escape")
    assert opened.evaluate("document.activeElement === document.body")
    opened.keyboard.press("j")
    assert opened.get_attribute("#rows", "aria-activedescendant") == "row-5"
    assert opened.input_value("#by-q") == ""


@pytest.mark.slow
def test_a_fresh_list_begins_at_its_first_row_and_an_open_case_keeps_its_place(tabs, tmp_path):
    many = write_html(_many(300), tmp_path / "r.html")
    page = tabs(viewport={"width": 1200, "height": 800})
    place = """[document.getElementById("rows").scrollTop,
      document.getElementById("rows").getAttribute("aria-activedescendant")]"""

    page.goto(f"{many.as_uri()}#sort=gold")
    assert shown(page) == "300 of 300"
    assert page.evaluate(place) == [0, "row-1"]
    page.keyboard.press("j")
    page.select_option("#by-sort", "")
    assert page.evaluate(place) == [0, "row-2"]  # the first retrieval miss
    page.evaluate("location.hash = '#sort=gold&case=290'")
    until(page, "document.getElementById('rows').scrollTop > 0")
    assert page.evaluate(place)[1] == "row-290"


def test_a_tier_narrows_the_list(tabs, tmp_path):
    run = _many(6)
    tiers = ("A", None, "\u202eB", "A", None, None)
    cases = zip(run.cases, tiers, strict=True)
    cases = tuple(case.model_copy(update={"tier": tier}) for case, tier in cases)
    report = write_html(run.model_copy(update={"cases": cases}), tmp_path / "r.html")
    page = tabs(viewport={"width": 1200, "height": 800})
    page.goto(f"{report.as_uri()}#tier=A&sort=gold")

    assert shown(page) == "2 of 6"
    assert numbers(page) == [1, 4]
    page.get_by_role("button", name="Remove: Tier: A").click()
    page.click("#more")
    page.select_option("#by-tier", "\u202eB")
    assert numbers(page) == [3]
    row(page, 3).click()
    assert "· tier [U+202E]B" in page.inner_text(".meta")


def test_from_the_failure_mode_to_the_passage_and_its_rank_in_three_clicks(opened):
    opened.click("nav a[href='#summary']")
    opened.click("a.chip[href='#failure=retrieval_miss']")
    assert shown(opened) == "1 of 14"
    row(opened, 14).click()
    opened.click(".answer .claim.contradicted")
    passage = opened.locator(".passage.missed", has=opened.locator("mark.lit"))
    assert "rank 17 of 100 searched" in passage.inner_text()


def test_focus_is_seen_on_the_list(opened):
    opened.keyboard.press("j")

    style = opened.evaluate("getComputedStyle(document.querySelector('#rows')).outlineStyle")
    assert style == "solid"
    assert row(opened, 5).evaluate("e => e.classList.contains('active')")


@pytest.mark.slow
def test_a_click_on_a_claim_shows_its_finding_below_the_answer(at):
    page = at("case=14", viewport={"width": 1280, "height": 800})
    for kind, number, marked in (
        ("supported", 2, "nothing happens"),
        ("contradicted", 1, "its type, value and traceback are passed to it"),
    ):
        page.click(f".answer .claim.{kind}")
        assert page.locator("mark.lit").inner_text() == marked
        finding = page.locator("#finding")
        assert f"Claim {number}" in finding.inner_text()
        assert marked in finding.inner_text()
        assert 0 < finding.bounding_box()["y"] < 800
        assert fragment(page) == f"case=14&claim={number}"
    page.get_by_role("button", name="Show").first.click()
    missed = page.locator(".passage.missed.lit")
    assert "rank 17 of 100 searched" in missed.inner_text()
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert "Ranked above it" not in missed.inner_text()
    missed.get_by_text("All measurements").click()
    assert "Ranked above it" in missed.inner_text()


def test_support_is_told_by_signs_not_by_colour_alone(at):
    page = at("case=14")

    assert page.locator(".answer sup").all_inner_texts() == ["1✗", "2✓", "3?"]
    first = page.locator(".answer .claim").first
    assert first.get_attribute("aria-label").endswith("(claim 1, contradicted)")


@pytest.mark.slow
def test_a_case_shows_everything_that_is_known_of_it(at):
    page = at("case=14")
    text = page.inner_text("#pane")

    for part in (
        "Retrieval miss. Confirmed by replay. 1 of 2 needed facts is lost at rank: rank 17",
        "Try: See the missed passage's true rank.", "1 case like this", "Also true: Fabricated",
        "procedural",
        "topic:context managers", "2.3 s", "P(supported) 0.07", "your search\n17",
        "worded differently from the question", "not within the first 100",
        "All verdicts: 1 bad",
    ):  # fmt: skip
        assert part in text, part
    folded = page.text_content("#pane")
    for part in (
        "None of the 2 needed passages",
        "Replay:",
        "precision 25%",
        "Judged by heuristic",
    ):
        assert part in folded, part
    raw = page.locator("pre", has_text='{"claims": ["…"]}')
    assert raw.is_hidden()
    page.get_by_text("All verdicts").click()
    page.get_by_text("Raw reply of the judge").click()
    assert raw.is_visible()
    page.get_by_text("All claims").click()
    page.click("[data-item='4'] a")
    assert "The judge's quote is in no passage." in page.inner_text("#finding")


def test_an_answer_is_markdown_with_its_raw_text_a_click_away(tabs, tmp_path):
    answer = "# Title\n\n- one **bold** `co_de`\n- two\n\nfrom __future__ import x\n```\na <b>\n```\n[t](javascript:1)"
    trace = Trace(case_id="c", answer=answer)
    run = Run(
        manifest={}, cases=(Case(id="c", question="?"),), traces=(trace,), verdicts=(), links=(),
        summary={},
    )  # fmt: skip
    page = tabs()
    page.goto(f"{write_html(run, tmp_path / 'r.html').as_uri()}#case=1")
    shape = "e => [...e.querySelectorAll('*')].map((at) => at.localName).join(' ')"
    page.wait_for_selector(".answer")
    assert page.locator(".answer").evaluate(shape) == "p ul li strong code li p pre p span"
    assert "from __future__ import x" in page.inner_text(".answer")
    assert "(javascript:1)" in page.inner_text(".answer"), "an address is a text, and no link"
    page.get_by_role("button", name="Raw text").click()
    assert page.inner_text(".answer-text") == answer
    assert page.locator(".answer").is_hidden()


def test_marks_that_turn_or_hide_a_text_are_written_out(tabs, tmp_path):
    run = _many(1)
    case = run.cases[0].model_copy(update={"question": "Is \u202eevil\u200b fine?"})
    page = tabs()
    report = write_html(run.model_copy(update={"cases": (case,)}), tmp_path / "r.html")
    page.goto(f"{report.as_uri()}#case=1")
    assert page.inner_text(CASE) == "Is [U+202E]evil[U+200B] fine?"
    assert page.title().startswith("Is [U+202E]evil")
    assert row(page, 1).locator(".question").inner_text() == "Is [U+202E]evil[U+200B] fine?"


@pytest.mark.slow
def test_heads_sort_by_their_column_and_turn_it_over(opened):
    head = opened.get_by_role("columnheader", name="Unsupported", exact=True)
    head.get_by_role("button").click()
    assert fragment(opened) == "sort=claims"
    assert head.get_attribute("aria-sort") == "descending"
    first = numbers(opened)
    head.get_by_role("button").click()
    assert (fragment(opened), head.get_attribute("aria-sort")) == ("sort=-claims", "ascending")
    assert numbers(opened) != first
    opened.get_by_role("columnheader", name="Missed rank").get_by_role("button").click()
    assert numbers(opened)[:2] == [4, 14]  # ranks 9 and 17


def test_a_search_shows_where_it_matched_and_takes_phrases(opened):
    opened.fill("#by-q", '"closes sockets"')
    until(opened, "location.hash.includes('sockets')")
    assert shown(opened) == "1 of 14"
    assert row(opened, 14).locator("mark").all_inner_texts() == ["closes sockets"]
    opened.fill("#by-q", '"sockets closes"')
    until(opened, "location.hash.includes('sockets%20closes')")
    assert shown(opened) == "0 of 14"


def test_the_selection_is_exported_as_ids_and_csv(opened):
    opened.evaluate(
        "Object.defineProperty(navigator, 'clipboard',"
        " { value: { writeText: async (text) => { window.copied = text; } } })"
    )
    opened.click("#more")
    opened.select_option("#by-retrieval", "miss")
    shown(opened)
    opened.click("#copy-ids")
    opened.get_by_text("Copied.").wait_for()
    assert opened.evaluate("window.copied").split("\n")[0] == "with-exit"
    with opened.expect_download() as caught:
        opened.click("#save-csv")
    with caught.value.path().open(encoding="utf-8-sig", newline="") as file:
        heads, first, *others = csv.reader(file)
    assert heads[:3] == ["number", "id", "question"]
    assert (first[0], first[1], first[3:5]) == ("14", "with-exit", ["retrieval_miss", "retriever"])
    assert [other[0] for other in others] == ["9", "10", "12", "4"]


def test_states_and_owners_narrow_the_list(opened):
    opened.select_option("#by-state", "failed")
    assert shown(opened) == "7 of 14"
    opened.select_option("#by-owner", "generator")
    assert shown(opened) == "5 of 14"
    opened.select_option("#by-owner", "")
    opened.select_option("#by-state", "error")
    assert 11 in numbers(opened)


def test_the_arrows_of_an_open_case_turn_to_its_neighbors(at):
    page = at("failure=inconclusive&case=10")
    page.get_by_role("button", name="Next case").click()
    until(page, "location.hash.endsWith('case=12')")
    assert "2 of 3" in page.inner_text(".case-bar")


def test_where_a_claim_cuts_a_text_with_wide_characters_it_cuts_it_in_the_right_place(at):
    page = at("case=1")

    answer = page.locator(".answer")
    assert answer.evaluate("e => e.dir") == "auto"
    assert answer.locator(".claim").inner_text() == "تعبيرات لامدا تنشئ دوال مجهولة."
    assert "匿名函数 🐍 naïve café." in answer.inner_text()


def test_a_link_to_a_passage_of_a_case_opens_it_there(opened):
    opened.click("nav a[href='#retrieval']")
    opened.click("a[href='#case=9&passage=2']")
    opened.wait_for_selector("details.lit")

    assert opened.locator("details.lit").get_attribute("data-passage") == "2"


@pytest.mark.slow
def test_a_cause_in_the_table_shows_its_cases_and_a_second_click_does_so_again(opened):
    link = opened.locator("table.cards a[href='#failure=passed']")
    opened.click("nav a[href='#summary']")
    link.click()
    assert shown(opened) == "3 of 14"
    opened.get_by_role("button", name="Remove: Failure mode: Passed").click()
    assert shown(opened) == "14 of 14"
    opened.click("nav a[href='#summary']")
    link.click()
    assert shown(opened) == "3 of 14"


def test_without_a_clipboard_the_link_and_the_command_stand_selected_in_a_field(at):
    page = at("case=14")
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    selected = "[document.activeElement.value, getSelection().toString()]"

    page.get_by_role("button", name="Copy link").click()
    value, marked = page.evaluate(selected)
    assert value == marked
    assert value.endswith("report.html#case=14")
    page.get_by_role("button", name="Copy command").click()
    assert page.evaluate(selected)[0] == (
        "misslink evaluate examples/python_reference/app.py:chain --goldset "
        "examples/python_reference/goldset.jsonl --judge heuristic --case=with-exit "
        "--out reports/today-case-14"
    )


def test_with_a_clipboard_they_are_copied(at):
    page = at("case=14")
    page.evaluate(
        "Object.defineProperty(navigator, 'clipboard',"
        " { value: { writeText: async (text) => { window.copied = text; } } })"
    )

    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("Copied.").wait_for()
    assert page.evaluate("window.copied").endswith("#case=14")
    assert page.locator(".case-bar .copied").is_hidden()


def test_an_id_that_is_not_safe_to_paste_gives_no_command(at, tabs, tmp_path):
    run = _many(1, name="\x1b[2J{}")
    page = tabs()
    page.goto(f"{write_html(run, tmp_path / 'r.html').as_uri()}#case=1")

    assert "not safe to paste" in page.text_content(".folds")
    assert page.get_by_role("button", name="Copy command").count() == 0


def test_without_scripts_the_page_says_what_to_do(browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())

    assert page.locator("noscript p").is_visible()
    assert page.locator("#explorer").is_hidden()
    context.close()


def test_on_a_phone_the_case_covers_the_list_until_back(at):
    page = at("", viewport={"width": 390, "height": 844})
    row(page, 14).click()

    assert page.locator("#rows").is_hidden()
    assert page.locator(CASE).is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_role("button", name="Back", exact=False).first.click()
    page.wait_for_selector("#rows", state="visible")
    assert row(page, 14).is_visible()


@pytest.mark.slow
@pytest.mark.parametrize("run", [proven_run, example_run])
def test_no_view_scrolls_sideways_on_a_small_phone(tabs, tmp_path, run):
    """Where tables with long intervals stand in 390 pixels, these stand in 320."""
    report = write_html(run(), tmp_path / "report.html")
    page = tabs(viewport={"width": 320, "height": 640})
    page.goto(f"{report.as_uri()}#cases")
    page.wait_for_selector("#rows[aria-busy=false]", state="attached")
    for view in ("cases", "summary", "retrieval", "trust", "numbers"):
        page.evaluate("view => { location.hash = view }", view)
        page.wait_for_selector(f"#{view}:not(.closed)")
        assert page.evaluate("document.documentElement.scrollWidth") == 320, view


@pytest.mark.slow
def test_every_case_fits_a_phone(at):
    page = at("", viewport={"width": 390, "height": 844})
    for number in range(1, 15):
        page.evaluate("n => { location.hash = `#case=${n}`; }", number)
        until(page, "document.querySelector('.meta')?.innerText.startsWith(`Case ${arg} `)", number)
        assert page.evaluate("document.documentElement.scrollWidth") == 390, number


def test_two_panes_stand_side_by_side_where_there_is_room(at):
    page = at("case=14", viewport={"width": 1200, "height": 800})
    rows, pane = page.locator("#rows").bounding_box(), page.locator("#pane").bounding_box()

    assert rows["x"] + rows["width"] <= pane["x"]
    assert page.evaluate("document.documentElement.scrollWidth") == 1200


@pytest.mark.slow
def test_on_paper_the_list_is_plain_and_the_open_case_is_whole(at, tabs, tmp_path):
    page = at("failure=passed&case=14")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")

    assert page.locator("#printed li").count() == 3
    assert page.locator("#rows").is_hidden()
    assert page.locator(".case").is_visible()
    assert page.locator("#pane").evaluate("e => e.scrollHeight <= e.clientHeight")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("#printed li").count() == 0
    assert len(page.pdf()) > 20_000

    many = tabs()
    many.goto(f"{write_html(_many(450), tmp_path / 'r.html').as_uri()}#cases")
    many.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert many.locator("#printed li").count() == 300
    assert "150 more cases left out" in many.locator("#printed").text_content()


def test_paper_shows_what_cautions_and_the_first_failed_cases_with_their_claims(at):
    page = at("")
    page.emulate_media(media="print")
    page.wait_for_function(
        """() => {
          dispatchEvent(new Event("beforeprint"));
          const failed = document.querySelectorAll("#printed li .chip.failure").length;
          return failed > 0 && document.querySelectorAll(".paper-case").length === Math.min(failed, 10);
        }"""
    )

    assert page.locator(".paper-case .support").count() > 0
    assert page.locator(".paper-case q").count() > 0
    assert page.locator(".judge-line details p").first.bounding_box()["height"] > 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator(".paper-case").count() == 0


@pytest.mark.slow
def test_of_many_cases_only_those_in_view_stand_in_the_document(tabs, thousands):
    page = tabs(viewport={"width": 1200, "height": 800})
    page.goto(f"{thousands.as_uri()}#sort=gold")
    assert shown(page) == "3,000 of 3,000"

    seen = page.evaluate("""async () => {
      const box = document.getElementById("rows");
      const next = () => new Promise(requestAnimationFrame);
      const frame = () => next().then(next);
      const counts = [];
      for (let at = 0; at < box.scrollHeight; at += 20000) {
        box.scrollTop = at;
        await frame();
        counts.push(document.querySelectorAll(".row").length);
      }
      box.scrollTop = box.scrollHeight;
      await frame();
      return Math.max(...counts, document.querySelectorAll(".row").length);
    }""")
    assert seen < 60
    last = row(page, 3000)
    assert (last.get_attribute("aria-rowindex"), page.get_attribute("#rows", "aria-rowcount")) == (
        "3001",
        "3001",
    )
    assert last.is_visible()

    page.fill("#by-q", "needle-2718")
    until(page, "document.querySelector('#shown').innerText === '1 of 3,000'")
    row(page, 2718).click()
    assert page.inner_text(CASE) == "Question 2718?"
    assert "Text of passage 18." in page.inner_text("#pane")
    assert page.said == []


@pytest.fixture(scope="module")
def thousands(tmp_path_factory):
    return write_html(_many(3000), tmp_path_factory.mktemp("thousands") / "r.html")


def _many(cases, name="case {}"):
    """Cases alike, each with a passage of its hundred and a word that is nowhere else."""
    ids = [name.format(n) for n in range(1, cases + 1)]
    failures = itertools.cycle(("passed", "retrieval_miss", "inconclusive"))
    return Run(
        manifest={"command": "misslink evaluate app.py:app --goldset gold.jsonl"},
        cases=tuple(Case(id=one, question=f"Question {n}?") for n, one in enumerate(ids, 1)),
        traces=tuple(
            Trace(
                case_id=one,
                answer=f"An answer with needle-{n} in it.",
                retrieved=(Passage(id=f"p{n % 100}", text=f"Text of passage {n % 100}.", rank=1),),
            )
            for n, one in enumerate(ids, 1)
        ),
        verdicts=tuple(
            Verdict(case_id=one, metric="faithfulness", status="scored", value=1, judge="j")
            for one in ids
        ),
        links=tuple(
            Link(case_id=one, retrieval="hit", answer="faithful", failure=failure, reason="-")
            for one, failure in zip(ids, failures, strict=False)
        ),
        summary={},
    )


@pytest.mark.slow
def test_what_the_page_holds_once_is_put_back_into_every_case(opened):
    from proven_run import proven_run  # beside the tests of the report

    for entry in build_case_entries(proven_run(), 5):
        opened.evaluate("n => { location.hash = `#case=${n}`; }", entry.number)
        until(
            opened,
            "document.querySelector('.meta')?.innerText.startsWith(`Case ${arg} `)",
            entry.number,
        )
        texts = "els => els.map((one) => one.textContent)"
        assert opened.locator(".claims .claim-link").evaluate_all(texts) == [
            whole(claim.text) for claim in entry.claims
        ]
        assert opened.locator(".verdicts tbody th").evaluate_all(texts) == [
            whole(verdict.metric) for verdict in entry.verdicts
        ]
        assert opened.locator("[data-passage] .rank").evaluate_all(texts) == [
            row.rank for row in entry.retrieved
        ]
        titled = {"missed", "in the prompt", "not in the prompt", "prompt not seen"}
        assert opened.locator("#pane .passage .flag:not(:has-text('score'))").count() == sum(
            flag not in titled for row in (*entry.retrieved, *entry.missed) for flag in row.flags
        )
        prompts = opened.locator("details:has(> summary:text-is('The prompt itself')) > pre")
        assert prompts.evaluate_all(texts) == [entry.prompt] * bool(entry.prompt)


@pytest.mark.slow
def test_rows_are_used_again_while_the_list_scrolls(tabs, thousands):
    page = tabs(viewport={"width": 1200, "height": 800})
    page.goto(f"{thousands.as_uri()}#sort=gold")
    shown(page)
    made = page.evaluate("""async () => {
      const box = document.getElementById("rows"), sheet = document.getElementById("all-rows");
      let made = 0;
      new MutationObserver((found) => found.forEach((one) => { made += one.addedNodes.length; }))
        .observe(sheet, { childList: true });
      const next = () => new Promise(requestAnimationFrame);
      const frame = () => next().then(next);
      const end = box.scrollHeight - box.clientHeight;
      for (let step = 1; step <= 60; step += 1) {
        box.scrollTop = (end * step) / 60;
        await frame();
      }
      return made;
    }""")
    assert numbers(page)[-1] == 3000
    assert row(page, 2999).locator(".question").inner_text() == "Question 2999?"
    assert made < 60  # in 60 steps with 20 rows each


@pytest.mark.slow
@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
def test_a_page_loaded_at_a_case_stands_there_at_once_under_the_bar_of_sections(
    browser, report, size
):
    page = browser.new_page(viewport={"width": size[0], "height": size[1]})  # motion is allowed
    page.goto(f"{report.as_uri()}#case=14")
    tops = """() => {
      const first = document.querySelector(innerWidth > 960 ? ".filter" : "#pane");
      return [scrollY, first.getBoundingClientRect().top,
        document.querySelector("nav").getBoundingClientRect().bottom];
    }"""
    before = page.evaluate(tops)
    page.wait_for_timeout(300)
    scrolled, first, bar = page.evaluate(tops)

    assert scrolled > 0
    assert before[0] == scrolled
    assert bar <= first < bar + 40
    page.close()


def test_a_case_opened_by_its_address_has_no_ring_and_one_by_a_key_a_whole_one(at):
    page = at("case=14", viewport={"width": 1440, "height": 900})
    ring = """() => {
      const pane = document.getElementById("pane"), style = getComputedStyle(pane);
      const { left, right } = pane.getBoundingClientRect(), rows = document.getElementById("rows");
      const room = Math.min(left - rows.getBoundingClientRect().right, innerWidth - right);
      return [document.activeElement.id, style.outlineStyle, parseFloat(style.outlineOffset), room,
        parseFloat(style.paddingLeft)];
    }"""

    assert page.evaluate(ring)[:2] == ["pane", "none"]
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    active, style, offset, room, padding = page.evaluate(ring)
    assert (active, style) == ("pane", "solid")
    assert 0 <= offset < room
    assert padding >= 8


def test_on_a_phone_nothing_stands_above_an_open_case_and_the_reasons_have_room(at):
    page = at("case=14", viewport={"width": 390, "height": 844})

    assert page.locator("#by-q").is_hidden()
    assert page.locator("#shown").is_hidden()
    page.get_by_text("All verdicts").click()
    reason = page.locator(".verdicts td:last-child").first
    assert reason.bounding_box()["width"] > 300
    page.keyboard.press("/")
    page.wait_for_selector("#pane", state="hidden")
    assert page.evaluate("document.activeElement.id") == "by-q"


def test_a_long_reason_in_the_bias_audit_keeps_to_the_page(at):
    page = at("trust", viewport={"width": 1200, "height": 800})
    table = page.get_by_role("region", name="Bias audit").first

    assert table.evaluate("e => e.scrollWidth <= e.clientWidth")


@pytest.mark.slow
def test_cases_on_which_judge_and_people_disagree_are_filtered_and_say_so(at):
    """By hand from the labels of `people_documents`, with the judge at its threshold."""
    page = at("people=disagree")
    assert (shown(page), sorted(numbers(page))) == ("3 of 14", [4, 10, 14])
    assert page.input_value("#by-people") == "disagree"
    assert (
        page.locator("#chosen").inner_text().strip()
        == "Annotators: judge and annotators disagree \u00d7"
    )

    row(page, 10).click()

    page.get_by_text("All verdicts").click()
    labels = page.locator(".verdicts .people")
    assert labels.all_inner_texts() == ["Annotators: bad (0.33), the judge disagrees"]
    page.locator("#more").click()
    page.select_option("#by-people", "tied")
    assert (shown(page), numbers(page)) == ("1 of 14", [14])
    assert "people=tied" in fragment(page)


def test_without_labels_there_is_no_choice_of_what_people_said(tabs, tmp_path):
    from example_run import example_run

    page = tabs()
    page.goto(f"{write_html(example_run(), tmp_path / 'report.html').as_uri()}#cases")
    page.locator("#more").click()
    assert page.locator("#by-metric").is_visible()
    assert not page.locator("#by-people").is_visible()


def test_an_open_case_at_320_px_keeps_its_stage_names_apart_and_its_columns_spaced(at):
    page = at("case=1", viewport={"width": 320, "height": 640})
    widest = "stops => Math.max(...stops.map((stop) => stop.scrollWidth - stop.clientWidth))"
    assert page.locator(".needs .stops li").evaluate_all(widest) <= 1
    columns = page.locator(".columns > div")
    above, below = (columns.nth(place).bounding_box() for place in (0, 1))
    assert below["y"] - above["y"] - above["height"] >= 16
