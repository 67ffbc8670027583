"""BEIR folders, and TREC topics with qrels.

BEIR: queries.jsonl, qrels/SPLIT.tsv and, where present, corpus.jsonl. TREC topics are a
tab-separated table of id and question, ``<top>`` entries with ``<num>`` and ``<title>`` (closing
tags are optional), or ``<topic number="1">`` with a ``<query>``.
Sources: https://trec.nist.gov/data; Thakur et al., "BEIR: A heterogeneous benchmark for zero-shot
evaluation of information retrieval models", 2021; https://github.com/beir-cellar/beir.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.goldset.formats import base
from misslink.goldset.writer import objects_to_jsonl
from misslink.io.corpus import read_corpus
from misslink.io.goldset import GoldSet
from misslink.io.jsonl import SourceItem, read_objects, read_text
from misslink.io.tables import find_beir_qrels

_SUPPORTED_FIELDS = {"id", "question", "relevant"}
_TOPICS_FILE = re.compile("topic|quer", re.IGNORECASE)
_QRELS_FILE = re.compile("qrel", re.IGNORECASE)
_TOP = re.compile(r"<top>|<topic\b([^>]{0,200})>", re.IGNORECASE)
_END = re.compile(r"</top>|</topic>|</topics>", re.IGNORECASE)
_NUMBER = re.compile(r"""number\s{0,4}=\s{0,4}["']([^"']{1,100})["']""", re.IGNORECASE)
_LABEL = re.compile(r"^\s*(?:number|topic|description|title|query)\s*:", re.IGNORECASE)
_TEXTS = ("title", "query", "question", "desc")
_HEADER = {"id", "qid", "query_id", "topic", "number", "query-id", "topic_id"}


@base.formats.register("trec")
class TrecFormat:
    """Topics and qrels."""

    def matches(self, source: Path, row: Mapping[str, Any] | None) -> bool:
        """Return whether a folder contains topics, or a file begins like topics."""
        if source.is_dir():
            is_beir = (source / "queries.jsonl").is_file()
            return bool(_files_named(source, _TOPICS_FILE)) and not is_beir
        if row is not None:
            return False
        head = read_text(source)[:2000].lstrip()
        return bool(_TOP.search(head)) or "\t" in head.partition("\n")[0]

    def read(self, source: Path, options: base.FormatOptions) -> base.ImportedGoldSet:
        """Read topics, and the qrels in the folder or in `options`."""
        topics, qrels = source, options.qrels
        if source.is_dir():
            topics = _single_file(source, _TOPICS_FILE, "topics")
            qrels = qrels or _single_file(source, _QRELS_FILE, "qrels")
        if qrels is None:
            raise InputError("Topics have no judgments. Add  --qrels FILE.", path=topics)
        judged = base.read_qrels_by_query(qrels)
        collector = base.CaseCollector(topics)
        seen = set()
        for line, name, question in _read_topics(topics):
            seen.add(name)
            relevant = base.valid_grades(judged.get(name, {}), collector.left_out)
            collector.add(
                {"id": name, "question": question, "relevant": relevant},
                SourceItem(None, str(topics), line),
            )
        collector.left_out["judged queries without a topic"] += len(set(judged) - seen)
        return collector.result()

    def write(self, gold: GoldSet, target: Path, options: base.FormatOptions) -> dict[str, int]:
        """Write topics.tsv and qrels.txt into a folder."""
        for case in gold.cases:
            if any(sign.isspace() for sign in case.id):
                message = f"The id {case.id!r} contains a blank. Rename it."
                raise gold.error(case.id, "id", message)
        questions = {case.id: " ".join(case.question.split()) for case in gold.cases}
        files = {
            "topics.tsv": "".join(f"{name}\t{text}\n" for name, text in questions.items()),
            "qrels.txt": "".join(base.qrels_lines(gold, "{query} 0 {document} {grade}\n")),
        }
        base.write_files(target, files, options)
        counts = base.count_unsupported_fields(gold.cases, _SUPPORTED_FIELDS)
        changed = sum(case.question != questions[case.id] for case in gold.cases)
        counts["line breaks and runs of blanks in questions"] += changed
        return dict(+counts)


def _files_named(folder: Path, name: re.Pattern[str]) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and name.search(path.name))


def _single_file(folder: Path, name: re.Pattern[str], content: str) -> Path:
    paths = _files_named(folder, name)
    if len(paths) == 1:
        return paths[0]
    listed = ", ".join(path.name for path in paths)
    count = f"several files of {content} ({listed})" if paths else f"no file of {content}"
    message = f"The folder contains {count}. Name the topics file, and add  --qrels FILE."
    raise InputError(message, path=folder)


def _read_topics(path: Path) -> Iterator[tuple[int, str, str]]:
    text = read_text(path)
    if _TOP.search(text):
        yield from _tagged_topics(path, text)
        return
    for line, row in enumerate(text.split("\n"), start=1):
        if not row.strip():
            continue
        name, tab, question = row.rstrip("\r").partition("\t")
        if not tab or not question.strip() or not name.strip():
            raise InputError("A topic is an id, a tab and a question.", path=path, line=line)
        if line > 1 or name.strip().casefold() not in _HEADER:
            yield line, name.strip(), question.strip()


def _tagged_topics(path: Path, text: str) -> Iterator[tuple[int, str, str]]:
    starts = list(_TOP.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    for start, end in zip(starts, ends, strict=True):
        line = text.count("\n", 0, start.start()) + 1
        fields = _topic_fields(_END.split(text[start.end() : end], maxsplit=1)[0])
        number = _NUMBER.search(start[1] or "")
        name = number[1].strip() if number else fields.get("num", "")
        question = next((fields[tag] for tag in _TEXTS if fields.get(tag)), "")
        if not name or not question:
            lacking = "text (<title>, <query> or <desc>)" if name else "number (<num>)"
            raise InputError(f"This topic has no {lacking}. Add it.", path=path, line=line)
        yield line, name, question


def _topic_fields(entry: str) -> dict[str, str]:
    """The texts of a topic by tag, up to the next tag, closed or not."""
    fields: dict[str, str] = {}
    pieces = re.split(r"<(/?)(\w{1,20})>", entry)
    for index in range(1, len(pieces), 3):
        closing, tag, text = pieces[index : index + 3]
        if not closing:
            plain = _LABEL.sub("", html.unescape(text))
            fields.setdefault(tag.casefold(), " ".join(plain.split()))
    return fields


@base.formats.register("beir")
class BeirFormat:
    """A folder as BEIR's loader reads it."""

    def matches(self, source: Path, _row: Mapping[str, Any] | None) -> bool:
        """Return whether a folder contains queries."""
        return source.is_dir() and _jsonl_file(source, "queries") is not None

    def read(self, source: Path, options: base.FormatOptions) -> base.ImportedGoldSet:
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
            judged = base.read_qrels_by_query(options.qrels or _qrels_file(source, options.split))
        collector = base.CaseCollector(queries)
        seen = set()
        for item in read_objects(queries):
            row = item.data
            name, text = row.get("_id", row.get("id")), row.get("text")
            if not isinstance(text, str) or name in (None, ""):
                raise item.error("A query needs the fields _id and text.")
            seen.add(str(name))
            metadata = row.get("metadata")
            if judged and str(name) not in judged and base.METADATA_KEY not in (metadata or {}):
                collector.left_out["queries that this split does not judge"] += 1
                continue
            relevant = base.valid_grades(judged.get(str(name), {}), collector.left_out)
            fields = base.fields_from_metadata(metadata)
            collector.add({**fields, "id": str(name), "question": text, "relevant": relevant}, item)
        collector.left_out["judged queries without a text"] += len(set(judged) - seen)
        imported = collector.result()
        corpus = _jsonl_file(source, "corpus")
        if corpus is None:
            return imported
        corpus_ids = {str(row.data.get("_id", row.data.get("id"))) for row in read_objects(corpus)}
        absent = [p for case in imported.cases for p in case.relevant if p not in corpus_ids]
        absent = list(dict.fromkeys(absent))
        note = f"The corpus is {corpus} ({len(corpus_ids):,} passages)."
        if absent:
            note += f" {len(absent):,} judged passages are not in it, such as '{absent[0]}'."
        return replace(imported, notes=(*imported.notes, note))

    def write(self, gold: GoldSet, target: Path, options: base.FormatOptions) -> dict[str, int]:
        """Write queries.jsonl and qrels; the metadata contains what BEIR does not support."""
        queries = (
            {
                "_id": case.id,
                "text": case.question,
                "metadata": base.metadata_of(case, _SUPPORTED_FIELDS),
            }
            for case in gold.cases
        )
        files = {"queries.jsonl": objects_to_jsonl(queries)}
        if any(case.relevant for case in gold.cases):
            lines = base.qrels_lines(gold, "{query}\t{document}\t{grade}\n")
            files[f"qrels/{options.split or 'test'}.tsv"] = "".join(
                ["query-id\tcorpus-id\tscore\n", *lines]
            )
        if options.corpus is not None:
            files["corpus.jsonl"] = objects_to_jsonl(
                {"_id": passage.id, "title": "", "text": passage.text}
                for passage in read_corpus(options.corpus)
            )
        base.write_files(target, files, options)
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
