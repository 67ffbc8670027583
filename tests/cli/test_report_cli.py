"""misslink report: places that cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from misslink.cli.report import report
from misslink.errors import InputError


@pytest.fixture
def run():
    folder = Path("run")
    folder.mkdir()
    for part in ("cases", "traces", "verdicts", "links"):
        (folder / f"{part}.jsonl").write_text("", encoding="utf-8")
    for name in ("manifest", "summary"):
        (folder / f"{name}.json").write_text("{}", encoding="utf-8")
    return folder


def test_a_page_that_cannot_be_written_names_the_option_that_helps(run):
    """A file stands where its folder would have to be: nobody, root included, can write there."""
    Path("file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"^file/p\.html: the report .* another path with --out$"):
        report(run, out=Path("file/p.html"), as_json=False)


def test_a_run_folder_that_takes_no_page_names_the_option_that_helps(run):
    (run / "report.html").mkdir()
    with pytest.raises(InputError, match=r"give another path.* with --out$"):
        report(run, out=None, as_json=False)
