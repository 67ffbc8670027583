"""Between judging and linking: the judge held against the labels that were brought with the app."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from misslink.calibration import calibrate, of_run
from misslink.calibration.brought import bring
from misslink.calibration.drift import moved
from misslink.calibration.kept import LINKED, brief, documents, together
from misslink.calibration.rates import measured, scores
from misslink.errors import InputError
from misslink.files import GoldSet
from misslink.files.labels import Labels
from misslink.linking import Calibration
from misslink.manifest import content_hash, shown_path
from misslink.pipeline.given import Given
from misslink.pipeline.options import Options
from misslink.types import Run, Trace, Verdict

__all__ = [
    "Held",
    "brought_labels",
    "hold",
    "judged_run",
    "keeping",
    "labels_hash",
    "moved_scores",
    "source_of",
]

_log = logging.getLogger(__name__)
_LISTED = 5


@dataclass(frozen=True)
class Held:
    """The judge of a run held against the labels that were brought.

    Parameters
    ----------
    document : mapping or None
        Of every labelled metric, as a run keeps it. None: no metric could be held against labels.
    calibration : Calibration or None
        By which causes and risks are decided. None: the labels do not carry one.
    notes : sequence of str
        What the labels did not carry, as sentences.
    """

    document: Mapping[str, Any] | None
    calibration: Calibration | None
    notes: tuple[str, ...] = ()


def brought_labels(options: Options, gold: GoldSet, judged: Collection[str]) -> Labels | None:
    """Read the labels that an evaluation is given, those of its cases; None without any.

    Parameters
    ----------
    options : Options
    gold : GoldSet
        All of its cases, whichever are evaluated.
    judged : collection of str
        The metrics that the judge is asked for.

    Raises
    ------
    InputError
        They cannot be read, are of unknown cases, or are of no metric that is judged.
    """
    if options.labels is None:
        return None
    labels = bring(options.labels)
    known = labels.known(
        [case.id for case in gold.cases], shown_path(gold.name), leave_out=options.known_only
    )
    if not set(known.metrics) & set(judged):
        listed = ", ".join(known.metrics[:_LISTED])
        raise InputError(
            f"these labels are of {listed}, of which no verdict is asked; known: "
            f"{', '.join(sorted(judged))}",
            path=labels.name,
        )
    if options.only:
        wanted = frozenset(options.only)
        items = tuple(label for label in known.items if label.case_id in wanted)
        return replace(known, items=items)
    return known


def labels_hash(labels: Labels | None) -> str | None:
    """SHA-256 of what was labelled, whatever the file it stands in; None without labels."""
    if labels is None:
        return None
    # The line is where it stands, not what it says.
    said = [asdict(replace(label, line=None)) for label in labels.items]
    return content_hash(sorted(said, key=lambda one: str(sorted(one.items(), key=str))))


def judged_run(line: Given, traces: Mapping[str, Trace], verdicts: Sequence[Verdict]) -> Run:
    """Return the run as far as it is before it is linked."""
    manifest = {"k": line.options.k, "judge": line.settings["judge"], "inputs": dict(line.inputs)}
    return Run(
        manifest=manifest,
        cases=line.gold.cases,
        traces=tuple(traces.values()),
        verdicts=tuple(verdicts),
        links=(),
        summary={},
    )


def hold(line: Given, run: Run) -> Held:
    """Return what the links go by: the calibration that was given, or one on the labels that were.

    The judge is held against the labels metric by metric. What they cannot carry ends nothing: it
    is warned of and noted.

    Parameters
    ----------
    line : Given
    run : Run
        Judged, and not linked yet.
    """
    labels, options = line.labels, line.options
    if labels is None:
        return Held(line.calibration_document, line.calibration)
    if not labels.items:
        return _told(None, None, ["No case that was evaluated is labelled."])
    held: dict[str, Any] | None = None
    notes: list[str] = []
    for metric in labels.metrics:
        try:
            verdicts = of_run(run, metric, str(options.out or "this run"))
            one = calibrate(verdicts, labels, known_only=options.known_only, seed=options.seed)
        except InputError as problem:  # nothing that was paid for is lost over a label
            notes.append(f"{metric} was not held against its labels: {problem}.")
            continue
        held = together(held, one)
        if one["verdict"] == "do not use":
            notes.append(f"By its labels of {metric} this judge is not to be used.")
    calibration = None
    if held is not None and held["metric"] == LINKED:
        why = _too_weak(held)
        if why is None:
            calibration = Calibration.of(held, labels.name)
        else:
            notes.append(
                f"The labels of faithfulness do not carry a calibration ({why}), so causes and "
                "risks are not corrected by it."
            )
            held["notes"] = [*held["notes"], notes[-1]]
    elif held is not None:
        notes.append("No label is of faithfulness, so causes and risks are not corrected.")
    return _told(held, calibration, notes)


def keeping(run: Run, held: Held) -> Run:
    """Return the run with the calibration that it keeps."""
    return run.model_copy(update={"calibration": held.document and dict(held.document)})


def moved_scores(run: Run) -> dict[str, dict[str, Any]]:
    """Return, by metric, how the judge's scores have moved since it was calibrated; warn of each.

    Parameters
    ----------
    run : Run
        Judged, with the calibration that it keeps.
    """
    found = {}
    for metric, document in documents(run).items():
        if (drift := moved(document, scores(run, metric).values())) is not None:
            _log.warning("%s", drift.sentence)
            found[metric] = drift.document()
    return found


def source_of(held: Held) -> dict[str, Any] | None:
    """Where the calibration is from that the links go by, for the manifest."""
    if held.calibration is None or held.document is None:
        return None
    return brief(held.document)


def _too_weak(document: Mapping[str, Any]) -> str | None:
    """Why labels do not show that a judge is better than chance; None where they do."""
    judge = measured(document)
    if isinstance(judge, str):
        return judge
    better = judge.balanced_accuracy
    if better.value is None or better.low is None:
        return better.reason or "there are no labels"
    if better.low <= 1 / 2:
        return (
            f"{judge.n} labels do not show that the judge is better than chance: its balanced "
            f"accuracy is {better.value:.2f}, and could be {better.low:.2f}"
        )
    return None


def _told(
    held: dict[str, Any] | None, calibration: Calibration | None, notes: Sequence[str]
) -> Held:
    for note in notes:
        _log.warning("%s", note)
    return Held(held, calibration, tuple(notes))
