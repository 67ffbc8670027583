"""misslink goldset generate, from-logs, import and export."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal

import typer

from misslink.cli.options import (
    CACHE_OPTION,
    CHECK_OPTIONS,
    CONCURRENCY_OPTION,
    DRY_RUN_OPTION,
    JSON_OPTION,
    JUDGE_OPTION,
    OVERWRITE_OPTION,
    SEED_OPTION,
    JudgeOptions,
    option,
    with_judge_options,
)
from misslink.cli.output import (
    check_output_paths,
    interruptible,
    print_forecast,
    print_json,
    print_line,
    print_result,
    print_table,
    progress_bars,
    redirect_app_stdout,
)
from misslink.event_loops import run_async
from misslink.goldset.cli.options import (
    COLUMN_OPTION,
    CORPUS_OPTION,
    OUT_OPTION,
    TRACES_OUT_OPTION,
    print_lines,
    refuse_existing,
)
from misslink.render.format import format_cost, pluralize

_REASON_NAMES = {"head": "most frequent", "failure": "failed", "tail": "one of each cluster"}


@with_judge_options(*CHECK_OPTIONS)
def generate_command(
    corpus: str = option(
        ...,
        "--corpus",
        "Corpus: folder, JSONL, CSV, chroma:FOLDER or loader (module:name).",
        show_default=False,
    ),
    judge: str = JUDGE_OPTION,
    n: int = option(100, "-n", "Number of questions.", min=1),
    out: Path = OUT_OPTION,
    config: Path | None = option(
        None, "--config", "YAML file with categories, personas, lengths and thresholds."
    ),
    categories: str | None = option(
        None, "--categories", "Categories to write, such as simple_factual,negative."
    ),
    rejects: Path | None = option(None, "--rejects", "File for dropped questions and the reasons."),
    embedding: str | None = option(
        None,
        "--embedding",
        "Embedding to find neighbors: minilm, openai:MODEL or none.",
        show_default="minilm where installed",
    ),
    passage_characters: int | None = option(
        None,
        "--passage-characters",
        "Cut longer documents into passages of this length.",
        min=100,
        show_default="2000",
    ),
    seed: int = SEED_OPTION,
    overwrite: bool = OVERWRITE_OPTION,
    dry_run: bool = DRY_RUN_OPTION,
    concurrency: int = CONCURRENCY_OPTION,
    cache: Path | None = CACHE_OPTION,
    *,
    given: JudgeOptions,
    as_json: bool = JSON_OPTION,
) -> None:
    """Generate a gold set from a corpus: a judge writes questions and verifies each one.

    A question is accepted if its evidence is verbatim in its passages and answers it, general
    knowledge does not, and at most a few other passages do, which are labelled too. It must not
    copy its passages or repeat another question. Questions that nothing answers are verified
    against the nearest passages.

    It takes about five judge calls per question. The same command continues after an interruption.
    """
    from misslink.goldset.generation.pipeline import generate_async, preview_async
    from misslink.goldset.generation.settings import read_generation_settings
    from misslink.goldset.writer import provenance_path
    from misslink.judge.config import JudgeConfig

    outputs = {"--out": out, "beside --out": provenance_path(out), "--rejects": rejects}
    check_output_paths(outputs, [Path(corpus) if Path(corpus).is_file() else None, config])
    settings = read_generation_settings(config)
    if categories is not None:
        settings = settings.only(categories.split(","))
    if passage_characters is not None:
        settings = settings.model_copy(update={"passage_characters": passage_characters})
    options: dict[str, Any] = {
        "settings": settings,
        "seed": seed,
        "embedding": embedding,
        "cache": cache,
        "concurrency": concurrency,
        "terms": JudgeConfig(**given),
    }
    if dry_run:
        with redirect_app_stdout():
            forecast = run_async(lambda: preview_async(corpus, judge, n, **options))
        print_json(asdict(forecast)) if as_json else print_forecast(forecast)
        return
    with interruptible("the same command continues"), redirect_app_stdout(), progress_bars() as bar:
        generated = run_async(
            lambda: generate_async(
                corpus,
                judge,
                n,
                out=out,
                rejects=rejects,
                overwrite=overwrite,
                progress=lambda done, total: bar("verified questions", done, total),
                **options,
            )
        )
    document = generated.document
    print_result(document, partial(_print_generated, rejects=rejects), as_json=as_json)
    if document["missing"]:
        missing = ", ".join(f"{count} {name}" for name, count in document["missing"].items())
        reason = document["stopped"] or (
            "every candidate was tried. "
            + (
                _short_passages(document)
                or "Raise attempts in --config, add passages, or use a stronger judge."
            )
        )
        print_line(
            f"misslink: {document['written']} of {document['wanted']} questions are written, "
            f"missing: {missing}; {reason}",
            stderr=True,
        )


def _short_passages(document: Mapping[str, Any]) -> str:
    """How many passages are too short for a question, and what decides it; empty without any."""
    corpus = document["corpus"]
    short = corpus["skipped"].get("too_short")
    return (
        f"{short} of {corpus['passages']} passages have fewer than {corpus['least_words']} content "
        "words and were not used; to use them, lower least_words in --config."
        if short
        else ""
    )


def _print_generated(document: Mapping[str, Any], rejects: Path | None) -> None:
    from misslink.goldset.generation.corpus import POOR_PASSAGE_REASONS
    from misslink.render.table import TextTable

    title = (
        f"{document['written']} of {document['wanted']} questions in {document['goldset']}, from "
        f"{document['candidates']} candidates"
    )
    print_line(title, "bold")
    corpus = document["corpus"]
    print_line(f"Corpus: {corpus['passages']} passages of {corpus['source']}.")
    if cut := corpus["documents_cut"]:
        note = (
            f"{cut} long documents were cut into passages with the ids ID#1, ID#2, ...; evidence "
            "matches them if the app cuts elsewhere."
        )
        print_line(note)
    if skipped := corpus["skipped"]:
        reasons = (f"{count} ({POOR_PASSAGE_REASONS[why]})" for why, count in skipped.items())
        print_line(f"Passages not used: {'; '.join(reasons)}.")
    if short := _short_passages(document):
        print_line(short)
    written = [(name, str(count)) for name, count in document["by_category"].items()]
    print_table(TextTable(("category", "written"), written, ("written",)))
    dropped = [
        (row["reason"], str(row["count"]), f"{row['question'] or ''} ({row['sentence']})".strip())
        for row in document["reject_table"]
    ]
    table = TextTable(("reason", "n", "example"), dropped, ("n",), "Dropped")
    if print_table(table) and rejects is not None:
        print_line(f"All of them: {rejects}")
    usage = document["usage"]
    cost = "" if usage["cost"] is None else f", cost {format_cost(usage['cost'])}"
    calls = f"{usage['calls']} judge calls, {usage['from_cache']} replies from the cache{cost}."
    print_line(calls)


def from_logs_command(
    logs: list[Path] = typer.Argument(
        ..., help="CSV, JSON Lines, parquet, or OpenTelemetry traces; also .gz."
    ),
    out: Path = OUT_OPTION,
    n: int = option(100, "-n", "Number of questions.", min=1),
    head: float = option(0.4, "--head", "Share of the most frequent questions."),
    tail: float = option(0.4, "--tail", "Share of rare questions, one per cluster."),
    failures: float = option(
        0.2, "--failures", "Share of failed questions: feedback, errors, refusals, repeats."
    ),
    embedding: str | None = option(
        None,
        "--embedding",
        "Embedding to cluster the masked questions, such as minilm.",
        show_default="by words",
    ),
    seed: int = SEED_OPTION,
    column: list[str] = COLUMN_OPTION,
    traces: Path | None = TRACES_OUT_OPTION,
    mask_pattern: list[str] = option(
        [], "--mask-pattern", "NAME=REGEX for another kind of personal data."
    ),
    mask_names: Path | None = option(
        None, "--mask-names", "File of people's names to mask, one per line."
    ),
    overwrite: bool = OVERWRITE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Sample questions from logs: frequent, failed, and rare ones by cluster.

    Personal data are masked before anything is stored or embedded: e-mail addresses, phone numbers,
    IBANs, card numbers, IP addresses, credentials, keys and national ids. Names are masked only by
    --mask-names. Clustering by words needs  pip install 'misslink[goldset]'.
    """
    from misslink.embedding import open_embedder
    from misslink.goldset.log_sampling import SampleShares, sample_log
    from misslink.goldset.masking import Masker, parse_mask_patterns, read_names
    from misslink.goldset.writer import to_jsonl
    from misslink.io.atomic import atomic_write
    from misslink.io.trace_formats import parse_columns, read_logs

    shares = SampleShares(head, tail, failures)
    columns = parse_columns(column)
    names = [] if mask_names is None else read_names(mask_names)
    masker = Masker(parse_mask_patterns(mask_pattern), names)
    outputs = {"--out": out, "--traces-out": traces}
    check_output_paths(outputs, [*logs, mask_names])
    for flag, path in outputs.items():
        if path is not None:
            refuse_existing(path, flag, overwrite=overwrite)
    log = read_logs(logs, columns)
    embedder = None if embedding is None else open_embedder(embedding)
    with nullcontext() if embedder is None else closing(embedder):
        sample = run_async(
            lambda: sample_log(log, n, shares=shares, masker=masker, embedder=embedder, seed=seed)
        )
    if traces is not None:
        atomic_write(to_jsonl(sample.traces), traces)
    atomic_write(to_jsonl(sample.cases), out)
    document = {"goldset": str(out), "traces": None if traces is None else str(traces)}
    document |= sample.document
    print_result(document, _print_sample, as_json=as_json)


def _print_sample(document: Mapping[str, Any]) -> None:
    def counts(name: str) -> str:
        return ", ".join(f"{kind} {count:,}" for kind, count in document[name].items() if count)

    lines = [
        f"  {count:,} {why} ({_REASON_NAMES[why]})" for why, count in document["chosen"].items()
    ]
    lines.append(f"  They represent {document['requests_covered']:,} of the requests.")
    lines.append(f"Failed requests: {counts('failing') or 'none'}.")
    lines.append(f"Masked: {counts('masked') or 'nothing'}.")
    lines += (f"Left out: {count:,} {why}." for why, count in document["left_out"].items())
    lines += document["notes"]
    if document["traces"] and document["with_trace"]:
        lines.append(f"{document['with_trace']:,} traces in {document['traces']}. Next:")
        lines.append(
            f"  misslink evaluate --traces {document['traces']} --goldset {document['goldset']} "
            "--judge heuristic --out reports/logs"
        )
    title = (
        f"{document['written']:,} questions in {document['goldset']}, of "
        f"{document['different']:,} different ones in {document['requests']:,} requests"
    )
    print_lines(title, lines)


def import_command(
    sources: list[Path] = typer.Argument(
        ..., help="File or folder of another tool, or all files of a label set."
    ),
    out: Path = option(..., "--out", "Gold set to write, or folder for a label set."),
    name: str = option(
        "auto",
        "--format",
        "Format, or auto: ragas, deepeval, ragtruth and others (see above).",
    ),
    qrels: Path | None = option(None, "--qrels", "Judgments in a separate file."),
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
    traces: Path | None = TRACES_OUT_OPTION,
    overwrite: bool = OVERWRITE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Import a gold set of another tool, or a published label set.

    Gold sets: beir, trec, ragas, deepeval, langsmith, langfuse, huggingface. What cannot be imported is
    counted.

    Label sets: ragtruth, begin, clapnq, ragchecker, trec-rag. The result is a folder with a gold set,
    traces, labels and a README.md that describes the next commands.
    """
    from misslink.errors import InputError, known_names
    from misslink.goldset.formats.base import (
        FormatOptions,
        formats,
        import_goldset,
        refuse_existing_file,
    )
    from misslink.goldset.formats.huggingface import COLUMNS
    from misslink.goldset.writer import to_jsonl
    from misslink.io.atomic import atomic_write
    from misslink.io.label_sets import ImportOptions, write_label_set
    from misslink.io.trace_formats import parse_columns
    from misslink.registry import importers

    if name in importers.names():
        labels = ImportOptions(split=split, task=task, implicit_true=implicit_true)
        label_set = write_label_set(
            importers.get(name)(sources, labels), name, out, overwrite=overwrite
        )
        print_result(label_set, _print_label_set, as_json=as_json)
        return
    names = [*formats.names(), *importers.names()]
    if name not in {"auto", *names}:
        raise InputError(f"unknown format '{name}'; {known_names(name, names)}")
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
            where = traces or "not written: name a file with --traces-out"
            lines.append(f"  {len(imported.traces):,} traces of an app ({where}).")
        lines += (f"  {note}" for note in imported.notes)
        print_lines(f"{pluralize(len(imported.cases), 'case')} in {out} ({name})", lines)
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

    Formats: beir, trec, ragas, deepeval, langsmith, langfuse, huggingface.
    """
    from misslink.goldset.formats.base import FormatOptions, export_goldset
    from misslink.io import read_goldset
    from misslink.io.storage import redact_url

    gold = read_goldset(goldset)
    corpus_path = Path(corpus) if corpus else None
    inputs = tuple(path for path in (goldset, corpus_path) if path is not None)
    options = FormatOptions(corpus=corpus_path, split=split, overwrite=overwrite, inputs=inputs)
    unsupported = export_goldset(gold, name, out, options)
    if as_json:
        document = {"goldset": redact_url(goldset), "format": name, "out": str(out)}
        print_json({**document, "cases": len(gold.cases), "lost": unsupported})
    else:
        print_lines(f"{pluralize(len(gold.cases), 'case')} in {out} ({name})", ())
    _warn_dropped("Not supported by this format", unsupported)


def _warn_dropped(problem: str, counts: Mapping[str, int]) -> None:
    """Print on stderr what is lost: stdout may be a JSON document."""
    if counts:
        listed = ", ".join(f"{name} ({count:,})" for name, count in counts.items())
        print_line(f"misslink: {problem}: {listed}.", stderr=True)


def _print_label_set(document: Mapping[str, Any]) -> None:
    title = f"{document['title']}: {document['cases']:,} cases in {document['out']}"
    print_line(title, "bold")
    for metric, entry in document["labels"].items():
        by = "" if entry["annotators"] == 1 else f", by {entry['annotators']} annotators"
        print_line(f"  {metric}: {entry['n']:,} labels{by}, {entry['good']:,} of them good")
    for reason, count in document["left_out"].items():
        print_line(f"  Left out: {count:,} ({reason}).")
    lines = [*document["notes"], "Next:", *document["next"]]
    for line in lines:
        print_line(line if line == "Next:" else f"  {line}")
