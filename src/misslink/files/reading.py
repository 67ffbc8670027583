"""Run folders read: every part checked, and none from a newer misslink."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from misslink.errors import InputError
from misslink.files.addresses import shown, url_of
from misslink.files.jsonl import parse, read_objects, read_text
from misslink.files.stored_run import fetched
from misslink.types import FORMAT, Case, Link, Run, Trace, Verdict

__all__ = ["DOCUMENTS", "PARTS", "read_json", "read_run", "read_whole"]

PARTS: dict[str, type[BaseModel]] = {
    "cases": Case,
    "traces": Trace,
    "verdicts": Verdict,
    "links": Link,
}
DOCUMENTS = ("replay", "whatif", "map", "calibration", "audit")  # what it may hold beside its parts

_WRITTEN_BY = {
    "replay": "replay",
    "whatif": "whatif",
    "calibration": "calibrate",
    "audit": "judge audit",
}


def read_run(folder: str | Path, *, anywhere: bool = False) -> Run:
    """Read a run folder.

    Parameters
    ----------
    folder : str or Path
    anywhere : bool
        Take the URL of one too, as a caller may that adds nothing to the folder.

    Raises
    ------
    InputError
        It is no run folder, one of its files is missing or damaged, or it was written by a newer
        misslink than this.
    """
    url = url_of(folder)
    if url is not None:
        if not anywhere:
            raise InputError(
                "this run is in a storage; copy it to this disk and name the copy",
                path=shown(folder),
            )
        with fetched(url) as here:
            return read_run(here)
    folder = Path(folder)
    if not (folder / "manifest.json").is_file():
        raise InputError(
            "this is no run folder (it has no manifest.json); "
            "name one that  misslink evaluate --out  wrote",
            path=folder,
        )
    manifest = read_json(folder / "manifest.json")
    _refuse_newer(manifest, folder)
    for name in (*(f"{part}.jsonl" for part in PARTS), "summary.json"):
        if not (folder / name).is_file():
            raise InputError(
                f"this run folder is not whole (it has no {name}); copy it again, or run  "
                "misslink evaluate  again",
                path=folder,
            )
    parts = {name: _read_part(folder / f"{name}.jsonl", model) for name, model in PARTS.items()}
    names = ("summary", *(n for n in DOCUMENTS if (folder / f"{n}.json").exists()))
    documents = {name: read_json(folder / f"{name}.json") for name in names}
    try:
        return Run.model_validate({"manifest": manifest, **documents, **parts})
    except ValidationError as invalid:
        error = invalid.errors()[0]
        place = ".".join(map(str, error["loc"]))
        raise InputError(f"{place}: {error['msg']}", path=folder) from None


def read_whole(folder: str | Path, *, anywhere: bool = False) -> Run:
    """Read a run folder of which nothing may be missing, since what is said or done rests on it.

    Parameters
    ----------
    folder : str or Path
    anywhere : bool
        As of `read_run`.

    Raises
    ------
    InputError
        As of `read_run`; or it holds more or fewer cases, traces, verdicts or links than it says
        it has, as a copy that was cut short does.
    """
    run = read_run(folder, anywhere=anywhere)
    held = {
        "cases.jsonl": (len(run.cases), run.summary.get("cases")),
        "traces.jsonl": (len({trace.case_id for trace in run.traces}), len(run.cases)),
        "links.jsonl": (len({link.case_id for link in run.links}), len(run.cases)),
    }
    counted = run.summary.get("coverage")
    judged = Counter(verdict.metric for verdict in run.verdicts)
    for metric, counts in counted.items() if isinstance(counted, dict) else ():
        numbers = counts.values() if isinstance(counts, dict) else ()
        said = sum(n for n in numbers if isinstance(n, int))
        if judged[metric] != said:
            held["verdicts.jsonl"] = (judged[metric], said)
    for name, (there, should) in held.items():
        if isinstance(should, int) and there != should:
            raise InputError(
                f"this run folder is not whole ({name} has {there} entries where there should be "
                f"{should}); copy it again, or run  misslink evaluate  again",
                path=shown(folder),
            )
    return run


def _refuse_newer(manifest: Mapping[str, Any], folder: Path) -> None:
    """Refuse a run whose format this misslink does not know; one without was made before 1."""
    found = manifest.get("format", FORMAT)
    if isinstance(found, bool) or not isinstance(found, int):
        raise InputError(
            "its format is no whole number; copy the run again",
            path=folder / "manifest.json",
            field="format",
        )
    if found > FORMAT:
        raise InputError(
            f"this run was written by a newer misslink ({manifest.get('misslink', 'unknown')}); "
            "upgrade misslink",
            path=folder,
        )


def _read_part(path: Path, model: type[BaseModel]) -> tuple[BaseModel, ...]:
    if path.stat().st_size == 0:
        return ()  # a run without a judge has no verdicts
    texts: dict[str, str] = {}
    return tuple(parse(model, data, path, line, texts) for line, data in read_objects(path))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON document of a run folder, an object."""
    again = _WRITTEN_BY.get(path.stem, "evaluate")
    try:
        data = json.loads(read_text(path))
    except (ValueError, RecursionError) as problem:
        deep = isinstance(problem, RecursionError)
        why = "nested too deeply to be read" if deep else f"not JSON ({problem})"
        raise InputError(
            f"this is {why}; delete it, and run  misslink {again}  again", path=path
        ) from None
    if not isinstance(data, dict):
        raise InputError("this is not a JSON object", path=path)
    return data
