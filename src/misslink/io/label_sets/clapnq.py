"""CLAPNQ: questions with one passage each; half of the passages hold no answer.

The public files, such as ``clapnq_dev_answerable.jsonl``, have the fields ``id, input, passages,
output`` (primeqa/clapnq on GitHub). The reduced form has ``question, contexts, answerable,
gold_answers``.

Source: Rosenthal et al., CLAPNQ, TACL 2025; Apache-2.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, Field, StrictBool

from misslink.io.label_sets import importer
from misslink.registry import importers
from misslink.types import Case

_EXPECTED_FILES = "a file such as clapnq_dev_answerable.jsonl"
METRICS = ("context_sufficiency", "context_relevance")  # both: does the passage hold an answer?
_DECLINES = "I cannot answer this question."


class _ReducedRow(BaseModel):
    id: importer.Id
    split: importer.Word = None
    question: importer.Text
    contexts: list[str]
    gold_answers: list[str] = []
    answerable: StrictBool


class _Passage(BaseModel):
    text: importer.Text


class _Output(BaseModel):
    answer: importer.Word = None


class _PublicRow(BaseModel):
    id: importer.Id
    split: importer.Word = None
    question: importer.Text = Field(alias="input")
    passages: list[_Passage]
    output: list[_Output]

    @property
    def contexts(self) -> list[str]:
        return [passage.text for passage in self.passages]

    @property
    def gold_answers(self) -> list[str]:
        return [output.answer for output in self.output if output.answer]

    @property
    def answerable(self) -> bool:
        return bool(self.gold_answers)


_FORMS: dict[type[_PublicRow | _ReducedRow], tuple[str, ...]] = {
    _PublicRow: ("input", "passages", "output"),
    _ReducedRow: ("question", "contexts", "answerable"),
}


@importers.register("clapnq")
def import_clapnq(
    paths: Sequence[Path], options: importer.ImportOptions
) -> importer.ImportedLabelSet:
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
    options.require_support("CLAPNQ", split=True)
    builder = importer.LabelSetBuilder(options, "clapnq")
    with_answers = []
    for path in paths:
        for row, entry in importer.read_rows_of(path, "CLAPNQ", _EXPECTED_FILES, _FORMS):
            split = entry.split or importer.detect_split(path)
            if not builder.selects(split):
                continue
            passages = importer.number_passages(entry.id, entry.contexts)
            case = Case(
                id=entry.id,
                question=entry.question,
                relevant={passage.id: 1 for passage in passages} if entry.answerable else {},
                answerable=entry.answerable,
                tags={"split": split} if split else {},
            )
            builder.add(row, case, passages, _DECLINES)
            references = tuple(entry.gold_answers)
            with_answers.append(case.model_copy(update={"references": references}))
            for metric in METRICS:
                builder.label(case.id, metric, int(entry.answerable))
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
        commands=(
            importer.EVALUATE_COMMAND,
            f"{importer.CALIBRATE_COMMAND} --metric context_relevance",
        ),
    )
