"""misslink goldset diff: what changed between two versions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from misslink.cli.goldset.places import check_places
from misslink.cli.options import AS_JSON
from misslink.cli.output import print_json, say

__all__ = ["diff"]

_SHOWN = 20
_WIDE = 60  # characters of a value that are printed
_KEPT = 15  # characters before the first that differs


def diff(
    before: Path = typer.Argument(..., help="A gold set."),
    after: Path = typer.Argument(..., help="A later version of it."),
    markdown: Path | None = typer.Option(None, "--markdown", help="Also write it for a review."),
    as_json: bool = AS_JSON,
) -> None:
    """Say what changed between two versions of a gold set: cases, fields, grades.

    The order of cases and of passages says nothing. The exit code is 0 whatever changed.
    """
    from misslink.files.addresses import shown
    from misslink.files.goldset import read_goldset
    from misslink.files.whole import put
    from misslink.goldset.differing import differences

    check_places({"--markdown": markdown}, [before, after])
    old, new = read_goldset(before), read_goldset(after)
    found = differences(old.cases, new.cases)
    document = {
        "before": shown(before),
        "after": shown(after),
        "same": found.same,
        "added": list(found.added),
        "removed": list(found.removed),
        "renamed": dict(found.renamed),
        "changed": [
            {"id": one.case_id, "field": one.field, "before": one.before, "after": one.after}
            for one in found.changed
        ],
        "grades": [
            {"id": case_id, "unit": unit, "before": was, "after": now}
            for case_id, unit, was, now in found.flipped
        ],
    }
    if markdown is not None:
        put(_markdown(document), markdown)
    if as_json:
        print_json(document)
    else:
        _print(document)


def _print(document: Mapping[str, Any]) -> None:
    from rich.console import Console

    console = Console()
    say(console, f"{document['before']} -> {document['after']}: {_summary(document)}", "bold")
    for name in ("added", "removed"):
        for case_id in document[name][:_SHOWN]:
            new = document["renamed"].get(case_id) if name == "removed" else None
            say(console, f"  {name} {case_id}" + (f" (the same content as {new})" if new else ""))
        _and_more(console, len(document[name]) - _SHOWN, name)
    for one in document["changed"][:_SHOWN]:
        say(console, f"  {one['id']}: {one['field']}")
        was, now = _brief(one["before"], one["after"])
        say(console, f"    - {was}")
        say(console, f"    + {now}")
    _and_more(console, len(document["changed"]) - _SHOWN, "changed fields")


def _and_more(console: Any, count: int, what: str) -> None:
    if count > 0:
        say(console, f"  and {count:,} more {what}; --json lists all")


def _summary(document: Mapping[str, Any]) -> str:
    changed = len({one["id"] for one in document["changed"]})
    if not (changed or document["added"] or document["removed"]):
        return f"no difference in {document['same']:,} cases"
    return (
        f"{len(document['added']):,} added, {len(document['removed']):,} removed, "
        f"{changed:,} changed, {document['same']:,} the same"
    )


def _brief(was: Any, now: Any) -> tuple[str, str]:
    """Where two values differ: of tables the entries that do, of long texts not how they begin."""
    if isinstance(was, dict) and isinstance(now, dict):
        same = {name for name in was.keys() & now.keys() if was[name] == now[name]}
        was, now = ({n: v for n, v in one.items() if n not in same} for one in (was, now))
    both = [
        "(nothing)" if one in (None, {}, []) else json.dumps(one, ensure_ascii=False)
        for one in (was, now)
    ]
    if max(map(len, both)) > _WIDE:
        begin = _alike(*both) - _KEPT
        both = [f"...{one[begin:]}" if begin > 0 else one for one in both]
    first, second = (one if len(one) <= _WIDE else f"{one[: _WIDE - 3]}..." for one in both)
    return first, second


def _alike(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _markdown(document: Mapping[str, Any]) -> str:
    from misslink.files.markdown import code, inline, table

    lines = [f"Gold set: {_summary(document)}.\n"]
    cases = [[name, code(case_id)] for name in ("added", "removed") for case_id in document[name]]
    lines.append(table(["", "case"], cases))
    fields = [
        [code(one["id"]), one["field"], *map(inline, _brief(one["before"], one["after"]))]
        for one in document["changed"]
    ]
    lines.append(table(["case", "field", "before", "after"], fields))
    return "\n".join(filter(None, lines))
