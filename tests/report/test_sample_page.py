"""The committed sample report is the page that misslink makes today."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("langchain_core")

REPORTS = Path(__file__).parents[2] / "reports"


def shown(page):
    """The page but for its time, its Python, and decimals of the table's data: some are seconds."""
    text = page.read_text(encoding="utf-8")
    page, _, data = re.sub(r"\d{4}-\d\d-\d\d(T[\d:+]+)?", "TIME", text).partition(
        '<script type="application/json"'
    )
    page = re.sub(r"\d+\.\d+ s\b", "TIME", page)
    page = re.sub(r"\bpython \d+\.\d+\.\d+", "PYTHON", page)
    return [*page.splitlines(), *re.sub(r"\d+\.\d+", "DECIMAL", data).split('","')]


@pytest.mark.source
def test_the_sample_report_is_the_page_of_today(tmp_path):
    made = tmp_path / "report.html"
    command = [sys.executable, REPORTS / "sample.py", made]
    subprocess.run(command, check=True, capture_output=True, cwd=REPORTS.parent)
    page = REPORTS / "sample" / "report.html"
    if os.environ.get("MISSLINK_ACCEPT") and shown(made) != shown(page):
        picture = [sys.executable, REPORTS / "picture.py", made, page.with_suffix(".png")]
        subprocess.run(picture, check=True)
        shutil.copy(made, page)  # last: where no picture can be made, the page stays old, too
    assert shown(made) == shown(page), "run `make gold`"
