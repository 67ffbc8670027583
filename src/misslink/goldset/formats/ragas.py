"""ragas datasets, as JSON Lines, a JSON array or CSV (whose lists are Python's).

Both ragas 0.2 (``user_input, retrieved_contexts, reference_contexts, response, reference``) and
0.1 (``question, contexts, answer, ground_truth``).
Source: https://docs.ragas.io (EvaluationDataset, SingleTurnSample).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from misslink.goldset.formats.base import (
    CaseCollector,
    FormatOptions,
    ImportedGoldSet,
    count_unsupported_fields,
    count_unsupported_grades,
    formats,
    read_rows_with,
    write_file,
)
from misslink.goldset.writer import objects_to_jsonl
from misslink.io.goldset import GoldSet
from misslink.io.trace_formats.samples import (
    RAGAS_ANSWER,
    RAGAS_QUESTION,
    is_ragas_row,
    parse_printed_list,
    parse_ragas,
)
from misslink.types import Case

_SUPPORTED_FIELDS = {"id", "question", "evidence", "references", "relevant"}
_TAGS = ("synthesizer_name", "persona_name", "query_style", "query_length", "evolution_type")
_KNOWN = (
    *RAGAS_QUESTION, *RAGAS_ANSWER, *_TAGS, "reference", "ground_truth", "ground_truths",
    "retrieved_contexts", "contexts", "reference_contexts",
    "reference_context_ids", "retrieved_context_ids", "rubrics", "rubric", "metadata",
    "episode_done", "id",
)  # fmt: skip


@formats.register("ragas")
class RagasFormat:
    """An EvaluationDataset."""

    title = "ragas dataset"

    def matches(self, _source: Path, row: Mapping[str, Any] | None) -> bool:
        """Return whether a row has names that only ragas uses."""
        return is_ragas_row(row or {})

    def read(self, source: Path, _options: FormatOptions) -> ImportedGoldSet:
        """Read cases, and traces where the app's answer or passages are present."""
        collector = CaseCollector(source)
        for item in read_rows_with(source, RAGAS_QUESTION, _KNOWN):
            row = item.data
            fields, trace = parse_ragas(item)
            if fields["question"] is None:
                collector.left_out["rows without a question"] += 1
                continue
            is_conversation = isinstance(parse_printed_list(row.get("user_input")), list)
            collector.left_out["turns before a conversation's last question"] += is_conversation
            collector.left_out["rubrics"] += "rubrics" in row or "rubric" in row
            fields["tags"] = {name: str(row[name]) for name in _TAGS if name in row}
            collector.add(fields, item, trace)
        return collector.result()

    def write(self, gold: GoldSet, target: Path, options: FormatOptions) -> dict[str, int]:
        """Write JSON Lines as ``EvaluationDataset.from_jsonl`` reads them."""
        samples = []
        for case in gold.cases:
            sample = {
                "reference": case.references[0] if case.references else None,
                "reference_contexts": [text for text, grade in case.evidence.items() if grade],
                "reference_context_ids": [name for name, grade in case.relevant.items() if grade],
            }
            filled = {name: value for name, value in sample.items() if value}
            samples.append({"user_input": case.question, **filled})
        write_file(target, objects_to_jsonl(samples), options)
        counts = count_unsupported_fields(gold.cases, _SUPPORTED_FIELDS)
        counts["id"] += sum(
            case.id != Case(question=case.question, id=None).id for case in gold.cases
        )
        counts["references beyond the first"] += sum(len(c.references) > 1 for c in gold.cases)
        counts["grades other than 1"] += count_unsupported_grades(gold.cases)
        return dict(+counts)
