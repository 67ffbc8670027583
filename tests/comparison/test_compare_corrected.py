"""Two runs compared by what people would call good, in JSON, markdown and on the page."""

import json

import pytest

from gated_run import gated_run
from judged_runs import held, keeping
from misslink.calibration.corrected_prevalence import corrected_share_difference
from misslink.calibration_document import CalibrationDocument
from misslink.cli.compare import print_comparison
from misslink.comparison.compare_runs import compare_runs
from misslink.comparison.pairing import NamedRun
from misslink.report.comparison import (
    build_comparison_page,
    comparison_markdown,
    render_comparison_page,
)

BEFORE, AFTER = "1" * 30 + "0" * 30, "1" * 40 + "0" * 20
# People say otherwise of every ninth case.
PEOPLE = "".join(mark if at % 9 else "10"[int(mark)] for at, mark in enumerate(BEFORE))
A, B = gated_run("1" * 60, BEFORE), gated_run("1" * 60, AFTER)


@pytest.fixture(scope="module")
def document():
    return held(A, PEOPLE)


def compared(a, b):
    named = [NamedRun("a", a), NamedRun("b", b)]
    found = compare_runs(named)
    return found, build_comparison_page(found, {one.name: one.run for one in named})


def test_the_share_has_its_corrected_one_beside_it_and_other_metrics_have_none(document):
    found, _ = compared(keeping(A, document), keeping(B, document))
    shares = found["metrics"]
    assert (
        shares["fully_faithful"]["corrected"]
        == corrected_share_difference(
            A, B, "faithfulness", CalibrationDocument.read(document)
        ).document()
    )
    assert shares["fully_faithful"]["difference"]["value"] == pytest.approx(1 / 6)
    assert shares["fully_faithful"]["corrected"]["difference"]["value"] > 1 / 6
    assert shares["recall@1"]["corrected"] is None
    assert found["uncorrected"] is None
    json.dumps(found, allow_nan=False)


def test_markdown_and_the_page_show_it(document):
    _, page = compared(keeping(A, document), keeping(B, document))
    said = comparison_markdown(page).replace("\\", "")
    assert "`fully_faithful`, corrected for the judge's errors by 60 labels: " in said
    html = render_comparison_page(page)
    assert "Corrected for the judge's errors by human labels: " in html
    (row,) = page.comparisons[0].corrected
    assert html.count(row[3].value) >= 1


def test_why_it_is_not_corrected_is_told_once(document):
    found, page = compared(keeping(A, document), B)
    assert found["metrics"]["fully_faithful"]["corrected"] is None
    assert sum("Not corrected for the judge's errors" in one for one in found["notes"]) == 1
    assert "b has no calibration" in found["uncorrected"]
    assert render_comparison_page(page).count("b has no calibration") == 1


def test_without_any_calibration_nothing_is_said_of_it():
    found, page = compared(A, B)
    assert found["uncorrected"] is None
    assert not any("corrected" in one for one in found["notes"])
    assert "by human labels" not in render_comparison_page(page)


def test_the_terminal_names_the_method(document, capsys):
    _, page = compared(keeping(A, document), keeping(B, document))
    print_comparison(page)
    told = " ".join(capsys.readouterr().out.split())
    assert told.count("by the judge's error rates (Rogan and Gladen) in both runs") == 1
    print_comparison(compared(A, B)[1])
    assert "Rogan" not in capsys.readouterr().out
