"""Datasets of Hugging Face: a folder that `save_to_disk` wrote, or a file of rows.

Their tables are Arrow's, which misslink reads itself: no network, and the package `datasets` is not
needed.

Source: https://huggingface.co/docs/datasets (save_to_disk, about_arrow).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError, did_you_mean, known_names
from misslink.files.goldset import GoldSet
from misslink.files.jsonl import read_text
from misslink.goldset.formats.format import Brought, Collected, Options, formats
from misslink.goldset.formats.held import lost
from misslink.goldset.formats.places import refuse_other
from misslink.goldset.logs.said import answered, asked, decoded
from misslink.goldset.logs.source import Row, rows_of

__all__ = ["HuggingFace"]

COLUMNS: dict[str, tuple[str, ...]] = {
    "id": ("id", "_id", "qid", "query_id", "question_id"),
    "question": ("question", "query", "user_input", "input", "prompt"),
    "references": (
        "references", "reference", "answers", "answer", "ground_truth", "ground_truths",
        "expected_output", "response",
    ),
    "evidence": ("evidence", "reference_contexts", "positive_passages", "context", "contexts"),
    "relevant": ("relevant", "positive_ids", "relevant_ids"),
    "category": ("category", "type", "topic"),
}  # fmt: skip
_STATE = "state.json"
_DICT = "dataset_dict.json"
_SHOWN = 12


@formats.register("huggingface")
class HuggingFace:
    """A dataset with columns of any name."""

    title = "Hugging Face dataset"

    def is_it(self, source: Path, _row: Mapping[str, Any] | None) -> bool:
        """Whether a folder was written by `save_to_disk`, or a file is parquet or Arrow."""
        if source.is_dir():
            return any((source / name).is_file() for name in (_STATE, _DICT))
        return source.suffix.casefold() in {".parquet", ".arrow"}

    def bring(self, source: Path, options: Options) -> Brought:
        """Read a split; columns have the usual names, or those of `options`."""
        for field in options.columns:
            if field not in COLUMNS:
                raise InputError(
                    f"--column knows no field '{field}'; {known_names(field, COLUMNS)}"
                )
        found = Collected(source)
        seen: dict[str, None] = {}
        for line, row in _rows(source, options.split):
            seen |= dict.fromkeys(row)
            data = {field: _value(row, field, options.columns.get(field)) for field in COLUMNS}
            data["question"] = asked(data["question"])
            if data["question"] is None:
                found.left_out["rows without a question"] += 1
                continue
            found.add(data, line)
        _check(source, options.columns, list(seen))
        return found.brought()

    def take_out(self, gold: GoldSet, target: Path, options: Options) -> dict[str, int]:
        """Write a parquet file, which `load_dataset("parquet", data_files=...)` reads."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        refuse_other(target, overwrite=options.overwrite, read=options.read)
        table = pa.table(
            {
                "id": [case.id for case in gold.cases],
                "question": [case.question for case in gold.cases],
                "references": pa.array(
                    [list(case.references) for case in gold.cases], pa.list_(pa.string())
                ),
                "evidence": pa.array(
                    [[t for t, g in case.evidence.items() if g] for case in gold.cases],
                    pa.list_(pa.string()),
                ),
                "relevant": pa.array(
                    [[p for p, g in case.relevant.items() if g] for case in gold.cases],
                    pa.list_(pa.string()),
                ),
                "category": pa.array([case.category for case in gold.cases], pa.string()),
            }
        )
        aside = target.with_name(f".{target.name}.part")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                pq.write_table(table, aside)
                aside.replace(target)
            finally:
                aside.unlink(missing_ok=True)
        except OSError as problem:
            why = problem.strerror or str(problem).partition(". Detail")[0]
            raise InputError(
                f"it cannot be written ({why}); give another path", path=target
            ) from None
        counts = lost(gold.cases, set(COLUMNS))
        counts["grades other than 1"] += sum(
            any(grade != 1 for grade in (*case.relevant.values(), *case.evidence.values()))
            for case in gold.cases
        )
        return dict(+counts)


def _value(row: Mapping[str, Any], field: str, own: str | None) -> Any:
    names = (own,) if own else COLUMNS[field]
    value = decoded(next((row[name] for name in names if row.get(name) is not None), None))
    if field in {"references", "evidence"}:
        return _texts(value)
    if field in {"id", "category"}:
        return str(value) if isinstance(value, str | int) and str(value).strip() else None
    return value


def _texts(value: Any) -> list[str]:
    """Texts from one, from several, or from SQuAD's ``{"text": [...]}``."""
    if isinstance(value, Mapping):
        value = next(
            (value[name] for name in ("text", "value", "contexts", "aliases") if name in value),
            None,
        )
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, list):
        texts = (one if isinstance(one, str) else answered(one) for one in value)
        return list(dict.fromkeys(text for text in texts if text and text.strip()))
    return []


def _rows(source: Path, split: str | None) -> Iterator[Row]:
    if not source.is_dir():
        yield from _arrow(source, [source]) if source.suffix == ".arrow" else rows_of(source)
        return
    folder = source
    if (source / _DICT).is_file():
        splits = _json(source / _DICT).get("splits", [])
        names = [str(name) for name in splits] if isinstance(splits, list) else []
        wanted = split or (names[0] if len(names) == 1 else "")
        if wanted not in names:
            told = f"{did_you_mean(wanted, names)} " if wanted else ""
            raise InputError(
                f"name a split with --split; {told}it has {', '.join(names)}", path=source
            )
        folder = source / wanted
    if not (folder / _STATE).is_file():
        raise InputError(
            "this is no folder of save_to_disk; make one, or give parquet, CSV or JSON Lines",
            path=folder,
        )
    files = _json(folder / _STATE).get("_data_files", [])
    listed = (
        [one.get("filename") for one in files if isinstance(one, Mapping)]
        if isinstance(files, list)
        else []
    )
    # Names alone: nothing outside of the folder is read, whatever the file says.
    yield from _arrow(folder, [folder / Path(str(name)).name for name in listed])


def _arrow(source: Path, files: list[Path]) -> Iterator[Row]:
    import pyarrow as pa

    number = 0
    for path in files:
        try:
            with pa.memory_map(str(path)) as file:
                try:
                    batches = iter(pa.ipc.open_stream(file))
                except pa.ArrowInvalid:
                    opened = pa.ipc.open_file(file)
                    batches = (opened.get_batch(at) for at in range(opened.num_record_batches))
                for batch in batches:
                    for row in batch.to_pylist():
                        number += 1
                        yield number, {str(n): v for n, v in row.items() if v is not None}
        except (pa.ArrowException, OSError) as problem:
            first = str(problem).partition("\n")[0]
            raise InputError(f"this Arrow file cannot be read ({first})", path=path) from None
    if not number:
        raise InputError("there is no row in it", path=source)


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_text(path))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError("this is no JSON object; save the dataset again", path=path)
    return found


def _check(source: Path, own: Mapping[str, str], seen: list[str]) -> None:
    for field, column in own.items():
        if column not in seen:
            hint = did_you_mean(column, seen) or f"it has {', '.join(seen[:_SHOWN])}"
            raise InputError(f"there is no column '{column}' ({field}); {hint}", path=source)
    if "question" not in own and not set(COLUMNS["question"]) & set(seen):
        told = ", ".join(seen[:_SHOWN])
        raise InputError(
            f"no column is called as a question is; add  --column question=NAME  (it has {told})",
            path=source,
        )
