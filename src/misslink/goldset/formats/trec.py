"""TREC topics and qrels.

Topics are a table of id and question apart by a tab, ``<top>`` entries with ``<num>`` and
``<title>`` (whose ends older tracks leave out), or ``<topic number="1">`` with a ``<query>``.

Source: https://trec.nist.gov/data.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.goldset import GoldSet
from misslink.files.jsonl import read_text
from misslink.goldset.formats.format import Brought, Collected, Options, formats
from misslink.goldset.formats.held import lost
from misslink.goldset.formats.judged import by_query, grades, qrels_rows
from misslink.goldset.formats.places import folder_of, write_all

__all__ = ["Trec"]

_HELD = {"id", "question", "relevant"}
_TOP = re.compile(r"<top>|<topic\b([^>]{0,200})>", re.IGNORECASE)
_END = re.compile(r"</top>|</topic>|</topics>", re.IGNORECASE)
_NUMBER = re.compile(r"""number\s{0,4}=\s{0,4}["']([^"']{1,100})["']""", re.IGNORECASE)
_LABEL = re.compile(r"^\s*(?:number|topic|description|title|query)\s*:", re.IGNORECASE)
_TEXTS = ("title", "query", "question", "desc")
_HEADER = {"id", "qid", "query_id", "topic", "number", "query-id", "topic_id"}


@formats.register("trec")
class Trec:
    """Topics and qrels."""

    title = "TREC topics and qrels"

    def is_it(self, source: Path, row: Mapping[str, Any] | None) -> bool:
        """Whether a folder holds topics, or a file begins as topics do."""
        if source.is_dir():
            return any(_topics(source)) and not (source / "queries.jsonl").is_file()
        if row is not None:
            return False
        head = read_text(source)[:2000].lstrip()
        return bool(_TOP.search(head)) or "\t" in head.partition("\n")[0]

    def bring(self, source: Path, options: Options) -> Brought:
        """Read topics, and the qrels beside them or of `options`."""
        topics, qrels = source, options.qrels
        if source.is_dir():
            topics = _only(source, _topics(source), "topics")
            qrels = qrels or _only(source, _judged(source), "qrels")
        if qrels is None:
            raise InputError(
                "topics alone say nothing of documents; add  --qrels FILE", path=topics
            )
        judged = by_query(qrels)
        found = Collected(topics)
        seen = set()
        for line, name, question in _entries(topics):
            seen.add(name)
            relevant = grades(judged.get(name, {}), found.left_out)
            found.add({"id": name, "question": question, "relevant": relevant}, line)
        found.left_out["judged queries without a topic"] += len(set(judged) - seen)
        return found.brought()

    def take_out(self, gold: GoldSet, target: Path, options: Options) -> dict[str, int]:
        """Write topics.tsv and qrels.txt into a folder."""
        for case in gold.cases:
            if any(sign.isspace() for sign in case.id):
                raise gold.error(case.id, "id", f"the id {case.id!r} holds a blank; rename it")
        files = {
            "topics.tsv": "".join(
                f"{case.id}\t{' '.join(case.question.split())}\n" for case in gold.cases
            ),
            "qrels.txt": "".join(qrels_rows(gold, "{query} 0 {document} {grade}\n")),
        }
        write_all(folder_of(target), files, options)
        counts = lost(gold.cases, _HELD)
        counts["line breaks and runs of blanks in questions"] += sum(
            case.question != " ".join(case.question.split()) for case in gold.cases
        )
        return dict(+counts)


def _topics(folder: Path) -> list[Path]:
    return sorted(
        p
        for p in folder.iterdir()
        if p.is_file() and re.search("topic|quer", p.name, re.IGNORECASE)
    )


def _judged(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.is_file() and "qrel" in p.name.casefold())


def _only(folder: Path, found: list[Path], what: str) -> Path:
    if len(found) == 1:
        return found[0]
    told = f"there is no file of {what}"
    if found:
        told = f"there are several files of {what} ({', '.join(p.name for p in found)})"
    raise InputError(
        f"{told} in this folder; name the file of topics and --qrels FILE", path=folder
    )


def _entries(path: Path) -> Iterator[tuple[int, str, str]]:
    text = read_text(path)
    if _TOP.search(text):
        yield from _of_tags(path, text)
        return
    for line, row in enumerate(text.split("\n"), start=1):
        if not row.strip():
            continue
        name, tab, question = row.rstrip("\r").partition("\t")
        if not tab or not question.strip() or not name.strip():
            raise InputError("a topic is an id, a tab and a question", path=path, line=line)
        if line == 1 and name.strip().casefold() in _HEADER:
            continue
        yield line, name.strip(), question.strip()


def _of_tags(path: Path, text: str) -> Iterator[tuple[int, str, str]]:
    starts = list(_TOP.finditer(text))
    ends = [one.start() for one in starts[1:]] + [len(text)]
    for start, end in zip(starts, ends, strict=True):
        line = text.count("\n", 0, start.start()) + 1
        entry = _END.split(text[start.end() : end], maxsplit=1)[0]
        fields = _fields(entry)
        numbered = _NUMBER.search(start[1] or "")
        name = numbered[1].strip() if numbered else fields.get("num", "")
        question = next((fields[each] for each in _TEXTS if fields.get(each)), "")
        if not name or not question:
            lacking = "a number (<num>)" if not name else "a text (<title>, <query> or <desc>)"
            raise InputError(f"this topic lacks {lacking}; add it", path=path, line=line)
        yield line, name, question


def _fields(entry: str) -> dict[str, str]:
    """The texts of a topic by tag, up to the next tag, whether it is closed or not."""
    found: dict[str, str] = {}
    pieces = re.split(r"<(/?)(\w{1,20})>", entry)
    for at in range(1, len(pieces), 3):
        closing, tag, text = pieces[at : at + 3]
        if not closing:
            plain = _LABEL.sub("", html.unescape(text))
            found.setdefault(tag.casefold(), " ".join(plain.split()))
    return found
