"""Which cases are replayed, and what each arm of the replay gives the app."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from misslink.capture.injection import InjectedSearch
from misslink.failure_modes import FAILURE_MODES
from misslink.linking.replay.sequence import ARMS
from misslink.retrieval import LabelledNeed, match_needs, relevant_ids
from misslink.text.near_duplicates import is_near_duplicate
from misslink.text.normalization import sentence_spans, stems
from misslink.types import Case, Link, Passage, Reason, RetrievalMiss, Trace

GOOD = "passed"  # the group of good answers, which a passage may break
_DECOY_CANDIDATES = 10  # passages of similar length, of which the least related are taken
_QUERY, _MISSED, _WHOLE, _WITHOUT, _PERFECT = ARMS
_REPEATS = 3  # decoys for each missed passage; then they come again
_DISTRACTING = {"distracted", "conflicting_sources"}


@dataclass(frozen=True)
class ArmPrompt:
    """What the app is given, best first: ``first`` in front, then ``rest``.

    ``question`` is asked in place of the case's, so often, of the app's own retriever.
    """

    first: tuple[Passage, ...] = ()
    rest: tuple[Passage, ...] = ()
    question: tuple[str, int] | None = None


@dataclass(frozen=True)
class Arm:
    """A change that takes one fault away, and its placebos, which change as much and leave it.

    ``injected`` must reach the prompt; otherwise the answer says nothing.
    """

    name: str
    treated: ArmPrompt
    placebos: tuple[ArmPrompt, ...]
    injected: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ReplayPlan:
    """What is replayed of one case.

    Parameters
    ----------
    group : str
        Its failure mode or ``GOOD``.
    missed : sequence of Passage
        What the judge reads with every answer, as its prompt may lack it.
    arms : mapping of str to Arm
        In the order of the app's steps; for a good answer the missed passages alone.
    decoys : sequence of Passage
        Irrelevant passages, of which each repeat of an arm adds one.
    complete : bool
        Whether the own prompt or the last arm's holds all that is needed.
    owners : mapping of str to str
        Who can fix each cause that may be found.
    """

    case: Case
    trace: Trace
    group: str
    missed: tuple[Passage, ...] = ()
    arms: Mapping[str, Arm] = field(default_factory=dict)
    decoys: tuple[Passage, ...] = ()
    complete: bool = False
    owners: Mapping[str, str] = field(default_factory=dict)
    note: str | None = None

    def prompt(self, arm: str, repeat: int, *, placebo: bool) -> tuple[ArmPrompt, frozenset[str]]:
        """What an arm or its placebo gives the app, and what must reach its prompt.

        A repeat has another order and one more irrelevant passage. So an answer that was good by its
        prompt's luck is drawn again, also at temperature 0. Without an arm: the own passages.
        """
        change = self.arms.get(arm, Arm("", ArmPrompt(), (ArmPrompt(rest=self.trace.retrieved),)))
        prompts = change.placebos if placebo else (change.treated,)
        prompt, injected = prompts[repeat % len(prompts)], change.injected
        if repeat and prompt.question is not None:
            text, times = prompt.question
            prompt = ArmPrompt(question=(text, times + 2 * repeat))
        elif repeat:
            turn = repeat % max(len(prompt.rest), 1)
            rest = (*prompt.rest[turn:], *prompt.rest[:turn])
            used = {passage.id for passage in (*prompt.first, *rest)}
            unused = [passage for passage in self.decoys if passage.id not in used]
            more = [unused[repeat % len(unused)]] if unused else []
            prompt = ArmPrompt(prompt.first, (*rest, *more))
        return prompt, frozenset() if placebo else injected


def replay_group(link: Link, case: Case) -> str | None:
    """Return the group that a case is drawn with; None: it has no verdict, or needs no passage."""
    if case.expects_answer is False:
        return None
    return link.failure if link.failed or (link.missed and link.failure == GOOD) else None


def index_passages(traces: Iterable[Trace]) -> dict[str, Passage]:
    """Every passage with a text that any case of the run has seen, by id, the shortest first.

    Of several with one id the first seen stays.
    """
    by_id: dict[str, Passage] = {}
    for trace in traces:
        for passage in (*trace.retrieved, *trace.deeper):
            if passage.text:
                by_id.setdefault(passage.id, passage)
    return dict(sorted(by_id.items(), key=lambda item: (len(item[1].text), item[0])))


def plan_case(
    case: Case, trace: Trace, link: Link, k: int, known_passages: Mapping[str, Passage]
) -> ReplayPlan | str:
    """Return the arms of a case, or the reason why it cannot be replayed.

    standalone_query
        The standalone question, without history, of the app's own retriever. Placebo: the question
        itself, twice.
    missed_passage
        The missed passages first, in the place of as many irrelevant ones at the end of the prompt.
        At most as many, by grade, as the prompt has places without a relevant passage. Placebo:
        irrelevant passages of similar length.
    whole_passage
        What the prompt left out of a passage that it cut, in pieces that it does not cut. Placebo: as
        for missed passages.
    without_distractor
        Without the irrelevant passages on which the answer rests. Placebo: without others, or in
        another order.
    perfect_context
        Relevant passages only, the missed ones among them. Placebo: the own ones in another order.

    Parameters
    ----------
    case, trace, link : Case, Trace, Link
        Of the same case.
    k : int
        How many passages count as context where the prompt was not seen.
    known_passages : mapping of str to Passage
        All passages of the run with their texts, the shortest first: the placebos are drawn from them.
    """
    if trace.unmeasured is not None:
        return str(Reason(code="retrieved_unknown", why=trace.unmeasured))
    if trace.answer is None:
        return str(Reason(code="not_answered", why=trace.error))
    retrieved = tuple(
        passage if passage.text else known_passages.get(passage.id, passage)
        for passage in trace.retrieved
    )
    blank = next((passage.id for passage in retrieved if not passage.text), None)
    if blank is not None:
        return str(Reason(code="blank_passage", passage=blank))
    trace = trace.model_copy(update={"retrieved": retrieved})
    return _Planner(case, trace, link, k, known_passages).plan()


class _Planner:
    """Makes the arms of one case."""

    def __init__(
        self, case: Case, trace: Trace, link: Link, k: int, known: Mapping[str, Passage]
    ) -> None:
        self.case, self.trace, self.link, self.known = case, trace, link, known
        whole = {passage.id: passage for passage in trace.retrieved}
        self.context = [whole[passage.id] for passage in trace.context(k)]
        self.relevant = relevant_ids(case, self.context)
        self.cut = {m.passage_id for m in link.missed if m.passage_id in trace.shown}

    def plan(self) -> ReplayPlan | str:
        """The plan, or why there is none."""
        case, link = self.case, self.link
        places = max(1, len(self.context) - len(self.relevant))
        misses = sorted(link.missed, key=lambda miss: -miss.grade)
        texts = {miss.passage_id: _missed_texts(miss, self.trace, self.known) for miss in misses}
        lost = [passage for name in texts if name not in self.cut for passage in texts[name]]
        missed = list({passage.id: passage for passage in lost}.values())
        injected = missed[:places]
        pieces = [piece for name in self.cut for piece in self._pieces(name)]
        decoys = self._decoys([*injected, *pieces] or self.context[:1])
        arms = {}
        asked = case.standalone_question
        if asked and asked != case.question and link.failure != GOOD:
            twice = ArmPrompt(question=(case.question, 2))
            arms[_QUERY] = Arm(_QUERY, ArmPrompt(question=(asked, 1)), (twice,))
        leads = [p.id for p in self.trace.retrieved[: len(injected)]] == [p.id for p in injected]
        for name, first in ((_MISSED, [] if leads else injected), (_WHOLE, pieces)):
            if first and len(decoys) >= len(first):
                arms[name] = self._injection(name, first, decoys)
        if link.failure == GOOD:
            arms = {name: arm for name, arm in arms.items() if name == _MISSED}
        elif link.failure != "gold_suspect":  # nothing in the prompt mends a reference
            arms |= self._removals(missed, pieces)
        complete = link.failure != "gold_suspect" and (
            _PERFECT in arms or (not link.missed and self._is_complete)
        )
        if not arms and not complete:
            return str(self._why_not(injected, leads=leads, decoys=decoys))
        note = None
        if _MISSED in arms and len(injected) < len(misses) - len(self.cut):
            note = str(Reason(code="injected", n=len(injected), of=len(link.missed)))
        evidence = tuple({p.id: p for name in texts for p in texts[name]}.values())
        return ReplayPlan(
            case, self.trace, link.failure or "", evidence, arms, decoys, complete,
            self._owners(), note,
        )  # fmt: skip

    def _injection(self, name: str, first: Sequence[Passage], decoys: Sequence[Passage]) -> Arm:
        """An arm that puts passages first, in the place of as many irrelevant ones."""
        new = {passage.id for passage in first} | self.cut
        in_prompt = [p.id for p in self.context if p.id not in new and p.id not in self.relevant]
        dropped = {*in_prompt[-len(first) :], *new}
        rest = tuple(p for p in self.trace.retrieved if p.id not in dropped)
        if name == _WHOLE:  # the cut passage stays, beside what it lacks
            rest = tuple(p for p in self.trace.retrieved if p.id not in dropped - self.cut)
        sets = [tuple(decoys[n : n + len(first)]) for n in range(0, len(decoys), len(first))]
        placebos = tuple(ArmPrompt(one, rest) for one in sets if len(one) == len(first))
        return Arm(name, ArmPrompt(tuple(first), rest), placebos, frozenset(p.id for p in first))

    def _removals(self, missed: Sequence[Passage], pieces: Sequence[Passage]) -> dict[str, Arm]:
        """The arms that take passages away."""
        retrieved, arms = self.trace.retrieved, {}
        irrelevant = [p.id for p in self.context if p.id not in self.relevant]
        named = {item.passage_id for item in self.link.evidence if item.failure in _DISTRACTING}
        distracting = [name for name in irrelevant if name in named]
        swaps = dict(zip((p.id for p in self.context), reversed(self.context), strict=True))
        other_order = tuple(swaps.get(passage.id, passage) for passage in retrieved)
        if distracting:
            spare = [name for name in irrelevant if name not in named][-len(distracting) :]
            treated = ArmPrompt(rest=tuple(p for p in retrieved if p.id not in distracting))
            placebo = ArmPrompt(rest=tuple(p for p in other_order if p.id not in spare))
            arms[_WITHOUT] = Arm(_WITHOUT, treated, (placebo,))
        found = [passage for passage in self.context if passage.id in self.relevant]
        needed = (*missed, *pieces, *found)
        every = {miss.passage_id for miss in self.link.missed} - self.cut
        known = all(_missed_texts(m, self.trace, self.known) for m in self.link.missed)
        changes = bool(irrelevant or every or pieces)
        if self.link.retrieval in {"hit", "partial", "miss"} and needed and known and changes:
            lost = frozenset(passage.id for passage in (*missed, *pieces))
            arms[_PERFECT] = Arm(_PERFECT, ArmPrompt(needed), (ArmPrompt(rest=other_order),), lost)
        return arms

    def _pieces(self, passage_id: str) -> list[Passage]:
        """What the prompt left out of a passage, in pieces no longer than what it showed."""
        full = next(p for p in self.trace.retrieved if p.id == passage_id)
        shown = self.trace.shown[passage_id]
        lost = [full.text[a:b] for a, b in sentence_spans(full.text) if full.text[a:b] not in shown]
        texts: list[str] = []
        for sentence in lost:
            if texts and len(texts[-1]) + len(sentence) < len(shown):
                texts[-1] += f" {sentence}"
            else:
                texts.append(sentence)
        return [
            full.model_copy(update={"id": f"{passage_id}-part-{place}", "text": text})
            for place, text in enumerate(texts, start=2)
        ]

    @property
    def _is_complete(self) -> bool:
        """Whether the prompt held all that was needed, and nothing else is known to be irrelevant."""
        return self.link.retrieval == "hit" or self.link.sufficient == "yes"

    def _owners(self) -> dict[str, str]:
        mode = FAILURE_MODES.get(self.link.failure or "")
        of_status = {"not_indexed": "index", "dropped_from_prompt": "prompt"}
        lost = [of_status.get(m.status, "retriever") for m in self.link.missed] or ["retriever"]
        stale = self.link.failure == "conflicting_sources"
        return {
            "query": "prompt",
            "missed_passage": mode.owner if mode is not None and mode.is_miss else lost[0],
            "cut_passage": "prompt",
            "distractor": FAILURE_MODES["conflicting_sources" if stale else "distracted"].owner,
            "generator": "generator",
            "judge": "judge",
        }

    def _why_not(
        self, injected: Sequence[Passage], *, leads: bool, decoys: Sequence[Passage]
    ) -> Reason:
        missed = self.link.missed
        if missed and not injected:
            return Reason(code="missed_without_text", passage=missed[0].passage_id)
        if leads and injected:
            return Reason(code="missed_already_first")
        if injected and len(decoys) < len(injected):
            return Reason(code="no_placebo_passage")
        if self.link.failure == "gold_suspect":
            return Reason(code="reference_suspected")
        labelled = self.case.relevant or self.case.relevant_any or self.case.evidence
        return Reason(code="nothing_to_try" if labelled else "nothing_labelled_to_inject")

    def _decoys(self, like: Sequence[Passage]) -> tuple[Passage, ...]:
        """Irrelevant passages, as many for each of `like` as it may be repeated.

        Of those nearest in length the least related.
        """
        texts = [passage.text for passage in like]
        related = set(stems(" ".join((self.case.question, *self.case.references, *texts))))
        used = {passage.id for passage in (*self.trace.retrieved, *self.trace.deeper)}
        by_length = list(self.known.values())
        decoys: list[Passage] = []
        for passage in [*like] * _REPEATS:
            length = len(passage.text)
            place = bisect_left(by_length, length, key=lambda known: len(known.text))
            nearest = heapq.merge(
                reversed(by_length[:place]),
                by_length[place:],
                key=lambda known: abs(len(known.text) - length),
            )
            candidates = islice(
                (
                    other
                    for other in nearest
                    if other.id not in used
                    and not relevant_ids(self.case, [other])
                    and not any(is_near_duplicate(other.text, text) for text in texts)
                ),
                _DECOY_CANDIDATES,
            )
            least = min(
                candidates, key=lambda other: len(related & set(stems(other.text))), default=None
            )
            if least is None:
                break
            decoys.append(least)
            used.add(least.id)
        return tuple(decoys)


def _missed_texts(
    miss: RetrievalMiss, trace: Trace, known_passages: Mapping[str, Passage]
) -> tuple[Passage, ...]:
    """What carries a missed passage's text: both halves where a chunk boundary cuts evidence."""
    if miss.evidence is not None:
        seen = sorted((*trace.retrieved, *trace.deeper), key=lambda passage: passage.rank)
        hit = next(
            iter(match_needs([LabelledNeed(miss.passage_id, miss.grade, miss.evidence)], seen)),
            None,
        )
        if hit is not None:
            return hit.passages
        return (Passage(id=miss.passage_id, text=miss.evidence, rank=1),)
    if miss.passage_id in known_passages:
        return (known_passages[miss.passage_id],)
    return (Passage(id=miss.passage_id, text=miss.text, rank=1),) if miss.text else ()


def rank_prompt(
    prompt: ArmPrompt, trace: Trace
) -> tuple[tuple[Passage, ...], tuple[InjectedSearch, ...]]:
    """What the app's search finds, and each search of an app that makes several.

    What is put first comes first in the first search. Scores keep their places, because apps filter
    by score.
    """
    ranked = _assign_ranks((*prompt.first, *prompt.rest), [p.score for p in trace.retrieved])
    calls = [call for call in trace.calls if not call.nested]
    if len(calls) < 2:
        return ranked, ()
    order = {passage.id: place for place, passage in enumerate(prompt.rest)}
    own_scores = {passage.id: passage.score for passage in trace.retrieved}
    as_found = [order[name] for name in own_scores if name in order]
    known = {name for call in calls for name in call.passages}
    more = [passage for passage in prompt.rest if passage.id not in known]
    searches: list[InjectedSearch] = []
    for call in calls:
        found = [name for name in call.passages if name in order]
        if as_found != sorted(as_found):  # an arm in another order
            found.sort(key=order.__getitem__)
        given = [prompt.rest[order[name]] for name in found]
        every = given if searches else [*prompt.first, *given, *more]
        scores = [own_scores[name] for name in call.passages if name in own_scores]
        searches.append(InjectedSearch(call.query, call.retriever, _assign_ranks(every, scores)))
    return ranked, tuple(searches)


def _assign_ranks(
    passages: Sequence[Passage], scores: Sequence[float | None]
) -> tuple[Passage, ...]:
    return tuple(
        passage.model_copy(
            update={"rank": rank, "score": scores[rank - 1] if rank <= len(scores) else None}
        )
        for rank, passage in enumerate(passages, start=1)
    )
