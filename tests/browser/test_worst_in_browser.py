"""The page of a large run in a real Chromium: what is here, and the way to what is not."""

from urllib.parse import quote

import pyarrow.parquet as pq
import pytest

from large_run import CASES, HOSTILE, large_run
from misslink.report import cases as worst
from misslink.report.page import write_html

HERE = 250  # so that of the failure modes but the first only some are here


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page of a run of many cases, of which the worst stand in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worst, "MAX_FULL_PAGE", CASES - 1)
        patch.setattr(worst, "PARTIAL_PAGE_CASES", HERE)
        return write_html(large_run(), tmp_path_factory.mktemp("large") / "report.html")


def told(page):
    """The count, what is elsewhere, and what the address held in vain."""
    return tuple(page.inner_text(f"#{one}") for one in ("shown", "elsewhere", "astray"))


@pytest.mark.slow
def test_it_says_how_many_are_here_and_where_all_of_them_are(at):
    page = at()
    section = page.inner_text(".partial").strip()
    assert section.startswith("The worst 250 of 900 cases are here in full.")
    assert "cases.parquet" in section
    assert "by failure mode, in the order of the table of failure modes" in section
    assert told(page) == ("250 of the worst 250", "", "")


def test_all_of_them_are_a_click_away(at, report, tmp_path):
    page = at()
    with page.expect_download() as caught:
        page.click(".partial a")
    saved = tmp_path / caught.value.suggested_filename
    caught.value.save_as(saved)
    assert saved.name == "cases.parquet"
    assert pq.read_table(saved).column("id").to_pylist() == [one.id for one in large_run().cases]


def test_a_filter_counts_what_is_here_and_says_how_many_there_are(at):
    page = at()
    page.select_option("#by-failure", "retrieval_miss")
    count, elsewhere, _ = told(page)
    assert count == "245 of the worst 250"
    assert elsewhere == (
        "300 of all 900 cases fit; those that are not here are in cases.parquet: "
        "select * from 'cases.parquet' where \"failure\" = 'retrieval_miss'"
    )
    labels = page.locator("#by-failure option").all_inner_texts()
    assert labels == ["any", "Retrieval miss (245 of 300)", "Passed (5 of 600)"]


def test_several_filters_say_that_others_may_fit(at):
    page = at("failure=passed&tag=topic:1")
    count, elsewhere, _ = told(page)
    assert count.endswith(" of the worst 250")
    assert elsewhere.startswith("Of the 650 cases that are not here others may fit; all are in ")
    assert elsewhere.endswith("where \"failure\" = 'passed' and \"tags.topic\" = '1'")


def test_a_text_is_found_here_and_perhaps_elsewhere(at):
    page = at("q=word3")
    assert "others may fit; all are in cases.parquet." in told(page)[1]


@pytest.mark.slow
def test_where_all_that_fit_are_here_it_says_so(at):
    assert told(at("ids=3,6,9"))[:2] == ("3 of the worst 250", "All cases that fit are here.")
    assert told(at("failure=distracted"))[:2] == ("0 of the worst 250", "No case of the run fits.")


def test_an_address_of_chosen_cases_keeps_those_that_are_elsewhere(at):
    page = at("ids=3,899,898,901")
    count, elsewhere, astray = told(page)
    assert count == "1 of the worst 250"
    assert elsewhere.startswith("3 of all 900 cases fit; ")
    assert elsewhere.endswith("where number in (3, 899, 898)")
    assert astray == "There is no case 901 in this report."
    assert page.evaluate("location.hash") == "#ids=3,899,898"


def test_the_address_of_a_case_that_is_elsewhere_says_where(at):
    page = at("case=899")
    assert told(page)[2] == (
        "Case 899 is not among the worst 250, which are here; it is number 899 in cases.parquet."
    )
    assert page.locator("#astray a").get_attribute("href") == "cases.parquet"
    assert not page.locator("#pane").is_visible()
    page.locator(".row").first.click()
    assert told(page)[2] == ""


def test_the_address_of_a_case_that_no_run_has_is_told_as_ever(at):
    assert told(at("case=901"))[2] == "There is no case 901 in this report."


def test_a_value_that_only_cases_elsewhere_have_is_known(at):
    page = at(f"category={quote(HOSTILE)}")
    count, elsewhere, astray = told(page)
    assert (count, astray) == ("0 of the worst 250", "")
    assert elsewhere.startswith("20 of all 900 cases fit; ")
    assert HOSTILE in page.inner_text("#chosen")
    assert page.locator("#elsewhere b, #chosen b").count() == 0, "text stays text"


@pytest.mark.slow
def test_every_case_that_is_here_opens_with_its_own_body(at):
    """Of the misses the first 245 by number, and of what is fine the first five."""
    page = at()
    for number in (3, 300, 1, 735, 7):
        page.evaluate("(hash) => { location.hash = hash }", f"case={number}")
        page.wait_for_selector(f"#pane:has-text('word{number}?')")
        assert f"An answer{number}." in page.text_content("#pane")
        assert told(page)[2] == ""


@pytest.mark.slow
def test_a_condition_names_a_column_of_the_table_and_quotes_its_value(at, report):
    said = at(f"category={quote(HOSTILE)}").inner_text("#elsewhere code")
    value = HOSTILE.replace("'", "''")
    assert said.partition(" where ")[2] == f"\"category\" = '{value}'"
    held = pq.read_table(report.with_name("cases.parquet")).column("category").to_pylist()
    assert held.count(HOSTILE) == 20


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1200])
def test_it_is_as_wide_as_the_screen(at, width):
    page = at("failure=passed&tag=topic:1", viewport={"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == width
