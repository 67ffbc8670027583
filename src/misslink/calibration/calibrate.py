"""A judge's verdicts and people's labels in, one document out."""

from __future__ import annotations

import datetime as dt
import importlib.metadata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from misslink.calibration import judge as by_judge
from misslink.calibration.advice import Criteria, advise
from misslink.calibration.audited import audit_findings, audit_numbers, audit_of
from misslink.calibration.bias import bias, findings
from misslink.calibration.by_claims import of_claims, tied_answers
from misslink.calibration.drift import distribution
from misslink.calibration.judged import Verdicts
from misslink.calibration.notes import notes
from misslink.calibration.pairs import Pair, Tie, answers, claims, ties
from misslink.calibration.people import Gold, Item, People, agreement, settled
from misslink.calibration.probability import (
    WANTED,
    nested,
    probability,
    recalibration,
    reliability,
    uncertain_band,
)
from misslink.calibration.truth import corrected, labels_needed
from misslink.errors import InputError
from misslink.files.labels import Label, Labels
from misslink.manifest import shown_path
from misslink.types import Estimate

__all__ = ["calibrate"]


def calibrate(
    verdicts: Verdicts,
    labels: Labels,
    *,
    threshold: float | None = None,
    everyone: Verdicts | None = None,
    criteria: Criteria | None = None,
    known_only: bool = False,
    audit: Mapping[str, Any] | None = None,
    wanted: float = WANTED,
    seed: int = 0,
) -> dict[str, Any]:
    """Hold a judge against people.

    Parameters
    ----------
    verdicts : Verdicts
        Of one metric, those of the labelled cases among them.
    labels : Labels
        Those of other metrics do not matter.
    threshold : float or None
        In [0, 1]: the score from which on a case is called good. None: the judge's own cut.
    everyone : Verdicts or None
        All cases that the corrected share is about, labelled or not. None: `verdicts`.
    criteria : Criteria or None
        What is asked of a judge; None: the usual.
    known_only : bool
        Leave out labels of cases that are in none of the verdicts, instead of refusing them.
    audit : mapping or None
        What ``misslink judge audit`` found of the same judge, as a run keeps it.
    wanted : float
        In (0, 1]: the precision, and the recall, that fitted thresholds are to reach.
    seed : int
        Of every draw.

    Returns
    -------
    dict
        JSON values, as ``misslink calibrate --json`` prints them. What the labels cannot carry is
        missing with a reason, and ``notes`` say what a reader must know.

    Raises
    ------
    InputError
        No label is of the metric, a label is of an unknown case, or the threshold cannot be.
    """
    if threshold is not None and not 0 <= threshold <= 1:
        raise InputError(f"--threshold {threshold:g} is not from 0 to 1")
    if not 0 < wanted <= 1:
        raise InputError(f"--wanted {wanted:g} is not above 0 and at most 1")
    cases = verdicts.cases | (everyone.cases if everyone else frozenset())
    own = labels.of(verdicts.metric)
    known = own.known(cases, shown_path(verdicts.name), leave_out=known_only)
    verdicts = _completed(verdicts, everyone)
    cut, cut_from = verdicts.own_cut() if threshold is None else (threshold, "--threshold")
    people = settled(known.items)
    gold = of_claims(people, verdicts)
    pairs, left_out = answers(gold, verdicts)
    tied = ties(tied_answers(people, gold, verdicts), verdicts)
    document = {
        **_identity(verdicts, labels, known, seed),
        # Of other verdicts the corrected share is not this run's.
        "verdicts_sha256": verdicts.sha256 if everyone is None else None,
        "n": len(pairs),
        "positives": sum(pair.good for pair in pairs),
        "threshold": cut,
        "threshold_from": cut_from,
        **_of_judge(pairs, cut),
        **_of_people(known.items, people, verdicts, cut, seed),
        "labelled": _of_cases(gold),
        **_of_probability(pairs, criteria or Criteria(), wanted, seed),
        **_of_truth(pairs, tied, everyone or verdicts, cut, seed),
        "bias": bias(pairs, cut),
        "claims": _of_claims(people.gold, verdicts, cut),
        "left_out": left_out,
        "unknown_labels": len(own.items) - len(known.items),
        **audit_of(audit, verdicts),
    }
    by_claims = len(gold) - len(people.gold)
    document["notes"] = [*notes(document, verdicts, pairs, by_claims), *_shown(known.items)]
    document |= advise(_weighed(document, pairs), criteria or Criteria())
    told = [*findings(document["bias"]), *audit_findings(document)]
    document["reasons"] += [f"{finding[:1].upper()}{finding[1:]}." for finding in told]
    plain: dict[str, Any] = _plain(document)
    return plain


def _shown(labels: Sequence[Label]) -> list[str]:
    """Say how many labels were given with the judge's opinion in view, which draws people to it."""
    seen = sum(label.judge_shown for label in labels)
    if not seen:
        return []
    were = "was" if seen == 1 else "were"
    of = f"{seen:,} of {len(labels):,} labels {were} given after the judge's opinion was shown"
    return [f"{of}, which draws people to it: agreement on them may be too high."]


def _completed(verdicts: Verdicts, everyone: Verdicts | None) -> Verdicts:
    """Labelled cases may have their verdict among all of them alone."""
    if everyone is None:
        return verdicts
    items = dict(everyone.items) | dict(verdicts.items)
    if everyone.judge and verdicts.judge and everyone.judge != verdicts.judge:
        raise InputError(
            f"these are verdicts of {everyone.judge}, the others of {verdicts.judge}; a judge's "
            "errors tell nothing of another's",
            path=everyone.name,
        )
    return replace(verdicts, items=items, judge=verdicts.judge or everyone.judge)


def _identity(verdicts: Verdicts, labels: Labels, known: Labels, seed: int) -> dict[str, Any]:
    return {
        "metric": verdicts.metric,
        "judge": verdicts.judge,
        "prompts": verdicts.prompts,
        "judge_identity": dict(verdicts.identity),
        "created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "misslink": importlib.metadata.version("misslink"),
        "verdicts_from": shown_path(verdicts.name),
        "labels_from": shown_path(labels.name),
        "labels": len(known.items),
        "seed": seed,
    }


def _of_judge(pairs: Sequence[Pair], cut: float) -> dict[str, Any]:
    table = by_judge.counted(pairs, cut)
    return {
        "agreement": by_judge.agreement(pairs, cut),
        "weighted": by_judge.weighted(pairs, cut),
        "detection": by_judge.detection(pairs, cut),
        "confusion": {
            "true_good": table.true_positive,
            "false_good": table.false_positive,
            "true_bad": table.true_negative,
            "false_bad": table.false_negative,
        },
        "baselines": by_judge.baselines(pairs),
    }


def _of_people(
    labels: Sequence[Label], people: People, verdicts: Verdicts, cut: float, seed: int
) -> dict[str, Any]:
    called: dict[Item, bool] = {}
    for case_id, judged in verdicts.items.items():
        scores = enumerate(judged.claims)
        called |= {(case_id, place): score >= cut for place, score in scores if score is not None}
        if judged.score is not None:
            called[case_id, None] = judged.score >= cut
    return {
        "human": {
            **agreement(labels, called, seed),
            "unsettled": people.unsettled,
            "queue": list(people.queue),
        }
    }


def _of_cases(gold: Mapping[Item, Gold]) -> dict[str, float]:
    """The settled label of each case, on the side that the majority is on."""
    return {
        case_id: truth.share if (truth.share >= 1 / 2) == truth.good else float(truth.good)
        for (case_id, claim), truth in gold.items()
        if claim is None
    }


def _of_probability(
    pairs: Sequence[Pair], criteria: Criteria, wanted: float, seed: int
) -> dict[str, Any]:
    measured = probability(pairs, seed)
    band, why_not = uncertain_band(pairs, criteria.band)
    return {
        "probability": measured["numbers"],
        "probability_intervals": measured["intervals"],
        "reliability": reliability(pairs),
        "recalibration": recalibration(pairs, seed),
        "nested": nested(pairs, seed, wanted),
        "uncertain_band": band,
        "uncertain_band_reason": why_not,
    }


def _of_truth(
    pairs: Sequence[Pair], tied: Sequence[Tie], all_of: Verdicts, cut: float, seed: int
) -> dict[str, Any]:
    scores = {case_id: one.score for case_id, one in all_of.items.items() if one.score is not None}
    found = corrected(pairs, scores, cut, seed, tied)
    return {
        "corrected": found,
        "labels_needed": labels_needed(pairs, found["verdicts"]),
        "scores": distribution(scores.values()),
    }


def _of_claims(gold: Mapping[Item, Gold], verdicts: Verdicts, cut: float) -> dict[str, Any] | None:
    """Agreement about single claims; None where none was labelled."""
    pairs, unknown = claims(gold, verdicts)
    if not pairs and not unknown:
        return None
    return {
        "n": len(pairs),
        "positives": sum(pair.good for pair in pairs),
        "without_verdict": unknown,
        "agreement": by_judge.agreement(pairs, cut),
        "detection": by_judge.detection(pairs, cut),
    }


def _weighed(document: Mapping[str, Any], pairs: Sequence[Pair]) -> dict[str, float | None]:
    """The numbers that the advice goes by, by the rules' names."""
    measures, base = document["agreement"], document["baselines"]
    good = document["positives"]
    left_out = sum(n for why, n in document["left_out"].items() if why != "skipped")
    length, area = base["length"]["auroc"], measures["auroc"].value
    f1 = document["detection"]["f1"].value
    told = document["human"].get("alpha")
    return {
        "labels": len(pairs),
        "rarer_label": min(good, len(pairs) - good),
        "kappa": measures["kappa"].value,
        "balanced_accuracy_low": measures["balanced_accuracy"].low,
        "over_length": None if length is None or area is None else area - max(length, 1 - length),
        "over_majority": None if f1 is None else f1 - base["majority"]["f1"],
        "people_alpha": told.value if told else None,
        "failed": left_out / (left_out + len(pairs)) if left_out + len(pairs) else None,
        "calibration_error_low": document["probability_intervals"]["ece"].low,
        "biases": len(findings(document["bias"])),
        **audit_numbers(document),
    }


def _plain(item: Any) -> Any:
    """JSON values alone."""
    if isinstance(item, Estimate):
        return item.model_dump(mode="json")
    if isinstance(item, Mapping):
        return {str(name): _plain(value) for name, value in item.items()}
    return [_plain(one) for one in item] if isinstance(item, list | tuple) else item
