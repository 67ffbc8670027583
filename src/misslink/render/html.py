"""Renders HTML pages and markdown from Jinja templates, with every text escaped."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING

from misslink.render.format import (
    format_decimal_estimate,
    format_difference,
    format_estimate,
    format_p_value,
    format_share_of,
    pluralize,
    shorten,
)
from misslink.render.markdown import code_span, escape_markdown, escape_with_commands
from misslink.text.normalization import HIDDEN_MARK

if TYPE_CHECKING:
    import jinja2


_FILTERS = {
    "thousands": lambda number: f"{number + 0:,}",  # the sum names what is missing
    "pluralize": pluralize,
    "shorten": shorten,
    "estimate": lambda estimate, name="share": format_estimate(name, estimate),
    "difference": lambda estimate, name="share": format_difference(name, estimate),
    "share_of": format_share_of,
    "decimal": lambda estimate: format_decimal_estimate("", estimate),
    "p_value": format_p_value,
}
_SHARED = Path(__file__).resolve().parent / "templates"  # macros and styles of all pages


def render_template(
    template: Path, page: object, *, style: str = "", script: str = "", **more: object
) -> str:
    """Render a template.

    Parameters
    ----------
    template : Path
        It is given ``page``, the texts ``style`` and ``script`` as they are, and their hashes for a
        Content-Security-Policy, ``style_hash`` and ``script_hash``. It may use other templates of
        its folder and the shared ones.
    page : object
        The content; every text of it is escaped.
    style, script : str
        From files of misslink only, because they are not escaped.
    **more
        Further variables of the template.
    """
    from markupsafe import Markup  # installed with jinja2

    html = (
        _environment(template.parent)
        .get_template(template.name)
        .render(
            page=page,
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            style_hash=_csp_hash(style),
            script_hash=_csp_hash(script),
            **more,
        )
    )
    # UTF-8 cannot encode half a surrogate pair, and browsers differ in how they read NUL.
    return html.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def read_assets(folder: Path, *names: str) -> str:
    """Return style sheets or scripts of a template folder, or shared ones, as one text."""
    paths = ((folder / name, _SHARED / name) for name in names)
    return "".join(
        (own if own.exists() else shared).read_text(encoding="utf-8") for own, shared in paths
    )


def render_markdown_template(template: Path, **values: object) -> str:
    """Render a template of markdown, in which no text becomes markup.

    Filters: ``code`` writes a name as code, ``commands`` a sentence with commands in backticks.
    Blank lines in a row become one.
    """
    text = _environment(template.parent, markdown=True).get_template(template.name).render(values)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


@cache
def _environment(folder: Path, *, markdown: bool = False) -> jinja2.Environment:
    import jinja2  # not imported by `import misslink`
    from markupsafe import Markup

    def escaped(value: object) -> object:
        if type(value) is not str:
            return value
        return Markup(escape_markdown(value)) if markdown else show_marks(value)  # noqa: S704

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([folder, _SHARED]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=escaped,
        bytecode_cache=_compiled_templates(folder, "markdown" if markdown else "html"),
    )
    environment.filters |= _FILTERS
    if markdown:
        environment.filters["code"] = lambda text: Markup(code_span(text))  # noqa: S704
        environment.filters["commands"] = lambda text: Markup(  # noqa: S704
            escape_with_commands(text)
        )
    return environment


def _compiled_templates(folder: Path, kind: str) -> jinja2.BytecodeCache:
    """Keeps compiled templates beside them, as Python keeps modules; compiling takes 0.2 s.

    Where nothing can be written, they are compiled each time.
    """
    import jinja2

    # Jinja sees that a template has changed, but not what its compiled form has of the filters.
    code = b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
    version = hashlib.sha256(code + jinja2.__version__.encode()).hexdigest()

    class Compiled(jinja2.FileSystemBytecodeCache):
        def get_source_checksum(self, source: str) -> str:
            return super().get_source_checksum(version + source)

        def load_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
            try:
                super().load_bytecode(bucket)
            except Exception:  # noqa: BLE001 (damaged)
                bucket.reset()

        def dump_bytecode(self, bucket: jinja2.bccache.Bucket) -> None:
            if not sys.dont_write_bytecode:
                with contextlib.suppress(OSError):
                    Path(self.directory).mkdir(parents=True, exist_ok=True)
                    super().dump_bytecode(bucket)

    beside = Path(cache_from_source(str(folder / "page.py"))).parent  # where Python would put them
    return Compiled(str(beside), f"{kind}-%s.jinja")


def html_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table for a notebook, with every text escaped; no rows, no table.

    >>> html_table("Found", ("metric",), [("a < b",)])
    '<p><b>Found</b></p><table><tr><th>metric</th></tr><tr><td>a &lt; b</td></tr></table>'
    """
    heading = f"<p><b>{escape(title)}</b></p>" if title else ""
    header = "".join(f"<th>{escape(name)}</th>" for name in columns)
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f"{heading}<table><tr>{header}</tr>{body}</table>" if body else heading


def show_marks(text: str) -> str:
    """Write out bidirectional and invisible marks: they turn or hide text, and written out cannot.

    Examples
    --------
    >>> show_marks("a\u202eb")
    'a[U+202E]b'
    """
    return HIDDEN_MARK.sub(lambda mark: f"[U+{ord(mark[0]):04X}]", text)


def _csp_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
