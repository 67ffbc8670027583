"""What people's labels and an audit found of a run, taken over by a run that judged the same."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from misslink.calibration.judged import verdicts_hash
from misslink.calibration.kept import LINKED, documents, together
from misslink.errors import InputError
from misslink.files import read_run
from misslink.files.label_folder import FOLDER
from misslink.types import Run

__all__ = ["carried"]

_log = logging.getLogger(__name__)
_FILES = ("calibration.json", "audit.json")
_IDENTITY = ("judge_identity.", "prompts.")


def carried(run: Run, out: str | Path | None) -> Run:
    """Return the run with what the one that it replaces kept, where nothing of that has changed.

    A calibration holds for the verdicts that it was made on, and an audit for the judge, its
    prompts and the verdicts that it changed. What does not hold any more is warned of, with the
    commands that make it anew.

    Parameters
    ----------
    run : Run
        Judged; a calibration that it brings stays.
    out : path or None
        The run folder to write, in which a run may lie.
    """
    folder = Path(out) if out is not None else None
    if folder is None or not any((folder / name).is_file() for name in _FILES):
        return run
    try:
        before = read_run(folder)
    except InputError as problem:
        _log.warning("What the run before kept of its judge is not carried over: %s", problem)
        return run
    own, kept, lost = documents(run), run.calibration, []
    for metric, document in documents(before).items():
        if metric in own:
            continue
        if _holds(document, before, run, metric):
            kept = together(kept, document)
        else:
            lost.append((f"the calibration of {metric}", _calibrate(folder, metric, document)))
    audit = run.audit
    if audit is None and before.audit is not None:
        if _audited(before.audit, before, run):
            audit = before.audit
        else:
            again = f"misslink judge audit {quote(str(folder))}"
            lost.append(("the audit of the judge", again))
    if lost:
        _log.warning("%s", _told(lost))
    return run.model_copy(update={"calibration": kept, "audit": audit})


def _holds(document: Mapping[str, Any], before: Run, run: Run, metric: str) -> bool:
    """Whether a calibration is of the verdicts that the run has."""
    now = verdicts_hash(run, metric)
    sha256 = document.get("verdicts_sha256")  # None with --all-verdicts
    return now == (verdicts_hash(before, metric) if sha256 is None else sha256)


def _audited(audit: Mapping[str, Any], before: Run, run: Run) -> bool:
    """Whether an audit is of the run's judge, prompts and verdicts."""
    if not audit.get("judge") == before.manifest.get("judge") == run.manifest.get("judge"):
        return False
    if dict(_identity(before)) != dict(_identity(run)):
        return False
    metrics = audit.get("metrics")
    named = list(metrics) if isinstance(metrics, Mapping) else []
    return all(verdicts_hash(before, name) == verdicts_hash(run, name) for name in named)


def _identity(run: Run) -> Iterator[tuple[str, object]]:
    """What else the judge depends on, and the prompts it was asked with."""
    inputs = run.manifest.get("inputs")
    for name, value in inputs.items() if isinstance(inputs, Mapping) else ():
        if name.startswith(_IDENTITY):
            yield name, value


def _calibrate(folder: Path, metric: str, document: Mapping[str, Any]) -> str:
    """The command that makes a calibration anew."""
    words = ["misslink calibrate", quote(str(folder))]
    if metric != LINKED:
        words += ["--metric", quote(metric)]
    source = document.get("labels_from")
    if not (folder / FOLDER).is_dir():
        words += ["--labels", quote(source) if isinstance(source, str) and source else "FILE"]
    return " ".join(words)


def _told(lost: list[tuple[str, str]]) -> str:
    what = " and ".join(name for name, _ in lost)
    how = "  and  ".join(command for _, command in lost)
    it, does = ("them", "do") if len(lost) > 1 else ("it", "does")
    return (
        f"{what[:1].upper()}{what[1:]} of the run before {does} not hold for these verdicts and "
        f"{'are' if len(lost) > 1 else 'is'} not carried over; make {it} anew with  {how}"
    )
