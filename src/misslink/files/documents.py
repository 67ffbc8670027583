"""What later commands add to a run folder, each file replaced whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from misslink.errors import InputError
from misslink.files.addresses import shown, url_of
from misslink.files.jsonl import write_lines
from misslink.files.runfolder import holds_run, told, write_json
from misslink.types import Run

__all__ = ["add_to_run"]


def add_to_run(
    folder: str | Path,
    run: Run,
    name: Literal["replay", "whatif", "calibration", "audit"],
    document: Mapping[str, Any],
    reports: Mapping[str, Callable[[Run, Path], object]],
) -> Run:
    """Put a document into a run folder, with the run's links and reports that show both.

    Parameters
    ----------
    folder : str or Path
    run : Run
        As it is now; its links are written too, for a replay changes what they rest on.
    name : {'replay', 'whatif', 'calibration', 'audit'}
    document : mapping
    reports : mapping of str to callable
        File name to what writes it, given the run and a path.

    Returns
    -------
    Run
        With the document.

    Raises
    ------
    InputError
        It is no run folder, or it cannot be written.
    """
    if url_of(folder) is not None:
        raise InputError(
            "this run is in a storage, where nothing is added to it; copy it to this disk",
            path=shown(folder),
        )
    folder = Path(folder)
    if not holds_run(folder):
        raise InputError("this is no run folder", path=folder)
    fresh = run.model_copy(update={name: dict(document)})
    writers: dict[str, Callable[[Path], object]] = {
        "links.jsonl": lambda path: write_lines(path, fresh.links),
        f"{name}.json": lambda path: write_json(path, document),
    }
    for file, write in reports.items():
        writers[file] = partial(write, fresh)
    with told(folder):
        _all_replaced(folder, writers)
    return fresh


def _all_replaced(folder: Path, writers: Mapping[str, Callable[[Path], object]]) -> None:
    """Write every file aside, which takes its time, then put all in place at once."""
    asides = {name: folder / f".{name}.{os.getpid()}.partial" for name in writers}
    try:
        for name, write in writers.items():
            write(asides[name])
        for name, aside in asides.items():
            os.replace(aside, folder / name)  # noqa: PTH105 (it says what it does)
    finally:
        for aside in asides.values():
            aside.unlink(missing_ok=True)
