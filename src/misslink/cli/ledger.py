"""misslink ledger: what the judges said, counted, copied out, thinned, merged."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.options import AS_JSON, LEDGER
from misslink.cli.output import plain, print_json
from misslink.errors import InputError

if TYPE_CHECKING:
    from misslink.judging.terms import Price

__all__ = ["app"]

app = typer.Typer(help="Look into the replies that are kept.", no_args_is_help=True)

_JUDGE: Any = typer.Option(None, "--judge", help="Only of this judge, such as openai:MODEL.")
_UNIT = 1024


@app.callback()
def group() -> None:
    """Look into the replies that are kept."""


@app.command("stats")
def stats(
    ledger: Path | None = LEDGER,
    price_in: float | None = typer.Option(None, "--price-in", help="Of a million prompt tokens."),
    price_out: float | None = typer.Option(
        None, "--price-out", help="Of a million completion tokens."
    ),
    as_json: bool = AS_JSON,
) -> None:
    """Count replies and tokens by judge and prompt, with prices their cost; list batches out."""
    from misslink.judging.batches.notes import pending
    from misslink.judging.terms import Terms
    from misslink.judging.wrappers import records

    price = Terms(price_in=price_in, price_out=price_out).price
    found = records.stats(_place(ledger))
    found["batches"] = pending(_place(ledger))
    for group in found["by_judge_and_prompt"]:
        group["cost"] = _cost(group, price)
    if as_json:
        print_json(found)
    else:
        _print_stats(found)


@app.command("export")
def export(
    out: Path | None = typer.Option(
        None, "--out", help="The file to write.", show_default="standard output"
    ),
    judge: str | None = _JUDGE,
    ledger: Path | None = LEDGER,
) -> None:
    """Write what was asked and what was said as JSON Lines, one reply a line."""
    from misslink.judging.wrappers import records

    path = _place(ledger)
    rows = records.export(path, judge)
    if out is None:
        _to_stdout(rows)
    else:
        if out.exists() and path.exists() and out.samefile(path):
            raise InputError("--out is the ledger itself; name another file", path=out)
        count = _to_file(rows, out)
        print(f"{_replies(count)} written to {out}", file=sys.stderr)


@app.command("prune")
def prune(
    unreadable: bool = typer.Option(
        False, "--unreadable", help="Only replies that could not be read as an answer."
    ),
    older_than: str | None = typer.Option(
        None, "--older-than", help="Only replies at least so old: 30d, 12h, 2w."
    ),
    judge: str | None = _JUDGE,
    prompt: str | None = typer.Option(None, "--prompt", help="Only replies to this prompt."),
    yes: bool = typer.Option(False, "--yes", help="Do it; without, it is only said what would go."),
    dry_run: bool = typer.Option(False, "--dry-run", help="Only say what would go, the default."),
    ledger: Path | None = LEDGER,
    as_json: bool = AS_JSON,
) -> None:
    """Remove the replies that meet every condition; whatever goes would have to be paid again."""
    from misslink.judging.wrappers import records
    from misslink.judging.wrappers.ledger_file import open_to_read

    if yes and dry_run:
        raise InputError("--yes and --dry-run contradict each other; give one of them")
    chosen = records.Selection(
        unreadable=unreadable,
        older_than=None if older_than is None else records.age(older_than),
        judge=judge,
        prompt=prompt,
    )
    path = _place(ledger)
    if chosen == records.Selection():
        open_to_read(path).close()  # that there is none is told before how to choose from it
    done = records.prune(path, chosen, dry_run=not yes)
    if as_json:
        print_json(done)
        return
    count, left = _replies(done["replies"]), done["left"]
    if not done["removed"]:
        more = "; add --yes to do it" if done["replies"] else ""
        print(f"would remove {count} and leave {left}{more}")
        return
    sizes = f"{_bytes(done['bytes_before'])} before, {_bytes(done['bytes_after'])} now"
    print(f"removed {count}, left {left}; {sizes}")
    if done["note"]:
        print(f"misslink: {done['note']}", file=sys.stderr)


@app.command("merge")
def merge(
    sources: list[str] = typer.Argument(
        ...,
        metavar="FROM...",
        help="Ledgers, folders of .sqlite files, patterns, or URLs such as s3://BUCKET/ledgers.",
        show_default=False,
    ),
    ledger: Path | None = LEDGER,
    as_json: bool = AS_JSON,
) -> None:
    """Bring the replies of other ledgers into one; what is kept there stays as it is."""
    from misslink.judging.wrappers import ledger_merge

    done = ledger_merge.merge(sources, _place(ledger))
    if as_json:
        print_json(done)
        return
    for source in done["sources"]:
        said = [f"{_replies(source['replies'])}, {source['added']} added"]
        if source["already"]:
            said.append(f"{source['already']} were there already")
        if source["different"]:
            said.append(
                f"{source['different']} left out: there is another reply to the same question"
            )
        print(f"{source['from']}: {', '.join(said)}")
    print(f"{done['ledger']}: {_replies(done['replies'])}")


def _place(ledger: Path | None) -> Path:
    from misslink.judging.wrappers.ledger_file import DEFAULT_LEDGER

    return ledger or DEFAULT_LEDGER


def _cost(group: Mapping[str, Any], price: Price | None) -> float | None:
    """What the replies whose tokens are known cost; None: no price, or no token is known."""
    prompt, completion = group["prompt_tokens"], group["completion_tokens"]
    if price is None or prompt is None or completion is None:
        return None
    return price.of(prompt, completion)


def _print_stats(found: Mapping[str, Any]) -> None:
    """Print two lines a judge and prompt: a table of so much fits no terminal."""
    print(f"{found['ledger']}: {_replies(found['replies'])}, {_bytes(found['bytes'])}")
    for group in found["by_judge_and_prompt"]:
        said = [_replies(group["replies"])]
        if group["unreadable"]:
            said.append(f"{group['unreadable']} unreadable")
        prompt, completion = (
            "an unknown number of" if group[name] is None else f"{group[name]:,}"
            for name in ("prompt_tokens", "completion_tokens")
        )
        said.append(f"{prompt} prompt tokens, {completion} completion tokens")
        if group["cost"] is not None:
            said.append(f"cost {group['cost']:.4g}")
        if group["without_tokens"] and group["without_tokens"] < group["replies"]:
            said.append(f"of {_replies(group['without_tokens'])} no tokens are known")
        days = [group[name][:10] for name in ("first", "last")]
        said.append(days[0] if days[0] == days[1] else " to ".join(days))
        print(plain(f"{group['judge']}, prompt {group['prompt']}"))
        print(f"    {'; '.join(said)}")
    for batch in found["batches"]:
        name = batch["batch"] or "not named yet"
        print(
            f"{plain(batch['judge'])}: batch {plain(name)} of {batch['created'][:10]}, "
            f"{batch['waiting']:,} of {batch['questions']:,} questions not fetched"
        )


def _to_stdout(rows: Iterator[Mapping[str, Any]]) -> None:
    ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
    try:
        for row in rows:
            sys.stdout.write(json.dumps(row, ensure_ascii=ascii_only) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads has enough (head); the interpreter's own flush at exit must not fail too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _to_file(rows: Iterator[Mapping[str, Any]], out: Path) -> int:
    """Write all of them or no file; say how many they are."""
    from misslink.files.whole import placed

    count = 0
    row = next(rows, None)  # what is wrong with the ledger shows before anything is written
    with placed(out) as part, part.open("w", encoding="utf-8") as file:
        while row is not None:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            count += 1
            row = next(rows, None)
    return count


def _replies(count: int) -> str:
    return f"{count} {'reply' if count == 1 else 'replies'}"


def _bytes(count: int) -> str:
    size, units = float(count), ["bytes", "KiB", "MiB", "GiB"]
    while size >= _UNIT and len(units) > 1:
        size, units = size / _UNIT, units[1:]
    return f"{size:.0f} {units[0]}" if units[0] == "bytes" else f"{size:.1f} {units[0]}"
