"""Keep earlier calibration, audit, replay and what-if results of a run that is evaluated again."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from misslink.calibration.stored_calibration import merge_calibration, stored_calibrations
from misslink.calibration.verdicts import hash_verdicts
from misslink.errors import InputError
from misslink.io import read_run
from misslink.io.manifest import hash_content
from misslink.types import Run

_log = logging.getLogger(__name__)
# These differ between two equal answers, and nothing rests on them.
_VARYING_FIELDS = {"latency_s", "usage", "notes"}


def reuse_calibrations(run: Run, out: str | Path | None) -> Run:
    """Return the judged run with the calibrations of the run in `out` on the same verdicts."""
    before = _previous_run(out, ("calibration.json",))
    if before is None:
        return run
    calibration, stale = run.calibration, []
    for metric, document in stored_calibrations(before).items():
        if metric in stored_calibrations(run):
            continue
        calibrated_on = document.get("verdicts_sha256")  # None: calibrated on other verdicts too
        if hash_verdicts(run, metric) == (calibrated_on or hash_verdicts(before, metric)):
            calibration = merge_calibration(calibration, document)
        else:
            stale.append(f"calibrate {quote(str(out))} --metric {quote(metric)}")
    _warn_stale(stale)
    return run.model_copy(update={"calibration": calibration})


def reuse_results(run: Run, out: str | Path | None) -> Run:
    """Return the linked run with the audit, replay and what-if of the run in `out`.

    They are kept if nothing has changed that they rest on; a replay then confirms the same links.
    """
    names = ("audit", "replay", "whatif")
    before = _previous_run(out, [f"{name}.json" for name in names])
    if before is None:
        return run
    earlier = {name: getattr(before, name) for name in names if getattr(before, name) is not None}
    if _fingerprint(before) != _fingerprint(run):
        commands = {"audit": "judge audit"}
        _warn_stale([f"{commands.get(name, name)} {quote(str(out))}" for name in earlier])
        return run
    basis = {link.case_id: link.basis for link in before.links}
    links = [link.model_copy(update={"basis": basis[link.case_id]}) for link in run.links]
    return run.model_copy(update={**earlier, "links": tuple(links)})


def _previous_run(out: str | Path | None, files: Sequence[str]) -> Run | None:
    """The run in `out`, if it has one of these files and can be read."""
    if out is None or not any((Path(out) / name).is_file() for name in files):
        return None
    try:
        return read_run(out)
    except InputError as problem:
        _log.warning("results of the earlier run cannot be read, and are not reused: %s", problem)
        return None


def _fingerprint(run: Run) -> str:
    """Hash of the cases, the answers, the judging, the links and the app's code of a run."""
    inputs = run.manifest.get("inputs")
    judge: dict[str, Any] = {
        name: value
        for name, value in (inputs.items() if isinstance(inputs, dict) else ())
        if name.startswith(("judge_identity.", "prompts."))
    }
    links = []
    for link in run.links:
        misses = [(m.passage_id, m.grade, m.true_rank, m.text, m.evidence) for m in link.missed]
        outcome = (link.retrieval, link.answer, link.correct, link.failure, link.also)
        links.append([link.case_id, outcome, misses])
    traces = [trace.model_dump(exclude=_VARYING_FIELDS) for trace in run.traces]
    verdicts = [hash_verdicts(run, metric) for metric in sorted({v.metric for v in run.verdicts})]
    manifest = [run.manifest.get(name) for name in ("k", "judge", "work")]
    return hash_content([manifest, judge, run.cases, traces, verdicts, links])


def _warn_stale(commands: Sequence[str]) -> None:
    if commands:
        _log.warning(
            "this run differs from the earlier one in its folder, whose results are not reused; "
            "repeat them with  %s",
            "  and  ".join(f"misslink {command}" for command in commands),
        )
