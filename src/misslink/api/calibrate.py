"""Compare the judge of a run with human labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from misslink.api.saved_run import SavedRun
from misslink.calibration import TrustCriteria, read_verdicts, verdicts_from_run
from misslink.calibration import calibrate as calibrate_verdicts
from misslink.calibration.inter_annotator import load_labels
from misslink.calibration.stored_calibration import merge_calibration
from misslink.calibration_document import CalibrationDocument
from misslink.documents import audit_of
from misslink.errors import InputError
from misslink.io.label_folder import LABELS_FOLDER
from misslink.metrics.rubric import metric_name
from misslink.registry import judged_metrics
from misslink.types import Run


def calibrate(
    run: Run | SavedRun | str | Path | None = None,
    labels: Any = None,
    *,
    verdicts: Any = None,
    all_verdicts: Any = None,
    metric: str = "faithfulness",
    threshold: float | None = None,
    target: float = 0.9,
    limits: str | Path | None = None,
    known_only: bool = False,
    seed: int = 0,
) -> CalibrationDocument:
    """Compare a judge with human labels, and correct its rates.

    Parameters
    ----------
    run : Run, path or None
        A run, or its folder, to which the result is added: ``calibration.json`` and the report.
    labels : path, sequence of path, pandas frame, iterable of mapping, or None
        ``case_id, metric, label, annotator``, where 1 is good. None: the labels in the run folder.
    verdicts : path, pandas frame, or iterable of mapping
        ``case_id, metric, value``, instead of `run`.
    all_verdicts : as `verdicts`, or None
        The verdicts whose share of good cases is corrected. None: the same ones.
    metric : str
        The judged metric that is labelled; ``rubric:FILE`` for a criterion of your own.
    threshold : float or None
        Lowest probability (else value) of a good case, in [0, 1]. None: the judge's own.
    target : float
        Precision or recall to reach when thresholds are fitted.
    limits : path or None
        TOML or YAML file with other limits for trust and caution.
    known_only : bool
        Leave out labels of cases without a verdict, instead of refusing them.
    seed : int
        Random seed of every draw.

    Returns
    -------
    CalibrationDocument
        ``verdict`` is 'trust', 'caution', 'do not use' or 'not enough labels', with ``reasons``;
        ``agreement`` and ``detection`` have the rates.

    Raises
    ------
    InputError
        A file cannot be read, no label is of the metric, or a label is of an unknown case.

    Examples
    --------
    >>> import misslink
    >>> checked = misslink.calibrate("reports/today", "labels.csv")  # doctest: +SKIP
    >>> checked.verdict, checked.agreement["kappa"].value  # doctest: +SKIP
    ('caution', 0.58)
    """
    if (run is None) == (verdicts is None):
        raise InputError("Name a run folder, or a file with --verdicts: one of the two.")
    metric = metric_name(metric)
    trust = TrustCriteria.read(limits) if limits else TrustCriteria()
    saved = None if run is None else SavedRun.open(run)
    human = load_labels([_label_folder(saved)] if labels is None else labels)
    if saved is None:
        judged = read_verdicts(verdicts, metric)
    else:
        where = str(saved.folder or saved.name or "the run")
        judged = verdicts_from_run(saved.run, metric, where, human.cases)
    human.check_metrics({*judged_metrics.names(), *judged.metrics})
    document = calibrate_verdicts(
        judged,
        human,
        threshold=threshold,
        all_verdicts=None if all_verdicts is None else read_verdicts(all_verdicts, metric),
        criteria=replace(trust, target=target),
        known_only=known_only,
        seed=seed,
        audit=audit_of(saved.run) if saved else None,
    )
    if saved is not None:
        document = document.replace(run=saved.name)
        saved.save("calibration", merge_calibration(saved.run.calibration, document.document()))
    return document


def _label_folder(saved: SavedRun | None) -> Path:
    """The labels in a run folder, which `misslink annotate` writes."""
    if saved is None or saved.folder is None:
        raise InputError("no labels are given; name a file of labels with --labels")
    folder = saved.folder / LABELS_FOLDER
    if not folder.is_dir():
        raise InputError(
            "this run has no labels; label its answers with  misslink annotate RUN, or name a file "
            "of labels with --labels",
            path=saved.folder,
        )
    return folder
