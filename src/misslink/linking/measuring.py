"""What can be measured of every missed passage of a run, and why it was missed.

Names in `Missed.measured`, each present only where it could be measured:

``cosine``, ``cosine_kth``
    Of the question with the passage, and with the last passage of the context.
``cosine_percentile``, ``shared_stems_percentile``
    Share of the run's other known query-passage pairs that are lower, equal ones counting half.
``shared_stems``
    Share of the question's content stems that the passage has.
``dense_rank``, ``bm25_rank``
    Its rank from 1 among ``pool`` passages, by cosine and by BM25.
``pool``
    How many passages that was: the listed corpus, else passages seen in the traces.
``duplicates_in_context``
    Passages of the context that repeat another one of it nearly word for word.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from misslink.linking.losses import Loss, losses
from misslink.linking.pairs import Pairs, percentile
from misslink.linking.pool import Pool
from misslink.linking.similarity import Meaning, Words
from misslink.linking.subtypes import classify
from misslink.retrieval import Outcome, outcome, relevant_ids
from misslink.stats.auroc import Marked
from misslink.types import Case, Missed, Passage, Trace

if TYPE_CHECKING:
    from misslink.embedding import Embedder

__all__ = ["Measured", "Pairs", "measure"]

# Passages seen in the traces that ranks are counted among, each cut into words and perhaps
# embedded: of a run of 10,000 cases they would be 50,000, and a rank among these says no more.
_MOST_SEEN = 10_000
_RANDOM = 5  # random passages a known pair is held against


@dataclass(frozen=True)
class Measured:
    """What was measured of a run's retrieval.

    Parameters
    ----------
    missed : mapping of str to tuple of Missed
        By case, with subtype, reason and measurements; an empty tuple where nothing was missed.
    pairs : Pairs
    embedding : str or None
        Which one the cosines are of.
    corpus : int or None
        Number of passages of the corpus. None: it was not listed.
    whole, split : int
        Needs given as evidence that one passage carries whole, and that take two.
    found : mapping of str to Outcome
        By case, what its retrieval brought.
    """

    missed: Mapping[str, tuple[Missed, ...]]
    pairs: Pairs = field(default_factory=Pairs)
    embedding: str | None = None
    corpus: int | None = None
    whole: int = 0
    split: int = 0
    found: Mapping[str, Outcome] = field(default_factory=dict)


@dataclass(frozen=True)
class _Seen:
    """A case, what the app did for it, and what became of what it needs."""

    case: Case
    trace: Trace
    found: Outcome
    losses: tuple[Loss, ...]

    @property
    def needed(self) -> Iterable[tuple[Passage, bool]]:
        """The needed passages that are known, one a need, and whether each reached the context."""
        for hit in self.found.found:
            if not hit.split and hit.passages[0].text.strip():
                yield hit.passages[0], True
        for loss in self.losses:
            if loss.passage is not None and not loss.miss.halves:
                yield loss.passage, False


async def measure(
    cases: Sequence[Case],
    traces: Sequence[Trace],
    k: int,
    *,
    embedder: Embedder | None,
    corpus: Sequence[Passage] | None,
    seed: int = 0,
) -> Measured:
    """Measure every missed passage of a run, and say why each was missed.

    Parameters
    ----------
    cases : sequence of Case
    traces : sequence of Trace
        Matched by ``case_id``; a case without one is left out.
    k : int
        How many retrieved passages count as the context where the prompt was not seen.
    embedder : Embedder or None
        Asked once for all questions and once for all passages. None: no cosines.
    corpus : sequence of Passage or None
        Every passage of the app's index. None: ranks are counted among the passages seen, of
        more than 10,000 of them among every n-th, and no passage is known not to be indexed.
    seed : int
        Of the random pairs.

    Returns
    -------
    Measured
        Without cases, or where nothing was missed, without misses.
    """
    pool = Pool(traces, corpus)
    by_case = {trace.case_id: trace for trace in traces}
    seen = []
    for case in cases:
        if (trace := by_case.get(case.id)) is not None:
            found = outcome(case, trace, k)
            seen.append(_Seen(case, trace, found, losses(trace, found, pool, k)))
    texts = _texts(seen, pool)
    lost = [loss.passage.id for one in seen for loss in one.losses if loss.passage]
    among = _among(pool, lost)
    words = Words(texts)
    meaning = None
    if embedder is not None:
        meaning = await _embedded(embedder, seen, texts, among if lost else ())
    pairs = _pairs(seen, words, meaning, among, seed)
    measured = _Measurements(seen, words, meaning, pairs, among)
    split = sum(hit.split for one in seen for hit in one.found.found)
    split += sum(bool(loss.miss.halves) for one in seen for loss in one.losses)
    return Measured(
        missed={one.case.id: measured.of(one) for one in seen},
        found={one.case.id: one.found for one in seen},
        pairs=pairs,
        embedding=embedder.name if embedder is not None and meaning is not None else None,
        corpus=len(corpus) if corpus is not None else None,
        whole=_whole(seen),
        split=split,
    )


class _Measurements:
    """Everything measured of the whole run, looked up for one missed passage after the other."""

    def __init__(
        self,
        seen: Sequence[_Seen],
        words: Words,
        meaning: Meaning | None,
        pairs: Pairs,
        among: Sequence[str],
    ) -> None:
        lost = [(one.case, loss.passage.id) for one in seen for loss in one.losses if loss.passage]
        self._words, self._meaning, self._pool = words, meaning, len(among)
        self._bm25 = words.ranks(((case.question, name) for case, name in lost), among)
        self._dense = (
            meaning.ranks([(case.id, name) for case, name in lost], among) if meaning else {}
        )
        self._cosines = sorted(cosine for _, cosine in pairs.known)
        self._shares = sorted(share for _, share in (*pairs.shared_found, *pairs.shared_missed))

    def of(self, one: _Seen) -> tuple[Missed, ...]:
        """The missed passages of one case, measured and classified."""
        return tuple(self._classified(one, loss) for loss in one.losses)

    def _classified(self, one: _Seen, loss: Loss) -> Missed:
        lost = loss.miss.lost
        above = lost.above
        if self._meaning is not None:
            near = self._meaning.cosines(one.case.id, [rival.passage_id for rival in above])
            above = tuple(
                rival.model_copy(update={"cosine": cosine})
                for rival, cosine in zip(above, near, strict=True)
            )
        numbers = {**lost.measured, **self._numbers(one, loss)}
        known = {name: number for name, number in numbers.items() if number is not None}
        lost = lost.model_copy(update={"measured": known, "above": above})
        others = max(0, len(self._cosines) - ("cosine" in known and not loss.miss.halves))
        return classify(replace(loss.miss, lost=lost, pairs=others))

    def _numbers(self, one: _Seen, loss: Loss) -> dict[str, float | None]:
        if loss.passage is None:
            return {}
        name, counted = loss.passage.id, not loss.miss.halves
        share = self._words.shared(one.case.question, name)
        numbers: dict[str, float | None] = {
            "shared_stems": share,
            "shared_stems_percentile": percentile(share, self._shares, counted=counted),
            "bm25_rank": self._bm25.get((one.case.question, name)),
            "dense_rank": self._dense.get((one.case.id, name)),
        }
        if numbers["bm25_rank"] is not None or numbers["dense_rank"] is not None:
            numbers["pool"] = self._pool
        if self._meaning is not None:
            cosine = self._meaning.cosine(one.case.id, name)
            numbers["cosine"] = cosine
            numbers["cosine_percentile"] = percentile(cosine, self._cosines, counted=counted)
            if loss.last is not None:
                numbers["cosine_kth"] = self._meaning.cosine(one.case.id, loss.last)
        return numbers


def _texts(seen: Sequence[_Seen], pool: Pool) -> dict[str, str]:
    """Every text that is known, by id; the corpus's before the traces'."""
    texts = {passage.id: passage.text for passage in pool.passages}
    for one in seen:
        for passage in (*one.trace.retrieved, *one.trace.deeper):
            if passage.text.strip():
                texts.setdefault(passage.id, passage.text)
    return texts


def _among(pool: Pool, lost: Iterable[str]) -> tuple[str, ...]:
    """Ids of the passages that ranks are counted among, the missed ones always with them."""
    names = tuple(pool.place)
    if not pool.listed and len(names) > _MOST_SEEN:
        step = -(-len(names) // _MOST_SEEN)
        names = names[::step]
    return tuple(dict.fromkeys((*names, *lost)))


async def _embedded(
    embedder: Embedder, seen: Sequence[_Seen], texts: Mapping[str, str], among: Iterable[str]
) -> Meaning | None:
    """Questions and passages embedded; None where no case has a known needed passage.

    Where nothing was missed only the needed passages are: nothing asks for more.
    """
    lost = {one.case.id for one in seen if any(loss.passage for loss in one.losses)}
    asking = [one for one in seen if one.case.id in lost or any(one.needed)]
    names = dict.fromkeys(passage.id for one in asking for passage, _ in one.needed)
    names |= dict.fromkeys(among)
    for one in asking:
        if one.losses:
            last = [loss.last for loss in one.losses if loss.last is not None]
            rivals = [rival.passage_id for loss in one.losses for rival in loss.miss.lost.above]
            names |= dict.fromkeys((*last, *rivals))
    if not asking:
        return None
    questions = {one.case.id: one.case.question for one in asking}
    return await Meaning.of(
        embedder, questions, {name: texts[name] for name in names if name in texts}
    )


def _pairs(
    seen: Sequence[_Seen],
    words: Words,
    meaning: Meaning | None,
    among: Sequence[str],
    seed: int,
) -> Pairs:
    import numpy as np

    generator = np.random.default_rng(seed)
    names = {
        "known", "random", "relevant", "irrelevant", "shared_found", "shared_missed"
    }  # fmt: skip
    rows: dict[str, list[Marked]] = {name: [] for name in names}
    for one in seen:
        name = one.case.id
        near: list[tuple[str, str]] = []  # group, and passage whose cosine is wanted
        needed = {passage.id for passage, _ in one.needed}
        for passage, there in one.needed:
            share = words.shared(one.case.question, passage.id)
            if share is not None:
                rows["shared_found" if there else "shared_missed"].append((name, share))
            if meaning is None or not meaning.knows(name, passage.id):
                continue
            near.append(("known", passage.id))
            drawn = generator.integers(0, len(among), _RANDOM).tolist() if among else ()
            near += [("random", among[at]) for at in drawn if among[at] not in needed]
        if meaning is None:
            continue
        if one.found.retrieval not in {"none_needed", "unknown"}:
            fitting = relevant_ids(one.case, one.trace.retrieved)
            near += [
                ("relevant" if passage.id in fitting else "irrelevant", passage.id)
                for passage in one.trace.retrieved
            ]
        cosines = meaning.cosines(name, [passage for _, passage in near])
        for (group, _), cosine in zip(near, cosines, strict=True):
            if cosine is not None:
                rows[group].append((name, cosine))
    return Pairs(**{name: tuple(found) for name, found in rows.items()})


def _whole(seen: Sequence[_Seen]) -> int:
    """Needs given as evidence that one known passage carries."""
    found = sum(
        hit.need.evidence is not None and not hit.split for one in seen for hit in one.found.found
    )
    lost = [loss for one in seen for loss in one.losses if loss.miss.lost.evidence is not None]
    return found + sum(loss.passage is not None and not loss.miss.halves for loss in lost)
