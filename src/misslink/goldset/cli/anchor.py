"""misslink goldset anchor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from misslink.cli import output
from misslink.cli.options import JSON_OPTION, OVERWRITE_OPTION, option
from misslink.errors import InputError
from misslink.goldset.cli import options

_SHOWN_LABELS = 5


def anchor_command(
    goldset: Path = options.GOLDSET_ARGUMENT,
    documents: str = option(..., "--documents", "Whole documents, as for --corpus."),
    out: Path = options.OUT_OPTION,
    corpus: str | None = option(None, "--corpus", "Passages that the labelled ids mean."),
    overwrite: bool = OVERWRITE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Turn labels into spans of documents, which survive re-chunking.

    Each label becomes a document's id, start, end and quote. Spans that exist move to the place
    where an edited document has their quote. The exit code is 1 if a label has no place.
    """
    from misslink.goldset.anchoring import anchor_goldset
    from misslink.goldset.writer import write_goldset
    from misslink.io.corpus import read_corpus
    from misslink.io.goldset import read_goldset

    output.check_output_paths({"--out": out}, [goldset, *map(Path, filter(None, [corpus]))])
    options.refuse_existing(out, "--out", overwrite=overwrite)
    gold = read_goldset(goldset)
    passages = () if corpus is None else read_corpus(corpus)
    if corpus is None and any(
        case.relevant_any or any(case.relevant.values())
        for case in gold.cases
        if not any(case.evidence.values())
    ):
        raise InputError("The labels are ids of passages. Add --corpus.", path=goldset)
    anchored = anchor_goldset(gold, read_corpus(documents), passages)
    write_goldset(anchored.cases, out, overwrite=overwrite)
    document = {
        "goldset": str(out),
        "cases": len(anchored.cases),
        "anchored": sum(bool(case.spans) for case in anchored.cases),
        "spans": anchored.spans,
        "moved": len(anchored.moved),
        "moves": [
            {
                "case_id": move.case_id,
                "before": move.before.model_dump(),
                "after": move.after.model_dump(),
                "reason": move.reason,
            }
            for move in anchored.moved
        ],
        "missing": [asdict(label) for label in anchored.missing],
    }
    output.print_result(document, _print_anchored, as_json=as_json)
    if anchored.missing:
        raise typer.Exit(1)


def _print_anchored(document: Mapping[str, Any]) -> None:
    counts = "{anchored:,} of {cases:,} cases have {spans:,} spans, {moved:,} of them moved"
    title = f"{document['goldset']}: {counts.format(**document)}"
    options.print_lines(
        title, [*_moved_lines(document["moves"]), *_missing_lines(document["missing"])]
    )


def _moved_lines(moves: list[dict[str, Any]]) -> Iterator[str]:
    for move in moves[:_SHOWN_LABELS]:
        after = move["after"]
        yield f"  {move['case_id']}: {move['reason']}; moved to {after['start']} to {after['end']}."
    if (more := len(moves) - _SHOWN_LABELS) > 0:
        yield f"  And {more:,} more moved; --json lists all."


def _missing_lines(missing: list[dict[str, str]]) -> Iterator[str]:
    for label in missing[:_SHOWN_LABELS]:
        yield f"  {label['case_id']}: '{label['label'][:40]}' has no place: {label['reason']}."
    if (more := len(missing) - _SHOWN_LABELS) > 0:
        yield f"  And {more:,} more; --json lists all. Their cases are unchanged."
