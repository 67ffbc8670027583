"""What the canary commands read and where they may write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.cli.writing import check_place
from misslink.errors import InputError

if TYPE_CHECKING:
    from misslink.watching.canaries import CanarySet

__all__ = ["STDOUT", "check_places", "read_canary_file"]

STDOUT = "-"
# Of a YAML canary set: keys under which everything is text, as it is written.
_TEXTS = frozenset(
    {"id", "question", "query", "evidence", "reference", "references", "owner", "category", "tags"}
    | {"tier", "relevant_any", "asked_at"}
)


def read_canary_file(path: Path) -> CanarySet:
    """Read a canary set in JSON Lines, JSON or YAML, by its ending.

    Raises
    ------
    InputError
        As `misslink.watching.canaries.canary_set`.
    """
    from misslink.watching.canaries import canary_set, read_canaries

    if path.suffix.lower() not in {".yaml", ".yml"}:
        return read_canaries(path)
    from misslink.deciding.located import read_located

    found = read_located(path, _TEXTS)
    data: Any = found.data
    spot: tuple[str, ...] = ()
    if isinstance(data, dict) and set(data) == {"canaries"}:
        data, spot = data["canaries"], ("canaries",)
    if not isinstance(data, list) or not data:
        raise InputError(
            "it holds no list of canaries; write for example  - {id: opening, question: ..., "
            "relevant: [doc-7]}",
            path=path,
        )
    items = ((found.line((*spot, at)), item) for at, item in enumerate(data))
    return canary_set(items, str(path))


def check_places(markdown: Path | None, html: Path | None, *, as_json: bool) -> None:
    """Refuse a place where no summary or page can be written.

    Raises
    ------
    InputError
        There, or where both print to stdout or into one file.
    """
    if markdown is not None and str(markdown) == STDOUT:
        if as_json:
            raise InputError("--json and --markdown - both print to stdout; write one into a file")
        markdown = None
    if markdown is not None:
        check_place(markdown, "--markdown")
    if html is not None:
        check_place(html, "--html")
        if markdown is not None and markdown.resolve() == html.resolve():
            raise InputError("--markdown and --html name one file; give two")
