"""The page of the README's quickstart, as ``reports/sample/report.html``."""

from __future__ import annotations

import tempfile
from pathlib import Path

import misslink
from misslink.examples import load_example

with tempfile.TemporaryDirectory() as folder:
    run = misslink.evaluate(**load_example("ferry"), out=Path(folder) / "first", cache=None)
    run.html(Path(__file__).parent / "sample" / "report.html")
