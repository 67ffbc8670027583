"""What changed with a change: flips, their direction, the shift of the score, and tests of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from misslink.judging.audits.asking import Heard
from misslink.judging.audits.changes import AUDITED, CHANGES
from misslink.stats import mean, paired_difference, proportion
from misslink.stats.mcnemar import mcnemar
from misslink.text import fold
from misslink.types import Claim, Estimate, Verdict

__all__ = ["TOLERATED", "compared", "more_often_than"]

TOLERATED = 0.05  # share of verdicts that may flip by themselves, as the rules of advice have it
_PADDING = "padding"
_BY_CLAIMS = "faithfulness"


def compared(
    heard: Sequence[Heard], metrics: Sequence[str], *, again: bool, seed: int = 0
) -> dict[str, dict[str, dict[str, Any]]]:
    """Hold what a judge said of changed cases against what it said of them as they are.

    Parameters
    ----------
    heard : sequence of Heard
    metrics : sequence of str
        Of `AUDITED`.
    again : bool
        Whether the judge was asked again; False: it is deterministic by construction.
    seed : int
        Of the intervals.

    Returns
    -------
    dict
        By metric and change:

        ``n``
            Cases with a verdict before and after; ``good`` and ``bad`` before.
        ``flipped``, ``to_good``, ``to_bad``
            Estimates (Wilson), shares of these cases.
        ``shift``
            Estimate, the mean change of the score, which is the probability of the good label,
            else the value. Of padded faithfulness it is that of the original claims alone: with
            true sentences added the share of supported ones rises by arithmetic.
        ``claims``
            Of padded faithfulness: Estimate, the mean over cases of the share of original claims
            whose support is called otherwise. None elsewhere.
        ``p``
            Exact, of McNemar's test that as many turn good (``gained``) as turn bad (``lost``).
        ``p_more``
            Exact, of the test that a change flips more verdicts than asking again does (of
            ``again`` itself: than `TOLERATED`). None: not tested.
        ``may_lower``
            Whether only a verdict that turns good stands against the judge; then ``p_more`` counts
            these alone.
        ``left_out``
            How many cases have no number, by reason.

    Notes
    -----
    ``p``, ``p_more`` and ``shift`` compare a changed case with the case asked again, where that
    was done, and not with the first verdict: cases were drawn by that one, and what is called bad
    by chance is called good the next time, whatever was changed (regression to the mean).
    """
    return {
        metric: {
            change: _of_change(heard, metric, change, again, seed)
            for change in CHANGES
            if again or change != "again"
        }
        for metric in metrics
    }


def more_often_than(share: float, flips: int, n: int) -> float | None:
    """P that so many of `n` flip or more, if `share` of all do; exact, None without cases."""
    from scipy.stats import binomtest

    return float(binomtest(flips, n, share, alternative="greater").pvalue) if n else None


def _of_change(
    heard: Sequence[Heard], metric: str, change: str, again: bool, seed: int
) -> dict[str, Any]:
    left_out: Counter[str] = Counter()
    known: list[tuple[Heard, Verdict, Verdict]] = []
    for one in heard:
        before, after = one.base[metric], one.changed.get(change, {}).get(metric)
        if before.label is None:
            left_out[f"as it stands: {before.reason or 'no verdict'}"] += 1
        elif after is None:
            left_out[one.unchanged.get(change, {}).get(metric, "not asked")] += 1
        elif after.label is None:
            left_out[f"{after.status} once changed: {after.reason or 'no verdict'}"] += 1
        else:
            known.append((one, before, after))
    n = len(known)
    turned = Counter((before.label, after.label) for _, before, after in known)
    good, bad = turned[False, True], turned[True, False]
    may_lower = change == _PADDING and AUDITED[metric].may_lower
    return {
        "n": n,
        "good": sum(before.label is True for _, before, _ in known),
        "bad": sum(before.label is False for _, before, _ in known),
        "flipped": _share(good + bad, n),
        "to_good": _share(good, n),
        "to_bad": _share(bad, n),
        **_tested(known, metric, change, again, may_lower, seed),
        "claims": _of_claims(known, seed) if (metric, change) == (_BY_CLAIMS, _PADDING) else None,
        "may_lower": may_lower,
        "left_out": dict(left_out.most_common()),
    }


def _tested(
    known: Sequence[tuple[Heard, Verdict, Verdict]],
    metric: str,
    change: str,
    again: bool,
    may_lower: bool,
    seed: int,
) -> dict[str, Any]:
    """The tests and the shift, against the case asked again where it was."""
    by_itself = not again or change == "again"
    rows = []
    for one, before, after in known:
        other = before if by_itself else one.changed.get("again", {}).get(metric)
        if other is not None and other.label is not None:
            rows.append((one, before, other, after))
    gained = sum(other.label is False and after.label is True for _, _, other, after in rows)
    lost = sum(other.label is True and after.label is False for _, _, other, after in rows)

    def flips(before: Verdict, after: Verdict) -> bool:
        counts = before.label is False if may_lower else True
        return counts and before.label != after.label

    if change == "again":
        turned = sum(flips(before, after) for _, before, after in known)
        p_more = more_often_than(TOLERATED, turned, len(known))
    else:
        pairs = [(flips(before, other), flips(before, after)) for _, before, other, after in rows]
        more, less = pairs.count((False, True)), pairs.count((True, False))
        p_more = mcnemar(more, less).p if rows and more > less else 1.0 if rows else None
    own = (metric, change) == (_BY_CLAIMS, _PADDING)
    scores = [_scores(one, other, after, own) for one, _, other, after in rows]
    told = [pair for pair in scores if pair is not None]
    shift = paired_difference([a for a, _ in told], [b for _, b in told], seed=seed).difference
    return {
        "shift": shift,
        "gained": gained,
        "lost": lost,
        "p": mcnemar(gained, lost).p if rows else None,
        "p_more": p_more,
    }


def _scores(one: Heard, before: Verdict, after: Verdict, own: bool) -> tuple[float, float] | None:
    """The score before and after, both probabilities or both values."""
    if own:
        claims = _original(after, before, one.answer)
        if not claims or not before.claims:
            return None
        return _of_support(before.claims, claims)
    if before.probability is not None and after.probability is not None:
        return before.probability, after.probability
    if before.value is None or after.value is None:
        return None
    return before.value, after.value


def _of_support(before: Sequence[Claim], after: Sequence[Claim]) -> tuple[float, float]:
    """The least probability of the claims, else the share that is supported."""
    least = _least(before), _least(after)
    if least[0] is not None and least[1] is not None:
        return least[0], least[1]
    first, second = (
        sum(claim.support == "supported" for claim in claims) / len(claims)
        for claims in (before, after)
    )
    return first, second


def _least(claims: Sequence[Claim]) -> float | None:
    """The least probability; None where a claim has none."""
    known = [claim.probability for claim in claims if claim.probability is not None]
    return min(known) if len(known) == len(claims) else None


def _original(after: Verdict, before: Verdict, answer: str) -> list[Claim] | None:
    """The claims of a padded answer that are of the answer itself; None where one has no place."""
    said = {fold(claim.text) for claim in before.claims}
    found = []
    for claim in after.claims:
        if claim.start is None and fold(claim.text) not in said:
            return None
        if claim.start is None or claim.start < len(answer.rstrip()):
            found.append(claim)
    return found


def _of_claims(known: Sequence[tuple[Heard, Verdict, Verdict]], seed: int) -> Estimate:
    """How far the calls of the very same claims change, case by case."""
    shares = []
    for one, before, after in known:
        now = {fold(claim.text): claim for claim in _original(after, before, one.answer) or ()}
        both = [(c, now[key]) for c in before.claims if (key := fold(c.text)) in now]
        if both:
            changed = sum((a.support == "supported") != (b.support == "supported") for a, b in both)
            shares.append(changed / len(both))
    if not shares:
        return Estimate.missing("no claim was found again in the padded answer")
    return mean(shares, seed=seed)


def _share(count: int, n: int) -> Estimate:
    return proportion(count, n) if n else Estimate.missing("no case has a verdict before and after")
