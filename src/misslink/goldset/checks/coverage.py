"""Checks of questions: duplicates, leakage, and coverage of what users ask."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from misslink.goldset.checks.protocol import (
    CheckInputs,
    GoldSetFinding,
    QuestionVectors,
    evidence_texts,
    labelled_ids,
)
from misslink.goldset.generation.settings import GenerationSettings
from misslink.goldset.pooling.rankings import PassageRanking
from misslink.goldset.wording import QuestionIndex, measure_copying
from misslink.io.goldset import GoldSet
from misslink.io.trace_formats.requests import RequestLog
from misslink.render.format import pluralize
from misslink.render.retrieval_sentences import describe_ndcg_use
from misslink.retrieval.matching import LabelledNeed
from misslink.retrieval.metric_advice import ndcg_reasons
from misslink.stats import holm, mean, proportion
from misslink.text.normalization import fold, stems
from misslink.types import Case

_LIMITS = GenerationSettings()  # from where on the generator rejects duplicates and copies
_END_MARKS = " .,;:!?\u2026\uff1f\u3002"


def check_duplicates(gold: GoldSet, inputs: CheckInputs) -> Sequence[GoldSetFinding]:
    """Find cases that ask the same.

    Exact: the same folded words and the same time of asking. Near: a token sort ratio (rapidfuzz)
    of 90%, or a cosine of 0.95 with an embedding, the limits of `misslink goldset generate`, and
    the same numbers, signs, negations and names. Each case is compared with the nearest before it
    by id, so there are never more findings than cases.
    """
    groups: dict[tuple[object, ...], list[Case]] = defaultdict(list)
    for case in sorted(gold.cases, key=lambda case: case.id):
        occasion = case.history, fold(case.question).strip(_END_MARKS), str(case.asked_at)
        groups[occasion].append(case)
    findings = []
    for group in groups.values():
        if len(group) == 1:
            continue
        labels = {
            repr(
                (
                    sorted(case.relevant.items()),
                    sorted(map(sorted, case.relevant_any)),
                    sorted(case.evidence.items()),
                    case.answerable,
                )
            )
            for case in group
        }
        message = "the same question occurs more than once, so it counts more than once"
        fix = "keep one of them"
        if len(labels) > 1:
            message = "the same question occurs more than once, and different passages are relevant"
            fix = "review them, and keep one case with all labels"
        ids = tuple(case.id for case in group)
        findings.append(GoldSetFinding("duplicates", "error", message, fix, ids))
    return [*findings, *_near_duplicates([group[0] for group in groups.values()], inputs)]


def _near_duplicates(cases: Sequence[Case], inputs: CheckInputs) -> Iterator[GoldSetFinding]:
    """Each case that is a near-duplicate of an earlier one, with the nearest of those."""
    vectors = {} if inputs.vectors is None else inputs.vectors.vectors

    def cosines(question: str, earlier: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([vectors[other] for other in earlier]) @ vectors[question]

    limits = _LIMITS.near_duplicate, _LIMITS.near_meaning
    new_index = partial(QuestionIndex, *limits, cosines if vectors else None)
    indexes: dict[tuple[object, ...], QuestionIndex] = defaultdict(new_index)
    ids: dict[tuple[object, ...], str] = {}
    for case in cases:
        occasion = case.history, str(case.asked_at)
        twin = indexes[occasion].twin(case.question)
        indexes[occasion].add(case.question)
        ids[*occasion, case.question] = case.id
        if twin is not None:
            yield GoldSetFinding(
                "duplicates",
                "warning",
                f"two questions are {twin.similarity:.0%} similar by their {twin.by}",
                "reword one, or keep one if both ask the same",
                (ids[*occasion, twin.question], case.id),
                {
                    "alike": twin.similarity,
                    "by": f"by their {twin.by}",
                    "questions": [twin.question, case.question],
                },
            )


UNANSWERABLE = "unanswerable"  # the cases that say so, whatever their category


# Of each category, as practitioners label them.
EXPECTED_COUNTS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {
        "simple_factual": (1, 2),
        "complex_factual": (3, 5),
        "procedural": (5, 10),
        "entity_centric": (3, 5),
        "comparative": (2, 4),
        "negative": (0, 0),
        UNANSWERABLE: (0, 0),
    }
)


def check_label_counts(gold: GoldSet, inputs: CheckInputs) -> Sequence[GoldSetFinding]:
    """Find categories whose cases have implausibly few or many relevant passages.

    Of alternatives the smallest counts. Cases without any label are not checked, nor those of the
    generator, which verified what each answer needs.
    """
    expected = EXPECTED_COUNTS if inputs.expected_counts is None else inputs.expected_counts
    implausible: dict[tuple[str, bool], dict[str, int]] = defaultdict(dict)
    written = (case for case in gold.cases if not case.tags.keys() >= {"seed", "passages"})
    for case in sorted(written, key=lambda case: case.id):
        category = UNANSWERABLE if case.answerable is False else case.category or ""
        graded = sum(grade > 0 for grade in case.relevant.values())
        alternatives = min((len(names) for names in case.relevant_any if names), default=0)
        count = max(graded + alternatives, len(evidence_texts(case)))
        least, most = expected.get(category, (0, count))
        if count and not least <= count <= most:
            implausible[category, count > most][case.id] = count
    findings = []
    for (category, too_many), counts in implausible.items():
        least, most = expected[category]
        low, high = min(counts.values()), max(counts.values())
        message = (
            f"{pluralize(len(counts), 'case')} of category '{category}': {_span(low, high)} relevant "
            f"passages each, expected {_span(least, most)}"
        )
        fix = "label only what the answer needs, and give copies of it as relevant_any"
        if most == 0:
            fix = "remove the labels, or answerable: false"
        elif not too_many:
            fix = "label every passage that the answer needs"
        fix += f"; if it is right, add --expect {category}={min(low, least)}-{max(high, most)}"
        numbers = {"category": category, "expected": [least, most], "counts": counts}
        findings.append(GoldSetFinding("counts", "warning", message, fix, tuple(counts), numbers))
    return findings


def check_metrics(gold: GoldSet, _: CheckInputs) -> Sequence[GoldSetFinding]:
    """Note if recall says less of this gold set than ndcg@10."""
    advice = describe_ndcg_use(ndcg_reasons(gold.cases))
    fix = "add a gate on ndcg@10, or compare runs by --metrics ndcg@10"
    return [GoldSetFinding("metrics", "note", advice.rstrip("."), fix)] if advice else []


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"


def check_leakage(gold: GoldSet, inputs: CheckInputs) -> Sequence[GoldSetFinding]:
    """Find questions that copy the wording of their relevant passages.

    A question copies if it shares six words in a row, or 80% of its rewordable stems (at least
    four): the limits from which on `misslink goldset generate` has a question rewritten. Without a
    corpus the evidence replaces the passages. Each finding contains the share of all questions
    that copy, with its Wilson interval.
    """
    findings: list[GoldSetFinding] = []
    measured = 0
    of_all: dict[str, Any] = {}  # the rate, known once all were measured
    bounds = {"run": _LIMITS.longest_run, "share": _LIMITS.shared_words}
    for case in gold.cases:
        texts = _relevant_texts(case, inputs)
        if not texts:
            continue
        measured += 1
        copying = measure_copying(case.question, texts)
        # The words of two texts together say nothing about either of them.
        shares = [measure_copying(case.question, [text]).share for text in texts]
        share = max((share for share in shares if share is not None), default=None)
        parts = []
        if copying.run >= _LIMITS.longest_run:
            parts.append(
                f"copies {copying.run} words in a row from its passage ('{copying.words}')"
            )
        if share is not None and share >= _LIMITS.shared_words:
            parts.append(f"shares {share:.0%} of its words with its passage")
        if not parts:
            continue
        numbers = {"run": copying.run, "words": copying.words, "share": share, "from": bounds}
        findings.append(
            GoldSetFinding(
                "leakage",
                "warning",
                f"the question {' and '.join(parts)}: a keyword search finds it",
                "reword it as a user who has not read the passage",
                (case.id,),
                {**numbers, "of_all": of_all},
            )
        )
    of_all.update(proportion(len(findings), measured).model_dump())
    return findings


def _relevant_texts(case: Case, inputs: CheckInputs) -> list[str]:
    """The relevant texts of a case: passages of the corpus, else its evidence."""
    evidence = evidence_texts(case)
    if inputs.corpus is None:
        return evidence
    passages = inputs.corpus.by_id
    texts = [
        passages[name].text for name in labelled_ids(case, relevant_only=True) if name in passages
    ]
    for text in evidence:
        passage = next(iter(inputs.corpus.holders(LabelledNeed("evidence", 1, text))), None)
        texts.append(text if passage is None else passage.text)
    return [text for text in dict.fromkeys(texts) if text.strip()]


_BATCH_SIZE = 2_000
_PERMUTATIONS = 10_000
_ALPHA = 0.05
_MIN_DISTANCE = 0.1  # of the cases in another category; less is no reason to add any
_MAX_VALUES = 30  # of a tag; with more it is an identifier, not a category
_MIN_LABELLED_SHARE = 0.5
_SHOWN_VALUES = 3
_MIN_VALUES = 2
_MIN_JUDGED_SHARE = 0.9  # see misslink.retrieval.metrics.JudgedShare


@dataclass(frozen=True)
class AxisCounts:
    """Counts of one axis, such as 'category', by value, and how the log was categorized."""

    axis: str
    method: str
    gold: Mapping[str, int]
    log: Mapping[str, int]
    unassigned: int = 0


def check_balance(gold: GoldSet, inputs: CheckInputs) -> Sequence[GoldSetFinding]:
    """Find categories and tags whose shares differ from the log's.

    The distance is the total variation. It is a warning from 10% if a permutation test (chi-square
    statistic, 10,000 permutations, Holm-corrected for the axes) is below 5%. The log's categories
    are those of its column, if they are the gold set's; else, as for tags, each request has those
    of the nearest gold question. Requests count as often as they were made, and as independent: if
    few users ask much, p is too small. Findings contain no text of the log.
    """
    if inputs.log is None:
        return []
    axes = list(_axis_counts(gold, inputs.log, inputs.vectors))
    ps = holm([permutation_p_value(axis.gold, axis.log) for axis in axes])
    findings = []
    for axis, p in zip(axes, ps, strict=True):
        distance = total_variation(axis.gold, axis.log)
        if p is not None and p < _ALPHA and (distance or 0) >= _MIN_DISTANCE:
            findings.append(_balance_finding(axis, distance or 0.0, p))
    return findings


def total_variation(first: Mapping[str, int], second: Mapping[str, int]) -> float | None:
    """Return the total variation distance of two counts, in [0, 1]; None if one is empty."""
    n, m = sum(first.values()), sum(second.values())
    if not n or not m:
        return None
    values = first.keys() | second.keys()
    return sum(abs(first.get(v, 0) / n - second.get(v, 0) / m) for v in values) / 2


def permutation_p_value(first: Mapping[str, int], second: Mapping[str, int]) -> float | None:
    """Return the p-value of Pearson's chi-square over random permutations of two counts.

    None if one count is empty, or all have one value.

    References
    ----------
    Phipson and Smyth (2010), Permutation p-values should never be zero.
    """
    from scipy.stats import MonteCarloMethod, chi2_contingency

    values = sorted((Counter(first) + Counter(second)).keys())
    table = np.array([[counts.get(value, 0) for value in values] for counts in (first, second)])
    if len(values) < _MIN_VALUES or not table.any(axis=1).all():
        return None
    method = MonteCarloMethod(n_resamples=_PERMUTATIONS, rng=np.random.default_rng(0))
    return float(chi2_contingency(table, correction=False, method=method).pvalue)


def _axis_counts(
    gold: GoldSet, log: RequestLog, vectors: QuestionVectors | None
) -> Iterator[AxisCounts]:
    cases = sorted(gold.cases, key=lambda case: case.id)
    axes = {"category": {case.id: case.category for case in cases if case.category}}
    for tag in sorted({name for case in cases for name in case.tags}):
        axes[f"tag {tag}"] = {case.id: case.tags[tag] for case in cases if tag in case.tags}
    usable = {
        axis: values
        for axis, values in axes.items()
        if values
        and len(values) >= _MIN_LABELLED_SHARE * len(cases)
        and len(set(values.values())) <= _MAX_VALUES
    }
    names = {fold(name): name for name in sorted(set(usable.get("category", {}).values()))}
    logged = [fold(request.category) for request in log.requests if request.category]
    if set(logged) & set(names):  # the log's own categories
        yield AxisCounts(
            "category",
            f"its column '{log.columns.get('category', 'category')}'",
            Counter(usable.pop("category").values()),
            Counter(names.get(name, name) for name in logged),
            len(log.requests) - len(logged),
        )
    if all(len(set(values.values())) < _MIN_VALUES for values in usable.values()):
        return
    frequency = Counter(request.question for request in log.requests)
    nearest = nearest_questions(list(frequency), [case.question for case in cases], vectors)
    method = f"the nearest gold question (by {'words' if vectors is None else vectors.model})"
    for axis, values in usable.items():
        counts: Counter[str] = Counter()
        for question, count in frequency.items():
            index = nearest[question]
            value = None if index is None else values.get(cases[index].id)
            if value is not None:
                counts[value] += count
        unassigned = frequency.total() - counts.total()
        yield AxisCounts(axis, method, Counter(values.values()), counts, unassigned)


def nearest_questions(
    texts: Sequence[str], questions: Sequence[str], vectors: QuestionVectors | None
) -> dict[str, int | None]:
    """Return the index of the nearest question for each text, or None without shared words."""
    nearest: dict[str, int | None] = {}
    if vectors is None:
        ranking = PassageRanking(questions)
        for text in texts:
            words = set(stems(text))
            index = int(ranking.order(text)[0])
            nearest[text] = index if words & set(stems(questions[index])) else None
        return nearest
    table = np.stack([vectors.vectors[question] for question in questions])
    for low in range(0, len(texts), _BATCH_SIZE):
        batch = texts[low : low + _BATCH_SIZE]
        scores = np.stack([vectors.vectors[text] for text in batch]) @ table.T
        best = np.argmax(np.round(scores, 5), axis=1).tolist()
        nearest |= dict(zip(batch, best, strict=True))
    return nearest


def _balance_finding(axis: AxisCounts, distance: float, p: float) -> GoldSetFinding:
    totals = sum(axis.gold.values()), sum(axis.log.values())
    rows: list[dict[str, Any]] = [
        {
            "value": value,
            "gold": proportion(axis.gold.get(value, 0), totals[0]).model_dump(),
            "log": proportion(axis.log.get(value, 0), totals[1]).model_dump(),
        }
        for value in axis.gold.keys() | axis.log.keys()
    ]
    rows.sort(key=lambda r: (-abs(r["gold"]["value"] - r["log"]["value"]), r["value"]))
    listed = "; ".join(
        f"'{row['value']}' {row['gold']['value']:.0%} here, {row['log']['value']:.0%} in the log"
        for row in rows[:_SHOWN_VALUES]
    )
    rare = [row["value"] for row in rows if row["gold"]["value"] < row["log"]["value"]]
    return GoldSetFinding(
        "balance",
        "warning",
        f"{axis.axis} differs from the log: {distance:.0%} of the cases would have to be in another "
        f"group (p = {p:.2g}, if requests are independent): {listed}; grouped by {axis.method}",
        f"add cases of {', '.join(map(repr, rare[:_SHOWN_VALUES]))}, or report slices separately",
        (),
        {
            "axis": axis.axis,
            "by": axis.method,
            "total_variation": distance,
            "p": p,
            "assumed": "requests are independent of each other",
            "n": {"gold": totals[0], "log": totals[1]},
            "unassigned": axis.unassigned,
            "values": rows,
        },
    )


def check_unjudged(gold: GoldSet, inputs: CheckInputs) -> Sequence[GoldSetFinding]:
    """Find a gold set that judges too little of the top k of a run.

    judged@k is the mean share of the first k passages that have a grade, over the cases with
    grades by id for which the run returns something. Cases with evidence are left out: whether a
    passage contains a text is always known. Under 90% it is a warning.
    """
    run, k = inputs.run, inputs.k
    if run is None:
        return []
    findings: list[GoldSetFinding] = []
    missing = tuple(sorted(case.id for case in gold.cases if case.id not in run))
    if missing:
        message = (
            f"{inputs.run_name} has no ranking of {len(missing):,} of {len(gold.cases):,} cases"
        )
        fix = "run the retriever on the current gold set"
        findings.append(GoldSetFinding("unjudged", "note", message, fix, missing))
    shares = {}
    for case in sorted(gold.cases, key=lambda case: case.id):
        graded, top = set(labelled_ids(case)), run.get(case.id, ())[:k]
        if top and graded and not evidence_texts(case):
            shares[case.id] = sum(passage.id in graded for passage in top) / len(top)
    judged = mean(list(shares.values()))
    if judged.value is None or judged.value >= _MIN_JUDGED_SHARE:
        return findings
    interval = "" if judged.low is None else f" [{judged.low:.0%}, {judged.high:.0%}]"
    findings.append(
        GoldSetFinding(
            "unjudged",
            "warning",
            f"{1 - judged.value:.0%} of the first {k} passages of {inputs.run_name} were never "
            f"judged (judged@{k} {judged.value:.0%}{interval}, n = {judged.n:,}) and count as not "
            "relevant",
            "draw passages to judge with  misslink goldset pool",
            tuple(case_id for case_id, share in shares.items() if share < 1),
            {f"judged@{k}": judged.model_dump(), "shares": shares},
        )
    )
    return findings
