"""What  misslink goldset check  found, for people: a table in 80 columns, and markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from misslink.cli.output import cell, say

__all__ = ["as_markdown", "print_findings"]

_STYLES = {"error": "red", "warning": "yellow", "note": ""}
_SHOWN = 5  # findings of one check and severity
_IDS = 3  # of a finding
_LONGEST = 30  # characters of an id in a table


def print_findings(document: Mapping[str, Any]) -> None:
    """Print the findings, at most five of a kind, and what was not checked."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    console = Console()
    say(console, f"{document['goldset']}: {_summary(document)}", "bold")
    if document["findings"]:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in ("", "check", "case", "what, and what to do"):
            table.add_column(name, overflow="fold", max_width=16 if name == "case" else None)
        for one in _first(document):
            table.add_row(
                cell(console, one["severity"]),
                cell(console, one["check"]),
                cell(console, _cases(one)),
                cell(console, f"{_sentence(one['message'])} {_sentence(one['way_out'])}"),
                style=_STYLES[one["severity"]],
            )
        console.print(table)
        for text in _more(document):
            say(console, text)
    for text in _rest(document):
        say(console, text)


def as_markdown(document: Mapping[str, Any]) -> str:
    """All findings as a table for a review; no text of theirs is more than text in it."""
    from misslink.files.markdown import code, inline, table

    rows = [
        [
            one["severity"],
            one["check"],
            ", ".join(map(code, one["cases"])),
            inline(_sentence(one["message"])),
            inline(_sentence(one["way_out"])),
        ]
        for one in document["findings"]
    ]
    lines = [f"Gold set {code(document['goldset'])}: {_summary(document)}.\n"]
    lines.append(table(["", "check", "cases", "what", "what to do"], rows))
    lines += [f"{inline(text)}\n" for text in _rest(document)]
    return "\n".join(filter(None, lines))


def _summary(document: Mapping[str, Any]) -> str:
    counts = document["counts"]
    told = [
        f"{count:,} {name}{'' if count == 1 else 's'}" for name, count in counts.items() if count
    ]
    return f"{', '.join(told) or 'nothing found'} in {document['cases']:,} cases"


def _first(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    seen: Counter[tuple[str, str]] = Counter()
    for one in document["findings"]:
        kind = one["severity"], one["check"]
        seen[kind] += 1
        if seen[kind] <= _SHOWN:
            yield one


def _more(document: Mapping[str, Any]) -> Iterator[str]:
    kinds = Counter((one["severity"], one["check"]) for one in document["findings"])
    for (severity, check), count in kinds.items():
        if count > _SHOWN:
            yield f"And {count - _SHOWN:,} more of {check} ({severity}); --json lists all."


def _cases(one: Mapping[str, Any]) -> str:
    shown = [
        f"{_cut(case_id)}" + ("" if line is None else f" (line {line})")
        for case_id, line in zip(one["cases"][:_IDS], one["lines"], strict=False)
    ]
    more = len(one["cases"]) - _IDS
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "?")) else ".")


def _also(model: str) -> str:
    return "" if model == "words" else f" and by {model}"


def _rest(document: Mapping[str, Any]) -> Iterator[str]:
    """By what questions were compared, what was not checked, and what was mended."""
    yield f"Questions were compared by words{_also(document['by'])}."
    by_option: dict[str, list[str]] = {}
    for name, why in document["not_checked"].items():
        by_option.setdefault(why, []).append(name)
    for why, names in by_option.items():
        yield f"Not checked: {', '.join(names)} ({why})."
    for one in document["power"]:
        if one["reason"]:
            yield f"Gate {one['gate']}, {one['limit']}: no number of cases, as {one['reason']}."
    for name, why in document["gates_left_out"].items():
        yield f"Gate {name}: {why}."
    done = document["fix"]
    if done is None:
        if any(one["proposals"] for one in document["findings"]):
            yield "Some labels have a proposal: --fix FILE writes them into a copy, marked."
        return
    yield (
        f"{done['goldset']}: {done['accepted']:,} of {done['proposed']:,} proposals taken "
        f"(at least {done['above']:.0%} alike, with the same numbers and negations), in "
        f"{done['cases']:,} cases, tagged rematched."
    )
    if done["replaced"]:
        yield f"What they replaced is in {done['replaced']}. Read both, then check the copy again."
