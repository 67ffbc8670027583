"""The k-curve: with characters, and as an SVG picture."""

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from misslink.render.line_chart import ChartLine, LineChart, render_characters, render_svg
from misslink.stats.intervals import MeanBand

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('x')</script> & \x1b[31m\x00"


def line(name, values, n=20):
    return ChartLine(name, MeanBand(tuple(values), tuple(values), tuple(values), n))


@pytest.fixture
def chart():
    rising = [k / 100 for k in range(1, 101)]
    return LineChart("by cut-off k", (line("recall@k", rising), line("precision@k", [0.5] * 100)))


def test_every_value_stands_in_the_row_of_its_share(chart):
    """Recall is 0.01 in the first column and 1.00 in the last; precision is 0.5 all along."""
    drawn = render_characters(chart)
    top, middle, bottom = (next(row for row in drawn if share in row) for share in
                           ("1.0 │", "0.4 │", "0.0 │"))  # fmt: skip
    assert top.endswith("●")
    assert top.index("●") > 60
    assert bottom[5] == "●"
    half = drawn[drawn.index(middle) - 1]
    assert half.count("○") + half.count("*") == 64
    assert drawn[-3:-1] == [
        "● recall@k: 0.01 at k = 1, 1.00 at k = 100 (n = 20)",
        "○ precision@k: 0.50 at k = 1, 0.50 at k = 100 (n = 20)",
    ]
    assert drawn[-1] == "* several of them"


def test_cut_offs_stand_under_their_columns(chart):
    drawn = render_characters(chart)
    axis = next(row for row in drawn if row.startswith("  k"))
    assert axis.split() == ["k", "1", "2", "3", "5", "10", "20", "50", "100"]
    assert axis.index("10") - axis.index("1") == axis.index("100") - axis.index("10") + 1  # log
    assert max(map(len, drawn[:-3])) <= 80


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "no-such-encoding"])
def test_a_terminal_without_the_marks_gets_ascii(chart, encoding):
    drawn = "\n".join(render_characters(chart, encoding=encoding))
    assert drawn.isascii()
    assert "a recall@k" in drawn


@pytest.mark.parametrize("lines", [(), (line("recall@k", []),)])
def test_nothing_to_draw_is_said(lines):
    assert render_characters(LineChart("empty", lines))[1].startswith("No query has a value")
    assert "No query has a value." in render_svg([LineChart("empty", lines)])


def test_one_cut_off_alone_is_drawn(chart):
    single = LineChart("one", (line("recall@k", [0.25]),))
    assert any("●" in row for row in render_characters(single)[1:12])
    assert "<circle" in render_svg([single])


def test_the_picture_is_xml_that_says_what_it_shows(chart):
    root = ET.fromstring(render_svg([chart, chart]))  # noqa: S314 -- our own text
    assert len(root.findall(f"{SVG}g")) == 2
    said = root.find(f"{SVG}desc").text
    assert "recall@k 0.01 at k = 1 and 1.00 at k = 100" in said
    curves = [path for path in root.iter(f"{SVG}path") if path.get("class") == "line"]
    ys = [float(y) for y in re.findall(r" ([\d.]+)", curves[0].get("d"))]
    assert len(ys) == 100
    assert ys == sorted(ys, reverse=True)


def test_labels_do_not_lie_over_one_another():
    close = LineChart("close", tuple(line(f"run{n}", [0.0] * 10) for n in range(8)))
    root = ET.fromstring(render_svg([close]))  # noqa: S314 -- our own text
    ys = [float(t.get("y")) for t in root.iter(f"{SVG}text") if (t.text or "").startswith("run")]
    assert len(ys) == 8
    gaps = [after - before for before, after in pairwise(ys)]
    assert min(gaps) >= 15
    assert max(ys) <= 262.5


def test_names_under_test_are_no_markup():
    picture = render_svg([LineChart(HOSTILE, (line(HOSTILE, [0.5, 0.6]),))])
    assert "<script" not in picture
    assert "\x1b" not in picture
    root = ET.fromstring(picture)  # noqa: S314 -- our own text
    assert any("<script>" in (text.text or "") for text in root.iter(f"{SVG}text"))
