"""A run as one self-contained HTML page that loads nothing and runs no script but its own."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from misslink.engines.collecting import seldom_collecting
from misslink.errors import InputError
from misslink.files.whole import put
from misslink.registry import exporters
from misslink.report.explorer import blocks
from misslink.report.page import Page, build
from misslink.report.worst import how_many
from misslink.types import Run

if TYPE_CHECKING:
    import jinja2

__all__ = ["CASES", "asset", "fill", "render", "table_beside", "write", "write_page"]

CASES = "cases.parquet"  # the table of all cases in a run folder

_TEMPLATES = Path(__file__).resolve().parent / "templates"
_STYLES = ("report.css", "explorer.css")
_SCRIPTS = (
    "report.js",
    "address.js",
    "search.js",
    "elsewhere.js",
    "case.js",
    "pane.js",
    "list.js",
    "filters.js",
    "explorer.js",
)


@exporters.register("html")
def write(run: Run, path: Path) -> Path:
    """Write the report of `run` as one HTML file, whole or not at all.

    Beside the page of a run of many cases, which tells the worst of them, lies a table of all; see
    `table_beside` and `misslink.report.worst`.

    Parameters
    ----------
    run : Run
        Any run; one without cases, verdicts or links gives a page that says so.
    path : Path
        The file; its folder is made, a file that is there is replaced.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    InputError
        The page or the table cannot be written, or where the table belongs lies a file of another
        kind.
    """
    if how_many(len(run.cases)) == len(run.cases):
        return write_page(run, path)
    from misslink.report import parquet  # brings pyarrow

    if path.is_dir():
        raise InputError("this is a folder; give another path", path=path)
    table = table_beside(path)
    parquet.refuse_foreign(table)
    parquet.write(run, table)  # first, so that no page leads to what is not there
    return write_page(run, path, table.name)


def write_page(run: Run, path: Path, table: str = "") -> Path:
    """Write the page of `run` alone, whole or not at all, and return the path.

    Parameters
    ----------
    run : Run
    path : Path
    table : str
        What the file with all cases is called that lies, or will lie, beside the page.
    """
    with seldom_collecting():  # 10,000 cases are millions of small objects, and none is garbage
        return put(render(build(run, table=table)), path)


def table_beside(page: Path) -> Path:
    """Where the table of all cases of a page lies, if the page does not hold them all.

    Examples
    --------
    >>> table_beside(Path("runs/today/report.html")).name, table_beside(Path("mine.html")).name
    ('cases.parquet', 'mine.parquet')
    """
    if page.name == "report.html":
        return page.with_name(CASES)
    if page.suffix.casefold() == ".parquet":  # it is a page all the same, and not to be lost
        return page.with_name(f"{page.name}.parquet")
    return page.with_suffix(".parquet")


def render(page: Page) -> str:
    """Turn `page` into HTML: every text escaped, only the page's own style and script allowed."""
    listed, *bodies = blocks(page.cases) if page.cases.entries else (None,)
    # In a block of their own, so that what one file declares the others see, and nobody else.
    script = f'"use strict";\n{{\n{"".join(map(asset, _SCRIPTS))}}}\n'
    style = "".join(map(asset, _STYLES))
    return fill("report.jinja", page, style=style, script=script, listed=listed, bodies=bodies)


def fill(template: str, page: object, *, style: str, script: str = "", **more: object) -> str:
    """Render a template of this package, everything of `page` escaped.

    Parameters
    ----------
    template : str
        It is given ``page``, the texts ``style`` and ``script`` as they are, and what a
        Content-Security-Policy calls them, ``style_hash`` and ``script_hash``.
    page : object
        What is shown.
    style, script : str
        From files of this package; nobody else's text may be in them.
    **more
        Given to the template too.
    """
    from markupsafe import Markup  # comes with jinja2

    html = (
        _environment()
        .get_template(template)
        .render(
            page=page,
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            style_hash=_hash(style),
            script_hash=_hash(script),
            **more,
        )
    )
    # What no file can carry: half a surrogate pair, and NUL, which browsers treat each their own.
    return html.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


@cache
def _environment() -> jinja2.Environment:
    import jinja2  # kept out of `import misslink`

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def asset(name: str) -> str:
    """Text of a style sheet or script beside the templates."""
    return (_TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """What a Content-Security-Policy calls the text of an inline element."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
