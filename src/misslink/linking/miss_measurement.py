"""Cosines, ranks and shared words of every missed passage of a run.

The question is the standalone question of a turn of a conversation, where one is known.
Names in `RetrievalMiss.measured`, each present only where it could be measured:

``cosine``, ``cosine_kth``
    Of the question with the passage, and with the last passage of the context.
``cosine_percentile``, ``shared_stems_percentile``
    Share of the run's other known query-passage pairs that are lower, ties counting half.
``shared_stems``
    Share of the question's content stems that the passage has.
``dense_rank``, ``bm25_rank``
    Its rank from 1 among ``pool`` passages, by cosine and by BM25.
``pool``
    How many passages that was: the listed corpus, else the passages in the traces.
``duplicates_in_context``
    Passages of the context that repeat another one of it nearly word for word.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING

from misslink.case_fields import conversation_turns
from misslink.linking.corpus_search import cosine_rows, fuse_rankings, rank_at, top_places
from misslink.linking.miss_types import MissEvidence, classify_miss
from misslink.linking.missed_passages import PassagePool, find_missed_passages, shared_stem_share
from misslink.parts import by_case, light_items
from misslink.retrieval import RetrievalOutcome, relevant_ids, retrieval_outcome
from misslink.stats.roc import CaseScore
from misslink.text.normalization import content_stems
from misslink.types import Case, Passage, RetrievalMiss, Scored, Trace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from misslink.embedding import Embedder


# Passages in the traces that ranks are counted among: of a run of 10,000 cases they would be
# 50,000, to be stemmed and perhaps embedded, and a rank among those says no more.
_MAX_POOL = 10_000
_SEARCHED = 5  # passages outside the prompt that a search for an unlabelled case looks at
FUSION_DEPTH = 50  # of each ranking that is fused
CLEARLY_ABOVE = 1.2  # times the score of all that was shown: what was missed for the question
_HOW_MUCH = re.compile(
    r"\b(?:how\s+(?:much|many|long|often|far|old|big|high|tall|deep)"
    r"|wie\s*(?:viele?|lange|oft|weit|alt|gro(?:ß|ss)|hoch))\b",
    re.IGNORECASE,
)
ASKED_SHARE = 0.6  # of the question's content words, that a passage on the question has
_RANDOM_PASSAGES = 5  # random passages that a known pair is compared with


DeepSearch = Callable[[Case, Trace, Callable[[Passage], bool]], Awaitable[Trace]]


@dataclass(frozen=True)
class SimilaritySamples:
    """Similarities of query-passage pairs, each with the id of its case.

    ``known`` and ``random`` are cosines of a question with a passage it needs (found or missed)
    and with passages drawn at random; ``relevant`` and ``irrelevant`` those with retrieved
    passages; ``shared_found`` and ``shared_missed`` the shares of the question's content stems
    that a needed passage has.
    """

    known: tuple[CaseScore, ...] = ()
    random: tuple[CaseScore, ...] = ()
    relevant: tuple[CaseScore, ...] = ()
    irrelevant: tuple[CaseScore, ...] = ()
    shared_found: tuple[CaseScore, ...] = ()
    shared_missed: tuple[CaseScore, ...] = ()


@dataclass(frozen=True)
class MissMeasurements:
    """The measurements of a run's retrieval.

    Parameters
    ----------
    missed : mapping of str to tuple of RetrievalMiss
        By case, with miss type, reason and measurements; empty where nothing was missed.
    pairs : SimilaritySamples
    embedding : str or None
        The embedding of the cosines.
    corpus : int or None
        Number of passages of the corpus. None: it was not listed.
    whole, split : int
        Needs given as evidence that one passage carries whole, and that take two.
    outcomes : mapping of str to RetrievalOutcome
        By case.
    pool : PassagePool
        What is searched for the cases without labels.
    prompted_before : mapping of str to mapping of str to int
        By case, the passages in the prompts of earlier turns, each with the last of these turns.
    nearest : mapping of str to sequence of int
        By query, the places in the pool of the passages nearest by meaning, nearest first.
    searches : bool
        Whether any trace of the run shows a search.
    deepen : callable or None
        Asks the app's retrievers deeper for the passages of a case that fit. None: of traces.
    """

    missed: Mapping[str, tuple[RetrievalMiss, ...]]
    pairs: SimilaritySamples = field(default_factory=SimilaritySamples)
    embedding: str | None = None
    corpus: int | None = None
    whole: int = 0
    split: int = 0
    outcomes: Mapping[str, RetrievalOutcome] = field(default_factory=dict)
    pool: PassagePool = field(default_factory=lambda: PassagePool((), None))
    prompted_before: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    nearest: Mapping[str, Sequence[int]] = field(default_factory=dict)
    deepen: DeepSearch | None = None
    searches: bool = False

    def of_cases(self, ids: Sequence[str]) -> MissMeasurements:
        """What it has of these cases; what it has of the run stays."""
        return replace(
            self,
            missed={name: self.missed[name] for name in ids},
            outcomes={name: self.outcomes[name] for name in ids},
            prompted_before={name: self.prompted_before.get(name, {}) for name in ids},
        )

    def place_question(self, question: str, trace: Trace, k: int) -> Passage | None:
        """The passage of the index that is clearly most about the question; None where none is.

        It has most of the question's content words; outside of the prompt it also has 1.2 times the
        BM25 score of all that was shown.
        """
        places = [self.pool.position.get(passage.id, -1) for passage in trace.context(k)]
        if not self.pool.listed or not self.pool.passages or -1 in places:
            return None
        scores = self.pool.scores(question)
        (best,) = top_places(scores, 1)
        shown = max(places, key=scores.item, default=best)
        if scores[best] < CLEARLY_ABOVE * scores[shown]:
            if scores[best] > scores[shown]:
                return None
            best = shown
        passage = self.pool.passages[best]
        return passage if asked_share(question, passage.text) >= ASKED_SHARE else None

    def search(self, queries: Sequence[str], trace: Trace, k: int) -> tuple[RetrievalMiss, ...]:
        """The passages outside the prompt that a search for the queries finds first, classified.

        BM25 and, where `nearest` has the query, meaning, fused. The first query is the question,
        which the ranks are of.
        """
        pool, in_context = self.pool, {passage.id for passage in trace.context(k)}
        found: dict[int, None] = {}
        for query in queries if pool.passages else ():
            by_words = top_places(pool.scores(query), FUSION_DEPTH, above=0)
            rankings = [by_words, self.nearest.get(query, ())]
            found |= dict.fromkeys(fuse_rankings(rankings, _SEARCHED + len(in_context)))
        retrieved = {passage.id: rank for rank, passage in enumerate(trace.retrieved, start=1)}
        ranks = {passage.id: passage.rank for passage in trace.deeper} | retrieved
        depth, those = trace.depth, (pool.passages[place] for place in found)
        missed = tuple(
            RetrievalMiss(passage_id=p.id, true_rank=ranks.get(p.id), depth=depth, text=p.text)
            for p in those
            if p.id not in in_context
        )
        nearest = [pool.passages[place].id for place in self.nearest.get(queries[0], ())]
        dense = {id_: rank for rank, id_ in enumerate(nearest, start=1)}
        outcome = RetrievalOutcome("unlabelled", missed=missed)
        located = []
        for miss in find_missed_passages(trace, outcome, pool, k):
            id_ = miss.missed.passage_id
            words = _word_numbers(queries[0], id_, miss.missed.text, pool)
            located.append(_classify(miss, words | {"dense_rank": dense.get(id_)}))
        return tuple(located)


@dataclass(frozen=True)
class _ObservedCase:
    case: Case
    outcome: RetrievalOutcome
    missed: tuple[MissEvidence, ...]

    @property
    def needed(self) -> Iterator[tuple[Passage, bool]]:
        """The needed passages with a known text, and whether each reached the context."""
        for match in self.outcome.found:
            if not match.split and match.passages[0].text.strip():
                yield match.passages[0], True
        for miss in self.missed:
            if miss.passage is not None and not miss.halves:
                yield miss.passage, False


def word_questions(cases: Iterable[Case], verdicts: Iterable[Scored]) -> tuple[Case, ...]:
    """Return cases with the judge's standalone question where the gold set has none."""
    worded = {v.case_id: v.standalone_question for v in verdicts if v.standalone_question}
    return tuple(
        case.model_copy(update={"standalone_question": worded[case.id]})
        if case.id in worded and not case.standalone_question
        else case
        for case in cases
    )


async def measure_misses(
    cases: Sequence[Case],
    traces: Sequence[Trace],
    k: int,
    *,
    embedder: Embedder | None,
    corpus: Sequence[Passage] | None,
    seed: int = 0,
) -> MissMeasurements:
    """Measure every missed passage of a run, and decide its miss type.

    Parameters
    ----------
    cases : sequence of Case
    traces : sequence of Trace
        Matched by ``case_id``; a case without one is left out.
    k : int
        How many retrieved passages count as the context where the prompt was not seen.
    embedder : Embedder or None
        None: no cosines.
    corpus : sequence of Passage or None
        Every passage of the app's index. None: ranks are counted among the passages in the traces
        (every n-th of more than 10,000), and no passage is known not to be indexed.
    seed : int
        Random seed for the random pairs.
    """
    pool = PassagePool(traces, corpus)
    texts = {passage.id: passage.text for passage in pool.passages}
    trace_of = by_case(traces)
    observed = []
    for case in cases:
        if (trace := trace_of.get(case.id)) is not None:
            outcome = retrieval_outcome(case, trace, k)
            missed = find_missed_passages(trace, outcome, pool, k)
            observed.append(_ObservedCase(case, outcome, missed))
            for passage in (*trace.retrieved, *trace.deeper):
                if passage.text.strip():
                    texts.setdefault(passage.id, passage.text)
    misses = [(one.case, miss) for one in observed for miss in one.missed]
    located = [(case, miss.passage) for case, miss in misses if miss.passage]
    # The passages that ranks are counted among, always with the missed ones.
    step = 1 if pool.listed else -(-len(pool.passages) // _MAX_POOL) or 1
    among = pool
    if step > 1 or any(passage.id not in pool.position for _, passage in located):
        among = PassagePool((), [*pool.passages[::step], *(passage for _, passage in located)])
    semantic = EmbeddingSimilarity({}, {})
    if embedder is not None:
        pooled = among.position if located else ()
        semantic = await _embed_texts(embedder, observed, texts, pooled)
    pairs = _similarity_samples(observed, trace_of, texts, semantic, tuple(among.position), seed)
    measurer = _MissMeasurer(
        semantic,
        cosines=sorted(cosine for _, cosine in pairs.known),
        shares=sorted(share for _, share in (*pairs.shared_found, *pairs.shared_missed)),
        among=among,
        dense=semantic.ranks([(case.id, passage.id) for case, passage in located], among.position),
    )
    matches = (match for one in observed for match in one.outcome.found)
    cut = [match.split for match in matches if match.need.evidence is not None]
    read = (miss for _, miss in misses if miss.missed.evidence is not None)
    cut += [bool(miss.halves) for miss in read if miss.halves or miss.passage is not None]
    return MissMeasurements(
        missed={
            one.case.id: tuple(measurer.classify(one.case, miss) for miss in one.missed)
            for one in observed
        },
        outcomes={one.case.id: one.outcome for one in observed},
        pairs=pairs,
        embedding=embedder.name if embedder is not None and semantic.questions else None,
        corpus=len(corpus) if corpus is not None else None,
        whole=cut.count(False),
        split=cut.count(True),
        pool=pool,
        prompted_before=_prompted_before(cases, trace_of, k),
        searches=any(trace.calls for trace in light_items(traces)),
    )


def _prompted_before(
    cases: Sequence[Case], traces: Mapping[str, Trace], k: int
) -> dict[str, dict[str, int]]:
    turns = conversation_turns(cases)
    prompts: dict[str, dict[str, int]] = {}  # by conversation
    before: dict[str, dict[str, int]] = {}
    for case_id, (conversation, number) in sorted(turns.items(), key=lambda item: item[1]):
        earlier = prompts.setdefault(conversation, {})
        before[case_id] = dict(earlier)
        context = traces[case_id].context(k) if case_id in traces else ()
        earlier.update((passage.id, number) for passage in context)
    return before


@dataclass(frozen=True)
class _MissMeasurer:
    """The ranks and distributions of a whole run, looked up for one missed passage at a time."""

    semantic: EmbeddingSimilarity
    cosines: Sequence[float]
    shares: Sequence[float]
    among: PassagePool
    dense: Mapping[tuple[str, str], int]

    def classify(self, case: Case, miss: MissEvidence) -> RetrievalMiss:
        """The missed passage of a case, measured and classified."""
        missed, counted = miss.missed, not miss.halves
        above, cosine = missed.above, partial(self.semantic.cosine, case.id)
        if self.semantic.questions:
            above = tuple(r.model_copy(update={"cosine": cosine(r.passage_id)}) for r in above)
        numbers: dict[str, float | None] = {**missed.measured}
        own = None
        if miss.passage is not None:
            id_, text = miss.passage.id, miss.passage.text
            own = cosine(id_)
            words = _word_numbers(case.judged_question, id_, text, self.among)
            share = words["shared_stems"]
            numbers |= words | {
                "shared_stems_percentile": percentile_rank(share, self.shares, counted=counted),
                "dense_rank": self.dense.get((case.id, id_)),
                "cosine": own,
                "cosine_percentile": percentile_rank(own, self.cosines, counted=counted),
                "cosine_kth": None if miss.last is None else cosine(miss.last),
            }
        miss = replace(
            miss,
            missed=missed.model_copy(update={"above": above}),
            pairs=max(0, len(self.cosines) - (counted and own is not None)),
            standalone=None if case.judged_question == case.question else case.judged_question,
        )
        return _classify(miss, numbers)


def _word_numbers(
    question: str, passage_id: str, text: str | None, pool: PassagePool
) -> dict[str, float | None]:
    """What words say of a passage of the pool; one without a stem of the question ranks last."""
    scores, place = pool.scores(question), pool.position[passage_id]
    return {
        "shared_stems": _shared_stems(question, text),
        "bm25_rank": rank_at(place, scores) if scores[place] > 0 else len(scores),
        "pool": len(scores),
    }


def _classify(miss: MissEvidence, numbers: Mapping[str, float | None]) -> RetrievalMiss:
    measured = {name: number for name, number in numbers.items() if number is not None}
    update = {"measured": measured, "bm25_rank": measured.get("bm25_rank")}
    return classify_miss(replace(miss, missed=miss.missed.model_copy(update=update)))


def percentile_rank(
    number: float | None, ordered: Sequence[float], *, counted: bool
) -> float | None:
    """Share of the other numbers that are lower, ties counting half; None without others.

    `counted` says that the number itself is one of `ordered`.
    """
    other_count = len(ordered) - counted
    if number is None or other_count < 1:
        return None
    lower = bisect_left(ordered, number)
    equal = bisect_right(ordered, number) - lower - counted
    return (lower + equal / 2) / other_count


async def _embed_texts(
    embedder: Embedder,
    observed: Sequence[_ObservedCase],
    texts: Mapping[str, str],
    among: Iterable[str],
) -> EmbeddingSimilarity:
    """Embed questions and passages, both in one batch; nothing where no case has a needed passage with a text.

    Only what is measured is embedded: where nothing was missed, the needed passages alone.
    """
    included = [one for one in observed if any(m.passage for m in one.missed) or any(one.needed)]
    if not included:
        return EmbeddingSimilarity({}, {})
    ids = [passage.id for one in included for passage, _ in one.needed]
    ids += among
    for miss in (miss for one in included for miss in one.missed):
        ids += [miss.last] if miss.last is not None else []
        ids += [rival.passage_id for rival in miss.missed.above]
    read = {id_: texts[id_] for id_ in ids if id_ in texts}
    asked = {one.case.id: one.case.judged_question for one in included}
    questions = await embedder.queries(list(asked.values()))
    passages = await embedder.documents(list(read.values()))
    return EmbeddingSimilarity(
        dict(zip(asked, questions, strict=True)), dict(zip(read, passages, strict=True))
    )


def _similarity_samples(
    observed: Sequence[_ObservedCase],
    traces: Mapping[str, Trace],
    texts: Mapping[str, str],
    semantic: EmbeddingSimilarity,
    among: Sequence[str],
    seed: int,
) -> SimilaritySamples:
    import numpy as np

    generator = np.random.default_rng(seed)
    samples: dict[str, list[CaseScore]] = {each.name: [] for each in fields(SimilaritySamples)}
    for one in observed:
        case = one.case
        groups: list[tuple[str, str]] = []  # group, and the passage whose cosine it needs
        needed = {passage.id for passage, _ in one.needed}
        for passage, in_context in one.needed:
            share = _shared_stems(case.judged_question, texts.get(passage.id))
            if share is not None:
                samples["shared_found" if in_context else "shared_missed"].append((case.id, share))
            if not semantic.knows(case.id, passage.id):
                continue
            groups.append(("known", passage.id))
            drawn = generator.integers(0, len(among), _RANDOM_PASSAGES).tolist() if among else ()
            groups += [("random", among[i]) for i in drawn if among[i] not in needed]
        labelled = one.outcome.retrieval in {"hit", "partial", "miss"}
        if labelled and semantic.questions:
            retrieved = traces[case.id].retrieved
            relevant = relevant_ids(case, retrieved)
            groups += [
                ("relevant" if passage.id in relevant else "irrelevant", passage.id)
                for passage in retrieved
            ]
        for group, id_ in groups:
            if (cosine := semantic.cosine(case.id, id_)) is not None:
                samples[group].append((case.id, cosine))
    return SimilaritySamples(**{name: tuple(scores) for name, scores in samples.items()})


@dataclass(frozen=True)
class EmbeddingSimilarity:
    """Cosines of questions and passages, both embedded once.

    Parameters
    ----------
    questions, passages : mapping of str to array of float32
        Vectors of length 1 by id.
    """

    questions: Mapping[str, NDArray[np.float32]]
    passages: Mapping[str, NDArray[np.float32]]

    def knows(self, question: str, passage: str) -> bool:
        """Whether both were embedded."""
        return question in self.questions and passage in self.passages

    def cosine(self, question: str, passage: str) -> float | None:
        """Of the question and the passage with these ids; None where one was not embedded."""
        import numpy as np

        if not self.knows(question, passage):
            return None
        product = float(np.einsum("i,i", self.questions[question], self.passages[passage]))
        return min(max(product, -1.0), 1.0)

    def ranks(
        self, pairs: Iterable[tuple[str, str]], places: Mapping[str, int]
    ) -> dict[tuple[str, str], int]:
        """The rank from 1 of each pair's passage, all passages with a place ordered by cosine.

        Pairs are ids of a question and of a passage; those not embedded have no rank.
        """
        import numpy as np

        embedded = [pair for pair in pairs if self.knows(*pair)]
        if not embedded:
            return {}
        queries = np.stack([self.questions[question] for question, _ in embedded])
        vectors = np.stack([self.passages[id_] for id_ in places])
        return {
            pair: rank_at(places[pair[1]], row)
            for pair, row in zip(embedded, cosine_rows(queries, vectors), strict=True)
        }


def asked_share(question: str, text: str) -> float:
    """Share of the question's content words that a text has; "how much" is none."""
    return shared_stem_share(_HOW_MUCH.sub(" ", question), text)


def _shared_stems(question: str, text: str | None) -> float | None:
    """Share of the question's content stems that a passage has; None without a stem or a text."""
    if text is None or not content_stems(question):
        return None
    return shared_stem_share(question, text)
