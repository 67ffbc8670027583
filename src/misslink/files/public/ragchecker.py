"""RAGChecker's meta-evaluation: pairs of answers, compared by two people each.

The public files are ``human_labeled_data.json``, two entries a pair (one of each annotator), and
where it is wanted ``baseline_ragchecker.json`` with RAGChecker's own scores of the same pairs
(amazon-science/RAGChecker on GitHub, data/meta_evaluation; the data are Git LFS objects). The
reduced form has one line a pair.

Source: Ru et al., RAGChecker, NeurIPS 2024; Apache-2.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.files.jsonl import read_objects
from misslink.files.numbers import finite
from misslink.files.public.fields import Entry
from misslink.files.public.imported import Imported, Wanted, refuse_unasked
from misslink.registry import importers
from misslink.types import Case, Trace

__all__ = ["ragchecker"]

_NAME = "RAGChecker's meta-evaluation"
_FORMS = "its human_labeled_data.json"
_MOST = 2  # grades go from -2 (A is much better) to 2 (B is much better)
_PEOPLE = 2
_KINDS = ("overall", "correctness", "completeness")
_UNMEASURED = "RAGChecker's meta-evaluation does not say what was retrieved"


@dataclass
class _Pair:
    """Two answers to one question, with what was said of them."""

    entry: Entry
    question: str
    reference: str
    systems: tuple[str, str]
    answers: tuple[str, str]
    grades: dict[str, list[int]] = field(default_factory=lambda: {kind: [] for kind in _KINDS})
    scored: dict[str, float] = field(default_factory=dict)  # RAGChecker's own, B minus A


@importers.register("ragchecker")
def ragchecker(paths: Sequence[Path], wanted: Wanted) -> Imported:
    """Read RAGChecker's pairs of answers, and its own scores of them where they are given.

    Parameters
    ----------
    paths : sequence of Path
        human_labeled_data.json, and where it is wanted baseline_ragchecker.json; or the reduced
        form. Each is recognised by its fields.
    wanted : Wanted

    Returns
    -------
    Imported
        A case a pair, a file of traces for the answers A and one for B. The label of the metric
        ``preference`` is 1 where B is much better, 0.75 where it is better, and so down to 0; who
        sees no difference has none. All grades, 0.5 for no difference, have the metric
        ``preference_grade``; the finer questions are ``preference_correctness`` and
        ``preference_completeness``, with all grades. The verdicts are RAGChecker's, where known:
        (1 + score of B - score of A) / 2.

    Raises
    ------
    InputError
        A file is something else or broken, a grade is none, or a pair has three annotators.
    """
    refuse_unasked(wanted, _NAME)
    pairs = _read(paths)
    cases, labels, verdicts = [], [], []
    sides: tuple[list[Trace], list[Trace]] = ([], [])
    for case_id, pair in pairs.items():
        dataset = pair.entry.word("dataset")
        tags = {"dataset": dataset, "system_a": pair.systems[0], "system_b": pair.systems[1]}
        cases.append(
            Case(
                id=case_id,
                question=pair.question,
                references=(pair.reference,) if pair.reference.strip() else (),
                tags={name: value for name, value in tags.items() if value},
            )
        )
        for side, answer in zip(sides, pair.answers, strict=True):
            side.append(Trace(case_id=case_id, answer=answer, unmeasured=_UNMEASURED))
        labels += _labels(case_id, pair.grades)
        verdicts += _verdicts(case_id, pair.scored)
    graded = sum(label["metric"] == "preference_grade" for label in labels)
    decided = sum(label["metric"] == "preference" for label in labels)
    return Imported(
        title="RAGChecker's meta-evaluation: pairs of answers, compared by two people each",
        source="Ru et al., RAGChecker, NeurIPS 2024, https://github.com/amazon-science/RAGChecker",
        licence="Apache-2.0",
        labels=labels,
        goldsets={"goldset.jsonl": cases},
        traces={"traces_a.jsonl": sides[0], "traces_b.jsonl": sides[1]},
        verdicts=verdicts,
        notes=(
            "A label is 1 where B is much better, 0.75 where it is better, 0.25 and 0 where A is.",
            (
                f"Of {graded} words {graded - decided} see no difference: they are in "
                "preference_grade as 0.5, and not in preference, which asks which is better."
            ),
            "What was retrieved is not known, so only what needs no passage can be judged.",
        ),
        commands=_commands(bool(verdicts)),
    )


def _commands(scored: bool) -> tuple[str, ...]:
    judged = "misslink evaluate --traces {dir}/traces_%s.jsonl --goldset {dir}/goldset.jsonl "
    judged += "--judge none --out {dir}-%s"
    asked = "misslink judge prefer {dir}-a {dir}-b --judge openai:MODEL"
    held = "misslink calibrate --verdicts {dir}/verdicts.jsonl --labels {dir}/labels.jsonl "
    held += "--metric preference"
    return (*((held,) if scored else ()), judged % ("a", "a"), judged % ("b", "b"), asked)


def _read(paths: Sequence[Path]) -> dict[str, _Pair]:
    pairs: dict[str, _Pair] = {}
    scores: list[tuple[str, Entry]] = []
    for path in paths:
        for line, row in read_objects(path):
            entry = Entry(row, path, line)
            if entry.has("model1", "model2", "overall_label"):
                _add_public(pairs, entry)
            elif entry.has("model1", "model2") and "ragchecker" in entry.object("model1").row:
                scores.append((f"ragchecker-{entry.id('instance_id')}", entry))
            elif entry.has("answer_a", "answer_b", "human_overall"):
                _add_reduced(pairs, entry)
            else:
                raise entry.unknown(_NAME, _FORMS)
    if not pairs:
        raise InputError(
            "these are RAGChecker's scores without people's; name human_labeled_data.json too",
            path=paths[0],
        )
    for case_id, entry in scores:
        if case_id not in pairs:
            raise entry.wrong("people labelled no such pair", "instance_id")
        _add_scores(pairs[case_id], entry)
    return pairs


def _add_public(pairs: dict[str, _Pair], entry: Entry) -> None:
    """Enter one person's word on a pair."""
    case_id = f"ragchecker-{entry.id('instance_id')}"
    models = entry.object("model1"), entry.object("model2")
    answers = models[0].text("response", blank=True), models[1].text("response", blank=True)
    known = pairs.get(case_id)
    if known is None:
        systems = models[0].word("model_name") or "A", models[1].word("model_name") or "B"
        reference = entry.text("gt_answer", blank=True)
        known = _Pair(entry, entry.text("query"), reference, systems, answers)
        pairs[case_id] = known
    if known.answers != answers:
        raise entry.wrong(
            f"the pair {entry.id('instance_id')} has other answers on line {known.entry.line}; "
            "download the file again",
            "instance_id",
        )
    if len(known.grades["overall"]) == _PEOPLE:
        raise entry.wrong("this pair has a third annotator; name each file once", "instance_id")
    for kind in _KINDS:
        known.grades[kind].append(entry.whole(f"{kind}_label", -_MOST, _MOST))


def _add_reduced(pairs: dict[str, _Pair], entry: Entry) -> None:
    case_id = entry.id("id")
    if case_id in pairs:
        raise entry.wrong(f"the pair '{case_id}' stands twice; name each file once", "id")
    pair = _Pair(
        entry,
        entry.text("question"),
        entry.text("reference_answer", blank=True),
        (entry.word("system_a") or "A", entry.word("system_b") or "B"),
        (entry.text("answer_a", blank=True), entry.text("answer_b", blank=True)),
    )
    for kind in _KINDS:
        said = entry.row.get(f"human_{kind}")
        if not isinstance(said, list) or len(said) != _PEOPLE:
            raise entry.wrong("this should be a list of two grades", f"human_{kind}")
        pair.grades[kind] += [
            entry.whole_of(grade, f"human_{kind}", -_MOST, _MOST) for grade in said
        ]
    held = entry.row.get("ragchecker_delta_b_minus_a")
    if isinstance(held, dict):
        pair.scored |= _within(entry, {kind: finite(held.get(f"{kind}_label")) for kind in _KINDS})
    pairs[case_id] = pair


def _add_scores(pair: _Pair, entry: Entry) -> None:
    a, b = (entry.object(name).object("ragchecker") for name in ("model1", "model2"))
    for kind in _KINDS:
        before, after = finite(a.row.get(f"{kind}_label")), finite(b.row.get(f"{kind}_label"))
        difference = None if before is None or after is None else after - before
        pair.scored |= _within(entry, {kind: difference})


def _within(entry: Entry, differences: Mapping[str, float | None]) -> dict[str, float]:
    """The differences that there are, each of two scores from 0 to 1."""
    found = {kind: value for kind, value in differences.items() if value is not None}
    for kind, value in found.items():
        if not -1 <= value <= 1:
            raise entry.wrong(f"a difference of {value:g} is not one of scores from 0 to 1", kind)
    return found


def _labels(case_id: str, grades: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
    found = []
    for kind, said in grades.items():
        for name, grade in zip(("annotator-1", "annotator-2"), said, strict=False):
            label = {
                "case_id": case_id,
                "metric": "preference_grade" if kind == "overall" else f"preference_{kind}",
                "label": (grade + _MOST) / (2 * _MOST),
                "annotator": name,
            }
            found.append(label)
            if kind == "overall" and grade:
                found.append(label | {"metric": "preference"})
    return found


def _verdicts(case_id: str, scored: Mapping[str, float]) -> list[dict[str, Any]]:
    found = []
    for kind, difference in scored.items():
        metrics = (
            ("preference", "preference_grade") if kind == "overall" else (f"preference_{kind}",)
        )
        for metric in metrics:
            verdict = {"case_id": case_id, "metric": metric, "value": (1 + difference) / 2}
            found.append(verdict | {"judge": "ragchecker"})
    return found
