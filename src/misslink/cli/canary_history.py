"""misslink canary history: what the runs of a series found, without asking anything."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.cli.canary_input import STDOUT, check_places
from misslink.cli.output import print_json
from misslink.errors import InputError, known_names

if TYPE_CHECKING:
    from misslink.report.trend import TrendPage
    from misslink.watching.canaries.history import History

__all__ = ["show_history", "write_page"]


def show_history(
    path: Path,
    name: str,
    last: int,
    *,
    markdown: Path | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Print the last runs of a series, and write them where that is wanted.

    Raises
    ------
    InputError
        There is no such history or series, or a place cannot be written.
    """
    from misslink.cli.canary_table import print_history
    from misslink.files.whole import put
    from misslink.report.trend_markdown import history_markdown
    from misslink.watching.canaries.history import History

    check_places(markdown, html, as_json=as_json)
    if {one.resolve() for one in (markdown, html) if one} & {path.resolve()}:
        raise InputError("--markdown or --html names the history; give another")
    with History(path, must_exist=True) as history:
        document = _document(history, path, name, last)
        if html is not None:
            write_page(history, name, last, html)
    printed = markdown is not None and str(markdown) == STDOUT
    if markdown is not None:
        text = history_markdown(document)
        print(text, end="") if printed else put(text, markdown)
    if as_json:
        print_json(document)
    elif not printed:
        print_history(document)


def write_page(history: History, name: str, last: int | None, place: Path) -> None:
    """Write the trend page of a series."""
    from misslink.files.whole import put
    from misslink.report.trend import render

    put(render(_page(history, name, last)), place)


def _page(history: History, name: str, last: int | None) -> TrendPage:
    from misslink.report.trend import build
    from misslink.watching.canaries.alarms import look

    runs = history.runs(name, last)
    readings = history.comparable(name)
    watched = look(readings, learn=runs[-1]["learn"])
    return build(name, runs, readings, watched)


def _document(history: History, path: Path, name: str, last: int) -> dict[str, Any]:
    from misslink.manifest import shown_path
    from misslink.watching.canaries.alarms import look
    from misslink.watching.canaries.document import alarm_plain

    runs = history.runs(name, last)
    if not runs:
        names = history.names()
        hint = known_names(name, names, " series") if names else "it holds no run yet"
        raise InputError(f"it holds no run called '{name}'; {hint}", path=path)
    watched = look(history.comparable(name), learn=runs[-1]["learn"])
    return {
        "name": name,
        "history": shown_path(path),
        "status": watched.status,
        "reason": watched.reason,
        "alarms": [alarm_plain(alarm) for alarm in watched.episodes],
        "waiting": len(history.outbox.letters(name)),
        "refused": [{"run": one.run, "error": one.error} for one in history.outbox.refused(name)],
        "runs": list(runs),
    }
