"""Labels of several annotators: pairing with verdicts, agreement, ties."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from misslink.calibration.verdicts import JudgedCase, MetricVerdicts
from misslink.calibration_document import (
    AnnotatorAgreement,
    AnnotatorSummary,
    CopiedLabels,
    DisputedLabel,
)
from misslink.errors import InputError
from misslink.io.labels import ADJUDICATED, Label, Labels, read_labels
from misslink.io.manifest import display_path
from misslink.stats import mean
from misslink.stats.agreement import cohen_kappa, cross_table, krippendorff_alpha, percent_agreement
from misslink.types import Estimate, Reason

_MIN_COPIED_LABELS = 20  # identical labels by two annotators that make a copied file likely
_GRADE_STEPS = 50  # of a graded label; alpha takes at most 100 grades

LabelKey = tuple[str, int | None]  # a case, and a claim of it or None


def load_labels(sources: Any) -> Labels:
    """Read labels from one source or from several.

    Parameters
    ----------
    sources : Labels, what `read_labels` takes, or sequence of path
        A sequence of paths is several sources, such as one file per annotator.

    Returns
    -------
    Labels
        A label that is in two files counts once.

    Raises
    ------
    InputError
        A source cannot be read, an annotator labels the same item differently in two sources, a
        case has two weights, or only some sources have weights.
    """
    if isinstance(sources, Labels):
        return sources
    if isinstance(sources, list | tuple) and all(isinstance(path, str | Path) for path in sources):
        if not sources:
            raise InputError("no labels are given; name a file of labels")
        read = [read_labels(path) for path in dict.fromkeys(map(str, sources))]
        return read[0] if len(read) == 1 else _merge_labels(read)
    return read_labels(sources)


def _merge_labels(read: Sequence[Labels]) -> Labels:
    first_of: dict[tuple[Any, ...], tuple[Label, str]] = {}
    weights: dict[tuple[Any, ...], tuple[Label, str]] = {}

    def location(label: Label, name: str) -> str:
        path = display_path(name)
        return path if label.line is None else f"{path} line {label.line}"

    for labels in read:
        for label in labels.items:
            answer = label.case_id, label.metric, label.answer_hash
            key = (*answer, label.claim, label.annotator)
            earlier, name = first_of.setdefault(key, (label, labels.name))
            if earlier.value != label.value:
                problem = (
                    f"{label.annotator} labels this {label.value:g} here and {earlier.value:g} in "
                    f"{location(earlier, name)}; keep one, or settle it with a label by the "
                    "annotator 'adjudicated'"
                )
                raise InputError(problem, path=labels.name, line=label.line, field="label")
            weighed, name = weights.setdefault(answer, (label, labels.name))
            if weighed.weight != label.weight:
                here, there = (
                    "none" if weight is None else f"{weight:g}"
                    for weight in (label.weight, weighed.weight)
                )
                problem = (
                    f"this case has the weight {here} here and {there} in "
                    f"{location(weighed, name)}; use one weight per case"
                )
                raise InputError(problem, path=labels.name, line=label.line, field="weight")
    bare = next((entry for entry in weights.values() if entry[0].weight is None), None)
    weighted = next((entry for entry in weights.values() if entry[0].weight is not None), None)
    if bare and weighted:
        problem = f"this case has no weight, but {location(*weighted)} has; give all or none"
        raise InputError(problem, path=bare[1], line=bare[0].line, field="weight")
    name = ", ".join(display_path(labels.name) for labels in read)
    # The line numbers of several files mean nothing together.
    return Labels(tuple(replace(label, line=None) for label, _ in first_of.values()), name)


@dataclass(frozen=True)
class SettledLabel:
    """The true label of one item.

    Parameters
    ----------
    good : bool
    share : float
        Mean label in [0, 1]; of an adjudicated item its label.
    weight : float or None
        One over the chance of being labelled.
    stratum : str or None
        What it was drawn from.
    disputed : float or None
        Share of pairs of annotators that disagree. None: there is one annotator.
    """

    good: bool
    share: float
    weight: float | None = None
    stratum: str | None = None
    disputed: float | None = None


@dataclass(frozen=True)
class AnnotatorConsensus:
    """Settled labels by item, and the items that annotators disagree on.

    Parameters
    ----------
    gold : mapping of (case, claim) to SettledLabel
    queue : sequence of DisputedLabel
        Items with disagreement.
    tied : mapping of (case, claim) to SettledLabel
        Items without a majority; their share is one half.
    """

    gold: Mapping[LabelKey, SettledLabel]
    queue: tuple[DisputedLabel, ...]
    tied: Mapping[LabelKey, SettledLabel]


def settle_labels(labels: Iterable[Label]) -> AnnotatorConsensus:
    """Make one label of several: the adjudicated one, else that of the majority.

    Parameters
    ----------
    labels : iterable of Label
        Of one metric. A label of one half or more is good.

    Returns
    -------
    AnnotatorConsensus
        A tie has no label: it is first in the queue.
    """
    gold: dict[LabelKey, SettledLabel] = {}
    tied: dict[LabelKey, SettledLabel] = {}
    queue = []
    for item, by_annotator in _labels_by_item(labels).items():
        adjudicated = by_annotator.get(ADJUDICATED)
        votes = [label.good for name, label in by_annotator.items() if name != ADJUDICATED]
        drawn = next(iter(by_annotator.values()))
        good, pairs = sum(votes), len(votes) * (len(votes) - 1) / 2
        disputed = good * (len(votes) - good) / pairs if pairs else None
        sampled = (drawn.weight, drawn.stratum, disputed)
        tie = adjudicated is None and 2 * good == len(votes)
        if adjudicated is not None:
            gold[item] = SettledLabel(adjudicated.good, adjudicated.value, *sampled)
        elif tie:
            tied[item] = SettledLabel(False, 0.5, *sampled)  # noqa: FBT003
        else:
            share = sum(label.value for label in by_annotator.values()) / len(by_annotator)
            gold[item] = SettledLabel(2 * good > len(votes), share, *sampled)
        if 0 < good < len(votes) and adjudicated is None:
            values = {name: label.value for name, label in sorted(by_annotator.items())}
            queue.append(
                DisputedLabel(case_id=item[0], claim=item[1], labels=values, settled=not tie)
            )
    return AnnotatorConsensus(gold, tuple(sorted(queue, key=lambda entry: entry.settled)), tied)


def annotator_agreement(
    labels: Collection[Label], judge: Mapping[LabelKey, bool], seed: int
) -> AnnotatorAgreement:
    """Return the agreement of annotators with each other and with the judge, on the same items.

    Parameters
    ----------
    labels : collection of Label
        Of one metric.
    judge : mapping of (case, claim) to bool
        The judge's call of each item.
    seed : int

    Returns
    -------
    AnnotatorAgreement
        ``alpha_ordinal`` of graded labels, ``kappa`` of two annotators, ``alpha_with_judge`` with
        the judge as one more annotator.
    """
    items = {
        item: {name: label for name, label in by_annotator.items() if name != ADJUDICATED}
        for item, by_annotator in _labels_by_item(labels).items()
    }
    names = sorted({name for by_annotator in items.values() for name in by_annotator})
    ordinal: Estimate | None = None
    shared = {item: by_annotator for item, by_annotator in items.items() if len(by_annotator) > 1}
    if not shared:
        code = "one_annotator" if len(names) == 1 else "no_item_labelled_twice"
        missing = Estimate.missing(Reason(code=code))
        alpha = percent = kappa = with_judge = missing
    else:
        rows = [[row.get(name) for name in names] for row in shared.values()]
        calls = [[None if label is None else float(label.good) for label in row] for row in rows]
        alpha = krippendorff_alpha(calls, seed=seed)
        if any(0 < label.value < 1 for row in rows for label in row if label):
            steps = _GRADE_STEPS
            grades = [
                [None if label is None else round(label.value * steps) / steps for label in row]
                for row in rows
            ]
            ordinal = krippendorff_alpha(grades, metric="ordinal", seed=seed)
        percent = percent_agreement(calls, seed=seed)
        if len(names) == 2:
            first, second = zip(*calls, strict=True)
            kappa = cohen_kappa(cross_table(first, second)[1], seed=seed)
        else:
            kappa = Estimate.missing(Reason(code="kappa_of_two", annotators=len(names)))
        joined = [
            [*row, float(judge[item]) if item in judge else None]
            for item, row in zip(shared, calls, strict=True)
        ]
        with_judge = krippendorff_alpha(joined, seed=seed)
    consensus = settle_labels(labels)
    return AnnotatorAgreement(
        annotators=len(names),
        alpha=alpha,
        alpha_ordinal=ordinal,
        percent=percent,
        kappa=kappa,
        alpha_with_judge=with_judge,
        each={name: _annotator_summary(name, items, judge, seed) for name in names},
        copies=_copied_annotators(items.values()),
        unsettled=len(consensus.tied),
        queue=consensus.queue,
    )


def _labels_by_item(labels: Iterable[Label]) -> dict[LabelKey, dict[str, Label]]:
    items: dict[LabelKey, dict[str, Label]] = {}
    for label in labels:
        is_adjudicated = label.annotator.casefold() == ADJUDICATED
        name = ADJUDICATED if is_adjudicated else label.annotator
        items.setdefault((label.case_id, label.claim), {})[name] = label
    return items


def _annotator_summary(
    name: str,
    items: Mapping[LabelKey, Mapping[str, Label]],
    judge: Mapping[LabelKey, bool],
    seed: int,
) -> AnnotatorSummary:
    """Agreement of one annotator with the others, and with the judge."""
    own = {item: row[name].good for item, row in items.items() if name in row}
    other_agreements = [
        sum(label.good == good for other, label in items[item].items() if other != name)
        / (len(items[item]) - 1)
        for item, good in own.items()
        if len(items[item]) > 1
    ]
    pairs = [(good, judge[item]) for item, good in own.items() if item in judge]
    agreed = kappa = Estimate.missing(Reason(code="items_without_verdict"))
    others = Estimate.missing(Reason(code="items_of_one_annotator"))
    if other_agreements:
        others = mean(other_agreements, seed=seed)
    if pairs:
        agreed = mean([float(a == b) for a, b in pairs], seed=seed)
        kappa = cohen_kappa(cross_table(*zip(*pairs, strict=True))[1], seed=seed)
    return AnnotatorSummary(
        labels=len(own), good=sum(own.values()), others=others, judge=agreed, judge_kappa=kappa
    )


def _copied_annotators(items: Iterable[Mapping[str, Label]]) -> tuple[CopiedLabels, ...]:
    """Pairs of annotators who never differ, although both labels occur."""
    shared: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in items:
        for first, second in combinations(sorted(row), 2):
            shared.setdefault((first, second), []).append((row[first].value, row[second].value))
    return tuple(
        CopiedLabels(annotators=pair, labels=len(values))
        for pair, values in sorted(shared.items())
        if len(values) >= _MIN_COPIED_LABELS
        and len({value for both in values for value in both}) > 1
        and all(a == b for a, b in values)
    )


_CLAIM_METRIC = "faithfulness"  # an answer is fully faithful exactly when its claims are


@dataclass(frozen=True)
class LabelPair:
    """The human label and the verdict of one item.

    Parameters
    ----------
    case_id : str
    good : bool
        By human label.
    share : float
        Mean label.
    score : float
        The judge's probability, else its value.
    probability : float or None
    weight : float or None
        One over the chance of being labelled.
    judged : JudgedCase
    """

    case_id: str
    good: bool
    share: float
    score: float
    probability: float | None
    weight: float | None
    judged: JudgedCase


def pair_answers(
    gold: Mapping[LabelKey, SettledLabel], verdicts: MetricVerdicts
) -> tuple[list[LabelPair], dict[str, int]]:
    """Pair labels of whole answers with their verdicts.

    Returns
    -------
    pairs : list of LabelPair
        In the order of the verdicts.
    left_out : dict of str to int
        Labelled answers without a usable verdict, by 'failed', 'skipped' or 'no verdict'.
    """
    labelled = {case_id: label for (case_id, claim), label in gold.items() if claim is None}
    scores = verdicts.scores()
    left_out = Counter(
        verdicts.items[case_id].status if case_id in verdicts.items else "no verdict"
        for case_id in labelled
        if case_id not in scores
    )
    pairs = []
    for case_id, score in scores.items():
        if label := labelled.get(case_id):
            judged = verdicts.items[case_id]
            measured = (score, judged.probability, label.weight)
            pairs.append(LabelPair(case_id, label.good, label.share, *measured, judged))
    return pairs, dict(left_out)


def pair_claims(
    gold: Mapping[LabelKey, SettledLabel], verdicts: MetricVerdicts
) -> tuple[list[LabelPair], int]:
    """Pair labels of single claims with their verdicts; and count labels without a verdict."""
    pairs, left_out = [], 0
    for (case_id, claim), label in gold.items():
        if claim is None:
            continue
        judged = verdicts.items.get(case_id)
        score = judged.claims[claim] if judged and claim < len(judged.claims) else None
        if judged is None or score is None:
            left_out += 1
        else:
            pairs.append(
                LabelPair(case_id, label.good, label.share, score, score, label.weight, judged)
            )
    return pairs, left_out


def judge_calls(pairs: Sequence[LabelPair], threshold: float) -> list[bool]:
    """Return the judge's call of each item: good from the threshold on."""
    return [pair.score >= threshold for pair in pairs]


def label_weights(pairs: Sequence[LabelPair]) -> list[float] | None:
    """Return the weight of each case; None if they have none, or all the same."""
    weights = [pair.weight for pair in pairs if pair.weight is not None]
    return weights if len(weights) == len(pairs) and len(set(weights)) > 1 else None


_MIN_TWICE = 30  # items with two annotators, for their own error to be taken out


@dataclass(frozen=True)
class LabelSample:
    """How the labels of some cases were drawn and given, for `prediction_powered`; None: not known.

    Parameters
    ----------
    labels : list of float
        Settled, or the means of all annotators if their error is taken out.
    weights : list of float or None
    strata : list of str or None
    clusters : list of hashable or None
        None also where no two cases are of one.
    disputed : list of float or None
        NaN with one annotator. None where fewer than 30 have two, or one was settled by another.
    """

    labels: list[float]
    weights: list[float] | None = None
    strata: list[str] | None = None
    clusters: list[Hashable] | None = None
    disputed: list[float] | None = None


def describe_sample(
    settled: Mapping[str, SettledLabel], clusters: Mapping[str, Hashable]
) -> LabelSample:
    """Return how the labels of cases were drawn and given; tied ones are among `settled`."""
    labels = settled.values()
    weights = [label.weight for label in labels if label.weight is not None]
    strata = [label.stratum for label in labels if label.stratum is not None]
    one_weight = dict(zip(strata, weights, strict=False))
    by_plan = len(labels) == len(weights) == len(strata) and all(
        one_weight[stratum] == weight for stratum, weight in zip(strata, weights, strict=True)
    )
    groups = [clusters.get(case_id, case_id) for case_id in settled]
    disputed = [math.nan if label.disputed is None else label.disputed for label in labels]
    # A label that settles a dispute has not the error of the others.
    noisy = sum(not math.isnan(share) for share in disputed) >= _MIN_TWICE and not any(
        label.disputed and label.share in {0, 1} for label in labels
    )
    return LabelSample(
        [label.share if noisy or label.share == 1 / 2 else float(label.good) for label in labels],
        weights if len(weights) == len(labels) and len(set(weights)) > 1 else None,
        strata if by_plan else None,
        groups if len(set(groups)) < len(groups) else None,
        disputed if noisy else None,
    )


def labels_from_claims(
    consensus: AnnotatorConsensus, verdicts: MetricVerdicts
) -> dict[LabelKey, SettledLabel]:
    """Add answer labels derived from claim labels; a tied answer stays without a label."""
    gold = dict(consensus.gold)
    if verdicts.metric != _CLAIM_METRIC:
        return gold
    by_case: dict[str, dict[int, SettledLabel]] = {}
    for (case_id, claim), label in consensus.gold.items():
        if claim is not None:
            by_case.setdefault(case_id, {})[claim] = label
    for case_id, labels in by_case.items():
        if (case_id, None) in consensus.tied or (case_id, None) in gold:
            continue
        judged = verdicts.items.get(case_id)
        claims = range(len(judged.claims)) if judged else range(0)
        # Without claims in the verdict all labels count, else those of its claims.
        counted = [label for claim, label in labels.items() if claim in claims or not claims]
        good = all(label.good for label in counted)
        if not good or (claims and len(counted) == len(claims)):
            gold[case_id, None] = SettledLabel(
                good, float(good), counted[0].weight, counted[0].stratum
            )
    return gold


def tied_answers(
    consensus: AnnotatorConsensus, gold: Mapping[LabelKey, SettledLabel], verdicts: MetricVerdicts
) -> dict[LabelKey, SettledLabel]:
    """Return tied answers: as a whole, or by a claim that decides.

    A tied claim decides if every claim is labelled and no other one is bad.
    """
    tied = {item: label for item, label in consensus.tied.items() if item[1] is None}
    if verdicts.metric != _CLAIM_METRIC:
        return tied
    labelled = {*consensus.gold, *consensus.tied}
    for (case_id, claim), label in consensus.tied.items():
        judged = verdicts.items.get(case_id)
        claims = {(case_id, index) for index in range(len(judged.claims) if judged else 0)}
        if (case_id, claim) in claims and claims <= labelled and (case_id, None) not in gold:
            tied.setdefault((case_id, None), label)
    return tied
