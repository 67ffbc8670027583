"""BEIR folders: queries.jsonl, qrels/SPLIT.tsv, and the corpus where it is there.

Source: Thakur et al., "BEIR: A heterogeneous benchmark for zero-shot evaluation of information
retrieval models", 2021; https://github.com/beir-cellar/beir.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.beir import beir_qrels
from misslink.files.corpus import read_corpus
from misslink.files.goldset import GoldSet
from misslink.files.jsonl import read_objects
from misslink.goldset.formats.format import Brought, Collected, Options, formats
from misslink.goldset.formats.held import beside, restored
from misslink.goldset.formats.judged import by_query, grades, qrels_rows
from misslink.goldset.formats.places import folder_of, write_all
from misslink.goldset.writing import objects_as_lines

__all__ = ["Beir"]

_HELD = {"id", "question", "relevant"}
_QUERIES = ("queries.jsonl", "queries.jsonl.gz")
_CORPORA = ("corpus.jsonl", "corpus.jsonl.gz")


@formats.register("beir")
class Beir:
    """A folder as BEIR's loader reads it."""

    title = "BEIR folder"

    def is_it(self, source: Path, _row: Mapping[str, Any] | None) -> bool:
        """Whether a folder holds queries."""
        return source.is_dir() and any((source / name).is_file() for name in _QUERIES)

    def bring(self, source: Path, options: Options) -> Brought:
        """Read the questions of one split: those that are judged in it."""
        if not source.is_dir():
            raise InputError(
                "this is a file; name the BEIR folder that holds queries.jsonl", path=source
            )
        queries = next((source / name for name in _QUERIES if (source / name).is_file()), None)
        if queries is None:
            raise InputError("there is no queries.jsonl in this folder", path=source)
        bare = not any(source.glob("qrels*"))  # as a gold set that nobody judged yet is taken out
        if bare and options.split is None and options.qrels is None:
            judged: Mapping[str, Mapping[str, int]] = {}
        else:
            judged = by_query(options.qrels or self._qrels(source, options.split))
        found = Collected(queries)
        seen = set()
        for line, row in read_objects(queries):
            name, text = row.get("_id", row.get("id")), row.get("text")
            if not isinstance(text, str) or name in (None, ""):
                raise InputError("a query has the fields _id and text", path=queries, line=line)
            seen.add(str(name))
            kept = restored(row.get("metadata"))
            if judged and str(name) not in judged and "misslink" not in (row.get("metadata") or {}):
                found.left_out["queries that this split does not judge"] += 1
                continue
            relevant = grades(judged.get(str(name), {}), found.left_out)
            found.add({**kept, "id": str(name), "question": text, "relevant": relevant}, line)
        found.left_out["judged queries without a text"] += len(set(judged) - seen)
        brought = found.brought()
        return self._with_corpus(source, brought)

    def take_out(self, gold: GoldSet, target: Path, options: Options) -> dict[str, int]:
        """Write queries.jsonl and qrels; what BEIR has no place for stands in the metadata."""
        files = {
            "queries.jsonl": objects_as_lines(
                {"_id": case.id, "text": case.question, "metadata": beside(case, _HELD)}
                for case in gold.cases
            ),
            f"qrels/{options.split or 'test'}.tsv": "".join(
                [
                    "query-id\tcorpus-id\tscore\n",
                    *qrels_rows(gold, "{query}\t{document}\t{grade}\n"),
                ]
            ),
        }
        if not any(case.relevant for case in gold.cases):
            files = {"queries.jsonl": files["queries.jsonl"]}
        if options.corpus is not None:
            files["corpus.jsonl"] = objects_as_lines(
                {"_id": passage.id, "title": "", "text": passage.text}
                for passage in read_corpus(options.corpus)
            )
        write_all(folder_of(target), files, options)
        return {}

    def _qrels(self, source: Path, split: str | None) -> Path:
        if split is None:
            return beir_qrels(source)
        found = [source / "qrels" / f"{split}{ending}" for ending in (".tsv", ".tsv.gz")]
        for path in found:
            if path.is_file():
                return path
        there = ", ".join(sorted(path.name for path in (source / "qrels").glob("*.tsv*")))
        raise InputError(
            f"there is no split '{split}' in it (it has {there or 'none'})", path=source
        )

    def _with_corpus(self, source: Path, brought: Brought) -> Brought:
        """Count relevant passages that the corpus beside does not hold."""
        corpus = next((source / name for name in _CORPORA if (source / name).is_file()), None)
        if corpus is None:
            return brought
        known = {str(row.get("_id", row.get("id"))) for _, row in read_objects(corpus)}
        absent = Counter(p for case in brought.cases for p in case.relevant if p not in known)
        left = dict(brought.left_out)
        note = f"The corpus is {corpus} ({len(known):,} passages)."
        if absent:
            note += (
                f" {len(absent):,} judged passages are not in it, such as '{next(iter(absent))}'."
            )
        return Brought(brought.cases, brought.traces, left, (*brought.notes, note))
