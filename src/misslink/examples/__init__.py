"""Example data that the package ships: questions, passages and recorded answers, all made up."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TypedDict


class Example(TypedDict):
    """The files of an example, by the names of `misslink.evaluate`."""

    goldset: str
    traces: str
    corpus: str


def load_example(name: str = "ferry") -> Example:
    """Return the paths of an example's gold set, traces and corpus, by the names of `evaluate`.

    Parameters
    ----------
    name : str
        ``ferry``: 40 questions to the help desk of a ferry line, with 26 passages. The traces were
        written by hand over a real keyword search for two passages.

    Returns
    -------
    Example
        A dict of ``goldset``, ``traces`` and ``corpus``.

    Examples
    --------
    >>> from misslink.examples import load_example
    >>> sorted(load_example("ferry"))
    ['corpus', 'goldset', 'traces']
    """
    folder = Path(__file__).parent / name
    return Example(
        goldset=str(folder / "goldset.jsonl"),
        traces=str(folder / "traces.jsonl"),
        corpus=str(folder / "corpus.jsonl"),
    )


def copy_example(name: str, folder: str | Path) -> list[Path]:
    """Copy the files of an example into a folder; existing files are replaced."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    sources = sorted(path for path in (Path(__file__).parent / name).iterdir() if path.is_file())
    return [Path(shutil.copy(source, folder / source.name)) for source in sources]
