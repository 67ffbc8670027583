"""The flow's geometry: areas are proportional to cases, and nothing overlaps."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from example_run import example_run
from misslink.failure_modes import FAILURE_MODES
from misslink.report.charts import draw_sankey
from misslink.report.glossary import ANSWERS, RETRIEVALS
from misslink.types import Link


def _link(retrieval, answer, failure):
    return Link(case_id="a", retrieval=retrieval, answer=answer, failure=failure, reason="-")


_LINKS = st.lists(
    st.builds(
        _link,
        st.sampled_from(tuple(RETRIEVALS)),
        st.sampled_from(tuple(ANSWERS)),
        st.sampled_from(tuple(FAILURE_MODES)),
    ),
    min_size=1,
    max_size=30,
)


def test_without_links_there_is_no_flow():
    assert draw_sankey([]) is None


def test_two_cases_alike_are_one_ribbon_twice_as_wide_as_that_of_one():
    drawn = draw_sankey(
        [
            _link("miss", "unfaithful", "retrieval_miss"),
            _link("miss", "unfaithful", "retrieval_miss"),
            _link("hit", "faithful", "passed"),
        ]
    )

    assert [(r.failure, r.count, r.tone) for r in drawn.ribbons] == [
        ("Retrieval miss", 2, "linked"), ("Passed", 1, "fine"),
    ]  # fmt: skip
    miss, hit = (node for node in drawn.nodes if node.column == 0)
    assert miss.height == pytest.approx(2 * hit.height, abs=0.1)


@given(_LINKS)
def test_every_column_holds_every_case_once_and_its_nodes_do_not_overlap(links):
    drawn = draw_sankey(links)

    assert sum(ribbon.count for ribbon in drawn.ribbons) == len(links)
    for column in range(3):
        nodes = [node for node in drawn.nodes if node.column == column]
        assert sum(node.count for node in nodes) == len(links)
        for above, below in pairwise(nodes):
            assert above.y + above.height + 16 <= below.y  # a line of text fits between


@given(_LINKS)
def test_everything_lies_inside_the_drawing_and_ribbons_touch_their_nodes(links):
    drawn = draw_sankey(links)

    for node in drawn.nodes:
        assert node.y >= 0
        assert node.y + node.height <= drawn.height
    for ribbon in drawn.ribbons:
        numbers = [float(x) for x in re.findall(r"[\d.]+", ribbon.path)]
        assert all(0 <= x <= max(drawn.width, drawn.height) for x in numbers)
        left = next(n for n in drawn.nodes if n.column == 0 and n.label == ribbon.retrieval)
        assert left.y - 0.11 <= numbers[1] <= left.y + left.height + 0.11


def test_the_order_of_cases_does_not_matter():
    links = list(example_run().links)

    assert draw_sankey(links) == draw_sankey(links[::-1])
