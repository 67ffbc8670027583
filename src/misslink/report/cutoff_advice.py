"""Which cutoff the recall curve speaks for, and whether the data tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from misslink.render.format import format_difference, format_whole_points, pluralize

# What a passage more must bring in recall to be worth its place: it costs tokens and attention.
RECALL_PER_PASSAGE = 0.01
_LEVEL = 0.95


def advise_cutoff(
    recall: Mapping[int, Sequence[float]],
    precision: Mapping[int, float],
    k: int,
    characters: float,
) -> str:
    """Say which cutoff to take, and why; or that the data do not tell.

    The best cutoff has the most recall after a price of one point for each passage. It is advised
    where the whole interval of its gain over `k`, corrected for the cutoffs that were looked at, is
    above that price.

    Parameters
    ----------
    recall : mapping of cutoff to the recall of each case
    precision : mapping of cutoff to mean precision
    k : int
        The run's cutoff.
    characters : float
        Mean length of a retrieved passage.
    """
    from misslink.stats import mean  # imports numpy

    if k not in recall or not recall[k]:
        return ""
    worth = {j: sum(values) / len(values) - RECALL_PER_PASSAGE * j for j, values in recall.items()}
    best = max(worth, key=lambda j: (worth[j], -j))
    rule = "a further passage must add at least 1 point of recall"
    if best == k:
        return f"The data speak for no other cutoff than k = {k}: {rule}."
    level = 1 - (1 - _LEVEL) / (len(recall) - 1)
    gains = [after - before for before, after in zip(recall[k], recall[best], strict=True)]
    gain = mean(gains, bounds=(0.0, 1.0) if best > k else (-1.0, 0.0), level=level)
    change = format_difference("share", gain).brief
    if gain.low is None or gain.low <= RECALL_PER_PASSAGE * (best - k):
        more = pluralize(abs(best - k), "passage")
        return (
            f"The data do not tell which cutoff is best: k = {best} changes recall by {change} for "
            f"{more} {'more' if best > k else 'fewer'}, over {pluralize(gain.n, 'case')}; {rule}."
        )
    before, after = (format_whole_points(precision[j]) for j in (k, best))
    lengths = [f"{round(j * characters, -2):,.0f}" for j in (k, best)]
    return (
        f"Take k = {best}: recall changes by {change}, precision goes from {before} to {after}%, "
        f"and the passages in a prompt from about {lengths[0]} to {lengths[1]} characters; {rule}."
    )
