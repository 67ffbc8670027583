"""Reuse earlier replay, what-if, calibration and audit results that are still valid."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from misslink.calibration.stored_calibration import (
    LINKING_METRIC,
    merge_calibration,
    stored_calibrations,
)
from misslink.calibration.verdicts import hash_verdicts
from misslink.errors import InputError
from misslink.io import read_run
from misslink.io.label_folder import LABELS_FOLDER
from misslink.linking.replay import REPLAY_METRICS
from misslink.types import Link, Run

_log = logging.getLogger(__name__)
# These differ between two equal answers, and nothing rests on them.
_VARYING_FIELDS = {"latency_s", "usage", "notes"}
_LINK_FIELDS = {"case_id", "retrieval", "answer", "correct", "failure", "also"}
_MISS_FIELDS = {"passage_id", "grade", "true_rank", "text", "evidence"}


def reuse_artifacts(run: Run, out: str | Path | None) -> Run:
    """Return the judged run with the calibrations and the audit of the run in `out`.

    A calibration is valid for the verdicts that it was made on, an audit for the judge, its prompts
    and the verdicts that it audited. One warning names what is not, with the commands to repeat it.
    """
    before = _previous_run(out, ("calibration.json", "audit.json"))
    if before is None:
        return run
    folder = Path(out or "")
    calibration, audit, outdated = run.calibration, run.audit, []
    own = stored_calibrations(run)
    for metric, document in stored_calibrations(before).items():
        if metric in own:
            continue
        calibrated_on = document.get("verdicts_sha256")  # None: calibrated on other verdicts too
        if hash_verdicts(run, metric) == (calibrated_on or hash_verdicts(before, metric)):
            calibration = merge_calibration(calibration, document)
        else:
            command = _calibrate_command(folder, metric, document)
            outdated.append((f"the calibration of {metric}", command))
    if audit is None and before.audit is not None:
        metrics = before.audit.get("metrics")
        if before.audit.get("judge") == run.manifest["judge"] and not _judging_difference(
            before, run, list(metrics) if isinstance(metrics, Mapping) else []
        ):
            audit = before.audit
        else:
            outdated.append(
                ("the audit of the judge", f"misslink judge audit {quote(str(folder))}")
            )
    _warn_outdated(outdated, "for these verdicts")
    return run.model_copy(update={"calibration": calibration, "audit": audit})


def reuse_link_artifacts(run: Run, out: str | Path | None) -> Run:
    """Return the linked run with the replay and the what-if of the run in `out`.

    A replay is valid for the same cases, passages, answers, verdicts, links, app and code; it then
    confirms the same links. A what-if is valid for the same cases, passages and links, and with the
    replay if it rests on one. A warning names what is not valid, why, and the command to repeat it.
    """
    before = _previous_run(out, ("replay.json", "whatif.json"))
    if before is None:
        return run
    folder = quote(str(out))
    reused: dict[str, Any] = {}
    link_difference = _link_difference(before, run)
    replay_difference = link_difference or _replay_difference(before, run)
    if before.replay is not None and run.replay is None:
        if replay_difference is None:
            basis = {link.case_id: link.basis for link in before.links}
            reused["replay"] = before.replay
            reused["links"] = tuple(
                link.model_copy(update={"basis": basis.get(link.case_id, link.basis)})
                for link in run.links
            )
        else:
            app = before.replay.get("app")
            command = f"misslink replay {folder} --app {quote(str(app)) if app else 'APP'}"
            command += "  (cached answers cost nothing)"
            _warn_outdated([("the replay", command)], f"any more, as {replay_difference},")
    if before.whatif is not None and run.whatif is None:
        rests_on_replay = before.whatif.get("basis") == "replayed"
        difference = replay_difference if rests_on_replay else link_difference
        if difference is None:
            reused["whatif"] = before.whatif
        else:
            command = _whatif_command(folder, before.whatif)
            _warn_outdated([("the what-if", command)], f"any more, as {difference},")
    return run.model_copy(update=reused)


def _previous_run(out: str | Path | None, files: Sequence[str]) -> Run | None:
    """The run in `out`, if it has one of these files and can be read."""
    folder = Path(out) if out is not None else None
    if folder is None or not any((folder / name).is_file() for name in files):
        return None
    try:
        return read_run(folder)
    except InputError as problem:
        names = " and ".join(files)
        _log.warning("%s of the run before are not carried over: %s", names, problem)
        return None


def _link_difference(before: Run, run: Run) -> str | None:
    """The first difference in anything that links rest on; None if there is none."""
    if before.manifest.get("k") != run.manifest.get("k"):
        return "k is another one"
    if before.cases != run.cases:
        return "the gold set is another one"
    old, new = (
        {trace.case_id: trace.model_dump(exclude=_VARYING_FIELDS) for trace in compared_run.traces}
        for compared_run in (before, run)
    )
    if changed := sum(old.get(case_id) != trace for case_id, trace in new.items()):
        return f"{changed} of {len(new)} cases were retrieved or answered otherwise"
    old, new = (
        {link.case_id: _link_content(link) for link in compared_run.links}
        for compared_run in (before, run)
    )
    if changed := sum(old.get(case_id) != link for case_id, link in new.items()):
        return f"{changed} of {len(new)} cases are linked otherwise"
    return None


def _link_content(link: Link) -> dict[str, Any]:
    """The outcomes and misses of a link, without the measurements."""
    missed = [miss.model_dump(include=_MISS_FIELDS) for miss in link.missed]
    return {**link.model_dump(include=_LINK_FIELDS), "missed": missed}


def _replay_difference(before: Run, run: Run) -> str | None:
    """The first difference in the app or the judging; None if there is none."""
    if before.manifest.get("work") != run.manifest.get("work"):
        return "the app or its code may be another one"
    return _judging_difference(before, run, REPLAY_METRICS)


def _judging_difference(before: Run, run: Run, metrics: Sequence[str]) -> str | None:
    """The first difference in the judge, its prompts or its verdicts; None if there is none."""
    judges = [
        (
            compared_run.manifest.get("judge"),
            {
                name: value
                for name, value in _inputs(compared_run).items()
                if name.startswith(("judge_identity.", "prompts."))
            },
        )
        for compared_run in (before, run)
    ]
    if judges[0] != judges[1]:
        return "the judge or its prompts are others"
    if any(hash_verdicts(before, metric) != hash_verdicts(run, metric) for metric in metrics):
        return "the verdicts are others"
    return None


def _inputs(run: Run) -> dict[str, Any]:
    inputs = run.manifest.get("inputs")
    return inputs if isinstance(inputs, dict) else {}


def _calibrate_command(folder: Path, metric: str, document: Mapping[str, Any]) -> str:
    words = ["misslink calibrate", quote(str(folder))]
    if metric != LINKING_METRIC:
        words += ["--metric", quote(metric)]
    if not (folder / LABELS_FOLDER).is_dir():
        words += ["--labels", quote(str(document.get("labels_from") or "FILE"))]
    return " ".join(words)


def _whatif_command(folder: str, document: Mapping[str, Any]) -> str:
    app, words = document.get("app"), ["misslink whatif", folder]
    if isinstance(document.get("corpus"), Mapping):
        source = document["corpus"].get("source")
        if source or not app:  # a corpus given from Python has no name
            words += ["--corpus", quote(str(source or "CORPUS"))]
    if app:
        words += ["--app", quote(str(app))]
    return " ".join(words)


def _warn_outdated(outdated: Sequence[tuple[str, str]], scope: str) -> None:
    """Warn of results that are not valid `scope`, each with the command to repeat it."""
    if not outdated:
        return
    names = " and ".join(name for name, _ in outdated)
    commands = "  and  ".join(command for _, command in outdated)
    verb, are, them = ("do", "are", "them") if len(outdated) > 1 else ("does", "is", "it")
    _log.warning(
        "%s of the run before %s not hold %s and %s not carried over; repeat %s with  %s",
        *(names[:1].upper() + names[1:], verb, scope, are, them, commands),
    )
