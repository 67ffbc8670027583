"""Audit of a judge: verdict flips under changes that must not matter, with tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any

from pydantic_core import to_jsonable_python

from misslink.judge.checks.audit_variants import (
    AUDITED,
    CHANGES,
    AuditedCase,
    AuditSample,
    is_deterministic,
)
from misslink.judge.protocol import Judge
from misslink.render.format import format_share_interval
from misslink.stats import holm, mean, paired_difference, proportion
from misslink.stats.paired_tests import mcnemar_test
from misslink.text.normalization import fold
from misslink.types import Claim, Estimate, Verdict

_TOLERATED_FLIP_RATE = 0.05  # share of verdicts that may flip by chance, as in the advice rules
_ALPHA = 0.05
_TESTS = ("p", "p_more")
_CHANGE_LABELS = {
    "padding": "Padding the answer with what adds nothing",
    "passage_order": "Reversing the order of the passages",
    "passage_shuffle": "Shuffling the passages",
}
_Entry = MutableMapping[str, Any]
_VerdictPair = tuple[AuditedCase, Verdict, Verdict]  # before and after the change


def compare_verdicts(
    cases: Sequence[AuditedCase], metrics: Sequence[str], *, again: bool, seed: int = 0
) -> dict[str, dict[str, dict[str, Any]]]:
    """Compare verdicts on changed and unchanged cases, by metric and change."""
    return {
        metric: {
            change: _change_entry(cases, metric, change, again, seed)
            for change in CHANGES
            if again or change != "again"
        }
        for metric in metrics
    }


def _excess_flip_p_value(flips: int, n: int) -> float | None:
    """P(at least so many of `n` flip) if the tolerated share does; exact, None without cases."""
    from scipy.stats import binomtest

    if not n:
        return None
    return float(binomtest(flips, n, _TOLERATED_FLIP_RATE, alternative="greater").pvalue)


def _change_entry(
    cases: Sequence[AuditedCase], metric: str, change: str, again: bool, seed: int
) -> dict[str, Any]:
    left_out: Counter[str] = Counter()
    pairs: list[_VerdictPair] = []
    for case in cases:
        before, after = case.base[metric], case.changed.get(change, {}).get(metric)
        if before.label is None:
            left_out[f"as it stands: {before.reason or 'no verdict'}"] += 1
        elif after is None:
            left_out[case.unchanged.get(change, {}).get(metric, "not asked")] += 1
        elif after.label is None:
            left_out[f"{after.status} once changed: {after.reason or 'no verdict'}"] += 1
        else:
            pairs.append((case, before, after))
    n = len(pairs)
    turns = Counter((before.label, after.label) for _, before, after in pairs)
    to_good, to_bad = turns[False, True], turns[True, False]

    def share(count: int) -> Estimate:
        if n:
            return proportion(count, n)
        return Estimate.missing("no case has a verdict before and after")

    may_lower = change == "padding" and AUDITED[metric].may_lower
    of_claims = (metric, change) == ("faithfulness", "padding")
    return {
        "n": n,
        "good": sum(before.label is True for _, before, _ in pairs),
        "bad": sum(before.label is False for _, before, _ in pairs),
        "flipped": share(to_good + to_bad),
        "to_good": share(to_good),
        "to_bad": share(to_bad),
        **_change_tests(pairs, metric, change, again, seed),
        "claims": _claim_flip_rate(pairs, seed) if of_claims else None,
        "may_lower": may_lower,
        "left_out": dict(left_out.most_common()),
    }


def _change_tests(
    pairs: Sequence[_VerdictPair], metric: str, change: str, again: bool, seed: int
) -> dict[str, Any]:
    """The tests and the shift, compared with the case asked again where that was done."""
    # Compare with the repeated verdict: cases were sampled by their first verdict, and a verdict
    # that is bad by chance tends to be good the next time (regression to the mean).
    may_lower = change == "padding" and AUDITED[metric].may_lower
    rows = []
    for case, before, after in pairs:
        reference: Verdict | None = before
        if again and change != "again":
            reference = case.changed.get("again", {}).get(metric)
        if reference is not None and reference.label is not None:
            rows.append((case, before, reference, after))
    gained = sum(ref.label is False and after.label is True for _, _, ref, after in rows)
    losses = sum(ref.label is True and after.label is False for _, _, ref, after in rows)

    def flips(before: Verdict, after: Verdict) -> bool:
        return before.label != after.label and (before.label is False or not may_lower)

    if change == "again":
        flipped = sum(flips(before, after) for _, before, after in pairs)
        p_more = _excess_flip_p_value(flipped, len(pairs))
    else:
        flip_pairs = [(flips(before, ref), flips(before, after)) for _, before, ref, after in rows]
        more, less = flip_pairs.count((False, True)), flip_pairs.count((True, False))
        p_more = mcnemar_test(more, less).p if rows and more > less else 1.0 if rows else None
    of_claims = (metric, change) == ("faithfulness", "padding")
    scores = [
        scores
        for case, _, ref, after in rows
        if (scores := _scores(case, ref, after, of_claims=of_claims)) is not None
    ]
    before_scores, after_scores = [a for a, _ in scores], [b for _, b in scores]
    return {
        "shift": paired_difference(before_scores, after_scores, seed=seed).difference,
        "gained": gained,
        "lost": losses,
        "p": mcnemar_test(gained, losses).p if rows else None,
        "p_more": p_more,
    }


def _scores(
    case: AuditedCase, before: Verdict, after: Verdict, *, of_claims: bool
) -> tuple[float, float] | None:
    """The score before and after, both probabilities or both values."""
    if of_claims:
        claims = _original_claims(after, before, case.answer)
        if not claims or not before.claims:
            return None
        both = before.claims, claims
        probabilities = [[claim.probability for claim in side] for side in both]
        if None not in (*probabilities[0], *probabilities[1]):
            lowest = [min(p for p in side if p is not None) for side in probabilities]
            return lowest[0], lowest[1]
        shares = [sum(c.support == "supported" for c in side) / len(side) for side in both]
        return shares[0], shares[1]
    if before.probability is not None and after.probability is not None:
        return before.probability, after.probability
    if before.value is None or after.value is None:
        return None
    return before.value, after.value


def _original_claims(after: Verdict, before: Verdict, answer: str) -> list[Claim] | None:
    """The claims of a padded answer that are in the answer itself; None where one has no place."""
    original_texts = {fold(claim.text) for claim in before.claims}
    original = []
    for claim in after.claims:
        if claim.start is None and fold(claim.text) not in original_texts:
            return None
        if claim.start is None or claim.start < len(answer.rstrip()):
            original.append(claim)
    return original


def _claim_flip_rate(pairs: Sequence[_VerdictPair], seed: int) -> Estimate:
    """The mean share of a case's claims whose support changes when the answer is padded."""
    shares = []
    for case, before, after in pairs:
        claims = {fold(c.text): c for c in _original_claims(after, before, case.answer) or ()}
        both = [(c, claims[key]) for c in before.claims if (key := fold(c.text)) in claims]
        if both:
            changed = sum((a.support == "supported") != (b.support == "supported") for a, b in both)
            shares.append(changed / len(both))
    if not shares:
        return Estimate.missing("no claim was found again in the padded answer")
    return mean(shares, seed=seed)


def audit_document(
    metrics: Mapping[str, Mapping[str, _Entry]], preferences: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Correct all tests for multiple testing, and state what holds.

    Parameters
    ----------
    metrics : mapping of str to mapping of str to mapping
        As `compare_verdicts` returns it.
    preferences : mapping or None
        As `misslink.judge.checks.pairwise.summarize_preferences` returns it.

    Returns
    -------
    dict
        ``metrics`` and, where pairs were compared, ``preferences`` with its ``answer_order``: each
        entry with ``p_holm`` and ``p_more_holm``, by Holm over all tests, and ``finding``: one
        sentence of what holds at the 5% level after that, or None. As JSON values.
    """
    document: dict[str, Any] = {
        "metrics": {
            metric: {change: dict(entry) for change, entry in changes.items()}
            for metric, changes in metrics.items()
        }
    }
    if preferences is not None:
        document["preferences"] = {"answer_order": _order_entry(preferences)}
    entries = list(_entries(document))
    tests = [(entry, name) for _, _, entry in entries for name in _TESTS]
    p_values = holm([entry[name] for entry, name in tests])
    for (entry, name), p in zip(tests, p_values, strict=True):
        entry[f"{name}_holm"] = p
    for metric, change, entry in entries:
        entry["finding"] = _finding(metric, change, entry)
    plain: dict[str, Any] = to_jsonable_python(document)
    return plain


def nothing_compared_reason(metrics: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str | None:
    """Why nothing could be compared, as part of a sentence; None: something could."""
    entries = [entry for changes in metrics.values() for entry in changes.values()]
    if any(entry["n"] for entry in entries):
        return None
    reasons: Counter[str] = Counter()
    for entry in entries:
        reasons.update(entry["left_out"])
    if not reasons:
        return "no case could be asked about"
    ((reason, count),) = reasons.most_common(1)
    return f"no verdict could be compared, in {count} of {reasons.total()} because {reason}"


def audit_notes(
    judge: Judge, cases: Sequence[AuditedCase], sample: AuditSample, metric: str, skipped: int
) -> list[str]:
    """State what a reader of an audit must know, as sentences.

    Parameters
    ----------
    judge : Judge
    cases : sequence of AuditedCase
    sample : AuditSample
    metric : str
        By whose verdicts the cases were sampled.
    skipped : int
        Questions that were not asked because of a limit.
    """
    notes = []
    if sample.good or sample.bad:
        notes.append(
            f"In {sample.good} of the {len(sample.cases)} cases the run's verdict on"
            f" {metric.replace('_', ' ')} is good, in {sample.bad} it is bad. The cases were"
            " sampled by it, so shares over them are not shares over the run."
        )
    if sample.cases and not (sample.good and sample.bad):
        notes.append("All cases have the same verdict, so a change can move it in one way only.")
    if is_deterministic(judge):
        notes.append(
            f"{judge.name} always gives the same reply to the same question, so it was not asked"
            " again: every flip comes from the change."
        )
    if skipped:
        notes.append(
            f"{skipped} questions were not asked because the budget or the time is used up. Run"
            " the same command with a higher limit to continue."
        )
    failed = Counter(
        verdict.reason or "no reason"
        for case in cases
        for verdicts in (case.base, *case.changed.values())
        for verdict in verdicts.values()
        if verdict.status == "failed"
    )
    if failed:
        ((reason, count),) = failed.most_common(1)
        notes.append(
            f"{failed.total()} verdicts failed and count nowhere, {count} of them because {reason}."
        )
    return notes


def _entries(document: Mapping[str, Any]) -> Iterator[tuple[str, str, _Entry]]:
    for metric, changes in document["metrics"].items():
        for change, entry in changes.items():
            yield metric, change, entry
    for change, entry in document.get("preferences", {}).items():
        yield "preference", change, entry


def _order_entry(preferences: Mapping[str, Any]) -> dict[str, Any]:
    """How often the order of two answers decides which is better, and which place it favors."""
    flipped = Estimate.model_validate(preferences["position_flips"])
    places = {name: int(preferences["positions"][name]) for name in ("first", "second")}
    p = p_more = None
    if flipped.value is not None:
        p = mcnemar_test(places["first"], places["second"]).p
        p_more = _excess_flip_p_value(round(flipped.value * flipped.n), flipped.n)
    left_out = dict(preferences["left_out"])
    return {
        "n": flipped.n,
        "flipped": flipped,
        "places": places,
        "p": p,
        "p_more": p_more,
        "left_out": left_out,
    }


def _finding(metric: str, change: str, entry: Mapping[str, Any]) -> str | None:
    one_sided = entry["p_holm"] is not None and entry["p_holm"] < _ALPHA
    more_flips = entry["p_more_holm"] is not None and entry["p_more_holm"] < _ALPHA
    if change != "answer_order":
        # A change that may rightly lower a verdict is no finding where it does.
        one_sided = one_sided and (entry["gained"] > entry["lost"] or not entry["may_lower"])
    if not one_sided and not more_flips:
        return None
    flipped, n = format_share_interval(entry["flipped"]), entry["n"]
    if change == "answer_order":
        places = entry["places"]
        favored = "first" if places["first"] > places["second"] else "second"
        direction = f", in favor of the one shown {favored}" if one_sided else ""
        return (
            f"Which of two answers is better changes with their order in {flipped} of {n}"
            f" pairs{direction}."
        )
    label = metric.replace("_", " ")
    if change == "again":
        return f"Asked again, the judge changes its verdict on {label} in {flipped} of {n} cases."
    if entry["may_lower"]:
        to_good_share = format_share_interval(entry["to_good"])
        return f"{_CHANGE_LABELS[change]} turns {label} good in {to_good_share} of {n} cases."
    better = "good" if entry["gained"] > entry["lost"] else "bad"
    direction = f", more often to {better}" if one_sided else ""
    return f"{_CHANGE_LABELS[change]} turns {flipped} of {n} verdicts on {label}{direction}."
