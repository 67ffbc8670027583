"""What an importer of published label sets is given, and the folder it writes."""

from __future__ import annotations

import json
import shlex
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator

from misslink.errors import InputError, known_names
from misslink.io.atomic import finish_folder_swap, folder_errors
from misslink.io.jsonl import SourceItem, read_objects, write_jsonl
from misslink.io.labels import parse_id
from misslink.io.manifest import answer_hash
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

Row = TypeVar("Row", bound=BaseModel)


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

    def require_support(self, name: str, *, split: bool = False, task: bool = False) -> None:
        """Raise InputError if an option selects a part that the set `name` does not have."""
        if self.split is not None and not split:
            raise InputError(f"{name} has no splits; leave --split out")
        if self.task is not None and not task:
            raise InputError(f"{name} has no tasks; leave --task out")
        if self.implicit_true != "unfaithful" and not task:
            raise InputError(f"{name} marks nothing as implicitly true; leave --implicit-true out")


@dataclass(frozen=True)
class ImportedLabelSet:
    """A published label set in misslink's own files.

    Parameters
    ----------
    title, source, licence : str
        What it is, a paper or an address, and its terms.
    labels : sequence of mapping
        ``case_id, metric, label, annotator`` and optionally ``comment``. What is written has the
        hash of the answer, too.
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

    def add(self, row: SourceItem, case: Case, passages: tuple[Passage, ...], answer: str) -> None:
        """Add a case and its trace, with every passage in the prompt.

        Raises
        ------
        InputError
            There is a case of this id.
        """
        if case.id in self.cases:
            raise row.error(f"'{case.id}' occurs twice; name each file once", "id")
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
        options = self.options
        if not self.cases:
            problem = f"nothing is of --split {options.split} and --task {options.task} at once"
            for option, selected, there in (
                ("task", options.task, self._tasks),
                ("split", options.split, self._splits),
            ):
                if selected is not None and selected not in there:
                    known = known_names(selected, sorted(there - {""}), " here")
                    hint = known if there - {""} else "the files name none"
                    problem = f"nothing is of --{option} {selected}; {hint}"
            raise InputError(problem)
        return ImportedLabelSet(
            labels=self.labels,
            traces={"traces.jsonl": self.traces},
            left_out=self.left_out,
            **{
                "goldsets": {"goldset.jsonl": tuple(self.cases.values())},
                "commands": (EVALUATE_COMMAND, CALIBRATE_COMMAND),
                **description,
            },
        )


def _parse_id(value: object) -> str:
    name = parse_id(value)
    if name is None:
        raise ValueError("an id is text or a whole number")
    return name


def require_text(text: str) -> str:
    if not text.strip():
        raise ValueError("this text is empty; take the entry out")
    return text


def _short_text(value: object) -> str | None:
    return None if value is None or isinstance(value, list | dict) else str(value).strip() or None


def _digits(value: object) -> object:
    return None if isinstance(value, bool) else parse_id(value) or value


# Types of the fields of a row.
Id = Annotated[str, BeforeValidator(_parse_id)]  # text, or a whole number as its digits
Word = Annotated[str | None, BeforeValidator(_short_text)]  # a short text; None if empty
Text = Annotated[str, AfterValidator(require_text)]  # not empty
Whole = Annotated[int, BeforeValidator(_digits)]  # also as text


def read_rows_of(
    path: Path, name: str, files: str, forms: Mapping[type[Row], Sequence[str]]
) -> Iterator[tuple[SourceItem, Row]]:
    """Yield the rows of a file, each as the first form all of whose key fields it has.

    Parameters
    ----------
    path : Path
    name, files : str
        The label set and its files, for the message about a row of no form.
    forms : mapping of type to sequence of str
        Models of rows, and the fields by which each is recognized.
    """
    for item in read_objects(path):
        entry = item.data
        model = next((m for m, fields in forms.items() if entry.keys() >= set(fields)), None)
        if model is None:
            shown = ", ".join([*entry][:_MAX_FIELDS]) + ", ..." * (len(entry) > _MAX_FIELDS)
            fields = f"the fields {shown}" if entry else "no field"
            raise item.error(f"this is not of {name} (it has {fields}); give {files}")
        yield item, item.parse(model)


def read_tsv(path: Path, text: str, header: Sequence[str]) -> list[SourceItem]:
    """Return the rows below the header of a tab-separated file without quotes."""
    rows = []
    for number, line in enumerate(text.split("\n")[1:], start=2):  # a field may hold U+2028
        if not line.strip():
            continue
        fields = line.rstrip("\r").split("\t")
        row = SourceItem(dict(zip(header, fields, strict=False)), str(path), number)
        if len(fields) != len(header):
            raise row.error(
                f"{len(fields)} fields where the first line names {len(header)}; download the "
                "file again"
            )
        rows.append(row)
    if not rows:
        raise InputError("the file has column names and no rows", path=path)
    return rows


def number_passages(owner: str, texts: Sequence[str]) -> tuple[Passage, ...]:
    """Return texts as passages of `owner`, with the same ids wherever it occurs."""
    return tuple(
        Passage(id=f"{owner}-p{rank}", text=text, rank=rank)
        for rank, text in enumerate(texts, start=1)
    )


def detect_split(path: Path) -> str | None:
    """Return the split in a file's name; None if it has none, or several.

    >>> detect_split(Path("clapnq_dev_answerable.jsonl")), detect_split(Path("all.jsonl"))
    ('dev', None)
    """
    words = path.stem.casefold().replace("-", "_").replace(".", "_").split("_")
    named = [split for split in _SPLITS if split in words]
    return named[0] if len(named) == 1 else None


_SET_FILES = {
    *("README.md", "labels.jsonl", "verdicts.jsonl", "goldset.jsonl", "goldset_with_answers.jsonl"),
    *("traces.jsonl", "traces_a.jsonl", "traces_b.jsonl"),
}


def write_label_set(
    imported: ImportedLabelSet, name: str, out: Path, *, overwrite: bool = False
) -> dict[str, object]:
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
    with folder_errors(out):
        finish_folder_swap(retired, folder, _SET_FILES, _SET_FILES)
        if folder.exists() and not folder.is_dir():
            raise InputError("this is a file; give another --out", path=out)
        if folder.is_dir() and any(folder.iterdir()) and not overwrite:
            raise InputError(
                "this folder is not empty; choose another --out, or add --overwrite", path=out
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
        finish_folder_swap(retired, folder, _SET_FILES, _SET_FILES)
    return document


def _write_files(
    folder: Path, imported: ImportedLabelSet, name: str, out: Path
) -> dict[str, object]:
    for file, items in (*imported.goldsets.items(), *imported.traces.items()):
        write_jsonl(folder / file, items)
    # A set that compares two answers to a question has two of a case.
    answered = [trace for traces in imported.traces.values() for trace in traces]
    once = {name for name, n in Counter(t.case_id for t in answered).items() if n == 1}
    answers = {t.case_id: answer_hash(t.answer or "") for t in answered if t.case_id in once}
    for file, rows in (("labels.jsonl", imported.labels), ("verdicts.jsonl", imported.verdicts)):
        if rows or file == "labels.jsonl":
            hashed = (
                {**row, "answer_hash": answers[row["case_id"]]}
                if row["case_id"] in answers
                else row
                for row in rows
            )
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in hashed)
            (folder / file).write_text("".join(lines), encoding="utf-8")
    counts: dict[str, dict[str, int]] = {}
    for metric in dict.fromkeys(label["metric"] for label in imported.labels):
        group = [label for label in imported.labels if label["metric"] == metric]
        counts[metric] = {
            "n": len(group),
            "good": sum(label["label"] >= 1 / 2 for label in group),
            "annotators": len({label["annotator"] for label in group}),
        }
    document = {
        "importer": name,
        "out": str(out),
        "title": imported.title,
        "source": imported.source,
        "licence": imported.licence,
        "cases": len({label["case_id"] for label in imported.labels}),
        "labels": counts,
        "verdicts": len(imported.verdicts),
        "left_out": {reason: count for reason, count in imported.left_out.items() if count},
        "notes": list(imported.notes),
        "next": [command.format(dir=shlex.quote(str(out))) for command in imported.commands],
    }
    (folder / "README.md").write_text(_format_readme(document), encoding="utf-8")
    return document | {"files": sorted(file.name for file in folder.iterdir())}


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
Written by `misslink goldset import --format {document["importer"]}`: {document["cases"]:,} cases.

| metric | labels | of them good | annotators |
| --- | --: | --: | --: |
{rows}

{listed}

Next commands:

```
{commands}
```
"""
