"""Writes a run as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path

from misslink.engines.local import reduced_gc
from misslink.errors import InputError
from misslink.io.atomic import atomic_write
from misslink.registry import exporters
from misslink.render.html import read_assets, render_template
from misslink.report.cases import page_size
from misslink.report.explorer import build_blocks
from misslink.report.glossary import metric_words, term_words
from misslink.report.page import ReportPage, build_page
from misslink.types import Run

CASE_TABLE = "cases.parquet"  # the table of all cases in a run folder
TEMPLATES = Path(__file__).resolve().parent / "templates"
_STYLES = ("report.css", "run.css", "explorer.css")
_SCRIPTS = (
    *("report.js", "address.js", "data.js", "elsewhere.js", "answer.js", "case.js"),
    *("pane.js", "list.js", "filters.js", "export.js", "explorer.js"),
)


@exporters.register("html", file="report.html")
def write_html(run: Run, path: Path) -> Path:
    """Write the report of `run` as one HTML file, completely or not at all.

    The page of a large run holds its worst cases, and a table of all cases is written beside it;
    see `case_table_path` and `misslink.report.cases`.

    Parameters
    ----------
    run : Run
        One without cases, verdicts or links gives a page that says so.
    path : Path
        Its folder is created; an existing file is replaced.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    InputError
        The page or the table cannot be written, or the table would replace another kind of file.
    """
    if page_size(len(run.cases)) == len(run.cases):
        return write_page(run, path)
    from misslink.report.table_export import check_overwritable, write_parquet  # imports pyarrow

    if path.is_dir():
        raise InputError("this is a folder; give another path", path=path)
    table = case_table_path(path)
    check_overwritable(table)
    write_parquet(run, table)  # first, so that the page never links to a missing file
    return write_page(run, path, table.name)


def write_page(run: Run, path: Path, table: str = "") -> Path:
    """Write only the page of `run`; `table` is the name of the file with all cases beside it."""
    with reduced_gc():  # 10,000 cases are millions of small objects, and none is garbage
        return atomic_write(render_page(build_page(run, table=table)), path)


def case_table_path(page: Path) -> Path:
    """Return the path of the table of all cases of a page that does not hold them all.

    Examples
    --------
    >>> case_table_path(Path("runs/a/report.html")).name, case_table_path(Path("mine.html")).name
    ('cases.parquet', 'mine.parquet')
    """
    if page.name == "report.html":
        return page.with_name(CASE_TABLE)
    if page.suffix.casefold() == ".parquet":  # the page itself has this name
        return page.with_name(f"{page.name}.parquet")
    return page.with_suffix(".parquet")


def render_page(page: ReportPage) -> str:
    """Render `page` as HTML: every text escaped, only the page's own style and script allowed."""
    listed, *bodies = build_blocks(page.cases) if page.cases.entries else (None,)
    # In a block, so that the scripts share their declarations and add no globals.
    script = f'"use strict";\n{{\n{read_assets(TEMPLATES, *_SCRIPTS)}}}\n'
    style = read_assets(TEMPLATES, *_STYLES)
    return render_template(
        TEMPLATES / "report.jinja",
        page,
        style=style,
        script=script,
        listed=listed,
        bodies=bodies,
        terms=term_words,
        words=metric_words,
    )
