"""Commands `misslink cache stats`, `export`, `prune` and `merge`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from misslink.cli.options import (
    CACHE_OPTION,
    JSON_OPTION,
    PRICE_OPTIONS,
    option,
)
from misslink.cli.output import print_json, print_line, print_result, strip_control
from misslink.errors import InputError
from misslink.render.format import format_cost, pluralize

app = typer.Typer(help="Inspect and maintain the response cache.", no_args_is_help=True)

_JUDGE: Any = option(None, "--only-judge", "Only replies of this judge, such as openai:MODEL.")


@app.callback()
def group() -> None:
    """Inspect and maintain the response cache."""


@app.command("stats")
def stats(
    cache: Path | None = CACHE_OPTION,
    price_in: float | None = PRICE_OPTIONS[0],
    price_out: float | None = PRICE_OPTIONS[1],
    as_json: bool = JSON_OPTION,
) -> None:
    """Count replies, tokens and cost by judge and prompt, and list pending batches."""
    from misslink.judge.batch.service import pending_batches
    from misslink.judge.config import JudgeConfig
    from misslink.judge.middleware import cache_admin

    price = JudgeConfig(price_in=price_in, price_out=price_out).price
    document = cache_admin.cache_stats(_cache_path(cache))
    document["batches"] = pending_batches(_cache_path(cache))
    for group in document["by_judge_and_prompt"]:
        tokens = group["prompt_tokens"], group["completion_tokens"]
        group["cost"] = None if price is None or None in tokens else price.cost(*tokens)
    print_result(document, _print_stats, as_json=as_json)


@app.command("export")
def export(
    out: Path | None = option(None, "--out", "File to write.", show_default="standard output"),
    judge: str | None = _JUDGE,
    cache: Path | None = CACHE_OPTION,
) -> None:
    """Write questions and replies as JSON Lines, one reply per line."""
    from misslink.io.atomic import atomic_path
    from misslink.judge.middleware import cache_admin

    path = _cache_path(cache)
    rows = cache_admin.export_replies(path, judge)
    if out is None:
        plain = not (sys.stdout.encoding or "").lower().startswith("utf")
        for row in rows:
            print(json.dumps(row, ensure_ascii=plain))
        return
    if out.exists() and path.exists() and out.samefile(path):
        raise InputError("This is the cache. Name another file with --out.", path=out)
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    first = next(lines, "")  # a broken cache is reported before anything is written
    with atomic_path(out) as part, part.open("w", encoding="utf-8") as file:
        file.write(first)
        count = bool(first) + sum(bool(file.write(line)) for line in lines)
    print(f"{_replies(count)} written to {out}", file=sys.stderr)


@app.command("prune")
def prune(
    unreadable: bool = option(False, "--unreadable", "Only replies that could not be parsed."),
    older_than: str | None = option(None, "--older-than", "Minimum age: 30d, 12h, 2w."),
    judge: str | None = _JUDGE,
    prompt: str | None = option(None, "--prompt", "Only replies to this prompt."),
    yes: bool = option(False, "--yes", "Remove the replies; without it they are counted."),
    cache: Path | None = CACHE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Remove the replies that meet all conditions. Later runs pay for them again."""
    from misslink.judge.middleware import cache_admin
    from misslink.judge.middleware.sqlite_store import CACHE_FORMAT

    chosen = cache_admin.CacheSelection(
        unreadable=unreadable,
        older_than=None if older_than is None else cache_admin.parse_age(older_than),
        judge=judge,
        prompt=prompt,
    )
    path = _cache_path(cache)
    if chosen == cache_admin.CacheSelection():
        CACHE_FORMAT.open_read_only(path).close()  # reports a missing cache before conditions
    done = cache_admin.prune_replies(path, chosen, dry_run=not yes)
    if as_json:
        print_json(done)
        return
    count, left = _replies(done["replies"]), done["left"]
    if not done["removed"]:
        more = " Add --yes to remove them." if done["replies"] else ""
        print(f"This would remove {count} and leave {left}.{more}")
        return
    sizes = f"{_megabytes(done['bytes_before'])} before, {_megabytes(done['bytes_after'])} now"
    print(f"Removed {count}, left {left}: {sizes}.")
    if done["note"]:
        print_line(f"misslink: {done['note']}", stderr=True)


@app.command("merge")
def merge(
    sources: list[str] = typer.Argument(
        ...,
        metavar="FROM...",
        help="Caches: .sqlite files, folders, patterns or URLs.",
        show_default=False,
    ),
    cache: Path | None = CACHE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Merge the replies of other caches into one; its own replies do not change."""
    from misslink.judge.middleware.cache_admin import merge_caches

    done = merge_caches(sources, _cache_path(cache))
    if as_json:
        print_json(done)
        return
    for source in done["sources"]:
        parts = [f"{_replies(source['replies'])}, {source['added']} added"]
        if source["already"]:
            parts.append(f"{source['already']} already there")
        if source["different"]:
            parts.append(f"{source['different']} left out: the question has another reply")
        print(f"{source['from']}: {', '.join(parts)}")
    print(f"{done['cache']}: {_replies(done['replies'])}")


def _cache_path(cache: Path | None) -> Path:
    from misslink.judge.config import DEFAULT_CACHE

    return cache or DEFAULT_CACHE


def _print_stats(document: Mapping[str, Any]) -> None:
    """Print two lines per judge and prompt; a table would be too wide."""
    print(f"{document['cache']}: {_replies(document['replies'])}, {_megabytes(document['bytes'])}")
    for group in document["by_judge_and_prompt"]:
        parts = [_replies(group["replies"])]
        if group["unreadable"]:
            parts.append(f"{group['unreadable']} unreadable")
        prompt, completion = (
            "an unknown number of" if group[name] is None else f"{group[name]:,}"
            for name in ("prompt_tokens", "completion_tokens")
        )
        parts.append(f"{prompt} prompt tokens, {completion} completion tokens")
        if group["cost"] is not None:
            parts.append(f"cost {format_cost(group['cost'])}")
        if group["without_tokens"] and group["without_tokens"] < group["replies"]:
            parts.append(f"tokens of {_replies(group['without_tokens'])} are unknown")
        days = [group[name][:10] for name in ("first", "last")]
        parts.append(days[0] if days[0] == days[1] else " to ".join(days))
        print(strip_control(f"{group['judge']}, prompt {group['prompt']}"))
        print(f"    {'; '.join(parts)}")
    for batch in document["batches"]:
        name = strip_control(batch["batch"] or "without an id yet")
        print(
            f"{strip_control(batch['judge'])}: batch {name} of {batch['created'][:10]}, answers to "
            f"{batch['waiting']:,} of {batch['questions']:,} questions not fetched"
        )


def _replies(count: int) -> str:
    return pluralize(count, "reply", "replies")


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.2f} MB"
