"""The report in a real Chromium: what people click, and what hostile texts try."""

import re

import pytest

from example_run import example_run
from large_run import large_run
from misslink.report.page import write_html
from proven_run import proven_run


@pytest.mark.slow
def test_nothing_is_said_on_the_console_nothing_asked_and_no_hostile_script_runs(opened, report):
    for number in range(1, 15):
        opened.evaluate("number => { location.hash = `#case=${number}`; }", number)
        opened.get_by_text(f"Case {number} ·").wait_for()
        for claim in opened.locator(".answer a.claim").all():
            claim.hover()
            claim.click()

    assert opened.said == []
    assert {url.partition("#")[0] for url in opened.asked} == {report.as_uri()}
    assert opened.evaluate("typeof window.pwned") == "undefined"
    assert opened.locator("h1").is_visible()


def test_an_injected_script_would_be_stopped_by_the_policy(opened):
    opened.evaluate(
        "const s = document.createElement('script'); s.textContent = 'window.pwned = 9';"
        "document.body.append(s)"
    )

    assert opened.evaluate("typeof window.pwned") == "undefined"
    assert any("Content Security Policy" in text for text in opened.said)


def test_an_axis_of_many_groups_is_folded_and_fits_a_phone_open_or_not(tabs, tmp_path):
    run = example_run()
    group = next(iter(run.summary["slices"]["category"].values()))
    many = {f"topic {number}": group for number in range(20)}
    summary = run.summary | {"slices": run.summary["slices"] | {"topic": many}}
    path = write_html(run.model_copy(update={"summary": summary}), tmp_path / "report.html")
    page = tabs(viewport={"width": 390, "height": 844})
    page.goto(f"{path.as_uri()}#numbers")
    assert not page.get_by_text("topic 19", exact=True).is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_text("20 groups").click()
    assert page.get_by_text("topic 19", exact=True).is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.slow
def test_a_mark_on_the_map_opens_its_case(opened):
    opened.click("nav a[href='#retrieval']")
    opened.get_by_text("Show the map").click()
    mark = opened.locator("svg.map a[href='#case=14'] path")
    assert "Retrieval miss: What does a with" in mark.locator("title").text_content()

    mark.click()

    opened.wait_for_selector("#case-title")
    assert "with statement" in opened.inner_text("#case-title")
    assert opened.locator("#pane .ranks").first.is_visible()


def test_the_keyboard_passes_the_map_s_marks_by(opened):
    assert opened.evaluate(
        "[...document.querySelectorAll('svg.map a')].every(a => a.tabIndex === -1)"
    )


def test_marks_of_the_map_stand_out_from_its_ground(tabs, report):
    # WCAG 1.4.11: 3 to 1 for what a drawing says.
    weak = """() => {
      const light = (rgb) => {
        const [r, g, b] = rgb.match(/[\\d.]+/g).slice(0, 3).map((v) => {
          const c = v / 255;
          return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
      };
      const paper = light(getComputedStyle(document.body).backgroundColor);
      const ratio = (at) => {
        const [x, y] = [light(getComputedStyle(at).fill), paper].sort((p, q) => q - p);
        return x / y;
      };
      const keys = [...document.querySelectorAll(".keys .mark")];
      return [keys.length, keys.filter((at) => ratio(at) < 3).map((at) => at.classList.value)];
    }"""
    page = tabs()
    page.goto(report.as_uri())
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(weak) == [11, []], scheme


def test_text_stands_out_from_its_ground_in_light_and_dark(tabs, report):
    # WCAG AA: 4.5 to 1 for text of this size.
    contrast = """() => {
      const style = getComputedStyle(document.documentElement);
      const light = (name) => {
        const hex = style.getPropertyValue(name).trim().slice(1);
        const [r, g, b] = [0, 2, 4].map((i) => {
          const c = parseInt(hex.slice(i, i + 2), 16) / 255;
          return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
      };
      const pairs = [["ink", "paper"], ["soft", "paper"], ["soft", "wash"], ["accent", "paper"],
        ["accent", "accent-wash"], ["ink", "accent-wash"], ["ink", "calm-wash"], ["calm", "paper"],
        ["calm", "wash"]];
      return pairs.map(([a, b]) => {
        const [x, y] = [light("--" + a), light("--" + b)].sort((p, q) => q - p);
        return [a + " on " + b, x / y];
      });
    }"""
    page = tabs()
    page.goto(report.as_uri())
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        weak = [(pair, ratio) for pair, ratio in page.evaluate(contrast) if ratio < 4.5]
        assert weak == []


def test_what_people_do_not_agree_on_leads_to_the_case_and_its_claim(opened):
    opened.click("nav a[href='#trust']")
    queue = opened.locator(".queue", has_text="tied").locator("tbody tr")
    assert queue.count() == 5
    assert "tied" in queue.first.inner_text()
    opened.locator("details", has=queue.nth(3)).evaluate_all(
        "all => all.forEach((at) => { at.open = true; })"
    )

    queue.nth(3).get_by_role("link").click()

    opened.wait_for_selector("#case-title")
    assert "with statement" in opened.inner_text("#case-title")
    assert "Claim 2" in opened.inner_text("#finding")


def test_a_share_that_labels_correct_is_the_only_one_in_the_numbers_of_the_levels(tabs, report):
    page = tabs(viewport={"width": 1200, "height": 844})
    page.goto(f"{report.as_uri()}#numbers")
    row = page.locator(".measures tr", has=page.locator("code", has_text="fully_faithful"))
    assert "65% [59, 71]" in row.inner_text()
    assert "220 labels" in row.inner_text()


def replayed_run():
    return proven_run().model_copy(update={"whatif": None})


@pytest.mark.slow
@pytest.mark.parametrize("make", [example_run, large_run, replayed_run])
def test_the_first_screen_fits_into_one_window_and_one_sheet_and_says_little(tabs, tmp_path, make):
    page = tabs(viewport={"width": 1440, "height": 1000})
    page.goto(write_html(make(), tmp_path / "report.html").as_uri())
    box = page.locator(".first").bounding_box()
    assert box["y"] + box["height"] <= 1000
    text = page.locator(".first").inner_text()
    assert len(text.split()) <= 160, text
    assert len(re.findall(r"\d[\d.,-]*", text)) <= 35
    page.click(".owners a[href='#owner=retriever'] >> nth=1")
    assert "owner=retriever" in page.url
    page.goto(page.url.partition("#")[0])
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1047})  # A4 at 96 dpi less margins of 1 cm
    box = page.locator(".first").bounding_box()
    assert box["y"] + box["height"] <= 1047


def test_a_bar_of_the_staircase_opens_the_cases_that_lost_a_fact_there(at):
    page = at("summary")
    page.click(".stairs a[href='#lost_at=rank']")
    page.wait_for_selector("#rows[aria-busy=false] .row")
    assert page.locator("#shown").inner_text().startswith("1 of 14")
    page.click("#rows .row")
    stops = page.locator(".need").first.locator(".stops li")
    assert stops.evaluate_all("found => found.map((one) => one.className)") == [
        *["through"] * 3, "lost", *["gone"] * 2,
    ]  # fmt: skip
    assert "rank 17, cutoff 5" in page.locator(".need").first.inner_text()


def test_the_path_of_needs_fits_a_narrow_page(tabs, report):
    page = tabs(viewport={"width": 390, "height": 844})
    for fragment in ("summary", "case=14", "retrieval"):
        page.goto(f"{report.as_uri()}#{fragment}")
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_without_a_script_the_views_are_below_each_other(browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    for view in ("summary", "cases", "retrieval", "trust", "numbers"):
        assert page.locator(f"#{view}").is_visible()
    context.close()


def test_what_was_not_measured_is_one_line_at_the_end_of_its_view(tabs, tmp_path):
    page = tabs()
    page.goto(f"{write_html(example_run(), tmp_path / 'report.html').as_uri()}#retrieval")
    line = page.locator("#retrieval > :last-child").inner_text()
    assert line.startswith("Not measured: other ways to retrieve (misslink whatif RUN); ")
