"""Why a needed passage was missed: one rule a subtype, each read from what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from misslink.types import Missed, Rival, Subtype

__all__ = ["FEWEST_PAIRS", "RULES", "Miss", "classify"]

# Known pairs that a percentile needs. With 20 of them, a pair that in truth is no lower than the
# lowest 30 % stands in the lowest tenth (2 or fewer below it) by chance in 4 % of cases; with 13
# it does in 6 % (binomial).
FEWEST_PAIRS = 20
_LOWEST = 0.1  # the tenth of the run's pairs that counts as low
_TYPICAL = 0.5  # at least as high as the middle of the run's pairs
# Of the 1,612 relevant pairs of Cranfield the document has a quarter of the question's content
# words or fewer in 29 %, half of them or more in 34 %.
_FEW_WORDS = 1 / 4
_MANY_WORDS = 1 / 2
# How many times further down one search puts a passage than the other: of these pairs BM25 puts
# 10 % so much further down than MiniLM, and MiniLM 8 % than BM25; at 3 it would be 20 and 16 %.
_MUCH_WORSE = 5.0
_SHOWN = 3  # rivals named in a sentence


@dataclass(frozen=True)
class Miss:
    """What is known of one missed passage before a subtype is named.

    Parameters
    ----------
    lost : Missed
        With ``measured`` and ``above``.
    k : int
        How many passages count.
    retrieved : bool
        Whether the app's retriever gave it.
    prompt_seen : bool
        Whether it is known what reached the prompt.
    overtaken_by : str or None
        A passage ranked behind it that reached the prompt.
    lacking : str or None
        Who says that the index does not hold it.
    halves : sequence of str
        Ids of the two passages over which a chunk boundary cuts the evidence.
    pairs : int
        Other known query-passage pairs of the run that have a cosine.
    crowd : int
        How many of those above it repeat another of them.
    twin : str or None
        A passage of the context that says nearly the same as the missed one.
    """

    lost: Missed
    k: int
    retrieved: bool = False
    prompt_seen: bool = False
    overtaken_by: str | None = None
    lacking: str | None = None
    halves: Sequence[str] = ()
    pairs: int = 0
    crowd: int = 0
    twin: str | None = None

    def number(self, name: str) -> float | None:
        """A measurement by name; None where it could not be taken."""
        return self.lost.measured.get(name)


def classify(miss: Miss) -> Missed:
    """Return the missed passage with its subtype, the others that fit, and the evidence.

    The first rule of `RULES` that fits gives the subtype; where none does it is None, and the
    reason says what is not known.
    """
    fitting = [(subtype, reason) for subtype, rule in RULES if (reason := rule(miss))]
    subtype, reason = fitting[0] if fitting else (None, _why_none(miss))
    if miss.twin is not None:
        reason += f"; '{miss.twin}', which was there, says nearly the same"
    return miss.lost.model_copy(
        update={
            "subtype": subtype,
            "also": tuple(other for other, _ in fitting[1:]),
            "reason": reason,
        }
    )


def not_indexed(miss: Miss) -> str | None:
    """The corpus is known not to hold it; not merely that the retriever did not reach it."""
    return f"{miss.lacking} does not hold it" if miss.lacking else None


def dropped_before_prompt(miss: Miss) -> str | None:
    """It was retrieved, in good time, and is not in the prompt that was seen."""
    rank = miss.lost.true_rank
    if not (miss.retrieved and miss.prompt_seen) or rank is None:
        return None
    if miss.overtaken_by is not None:
        return (
            f"it was retrieved at rank {rank} and did not reach the prompt, while "
            f"'{miss.overtaken_by}' from behind it did"
        )
    return (
        f"it was retrieved at rank {rank} and did not reach the prompt" * (rank <= miss.k) or None
    )


def split_evidence(miss: Miss) -> str | None:
    """A chunk boundary cuts the evidence, so no one passage answers the question."""
    if not miss.halves:
        return None
    first, second = miss.halves
    where = f", rank {miss.lost.true_rank}" if miss.lost.true_rank is not None else ""
    return (
        f"a chunk boundary cuts the evidence over '{first}' and '{second}', "
        f"and '{miss.lost.passage_id}'{where} was not there"
    )


def duplicate_crowding(miss: Miss) -> str | None:
    """Without the near-duplicates above it, it would be within the first k."""
    rank = miss.lost.true_rank
    if rank is None or rank <= miss.k or rank - miss.crowd > miss.k:
        return None
    repeat = "passage above it repeats" if miss.crowd == 1 else "passages above it repeat"
    return (
        f"{miss.crowd} {repeat} others nearly word for word; without them it would have rank "
        f"{rank - miss.crowd} instead of {rank}, and the first {miss.k} count"
    )


def domain_mismatch(miss: Miss) -> str | None:
    """The embedding does not see what the words show: similarity low, words shared as ever."""
    below, cosine = miss.number("cosine_percentile"), miss.number("cosine")
    words, share = miss.number("shared_stems_percentile"), miss.number("shared_stems")
    if below is None or cosine is None or words is None or not share or miss.pairs < FEWEST_PAIRS:
        return None
    if below > _LOWEST or words < _TYPICAL:
        return None
    return (
        f"its cosine with the question, {cosine:.2f}, is below {1 - below:.0%} of the run's "
        f"{miss.pairs} other known pairs, though it has {share:.0%} of the question's content "
        "words, as many as pairs usually share"
    )


def vocabulary_mismatch(miss: Miss) -> str | None:
    """Question and passage word it differently, or the words they share were not searched for."""
    share = miss.number("shared_stems")
    dense, words = miss.number("dense_rank"), miss.number("bm25_rank")
    if share is None:
        return None
    if share == 0:
        return "it has none of the question's content words"
    if dense is None or words is None:
        return None
    pool = f"of {miss.number('pool') or 0:.0f} passages"
    ranks = f"a search by words puts it at rank {words:.0f} {pool}, the embedding at {dense:.0f}"
    if share <= _FEW_WORDS and words > miss.k and words >= _MUCH_WORSE * dense:
        return f"it has only {share:.0%} of the question's content words: {ranks}"
    if share >= _MANY_WORDS and dense > miss.k and dense >= _MUCH_WORSE * words:
        return f"it has {share:.0%} of the question's content words, yet {ranks}"
    return None


def ranking(miss: Miss) -> str | None:
    """As similar as needed passages are, and others stood before it."""
    cosine, kth = miss.number("cosine"), miss.number("cosine_kth")
    below = miss.number("cosine_percentile")
    if cosine is None or not miss.lost.above:
        return None
    if kth is not None and cosine >= kth:
        similar = f"its cosine with the question, {cosine:.2f}, is no lower than that of the last "
        similar += f"passage that counted ({kth:.2f})"
    elif below is not None and below >= _TYPICAL and miss.pairs >= FEWEST_PAIRS:
        similar = f"its cosine with the question, {cosine:.2f}, is higher than {below:.0%} of the "
        similar += f"run's {miss.pairs} other known pairs"
    else:
        return None
    return f"{similar}, and it is outranked by {_named(miss.lost.above)}"


def below_cutoff(miss: Miss) -> str | None:
    """The retriever finds it, further down than counts."""
    rank = miss.lost.true_rank
    if rank is None or rank <= miss.k:
        return None
    return f"it has rank {rank}, and the first {miss.k} count"


# In the order in which the first that fits is the subtype: what makes all else pointless first
# (it is not there, it was found and lost again, it is cut in two), then what explains the rank by
# its cause, and the bare rank last.
RULES: tuple[tuple[Subtype, Callable[[Miss], str | None]], ...] = (
    ("not_indexed", not_indexed),
    ("dropped_before_prompt", dropped_before_prompt),
    ("split_evidence", split_evidence),
    ("duplicate_crowding", duplicate_crowding),
    ("domain_mismatch", domain_mismatch),
    ("vocabulary_mismatch", vocabulary_mismatch),
    ("ranking", ranking),
    ("below_cutoff", below_cutoff),
)


def _named(above: Sequence[Rival]) -> str:
    shown = []
    for rival in above[:_SHOWN]:
        numbers = [f"rank {rival.rank}"]
        if rival.score is not None:
            numbers.append(f"score {rival.score:.3g}")
        if rival.cosine is not None:
            numbers.append(f"cosine {rival.cosine:.2f}")
        shown.append(f"'{rival.passage_id}' ({', '.join(numbers)})")
    more = len(above) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _why_none(miss: Miss) -> str:
    lost = miss.lost
    if lost.true_rank is not None:
        where = f"it has rank {lost.true_rank}"
    elif lost.depth is not None:
        where = f"it is not among the first {lost.depth}"
    else:
        where = "its rank is not known, since the retriever was not asked deeper"
    if lost.text is None:
        return f"{where}, and its text is not known, so nothing could be measured of it"
    cosine = miss.number("cosine")
    similar = "" if cosine is None else f" (its cosine with the question is {cosine:.2f})"
    return f"{where}, and nothing that was measured says why{similar}"
