"""What later commands found of a run, taken over by a run that replaces it where it still holds."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

from misslink.calibration.judged import verdicts_hash
from misslink.calibration.kept import LINKED, documents, together
from misslink.errors import InputError
from misslink.files import read_run
from misslink.files.label_folder import FOLDER
from misslink.linking.replay import JUDGED_BY
from misslink.types import Link, Run, Trace

__all__ = ["carried", "carried_links"]

_log = logging.getLogger(__name__)
_FILES = ("calibration.json", "audit.json")
_OF_LINKS = ("replay.json", "whatif.json")
# What an answer took is another thing each time, and nothing rests on it.
_SPENT = frozenset({"latency_s", "usage", "notes"})
_LINKED_AS = ("case_id", "retrieval", "answer", "correct", "cause", "contributing")
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
    before = _before(out, _FILES, "What the run before kept of its judge is")
    if out is None or before is None:
        return run
    folder = Path(out)
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
        _log.warning("%s", _told(lost, "for these verdicts"))
    return run.model_copy(update={"calibration": kept, "audit": audit})


def carried_links(run: Run, out: str | Path | None) -> Run:
    """Return the linked run with the replay and the what-if of the one that it replaces.

    A replay holds for the same cases, passages, answers, verdicts and causes, of the same app with
    the same code; the links that it confirmed are then confirmed here too. A what-if holds for the
    same cases, passages and links, and where it rests on a replay only together with it; whether
    the corpus that it searched is the same nobody can tell. What does not hold any more is warned
    of, with why and with the command that makes it anew.

    Parameters
    ----------
    run : Run
        Linked; a replay or a what-if that it brings stays.
    out : path or None
        The run folder to write, in which a run may lie.
    """
    before = _before(out, _OF_LINKS, "The replay and the what-if of the run before are")
    if out is None or before is None:
        return run
    folder = Path(out)
    kept: dict[str, Any] = {}
    changed = _changed(before, run)
    otherwise = changed or _replayed_otherwise(before, run)
    if before.replay is not None and run.replay is None:
        if otherwise is None:
            kept["replay"] = before.replay
            kept["links"] = _confirmed(before, run)
        else:
            again = f"{_replay(folder, before.replay)}  (answers that are kept cost nothing)"
            _log.warning("%s", _told([("the replay", again)], f"any more, as {otherwise},"))
    if before.whatif is not None and run.whatif is None:
        on_replay = before.whatif.get("basis") == "replayed"
        why = changed or (otherwise if on_replay else None)
        if why is None:
            kept["whatif"] = before.whatif
        else:
            again = _whatif(folder, before)
            _log.warning("%s", _told([("the what-if", again)], f"any more, as {why},"))
    return run.model_copy(update=kept)


def _before(out: str | Path | None, files: Sequence[str], what: str) -> Run | None:
    """The run that lies in `out`, where it has one of these files and can be read."""
    folder = Path(out) if out is not None else None
    if folder is None or not any((folder / name).is_file() for name in files):
        return None
    try:
        return read_run(folder)
    except InputError as problem:
        _log.warning("%s not carried over: %s", what, problem)
        return None


def _changed(before: Run, run: Run) -> str | None:
    """What is another in a run than in the one before, of all that links rest on; None: nothing."""
    if before.manifest.get("k") != run.manifest.get("k"):
        return "k is another one"
    if before.cases != run.cases:
        return "the gold set is another one"
    was, now = ({one.case_id: _done(one) for one in each.traces} for each in (before, run))
    if other := sum(was.get(name) != done for name, done in now.items()):
        return f"{other} of {len(now)} cases were retrieved or answered otherwise"
    held, links = ({one.case_id: _linked(one) for one in each.links} for each in (before, run))
    if other := sum(held.get(name) != linked for name, linked in links.items()):
        return f"{other} of {len(links)} cases are linked otherwise"
    return None


def _replayed_otherwise(before: Run, run: Run) -> str | None:
    """What would make a replay of a run another one although it is linked as the one before."""
    if before.manifest.get("work") != run.manifest.get("work"):
        return "the app or its code may be another one"
    judged = before.manifest.get("judge") == run.manifest.get("judge")
    if not judged or dict(_identity(before)) != dict(_identity(run)):
        return "the judge or what it reads is another one"
    if any(verdicts_hash(before, name) != verdicts_hash(run, name) for name in JUDGED_BY):
        return "the verdicts are others"
    return None


def _done(trace: Trace) -> Mapping[str, Any]:
    return trace.model_dump(exclude=set(_SPENT))


def _linked(link: Link) -> tuple[Any, ...]:
    """What a link says of its case, without what was measured beside it."""
    missed = tuple(
        (lost.passage_id, lost.grade, lost.true_rank, lost.text, lost.evidence)
        for lost in link.missed
    )
    return (*(getattr(link, name) for name in _LINKED_AS), missed)


def _confirmed(before: Run, run: Run) -> tuple[Link, ...]:
    """The links of the run, those that the replay confirmed being replayed."""
    basis = {link.case_id: link.basis for link in before.links}
    return tuple(
        link.model_copy(update={"basis": basis.get(link.case_id, link.basis)}) for link in run.links
    )


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


def _replay(folder: Path, document: Mapping[str, Any]) -> str:
    """The command that replays the run anew."""
    app = document.get("app")
    return f"misslink replay {quote(str(folder))} --app {quote(app) if app else 'APP'}"


def _whatif(folder: Path, before: Run) -> str:
    """The command that asks what-if anew of the same corpus and app."""
    document = before.whatif or {}
    app, corpus = document.get("app"), document.get("corpus")
    words = ["misslink whatif", quote(str(folder))]
    if isinstance(corpus, Mapping):
        source = corpus.get("source")
        if source or not app:  # the one who asked from Python knows which corpus it was
            words += ["--corpus", quote(str(source)) if source else "CORPUS"]
    if app:
        words += ["--app", quote(str(app))]
    return " ".join(words)


def _told(lost: list[tuple[str, str]], how_far: str) -> str:
    what = " and ".join(name for name, _ in lost)
    how = "  and  ".join(command for _, command in lost)
    it, does = ("them", "do") if len(lost) > 1 else ("it", "does")
    return (
        f"{what[:1].upper()}{what[1:]} of the run before {does} not hold {how_far} and "
        f"{'are' if len(lost) > 1 else 'is'} not carried over; make {it} anew with  {how}"
    )
