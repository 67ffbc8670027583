"""BEIR folders: queries.jsonl, qrels/SPLIT.tsv and, where present, corpus.jsonl.

Source: Thakur et al., "BEIR: A heterogeneous benchmark for zero-shot evaluation of information
retrieval models", 2021; https://github.com/beir-cellar/beir.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.goldset.formats.base import (
    METADATA_KEY,
    CaseCollector,
    FormatOptions,
    ImportedGoldSet,
    fields_from_metadata,
    formats,
    metadata_of,
    qrels_lines,
    read_qrels_by_query,
    valid_grades,
    write_files,
)
from misslink.goldset.writer import objects_to_jsonl
from misslink.io.corpus import read_corpus
from misslink.io.goldset import GoldSet
from misslink.io.jsonl import read_objects
from misslink.io.tables import find_beir_qrels

_SUPPORTED_FIELDS = {"id", "question", "relevant"}


@formats.register("beir")
class BeirFormat:
    """A folder as BEIR's loader reads it."""

    title = "BEIR folder"

    def matches(self, source: Path, _row: Mapping[str, Any] | None) -> bool:
        """Return whether a folder contains queries."""
        return source.is_dir() and _jsonl_file(source, "queries") is not None

    def read(self, source: Path, options: FormatOptions) -> ImportedGoldSet:
        """Read the queries of one split: those that it judges."""
        if not source.is_dir():
            raise InputError(
                "This is a file. Name the BEIR folder that contains queries.jsonl.", path=source
            )
        queries = _jsonl_file(source, "queries")
        if queries is None:
            raise InputError("The folder contains no queries.jsonl.", path=source)
        judged: Mapping[str, Mapping[str, int]] = {}
        # An unjudged gold set is exported without qrels.
        if options.qrels or options.split or any(source.glob("qrels*")):
            judged = read_qrels_by_query(options.qrels or _qrels_file(source, options.split))
        collector = CaseCollector(queries)
        seen = set()
        for item in read_objects(queries):
            row = item.data
            name, text = row.get("_id", row.get("id")), row.get("text")
            if not isinstance(text, str) or name in (None, ""):
                raise item.error("A query needs the fields _id and text.")
            seen.add(str(name))
            metadata = row.get("metadata")
            if judged and str(name) not in judged and METADATA_KEY not in (metadata or {}):
                collector.left_out["queries that this split does not judge"] += 1
                continue
            relevant = valid_grades(judged.get(str(name), {}), collector.left_out)
            fields = fields_from_metadata(metadata)
            collector.add({**fields, "id": str(name), "question": text, "relevant": relevant}, item)
        collector.left_out["judged queries without a text"] += len(set(judged) - seen)
        imported = collector.result()
        corpus = _jsonl_file(source, "corpus")
        if corpus is None:
            return imported
        known = {str(row.data.get("_id", row.data.get("id"))) for row in read_objects(corpus)}
        absent = [p for case in imported.cases for p in case.relevant if p not in known]
        absent = list(dict.fromkeys(absent))
        note = f"The corpus is {corpus} ({len(known):,} passages)."
        if absent:
            note += f" {len(absent):,} judged passages are not in it, such as '{absent[0]}'."
        return replace(imported, notes=(*imported.notes, note))

    def write(self, gold: GoldSet, target: Path, options: FormatOptions) -> dict[str, int]:
        """Write queries.jsonl and qrels; the metadata contains what BEIR does not support."""
        queries = (
            {
                "_id": case.id,
                "text": case.question,
                "metadata": metadata_of(case, _SUPPORTED_FIELDS),
            }
            for case in gold.cases
        )
        files = {"queries.jsonl": objects_to_jsonl(queries)}
        if any(case.relevant for case in gold.cases):
            lines = qrels_lines(gold, "{query}\t{document}\t{grade}\n")
            files[f"qrels/{options.split or 'test'}.tsv"] = "".join(
                ["query-id\tcorpus-id\tscore\n", *lines]
            )
        if options.corpus is not None:
            files["corpus.jsonl"] = objects_to_jsonl(
                {"_id": passage.id, "title": "", "text": passage.text}
                for passage in read_corpus(options.corpus)
            )
        write_files(target, files, options)
        return {}


def _jsonl_file(folder: Path, name: str) -> Path | None:
    paths = (folder / f"{name}{ending}" for ending in (".jsonl", ".jsonl.gz"))
    return next((path for path in paths if path.is_file()), None)


def _qrels_file(source: Path, split: str | None) -> Path:
    if split is None:
        return find_beir_qrels(source)
    for ending in (".tsv", ".tsv.gz"):
        if (path := source / "qrels" / f"{split}{ending}").is_file():
            return path
    splits = ", ".join(sorted(path.name for path in (source / "qrels").glob("*.tsv*")))
    raise InputError(f"There is no split '{split}' (it has {splits or 'none'}).", path=source)
