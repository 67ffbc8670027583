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
_RANKED = {"__all__": {"score"}}  # rebuilt indexes differ in the last digits
_VARYING_FIELDS: Any = {
    **dict.fromkeys(("latency_s", "usage", "notes", "trace_id", "span_id"), True),
    "retrieved": _RANKED,
    "deeper": _RANKED,
}


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
    if change := _difference(before, run):
        commands = {"audit": "judge audit"}
        _warn_stale([f"{commands.get(name, name)} {quote(str(out))}" for name in earlier], change)
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


def _difference(before: Run, run: Run) -> str | None:
    """What differs between two runs of that on which replay, what-if and audit rest."""
    old, new = _fingerprints(before), _fingerprints(run)
    name = next((name for name in new if old[name] != new[name]), None)
    if name != "traces" or old[name].keys() != new[name].keys():
        return "the cases with an answer" if name == "traces" else name
    cases = [case_id for case_id, trace in new[name].items() if old[name][case_id] != trace]
    return f"the app's answers or passages in {len(cases)} of {len(new[name])} cases, such as '{cases[0]}'"


def _fingerprints(run: Run) -> dict[str, Any]:
    """The app's code, the judging, the cases, the answers and the links of a run, with their names."""
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
    traces = {trace.case_id: trace.model_dump(exclude=_VARYING_FIELDS) for trace in run.traces}
    manifest = run.manifest
    return {
        "the gold set": hash_content(run.cases),
        "the app's code or settings": hash_content([manifest.get("k"), manifest.get("work")]),
        "traces": {case_id: hash_content(trace) for case_id, trace in traces.items()},
        "the judge": hash_content([manifest.get("judge"), judge]),
        "the verdicts": [
            hash_verdicts(run, metric) for metric in sorted({v.metric for v in run.verdicts})
        ],
        "the ranks of missed passages": hash_content(links),
    }


def _warn_stale(commands: Sequence[str], change: str = "verdicts") -> None:
    if commands:
        _log.warning(
            "this run differs from the earlier one in its folder (%s), whose results are not reused; "
            "repeat them with  %s",
            change,
            "  and  ".join(f"misslink {command}" for command in commands),
        )
