"""Two runs of one judge: the difference of their shares of good answers, as people would see it."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from misslink.calibration.kept import documents
from misslink.calibration.rates import labels_in, measured, scores
from misslink.files.numbers import finite
from misslink.judging.shares import GOOD_SHARES
from misslink.stats import corrected_difference, paired_difference, rogan_gladen
from misslink.types import Estimate, Run

__all__ = ["Both", "both_corrected", "compared", "why_other_judge"]

_METHOD = "rogan-gladen"


@dataclass(frozen=True)
class Both:
    """A share of good answers of two runs, corrected by one calibration over the same cases.

    Parameters
    ----------
    name, metric : str
    a, b, difference : Estimate
        Over the cases that have a verdict in both; b minus a, missing with a reason where the
        labels do not carry it.
    labels : int
        Labelled cases that the judge's error rates rest on.
    """

    name: str
    metric: str
    a: Estimate
    b: Estimate
    difference: Estimate
    labels: int

    def document(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "a": self.a.model_dump(),
            "b": self.b.model_dump(),
            "difference": self.difference.model_dump(),
            "labels": self.labels,
        }


def compared(
    a: Run,
    b: Run,
    ids: AbstractSet[str] | None = None,
    *,
    letters: tuple[str, str] = ("A", "B"),
    seed: int = 0,
) -> tuple[dict[str, Both], str | None]:
    """Correct the shares of two runs that both keep a calibration of the same judge and prompts.

    Parameters
    ----------
    a, b : Run
        Whole ones.
    ids : set of str or None
        The cases compared. None: those that both have.
    letters : pair of str
        What the sentences call them.
    seed : int
        Of the draws.

    Returns
    -------
    found : dict of str to Both
        By the name of the share. Each by the calibration of the two that has more labels, so that
        the difference is none between two calibrations.
    why_not : str or None
        Why some or all are not corrected, where a run keeps a calibration; None where neither does.
    """
    held = documents(a), documents(b)
    if not any(held):
        return {}, None
    for mine, letter, other in ((held[0], *letters), (held[1], *letters[::-1])):
        if not mine:
            kept = held[1] if mine is held[0] else held[0]
            told = [why_other_judge(a, b, metric, one) for metric, one in kept.items()]
            if all(told):  # then it would be refused
                return {}, "; ".join(dict.fromkeys(why for why in told if why))
            return {}, (
                f"{letter} keeps no calibration; evaluate it with  --calibration "
                f"{other}/calibration.json, and both are corrected"
            )
    found: dict[str, Both] = {}
    reasons: list[str] = []
    for metric in sorted(held[0].keys() | held[1].keys()):
        both = [one[metric] for one in held if metric in one]
        if len(both) < len(held):
            reasons.append(f"only one run keeps a calibration of {metric}")
        elif why := why_other_judge(a, b, metric, *both):
            reasons.append(f"{metric}: {why}")
        else:
            one = both_corrected(a, b, metric, max(both, key=labels_in), ids, seed=seed)
            found[one.name] = one
    return found, "; ".join(dict.fromkeys(reasons)) or None


def both_corrected(
    a: Run,
    b: Run,
    metric: str,
    document: Mapping[str, Any],
    ids: AbstractSet[str] | None = None,
    *,
    seed: int = 0,
) -> Both:
    """Correct a share in two runs, and their difference, by the error rates of one calibration.

    Parameters
    ----------
    a, b : Run
        Of one judge and the same prompts, by `why_other_judge`.
    metric : str
    document : mapping
        The calibration.
    ids : set of str or None
        The cases compared. None: those that both have.
    seed : int
        Of the draws.
    """
    cut, judge = finite(document.get("threshold")), measured(document)
    before, after = scores(a, metric), scores(b, metric)
    pairs = [
        (before[one], after[one]) for one in before if one in after and (ids is None or one in ids)
    ]
    name, n = GOOD_SHARES.get(metric, metric), len(pairs)
    why = judge if isinstance(judge, str) else None
    if cut is None:
        why = "its calibration holds no threshold"
    if not pairs:
        why = f"no case has a {metric} verdict in both"
    if cut is None or isinstance(judge, str) or why:
        nothing = Estimate.missing(why or "", n=n, method=_METHOD)
        return Both(name, metric, nothing, nothing, nothing, labels_in(document))
    good = [[float(score >= cut) for score in side] for side in zip(*pairs, strict=True)]
    first, second = (rogan_gladen(int(sum(side)), n, judge) for side in good)
    raw = paired_difference(*good, seed=seed).difference
    difference = corrected_difference(raw, judge)
    return Both(name, metric, first, second, difference, labels_in(document))


def why_other_judge(a: Run, b: Run, metric: str, *held: Mapping[str, Any]) -> str | None:
    """Why one judge's error rates are not those of both runs; None where they are.

    Parameters
    ----------
    a, b : Run
    metric : str
        Whose prompts count.
    *held : mapping
        The calibrations.
    """
    judges = [str(run.manifest.get("judge") or "") for run in (a, b)]
    if judges[0] != judges[1] or not judges[0]:
        named = [judge or "no judge" for judge in judges]
        return f"one run was judged by {named[0]}, the other by {named[1]}"
    prompts = [_prompts(run, metric) for run in (a, b)]
    for name in sorted(prompts[0].keys() & prompts[1].keys()):
        if prompts[0][name] != prompts[1][name]:
            return f"the prompt '{name}' is not the same in both runs"
    for document in held:
        judge = document.get("judge")
        if isinstance(judge, str) and judge != judges[0]:
            return f"the calibration is of the judge {judge}, and the runs of {judges[0]}"
        known = document.get("prompts")
        for name, sha256 in known.items() if isinstance(known, Mapping) else ():
            if any(sha256 not in one.get(name, {sha256}) for one in prompts):
                return f"the prompt '{name}' is not the one of the calibration"
    return None


def _prompts(run: Run, metric: str) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for verdict in run.verdicts:
        if verdict.metric == metric and verdict.prompt:
            name = verdict.prompt.name
            found[name] = found.get(name, frozenset()) | {verdict.prompt.sha256}
    return found
