"""What people say of the judge, as markdown."""

from __future__ import annotations

from example_run import example_run
from misslink.report.markdown import corrected_shares_markdown, trust_markdown
from misslink.report.page import build_page
from proven_run import proven_run


def test_both_versions_of_a_share_stand_beside_each_other():
    """Seven of the eleven verdicts are at 0.43 or more; people's share is the calibration's own."""
    table = corrected_shares_markdown(build_page(proven_run())).splitlines()

    assert table[0] == "| Share of | By the judge | By annotators | How |"
    faithful = next(row for row in table if row.startswith("| faithful"))
    assert "64% [35, 85], n = 11" in faithful.replace("\\", "")
    assert "65% [59, 71], n = 220" in faithful.replace("\\", "")
    assert any(row.startswith("| correct answers") for row in table)
    assert corrected_shares_markdown(build_page(example_run())) == ""


def test_the_judge_has_its_verdicts_its_ties_and_its_audits():
    said = trust_markdown(build_page(proven_run()))

    assert "- faithfulness: **caution**." in said
    assert "- correctness: **caution**." in said
    assert "`misslink annotate RUN --adjudicate`" in said
    assert "| answer padded with its passages | `faithfulness` |" in said
    assert trust_markdown(build_page(example_run())) == ""
