"""Input that loses something without a word, as people have reported it; a part of robustness.py.

Each is one of a right input's disguises: read, it gives what the right one gives; else it is refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from langchain_core.documents import Document

Run = Callable[..., tuple[int, str, str]]  # a command: exit code, stdout and stderr
_FERRY, _DOGS = "The ferry leaves at seven.", "Dogs travel free."
_GOLD = {"id": "a", "question": "When does it leave?", "relevant": ["p1"]}
_TRACE = {
    "case_id": "a",
    "answer": "At seven.",
    "retrieved": [{"id": "p1", "text": _FERRY}, {"id": "p2", "text": _DOGS}],
}
_OPTIONS = ("--judge", "none", "--embedding", "none", "--json")
_SPAN = {
    "name": "retriever",
    "context": {"trace_id": "0x" + "1" * 32, "span_id": "0x" + "2" * 16},
    "parent_id": None,
    "start_time": "2026-01-01T00:00:00.000000Z",
    "end_time": "2026-01-01T00:00:01.000000Z",
    "attributes": {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "When does it leave?",
        "retrieval.documents.0.document.id": "p1",
        "retrieval.documents.0.document.content": _FERRY,
    },
}


def _changed(row: dict[str, Any], **changes: Any) -> str:
    return json.dumps({**row, **changes})


def _disguised() -> Iterator[tuple[str, str, str, Any]]:
    """What is meant, gold set, traces, and the hit that is right (None: not measured)."""
    for name in ("P1", "./p1", "p\u200b1", "p1\u00ad"):
        yield f"id {name!r}", _changed(_GOLD, relevant=[name]), json.dumps(_TRACE), 1.0
    nowhere = _changed(_GOLD, relevant=[], evidence=["nothing of the kind"])
    yield "evidence that no passage has", nowhere, json.dumps(_TRACE), None
    yield "an empty error", json.dumps(_GOLD), _changed(_TRACE, error=""), 1.0
    twice = _changed(_TRACE, prompted=["p1", "p1"])
    yield "an id that is prompted twice", json.dumps(_GOLD), twice, 1.0
    yield "a span of the console", json.dumps(_GOLD), json.dumps(_SPAN, indent=4), 1.0


def _tables() -> Iterator[tuple[str, str, str]]:
    """What is meant, columns, and the passages as one text."""
    documents = [Document(_FERRY), Document(_DOGS)]
    yield "documents as Python prints them", "contexts", repr(documents)
    yield "documents as texts", "source_documents", str(list(map(str, documents)))
    yield "passages joined by a bar", "retrieval_context", f"{_FERRY}|{_DOGS}"


def find_silent_losses(folder: Path, run: Run) -> Iterator[str | None]:
    """Evaluate each; yield what was lost without a word, or None."""
    folder.mkdir(parents=True, exist_ok=True)
    gold, traces, table = (folder / name for name in ("gold.jsonl", "traces.jsonl", "table.csv"))
    for what, labels, trace, wanted in _disguised():
        gold.write_text(labels + "\n", encoding="utf-8")
        traces.write_text(trace + "\n", encoding="utf-8")
        given = ("--goldset", gold, "--traces", traces, "--k", 1, "--out", folder / "run")
        yield _read(what, run("evaluate", *given, *_OPTIONS, "--overwrite"), _hit, wanted)
    for what, column, passages in _tables():
        cell = passages.replace('"', '""')
        asked = "input,actual_output" if column == "retrieval_context" else "question,answer"
        table.write_text(f'{asked},{column}\nWhen?,At seven.,"{cell}"\n', encoding="utf-8")
        given = ("--traces", table, "--out", folder / "run", "--overwrite")
        yield _read(what, run("evaluate", *given, *_OPTIONS), lambda _: _passages(folder), 2)
    table.write_text("question,answer,contexts,\nWhen?,At seven.,x,lost\n", encoding="utf-8")
    yield _refused("a column without a name", run("evaluate", "--traces", table, *_OPTIONS))
    verdicts = folder / "verdicts.jsonl"
    verdicts.write_text('{"case_id": "a", "metric": "faithfulness", "lable": true}\n', "utf-8")
    given = ("--verdicts", verdicts, "--labels", verdicts)
    yield _refused("a misspelt key", run("calibrate", *given))


def _hit(out: dict[str, Any]) -> Any:
    return out["retrieval"]["hit@1"]["value"]


def _passages(folder: Path) -> int:
    (line,) = (folder / "run" / "traces.jsonl").read_text(encoding="utf-8").splitlines()
    return len(json.loads(line)["retrieved"])


def _read(
    what: str, done: tuple[int, str, str], found: Callable[[dict[str, Any]], Any], wanted: Any
) -> str | None:
    code, out, err = done
    if code == -1:
        return f"traceback: {what}: {err[-300:]}"
    if code == 0 and (value := found(json.loads(out))) != wanted:
        return f"{what}: {value} and not {wanted}"
    return None if code in {0, 2} else f"{what}: exit code {code}: {err[-200:]}"


def _refused(what: str, done: tuple[int, str, str]) -> str | None:
    code, _, err = done
    if code == -1:
        return f"traceback: {what}: {err[-300:]}"
    return None if code == 2 else f"{what}: exit code {code}"
