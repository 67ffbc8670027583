"""The page of the README's quickstart: ``python sample.py [PAGE.html]``, by default the one in sample/."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

import misslink
from misslink.examples import load_example

page = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "sample" / "report.html")
page = page.resolve()
with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # the page names the run
    run = misslink.evaluate(**load_example("ferry"), out="reports/first", cache=None)
    run.html(page)
