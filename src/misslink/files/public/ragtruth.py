"""RAGTruth: answers of six models with the spans that people marked as hallucinated.

The public files, ``response.jsonl`` and ``source_info.jsonl``, have the fields that the set's own
page describes (ParticleMedia/RAGTruth on GitHub). The reduced form has one line an answer, with
``question, contexts, answer, spans`` in it.

Source: Niu et al., RAGTruth, ACL 2024; MIT.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.jsonl import read_objects
from misslink.files.public.fields import Entry, passages
from misslink.files.public.imported import (
    CALIBRATE,
    EVALUATE,
    SKIPPED,
    Imported,
    Wanted,
    none_left,
    refuse_unasked,
)
from misslink.registry import importers
from misslink.types import Case, Trace

__all__ = ["ragtruth"]

_NAME = "RAGTruth"
_FORMS = "its response.jsonl and source_info.jsonl"
_PASSAGE = re.compile(r"(?:\A|\n\s*)passage \d+:")
_TASKS = {"QA", "Summary", "Data2txt"}
_LONGEST = 10_000_000  # characters; where a span ends is told as the set tells it
_ASKED = {"Summary": "Summarise the text.", "Data2txt": "Describe what the data say."}


@dataclass(frozen=True)
class _Source:
    """What answers were written from."""

    question: str
    texts: tuple[str, ...]
    task: str
    origin: str | None


@importers.register("ragtruth")
def ragtruth(paths: Sequence[Path], wanted: Wanted) -> Imported:
    """Read RAGTruth: response.jsonl and source_info.jsonl in any order, or the reduced form.

    Parameters
    ----------
    paths : sequence of Path
        Each file is recognised by its fields.
    wanted : Wanted
        ``implicit_true`` says what spans do to an answer that are true, though no passage says so.

    Returns
    -------
    Imported
        A case an answer; its label is 0 where a span was marked, and the comment holds the spans.

    Raises
    ------
    InputError
        A file is something else or broken, one of the two is not there, an answer's source is
        missing, an id stands twice, or nothing is of the wanted split and task.
    """
    refuse_unasked(wanted, _NAME, split=True, task=True)
    answers, sources = _read(paths)
    cases: dict[str, Case] = {}
    traces, labels = [], []
    left_out: Counter[str] = Counter()
    splits, tasks, implicit = set(), set(), 0
    for entry in answers:
        source = _source_of(entry, sources)
        split = entry.word("split")
        splits.add(split or "")
        tasks.add(source.task)
        if wanted.split not in {None, split} or wanted.task not in {None, source.task}:
            left_out[SKIPPED] += 1
            continue
        case_id, source_id = entry.id("id"), entry.id("source_id")
        if case_id in cases:
            raise entry.wrong(f"the answer '{case_id}' stands twice; name each file once", "id")
        answer = entry.text("response" if entry.has("response") else "answer", blank=True)
        spans = list(_spans(entry))
        implicit += bool(spans) and all(span["implicit"] for span in spans)
        cases[case_id] = Case(id=case_id, question=source.question, tags=_tags(entry, source))
        retrieved = passages(source_id, source.texts)
        traces.append(
            Trace(case_id=case_id, retrieved=retrieved, prompted=_ids(retrieved), answer=answer)
        )
        labels.append(_label(case_id, spans, wanted))
    if not cases:
        raise none_left(wanted, splits - {""}, tasks)
    return Imported(
        title="RAGTruth: answers with the spans that people marked as hallucinated",
        source="Niu et al., RAGTruth, ACL 2024, https://github.com/ParticleMedia/RAGTruth",
        licence="MIT",
        labels=labels,
        goldsets={"goldset.jsonl": tuple(cases.values())},
        traces={"traces.jsonl": traces},
        notes=(
            (
                "An answer is unfaithful where people marked a span of it; the comment of its "
                "label holds the spans, as characters of the answer."
            ),
            (
                f"Of {implicit} answers every marked span is true, though no passage says so; they "
                f"count as {wanted.implicit_true} (--implicit-true)."
            ),
        ),
        commands=(
            EVALUATE,
            CALIBRATE,
        ),
        left_out=left_out,
    )


def _read(paths: Sequence[Path]) -> tuple[list[Entry], dict[str, _Source]]:
    """Tell answers from sources by their fields."""
    answers: list[Entry] = []
    sources: dict[str, _Source] = {}
    of_sources: Path | None = None
    for path in paths:
        for line, row in read_objects(path):
            entry = Entry(row, path, line)
            if entry.has("response", "labels"):
                answers.append(entry)
            elif entry.has("source_info"):
                of_sources = path
                name = entry.id("source_id")
                if name in sources:
                    raise entry.wrong(
                        f"the source '{name}' stands twice; name each file once", "source_id"
                    )
                sources[name] = _source(entry)
            elif entry.has("answer", "contexts", "spans"):
                answers.append(entry)
            else:
                raise entry.unknown(_NAME, _FORMS)
    if not answers:
        raise InputError(
            "these are the sources without the answers; name response.jsonl too", path=of_sources
        )
    return answers, sources


def _source_of(entry: Entry, sources: Mapping[str, _Source]) -> _Source:
    if entry.has("contexts"):
        texts = tuple(entry.texts("contexts"))
        return _Source(entry.text("question"), texts, "QA", None)
    name = entry.id("source_id")
    if not sources:
        raise InputError(
            "these are the answers without what they were written from; name source_info.jsonl too",
            path=entry.path,
        )
    if name not in sources:
        raise entry.wrong(
            f"there is no source '{name}'; give the source_info.jsonl of the same download",
            "source_id",
        )
    return sources[name]


def _source(entry: Entry) -> _Source:
    task, origin = entry.text("task_type"), entry.word("source")
    if task not in _TASKS:
        raise entry.wrong(
            f"'{task[:40]}' is no task; known: {', '.join(sorted(_TASKS))}", "task_type"
        )
    if task == "QA":
        info = entry.object("source_info")
        held = info.row.get("passages")
        texts = info.texts("passages") if isinstance(held, list) else _cut(info.text("passages"))
        return _Source(info.text("question"), tuple(texts), task, origin)
    if task == "Summary":
        text = entry.text("source_info")
        return _Source(_asked(entry, text, task), (text,), task, origin)
    data = entry.object("source_info").row
    return _Source(_asked(entry, "{", task), (json.dumps(data, ensure_ascii=False),), task, origin)


def _cut(text: str) -> list[str]:
    """The passages of a text that numbers them; the whole where it does not."""
    found = [part.strip() for part in _PASSAGE.split(text)]
    return [part for part in found if part]


def _asked(entry: Entry, text: str, task: str) -> str:
    """What the models were told to do: the prompt up to the text it was about."""
    prompt = entry.word("prompt") or ""
    head, found, _ = prompt.partition(text.strip())
    return head.strip() if found and head.strip() else _ASKED[task]


def _spans(entry: Entry) -> Iterator[dict[str, Any]]:
    for span in entry.objects("labels" if entry.has("labels") else "spans"):
        yield {
            "start": span.whole("start", 0, _LONGEST),
            "end": span.whole("end", 0, _LONGEST),
            "text": span.text("text", blank=True),
            "kind": span.word("label_type") or "marked",
            "implicit": span.row.get("implicit_true") is True,
        }


def _label(case_id: str, spans: Sequence[Mapping[str, Any]], wanted: Wanted) -> dict[str, Any]:
    counted = [s for s in spans if wanted.implicit_true == "unfaithful" or not s["implicit"]]
    label = {
        "case_id": case_id,
        "metric": "faithfulness",
        "label": int(not counted),
        "annotator": "ragtruth",
    }
    told = [
        f"{span['start']}-{span['end']} {span['kind']}"
        f"{' (true, though no passage says so)' if span['implicit'] else ''}: {span['text']}"
        for span in spans
    ]
    return label | ({"comment": "\n".join(told)} if told else {})


def _tags(entry: Entry, source: _Source) -> dict[str, str]:
    found = {
        "model": entry.word("model"),
        "split": entry.word("split"),
        "task": source.task,
        "source": source.origin,
        "quality": entry.word("quality"),
    }
    return {name: value for name, value in found.items() if value}


def _ids(retrieved: Sequence[Any]) -> tuple[str, ...]:
    return tuple(passage.id for passage in retrieved)
