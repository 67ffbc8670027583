"""misslink goldset check: whether a gold set is worth trusting."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.goldset.places import check_places
from misslink.cli.options import AS_JSON
from misslink.cli.output import own_stdout, print_json
from misslink.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from misslink.files.goldset import GoldSet
    from misslink.goldset.checking import Finding

__all__ = ["check"]

_ALIKE = 0.9  # at most a tenth of the characters differs


def check(
    goldset: Path = typer.Argument(..., help="A gold set: a file, folder, pattern or URL."),
    corpus: str | None = typer.Option(
        None,
        "--corpus",
        help="What is searched: JSON Lines, CSV, a folder of .txt and .md, or chroma:FOLDER.",
    ),
    logs: list[Path] = typer.Option(
        [], "--logs", help="What people ask: logs as of  misslink goldset from-logs; several times."
    ),
    column: list[str] = typer.Option(
        [], "--column", help="FIELD=NAME where a column of the logs has another name."
    ),
    run: str | None = typer.Option(
        None, "--run", help="What is retrieved now: a run file, or a run folder."
    ),
    criteria: Path | None = typer.Option(
        None, "--criteria", help="The gates that are to be decided on it, ship-criteria.yaml."
    ),
    before: str | None = typer.Option(
        None, "--before", help="The corpus that the gold set was made on."
    ),
    baseline: Path | None = typer.Option(
        None, "--baseline", help="An earlier version of the gold set, whose evidence held then."
    ),
    k: int = typer.Option(5, "--k", min=1, help="How many of the run's best are looked at."),
    effect: float = typer.Option(
        0.05,
        "--effect",
        help="Beyond a gate's threshold, to be seen where it has no regression_max.",
    ),
    embedding: str | None = typer.Option(
        None,
        "--embedding",
        help="minilm, PROVIDER:MODEL, or none: by words.",
        show_default="minilm where installed",
    ),
    markdown: Path | None = typer.Option(None, "--markdown", help="Also write it for a review."),
    fix: Path | None = typer.Option(
        None, "--fix", help="Write the gold set with what was proposed for stale labels, marked."
    ),
    fix_above: float = typer.Option(
        _ALIKE, "--fix-above", min=0.5, max=1, help="Take proposals that are so much alike."
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Replace the files of --fix."),
    as_json: bool = AS_JSON,
) -> None:
    """Say what is wrong with a gold set, where, and what to do.

    The exit code is 1 if anything is an error: numbers over the gold set would be wrong.
    """
    from misslink.cli.goldset.check_document import document_of
    from misslink.cli.goldset.check_output import as_markdown, print_findings
    from misslink.cli.goldset.check_sources import gates_of, grounds_of
    from misslink.files.goldset import read_goldset
    from misslink.files.whole import put
    from misslink.goldset.checking import check as checked

    if not 0 < effect < 1:
        raise InputError(f"--effect lies between 0 and 1, not {effect:g}; write 0.05 for 5 points")
    _check_together(corpus, before, baseline, logs, column, fix)
    read = [goldset, *logs, *filter(None, [criteria, baseline])]
    read += [Path(one) for one in (corpus, run, before) if one is not None]
    _check_places(markdown, fix, read, overwrite=overwrite)
    gold = read_goldset(goldset)
    demands, left_out = ((), {}) if criteria is None else gates_of(criteria, gold)
    with own_stdout():
        grounds = grounds_of(
            gold,
            corpus=corpus,
            before=before,
            baseline=baseline,
            logs=logs,
            columns=column,
            run=run,
            k=k,
            demands=demands,
            effect=effect,
            embedding=embedding,
        )
        found = checked(gold, grounds)
    document = document_of(gold, grounds, found, left_out)
    document["fix"] = None if fix is None else _fixed(gold, found, fix, fix_above)
    if markdown is not None:
        put(as_markdown(document), markdown)
    if as_json:
        print_json(document)
    else:
        print_findings(document)
    if document["counts"]["error"]:
        raise typer.Exit(1)


def _check_together(
    corpus: str | None,
    before: str | None,
    baseline: Path | None,
    logs: Sequence[Path],
    column: Sequence[str],
    fix: Path | None,
) -> None:
    if before is not None and baseline is not None:
        raise InputError("--before and --baseline tell the same; give one of them")
    for option, given in (("--before", before), ("--baseline", baseline), ("--fix", fix)):
        if given is not None and corpus is None:
            raise InputError(f"{option} is about what is searched now; add --corpus")
    if column and not logs:
        raise InputError("--column names columns of logs; add --logs")


def _check_places(
    markdown: Path | None, fix: Path | None, read: Sequence[Path], *, overwrite: bool
) -> None:
    check_places({"--markdown": markdown, "--fix": fix}, read)
    if fix is None:
        return
    beside = _kept_beside(fix)
    check_places({"--markdown": markdown, "--fix": beside}, read)
    for path in (fix, beside):
        if path.exists() and not overwrite:
            raise InputError(
                "this file is there already; name another with --fix, or add --overwrite",
                path=path,
            )


def _kept_beside(fix: Path) -> Path:
    """Where the labels that were replaced are kept."""
    return fix.with_name(f"{fix.stem}.rematched.jsonl")


def _fixed(gold: GoldSet, found: Sequence[Finding], fix: Path, above: float) -> dict[str, Any]:
    """Write the gold set with its accepted proposals, and beside it what they replaced."""
    import json
    from dataclasses import asdict

    from misslink.files.whole import put
    from misslink.goldset.checking import accepted, fixed
    from misslink.goldset.writing import write_goldset

    taken = accepted(found, above)
    beside = _kept_beside(fix) if taken else None
    if beside is not None:
        rows = (json.dumps(asdict(one), ensure_ascii=False) for one in taken)
        put("".join(f"{row}\n" for row in rows), beside)
    elif _kept_beside(fix).exists():
        _kept_beside(fix).unlink()  # of an earlier fix of this name: it says what this one is not
    write_goldset(fixed(gold.cases, taken), fix, overwrite=True)
    proposed = sum(len(one.proposals) for one in found)
    return {
        "goldset": str(fix),
        "above": above,
        "proposed": proposed,
        "accepted": len(taken),
        "cases": len({one.case_id for one in taken}),
        "replaced": None if beside is None else str(beside),
    }
