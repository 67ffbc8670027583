"""misslink calibrate: how far the judge's word is to be believed, by human labels."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from misslink.cli.again import put_into_run
from misslink.cli.options import AS_JSON
from misslink.cli.output import cell, print_json, say, shown

if TYPE_CHECKING:
    from rich.console import Console

    from misslink.calibration import Verdicts
    from misslink.types import Run

__all__ = ["calibrate"]

_AS_SHARE = ("accuracy", "balanced_accuracy", "sensitivity", "specificity", "precision", "f1")
_AS_DECIMAL = ("kappa", "gwet_ac1", "auroc", "average_precision", "spearman", "kendall")
_WORDS = {
    "kappa": "Cohen's kappa",
    "gwet_ac1": "Gwet's AC1",
    "auroc": "AUROC",
    "spearman": "Spearman's rho",
    "kendall": "Kendall's tau-b",
    "f1": "F1",
    "sensitivity": "good cases called good",
    "specificity": "bad cases called bad",
}
_CORRECTED = {
    "judge_only": "the judge alone",
    "labelled_only": "the labels alone",
    "rogan_gladen": "Rogan and Gladen",
    "rogan_gladen_posterior": "the same, Bayesian",
    "prediction_powered": "prediction-powered",
}
_RANK = {"do not use": 0, "caution": 1, "trust": 2}
_QUEUE = 5


def calibrate(
    run: Path | None = typer.Argument(None, help="A run folder, which keeps the result."),
    labels: list[Path] | None = typer.Option(
        None,
        "--labels",
        help="CSV or JSONL of case_id, metric, label, annotator; 1 is good. May be repeated.",
        show_default="what  misslink annotate RUN  wrote, RUN/labels",
    ),
    verdicts: Path | None = typer.Option(
        None, "--verdicts", help="Instead of a run, a file of case_id, metric, value, probability."
    ),
    all_verdicts: Path | None = typer.Option(
        None,
        "--all-verdicts",
        help="Verdicts of all cases that the corrected share is to be about.",
        show_default="the same verdicts",
    ),
    metric: str = typer.Option("faithfulness", "--metric", help="The metric that was labelled."),
    threshold: float | None = typer.Option(
        None,
        "--threshold",
        min=0,
        max=1,
        help="From which probability (else value) on a case is called good.",
        show_default="the judge's own",
    ),
    wanted: float = typer.Option(
        0.9, "--wanted", help="Precision, and recall, that fitted thresholds are to reach."
    ),
    criteria: Path | None = typer.Option(
        None, "--criteria", help="TOML or YAML with other limits of trust and caution."
    ),
    require: Literal["trust", "caution"] | None = typer.Option(
        None, "--require", help="Exit with 1 where the judge does not earn this."
    ),
    known_only: bool = typer.Option(
        False, "--known-only", help="Leave out labels of cases that have no verdict anywhere."
    ),
    seed: int = typer.Option(0, "--seed", help="Of the draws and folds."),
    as_json: bool = AS_JSON,
) -> None:
    """Hold the judge against human labels: agreement, corrected rates, bias, and a verdict.

    A RUN keeps the document as calibration.json, with those of other metrics, and its report
    shows it;  misslink evaluate --calibration RUN/calibration.json  then corrects later runs by it.
    """
    from misslink.calibration import Criteria, read_verdicts
    from misslink.calibration import calibrate as hold
    from misslink.calibration.brought import bring
    from misslink.calibration.kept import together
    from misslink.errors import InputError
    from misslink.manifest import shown_path

    if (run is None) == (verdicts is None):
        raise InputError("name a run folder, or else a file with --verdicts, and not both")
    asked = Criteria.read(criteria) if criteria else Criteria()
    said = bring(labels or _of_folder(run))
    whole, judged = _of(run, verdicts, metric)
    document = hold(
        judged,
        said,
        threshold=threshold,
        everyone=read_verdicts(all_verdicts, metric) if all_verdicts else None,
        criteria=asked,
        known_only=known_only,
        wanted=wanted,
        seed=seed,
        audit=whole.audit if whole else None,
    )
    linked = None
    if run is not None and whole is not None:
        document["run"] = shown_path(run)
        kept = together(whole.calibration, document)
        put_into_run(run, whole, "calibration", kept)
        linked = _linked(whole.model_copy(update={"calibration": kept}), document)
    if as_json:
        print_json(document)
        if linked:
            print(f"misslink: {linked}", file=sys.stderr)
    else:
        _print(document, linked)
    if require and _RANK[document["verdict"]] < _RANK[require]:
        raise typer.Exit(1)


def _of_folder(run: Path | None) -> list[Path]:
    """The labels that were given in the browser, which lie in the run."""
    from misslink.errors import InputError
    from misslink.files.addresses import refuse_url
    from misslink.files.label_folder import FOLDER

    if run is None:
        raise InputError("no labels are given; name a file of labels with --labels")
    if not run.is_dir():
        refuse_url(run)
        raise InputError("there is no such run folder", path=run)
    folder = run / FOLDER
    if not folder.is_dir():
        raise InputError(
            "this run has no labels; label its answers with  misslink annotate RUN, or name a file "
            "of labels with --labels",
            path=run,
        )
    return [folder]


def _linked(run: Run, document: Mapping[str, Any]) -> str | None:
    """What the links of the run still go by, where that is not this calibration."""
    from misslink.calibration.kept import LINKED, applied

    if document["metric"] != LINKED:
        return None
    by = applied(run)
    if by is not None and by.metric == LINKED and by.same:
        return None
    way = (
        f"to apply this one, evaluate again with  --calibration {document['run']}/calibration.json"
        "  (replies come from the ledger)"
    )
    if by is None:
        return f"The run's causes and risks are not corrected by this yet; {way}."
    source = f" on {by.labels_from}" if by.labels_from else ""
    source += f" of {by.created[:10]}" if by.created else ""
    return f"The run's causes and risks are still by an earlier calibration{source}; {way}."


def _of(run: Path | None, verdicts: Path | None, metric: str) -> tuple[Run | None, Verdicts]:
    from misslink.calibration import of_run, read_verdicts
    from misslink.files import read_run

    if run is None:
        return None, read_verdicts(verdicts, metric)
    whole = read_run(run)
    return whole, of_run(whole, metric, str(run))


def _print(document: Mapping[str, Any], linked: str | None) -> None:
    from rich.console import Console

    console = Console()
    judge = document["judge"] or "an unnamed judge"
    say(console, f"{judge} on {document['metric']}: {document['verdict']}", "bold")
    for reason in document["reasons"]:
        say(console, f"  {reason}")
    n, good = document["n"], document["positives"]
    say(
        console,
        f"{n:,} labelled {'case' if n == 1 else 'cases'}, {good:,} good by people; good by the "
        "judge from "
        f"{document['threshold']} on ({document['threshold_from']}).",
    )
    for note in document["notes"]:
        say(console, f"Note: {note}")
    _print_agreement(console, document)
    _print_truth(console, document)
    _print_people(console, document["human"])
    for line in (*_probability(document), *_bias(document["bias"])):
        say(console, line)
    if document.get("run"):
        say(console, f"Kept as {document['run']}/calibration.json.")
    if linked:
        say(console, linked)


def _print_agreement(console: Console, document: Mapping[str, Any]) -> None:
    rows = [
        (_name(name), _written(name, document["agreement"][name]))
        for name in (*_AS_DECIMAL, *_AS_SHARE)
    ]
    detection = document["detection"]
    rows += [
        (f"finding bad cases: {_name(name)}", shown(detection[name]))
        for name in ("precision", "recall", "f1")
    ]
    base = document["baselines"]
    for words, number in (
        ("always the majority: accuracy", base["majority"]["accuracy"]),
        ("by answer length alone: AUROC", base["length"]["auroc"]),
    ):
        rows.append((words, "not measured" if number is None else f"{number:.2f}"))
    _table(console, ("judge and people", "value [95 %]"), rows)


def _print_truth(console: Console, document: Mapping[str, Any]) -> None:
    found = document["corrected"]
    rows = [(words, shown(found[name])) for name, words in _CORRECTED.items()]
    _table(console, (f"good of all {found['verdicts']:,} verdicts, by", "share [95 %]"), rows)
    wanted = document["labels_needed"]["for_width"]
    told = [
        f"{labels:,} for {100 * float(width) / 2:.3g} points to either side"
        for width, labels in wanted.items()
        if labels is not None
    ]
    if told:
        say(console, f"Labels needed, by prediction-powered inference: {', '.join(told)}.")


def _print_people(console: Console, human: Mapping[str, Any]) -> None:
    say(
        console,
        f"People: {human['annotators']} labelled, alpha {_decimal(human['alpha'])}; with the judge "
        f"as one more {_decimal(human['alpha_with_judge'])}.",
    )
    queue = human["queue"]
    for entry in queue[:_QUEUE]:
        place = "" if entry["claim"] is None else f", claim {entry['claim']}"
        words = ", ".join(f"{name} {value:g}" for name, value in entry["labels"].items())
        tied = "" if entry["settled"] else " (tied)"
        say(console, f"  They disagree on {entry['case_id']}{place}: {words}{tied}.")
    if len(queue) > _QUEUE:
        say(console, f"  And on {len(queue) - _QUEUE} others; --json lists them all.")


def _probability(document: Mapping[str, Any]) -> Iterator[str]:
    brier, ece = (document["probability"][name] for name in ("brier", "ece"))
    if brier is None:
        yield "The judge gives no probability."
        return
    line = f"Probabilities: Brier score {brier:.3f}, calibration error {ece:.3f}"
    mended = document["recalibration"].get("platt")
    if mended and mended["ece"]["value"] is not None:
        line += f"; recalibrated {mended['brier']['value']:.3f} and {mended['ece']['value']:.3f}"
    yield f"{line}."
    band = document["uncertain_band"]
    if band:
        yield f"Not to be believed from {band[0]:.3g} to {band[1]:.3g}: called undecided there."
    for name, one in document["nested"].items():
        if name != "reason" and one["threshold"] is not None:
            aim, _, least = name.partition("_")
            words = f"{100 * float(least):g} % {aim}" if least else "F1"
            reached = shown(one["detection"][aim])
            yield (
                f"Threshold for {words} in finding bad cases: {one['threshold']:.4g}; cross-fitted "
                f"{'F1' if aim == 'f1' else aim} {reached}."
            )


def _bias(found: Mapping[str, Any]) -> Iterator[str]:
    told = [entry["finding"] for entry in found.values() if entry["finding"]]
    looked = [name for name, entry in found.items() if entry["coefficient"]["value"] is not None]
    for finding in told:
        yield f"Bias: {finding}."
    if looked and not told:
        names = ", ".join(name.replace("_", " ") for name in looked)
        yield f"Bias: no error goes with any of these beyond chance: {names}."
    elif not looked:
        yield "Bias: too few errors, or too little known of the cases, to look for any."


def _table(console: Console, head: tuple[str, str], rows: list[tuple[str, str]]) -> None:
    from rich.table import Table

    table = Table()
    for column in head:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(cell(console, text) for text in row))
    console.print(table)


def _name(name: str) -> str:
    return _WORDS.get(name, name.replace("_", " "))


def _written(name: str, estimate: Mapping[str, Any]) -> str:
    return _decimal(estimate) if name in _AS_DECIMAL else shown(estimate)


def _decimal(estimate: Mapping[str, Any]) -> str:
    return shown(estimate, as_decimal=True)
