"""Figures: per cent for shares, counts as counts, and never one text for two numbers."""

import pytest

from misslink.render.format import format_drop, format_values


@pytest.mark.parametrize(
    ("metric", "number", "text"),
    [
        ("recall@5", 0.5, "50%"),
        ("retrieval.recall@5", 0.5, "50%"),
        ("retrieval.mrr", 0.5, "0.50"),
        ("slices.category.easy.metrics.ndcg@5", 0.6, "0.60"),
        ("slices.category.easy.metrics.recall@5", 0.6, "60%"),
        ("link.failures.passed", 0.5, "50%"),
        ("link.risk_difference", -0.5, "\u221250%"),
        ("link_correctness.risk_ratio", 2.0, "2"),
        ("link.table.none.bad", 12.0, "12"),
        ("coverage.faithfulness", 0.95, "95%"),
        ("coverage.faithfulness.failed", 12.0, "12"),
        ("usage.calls", 1200.0, "1,200"),
        ("usage.cost", 0.125, "0.12"),
        ("cases", 23.0, "23"),
        ("latency", 2.0, "2.00 s"),
        ("latency", 0.0025, "0.003 s"),
        ("diagnosis.n.not_indexed", 12.0, "12"),
        ("errors", 0.05, "5%"),
    ],
)
def test_a_number_is_written_as_what_it_is(metric, number, text):
    assert format_values(metric, number) == [text]


def test_a_change_of_a_count_has_no_points():
    assert format_drop("coverage.faithfulness.failed", 3.0) == "3"
    assert format_drop("link.failures.passed", 0.03) == "3 points"
