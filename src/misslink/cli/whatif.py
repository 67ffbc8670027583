"""Command `misslink whatif`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.cli import options as shared
from misslink.cli import output
from misslink.cli.options import JudgeOptions, option
from misslink.errors import InputError
from misslink.judge.config import DEFAULT_CACHE
from misslink.render.format import format_p_value, pluralize
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from misslink.types import Run


@shared.with_judge_options(*shared.CASE_OPTIONS, repeats=shared.REPEATS_OF_RUN)
def whatif(
    run: Path = shared.RUN_ARGUMENT,
    corpus: str | None = shared.field_option(
        "corpus", show_default="the app's, or that of the run"
    ),
    app: str | None = option(
        None, "--app", "App whose own corpus and embedding are used: app.py:chain."
    ),
    embedding: str | None = option(
        None, "--embedding", "Embedding to try: minilm, PROVIDER:MODEL or FILE.py:NAME."
    ),
    options: str | None = option(
        None,
        "--options",
        "Options to try, comma-separated: k, bm25, hybrid and others.",
        show_default="all that are possible",
    ),
    reranker: str | None = option(
        None, "--reranker", "Cross-encoder: folder, name, FILE.py:NAME, or none."
    ),
    chunk: str | None = option(None, "--chunk", "Characters of a chunk and its overlap: 600/0."),
    k: list[int] = option(
        [], "--passages", "Number of passages to try; repeatable.", min=1, show_default="2, 3, 5 x"
    ),
    check: int = option(
        0, "--check", "Number of changed and of unchanged cases to run again.", min=0
    ),
    triplets: Path | None = option(
        None, "--triplets", "File to write: question, missed passage, hard negative."
    ),
    judge: str | None = shared.JUDGE_OF_RUN,
    concurrency: int = shared.CONCURRENCY_OPTION,
    cache: Path | None = shared.CACHE_OPTION,
    seed: int = shared.SEED_OPTION,
    id_key: str | None = shared.ID_KEY_OF_RUN,
    input_key: str | None = shared.INPUT_KEY_OF_RUN,
    app_config: Path | None = shared.APP_CONFIG_OF_RUN,
    *,
    given: JudgeOptions,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Try other retrievers on a run's questions, and forecast avoided failures.

    Options: k, bm25, dense, hybrid, rerank, mmr, chunk, embedding.
    """
    import misslink
    from misslink.api.saved_run import SavedRun, config_as_in_run

    output.check_output_paths({"--triplets": triplets})
    saved = SavedRun.open(run)
    work = partial(
        misslink.whatif,
        replace(saved, keeps_results=False),  # once it is printed
        corpus=corpus,
        app=app or None,
        options=[name for name in map(str.strip, options.split(",")) if name] if options else None,
        passages=k,
        embedding=embedding,
        reranker=None if reranker == "none" else reranker,
        chunk=chunk,
        check=check,
        judge=judge,
        judge_config=config_as_in_run(saved.run, judge, **given),
        concurrency=concurrency,
        cache=cache or DEFAULT_CACHE,
        seed=seed,
        id_key=id_key,
        input_key=input_key,
        app_config=app_config,
    )
    document = output.run_with_progress(work).document()
    written = _write_triplets(saved.run, triplets) if triplets else None
    if as_json:
        output.print_json(document if written is None else {**document, "triplets": written})
    else:
        print_whatif(document, written)
    try:
        saved.save("whatif", document)
    except InputError as problem:
        why = problem.problem.partition(";")[0]
        raise InputError(
            f"{why}, so the result is printed and not saved in the run; name a copy of the folder "
            "that you can write to",
            path=problem.path,
        ) from None


def _write_triplets(run: Run, path: Path) -> dict[str, object]:
    from misslink.io.manifest import display_path
    from misslink.linking.whatif import make_triplets, write_triplets

    rows, left_out = make_triplets(run)
    write_triplets(path, rows)
    return {"file": display_path(path), "triplets": len(rows), "left_out": left_out}


def print_whatif(document: Mapping[str, Any], triplets: Mapping[str, Any] | None) -> None:
    """Print the options, best first, one sentence on each, and the written triplets."""
    recall, passages = f"recall@{document['k']}", document["context_passages"]
    today = document["baseline"][recall]
    # Where the run's k is not the width of its context, the metric is scaled, not that of it.
    what = "recall in the context" if document["k"] == passages else recall
    columns = (
        "option",
        f"{what} (today {pluralize(passages, 'passage')})",
        "p (Holm)",
        "tokens",
        "failed cases reached",
        "failures avoided",
    )
    rows = []
    for entry in document["options"]:
        metric = entry["metrics"][recall]
        value = "not measured"
        if metric["b"]["value"] is not None:
            value = output.format_estimate(metric["b"], recall)
            if metric["a"]["n"] != today["n"]:  # over fewer cases than the title's
                before = output.format_estimate(metric["a"], recall)
                value += f", today {before} of the same {metric['a']['n']} cases"
        reached = entry["reached"]
        row = (
            entry["name"],
            value,
            format_p_value(metric["p_holm"]).removeprefix("p = "),
            _format_count(entry["context_tokens"]["b"], "context_tokens"),
            "not known" if reached is None else f"{len(reached):,}",
            _format_count(entry["failures_avoided"], "failures_avoided"),
        )
        rows.append(row)
    wide = pluralize(passages, "passage")
    title = f"What if: {recall} today {output.format_estimate(today, recall)}, {wide}"
    output.print_table(TextTable(columns, rows, title=title), spaced=True)
    output.print_lines(_whatif_lines(document, triplets))


def _format_count(estimate: Mapping[str, Any], name: str) -> str:
    return "not known" if estimate["value"] is None else output.format_estimate(estimate, name)


def _whatif_lines(document: Mapping[str, Any], triplets: Mapping[str, Any] | None) -> Iterator[str]:
    for entry in document["options"]:
        yield f"{entry['name']}: {entry['finding']}"
    skipped: dict[str, list[str]] = {}
    for entry in document["skipped"]:
        skipped.setdefault(entry["reason"], []).append(entry["name"])
    for reason, names in skipped.items():
        yield f"{', '.join(names)}: not tried, {reason}."
    yield from document["notes"]
    if check := document["check"]:
        for name, what in (("changed", "changes"), ("unchanged", "leaves as they are")):
            stratum = check[name]
            yield (
                f"Of {stratum['cases']} cases that {check['option']} {what}, "
                f"{stratum.get('checked', 0)} were run again: {stratum.get('failed_before', 0)} "
                f"failed before, {stratum.get('failed_after', 0)} after."
            )
        if check["reason"]:
            yield f"{len(check['skipped'])} cases could not be run again: {check['reason']}."
    if triplets is not None:
        yield f"{triplets['triplets']} triplets written to {triplets['file']}."
        for reason, count in triplets["left_out"].items():
            yield f"Left out: {count} missed passages: {reason}."
