"""Write an annotator's labels to disk, and export those of all annotators."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

from misslink.errors import InputError, known_names
from misslink.io import label_folder
from misslink.io.atomic import atomic_write, lock_open_file
from misslink.io.labels import ADJUDICATED
from misslink.io.rows import escape_formula
from misslink.text.normalization import valid_text

_MAX_COMMENT = 2000  # characters
_DEVICE_NAMES = re.compile(r"con|prn|aux|nul|(?:com|lpt)[1-9]")


class UnsavedError(InputError):
    """A label could not be written; the file is unchanged."""


def validate_annotator(name: str) -> str:
    """Return the normalized name of an annotator, which is valid as a file name.

    Raises
    ------
    InputError
        It is invalid, or reserved for adjudication.
    """
    name = label_folder.normalize_name(name.strip(" "))
    if not label_folder.is_annotator_name(name):
        raise InputError(
            "a name is 1 to 40 letters or digits of any script, hyphens, underscores, dots or "
            "single blanks; it begins with a letter, digit or underscore, and ends with no dot"
        )
    if _fold_name(name) == ADJUDICATED:
        raise InputError(f"the name '{ADJUDICATED}' is reserved for --adjudicate; use another")
    if _DEVICE_NAMES.fullmatch(_fold_name(name).partition(".")[0]):
        raise InputError(f"'{name}' is not a valid file name on Windows; use another name")
    return name


def validate_comment(comment: str) -> str:
    """Return a comment as it can be written; raise InputError if it is too long."""
    if len(comment) > _MAX_COMMENT:
        raise InputError(f"a comment has at most {_MAX_COMMENT:,} characters")
    return valid_text(comment)


def _fold_name(name: str) -> str:
    """A name without case and look-alike characters."""
    return label_folder.normalize_name(unicodedata.normalize("NFKC", name).casefold())


class UnchangedFolder:
    """Checks that a folder still holds the run, or the pool, that was opened.

    Parameters
    ----------
    run : Path
    file : str
        File of the folder that differs between runs.
    changed : str
        What happened if it changed.
    """

    def __init__(
        self,
        run: Path,
        *,
        file: str = "manifest.json",
        changed: str = "the run was evaluated again",
    ) -> None:
        self._manifest = run / file
        self._changed = changed
        self._before = self._manifest.read_bytes()

    def check(self) -> None:
        """Raise where it does not.

        Raises
        ------
        UnsavedError
            For a moment there is no run: one takes another's place.
        InputError
            It holds another.
        """
        try:
            now = self._manifest.read_bytes()
        except OSError:
            raise UnsavedError("the file is missing; try again", path=self._manifest) from None
        if now != self._before:
            raise InputError(
                f"{self._changed} since; end  misslink annotate  and start it again",
                path=self._manifest.parent,
            )


class LabelWriter:
    """The open label file of one annotator, locked for other processes.

    Parameters
    ----------
    folder : Path
        Folder of the labels; it is created if needed.
    annotator : str
        A name from `validate_annotator`, or 'adjudicated'.

    Raises
    ------
    InputError
        Another process has the file open, a name differs by case alone, a line is broken, or the
        file cannot be written.
    """

    _half: int | None = None  # bytes of whole lines, where half a line stands behind them

    def __init__(self, folder: Path, annotator: str) -> None:
        self.path = folder / f"{annotator}.jsonl"
        self.annotator = annotator
        for other in label_folder.journal_files(folder):
            if other != annotator and _fold_name(other) == _fold_name(annotator):
                raise InputError(
                    f"there are labels of '{other}' already; use that name, or another"
                )
        with _unsaved_message(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = self.path.open("ab", buffering=0)
        try:
            lock_open_file(
                self._file,
                self.path,
                "another misslink annotate has this open; continue there, stop it, or use another "
                "name",
            )
            journal = label_folder.read_journal(self.path)
            with _unsaved_message(self.path):
                self.notes = self._repair(journal.whole, cut=journal.cut)
        except BaseException:
            self._file.close()
            raise
        self.entries = list(journal.entries)

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    @property
    def labels(self) -> dict[label_folder.ItemKey, label_folder.JournalEntry]:
        """The current label of each item, including skipped ones."""
        return label_folder.current_labels(self.entries)

    def save(self, *entries: label_folder.JournalEntry) -> None:
        """Write entries to disk, all or none.

        Raises
        ------
        UnsavedError
            The disk is full or missing; nothing was written.
        """
        size = self._half
        try:
            if size is not None:  # a line cannot follow half of one
                self._file.truncate(size)
            size = os.fstat(self._file.fileno()).st_size
            self._half = size
            self._write("".join(f"{entry.line()}\n" for entry in entries).encode())
        except OSError as problem:
            if size is not None:
                with contextlib.suppress(OSError):  # the next label or start cuts it where not now
                    self._file.truncate(size)
                    self._half = None
            raise UnsavedError(
                f"your label could not be saved ({problem.strerror}); make room and try again",
                path=self.path,
            ) from None
        self._half = None
        self.entries += entries

    def close(self) -> None:
        """Close the file, and delete it if it is empty."""
        if not self._file.closed:
            if not self.entries and os.fstat(self._file.fileno()).st_size == 0:
                self.path.unlink(missing_ok=True)
            self._file.close()

    def _repair(self, whole: int, *, cut: bool) -> tuple[str, ...]:
        """Make the file end with a complete line."""
        if cut:
            self._file.truncate(whole)
            os.fsync(self._file.fileno())
            return ("the last label of an earlier session is incomplete and must be given again",)
        if whole:
            with self.path.open("rb") as file:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    self._write(b"\n")
        return ()

    def _write(self, data: bytes) -> None:
        while data:  # a full disk takes a part, and refuses the rest
            data = data[self._file.write(data) :]
        os.fsync(self._file.fileno())


@contextlib.contextmanager
def _unsaved_message(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise InputError(
            f"labels cannot be written there ({problem.strerror}); fix that, or copy the run to a "
            "folder that you can write to",
            path=path,
        ) from None


_FORMATS = ("csv", "jsonl")
_FORMULA_COLUMNS = ("comment",)


def export_labels(run: Path, path: Path) -> int:
    """Write all labels of a run into a file that `read_labels` reads.

    Parameters
    ----------
    run : Path
        The run folder.
    path : Path
        Ends with `.csv` or `.jsonl`.

    Returns
    -------
    int
        How many labels; skipped ones and those of changed answers are left out.

    Raises
    ------
    InputError
        There is no label, the ending is unknown, the file cannot be written, or it is in the
        folder of the labels.
    """
    form, folder = export_format(path), run / label_folder.LABELS_FOLDER
    if path.resolve().parent == folder.resolve():
        raise InputError("this is the folder of the labels; name another one", path=path)
    rows = _label_rows(folder, None)
    atomic_write(serialize_rows(rows, form, _FORMULA_COLUMNS), path)
    return len(rows)


def export_format(path: Path) -> str:
    """Return 'csv' or 'jsonl' by a file's ending.

    Raises
    ------
    InputError
        It ends otherwise.
    """
    form = path.suffix.removeprefix(".").casefold()
    if form not in _FORMATS:
        raise InputError("labels are exported as .csv or .jsonl; name such a file", path=path)
    return form


def labels_text(folder: Path, form: str, seen: label_folder.ShownContent | None = None) -> str:
    """Return all labels as text.

    Parameters
    ----------
    folder : Path
        Of the run's labels.
    form : {'csv', 'jsonl'}
    seen : Seen or None
        As of `misslink.io.label_folder.read_label_folder`.

    Raises
    ------
    InputError
        There is no such form, or no label.
    """
    return serialize_rows(_label_rows(folder, seen), form, _FORMULA_COLUMNS)


def serialize_rows(
    rows: Sequence[Mapping[str, Any]], form: str, formula_columns: Collection[str]
) -> str:
    """Return at least one row as csv or as jsonl without empty fields.

    Parameters
    ----------
    rows : sequence of mapping
        With the same keys.
    form : {'csv', 'jsonl'}
    formula_columns : collection of str
        Columns of text that a spreadsheet might run as formulas.

    Raises
    ------
    InputError
        There is no such form.
    """
    if form not in _FORMATS:
        raise InputError(f"there is no form '{form}'; {known_names(form, _FORMATS)}")
    if form == "jsonl":
        filled = ({k: v for k, v in row.items() if v not in {None, ""}} for row in rows)
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in filled)
    file = io.StringIO(newline="")
    out = csv.DictWriter(file, rows[0], lineterminator="\r\n")  # with "\n", no "\r" is quoted
    out.writeheader()
    out.writerows(
        {**row, **{name: escape_formula(row[name]) for name in formula_columns}} for row in rows
    )
    return file.getvalue()


def _label_rows(folder: Path, seen: label_folder.ShownContent | None) -> list[dict[str, Any]]:
    labels = label_folder.read_label_folder(folder, seen=seen)[0] if folder.is_dir() else ()
    if not labels:
        raise InputError("this run has no labels; run  misslink annotate", path=folder.parent)
    rows = []
    for entry, weight, stratum in labels:
        label = entry.label
        rows.append(
            {
                "case_id": entry.case_id,
                "metric": entry.metric,
                "claim": entry.claim,
                "label": int(label) if label is not None and label.is_integer() else label,
                "annotator": entry.annotator,
                "weight": weight,
                "stratum": stratum,
                "comment": entry.comment,
                "judge_shown": int(entry.judge_shown),
                "answer_hash": entry.answer_hash,
                "at": entry.at,
            }
        )
    return rows
