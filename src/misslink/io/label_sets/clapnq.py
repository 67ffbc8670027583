"""CLAPNQ: questions with one passage each; half of the passages hold no answer.

The public files, such as ``clapnq_dev_answerable.jsonl``, have the fields ``id, input, passages,
output`` (primeqa/clapnq on GitHub). The reduced form has ``question, contexts, answerable,
gold_answers``.

Source: Rosenthal et al., CLAPNQ, TACL 2025; Apache-2.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from misslink.io.jsonl import read_objects
from misslink.io.label_sets.importer import (
    CALIBRATE_COMMAND,
    EVALUATE_COMMAND,
    ImportedLabelSet,
    ImportOptions,
    LabelSetBuilder,
    SourceRow,
    detect_split,
    number_passages,
    reject_unsupported_options,
)
from misslink.registry import importers
from misslink.types import Case

_EXPECTED_FILES = "a file such as clapnq_dev_answerable.jsonl"
METRICS = ("context_sufficiency", "context_relevance")  # both: does the passage hold an answer?
_DECLINES = "I cannot answer this question."


@importers.register("clapnq")
def import_clapnq(paths: Sequence[Path], options: ImportOptions) -> ImportedLabelSet:
    """Read CLAPNQ: its annotated files, or the reduced form.

    Parameters
    ----------
    paths : sequence of Path
        The file's name or a field ``split`` gives the split.
    options : ImportOptions

    Returns
    -------
    ImportedLabelSet
        A case per question. No system answered them, so every trace declines in the same words: an
        answer, or a reference in the gold set, would tell a judge whether there is one. A second
        gold set has the references, for an app of your own. The labels of ``context_sufficiency``
        and ``context_relevance`` say whether the passage holds an answer.

    Raises
    ------
    InputError
        A file is something else or broken, a question is repeated, or nothing is of the split.
    """
    reject_unsupported_options(options, "CLAPNQ", split=True)
    builder = LabelSetBuilder(options, "clapnq")
    with_answers = []
    for path in paths:
        for line, entry in read_objects(path):
            row = SourceRow(entry, path, line)
            if not row.has("input", "passages", "output") and not row.has(
                "question", "contexts", "answerable"
            ):
                raise row.unknown("CLAPNQ", _EXPECTED_FILES)
            split = row.word("split") or detect_split(path)
            if not builder.selects(split):
                continue
            case_id = row.id("id")
            if case_id in builder.cases:
                raise row.repeated("question", case_id, "id")
            question, texts, answers, answerable = _parse_row(row)
            passages = number_passages(case_id, texts)
            case = Case(
                id=case_id,
                question=question,
                relevant={passage.id: 1 for passage in passages} if answerable else {},
                answerable=answerable,
                tags={"split": split} if split else {},
            )
            with_answers.append(case.model_copy(update={"references": tuple(answers)}))
            builder.add(case, passages, _DECLINES)
            for metric in METRICS:
                builder.label(case_id, metric, int(answerable))
    return builder.finish(
        title="CLAPNQ: questions with one passage each; about half of the passages hold no answer",
        source="Rosenthal et al., CLAPNQ, TACL 2025, https://github.com/primeqa/clapnq",
        licence="Apache-2.0",
        goldsets={
            "goldset.jsonl": tuple(builder.cases.values()),
            "goldset_with_answers.jsonl": with_answers,
        },
        notes=(
            (
                "The labels of context_sufficiency and of context_relevance say whether the passage "
                "holds an answer. The heuristic judge does not judge the first."
            ),
            (
                "No system answered: every trace declines in the same words, and goldset.jsonl has "
                "no reference answers, since both would tell a judge whether there is an answer."
            ),
            "goldset_with_answers.jsonl has reference answers, for an app of your own.",
        ),
        commands=(EVALUATE_COMMAND, f"{CALIBRATE_COMMAND} --metric context_relevance"),
    )


def _parse_row(row: SourceRow) -> tuple[str, list[str], list[str], bool]:
    """Question, passages, reference answers, and whether there is any."""
    if row.has("contexts"):
        answers = row.texts("gold_answers") if row.has("gold_answers") else []
        return row.text("question"), row.texts("contexts"), answers, row.truth("answerable")
    texts = [passage.text("text") for passage in row.objects("passages")]
    answers = [text for output in row.objects("output") if (text := output.word("answer"))]
    return row.text("input"), texts, answers, bool(answers)
