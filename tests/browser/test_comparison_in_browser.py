"""The page of a comparison in a real browser: quiet, readable, and hostile texts are words."""

import pytest

from attacks import ATTACKS
from misslink.comparison.compare_runs import compare_runs
from misslink.comparison.pairing import NamedRun
from misslink.io.atomic import atomic_write
from misslink.report.comparison import build_comparison_page, render_comparison_page
from small_runs import broken, small_run
from watch import Watch, listening

N = 8
REPORTS = ("first/report.html", "second/report.html")


def _words(texts, field):
    """A text for each case: the attacks one after the other, with the field they stand in."""
    return [f"[{field} {place}] {texts[place % len(texts)]}" for place in range(N)]


def _answering(run, answers):
    told = zip(run.traces, answers, strict=True)
    traces = [trace.model_copy(update={"answer": answer}) for trace, answer in told]
    return run.model_copy(update={"traces": tuple(traces)})


def _preferences(judge):
    """As misslink judge pairwise found them, of a judge of this name."""
    sides = {"a": 1, "b": 5, "tie": 2}
    share = {"value": 5 / 6, "low": 0.4, "high": 0.97, "n": 6, "method": "wilson"}
    return {
        "judge": judge,
        "wins": sides,
        "by_order": {"a_first": sides, "b_first": sides},
        "preference": share,
        "position_flips": {**share, "value": 0.25, "low": 0.1},
        "p": 0.2,
        "identical": 1,
        "left_out": {judge: 1},
        "not_asked": 1,
    }


def _written(folder, texts, *, linked=True):
    """A page with every part of it, and an attack in every text that somebody else writes."""
    ids, questions = _words(texts, "id"), _words(texts, "question")
    common = {"ids": ids, "questions": questions}
    judge = f"[judge] {texts[0]}"
    a = small_run([0] * 5 + [1] * 3, faithful=[1, 0, 1, 1, 0, 0, None, 1], **common)
    b = small_run(
        [1] * 5 + [0] + [1] * 2, faithful=[0, 1, 1, 1, 0, 1, 1, None], judge=judge, **common
    )
    b = broken(_answering(b, _words(texts, "answer")), ids[3])
    error = {"error": f"[error] {texts[-1]}"}
    traces = [t.model_copy(update=error) if t.error else t for t in b.traces]
    reason = {"reason": f"[reason] {texts[-1]}", "status": "failed", "value": None, "label": None}
    verdicts = [v.model_copy(update=reason) if v.case_id == ids[7] else v for v in b.verdicts]
    b = b.model_copy(update={"traces": tuple(traces), "verdicts": tuple(verdicts)})
    runs = [NamedRun(f"[run {place}] {texts[0]}", run) for place, run in enumerate((a, b))]
    document = compare_runs(runs)
    document["comparisons"][0]["preference"] = _preferences(f"[preferring] {texts[-1]}")
    reports = dict(zip((one.name for one in runs), REPORTS, strict=True)) if linked else {}
    page = build_comparison_page(document, {one.name: one.run for one in runs}, reports)
    path = folder / "comparison.html"
    return atomic_write(render_comparison_page(page), path)


def _watched(browser, path):
    watch = Watch(browser, path, N)
    watch.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    watch.look()
    return watch


PARTS = ("id", "question", "answer", "error", "reason", "judge", "preferring", "run")


@pytest.fixture(scope="module")
def harmless(browser, tmp_path_factory):
    """The same page with harmless words: what it is made of is allowed."""
    watch = _watched(browser, _written(tmp_path_factory.mktemp("page"), ["word"], linked=False))
    yield watch
    watch.page.close()


def test_every_text_by_others_is_on_the_page(harmless):
    seen = "\n".join(harmless.texts)
    assert {part for part in PARTS if f"[{part}" not in seen} == set()


# Half a surrogate pair gets into no run: its models refuse it.
@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in ATTACKS if kind != "surrogate"])
def test_attacks_stay_words(browser, harmless, tmp_path, kind):
    path = _written(tmp_path, ATTACKS[kind], linked=False)
    watch = _watched(browser, path)
    faults = watch.faults(harmless)
    faults.pop("lost cases", None)  # of a report's list, which this page has not
    watch.page.close()
    assert faults == {}


def test_one_name_left_unescaped_is_noticed(browser, harmless, tmp_path):
    path = _written(tmp_path, ATTACKS["handler"], linked=False)
    whole = path.read_text(encoding="utf-8")
    broken_page = whole.replace("&lt;img src=x", "<img src=x")
    assert broken_page != whole
    path.write_text(broken_page, encoding="utf-8")
    watch = _watched(browser, path)
    assert "became elements" in watch.faults(harmless)
    watch.page.close()


@pytest.fixture(scope="module")
def comparison(tmp_path_factory):
    return _written(tmp_path_factory.mktemp("comparison"), ["When does the ferry leave?"])


def test_it_says_nothing_on_the_console_and_asks_nothing_of_the_network(tabs, comparison):
    page = tabs()
    page.goto(comparison.as_uri())
    assert page.said == []
    assert page.asked == [comparison.as_uri()]
    assert "(the app failed)" in page.locator("h1.headline").inner_text()
    assert page.locator(".reports a").nth(1).get_attribute("href") == "second/report.html"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "beside"), [(1200, True), (390, False)])
def test_both_answers_stand_side_by_side_where_there_is_room_with_their_lines_kept(
    tabs, comparison, width, beside
):
    page = tabs(viewport={"width": width, "height": 844})
    page.goto(comparison.as_uri())
    change = page.locator("details.change").filter(has=page.locator(".answer").nth(1)).first
    change.locator("summary").click()
    a, b = (change.locator(".columns > div").nth(place).bounding_box() for place in (0, 1))
    lines = change.locator(".answer").first.evaluate("one => getComputedStyle(one).whiteSpace")
    assert (a["x"] + a["width"] <= b["x"] and a["y"] == b["y"]) is beside
    assert (a["y"] + a["height"] <= b["y"] and a["x"] == b["x"]) is not beside
    assert lines == "pre-wrap"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1200, "dark"), (390, "light")])
def test_axe_finds_no_fault(tabs, comparison, scheme, width):
    library = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed"
    )
    page = tabs(viewport={"width": width, "height": 844}, color_scheme=scheme)
    page.goto(comparison.as_uri())
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    found = library.Axe().run(page).response["violations"]
    faults = {fault["id"]: [node["html"][:160] for node in fault["nodes"]] for fault in found}
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert faults == {}
    assert wide <= width, "the page itself scrolls sideways"


@pytest.fixture
def opened(browser, comparison):
    page = listening(browser.new_page())
    page.goto(comparison.as_uri())
    yield page
    assert page.said == []
    page.close()


def _shown(page):
    return page.locator("details.change:visible").count()


def test_filters_and_search_narrow_the_cases_and_the_address_says_how(opened):
    from playwright.sync_api import expect

    page = opened
    broken_, fixed = (page.locator(f".{name}-change").count() for name in ("broken", "fixed"))
    page.select_option("#by-change", "fixed")
    assert (_shown(page), page.locator("#shown").inner_text()) == (fixed, f"{fixed} of {N} cases")
    assert page.url.endswith("#change=fixed")
    page.locator(".outcomes a", has_text="broken").click()
    page.wait_for_url("**#change=broken")
    expect(page.locator("details.change:visible")).to_have_count(broken_)
    assert broken_ > 0
    page.fill("#by-q", '"question 0" ferry')
    page.select_option("#by-change", "")
    assert _shown(page) == 1
    page.reload()
    assert _shown(page) == 1, "the address keeps the view"
    page.goto(f"{page.url.partition('#')[0]}#change=nonsense")
    expect(page.locator("details.change:visible")).to_have_count(N)


def test_keys_walk_open_close_and_search(opened):
    page = opened
    for key in ("j", "j", "Enter"):
        page.keyboard.press(key)
    second = page.locator("details.change").nth(1)
    assert second.get_attribute("open") is not None
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.closest('details').id") == page.locator(
        "details.change"
    ).first.get_attribute("id")
    page.keyboard.press("j")
    page.keyboard.press("Escape")
    assert second.get_attribute("open") is None
    page.keyboard.press("/")
    page.keyboard.type("zebra")
    assert _shown(page) == 0
    page.keyboard.press("Escape")
    assert _shown(page) == N
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.locator("#keys-shown").wait_for()
