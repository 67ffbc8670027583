"""misslink goldset import and export: gold sets of other tools."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import typer

from misslink.cli.import_labels import import_label_set
from misslink.cli.options import JSON_OPTION, OVERWRITE_OPTION, option
from misslink.cli.output import check_output_paths, print_json, print_line
from misslink.goldset.cli.options import CORPUS_OPTION, print_lines


def import_command(
    sources: list[Path] = typer.Argument(
        ..., help="File or folder of another tool, or all files of a label set."
    ),
    out: Path = option(..., "--out", "Gold set to write, or folder for a label set."),
    name: str = option(
        "auto",
        "--format",
        "Format, or auto: ragas, langsmith, ragtruth and others (see above).",
    ),
    qrels: Path | None = option(None, "--qrels", "Judgements in a separate file."),
    split: str | None = option(None, "--split", "Split to import: test, dev, train."),
    task: str | None = option(
        None, "--task", "RAGTruth task: QA, Summary or Data2txt.", show_default="all"
    ),
    implicit_true: Literal["unfaithful", "faithful"] = option(
        "unfaithful", "--implicit-true", "RAGTruth: label of true spans that are in no passage."
    ),
    column: list[str] = option(
        [], "--column", "FIELD=NAME for a column with another name (huggingface)."
    ),
    traces: Path | None = option(
        None, "--traces-out", "Also write traces for evaluate, if present."
    ),
    overwrite: bool = OVERWRITE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Import a gold set of another tool, or a published label set.

    Gold sets: beir, trec, ragas, langsmith, langfuse, huggingface. What cannot be imported is
    counted.

    Label sets: ragtruth, begin, clapnq, ragchecker, trec-rag. The result is a folder with a gold set,
    traces, labels and a README.md that describes the next commands.
    """
    from misslink.errors import InputError, known_names
    from misslink.goldset.formats import FormatOptions, import_goldset
    from misslink.goldset.formats.base import formats, refuse_existing_file
    from misslink.goldset.formats.huggingface import COLUMNS
    from misslink.goldset.writer import to_jsonl
    from misslink.io.atomic import atomic_write
    from misslink.io.label_sets import ImportOptions
    from misslink.io.trace_formats import parse_columns
    from misslink.registry import importers

    if name in importers.names():
        labels = ImportOptions(split=split, task=task, implicit_true=implicit_true)
        import_label_set(name, sources, out, labels, overwrite=overwrite, as_json=as_json)
        return
    known = [*formats.names(), *importers.names()]
    if name not in {"auto", *known}:
        raise InputError(f"unknown format '{name}'; {known_names(name, known)}")
    if len(sources) > 1:
        raise InputError("Several files are for a label set. Name its --format, or give one file.")
    (source,) = sources
    options = FormatOptions(
        qrels=qrels, split=split, columns=parse_columns(column, COLUMNS), overwrite=overwrite
    )
    check_output_paths({"--out": out, "--traces-out": traces}, [source, qrels])
    for path in filter(None, (out, traces)):
        refuse_existing_file(path, options)
    name, imported = import_goldset(source, name, options)
    if traces is not None and imported.traces:
        atomic_write(to_jsonl(imported.traces), traces)
    atomic_write(to_jsonl(imported.cases), out)
    labelled = sum(
        bool(case.relevant or case.relevant_any or case.evidence) for case in imported.cases
    )
    references = sum(bool(case.references) for case in imported.cases)
    if as_json:
        print_json(
            {
                "goldset": str(out),
                "format": name,
                "cases": len(imported.cases),
                "with_relevant": labelled,
                "with_reference": references,
                "traces": str(traces) if traces is not None and imported.traces else None,
                "traces_found": len(imported.traces),
                "left_out": dict(imported.left_out),
                "notes": list(imported.notes),
            }
        )
    else:
        lines = [f"  {labelled:,} have relevance labels, {references:,} have a reference."]
        if imported.traces:
            where = traces or "not written: name a file with --traces"
            lines.append(f"  {len(imported.traces):,} traces of an app ({where}).")
        lines += (f"  {note}" for note in imported.notes)
        print_lines(f"{len(imported.cases):,} cases in {out} ({name})", lines)
    _warn_dropped("Not imported", imported.left_out)


def export_command(
    goldset: Path = typer.Argument(..., help="Gold set, JSON Lines."),
    out: Path = option(..., "--out", "File to write, or folder for beir and trec."),
    name: str = option(..., "--format", "Format, such as ragas or beir (see above)."),
    corpus: str | None = CORPUS_OPTION,
    split: str | None = option(
        None, "--split", "Name of the split to write (beir).", show_default="test"
    ),
    overwrite: bool = OVERWRITE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Export a gold set for another tool, and count what its format does not support.

    Formats: beir, trec, ragas, langsmith, langfuse, huggingface.
    """
    from misslink.goldset.formats import FormatOptions, export_goldset
    from misslink.io import read_goldset
    from misslink.io.storage import redact_url

    gold = read_goldset(goldset)
    corpus_path = Path(corpus) if corpus else None
    inputs = tuple(path for path in (goldset, corpus_path) if path is not None)
    options = FormatOptions(corpus=corpus_path, split=split, overwrite=overwrite, inputs=inputs)
    lost = export_goldset(gold, name, out, options)
    if as_json:
        document = {"goldset": redact_url(goldset), "format": name, "out": str(out)}
        print_json({**document, "cases": len(gold.cases), "lost": lost})
    else:
        print_lines(f"{len(gold.cases):,} cases in {out} ({name})", ())
    _warn_dropped("Not supported by this format", lost)


def _warn_dropped(problem: str, counts: Mapping[str, int]) -> None:
    """Print on stderr what is lost: stdout may be a JSON document."""
    if counts:
        listed = ", ".join(f"{name} ({count:,})" for name, count in counts.items())
        print_line(f"misslink: {problem}: {listed}.", stderr=True)
