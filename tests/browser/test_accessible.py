"""The report for people who see little, use no mouse, or have it read aloud."""

import pytest

from misslink.report import links as places

VIEWS = ("summary", "cases", "retrieval", "trust", "numbers")


def _whole(page, report):
    """Open a case and all that is folded, so that nothing escapes the look."""
    page.goto(report.as_uri() + "#" + places.case_fragment(1))
    page.locator("#pane article").wait_for()
    page.evaluate("""() => {
      for (const folded of document.querySelectorAll("details")) folded.open = true;
      const more = document.getElementById("more");
      if (more.getAttribute("aria-expanded") === "false") more.click();
    }""")


def _show_all(page):
    page.evaluate("""() => {
      for (const view of document.querySelectorAll(".view")) view.classList.remove("closed");
    }""")


def _violations(axe, page):
    return {
        f"{fault['id']}: {fault['help']}": [node["html"][:160] for node in fault["nodes"]][:5]
        for fault in axe.run(page).response["violations"]
    }


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_axe_finds_no_fault_in_any_view_with_everything_open(tabs, report, axe, scheme, width):
    page = tabs(viewport={"width": width, "height": 844}, color_scheme=scheme)
    _whole(page, report)
    for view in VIEWS:
        page.evaluate("(view) => { location.hash = view === 'cases' ? 'case=1' : view; }", view)
        page.wait_for_selector(f"#{view}:not(.closed)")
        assert _violations(axe, page) == {}, view


@pytest.mark.slow
def test_on_a_phone_every_target_is_24_pixels_high_and_nothing_is_cut(tabs, report):
    page = tabs(viewport={"width": 390, "height": 844})
    _whole(page, report)
    _show_all(page)
    small = page.evaluate("""() => {
      const targets = document.querySelectorAll("a[href], button, select, input, summary");
      return [...targets].filter((at) => at.tabIndex >= 0 && at.checkVisibility())
        .map((at) => [at, at.getBoundingClientRect()])
        .filter(([, box]) => box.width && box.height < 23.5)
        .map(([at, box]) => `${at.outerHTML.slice(0, 80)} ${box.height}`);
    }""")
    assert small == []
    cut = page.evaluate("""() => [...document.querySelectorAll("svg")]
      .filter((at) => at.checkVisibility() && !at.closest("table") && at.getBoundingClientRect().right > 391)
      .map((at) => at.getAttribute("class"))""")
    assert cut == []


def test_letters_have_about_five_sizes(tabs, report):
    page = tabs(viewport={"width": 1440, "height": 900})
    _whole(page, report)
    _show_all(page)
    sizes = page.evaluate("""() => {
      const sizes = new Map();
      const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
      while (texts.nextNode()) {
        const parent = texts.currentNode.parentElement;
        if (texts.currentNode.data.trim() && parent.checkVisibility()) {
          sizes.set(getComputedStyle(parent).fontSize, parent.outerHTML.slice(0, 80));
        }
      }
      return [...sizes];
    }""")
    assert len(sizes) <= 6, sizes


@pytest.mark.slow
def test_axe_would_find_a_fault(tabs, report, axe):
    page = tabs()
    _whole(page, report)
    page.evaluate("""() => {
      const image = document.createElement("img"), button = document.createElement("button");
      document.querySelector("h1").after(image, button);
    }""")

    assert {name.partition(":")[0] for name in _violations(axe, page)} >= {
        "image-alt",
        "button-name",
    }


@pytest.mark.slow
def test_whatever_the_keyboard_reaches_shows_that_it_is_reached(tabs, report):
    page = tabs()
    _whole(page, report)
    _show_all(page)
    page.locator("body").focus()
    page.keyboard.press("Tab")  # from here on, what has the focus is reached by the keyboard
    unseen = """() => {
      const kinds = new Map();
      const reachable = "a[href], button, input, select, summary, [tabindex='0']";
      for (const one of document.querySelectorAll(reachable)) {
        if (one.checkVisibility() && one.tabIndex >= 0) {
          kinds.set(`${one.localName}.${one.className?.baseVal ?? one.className}`, one);
        }
      }
      const faults = [];
      for (const [kind, one] of kinds) {
        const look = () => {
          const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(one);
          return [outlineStyle, parseFloat(outlineWidth), outlineColor];
        };
        one.blur();
        one.focus({ preventScroll: true, focusVisible: true });
        const [style, width, color] = look();
        if (document.activeElement !== one) continue; // a fold that focusing another has closed
        if (style === "none" || width < 1 || color === "rgba(0, 0, 0, 0)") faults.push(kind);
      }
      return [kinds.size, faults];
    }"""
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        kinds, faults = page.evaluate(unseen)
        assert faults == [], scheme
        assert kinds >= 10, "too few kinds of elements were tried"


def test_every_drawing_that_says_something_has_a_name_and_a_table(tabs, report):
    page = tabs()
    _whole(page, report)
    drawings = page.evaluate("""() => [...document.querySelectorAll("svg")]
      .filter((one) => one.ariaHidden !== "true" && !one.closest("[aria-hidden=true]"))
      .map((one) => ({
        name: one.getAttribute("class"),
        // A drawing that holds links is no image: their names would not be read.
        role: one.getAttribute("role") === (one.querySelector("a") ? "group" : "img"),
        title: document.getElementById(one.getAttribute("aria-labelledby"))?.textContent ?? "",
        tables: one.closest("section, figure").querySelectorAll("table").length,
      }))""")

    names = {one["name"] for one in drawings}
    assert names >= {"sankey", "map"}
    assert [one for one in drawings if not one["role"] or not one["title"].strip()] == []
    assert [one["name"] for one in drawings if not one["tables"]] == []
