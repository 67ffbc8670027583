"""misslink goldset check: read what a gold set is checked against, check it, show the findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from misslink.cli import output
from misslink.cli.options import CRITERIA_OPTION, JSON_OPTION, OVERWRITE_OPTION, option
from misslink.errors import InputError, known_names
from misslink.event_loops import run_async
from misslink.goldset.cli import options

if TYPE_CHECKING:
    from misslink.gates.criteria import Gate
    from misslink.goldset.checks.passage_search import PassageSearch
    from misslink.goldset.checks.protocol import (
        CheckInputs,
        GateRequirement,
        GoldSetFinding,
        QuestionVectors,
    )
    from misslink.io.goldset import GoldSet
    from misslink.io.trace_formats import RequestLog
    from misslink.types import Passage


_MIN_SIMILARITY = 0.9
# Inputs of each check, of which one suffices, and the options for them.
_CHECK_INPUTS = {
    "unreachable": (("corpus",), "--corpus"),
    "evidence": (("corpus",), "--corpus"),
    "spans": (("documents",), "--documents"),
    "stale": (("before", "baseline"), "--before or --baseline"),
    "changed": (("before",), "--before"),
    "balance": (("log",), "--logs"),
    "unjudged": (("run",), "--run"),
    "power": (("demands",), "--criteria"),
}
_CHECK_NAMES = ("duplicates", "leakage", "counts", "metrics", *_CHECK_INPUTS)
_SHOWN_FINDINGS = 5  # of one check and severity
_SHOWN_IDS = 3  # of a finding
_MAX_ID_LENGTH = 30


def check_command(
    goldset: Path = options.GOLDSET_ARGUMENT,
    corpus: str | None = options.CORPUS_OPTION,
    documents: str | None = option(None, "--documents", "Whole documents, as for --corpus."),
    logs: list[Path] = option(
        [], "--logs", "Logs of user questions, as for from-logs; repeatable."
    ),
    column: list[str] = options.COLUMN_OPTION,
    run: str | None = option(None, "--run", "Run file or folder of the current retriever."),
    criteria: Path | None = CRITERIA_OPTION,
    before: str | None = option(None, "--before", "Corpus for which the gold set was made."),
    baseline: Path | None = option(None, "--previous", "Earlier version of the gold set."),
    k: int = option(5, "--k", "Cutoff: number of first passages that count.", min=1),
    effect: float = option(
        0.05, "--effect", "Smallest change to detect, for gates without regression_max."
    ),
    expect: list[str] = option(
        [], "--expect", "Expected passages, such as simple_factual=1-2; repeatable."
    ),
    embedding: str | None = option(
        None,
        "--embedding",
        "Embedding to compare questions: minilm, PROVIDER:MODEL or none.",
        show_default="minilm where installed",
    ),
    markdown: Path | None = options.MARKDOWN_OPTION,
    fix: Path | None = option(None, "--fix", "Gold set to write, with stale labels replaced."),
    fix_above: float = option(
        _MIN_SIMILARITY, "--fix-above", "Minimum similarity of a fix.", min=0.5, max=1
    ),
    overwrite: bool = OVERWRITE_OPTION,
    as_json: bool = JSON_OPTION,
) -> None:
    """Check a gold set: what is wrong, where, and how to fix it.

    The exit code is 1 if there is an error, because numbers from the gold set would be wrong.
    """
    from misslink.goldset.checks import check_goldset
    from misslink.goldset.checks.protocol import CheckInputs
    from misslink.io.atomic import atomic_write
    from misslink.io.goldset import read_goldset
    from misslink.io.trace_formats import parse_columns, read_logs

    if not 0 < effect < 1:
        raise InputError(f"--effect is {effect:g}, not between 0 and 1. For 5 points write 0.05.")
    if before is not None and baseline is not None:
        raise InputError("--before and --baseline serve the same purpose. Use one of them.")
    for flag, value in (("--before", before), ("--previous", baseline), ("--fix", fix)):
        if value is not None and corpus is None:
            raise InputError(f"{flag} needs the current corpus. Add --corpus.")
    if column and not logs:
        raise InputError("--column names columns of logs. Add --logs.")
    read = [goldset, *logs, *filter(None, [criteria, baseline])]
    read += [Path(source) for source in (corpus, documents, run, before) if source is not None]
    output.check_output_paths({"--markdown": markdown, "--fix": fix}, read)
    if fix is not None:
        output.check_output_paths(
            {"--markdown": markdown, "--fix": _replaced_labels_path(fix)}, read
        )
        for path in (fix, _replaced_labels_path(fix)):
            options.refuse_existing(path, "--fix", overwrite=overwrite)
    gold = read_goldset(goldset)
    expected_counts = _read_expectations(expect, gold)
    demands, left_out = ((), {}) if criteria is None else _read_gates(criteria, gold)
    with output.redirect_app_stdout():
        log = read_logs(logs, parse_columns(column)) if logs else None
        passages = _read_passages(corpus)
        inputs = CheckInputs(
            corpus=passages,
            documents=_read_documents(documents, gold, passages),
            before=_read_passages(before),
            baseline=None if baseline is None else read_goldset(baseline),
            log=log,
            run=None if run is None else _read_run_passages(run, gold, k),
            run_name=run or "the run",
            k=k,
            demands=demands,
            effect=effect,
            expected_counts=expected_counts,
            vectors=_embed_questions(embedding, gold, log),
        )
        findings = check_goldset(gold, inputs)
    document = _check_document(gold, inputs, findings, left_out)
    document["fix"] = None
    if fix is not None and inputs.corpus is not None:
        document["fix"] = _write_fixed(gold, findings, inputs.corpus, fix, fix_above)
    if markdown is not None:
        atomic_write(_findings_as_markdown(document), markdown)
    output.print_result(document, _print_findings, as_json=as_json)
    if document["counts"]["error"]:
        raise typer.Exit(1)


def _read_expectations(expect: Sequence[str], gold: GoldSet) -> dict[str, tuple[int, int]]:
    """The expected numbers of relevant passages: the usual ones, then those of --expect."""
    from misslink.goldset.checks.coverage import EXPECTED_COUNTS

    expected = dict(EXPECTED_COUNTS)
    categories = sorted({*expected, *(case.category for case in gold.cases if case.category)})
    for text in expect:
        category, _, span = text.rpartition("=")
        ends = span.split("-")
        if not all(end.isdecimal() for end in ends) or not 1 <= len(ends) <= 2 or not category:
            message = f"--expect {text} is not a category and a range. Write simple_factual=1-2."
            raise InputError(message)
        if category not in categories:
            raise InputError(f"--expect {text}: {known_names(category, categories, ' category')}")
        least, most = int(ends[0]), int(ends[-1])
        if least > most:
            raise InputError(f"--expect {text}: {least} is more than {most}. Swap the two.")
        expected[category] = least, most
    return expected


def _read_gates(path: Path, gold: GoldSet) -> tuple[tuple[GateRequirement, ...], dict[str, str]]:
    """The limits of the gates of a criteria file, and why other gates have none."""
    from misslink.gates.criteria import read_criteria

    demands, left_out = [], {}
    for gate in read_criteria(path).gates:
        metric = gate.metric or gate.name
        if gate.new_failures is not None:
            left_out[gate.name] = "it counts single cases, so any number of cases is enough"
        elif "slices." in metric:
            left_out[gate.name] = (
                "it is about a slice of the document; select cases by the gate's category, tier "
                "or tag"
            )
        else:
            demands.append(_gate_requirement(gate, metric, gold))
    return tuple(demands), left_out


def _gate_requirement(gate: Gate, metric: str, gold: GoldSet) -> GateRequirement:
    from misslink.gates.criteria import matches_filter
    from misslink.goldset.checks.protocol import GateRequirement
    from misslink.registry import rank_metrics
    from misslink.render.format import base_metric, metric_bounds, metric_candidates
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
    from misslink.goldset.checks.passage_search import PassageSearch
    from misslink.io.corpus import read_corpus

    return None if source is None else PassageSearch(read_corpus(source))


def _read_documents(
    source: str | None, gold: GoldSet, corpus: PassageSearch | None
) -> dict[str, str] | None:
    """The documents of spans by their ids; those of a corpus whose passages are the documents."""
    from misslink.io.corpus import read_corpus

    named = {span.id for case in gold.cases for span in case.spans}
    if source is not None:
        return {document.id: document.text for document in read_corpus(source)}
    if named and corpus is not None and named <= corpus.by_id.keys():
        return {name: corpus.by_id[name].text for name in named}
    return None


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
    from misslink.goldset.checks.protocol import QuestionVectors
    from misslink.goldset.generation.corpus import open_optional_embedder
    from misslink.goldset.masking import Masker

    embedder = open_optional_embedder(spec)
    if embedder is None:
        return None
    masker = Masker()
    masked = {case.question: case.question for case in gold.cases}
    for request in () if log is None else log.requests:
        if request.question not in masked:
            masked[request.question] = masker.masked(request.question)
    with closing(embedder):
        rows = run_async(lambda: embedder.queries(list(masked.values())))
    return QuestionVectors(embedder.name, dict(zip(masked, rows, strict=True)))


def _replaced_labels_path(fix: Path) -> Path:
    return fix.with_name(f"{fix.stem}.rematched.jsonl")


def _write_fixed(
    gold: GoldSet,
    findings: Sequence[GoldSetFinding],
    corpus: PassageSearch,
    fix: Path,
    above: float,
) -> dict[str, Any]:
    """Write the gold set with its accepted proposals, and the labels that they replace."""
    from misslink.goldset.checks.protocol import accepted_proposals, apply_proposals, derive_ids
    from misslink.goldset.writer import objects_to_jsonl, write_goldset
    from misslink.io.atomic import atomic_write

    accepted = accepted_proposals(findings, above)
    replaced = _replaced_labels_path(fix)
    if accepted:
        atomic_write(objects_to_jsonl(map(asdict, accepted)), replaced)
    else:
        replaced.unlink(missing_ok=True)  # of an earlier fix
    fixed = (
        derive_ids(case, corpus) if case.spans else case
        for case in apply_proposals(gold.cases, accepted)
    )
    write_goldset(fixed, fix, overwrite=True)
    return {
        "goldset": str(fix),
        "above": above,
        "proposed": sum(len(finding.proposals) for finding in findings),
        "accepted": len(accepted),
        "cases": len({proposal.case_id for proposal in accepted}),
        "replaced": str(replaced) if accepted else None,
    }


def _check_document(
    gold: GoldSet,
    inputs: CheckInputs,
    findings: Sequence[GoldSetFinding],
    left_out: Mapping[str, str],
) -> dict[str, Any]:
    """Return the JSON document, with the most severe findings first."""
    from misslink.goldset.checks.power import gate_power
    from misslink.goldset.checks.protocol import SEVERITIES

    has_spans = any(case.spans for case in gold.cases)
    names = [name for name in _CHECK_NAMES if name != "spans" or has_spans]
    not_checked = {
        name: f"no {option} was given"
        for name, (fields, option) in _CHECK_INPUTS.items()
        if name in names
        and not (any(getattr(inputs, field) for field in fields) or (name == "power" and left_out))
    }
    counts = Counter(finding.severity for finding in findings)
    powers = (power for demand in inputs.demands for power in gate_power(demand, inputs.effect))
    return {
        "goldset": gold.name,
        "cases": len(gold.cases),
        "by": "words" if inputs.vectors is None else inputs.vectors.model,
        "counts": {severity: counts[severity] for severity in SEVERITIES},
        "checked": [name for name in names if name not in not_checked],
        "not_checked": not_checked,
        "findings": [
            {**asdict(finding), "lines": list(finding.lines(gold))} for finding in findings
        ],
        "power": [asdict(power) for power in powers],
        "gates_left_out": dict(left_out),
    }


def _print_findings(document: Mapping[str, Any]) -> None:
    """Print the findings, at most five of a kind, and what was not checked."""
    from misslink.render.table import TextTable

    output.print_line(f"{document['goldset']}: {_findings_summary(document)}", "bold")
    rows = []
    counts: Counter[tuple[str, str]] = Counter()
    for finding in document["findings"]:
        kind = finding["check"], finding["severity"]
        counts[kind] += 1
        if counts[kind] <= _SHOWN_FINDINGS:
            text = f"{_as_sentence(finding['message'])} {_as_sentence(finding['fix'])}"
            rows.append((finding["severity"], finding["check"], _case_list(finding), text))
    output.print_table(TextTable(("", "check", "case", "problem and fix"), rows))
    for (check, severity), count in counts.items():
        if count > _SHOWN_FINDINGS:
            more = f"And {count - _SHOWN_FINDINGS:,} more of {check} ({severity})"
            output.print_line(f"{more}; --json lists all.")
    for line in _closing_lines(document):
        output.print_line(line)


def _findings_as_markdown(document: Mapping[str, Any]) -> str:
    """Return all findings as a markdown table; their text is escaped."""
    from misslink.render.markdown import code_span, escape_markdown, markdown_table

    rows = [
        [
            finding["severity"],
            finding["check"],
            ", ".join(map(code_span, finding["cases"])),
            escape_markdown(_as_sentence(finding["message"])),
            escape_markdown(_as_sentence(finding["fix"])),
        ]
        for finding in document["findings"]
    ]
    lines = [f"Gold set {code_span(document['goldset'])}: {_findings_summary(document)}.\n"]
    lines.append(markdown_table(["", "check", "cases", "problem", "fix"], rows))
    lines += [f"{escape_markdown(line)}\n" for line in _closing_lines(document)]
    return "\n".join(filter(None, lines))


def _findings_summary(document: Mapping[str, Any]) -> str:
    counts = ", ".join(
        f"{count:,} {severity}{'' if count == 1 else 's'}"
        for severity, count in document["counts"].items()
        if count
    )
    return f"{counts or 'no findings'} in {document['cases']:,} cases"


def _case_list(finding: Mapping[str, Any]) -> str:
    names = []
    for case_id, line in zip(finding["cases"][:_SHOWN_IDS], finding["lines"], strict=False):
        cut = f"{case_id[: _MAX_ID_LENGTH - 3]}..."
        name = case_id if len(case_id) <= _MAX_ID_LENGTH else cut
        names.append(name if line is None else f"{name} (line {line})")
    more = len(finding["cases"]) - _SHOWN_IDS
    return ", ".join(names) + (f" and {more:,} more" if more > 0 else "")


def _as_sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "?")) else ".")


def _closing_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """How questions were compared, what was not checked, and what was fixed."""
    model = "" if document["by"] == "words" else f" and by {document['by']}"
    yield f"Questions were compared by words{model}."
    by_reason: dict[str, list[str]] = {}
    for name, reason in document["not_checked"].items():
        by_reason.setdefault(reason, []).append(name)
    for reason, names in by_reason.items():
        yield f"Not checked: {', '.join(names)} ({reason})."
    for power in document["power"]:
        if power["reason"]:
            yield f"Gate {power['gate']}, {power['limit']}: not computed, {power['reason']}."
    for name, reason in document["gates_left_out"].items():
        yield f"Gate {name}: {reason}."
    fix = document["fix"]
    if fix is not None:
        yield (
            f"{fix['goldset']}: {fix['accepted']:,} of {fix['proposed']:,} proposals applied to "
            f"{fix['cases']:,} cases (similarity at least {fix['above']:.0%}, the same numbers and "
            "negations), tagged rematched."
        )
        if fix["replaced"]:
            yield f"The replaced labels are in {fix['replaced']}. Review both files."
    elif any(finding["proposals"] for finding in document["findings"]):
        yield "Some labels have a proposal. Apply them to a tagged copy with --fix FILE."
