"""CLAPNQ: questions with one passage each, half of which hold no answer.

The public files, ``clapnq_dev_answerable.jsonl`` and its like, have the fields that the set's own
page describes (primeqa/clapnq on GitHub): ``id, input, passages, output``. The reduced form has
``question, contexts, answerable, gold_answers``.

Source: Rosenthal et al., CLAPNQ, TACL 2025; Apache-2.0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from misslink.files.jsonl import read_objects
from misslink.files.public.fields import Entry, passages, split_of
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

__all__ = ["METRICS", "clapnq"]

_NAME = "CLAPNQ"
_FORMS = "a file such as clapnq_dev_answerable.jsonl"
METRICS = ("context_sufficiency", "context_relevance")  # both: does the passage hold an answer?
_DECLINES = "I cannot answer this question."


@importers.register("clapnq")
def clapnq(paths: Sequence[Path], wanted: Wanted) -> Imported:
    """Read CLAPNQ: its annotated files, or the reduced form.

    Parameters
    ----------
    paths : sequence of Path
        The split is told by the file's name, or by a field ``split``.
    wanted : Wanted

    Returns
    -------
    Imported
        A case a question. No system answered them, so every trace declines in the same words: an
        answer, or a reference in the gold set, would give away to a judge whether there is one.
        The references stand in a second gold set, for an app of one's own. The labels say of
        ``context_sufficiency`` and of ``context_relevance`` whether the passage holds an answer.

    Raises
    ------
    InputError
        A file is something else or broken, a question stands twice, or nothing is of the split.
    """
    refuse_unasked(wanted, _NAME, split=True)
    blind: dict[str, Case] = {}
    whole, traces, labels = [], [], []
    left_out: Counter[str] = Counter()
    splits = set()
    for entry in (found for path in paths for found in _entries(path)):
        split = entry.word("split") or split_of(entry.path)
        splits.add(split or "")
        if wanted.split not in {None, split}:
            left_out[SKIPPED] += 1
            continue
        case_id = entry.id("id")
        if case_id in blind:
            raise entry.wrong(f"the question '{case_id}' stands twice; name each file once", "id")
        question, texts, answers, answerable = _read(entry)
        held = passages(case_id, texts)
        ids = tuple(passage.id for passage in held)
        blind[case_id] = Case(
            id=case_id,
            question=question,
            relevant=dict.fromkeys(ids, 1) if answerable else {},
            answerable=answerable,
            tags={"split": split} if split else {},
        )
        whole.append(blind[case_id].model_copy(update={"references": tuple(answers)}))
        traces.append(Trace(case_id=case_id, retrieved=held, prompted=ids, answer=_DECLINES))
        labels += [
            {"case_id": case_id, "metric": name, "label": int(answerable), "annotator": "clapnq"}
            for name in METRICS
        ]
    if not blind:
        raise none_left(wanted, splits - {""})
    return Imported(
        title="CLAPNQ: questions with one passage each, of which about half hold no answer",
        source="Rosenthal et al., CLAPNQ, TACL 2025, https://github.com/primeqa/clapnq",
        licence="Apache-2.0",
        labels=labels,
        goldsets={
            "goldset.jsonl": tuple(blind.values()),
            "goldset_with_answers.jsonl": whole,
        },
        traces={"traces.jsonl": traces},
        notes=(
            (
                "The labels say of context_sufficiency and of context_relevance whether the "
                "passage holds an answer. The embedded judge says nothing of the first."
            ),
            (
                "No system answered: every trace declines in the same words, and goldset.jsonl has "
                "no reference answers, since both would tell a judge whether there is an answer."
            ),
            "goldset_with_answers.jsonl has people's answers, for an app of your own.",
        ),
        commands=(
            EVALUATE,
            f"{CALIBRATE} --metric context_relevance",
        ),
        left_out=left_out,
    )


def _entries(path: Path) -> Iterator[Entry]:
    for line, row in read_objects(path):
        entry = Entry(row, path, line)
        if not (
            entry.has("input", "passages", "output")
            or entry.has("question", "contexts", "answerable")
        ):
            raise entry.unknown(_NAME, _FORMS)
        yield entry


def _read(entry: Entry) -> tuple[str, list[str], list[str], bool]:
    """Question, passages, people's answers, and whether there is any."""
    if entry.has("contexts"):
        answers = entry.texts("gold_answers") if entry.has("gold_answers") else []
        return entry.text("question"), entry.texts("contexts"), answers, entry.truth("answerable")
    texts = [passage.text("text") for passage in entry.objects("passages")]
    answers = [found for one in entry.objects("output") if (found := one.word("answer"))]
    return entry.text("input"), texts, answers, bool(answers)
