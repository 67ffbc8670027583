"""What people say of the judge, as markdown."""

from __future__ import annotations

from example_run import example_run
from proven_run import proven_run

from misslink.report.page import build
from misslink.report.people_markdown import of_the_judge, shares_by_people


def test_both_versions_of_a_share_stand_beside_each_other():
    """Seven of the eleven verdicts are at 0.43 or more; people's share is the calibration's own."""
    table = shares_by_people(build(proven_run())).splitlines()

    assert table[0] == "| Share of | By the judge | As people would find | How |"
    faithful = next(row for row in table if row.startswith("| faithful"))
    assert "64 % [35, 85], n = 11" in faithful.replace("\\", "")
    assert "65 % [59, 71], n = 220" in faithful.replace("\\", "")
    assert any(row.startswith("| correct answers") for row in table)
    assert shares_by_people(build(example_run())) == ""


def test_the_judge_has_its_verdicts_its_ties_and_its_audits():
    said = of_the_judge(build(proven_run()))

    assert "- faithfulness: **caution**." in said
    assert "- correctness: **caution**." in said
    assert "`misslink annotate RUN --adjudicate`" in said
    assert "| answer padded with its passages | `faithfulness` |" in said
    assert of_the_judge(build(example_run())) == ""
