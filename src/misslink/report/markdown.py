"""Writes a run as GitHub-flavored markdown."""

from __future__ import annotations

from pathlib import Path

from misslink.failure_modes import FAILURE_MODES
from misslink.io.atomic import atomic_write
from misslink.registry import exporters
from misslink.render.html import render_markdown_template
from misslink.report.glossary import ANSWERS, RETRIEVALS
from misslink.report.page import ReportPage, build_page
from misslink.types import Run

_TEMPLATE = Path(__file__).resolve().parent / "templates" / "report.md.jinja"
_PAGE_FILE = "report.html"
_MAX_CASES = 10  # worst ones that are shown


@exporters.register("markdown", file="report.md")
def write_markdown(run: Run, path: Path) -> Path:
    """Write the report of `run` as markdown, whole or not at all, and return the path.

    Raises
    ------
    InputError
        The file cannot be written.
    """
    page = _PAGE_FILE if (path.parent / _PAGE_FILE).is_file() else ""
    return atomic_write(render_markdown(build_page(run, cases=_MAX_CASES), page_at=page), path)


def render_markdown(page: ReportPage, *, page_at: str = "") -> str:
    """Turn `page` into markdown.

    Parameters
    ----------
    page : ReportPage
    page_at : str
        Where the HTML page stands, seen from the markdown. "": nothing is linked.

    Returns
    -------
    str
        Every text escaped, ending in a line break.
    """
    return render_markdown_template(
        _TEMPLATE,
        page=page,
        page_at=page_at,
        retrievals=RETRIEVALS,
        answers=ANSWERS,
        modes=FAILURE_MODES,
    )
