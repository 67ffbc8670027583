"""misslink goldset check: read what a gold set is checked against, and check it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli.options import JSON_OPTION, OVERWRITE_OPTION, option
from misslink.cli.output import print_json, redirect_app_stdout
from misslink.errors import InputError
from misslink.goldset.cli.options import (
    COLUMN_OPTION,
    CORPUS_OPTION,
    GOLDSET_ARGUMENT,
    MARKDOWN_OPTION,
    check_output_paths,
    refuse_existing,
)
from misslink.io.goldset import GoldSet

if TYPE_CHECKING:
    from misslink.gate.criteria import Gate
    from misslink.goldset.checks import (
        GateRequirement,
        GoldSetFinding,
        PassageSearch,
        QuestionVectors,
    )
    from misslink.goldset.logs import RequestLog
    from misslink.types import Passage


_MIN_SIMILARITY = 0.9


def check_command(
    goldset: Path = GOLDSET_ARGUMENT,
    corpus: str | None = CORPUS_OPTION,
    logs: list[Path] = option(
        [], "--logs", "Logs of user questions, as for from-logs; repeatable."
    ),
    column: list[str] = COLUMN_OPTION,
    run: str | None = option(None, "--run", "Current retrieval: run file or folder."),
    criteria: Path | None = option(
        None, "--criteria", "Gates that use the gold set, ship-criteria.yaml."
    ),
    before: str | None = option(None, "--before", "Corpus for which the gold set was made."),
    baseline: Path | None = option(None, "--baseline", "Earlier version of the gold set."),
    k: int = option(5, "--k", "Cutoff of the run.", min=1),
    effect: float = option(
        0.05, "--effect", "Distance to detect, for gates without regression_max."
    ),
    embedding: str | None = option(
        None,
        "--embedding",
        "Compare by minilm, PROVIDER:MODEL, or none: by words.",
        show_default="minilm where installed",
    ),
    markdown: Path | None = MARKDOWN_OPTION,
    fix: Path | None = option(None, "--fix", "Write the gold set with fixed stale labels, tagged."),
    fix_above: float = option(
        _MIN_SIMILARITY, "--fix-above", "Minimum similarity of a fix.", min=0.5, max=1
    ),
    overwrite: bool = OVERWRITE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Check a gold set: what is wrong, where, and how to fix it.

    The exit code is 1 if there is an error, because numbers from the gold set would be wrong.
    """
    from misslink.goldset.checks import CheckInputs, check_goldset
    from misslink.goldset.cli.check_output import (
        check_document,
        findings_as_markdown,
        print_findings,
    )
    from misslink.goldset.logs import parse_columns, read_logs
    from misslink.io.atomic import atomic_write
    from misslink.io.goldset import read_goldset

    if not 0 < effect < 1:
        raise InputError(f"--effect is {effect:g}, not between 0 and 1. For 5 points write 0.05.")
    if before is not None and baseline is not None:
        raise InputError("--before and --baseline serve the same purpose. Use one of them.")
    for flag, value in (("--before", before), ("--baseline", baseline), ("--fix", fix)):
        if value is not None and corpus is None:
            raise InputError(f"{flag} needs the current corpus. Add --corpus.")
    if column and not logs:
        raise InputError("--column names columns of logs. Add --logs.")
    read = [goldset, *logs, *filter(None, [criteria, baseline])]
    read += [Path(source) for source in (corpus, run, before) if source is not None]
    check_output_paths({"--markdown": markdown, "--fix": fix}, read)
    if fix is not None:
        check_output_paths({"--markdown": markdown, "--fix": _replaced_labels_path(fix)}, read)
        for path in (fix, _replaced_labels_path(fix)):
            refuse_existing(path, "--fix", overwrite=overwrite)
    gold = read_goldset(goldset)
    demands, left_out = ((), {}) if criteria is None else _read_gates(criteria, gold)
    with redirect_app_stdout():
        log = read_logs(logs, parse_columns(column)) if logs else None
        inputs = CheckInputs(
            corpus=_read_passages(corpus),
            before=_read_passages(before),
            baseline=None if baseline is None else read_goldset(baseline),
            log=log,
            run=None if run is None else _read_run_passages(run, gold, k),
            run_name=run or "the run",
            k=k,
            demands=demands,
            effect=effect,
            vectors=_embed_questions(embedding, gold, log),
        )
        findings = check_goldset(gold, inputs)
    document = check_document(gold, inputs, findings, left_out)
    document["fix"] = None if fix is None else _write_fixed(gold, findings, fix, fix_above)
    if markdown is not None:
        atomic_write(findings_as_markdown(document), markdown)
    if as_json:
        print_json(document)
    else:
        print_findings(document)
    if document["counts"]["error"]:
        raise typer.Exit(1)


def _read_gates(path: Path, gold: GoldSet) -> tuple[tuple[GateRequirement, ...], dict[str, str]]:
    """The limits of the gates of a criteria file, and why other gates have none."""
    from misslink.gate.criteria import read_criteria

    demands, left_out = [], {}
    for gate in read_criteria(path).gates:
        metric = gate.metric or gate.name
        if gate.new_failures is not None:
            left_out[gate.name] = "it counts single cases, so no number of cases is too small"
        elif "slices." in metric:
            left_out[gate.name] = (
                "it is about a slice of the document; select cases by the gate's category, tier "
                "or tag"
            )
        else:
            demands.append(_gate_requirement(gate, metric, gold))
    return tuple(demands), left_out


def _gate_requirement(gate: Gate, metric: str, gold: GoldSet) -> GateRequirement:
    from misslink.gate.criteria import matches_filter
    from misslink.goldset.checks import GateRequirement
    from misslink.registry import rank_metrics
    from misslink.render.metric_format import base_metric, metric_bounds, metric_candidates
    from misslink.retrieval.matching import case_needs

    name = base_metric(metric_candidates(metric)[-1])
    ranked = name.partition("@")[0] in {other.partition("@")[0] for other in rank_metrics.names()}
    cases = [
        case
        for case in gold.cases
        if matches_filter(case, gate) and (not ranked or case_needs(case, ()))
    ]
    return GateRequirement(
        gate.name,
        name,
        len(cases),
        gate.threshold,
        gate.at_most,
        gate.regression_max,
        gate.min_cases,
        metric_bounds(metric) == (0.0, 1.0),
    )


def _read_passages(source: str | None) -> PassageSearch | None:
    from misslink.goldset.checks import PassageSearch
    from misslink.io.corpus import read_corpus

    return None if source is None else PassageSearch(read_corpus(source))


def _read_run_passages(run: str, gold: GoldSet, k: int) -> dict[str, tuple[Passage, ...]]:
    from misslink.goldset.pooling.rankings import read_rankings
    from misslink.io.run_folder import read_run
    from misslink.types import Passage

    ids = {case.id for case in gold.cases}
    if not Path(run).is_dir():
        return {
            case_id: tuple(Passage(id=name, rank=rank) for rank, name in enumerate(names, 1))
            for case_id, names in read_rankings(run, run, ids, k).passages.items()
        }
    passages = {
        trace.case_id: trace.retrieved[:k]
        for trace in read_run(run).traces
        if trace.case_id in ids
        and trace.unmeasured is None
        and (trace.retrieved or not trace.error)
    }
    if not passages:
        message = "The run retrieved for no question of the gold set. Evaluate this gold set."
        raise InputError(message, path=run)
    return passages


def _embed_questions(
    spec: str | None, gold: GoldSet, log: RequestLog | None
) -> QuestionVectors | None:
    """Embed the questions; those of a log masked, because embeddings are sent and stored."""
    from misslink.goldset.checks import QuestionVectors
    from misslink.goldset.generation.passage_index import open_optional_embedder
    from misslink.goldset.logs import Masker

    embedder = open_optional_embedder(spec)
    if embedder is None:
        return None
    masker = Masker()
    masked = {case.question: case.question for case in gold.cases}
    for request in () if log is None else log.requests:
        if request.question not in masked:
            masked[request.question] = masker.masked(request.question)
    try:
        rows = asyncio.run(embedder.queries(list(masked.values())))
    finally:
        embedder.close()
    return QuestionVectors(embedder.name, dict(zip(masked, rows, strict=True)))


def _replaced_labels_path(fix: Path) -> Path:
    return fix.with_name(f"{fix.stem}.rematched.jsonl")


def _write_fixed(
    gold: GoldSet, findings: Sequence[GoldSetFinding], fix: Path, above: float
) -> dict[str, Any]:
    """Write the gold set with its accepted proposals, and the labels that they replace."""
    from misslink.goldset.checks import accepted_proposals, apply_proposals
    from misslink.goldset.writer import objects_to_jsonl, write_goldset
    from misslink.io.atomic import atomic_write

    accepted = accepted_proposals(findings, above)
    replaced = _replaced_labels_path(fix)
    if accepted:
        atomic_write(objects_to_jsonl(map(asdict, accepted)), replaced)
    else:
        replaced.unlink(missing_ok=True)  # of an earlier fix
    write_goldset(apply_proposals(gold.cases, accepted), fix, overwrite=True)
    return {
        "goldset": str(fix),
        "above": above,
        "proposed": sum(len(finding.proposals) for finding in findings),
        "accepted": len(accepted),
        "cases": len({proposal.case_id for proposal in accepted}),
        "replaced": str(replaced) if accepted else None,
    }
