"""The layout of the main pages, against one that a person looked at and accepted.

``tests/gold/layout.json`` has for each window the visible blocks from top to bottom with left edge
and width as shares of the window and the size of letters, and for each scheme their colors. Pixels
differ with the fonts of a machine, these hardly. After a change that is meant, look at the pages,
then accept it with MISSLINK_ACCEPT=1.
"""

import json
import os
from pathlib import Path

import pytest

from misslink.comparison.compare_runs import compare_runs
from misslink.comparison.pairing import NamedRun
from misslink.io.atomic import atomic_write
from misslink.report.comparison import build_comparison_page, render_comparison_page
from small_runs import small_run

GOLD = Path(__file__).parents[1] / "gold" / "layout.json"
HEIGHTS = {1440: 1000, 1024: 768, 390: 844}
BLOCKS = {
    "first": (
        *(".top", "nav", "#headline", ".lead b.good", ".owners", ".levels", ".path"),
        *(".example", ".judge-line", ".exposure", ".fixes"),
    ),
    "case": (
        *("nav", "#rows", "#pane", ".case-bar", "#case-title", ".case-verdict", ".case .answer"),
        *(".case .columns > div:nth-child(1)", ".case .columns > div:nth-child(2)", ".folds"),
    ),
    "compare": (
        *(".headline", ".reports", ".lead h2", ".outcomes", ".outcome-bar", ".differences"),
        *("#cases", "#filters", "#matrix", "#matrix .question", "#matrix .run-marks"),
    ),
}
MEASURE = """(selectors) => selectors.map((name) => [name, document.querySelector(name)])
  .filter(([, at]) => at?.checkVisibility()).map(([name, at]) => {
    const [box, style] = [at.getBoundingClientRect(), getComputedStyle(at)];
    return { name, top: box.top + scrollY, left: box.left / innerWidth, width: box.width / innerWidth,
      letters: parseFloat(style.fontSize), color: style.color, ground: style.backgroundColor };
  })"""


@pytest.fixture(scope="module")
def addresses(report, tmp_path_factory):
    runs = (small_run([0] * 6 + [1] * 2), small_run([1] * 7 + [0]))
    named = [NamedRun(name, run) for name, run in zip(("chain", "wider"), runs, strict=True)]
    page = build_comparison_page(compare_runs(named), {one.name: one.run for one in named})
    path = tmp_path_factory.mktemp("compare") / "compared.html"
    atomic_write(render_comparison_page(page), path)
    uri = report.as_uri()
    return {"first": f"{uri}#summary", "case": f"{uri}#case=1", "compare": path.as_uri()}


def _measure(page, page_name, scheme):
    page.emulate_media(color_scheme=scheme)
    blocks = page.evaluate(MEASURE, list(BLOCKS[page_name]))
    # Blocks beside each other may differ by a fraction of a line.
    return sorted(blocks, key=lambda block: (round(block["top"] / 8), block["left"]))


def _accepted(key, value):
    known = json.loads(GOLD.read_text(encoding="utf-8")) if GOLD.exists() else {}
    if os.environ.get("MISSLINK_ACCEPT"):
        rows = {name: json.dumps(one) for name, one in sorted({**known, key: value}.items())}
        lines = ",\n".join(f"{json.dumps(name)}: {row}" for name, row in rows.items())
        GOLD.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
        return value
    return known[key]


@pytest.mark.parametrize("width", HEIGHTS)
@pytest.mark.parametrize("page_name", BLOCKS)
def test_blocks_have_their_order_place_and_letters_in_light_and_dark(
    tabs, addresses, page_name, width
):
    page = tabs(viewport={"width": width, "height": HEIGHTS[width]})
    page.goto(addresses[page_name])
    page.wait_for_selector("#case-title" if page_name == "case" else "h1")
    schemes = {scheme: _measure(page, page_name, scheme) for scheme in ("dark", "light")}
    for scheme, blocks in schemes.items():
        rows = [
            [b["name"], round(b["left"], 3), round(b["width"], 3), round(b["letters"], 1)]
            for b in blocks
        ]
        expected = _accepted(f"{page_name} {width}", rows)
        assert [row[0] for row in rows] == [row[0] for row in expected], "order of the blocks"
        for (name, *found), (_, *wanted) in zip(rows, expected, strict=True):
            assert found == pytest.approx(wanted, abs=0.02), name
        if width == 1440:
            colors = {b["name"]: [b["color"], b["ground"]] for b in blocks}
            assert colors == _accepted(f"{page_name} {scheme}", colors)


def test_a_moved_or_recolored_block_would_be_found(tabs, addresses):
    page = tabs(viewport={"width": 1440, "height": 1000})
    page.goto(addresses["first"])
    page.evaluate("""() => {
      const [owners, path] = [document.querySelector(".owners"), document.querySelector(".path")];
      path.after(owners);
      document.querySelector("#headline").style.color = "rgb(1, 2, 3)";
    }""")
    blocks = page.evaluate(MEASURE, list(BLOCKS["first"]))
    found = sorted(blocks, key=lambda block: (round(block["top"] / 8), block["left"]))
    known = json.loads(GOLD.read_text(encoding="utf-8"))
    assert [b["name"] for b in found] != [row[0] for row in known["first 1440"]]
    (headline,) = (b for b in found if b["name"] == "#headline")
    assert headline["color"] != known["first light"]["#headline"][0]
