"""Command `misslink diagnose`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from misslink.cli.options import JSON_OPTION, OF_RUN, RUN_ARGUMENT, field_option, option
from misslink.cli.output import (
    check_output_paths,
    format_estimate,
    print_json,
    print_line,
    print_lines,
    print_table,
)
from misslink.parts import by_case
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from misslink.documents import MissingLabelsDocument
    from misslink.types import Link, RetrievalMiss, Run


_INCONCLUSIVE = "inconclusive"  # the group of misses without a miss type
_SHOWN_CASES = 5


def diagnose(
    run: Path = RUN_ARGUMENT,
    missing_labels: Path | None = option(
        None,
        "--missing-labels",
        "JSONL file for missing labels, as cases to review.",
    ),
    corpus: str | None = field_option("corpus", show_default=OF_RUN),
    every: bool = option(False, "--all", "Show every case, not the first 5 of a group."),
    as_json: bool = JSON_OPTION,
) -> None:
    """Explain why relevant passages were missed, and what to do.

    With --corpus the misses are measured again: which passages are not indexed, and what BM25 finds.
    The run and its failure modes stay as they are; to change them, evaluate with --corpus.
    """
    from misslink.types import Run

    read = Run.read(run)
    if corpus is not None:
        read = _measured_again(read, corpus)
    document = diagnosis_document(read, run)
    written = 0 if missing_labels is None else _write_missing_labels(missing_labels, read)
    if as_json:
        print_json(document)
    else:
        _print(document, read, None if every else _SHOWN_CASES)
    if missing_labels is not None:
        message = f"Missing labels to review: {missing_labels}"
        if not written:
            message = f"No missing label, so nothing was written to {missing_labels}."
        print_line(message, stderr=as_json)


def _measured_again(run: Run, source: str) -> Run:
    """The run with its misses measured in a corpus; what an embedding measured stays."""
    from misslink.capture import match_labels
    from misslink.documents import cutoff_of, manifest_of, summary_of
    from misslink.event_loops import run_async
    from misslink.io import GoldSet
    from misslink.io.corpus import read_corpus
    from misslink.linking.checklist import build_checklist
    from misslink.linking.miss_measurement import measure_misses

    k, seed = cutoff_of(run), manifest_of(run).seed or 0
    gold = GoldSet(run.cases, "the gold set of the run")
    matched, passages, _ = match_labels(gold, by_case(run.traces), read_corpus(source))
    traces = list(matched.values())
    measure = partial(measure_misses, run.cases, traces, k, embedder=None, seed=seed)
    measured = run_async(lambda: measure(corpus=passages))

    def merged(link: Link, miss: RetrievalMiss) -> RetrievalMiss:
        old = next((m for m in link.missed if m.passage_id == miss.passage_id), None)
        if old is None:
            return miss
        numbers: dict[str, Any] = {
            "measured": {**old.measured, **miss.measured},
            "above": old.above,
        }
        if miss.kind is None:
            numbers |= {"miss_type": old.miss_type, "also": old.also, "reason": old.reason}
        return miss.model_copy(update=numbers)

    links = tuple(
        link.model_copy(
            update={"missed": tuple(merged(link, miss) for miss in measured.missed[link.case_id])}
        )
        if measured.missed.get(link.case_id)
        else link
        for link in run.links
    )
    checklist = build_checklist(run.cases, traces, measured, k, corpus=passages, seed=seed)
    before = summary_of(run).diagnosis
    of_embedding = {i.name: i for i in before.checklist if i.name == "embedding_quality"}
    diagnosis = before.replace(
        checklist=tuple(of_embedding.get(item.name, item) for item in checklist),
        corpus=measured.corpus,
    )
    summary = {**run.summary, "diagnosis": diagnosis.document()}
    return run.model_copy(update={"traces": tuple(traces), "links": links, "summary": summary})


def diagnosis_document(run: Run, folder: Path) -> dict[str, object]:
    """Return what a run says of its misses, as ``--json`` prints it.

    Parameters
    ----------
    run : Run
    folder : Path
        Where it was read from.

    Raises
    ------
    InputError
        The run was made before misslink measured misses.
    """
    from misslink.documents import manifest_of
    from misslink.errors import InputError
    from misslink.io.manifest import display_path
    from misslink.io.storage import redact_url
    from misslink.render.miss_sentences import miss_type_advice
    from misslink.report.diagnosis import missed_passages
    from misslink.report.fixes import fix_records
    from misslink.stats import proportion

    measured = run.summary.get("diagnosis")
    if not isinstance(measured, dict):
        raise InputError(
            "this run has no diagnosis, because it did not measure misses; run the same  misslink "
            "evaluate  command again (judge replies come from the cache)",
            path=folder,
        )
    groups: dict[str | None, list[dict[str, object]]] = {}
    deeper, recorded = False, bool(manifest_of(run).traces)
    for link, miss in missed_passages(run.links):
        deeper |= miss.depth is not None and not recorded
        groups.setdefault(miss.kind, []).append(
            {
                "case_id": link.case_id,
                "passage_id": miss.passage_id,
                "true_rank": miss.true_rank,
                "reason": miss.reason,
                "also": list(miss.also),
                "failure": link.failure,
                "measured": miss.measured,
            }
        )
    count = sum(map(len, groups.values()))
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0] or _INCONCLUSIVE))
    return {
        "run": display_path(redact_url(folder)),
        "cases": len(run.cases),
        "misses": count,
        "embedding": measured.get("embedding"),
        "corpus": measured.get("corpus"),
        "miss_types": {
            kind or _INCONCLUSIVE: {
                "count": len(group),
                "share": proportion(len(group), count).model_dump(),
                "recommendation": miss_type_advice(kind, deeper=deeper),
                "cases": group,
            }
            for kind, group in ordered
        },
        "fixes": fix_records(run),
        "checklist": measured.get("checklist") or [],
        "missing_labels": measured.get("missing_labels") or {"holes": [], "metrics": {}},
    }


def _write_missing_labels(path: Path, run: Run) -> int:
    """Write the missing labels for review; returns how many cases, and without any writes nothing."""
    from misslink.documents import summary_of
    from misslink.linking.missing_labels import write_labelled_cases

    check_output_paths({"--missing-labels": path})
    holes = summary_of(run).diagnosis.missing_labels.holes
    return write_labelled_cases(path, run.cases, holes)


def _print(document: Mapping[str, Any], run: Run, most: int | None) -> None:
    from misslink.documents import summary_of
    from misslink.render.format import MIN_PERCENT, pluralize
    from misslink.report.diagnosis import check_verdict

    basis = document["embedding"] or "no embedding known"
    pool = (
        f"a corpus of {document['corpus']} passages" if document["corpus"] else "the passages seen"
    )
    count = document["misses"]
    missed = "1 relevant passage was" if count == 1 else f"{count} relevant passages were"
    print_line(f"{missed} missed in {document['cases']} cases ({basis}; {pool}).")
    questions = {case.id: case.question for case in run.cases}
    for name, group in document["miss_types"].items():
        print_line("")
        head = f"{name}: {group['count']} of {pluralize(count, 'missed passage')}"
        if count >= MIN_PERCENT:
            head += f", {format_estimate(group['share'])}"
        print_line(head, "bold")
        print_line(group["recommendation"])
        for case in group["cases"][:most]:
            print_line(
                f"  {case['case_id']}  {' '.join(questions.get(case['case_id'], '').split())}"
            )
            print_line(f"    needs '{case['passage_id']}': {case['reason'] or 'not measured'}")
        if most is not None and len(group["cases"]) > most:
            print_line(f"  and {len(group['cases']) - most} more (--all shows them)")
    print_lines(_fix_lines(run))
    diagnosis = summary_of(run).diagnosis
    rows = []
    for item in diagnosis.checklist:
        state, why = check_verdict(item)
        rows.append((item.question, item.finding, f"{state}: {why}" if why else state))
    print_line("")
    print_table(TextTable(("question", "finding", ""), rows, title="Checklist"), spaced=True)
    print_line("")
    print_lines(_missing_label_lines(diagnosis.missing_labels))


def _fix_lines(run: Run) -> Iterator[str]:
    """Each fix with the failed cases that it reaches, as page and summary count them."""
    from misslink.report.fixes import count_fixes

    fixes = count_fixes(run)
    if fixes:
        yield ""
        yield "Fixes, in failed cases that get all that they lost"
    for counted in fixes:
        yield f"  {counted.label}. {counted.reach}"


def _missing_label_lines(missing: MissingLabelsDocument) -> Iterator[str]:
    if not missing.holes:
        found = "No missing label was found: no unlisted passage was judged to hold the answer."
        # The reason is why none could be looked for.
        yield f"Missing labels were not looked for: {missing.reason}." if missing.reason else found
        return
    passages = "1 passage was" if len(missing.holes) == 1 else f"{len(missing.holes)} passages were"
    yield (
        f"{passages} judged to hold the answer though the gold set does not list it; "
        "--missing-labels FILE writes them for review:"
    )
    for hole in missing.holes:
        yield f"  {hole.case_id}  '{hole.passage_id}' at rank {hole.rank}: {hole.reason}"
    for metric, both in missing.metrics.items():
        without, labelled = (
            format_estimate(estimate, metric)
            for estimate in (both.without_labels, both.with_labels)
        )
        yield f"  {metric} without them {without}, with them {labelled}"
