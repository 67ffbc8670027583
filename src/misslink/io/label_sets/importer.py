"""What an importer of published label sets is given, and the folder it writes."""

from __future__ import annotations

import json
import shlex
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from misslink.errors import InputError, known_names
from misslink.io.jsonl import describe_json, write_jsonl
from misslink.io.labels import parse_id
from misslink.io.run_folder import write_errors
from misslink.text.normalization import valid_text
from misslink.types import Case, Passage, Trace

OTHER_SPLIT = "another split or task"
# Next commands for a set with traces.
EVALUATE_COMMAND = (
    "misslink evaluate --traces {dir}/traces.jsonl --goldset {dir}/goldset.jsonl "
    "--judge heuristic --out {dir}-run"
)
CALIBRATE_COMMAND = "misslink calibrate {dir}-run --labels {dir}/labels.jsonl"

_SPLITS = ("train", "dev", "test")
_MAX_FIELDS = 6  # shown of a file that is something else
_MAX_CHARACTERS = 40


@dataclass(frozen=True)
class ImportOptions:
    """Which part of a label set to import, and how to read its labels.

    Parameters
    ----------
    split : str or None
        Such as 'train', 'dev' or 'test'. None: all.
    task : str or None
        Of RAGTruth: 'QA', 'Summary' or 'Data2txt'. None: all.
    implicit_true : {'unfaithful', 'faithful'}
        Label of an answer whose marked spans are all true, but not stated in a passage.
    """

    split: str | None = None
    task: str | None = None
    implicit_true: Literal["unfaithful", "faithful"] = "unfaithful"


@dataclass(frozen=True)
class ImportedLabelSet:
    """A published label set in misslink's own files.

    Parameters
    ----------
    title, source, licence : str
        What it is, a paper or an address, and its terms.
    labels : sequence of mapping
        ``case_id, metric, label, annotator`` and optionally ``comment``.
    goldsets : mapping of str to sequence of Case
        By file name.
    traces : mapping of str to sequence of Trace
        By file name.
    verdicts : sequence of mapping
        Of a judge of the set's own: ``case_id, metric, value, judge``.
    notes : sequence of str
        What a reader must know, a sentence each.
    commands : sequence of str
        Next commands; ``{dir}`` stands for the folder.
    left_out : mapping of str to int
        Number of entries that were not imported, by reason.
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


class LabelSetImporter(Protocol):
    """Reads the files of one published label set.

    Raises ``InputError`` if they are of another set, broken, or hold nothing of the selection.
    """

    def __call__(self, paths: Sequence[Path], options: ImportOptions) -> ImportedLabelSet:
        """Read files, in any order."""
        ...


def reject_unsupported_options(
    options: ImportOptions, name: str, *, split: bool = False, task: bool = False
) -> None:
    """Raise InputError if an option selects a part that the set `name` does not have."""
    if options.split is not None and not split:
        raise InputError(f"{name} has no splits; leave --split out")
    if options.task is not None and not task:
        raise InputError(f"{name} has no tasks; leave --task out")
    if options.implicit_true != "unfaithful" and not task:
        raise InputError(f"{name} marks nothing as implicitly true; leave --implicit-true out")


class LabelSetBuilder:
    """Collects the cases, traces and labels of the selected split and task.

    Parameters
    ----------
    options : ImportOptions
    annotator : str
        Of the labels.
    """

    def __init__(self, options: ImportOptions, annotator: str) -> None:
        self.options, self.annotator = options, annotator
        self.cases: dict[str, Case] = {}
        self.traces: list[Trace] = []
        self.labels: list[dict[str, Any]] = []
        self.left_out: Counter[str] = Counter()
        self._splits: set[str] = set()
        self._tasks: set[str] = set()

    def selects(self, split: str | None, task: str | None = None) -> bool:
        """Return whether an entry of this split and task is imported; count it otherwise."""
        self._splits.add(split or "")
        self._tasks.add(task or "")
        options = self.options
        selected = options.split in {None, split} and options.task in {None, task}
        self.left_out[OTHER_SPLIT] += not selected
        return selected

    def add(self, case: Case, passages: tuple[Passage, ...], answer: str) -> None:
        """Add a case and its trace, with every passage in the prompt."""
        self.cases[case.id] = case
        ids = tuple(passage.id for passage in passages)
        self.traces.append(Trace(case_id=case.id, retrieved=passages, prompted=ids, answer=answer))

    def label(self, case_id: str, metric: str, label: float, comment: str = "") -> None:
        """Add a label."""
        row = {"case_id": case_id, "metric": metric, "label": label, "annotator": self.annotator}
        self.labels.append(row | ({"comment": comment} if comment else {}))

    def finish(self, **description: Any) -> ImportedLabelSet:
        """Return the set; `description` holds its other fields.

        Raises
        ------
        InputError
            No entry is of the selected split and task.
        """
        if not self.cases:
            raise self._empty_selection_error()
        return ImportedLabelSet(
            labels=self.labels,
            traces={"traces.jsonl": self.traces},
            left_out=self.left_out,
            **{"goldsets": {"goldset.jsonl": tuple(self.cases.values())}, **description},
        )

    def _empty_selection_error(self) -> InputError:
        options = self.options
        for option, selected, names in (
            ("split", options.split, self._splits),
            ("task", options.task, self._tasks),
        ):
            if selected is not None and selected not in names:
                metric_names = sorted(names - {""})
                hint = (
                    known_names(selected, metric_names, " here")
                    if metric_names
                    else "the files name none"
                )
                return InputError(f"nothing is of --{option} {selected}; {hint}")
        return InputError(
            f"nothing is of --split {options.split} and --task {options.task} at once"
        )


@dataclass(frozen=True)
class SourceRow:
    """One entry of a file, with its location for messages."""

    row: Mapping[str, Any]
    path: Path
    line: int | None

    def has(self, *fields: str) -> bool:
        """Return whether all these fields exist, empty or not."""
        return all(field in self.row for field in fields)

    def wrong(self, problem: str, field: str | None = None) -> InputError:
        """Return an error that names this location."""
        return InputError(problem, path=self.path, line=self.line, field=field)

    def unknown(self, name: str, files: str) -> InputError:
        """Return the error that this is no entry of the set `name`, which comes in `files`."""
        fields = [str(field) for field in self.row][:_MAX_FIELDS]
        more = ", ..." if len(self.row) > _MAX_FIELDS else ""
        listed = f"it has the fields {', '.join(fields)}{more}" if fields else "it has no field"
        return self.wrong(f"this is not of {name} ({listed}); give {files}")

    def repeated(self, kind: str, name: str, field: str | None = None) -> InputError:
        """Return the error that an entry is repeated."""
        return self.wrong(f"the {kind} '{name}' stands twice; name each file once", field)

    def text(self, field: str, *, blank: bool = False) -> str:
        """Return a text; an empty one only if `blank`."""
        text = self._typed(field, str, "text")
        if not blank and not text.strip():
            raise self.wrong("this text is empty; take the entry out", field)
        return valid_text(text)

    def id(self, field: str) -> str:
        """Return an id: text, or a whole number as its digits."""
        value = self._value(field)
        name = parse_id(value)
        if name is None:
            kind = describe_json(value)
            raise self.wrong(f"an id is text or a whole number, not {kind}", field)
        return name

    def word(self, field: str) -> str | None:
        """Return a short text; None if the field is missing or empty."""
        value = self.row.get(field)
        if value is None or isinstance(value, list | dict):
            return None
        return valid_text(str(value)).strip() or None

    def whole(self, field: str, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`."""
        return self.whole_of(self._value(field), field, low, high)

    def whole_of(self, value: object, field: str, low: int, high: int) -> int:
        """Return a value of a field as such a number."""
        digits = parse_id(value)
        try:
            number = int(digits or "")
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            text = describe_json(value) if digits is None else repr(digits[:_MAX_CHARACTERS])
            raise self.wrong(f"{text} is no whole number from {low} to {high}", field)
        return number

    def truth(self, field: str) -> bool:
        """Return true or false."""
        value: bool = self._typed(field, bool, "true or false")
        return value

    def objects(self, field: str) -> list[SourceRow]:
        """Return a list of objects, each with this location."""
        values = self._list(field, dict, "objects")
        return [SourceRow(value, self.path, self.line) for value in values]

    def object(self, field: str) -> SourceRow:
        """Return an object with this location."""
        return SourceRow(self._typed(field, dict, "an object"), self.path, self.line)

    def texts(self, field: str) -> list[str]:
        """Return a list of texts, which may be empty."""
        return [valid_text(text) for text in self._list(field, str, "texts")]

    def _value(self, field: str) -> Any:
        if field not in self.row:
            raise self.wrong("this field is missing; download the file again", field)
        return self.row[field]

    def _typed(self, field: str, kind: type, name: str) -> Any:
        value = self._value(field)
        if not isinstance(value, kind):
            raise self.wrong(f"this should be {name}, not {describe_json(value)}", field)
        return value

    def _list(self, field: str, kind: type, name: str) -> list[Any]:
        values = self._value(field)
        if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
            raise self.wrong(f"this should be a list of {name}", field)
        return values


def read_tsv(path: Path, lines: Sequence[str], header: Sequence[str]) -> list[SourceRow]:
    """Return the rows below the header of a tab-separated file without quotes."""
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        fields = line.rstrip("\r").split("\t")
        row = SourceRow(dict(zip(header, fields, strict=False)), path, number)
        if len(fields) != len(header):
            raise row.wrong(
                f"{len(fields)} fields where the first line names {len(header)}; download the "
                "file again"
            )
        rows.append(row)
    if not rows:
        raise InputError("there is no line below the names", path=path)
    return rows


def number_passages(owner: str, texts: Sequence[str]) -> tuple[Passage, ...]:
    """Return texts as passages of `owner`, with the same ids wherever it occurs."""
    return tuple(
        Passage(id=f"{owner}-p{rank}", text=text, rank=rank)
        for rank, text in enumerate(texts, start=1)
    )


def detect_split(path: Path, splits: Collection[str] = _SPLITS) -> str | None:
    """Return the split in a file's name; None if it has none, or several.

    >>> detect_split(Path("clapnq_dev_answerable.jsonl")), detect_split(Path("all.jsonl"))
    ('dev', None)
    """
    words = path.stem.casefold().replace("-", "_").replace(".", "_").split("_")
    named = [split for split in splits if split in words]
    return named[0] if len(named) == 1 else None


_SET_FILES = {
    *("README.md", "labels.jsonl", "verdicts.jsonl", "goldset.jsonl", "goldset_with_answers.jsonl"),
    *("traces.jsonl", "traces_a.jsonl", "traces_b.jsonl"),
}


def write_label_set(
    imported: ImportedLabelSet, name: str, out: Path, *, overwrite: bool = False
) -> dict[str, Any]:
    """Write a set as gold sets, traces, verdicts, labels and a README.md, all or nothing.

    Parameters
    ----------
    imported : ImportedLabelSet
    name : str
        Of its importer.
    out : Path
        The folder; one that holds something is refused.
    overwrite : bool
        Replace the set's files in it all the same; other files stay.

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
    folder = out.resolve()
    if folder == Path.cwd():
        raise InputError("the set needs its own folder. Name a new one", path=out)
    partial = folder.parent / f".{folder.name}.misslink-partial"
    retired = folder.parent / f".{folder.name}.misslink-old"
    with write_errors(out):
        _finish_swap(retired, folder)
        if folder.exists() and not folder.is_dir():
            raise InputError("this is a file; give another --out", path=out)
        if folder.is_dir() and any(folder.iterdir()) and not overwrite:
            raise InputError(
                "this folder holds something; choose another --out, or add --overwrite", path=out
            )
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            document = _write_files(partial, imported, name, out)
            if folder.exists():
                folder.rename(retired)
            partial.rename(folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        _finish_swap(retired, folder)
    return document


def _finish_swap(retired: Path, folder: Path) -> None:
    """End a swap, also one of a killed process: files of others return to the folder."""
    if not retired.is_dir():
        return
    if not folder.exists():  # killed between the two renames
        retired.rename(folder)
        return
    for file in retired.iterdir():
        if file.name not in _SET_FILES and not (folder / file.name).exists():
            file.rename(folder / file.name)
    shutil.rmtree(retired)


def _write_files(folder: Path, imported: ImportedLabelSet, name: str, out: Path) -> dict[str, Any]:
    for file, items in (*imported.goldsets.items(), *imported.traces.items()):
        write_jsonl(folder / file, items)
    for file, rows in (("labels.jsonl", imported.labels), ("verdicts.jsonl", imported.verdicts)):
        if rows or file == "labels.jsonl":
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            (folder / file).write_text("".join(lines), encoding="utf-8")
    document = {
        "importer": name,
        "out": str(out),
        "title": imported.title,
        "source": imported.source,
        "licence": imported.licence,
        "cases": len({label["case_id"] for label in imported.labels}),
        "labels": _count_labels(imported.labels),
        "verdicts": len(imported.verdicts),
        "left_out": {reason: count for reason, count in imported.left_out.items() if count},
        "notes": list(imported.notes),
        "next": [command.format(dir=shlex.quote(str(out))) for command in imported.commands],
    }
    (folder / "README.md").write_text(_format_readme(document), encoding="utf-8")
    return document | {"files": sorted(file.name for file in folder.iterdir())}


def _count_labels(labels: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    by_metric: dict[str, list[Mapping[str, Any]]] = {}
    for label in labels:
        by_metric.setdefault(label["metric"], []).append(label)
    return {
        metric: {
            "n": len(group),
            "good": sum(label["label"] >= 1 / 2 for label in group),
            "annotators": len({label["annotator"] for label in group}),
        }
        for metric, group in by_metric.items()
    }


def _format_readme(document: Mapping[str, Any]) -> str:
    rows = "\n".join(
        f"| {metric} | {counts['n']:,} | {counts['good']:,} | {counts['annotators']} |"
        for metric, counts in document["labels"].items()
    )
    notes = [*document["notes"]]
    notes += [f"{count:,} left out: {reason}." for reason, count in document["left_out"].items()]
    listed = "\n".join(f"- {note}" for note in notes)
    commands = "\n".join(document["next"])
    return f"""# {document["title"]}

From {document["source"]}. Licence: {document["licence"]}.
Written by `misslink import {document["importer"]}`: {document["cases"]:,} cases.

| metric | labels | of them good | annotators |
| --- | --: | --: | --: |
{rows}

{listed}

Next commands:

```
{commands}
```
"""
