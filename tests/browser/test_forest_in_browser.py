"""The plot of a comparison on a phone: all of it is seen, and no name is cut off."""

from __future__ import annotations

import pytest

from misslink.render.html import read_assets
from misslink.report.comparison import draw_forest
from misslink.report.html import TEMPLATES

NAMES = ("correctness_precision", "should_have_abstained", "a" * 29, "mrr")


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 390, "height": 844})
    yield page
    page.close()


def test_a_plot_on_a_phone_is_whole(page):
    found = {"difference": {"value": 0.02, "low": -0.05, "high": 0.09}}
    drawn = draw_forest([(name, "no difference", found) for name in NAMES])
    texts = "".join(
        f'<g><text x="{drawn.left - 12}" y="{row.y + 4}" text-anchor="end">{row.name}</text></g>'
        for row in drawn.whiskers
    )
    anchors = ("start", "middle", "end")
    heads = "".join(
        f'<text class="head" x="{tick.x}" y="13" text-anchor="{anchor}">{tick.label}</text>'
        for anchor, tick in zip(anchors, drawn.ticks, strict=True)
    )
    styles = read_assets(TEMPLATES, "report.css", "comparison.css")
    page.set_content(
        f'<meta name="viewport" content="width=device-width"><style>{styles}</style><main>'
        f'<div class="scroll"><svg class="forest" viewBox="0 0 {drawn.width} {drawn.height}">'
        f"{heads}{texts}</svg></div></main>"
    )

    assert page.evaluate("document.querySelector('.scroll').scrollWidth") <= 390
    edges = page.evaluate("""() => {
      const { left, right } = document.querySelector(".forest").getBoundingClientRect();
      return [...document.querySelectorAll("text")].map((one) => one.getBoundingClientRect())
        .map((box) => Math.min(box.left - left, right - box.right));
    }""")
    assert len(edges) == len(NAMES) + 3
    assert min(edges) > -1  # pixels
