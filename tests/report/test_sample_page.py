"""The committed sample report is the page that misslink makes today."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("langchain_core")

REPORTS = Path(__file__).parents[2] / "reports"


def shown(page):
    """What a reader sees of a page, but for the time; the data of its table have seconds."""
    text = page.read_text(encoding="utf-8").partition('<script type="application/json"')[0]
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:+]+|\d+\.\d+ s\\b", "TIME", text).splitlines()


@pytest.mark.source
def test_the_sample_report_is_the_page_of_today(tmp_path):
    made = tmp_path / "report.html"
    command = [sys.executable, REPORTS / "sample.py", made]
    subprocess.run(command, check=True, capture_output=True, cwd=REPORTS.parent)
    assert shown(made) == shown(REPORTS / "sample" / "report.html"), "run `make sample`"
