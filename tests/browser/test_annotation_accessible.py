"""The page for labelling, for people who see little, use no mouse, or have it read aloud."""

import re
from importlib import resources

import pytest

from annotation_desk import open_case

SEVERE = {"moderate", "serious", "critical"}
SCHEMES = ["light", "dark"]


@pytest.fixture
def page(tabs, request):
    scheme, width = getattr(request, "param", ("light", 1200))
    return tabs(viewport={"width": width, "height": 844}, color_scheme=scheme)


def faults(axe, page):
    return {
        f"{fault['id']}: {fault['help']}": [node["html"][:160] for node in fault["nodes"]][:5]
        for fault in axe.run(page).response["violations"]
        if fault["impact"] in SEVERE
    }


def labelled(page, served):
    """Label the case with claims, the judge's opinion beside."""
    open_case(page, served, "with-exit")
    for key in "1221":
        page.keyboard.press(key)
    page.keyboard.press("o")  # at once: it waits for the labels on their way
    page.locator("#done", has_text="1 of 3").wait_for()


@pytest.mark.slow
@pytest.mark.parametrize("page", [("light", 390), ("dark", 1200)], indirect=True)
def test_axe_finds_no_fault_with_everything_open(page, served, axe):
    labelled(page, served)
    page.locator("#judge:visible").wait_for()
    page.keyboard.press("c")
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    served.stop()
    page.locator("#comment").fill("told too late")
    page.keyboard.press("Enter")
    page.locator("#banner").wait_for()
    found = faults(axe, page)
    served.start()

    assert found == {}


@pytest.mark.slow
@pytest.mark.parametrize("page", [(scheme, 390) for scheme in SCHEMES], indirect=True)
def test_axe_finds_no_fault_at_the_beginning_in_the_help_and_at_the_end(page, served, axe):
    found = {}
    page.goto(served.address)
    page.locator("#name").wait_for()
    found["who"] = faults(axe, page)
    page.goto(f"{served.address}#annotator=anna&case=end")
    page.locator(".command").wait_for()
    found["end"] = faults(axe, page)
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keys").wait_for()
    found["keys"] = faults(axe, page)

    assert {part: fault for part, fault in found.items() if fault} == {}


@pytest.mark.slow
def test_axe_would_find_a_fault(page, served, axe):
    page.goto(served.address)
    page.locator("#name").wait_for()
    page.evaluate("document.querySelector('label').remove()")

    assert "label" in {name.partition(":")[0] for name in faults(axe, page)}


@pytest.mark.slow
@pytest.mark.parametrize("page", [("light", 320), ("dark", 390)], indirect=True)
def test_nothing_is_wider_than_a_telephone(page, served):
    labelled(page, served)

    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]


@pytest.mark.slow
@pytest.mark.parametrize("page", [(scheme, 1200) for scheme in SCHEMES], indirect=True)
def test_what_the_keyboard_reaches_shows_that_it_is_reached(page, served):
    labelled(page, served)
    reached = {}
    for _ in range(40):
        page.keyboard.press("Tab")
        name, style, width = page.evaluate(
            """() => {
              const one = document.activeElement, look = getComputedStyle(one);
              const name = one.id || one.className || one.localName;
              return [name, look.outlineStyle, look.outlineWidth];
            }"""
        )
        reached[name] = (style, width)
    reached.pop("body", None)

    assert reached.keys() >= {"change", "question", "good", "bad", "skip", "next", "undo", "help"}
    assert {name: look for name, look in reached.items() if look != ("solid", "2px")} == {}


@pytest.mark.slow
def test_what_is_saved_and_what_goes_wrong_is_read_aloud(page, served):
    labelled(page, served)

    assert page.locator("#saved").get_attribute("role") == "status"
    assert page.inner_text("#saved").startswith("Saved")
    assert page.locator("#banner").get_attribute("role") == "alert"
    assert page.get_by_role("progressbar", name="1 of 3 done").get_attribute("value") == "1"


def test_a_case_takes_the_focus_so_that_its_question_is_read_first(page, served):
    page.goto(f"{served.address}#annotator=anna&case=1")
    page.locator(".question").first.wait_for()
    page.keyboard.press("n")
    page.locator(".meta", has_text="Case 2 of 3").wait_for()

    assert page.evaluate("document.activeElement.id") == "title"


def _tokens(text, scheme):
    """The custom properties of a style sheet's `:root`: first the light, then the dark ones."""
    roots = re.findall(r":root \{(.*?)\}", text, re.DOTALL)
    return dict(re.findall(r"--(\w+(?:-\w+)*): ([^;]+);", roots[SCHEMES.index(scheme)]))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_colours_and_letters_are_those_of_the_report(scheme):
    files = resources.files("misslink")
    report = (files / "render" / "templates" / "report.css").read_text(encoding="utf-8")
    own = (files / "annotation" / "page" / "annotate.css").read_text(encoding="utf-8")
    ours, theirs = _tokens(own, scheme), _tokens(report, scheme)
    alone = {"found"}

    assert {name: value for name, value in ours.items() if name not in alone} == {
        name: theirs[name] for name in ours if name not in alone
    }
    assert len(ours) > 8
