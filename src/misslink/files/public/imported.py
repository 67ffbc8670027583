"""What an importer is given, and what it makes of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from misslink.errors import InputError, known_names
from misslink.types import Case, Trace

__all__ = [
    "CALIBRATE",
    "EVALUATE",
    "SKIPPED",
    "Imported",
    "Importer",
    "Wanted",
    "none_left",
    "refuse_unasked",
]

SKIPPED = "another split or task"
# What comes next, of a set with traces and of one whose run they made.
EVALUATE = (
    "misslink evaluate --traces {dir}/traces.jsonl --goldset {dir}/goldset.jsonl "
    "--judge embedded --out {dir}-run"
)
CALIBRATE = "misslink calibrate {dir}-run --labels {dir}/labels.jsonl"


@dataclass(frozen=True)
class Wanted:
    """Which part of a set is wanted, and how its labels are read.

    Parameters
    ----------
    split : str or None
        Such as 'train', 'dev' or 'test'. None: all.
    task : str or None
        Of RAGTruth: 'QA', 'Summary' or 'Data2txt'. None: all.
    implicit_true : {'unfaithful', 'faithful'}
        What an answer counts as whose only marked spans are true, though no passage says so.
    """

    split: str | None = None
    task: str | None = None
    implicit_true: Literal["unfaithful", "faithful"] = "unfaithful"


@dataclass(frozen=True)
class Imported:
    """A published set in misslink's own files.

    Parameters
    ----------
    title, source, licence : str
        What it is, where it is from (a paper or an address), and on what terms.
    labels : sequence of mapping
        ``case_id, metric, label, annotator`` and where there is one ``comment``.
    goldsets : mapping of str to sequence of Case
        By file name.
    traces : mapping of str to sequence of Trace
        By file name.
    verdicts : sequence of mapping
        What a judge of the set's own said: ``case_id, metric, value, judge``.
    notes : sequence of str
        What a reader must know of it, a sentence each.
    commands : sequence of str
        What to do with it; ``{dir}`` stands for the folder.
    left_out : mapping of str to int
        How many entries of the files are not in it, by reason.
    """

    title: str
    source: str
    licence: str
    labels: Sequence[Mapping[str, Any]]
    goldsets: Mapping[str, Sequence[Case]] = field(default_factory=dict)
    traces: Mapping[str, Sequence[Trace]] = field(default_factory=dict)
    verdicts: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()
    commands: Sequence[str] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


class Importer(Protocol):
    """Reads the files of one published set.

    ``InputError`` where they are not of it, are broken, or hold nothing that is wanted.
    """

    def __call__(self, paths: Sequence[Path], wanted: Wanted) -> Imported:
        """Read files, in whatever order they are named."""
        ...


def refuse_unasked(wanted: Wanted, name: str, *, split: bool = False, task: bool = False) -> None:
    """Raise where a part is wanted of a set that has no such parts.

    Parameters
    ----------
    wanted : Wanted
    name : str
        What the set is called.
    split, task : bool
        Which parts it has.

    Raises
    ------
    InputError
    """
    if wanted.split is not None and not split:
        raise InputError(f"{name} has no splits; leave --split out")
    if wanted.task is not None and not task:
        raise InputError(f"{name} has no tasks; leave --task out")
    if wanted.implicit_true != "unfaithful" and not task:
        raise InputError(f"{name} marks nothing as implicitly true; leave --implicit-true out")


def none_left(wanted: Wanted, splits: Collection[str], tasks: Collection[str] = ()) -> InputError:
    """Return the error that no entry is of the wanted split and task.

    Parameters
    ----------
    wanted : Wanted
    splits, tasks : collection of str
        Those that the files hold; none may be known.
    """
    for option, asked, held in (("split", wanted.split, splits), ("task", wanted.task, tasks)):
        if asked is not None and asked not in held:
            there = sorted(held)
            told = known_names(asked, there, " here") if there else "the files name none"
            return InputError(f"nothing is of --{option} {asked}; {told}")
    return InputError(f"nothing is of --split {wanted.split} and --task {wanted.task} at once")
