"""misslink goldset generate: questions from a corpus, written and verified by a judge."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from misslink.cli.options import (
    CACHE_OPTION,
    CAP_OPTIONS,
    CONCURRENCY_OPTION,
    JSON_OPTION,
    JUDGE_OPTION,
    MODEL_OPTIONS,
    OVERWRITE_OPTION,
    PACE_OPTIONS,
    PRICE_OPTIONS,
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
    print_table,
    progress_bars,
    redirect_app_stdout,
)
from misslink.goldset.cli.options import OUT_OPTION


@with_judge_options(*MODEL_OPTIONS, "context_length", *PACE_OPTIONS, *PRICE_OPTIONS, *CAP_OPTIONS)
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
        None, "--config", "YAML: categories, personas, lengths and thresholds."
    ),
    categories: str | None = option(
        None, "--categories", "Only these, such as simple_factual,negative."
    ),
    rejects: Path | None = option(None, "--rejects", "File for dropped questions and the reasons."),
    embedding: str | None = option(
        None,
        "--embedding",
        "Find neighbors by minilm, openai:MODEL or none: by words.",
        show_default="minilm where installed",
    ),
    passage_characters: int | None = option(
        None,
        "--passage-characters",
        "Cut longer documents into passages of this length.",
        min=100,
        show_default="2000",
    ),
    seed: int = option(0, "--seed", "Random seed for samples and intervals."),
    overwrite: bool = OVERWRITE_OPTION,
    dry_run: bool = option(
        False, "--dry-run", "Print the number of judge calls and their cost; make none."
    ),
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

    About five asks for each question. The same command continues after an interruption.
    """
    from misslink.goldset.generation import generate_async, preview_async, read_generation_settings
    from misslink.goldset.generation.goldset_file import provenance_path
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
            forecast = asyncio.run(preview_async(corpus, judge, n, **options))
        print_json(asdict(forecast)) if as_json else print_forecast(forecast)
        return
    with interruptible("the same command continues"), redirect_app_stdout(), progress_bars() as bar:
        generated = asyncio.run(
            generate_async(
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
    if as_json:
        print_json(document)
    else:
        _print_generated(document, rejects)
    if document["missing"]:
        missing = ", ".join(f"{count} {name}" for name, count in document["missing"].items())
        reason = document["stopped"] or (
            "every candidate was tried. Raise attempts in --config, add passages, or use a stronger "
            "judge."
        )
        print(
            f"misslink: {document['written']} of {document['wanted']} questions are written, "
            f"missing: {missing}; {reason}",
            file=sys.stderr,
        )


def _print_generated(document: Mapping[str, Any], rejects: Path | None) -> None:

    from misslink.render.table import TextTable

    title = (
        f"{document['written']} of {document['wanted']} questions in {document['goldset']}, from "
        f"{document['candidates']} candidates"
    )
    print_line(title, "bold")
    for line in _corpus_lines(document["corpus"]):
        print_line(line)
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
    cost = "" if usage["cost"] is None else f", cost {usage['cost']:.4g}"
    calls = f"{usage['calls']} judge calls, {usage['from_cache']} replies from the cache{cost}."
    print_line(calls)


def _corpus_lines(corpus: Mapping[str, Any]) -> Iterator[str]:
    from misslink.goldset.generation.corpus import POOR_PASSAGE_REASONS

    yield f"Corpus: {corpus['passages']} passages of {corpus['source']}."
    if cut := corpus["documents_cut"]:
        yield (
            f"{cut} long documents were cut into passages with the ids ID#1, ID#2, ...; evidence "
            "matches them if the app cuts elsewhere."
        )
    if skipped := corpus["skipped"]:
        reasons = (f"{count} ({POOR_PASSAGE_REASONS[why]})" for why, count in skipped.items())
        yield f"Passages not used: {'; '.join(reasons)}."
