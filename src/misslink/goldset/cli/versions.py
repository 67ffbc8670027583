"""misslink goldset split, merge and diff."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from misslink.cli import output
from misslink.cli.options import JSON_OPTION, OVERWRITE_OPTION, SEED_OPTION, option
from misslink.errors import InputError
from misslink.goldset.cli import options

if TYPE_CHECKING:
    from misslink.goldset.versions import GoldSetSplit


_SHARE_TOLERANCE = 0.05
_MIN_GOLDSETS = 2
_SHOWN_QUESTIONS = 5
_SHOWN_CHANGES = 20
_MAX_VALUE_WIDTH = 60  # characters
_CONTEXT_WIDTH = 15  # characters before the first difference


def split_command(
    goldset: Path = options.GOLDSET_ARGUMENT,
    out: Path = option(..., "--out", "Folder to write one file per part to."),
    parts: str = option("dev=0.8,test=0.2", "--parts", "Names and shares of the parts."),
    by: str = option(
        "source", "--group-by", "Keep together by source, category, tag:NAME or none."
    ),
    seed: int = SEED_OPTION,
    overwrite: bool = OVERWRITE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Split a gold set into parts without leakage.

    Cases with the same passages, documents or evidence stay together, and so do turns of a
    conversation. Categories are distributed as evenly as that allows.
    """
    from misslink.goldset.versions import parse_parts, split_goldset
    from misslink.goldset.writer import refuse_existing, to_jsonl, write_goldset
    from misslink.io.goldset import read_goldset

    gold = read_goldset(goldset)
    split = split_goldset(gold.cases, parse_parts(parts), by=by, seed=seed)
    paths = {part.name: out / f"{part.name}.jsonl" for part in split.parts}
    for part in split.parts:  # all of them, before the first is written
        options.refuse_shard(paths[part.name], goldset)
        if not overwrite:
            refuse_existing(to_jsonl(part.cases), paths[part.name])
    for part in split.parts:
        write_goldset(part.cases, paths[part.name], overwrite=overwrite)
    document = {
        "cases": len(gold.cases),
        "by": by,
        "seed": seed,
        "groups": split.groups,
        "parts": {
            part.name: {
                "path": str(paths[part.name]),
                "cases": len(part.cases),
                "share": len(part.cases) / len(gold.cases),
                "wanted": part.wanted,
                "groups": part.groups,
                "categories": dict(sorted(Counter(c.category or "" for c in part.cases).items())),
            }
            for part in split.parts
        },
        "notes": list(_split_notes(split, len(gold.cases), by)),
    }
    output.print_result(document, _print_split, as_json=as_json)


def _split_notes(split: GoldSetSplit, cases: int, grouping: str) -> Iterator[str]:
    if any(abs(len(p.cases) / cases - p.wanted) > _SHARE_TOLERANCE for p in split.parts):
        yield (
            f"The shares differ from --parts, because groups stay whole: the largest of "
            f"{split.groups} has {split.largest} of {cases} cases."
        )
    if split.without_source and grouping == "source":
        yield (
            f"{split.without_source} cases name no passage, evidence or source, so they are split "
            "independently."
        )
    if split.by_evidence_alone:
        yield (
            f"{split.by_evidence_alone} cases name evidence and no document, so only those with "
            "equal evidence stay together. Tag them with their source to keep documents whole."
        )


def _print_split(document: Mapping[str, Any]) -> None:

    from misslink.render.table import TextTable

    numbers = ("cases", "share", "wanted", "groups")
    rows = [
        (
            name,
            f"{part['cases']:,}",
            f"{part['share']:.1%}",
            f"{part['wanted']:.1%}",
            f"{part['groups']:,}",
            part["path"],
        )
        for name, part in document["parts"].items()
    ]
    output.print_table(TextTable(("part", *numbers, "file"), rows, numbers))
    for note in document["notes"]:
        output.print_line(note)


def merge_command(
    goldsets: list[Path] = typer.Argument(..., help="Two or more gold sets, JSON Lines."),
    out: Path = options.OUT_OPTION,
    prefer: Literal["first", "last", "grades-max"] | None = option(
        None,
        "--prefer",
        "Case to keep if two with the same id differ: first, last, grades-max.",
        show_default="error",
    ),
    overwrite: bool = OVERWRITE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Merge gold sets by the ids of their cases."""
    from misslink.goldset.versions import merge_goldsets
    from misslink.goldset.writer import write_goldset
    from misslink.io.goldset import read_goldset
    from misslink.io.storage import redact_url
    from misslink.render.format import list_first

    if len(goldsets) < _MIN_GOLDSETS:
        raise InputError("Merging needs at least two gold sets. Name another one.")
    output.check_output_paths({"--out": out}, goldsets)
    cases, merged = merge_goldsets([read_goldset(path) for path in goldsets], prefer)
    write_goldset(cases, out, overwrite=overwrite)
    if as_json:
        sources = [redact_url(path) for path in goldsets]
        output.print_json({"goldset": str(out), "from": sources, "cases": len(cases), **merged})
        return
    lines = []
    if merged["repeated"]:
        lines.append(f"{merged['repeated']:,} cases are equal in more than one set.")
    if settled := merged["settled"]:
        listed = list_first(settled, _SHOWN_QUESTIONS)
        lines.append(f"Resolved by --prefer {prefer}: {listed}.")
    lines += (
        f"The same question has several ids: {', '.join(ids)}."
        for ids in merged["same_question"][:_SHOWN_QUESTIONS]
    )
    if (more := len(merged["same_question"]) - _SHOWN_QUESTIONS) > 0:
        lines.append(f"And {more:,} more questions have several ids; --json lists all.")
    options.print_lines(f"{out}: {len(cases):,} cases", lines)


def diff_command(
    before: Path = typer.Argument(..., help="A gold set."),
    after: Path = typer.Argument(..., help="A later version of it."),
    markdown: Path | None = options.MARKDOWN_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Compare two versions of a gold set: cases, fields, grades.

    The order of cases and of passages is ignored. The exit code is always 0.
    """
    from misslink.goldset.versions import diff_cases
    from misslink.io.atomic import atomic_write
    from misslink.io.goldset import read_goldset
    from misslink.io.storage import redact_url

    output.check_output_paths({"--markdown": markdown}, [before, after])
    document = {
        "before": redact_url(before),
        "after": redact_url(after),
        **diff_cases(read_goldset(before).cases, read_goldset(after).cases),
    }
    if markdown is not None:
        atomic_write(_diff_as_markdown(document), markdown)
    if as_json:
        output.print_json(document)
        return
    title = f"{document['before']} -> {document['after']}: {_diff_summary(document)}"
    options.print_lines(title, (f"  {line}" for line in _diff_lines(document)))


def _diff_lines(document: Mapping[str, Any]) -> Iterator[str]:
    for name in ("added", "removed"):
        for case_id in document[name][:_SHOWN_CHANGES]:
            new = document["renamed"].get(case_id) if name == "removed" else None
            yield f"{name} {case_id}" + (f" (the same content as {new})" if new else "")
        if (more := len(document[name]) - _SHOWN_CHANGES) > 0:
            yield f"and {more:,} more {name}; --json lists all"
    for change in document["changed"][:_SHOWN_CHANGES]:
        yield f"{change['id']}: {change['field']}"
        old, new = _differing_parts(change["before"], change["after"])
        yield f"  - {old}"
        yield f"  + {new}"
    if (more := len(document["changed"]) - _SHOWN_CHANGES) > 0:
        yield f"and {more:,} more changed fields; --json lists all"


def _diff_summary(document: Mapping[str, Any]) -> str:
    changed = len({change["id"] for change in document["changed"]})
    if not (changed or document["added"] or document["removed"]):
        return f"no difference in {document['same']:,} cases"
    return (
        f"{len(document['added']):,} added, {len(document['removed']):,} removed, "
        f"{changed:,} changed, {document['same']:,} unchanged"
    )


def _differing_parts(old: Any, new: Any) -> tuple[str, str]:
    """Two values without equal entries of mappings, or a long equal beginning of texts."""
    if isinstance(old, dict) and isinstance(new, dict):
        equal = {name for name in old.keys() & new.keys() if old[name] == new[name]}
        old, new = ({n: v for n, v in value.items() if n not in equal} for value in (old, new))
    texts = [
        "(nothing)" if value in (None, {}, []) else json.dumps(value, ensure_ascii=False)
        for value in (old, new)
    ]
    if max(map(len, texts)) > _MAX_VALUE_WIDTH:
        pairs = enumerate(zip(*texts, strict=False))
        prefix = next((index for index, (a, b) in pairs if a != b), min(map(len, texts)))
        start = max(0, prefix - _CONTEXT_WIDTH)
        texts = [f"{'...' * bool(start)}{text[start:]}" for text in texts]
    width = _MAX_VALUE_WIDTH
    first, second = (t if len(t) <= width else f"{t[: width - 3]}..." for t in texts)
    return first, second


def _diff_as_markdown(document: Mapping[str, Any]) -> str:
    from misslink.render.markdown import code_span, escape_markdown, markdown_table

    cases = [
        [name, code_span(case_id)] for name in ("added", "removed") for case_id in document[name]
    ]
    fields = [
        [
            code_span(change["id"]),
            change["field"],
            *map(escape_markdown, _differing_parts(change["before"], change["after"])),
        ]
        for change in document["changed"]
    ]
    lines = [
        f"Gold set: {_diff_summary(document)}.\n",
        markdown_table(["", "case"], cases),
        markdown_table(["case", "field", "before", "after"], fields),
    ]
    return "\n".join(filter(None, lines))
