"""Gold sets of other tools: import and export by format, and what the formats share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from misslink.errors import InputError, did_you_mean
from misslink.io.atomic import atomic_write
from misslink.io.goldset import GoldSet
from misslink.io.jsonl import SourceItem
from misslink.io.trace_formats.printed import decode_json
from misslink.io.trace_formats.requests import read_log_rows
from misslink.registry import Registry
from misslink.retrieval.readers import open_qrels
from misslink.types import Case, Trace

formats = Registry(
    "gold set format", ("misslink.goldset.formats",), "misslink.goldset_formats", ("auto",)
)
METADATA_KEY = "misslink"  # of a metadata object, for the fields that a format does not support
_SHOWN_COLUMNS = 10
_GOLDSET_FIELDS = {"relevant", "relevant_any", "evidence", "references", "answerable"}
_TABLE_SUFFIXES = {".csv", ".parquet", ".pq"}


@dataclass(frozen=True)
class FormatOptions:
    """Options of an import or export.

    Parameters
    ----------
    qrels : Path or None
        Judgements, for formats that store them separately.
    split : str or None
        For formats that have several.
    columns : mapping of str to str
        Field to column, for formats with any column names.
    corpus : Path or None
        Passages to export with the questions.
    overwrite : bool
        Whether existing files may be replaced.
    inputs : sequence of Path
        Files that an export reads, which are never replaced.
    """

    qrels: Path | None = None
    split: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    corpus: Path | None = None
    overwrite: bool = False
    inputs: tuple[Path, ...] = ()


@dataclass(frozen=True)
class ImportedGoldSet:
    """The content of another tool's gold set.

    Parameters
    ----------
    cases : sequence of Case
    traces : sequence of Trace
        From formats that record what an app did.
    left_out : mapping of str to int
        What could not be imported, with counts.
    notes : sequence of str
    """

    cases: tuple[Case, ...]
    traces: tuple[Trace, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class GoldSetFormat(Protocol):
    """A format of gold sets; a class with these methods is registered under its name."""

    def matches(self, source: Path, row: Mapping[str, Any] | None, /) -> bool:
        """Return whether a folder, or a file by its first row (None: without rows), has it."""
        ...

    def read(self, source: Path, options: FormatOptions, /) -> ImportedGoldSet:
        """Read a source; InputError names the file and the line of an error."""
        ...

    def write(self, gold: GoldSet, target: Path, options: FormatOptions, /) -> dict[str, int]:
        """Write a gold set; return what the format does not support, with counts of cases."""
        ...


class CaseCollector:
    """Collects the cases and traces of one source, and checks that ids are unique."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left_out: Counter[str] = Counter()
        self._cases: dict[str, Case] = {}
        self._items: dict[str, SourceItem] = {}
        self._traces: dict[str, Trace] = {}

    def add(
        self, data: Mapping[str, Any], item: SourceItem, trace: Mapping[str, Any] | None = None
    ) -> None:
        """Add a case by its fields, and its trace; a repeated question without an id is counted.

        Raises
        ------
        InputError
            A field is wrong, or an id is used twice.
        """
        fields = {name: value for name, value in data.items() if value not in (None, "", [], {})}
        case = item._replace(data=fields).parse(Case)
        if case.id in self._cases:
            if "id" not in fields:
                self.left_out["repeated questions"] += 1
                return
            first = self._items[case.id].first_place(item)
            where = first and f" (first {first})"
            raise item.error(
                f"The id '{case.id}' is used twice{where}. Give each case its own id.", "id"
            )
        self._cases[case.id] = case
        self._items[case.id] = item._replace(data=None)
        if trace:
            self._traces[case.id] = item._replace(data={"case_id": case.id, **trace}).parse(Trace)

    def result(self) -> ImportedGoldSet:
        """Return what was collected.

        Raises
        ------
        InputError
            There is no case.
        """
        if not self._cases:
            reasons = ", ".join(f"{count:,} {why}" for why, count in self.left_out.items())
            raise InputError(
                f"The source contains no question{reasons and f' ({reasons})'}.", path=self.path
            )
        traces = tuple(self._traces.values())
        return ImportedGoldSet(tuple(self._cases.values()), traces, dict(self.left_out))


def metadata_of(case: Case, supported: Collection[str]) -> dict[str, Any]:
    """Return metadata with the fields of a case that the format itself does not support."""
    fields = case.model_dump(mode="json", exclude_defaults=True, exclude=set(supported))
    return {METADATA_KEY: fields} if fields else {}


def fields_from_metadata(metadata: Any) -> dict[str, Any]:
    """Return the fields that `metadata_of` stored; other scalar metadata become tags."""
    metadata = decode_json(metadata)
    if not isinstance(metadata, Mapping):
        return {}
    stored = decode_json(metadata.get(METADATA_KEY))
    fields = dict(stored) if isinstance(stored, Mapping) else {}
    tags = {
        str(name): str(value)
        for name, value in metadata.items()
        if name != METADATA_KEY and isinstance(value, str | int | float) and str(value).strip()
    }
    if tags:
        stored_tags = fields.get("tags")
        fields["tags"] = {**tags, **(stored_tags if isinstance(stored_tags, Mapping) else {})}
    return fields


def count_unsupported_fields(cases: Iterable[Case], supported: Collection[str]) -> Counter[str]:
    """Count the cases with a value in each field that a format does not support."""
    counts: Counter[str] = Counter()
    for case in cases:
        counts.update(case.model_dump(exclude_defaults=True, exclude=set(supported)).keys())
    return counts


def count_unsupported_grades(cases: Iterable[Case]) -> int:
    """Count the cases with grades other than 1."""
    grades = ((*case.relevant.values(), *case.evidence.values()) for case in cases)
    return sum(any(grade != 1 for grade in several) for several in grades)


def read_qrels_by_query(path: Path) -> Mapping[str, Mapping[str, int]]:
    """Read qrels in any form that `misslink retrieval` reads: query to document to grade."""
    qrels = open_qrels(path)
    if isinstance(qrels, GoldSet):
        raise InputError("This is a gold set, not qrels. Import it without --qrels.", path=path)
    return qrels.by_query


def valid_grades(judged: Mapping[str, int], left_out: Counter[str]) -> dict[str, int]:
    """Return grades from 0 up. A negative one means that a pooled document was never judged."""
    left_out["negative grades (never judged)"] += sum(grade < 0 for grade in judged.values())
    return {document: grade for document, grade in judged.items() if grade >= 0}


def qrels_lines(gold: GoldSet, form: str) -> Iterator[str]:
    """Yield a line for each grade of a gold set.

    Raises
    ------
    InputError
        An id contains a blank, a tab or a line break.
    """
    for case in gold.cases:
        for document, grade in case.relevant.items():
            for name, field_name in ((case.id, "id"), (document, "relevant")):
                if any(sign.isspace() for sign in name) or not name.isprintable():
                    message = f"The id {name!r} contains a blank, which qrels cannot. Rename it."
                    raise gold.error(case.id, field_name, message)
            yield form.format(query=case.id, document=document, grade=grade)


def refuse_existing_file(path: Path, options: FormatOptions) -> None:
    """Raise InputError for a path that is a folder, an input, or a file not to be replaced."""
    if path.is_dir():
        raise InputError("This is a folder. Name a file.", path=path)
    if path.resolve() in {source.resolve() for source in options.inputs}:
        raise InputError("This is an input. Name another file with --out.", path=path)
    if path.exists() and not options.overwrite:
        raise InputError("The file exists. Name another one, or add --overwrite.", path=path)


def write_file(path: Path, text: str, options: FormatOptions) -> None:
    """Write a file that does not exist, or may be replaced."""
    refuse_existing_file(path, options)
    atomic_write(text, path)


def write_files(folder: Path, files: Mapping[str, str], options: FormatOptions) -> None:
    """Write files into a folder; none of them if one may not be written."""
    if folder.exists() and not folder.is_dir():
        raise InputError(
            "This is a file, but this format is a folder. Name a new one.", path=folder
        )
    for name in files:
        refuse_existing_file(folder / name, options)
    for name, text in files.items():
        atomic_write(text, folder / name)


def read_rows_with(
    path: Path, needed: Sequence[str], columns_of_format: Sequence[str]
) -> Iterator[SourceItem]:
    """Yield the rows of a file.

    Parameters
    ----------
    path : Path
    needed : sequence of str
        At least one row must have one of these columns.
    columns_of_format : sequence of str
        Column names of the format.

    Raises
    ------
    InputError
        The file cannot be read, or no row has a needed column.
    """
    seen: dict[str, None] = {}
    for item in read_log_rows(path):
        seen |= dict.fromkeys(item.data)
        yield item
    if not set(needed) & set(seen):
        hints = [
            f"'{name}': {hint}" for name in seen if (hint := did_you_mean(name, columns_of_format))
        ]
        columns = f"it has {', '.join(list(seen)[:_SHOWN_COLUMNS]) or 'none'}"
        hint = "; ".join(hints[:3]) or columns
        raise InputError(f"There is no column '{needed[0]}' ({hint}).", path=path)


def import_goldset(
    source: Path, name: str = "auto", options: FormatOptions | None = None
) -> tuple[str, ImportedGoldSet]:
    """Read a gold set of another tool.

    Parameters
    ----------
    source : Path
        A file or a folder.
    name : str
        A registered format, or 'auto'.
    options : FormatOptions, optional

    Returns
    -------
    str
        The format's name.
    ImportedGoldSet

    Raises
    ------
    InputError
        The format is unknown or cannot be detected, or the source is wrong: then with the line.
    """
    if not source.exists():
        raise InputError("File or folder not found. Check the path.", path=source)
    if name == "auto":
        name = detect_format(source)
    reader: GoldSetFormat = formats.get(name)()
    imported = reader.read(source, options or FormatOptions())
    left_out = {why: count for why, count in imported.left_out.items() if count}
    return name, replace(imported, left_out=left_out)


def export_goldset(
    gold: GoldSet, name: str, target: Path, options: FormatOptions | None = None
) -> dict[str, int]:
    """Write a gold set for another tool.

    Returns
    -------
    dict of str to int
        What the format does not support, with counts of cases.

    Raises
    ------
    InputError
        The format is unknown, an id does not fit it, or the target cannot be written.
    """
    writer: GoldSetFormat = formats.get(name)()
    return writer.write(gold, target, options or FormatOptions())


def detect_format(source: Path) -> str:
    """Return the name of the format of a file or folder, by its content.

    Raises
    ------
    InputError
        No format matches, or it is already a gold set of misslink.
    """
    row = None if source.is_dir() else _first_row(source)
    fields = set(row or ())
    is_goldset = fields & {"question", "query"} and fields & _GOLDSET_FIELDS
    if is_goldset and source.suffix not in _TABLE_SUFFIXES:
        raise InputError("This is a gold set already. It needs no import.", path=source)
    for name in formats.names():
        if formats.get(name)().matches(source, row):
            return name
    listed = f" (fields: {', '.join(list(row)[:_SHOWN_COLUMNS])})" if row else ""
    raise InputError(
        f"The format is not recognized{listed}. Name it with --format: "
        f"{', '.join(formats.names())}.",
        path=source,
    )


def _first_row(source: Path) -> Mapping[str, Any] | None:
    """The first row of a file; None for a file without rows, such as TREC topics."""
    try:
        with source.open("rb") as file:
            head = file.read(2000).lstrip()
    except OSError as problem:
        raise InputError(f"Cannot read the file: {problem.strerror}.", path=source) from None
    suffix = source.suffix.casefold()
    if head[:1] == b"<" or suffix in {".tsv", ".arrow"}:
        return None
    if head[:1] not in {b"{", b"["} and suffix not in {*_TABLE_SUFFIXES, ".gz"}:
        return None
    first: dict[str, Any] = next(read_log_rows(source)).data
    return first
