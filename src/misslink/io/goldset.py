"""Read gold sets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from misslink.errors import InputError, did_you_mean
from misslink.io.jsonl import SourceItem
from misslink.io.rows import open_items, split_ids
from misslink.io.suite import is_suite_row, suite_case
from misslink.parts import by_case, light_items
from misslink.types import Case, Trace


@dataclass(frozen=True)
class GoldSet:
    """Cases, and the location of each.

    Parameters
    ----------
    cases : sequence of Case
    name : str
        The file, or 'given in Python'.
    places : mapping of str to SourceItem
        Case id to location in a file, without the data.
    """

    cases: Sequence[Case]
    name: str
    places: Mapping[str, SourceItem] = field(default_factory=dict)

    def item(self, case_id: str) -> SourceItem:
        """Return the location of a case; the name alone where no line is known."""
        return self.places.get(case_id) or SourceItem(None, self.name)

    def error(self, case_id: str, field: str, problem: str) -> InputError:
        """Return an error that names the file, the line and the field of a case."""
        return self.item(case_id).error(problem, field)

    def add_histories(self, traces: Sequence[Trace]) -> GoldSet:
        """Return the gold set with the histories that only its traces have."""
        told = {row.case_id for row in light_items(traces) if row.history}
        trace_of = by_case(traces)
        cases = [
            case.model_copy(update={"history": trace_of[case.id].history})
            if case.id in told and not case.history
            else case
            for case in self.cases
        ]
        return replace(self, cases=tuple(cases))

    def only(self, ids: Iterable[str]) -> GoldSet:
        """Return the gold set of these cases alone, in its own order.

        Raises
        ------
        InputError
            It holds no case of one of them.
        """
        known_ids = {case.id for case in self.cases}
        selected = set(ids)
        for unknown in sorted(selected - known_ids):
            hint = did_you_mean(unknown, known_ids)
            problem = f"there is no case with the id '{unknown}'; {hint or 'give one of its ids'}"
            raise InputError(problem, path=self.name)
        return replace(self, cases=tuple(case for case in self.cases if case.id in selected))


def read_goldset(source: str | Path | Iterable[Case | Mapping[str, Any] | SourceItem]) -> GoldSet:
    """Read a gold set.

    Parameters
    ----------
    source : path, URL, data frame, or iterable of Case or mapping
        A file is JSON Lines, a JSON array, CSV, an Excel sheet, or parquet; several files are named
        by their folder or a pattern (`misslink.io.storage.list_shards` says which). In a table, a
        cell of ``relevant`` holds ids with a semicolon, ``|`` or line break between them, or else a
        comma (not where a part has a blank inside, or only some are file names, as in ``Smith,
        J.pdf``); a cell of another list holds JSON or one text. In a frame NaN means that there is
        no value. An object with ``turns`` is a conversation: each turn becomes a case, ``ID/1`` and
        on, of the group ``ID``.

    Raises
    ------
    InputError
        A line is not JSON, lacks its question, names an unknown field or repeats an id; there
        is no case at all; or nothing is there.
    """
    name, items = open_items(source, "the gold set", Case)
    cases: dict[str, Case] = {}
    places: dict[str, SourceItem] = {}
    for item, case in ((row, case) for row in items for case in _parse_cases(row)):
        data = item.data
        if case.id in cases:
            where = places[case.id].first_place(item)
            first = where and f" (first {where})"
            if isinstance(data, Case) or data.get("id") is not None:
                problem = f"the id '{case.id}' is used twice{first}; each case needs its own id"
                raise item.error(problem, "id")
            raise item.error(
                f"this question occurs twice{first}; drop one, or give each an id", "question"
            )
        cases[case.id] = case
        places[case.id] = item._replace(data=None)
    if not cases:
        raise InputError("it has no cases", path=name)
    return GoldSet(tuple(cases.values()), name, places)


# Fields of other tools' data sets, which hold answers of an app too.
_TOOL_FIELDS = {
    "user_input": "ragas", "retrieved_contexts": "ragas", "ground_truth": "ragas", "contexts": "ragas",
    "actual_output": "deepeval", "retrieval_context": "deepeval", "expectedOutput": "Langfuse",
    "inputs": "LangSmith",
}  # fmt: skip
_REFERENCE_NAMES = {"answer", "answers", "expected_answer", "expected_output", "ground_truths"}


_CONVERSATION_FIELDS = {"id", "turns", "category", "tags", "tier", "asked_at"}


def _parse_cases(item: SourceItem) -> Iterator[Case]:
    """The case of an item, or the cases of a conversation's turns.

    The history of a turn is the turns before it, with their first references as the assistant's
    messages: the same for every app and every run.
    """
    if is_suite_row(item.data):
        item = suite_case(item)
    data = item.data
    if isinstance(data, Case):
        yield data
        return
    if not isinstance(data, Mapping) or "turns" not in data:
        yield _parse_case(item)
        return
    turns, shared = data["turns"], {name: data[name] for name in data if name != "turns"}
    name = data.get("id")
    if not isinstance(name, str | int) or not str(name).strip():
        raise item.error("A conversation needs an id. The ids of its turns are ID/1, ID/2.", "id")
    if foreign := sorted(data.keys() - _CONVERSATION_FIELDS):
        problem = "A conversation has no such field. Move it into the turns."
        raise item.error(problem, foreign[0])
    if (
        not isinstance(turns, list | tuple)
        or not turns
        or not all(isinstance(turn, Mapping) for turn in turns)
    ):
        problem = "This must be a list of one turn or more, each an object with a question."
        raise item.error(problem, "turns")
    history: list[dict[str, str]] = []
    for number, turn in enumerate(turns, 1):
        place = f"turns.{number}"
        if foreign := sorted({"id", "group", "history"} & turn.keys()):
            problem = "A turn has no such field. It follows from the conversation. Remove it."
            raise item.error(problem, f"{place}.{foreign[0]}")
        own = {"id": f"{name}/{number}", "group": name, "history": history}
        try:
            case = _parse_case(item._replace(data={**shared, **turn, **own}))
        except InputError as error:
            raise item.error(error.problem, f"{place}.{error.field or ''}".strip(".")) from None
        yield case
        if number < len(turns) and not case.references:
            problem = "Add a reference. Later turns quote it as the assistant's message."
            raise item.error(problem, f"{place}.reference")
        answer = case.references[0] if case.references else ""
        history = [
            *history,
            {"role": "user", "content": case.question},
            {"role": "assistant", "content": answer},
        ]


def _parse_case(item: SourceItem) -> Case:
    """Build a case; an error names the field that was meant, or the tool that wrote the file."""
    ids = item.data.get("relevant") if isinstance(item.data, Mapping) else None
    if isinstance(ids, str) and len(parts := split_ids(ids)) > 1:
        problem = f"This one text seems to hold {len(parts)} ids. Write a list: {json.dumps(parts)}"
        raise item.error(problem, "relevant")
    try:
        return item.parse(Case)
    except InputError as error:
        names = set(item.data) if isinstance(item.data, Mapping) else set()
        tools = [tool for name, tool in _TOOL_FIELDS.items() if name in names]
        if tools:
            convert = f" To convert it, run:  misslink goldset import {item.file} --out gold.jsonl"
            raise item.error(
                f"This is a data set of {tools[0]}, not a gold set. To evaluate its answers, add "
                f" --traces {item.file}{'' if tools[0] == 'deepeval' else f' .{convert}'}"
            ) from None
        if error.field in _REFERENCE_NAMES:
            problem = "A gold set has no such field. Call the expected answer 'reference'."
            raise item.error(problem, error.field) from None
        raise
