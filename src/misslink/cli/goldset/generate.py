"""misslink goldset generate: questions from a corpus, written by a judge and each verified."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from misslink.cli.goldset.places import check_places
from misslink.cli.options import AS_JSON, CONCURRENCY, JUDGE, LEDGER
from misslink.cli.output import (
    cell,
    interruptible,
    own_stdout,
    print_forecast,
    print_json,
    progress_bars,
    say,
)
from misslink.cli.terms import CAPS, MODEL, PACE, PRICES, Given, asks_judge

__all__ = ["generate"]


@asks_judge(*MODEL, "context_length", *PACE, *PRICES, *CAPS)
def generate(
    corpus: str = typer.Option(
        ...,
        "--corpus",
        help="A folder of .txt and .md, a JSONL or CSV file, chroma:FOLDER, or module:name of a "
        "LangChain document loader.",
        show_default=False,
    ),
    judge: str = JUDGE,
    n: int = typer.Option(100, "-n", min=1, help="Questions wanted."),
    out: Path = typer.Option(
        ..., "--out", help="The gold set to write, as JSON Lines.", show_default=False
    ),
    config: Path | None = typer.Option(
        None, "--config", help="YAML: categories, personas, lengths, where the lines lie."
    ),
    categories: str | None = typer.Option(
        None, "--categories", help="Only these, such as simple_factual,negative."
    ),
    rejects: Path | None = typer.Option(
        None, "--rejects", help="File for every question that was dropped, and why."
    ),
    embedding: str | None = typer.Option(
        None,
        "--embedding",
        help="Such as minilm, openai:MODEL or none.",
        show_default="minilm where it is installed",
    ),
    passage_characters: int | None = typer.Option(
        None,
        "--passage-characters",
        min=100,
        help="Longer documents are cut into passages of at most so many.",
        show_default="2000",
    ),
    seed: int = typer.Option(0, "--seed", help="Of all draws."),
    overwrite: bool = typer.Option(
        False, "--overwrite", help="Replace a gold set that was made otherwise or changed."
    ),
    dry_run: bool = typer.Option(
        False, "--dry-run", help="Say what the judge would be asked and cost; ask it nothing."
    ),
    concurrency: int = CONCURRENCY,
    ledger: Path | None = LEDGER,
    *,
    given: Given,
    as_json: bool = AS_JSON,
) -> None:
    """Write a gold set from a corpus: a judge writes questions, and each one is verified.

    Its evidence stands verbatim in its passages and answers it.

    General knowledge does not, and of other passages at most a few: they are listed as relevant.

    It does not copy its passages and repeats no other question.

    Questions that nothing may answer are held against the passages nearest to them.

    About five questions to the judge for each one written; the same command goes on where it was
    stopped, and costs nothing a second time.
    """
    import asyncio

    from misslink.goldset.generating import generate_async, preview_async, read_settings
    from misslink.judging.terms import Terms

    about = out.with_name(f"{out.name}.json")  # what it was made by
    check_places(
        {"--out": out, "beside --out": about, "--rejects": rejects}, [_file(corpus), config]
    )
    settings = read_settings(config)
    if categories is not None:
        settings = settings.only(categories.split(","))
    if passage_characters is not None:
        settings = settings.model_copy(update={"passage_characters": passage_characters})
    wanted: dict[str, Any] = {
        "settings": settings,
        "seed": seed,
        "embedding": embedding,
        "ledger": ledger,
        "concurrency": concurrency,
        "terms": Terms(**given),
    }
    if dry_run:
        with own_stdout():
            forecast = asyncio.run(preview_async(corpus, judge, n, **wanted))
        print_json(asdict(forecast)) if as_json else print_forecast(forecast)
        return
    with interruptible("the same command goes on"), own_stdout(), progress_bars() as tick:
        made = asyncio.run(
            generate_async(
                corpus,
                judge,
                n,
                out=out,
                rejects=rejects,
                overwrite=overwrite,
                tick=lambda done, total: tick("verified questions", done, total),
                **wanted,
            )
        )
    if as_json:
        print_json(made.document)
    else:
        _print(made.document, rejects)
    for line in _lacking(made.document):
        print(f"misslink: {line}", file=sys.stderr)


def _file(corpus: str) -> Path | None:
    """The file that a corpus is; of a folder only .txt and .md are read, and none is written."""
    return Path(corpus) if Path(corpus).is_file() else None


def _lacking(document: Mapping[str, Any]) -> list[str]:
    """What is missing of what was wanted, and what to do about it."""
    missing = document["missing"]
    if not missing:
        return []
    which = ", ".join(f"{count} {name}" for name, count in missing.items())
    said = f"{document['written']} of {document['wanted']} questions are written, missing: {which}"
    why = document["stopped"]
    if why is not None:
        return [f"{said}; {why}"]
    way_out = "raise attempts in --config, bring more passages, or name a stronger judge"
    return [f"{said}; every candidate was tried, so {way_out}"]


def _print(document: Mapping[str, Any], rejects: Path | None) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    corpus = document["corpus"]
    say(
        console,
        f"{document['written']} of {document['wanted']} questions in {document['goldset']}, "
        f"from {document['candidates']} candidates",
        "bold",
    )
    for line in _of_corpus(corpus):
        say(console, line)
    table = Table()
    table.add_column("category")
    table.add_column("written", justify="right")
    for name, count in document["by_category"].items():
        table.add_row(cell(console, name), str(count))
    console.print(table)
    if document["reject_table"]:
        dropped = Table(title="Dropped", title_justify="left")
        dropped.add_column("reason")
        dropped.add_column("n", justify="right")
        dropped.add_column("an example")
        for row in document["reject_table"]:
            question = f"{row['question']} " if row["question"] else ""
            example = f"{question}({row['sentence']})"
            dropped.add_row(cell(console, row["reason"]), str(row["count"]), cell(console, example))
        console.print(dropped)
        if rejects is not None:
            say(console, f"All of them: {rejects}")
    usage = document["usage"]
    cost = "" if usage["cost"] is None else f", cost {usage['cost']:.4g}"
    say(
        console,
        f"The judge was asked {usage['calls']} questions, {usage['from_ledger']} more were "
        f"answered by the ledger{cost}.",
    )


def _of_corpus(corpus: Mapping[str, Any]) -> list[str]:
    lines = [f"Corpus: {corpus['passages']} passages of {corpus['source']}."]
    if cut := corpus["documents_cut"]:
        were = "1 document was" if cut == 1 else f"{cut} documents were"
        lines.append(
            f"{were} cut into passages called ID#1, ID#2, ...; where the app cuts otherwise, the "
            "evidence finds them."
        )
    if corpus["skipped"]:
        from misslink.goldset.generating.quality import POOR

        which = "; ".join(f"{count} ({POOR[why]})" for why, count in corpus["skipped"].items())
        lines.append(f"Not written from: {which}.")
    return lines
