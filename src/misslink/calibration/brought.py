"""Labels from several sources at once: a file of each annotator, a folder, a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.labels import Label, Labels, read_labels
from misslink.manifest import shown_path

__all__ = ["bring"]

_WAY = "keep one, or settle it with a label by the annotator 'adjudicated'"


def bring(sources: Any) -> Labels:
    """Read labels from one source or from several.

    Parameters
    ----------
    sources : Labels, what `read_labels` takes, or sequence of path
        A sequence of paths is several sources, such as a file of each annotator.

    Returns
    -------
    Labels
        A label that stands in two files counts once.

    Raises
    ------
    InputError
        A source cannot be read, or in two of them one annotator labels the same differently, a
        case has two weights, or labels have weights in one alone.
    """
    if isinstance(sources, Labels):
        return sources
    if isinstance(sources, list | tuple) and all(isinstance(one, str | Path) for one in sources):
        if not sources:
            raise InputError("no labels are given; name a file of labels")
        read = [read_labels(one) for one in dict.fromkeys(map(str, sources))]
        return read[0] if len(read) == 1 else _merged(read)
    return read_labels(sources)


def _merged(read: Sequence[Labels]) -> Labels:
    found: dict[tuple[str, str, int | None, str], tuple[Label, str]] = {}
    weights: dict[tuple[str, str], tuple[Label, str]] = {}
    for labels in read:
        for label in labels.items:
            key = (label.case_id, label.metric, label.claim, label.annotator)
            before, there = found.setdefault(key, (label, labels.name))
            if before.value != label.value:
                _refuse(
                    f"{label.annotator} labels this {label.value:g} here and {before.value:g} in "
                    f"{_on(before, there)}; {_WAY}",
                    label,
                    labels.name,
                    "label",
                )
            weighed, where = weights.setdefault(key[:2], (label, labels.name))
            if weighed.weight != label.weight:
                _refuse(
                    f"this case has the weight {_written(label)} here and {_written(weighed)} in "
                    f"{_on(weighed, where)}; a case has one",
                    label,
                    labels.name,
                    "weight",
                )
    bare = next(((one, at) for one, at in weights.values() if one.weight is None), None)
    known = next(((one, at) for one, at in weights.values() if one.weight is not None), None)
    if bare and known:
        _refuse(
            f"this case has no weight, but that in {_on(*known)} has; give all or none",
            *bare,
            "weight",
        )
    name = ", ".join(shown_path(labels.name) for labels in read)
    # A line of one file says nothing of which file it is in.
    return Labels(tuple(replace(label, line=None) for label, _ in found.values()), name)


def _refuse(problem: str, label: Label, name: str, field: str) -> None:
    raise InputError(problem, path=name, line=label.line, field=field)


def _written(label: Label) -> str:
    return "none" if label.weight is None else f"{label.weight:g}"


def _on(label: Label, name: str) -> str:
    return shown_path(name) if label.line is None else f"{shown_path(name)} line {label.line}"
