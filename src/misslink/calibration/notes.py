"""What a reader of a calibration must know, as sentences: what is missing, odd or weak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from misslink.calibration.judged import Verdicts
from misslink.calibration.pairs import Pair

__all__ = ["notes"]

_FEW = 30  # labels under which most intervals say little
_SHOWN = 3


def notes(
    document: Mapping[str, Any], verdicts: Verdicts, pairs: Sequence[Pair], by_claims: int
) -> list[str]:
    """Say what is missing, odd or weak about labels and verdicts.

    Parameters
    ----------
    document : mapping
        The calibration as far as it is made.
    verdicts : Verdicts
    pairs : sequence of Pair
    by_claims : int
        Answers whose truth follows from their claims' labels.
    """
    return [
        *_of_labels(document, pairs, by_claims),
        *_of_people(document["human"], document["corrected"]["ties"]),
        *_of_verdicts(document, verdicts),
        *_of_cut(document, pairs),
        *_of_audit(document),
    ]


def _of_labels(document: Mapping[str, Any], pairs: Sequence[Pair], by_claims: int) -> list[str]:
    found = []
    n, good = document["n"], document["positives"]
    if not n:
        found.append("No labelled case has a usable verdict, so nothing can be said of the judge.")
    elif n < _FEW:
        found.append(f"{_cases(n)} with a label and a verdict: intervals are wide, read them.")
    if n and good in {0, n}:
        word = "good" if good else "bad"
        found.append(
            f"People call {'the one case' if n == 1 else f'all {n:,} cases'} {word}: how the judge "
            "does on the others is not known; label cases that it calls "
            f"{'bad' if good else 'good'}."
        )
    if document["unknown_labels"]:
        unknown = document["unknown_labels"]
        many = f"{unknown:,} labels of unknown cases were"
        found.append(f"{'1 label of an unknown case was' if unknown == 1 else many} left out.")
    if by_claims:
        have = "has the label that follows from its claims'"
        if by_claims > 1:
            have = "have the label that follows from their claims'"
        found.append(f"{_cases(by_claims)} {have} labels.")
    unheard = (document["claims"] or {}).get("without_verdict", 0)
    if unheard:
        of = "1 claim that has" if unheard == 1 else f"{unheard:,} claims that have"
        found.append(f"Labels of {of} no verdict were left out.")
    if document["weighted"] is not None:
        found.append(
            "Labelled cases were drawn with unequal chances: the table and the agreement are plain "
            "counts; the corrected share and the weighted rates take the chances into account."
        )
    labelled = sum(pair.weight is not None for pair in pairs)
    if document["corrected"]["verdicts"] > n and n and not labelled:
        found.append(
            "The corrected share holds if the labelled cases were drawn at random from all; give "
            "a weight with each label if they were not."
        )
    return found


def _of_people(human: Mapping[str, Any], ties: int) -> list[str]:
    found = []
    if human["unsettled"]:
        one = human["unsettled"] == 1
        told = (
            f"{human['unsettled']:,} {'item is' if one else 'items are'} tied and left out, so "
            "agreement, the judge's error rates and what is corrected by them (Rogan and Gladen) "
            "are of answers that people agree on; "
        )
        if ties:
            told += (
                "the share by the labels alone and the prediction-powered one count "
                f"{'1 tied answer' if ties == 1 else f'{ties:,} tied answers'} as half good; "
            )
        found.append(f"{told}settle {'it' if one else 'them'} with a label by 'adjudicated'.")
    for copy in human["copies"][:_SHOWN]:
        first, second = copy["annotators"]
        found.append(
            f"{first} and {second} gave the same label to all {copy['labels']} items that both "
            "labelled; if one file is a copy, people's agreement says nothing."
        )
    return found


def _of_verdicts(document: Mapping[str, Any], verdicts: Verdicts) -> list[str]:
    found = []
    for status, items in sorted(verdicts.unusable.items()):
        reasons: dict[str, int] = {}
        for item in items:
            reasons[item.reason or "no reason"] = reasons.get(item.reason or "no reason", 0) + 1
        most = sorted(reasons.items(), key=lambda pair: -pair[1])[:_SHOWN]
        told = "; ".join(f"{count} x {reason[:100]}" for reason, count in most)
        were = "1 verdict is" if len(items) == 1 else f"{len(items):,} verdicts are"
        counts = "counts" if len(items) == 1 else "count"
        found.append(f"{were} {status} and {counts} nowhere: {told}.")
    left_out = document["left_out"]
    if left_out:
        told = ", ".join(f"{count} {why}" for why, count in sorted(left_out.items()))
        found.append(f"Labelled cases without a usable verdict are left out: {told}.")
    judges = {one.judge for one in verdicts.items.values() if one.judge}
    if not verdicts.judge:
        several = f"{len(judges)} judges" if judges else "no judge"
        found.append(f"The verdicts name {several}, so this calibration is of no certain judge.")
    probable = sum(one.probability is not None for one in verdicts.items.values())
    scored = sum(one.score is not None for one in verdicts.items.values())
    if 0 < probable < scored:
        found.append(
            f"{scored - probable:,} of {scored:,} verdicts "
            f"{'has' if scored - probable == 1 else 'have'} no probability; the value is used."
        )
    return found


def _of_cut(document: Mapping[str, Any], pairs: Sequence[Pair]) -> list[str]:
    cut = document["threshold"]
    known = [pair for pair in pairs if pair.judged.label is not None]
    other = sum((pair.score >= cut) != pair.judged.label for pair in known)
    if not other:
        return []
    said = f"At the threshold {cut:.4g} the judge is counted otherwise than its own label says "
    return [f"{said}in {other:,} of {_cases(len(known))}."]


def _of_audit(document: Mapping[str, Any]) -> list[str]:
    reason = document.get("audit_reason")
    if not reason:
        return []
    again = "misslink judge audit RUN  makes one that does"
    return [f"The run's audit of a judge does not count here: {reason};  {again}."]


def _cases(n: int) -> str:
    return f"{n:,} case{'' if n == 1 else 's'}"
