"""Command `misslink calibrate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from misslink.cli import options as shared
from misslink.cli.options import option
from misslink.cli.output import (
    first_few,
    format_estimate,
    print_json,
    print_line,
    print_lines,
    print_table,
)
from misslink.render.format import pluralize
from misslink.render.table import TextTable

if TYPE_CHECKING:
    from misslink.types import Run


_AS_SHARE = ("accuracy", "balanced_accuracy", "sensitivity", "specificity", "precision", "f1")
_AS_DECIMAL = ("kappa", "gwet_ac1", "auroc", "average_precision", "spearman", "kendall")
_STATISTIC_NAMES = {
    "kappa": "Cohen's kappa",
    "gwet_ac1": "Gwet's AC1",
    "auroc": "AUROC",
    "spearman": "Spearman's rho",
    "kendall": "Kendall's tau-b",
    "f1": "F1",
    "sensitivity": "good cases called good",
    "specificity": "bad cases called bad",
}
_METHOD_NAMES = {
    "judge_only": "the judge alone",
    "labelled_only": "the labels alone",
    "rogan_gladen": "Rogan and Gladen",
    "rogan_gladen_posterior": "the same, Bayesian",
    "prediction_powered": "prediction-powered",
}
_RANK = {"not enough labels": 0, "do not use": 0, "caution": 1, "trust": 2}
_QUEUE = 5


def calibrate(
    run: Path | None = typer.Argument(None, help="Run folder; the result is saved in it."),
    labels: list[Path] | None = shared.field_option(
        "labels", show_default="RUN/labels, which  misslink annotate  writes"
    ),
    verdicts: Path | None = option(
        None, "--verdicts", "File of case_id, metric, value, probability, instead of a run."
    ),
    all_verdicts: Path | None = option(
        None,
        "--all-verdicts",
        "File of the verdicts whose share of good cases is corrected.",
        show_default="the same verdicts",
    ),
    metric: str = option("faithfulness", "--metric", "Labelled metric, or rubric:FILE."),
    threshold: float | None = option(
        None,
        "--threshold",
        "Lowest probability (else value) of a good case.",
        min=0,
        max=1,
        show_default="the judge's own",
    ),
    target: float = option(
        0.9, "--target", "Precision or recall to reach when fitting thresholds."
    ),
    criteria: Path | None = option(
        None, "--limits", "TOML or YAML file with other limits for trust and caution."
    ),
    require: Literal["trust", "caution"] | None = option(
        None, "--require", "Exit with 1 if the verdict on the judge is worse than this."
    ),
    known_only: bool = shared.KNOWN_ONLY_OPTION,
    seed: int = shared.SEED_OPTION,
    verbose: bool = shared.VERBOSE_OPTION,
    as_json: bool = shared.JSON_OPTION,
) -> None:
    """Compare the judge with human labels, and correct its rates.

    The result is saved as RUN/calibration.json, and the report of RUN shows it. To correct later runs:
    misslink evaluate --calibration RUN/calibration.json
    """
    import misslink
    from misslink.api.saved_run import SavedRun
    from misslink.calibration.stored_calibration import merge_calibration

    saved = None if run is None or verdicts else SavedRun.open(run)
    result = misslink.calibrate(
        saved or run,
        labels or None,
        verdicts=verdicts,
        all_verdicts=all_verdicts,
        metric=metric,
        threshold=threshold,
        target=target,
        limits=criteria,
        known_only=known_only,
        seed=seed,
    )
    document = result.document()
    notes = list[str]()
    if saved is not None:
        merged = merge_calibration(saved.run.calibration, document)
        calibrated = saved.run.model_copy(update={"calibration": merged})
        notes = [*_replaced_note(saved.run, document), *_link_note(calibrated, document)]
    if as_json:
        print_json(document)
        for note in notes:
            print_line(f"misslink: {note}", stderr=True)
    else:
        _print_calibration(document, notes, verbose=verbose)
    if require and _RANK[document["verdict"]] < _RANK[require]:
        raise typer.Exit(1)


def _replaced_note(run: Run, document: Mapping[str, Any]) -> Iterator[str]:
    """A note if the run has a calibration of this metric on other labels or verdicts."""
    from misslink.documents import calibrations_of

    metric = document["metric"]
    earlier = calibrations_of(run).get(metric)
    if earlier and (earlier.labelled, earlier.threshold) != (
        document["labelled"],
        document["threshold"],
    ):
        yield (
            f"This replaces the run's calibration of {metric} on "
            f"{pluralize(earlier.n, 'labelled case')} of {earlier.labels_from or 'other labels'}."
        )


def _link_note(run: Run, document: Mapping[str, Any]) -> Iterator[str]:
    """A note if the run's links were made with another calibration than this one."""
    from misslink.calibration.stored_calibration import LINKING_METRIC
    from misslink.documents import calibrations_of, manifest_of

    if document["metric"] != LINKING_METRIC:
        return
    applied, stored = manifest_of(run).calibration, calibrations_of(run).get(LINKING_METRIC)
    if (
        applied
        and stored
        and applied.metric == LINKING_METRIC
        and stored.linking_inputs == applied.linking_inputs
    ):
        return
    fix = (
        f"to apply this one, evaluate again with  --calibration {document['run']}/calibration.json"
        "  (replies come from the cache)"
    )
    if applied is None:
        yield f"The run's failure modes and risks are not corrected by this yet; {fix}."
        return
    origin = manifest_of(run).calibrated_by
    source = f" on {origin.labels_from} of {origin.created[:10]}" if origin else ""
    yield f"The run's failure modes and risks use an earlier calibration{source}; {fix}."


def _print_calibration(document: Mapping[str, Any], notes: Sequence[str], *, verbose: bool) -> None:
    judge = document["judge"] or "an unnamed judge"
    print_line(f"{judge} on {document['metric']}: {document['verdict']}", "bold")
    print_lines(f"  {reason}" for reason in document["reasons"])
    if verbose:
        _print_statistics(document)
    else:
        print_lines(_doubted_labels(document))
    if document.get("run"):
        print_line(f"Saved as {document['run']}/calibration.json.")
    print_lines(notes)
    if not verbose:
        found = pluralize(len(document["notes"]), "note")
        print_line(f"--verbose prints {found}, agreement, corrected shares, thresholds and biases.")


def _doubted_labels(document: Mapping[str, Any]) -> Iterator[str]:
    """What is told without --verbose, too: labels that do not count, or may be of other answers."""
    from misslink.render.format import as_sentence
    from misslink.types import Reason

    for code, n in (
        ("labels_of_unknown_cases", document["unknown_labels"]),
        ("labels_of_other_answers", document["labels_of_other_answers"]),
        ("unverified_labels", document["unverified_labels"]),
    ):
        if n:
            yield as_sentence(str(Reason(code=code, n=n)))


def _print_statistics(document: Mapping[str, Any]) -> None:
    print_line(
        f"{pluralize(document['n'], 'labelled case')}, {document['positives']:,} labelled good; "
        f"the judge calls a case good from {document['threshold']} on "
        f"({document['threshold_from']})."
    )
    print_lines(f"Note: {text}" for text in document["notes"])
    print_table(TextTable(("judge and annotators", "value [95%]"), [*_agreement_rows(document)]))
    corrected = document["corrected"]
    columns = (f"good cases among all {corrected['verdicts']:,} verdicts", "share [95%]")
    rows = [(label, format_estimate(corrected[name])) for name, label in _METHOD_NAMES.items()]
    print_table(TextTable(columns, rows))
    widths = [
        f"{max(count - document['n'], 0):,} more for {100 * float(width) / 2:.3g} points to either side"
        for width, count in document["labels_needed"]["for_width"].items()
        if count is not None
    ]
    if widths:
        print_line(f"Labels needed, enough in 8 of 10 cases: about {', '.join(widths)}.")
    print_lines(_annotator_lines(document["human"], corrected["label_error"]))
    print_lines(_probability_lines(document))
    print_lines(_bias_lines(document["bias"]))


def _agreement_rows(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name in (*_AS_DECIMAL, *_AS_SHARE):
        estimate = document["agreement"][name]
        yield _statistic_name(name), format_estimate(estimate, as_decimal=name in _AS_DECIMAL)
    for name in ("precision", "recall", "f1"):
        shown = format_estimate(document["detection"][name])
        yield f"finding bad cases: {_statistic_name(name)}", shown
    for exposure in ("none", "some", "all"):
        for name in ("sensitivity", "specificity"):
            estimate = document["by_exposure"][exposure][name]
            if estimate["value"] is not None:
                title = f"{name}, with {exposure} of the relevant passages"
                yield title, format_estimate(estimate)
    base = document["baselines"]
    for label, number in (
        ("always the majority label: accuracy", base["majority"]["accuracy"]),
        ("by answer length alone: AUROC", base["length"]["auroc"]),
    ):
        yield label, "not measured" if number is None else f"{number:.2f}"


def _annotator_lines(human: Mapping[str, Any], error: Mapping[str, Any]) -> Iterator[str]:
    alpha, with_judge = (
        format_estimate(human[name], as_decimal=True) for name in ("alpha", "alpha_with_judge")
    )
    yield (
        f"Annotators: {human['annotators']}, alpha {alpha}; with the judge as another annotator "
        f"{with_judge}."
    )
    if error["value"] is not None:
        yield (
            f"Wrong labels of one annotator: {format_estimate(error)}, by their disagreements; the "
            "corrected share is without this error."
        )
    queue = []
    for entry in human["queue"]:
        claim = "" if entry["claim"] is None else f", claim {entry['claim']}"
        labels = ", ".join(f"{name} {value:g}" for name, value in entry["labels"].items())
        tied = "" if entry["settled"] else " (tied)"
        queue.append(f"  They disagree on {entry['case_id']}{claim}: {labels}{tied}.")
    yield from first_few(queue, _QUEUE, "  And on {} others; --json lists them all.")


def _probability_lines(document: Mapping[str, Any]) -> Iterator[str]:
    brier, ece = (document["probability"][name] for name in ("brier", "ece"))
    if brier is None:
        yield "The judge gives no probability."
        return
    line = f"Probabilities: Brier score {brier:.3f}, calibration error {ece:.3f}"
    platt = document["recalibration"].get("platt")
    if platt and platt["ece"]["value"] is not None:
        line += f"; recalibrated {platt['brier']['value']:.3f} and {platt['ece']['value']:.3f}"
    yield f"{line}."
    if band := document["uncertain_band"]:
        yield f"Uncertain from {band[0]:.3g} to {band[1]:.3g}: inconclusive in this band."
    for name, fit in document["nested"].items():
        if name != "reason" and fit["threshold"] is not None:
            aim, _, least = name.partition("_")
            goal = f"{100 * float(least):g}% {aim}" if least else "F1"
            yield (
                f"Threshold for {goal} in finding bad cases: {fit['threshold']:.4g}; cross-fitted "
                f"{'F1' if aim == 'f1' else aim} {format_estimate(fit['detection'][aim])}."
            )


def _bias_lines(bias: Mapping[str, Any]) -> Iterator[str]:
    findings = [entry["finding"] for entry in bias.values() if entry["finding"]]
    tested = [name for name, entry in bias.items() if entry["coefficient"]["value"] is not None]
    for finding in findings:
        yield f"Bias: {finding}."
    if tested and not findings:
        names = ", ".join(name.replace("_", " ") for name in tested)
        yield f"Bias: no error is associated with any of these beyond chance: {names}."
    elif not tested:
        yield "Bias: not tested, because there are too few errors or too little data."


def _statistic_name(name: str) -> str:
    return _STATISTIC_NAMES.get(name, name.replace("_", " "))
