"""An imported set as a folder: written aside, and put in place whole."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.jsonl import write_lines
from misslink.files.public.imported import Imported
from misslink.files.runfolder import told

__all__ = ["write_imported"]

_OURS = {
    "README.md",
    "goldset.jsonl",
    "goldset_with_answers.jsonl",
    "labels.jsonl",
    "traces.jsonl",
    "traces_a.jsonl",
    "traces_b.jsonl",
    "verdicts.jsonl",
}


def write_imported(
    imported: Imported, name: str, out: Path, *, overwrite: bool = False
) -> dict[str, Any]:
    """Write a set as gold sets, traces, verdicts, labels and a README.md.

    Parameters
    ----------
    imported : Imported
    name : str
        What its importer is called.
    out : Path
        The folder; one that holds something is refused.
    overwrite : bool
        Replace such files in it all the same; what else it holds stays.

    Returns
    -------
    dict
        ``importer, out, title, source, licence``; ``cases`` and ``files``; ``labels``: by metric
        how many (``n``), how many of them good (``good``), and by how many ``annotators``;
        ``verdicts``, ``left_out``, ``notes`` and ``next``.

    Raises
    ------
    InputError
        The folder holds something, or cannot be written.
    """
    place = out.resolve()
    if place == Path.cwd():
        raise InputError("the set needs a folder of its own; name a new one", path=out)
    aside = place.parent / f".{place.name}.misslink-partial"
    retired = place.parent / f".{place.name}.misslink-old"
    with told(out):
        _finish(retired, place)
        if place.exists() and not place.is_dir():
            raise InputError("this is a file; give another --out", path=out)
        if place.is_dir() and any(place.iterdir()) and not overwrite:
            raise InputError(
                "this folder holds something; choose another --out, or add --overwrite", path=out
            )
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        try:
            document = _fill(aside, imported, name, out)
            if place.exists():
                place.rename(retired)
            aside.rename(place)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        _finish(retired, place)
    return document


def _finish(retired: Path, place: Path) -> None:
    """End a swap, also one that a killed process began: what is not ours goes back in place."""
    if not retired.is_dir():
        return
    if not place.exists():  # killed between its two steps
        retired.rename(place)
        return
    for each in retired.iterdir():
        if each.name not in _OURS and not (place / each.name).exists():
            each.rename(place / each.name)
    shutil.rmtree(retired)


def _fill(folder: Path, imported: Imported, name: str, out: Path) -> dict[str, Any]:
    for kind in (imported.goldsets, imported.traces):
        for file, items in kind.items():
            write_lines(folder / file, items)
    _write(folder / "labels.jsonl", imported.labels)
    if imported.verdicts:
        _write(folder / "verdicts.jsonl", imported.verdicts)
    document = {
        "importer": name,
        "out": str(out),
        "title": imported.title,
        "source": imported.source,
        "licence": imported.licence,
        "cases": len({label["case_id"] for label in imported.labels}),
        "labels": _counted(imported.labels),
        "verdicts": len(imported.verdicts),
        "left_out": {why: count for why, count in imported.left_out.items() if count},
        "notes": list(imported.notes),
        "next": [command.format(dir=shlex.quote(str(out))) for command in imported.commands],
    }
    (folder / "README.md").write_text(_readme(document), encoding="utf-8")
    return document | {"files": sorted(each.name for each in folder.iterdir())}


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _counted(labels: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, Any]] = {}
    for label in labels:
        one = found.setdefault(label["metric"], {"n": 0, "good": 0, "annotators": set()})
        one["n"] += 1
        one["good"] += label["label"] >= 1 / 2
        one["annotators"].add(label["annotator"])
    return {metric: one | {"annotators": len(one["annotators"])} for metric, one in found.items()}


def _readme(document: Mapping[str, Any]) -> str:
    rows = [
        f"| {metric} | {one['n']:,} | {one['good']:,} | {one['annotators']} |"
        for metric, one in document["labels"].items()
    ]
    left = [f"- {count:,} left out: {why}." for why, count in document["left_out"].items()]
    return "\n".join(
        [
            f"# {document['title']}",
            "",
            f"From {document['source']}. Licence: {document['licence']}.",
            f"Made by `misslink import {document['importer']}`: {document['cases']:,} cases.",
            "",
            "| metric | labels | of them good | annotators |",
            "| --- | --: | --: | --: |",
            *rows,
            "",
            *(f"- {note}" for note in document["notes"]),
            *left,
            "",
            "What to do with it:",
            "",
            "```",
            *document["next"],
            "```",
            "",
        ]
    )
