"""What is done to the passages of a case, so as to see whether its answer then turns good."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from misslink.capture.handing import Search
from misslink.retrieval import Need, find, relevant_ids
from misslink.types import Case, Link, Missed, Passage, RetrieverCall, Trace

__all__ = ["Intervention", "Plan", "known_passages", "plan"]

_SEVERAL = 2


@dataclass(frozen=True)
class Intervention:
    """Passages that an app is handed.

    Parameters
    ----------
    name : {'unchanged', 'first', 'last', 'alone', 'without_noise'}
    passages : sequence of Passage
        Best first.
    wanted : set of str
        Ids that have to reach the prompt; otherwise the intervention did not take place.
    searches : sequence of Search
        What each search of an app that makes several is handed instead.
    """

    name: str
    passages: tuple[Passage, ...]
    wanted: frozenset[str] = frozenset()
    searches: tuple[Search, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What is replayed of one case: first the run's own passages, then each intervention."""

    case: Case
    trace: Trace
    link: Link
    unchanged: Intervention
    interventions: tuple[Intervention, ...]
    note: str | None = None


def known_passages(traces: Iterable[Trace]) -> dict[str, Passage]:
    """Every passage with a text that any case of the run has seen, by id; the first seen stays."""
    known: dict[str, Passage] = {}
    for trace in traces:
        for passage in (*trace.retrieved, *trace.deeper):
            if passage.text:
                known.setdefault(passage.id, passage)
    return known


def plan(
    case: Case,
    trace: Trace,
    link: Link,
    k: int,
    known: Mapping[str, Passage],
    cause: str | None = None,
) -> Plan | str:
    """Return what to replay of a case, or the reason why it cannot be.

    A case whose cause is ``ignored_context`` gets the relevant passages of its context moved to
    the front, then those alone; one that was ``distracted`` its irrelevant passages removed; any
    other its missed passages, first and last in the list. The list keeps its length, its worst
    passages dropping out. Last means the last place whose passage reached the prompt.

    Where the app made several searches for the question each is handed what it found itself; what
    is moved or injected first stands first in the first of them, and last in the last.

    Parameters
    ----------
    case, trace, link : Case, Trace, Link
        Of the same case.
    k : int
        How many passages count as context where the prompt was not seen.
    known : mapping of str to Passage
        Where else the text of a passage may be found.
    cause : str or None
        One that contributes to the case, in place of its primary one.
    """
    if trace.unmeasured is not None:
        return f"what was retrieved is not known: {trace.unmeasured}"
    if trace.answer is None:
        return f"the app gave no answer: {trace.error or 'its trace holds none'}"
    retrieved = [one if one.text else known.get(one.id, one) for one in trace.retrieved]
    blank = next((one.id for one in retrieved if not one.text), None)
    if blank is not None:
        return f"the retrieved passage '{blank}' has no text to hand out"
    trace = trace.model_copy(update={"retrieved": tuple(retrieved)})
    make = {"ignored_context": _gold_forward, "distracted": _without_noise}.get(cause or link.cause)
    made = make(case, trace, k) if make else _missed_added(trace, link.missed, k, known)
    if isinstance(made, str):
        return made
    interventions, note = made
    own = Intervention("unchanged", _placed(retrieved, trace))
    order = [passage.id for passage in own.passages]
    changes = tuple(one for one in interventions if [p.id for p in one.passages] != order)
    if not changes or (make is None and changes[0].name != "first"):
        return "the app already had its passages in this order"
    unchanged, *handed = (replace(one, searches=_searches(one, trace)) for one in (own, *changes))
    return Plan(case, trace, link, unchanged, tuple(handed), note)


def _missed_added(
    trace: Trace, missed: Sequence[Missed], k: int, known: Mapping[str, Passage]
) -> tuple[list[Intervention], str | None] | str:
    by_grade = sorted(missed, key=lambda lost: -lost.grade)
    found = [(lost.passage_id, _passages_of(lost, trace, known)) for lost in by_grade]
    without = [name for name, passages in found if not passages]
    gold = list({one.id: one for _, passages in found for one in passages}.values())
    if not gold:
        named = f"the missed passage '{without[0]}'" if without else "no missed passage"
        return f"{named} has no text: it was never retrieved, and the gold set gives no evidence"
    wanted = frozenset(one.id for one in gold)
    others = [passage for passage in trace.retrieved if passage.id not in wanted]
    length = max(len(trace.retrieved), len(gold))
    kept = others[: length - len(gold)]
    places = [at for at, one in enumerate(trace.retrieved, 1) if one in trace.context(k)]
    before = max(max(places, default=length) - len(gold), 0)
    note = None
    if without:
        note = f"{len(without)} of {len(missed)} missed passages have no text and were not injected"
    return [
        Intervention("first", _placed([*gold, *kept], trace), wanted),
        Intervention("last", _placed([*kept[:before], *gold, *kept[before:]], trace), wanted),
    ], note


def _passages_of(lost: Missed, trace: Trace, known: Mapping[str, Passage]) -> tuple[Passage, ...]:
    """What carries a missed passage's text: both halves where a chunk boundary cuts evidence."""
    if lost.evidence is not None:
        seen = sorted((*trace.retrieved, *trace.deeper), key=lambda passage: passage.rank)
        hit = next(iter(find([Need(lost.passage_id, lost.grade, lost.evidence)], seen)), None)
        if hit is not None:
            return hit.passages
        return (Passage(id=lost.passage_id, text=lost.evidence, rank=1),)
    if lost.passage_id in known:
        return (known[lost.passage_id],)
    return (Passage(id=lost.passage_id, text=lost.text, rank=1),) if lost.text else ()


def _gold_forward(case: Case, trace: Trace, k: int) -> tuple[list[Intervention], str | None] | str:
    wanted = frozenset(relevant_ids(case, trace.context(k)))
    gold = [passage for passage in trace.retrieved if passage.id in wanted]
    if not gold:
        return "no relevant passage was in the context"
    others = [passage for passage in trace.retrieved if passage.id not in wanted]
    return [
        Intervention("first", _placed([*gold, *others], trace), wanted),
        Intervention("alone", _placed(gold, trace), wanted),
    ], None


def _without_noise(case: Case, trace: Trace, k: int) -> tuple[list[Intervention], str | None] | str:
    del k
    wanted = relevant_ids(case, trace.retrieved)
    gold = [passage for passage in trace.retrieved if passage.id in wanted]
    if not gold:
        return "without its irrelevant passages nothing is left to answer from"
    return [Intervention("without_noise", _placed(gold, trace))], None


def _searches(made: Intervention, trace: Trace) -> tuple[Search, ...]:
    """What each search is handed; empty where the app made one alone, or none that was seen."""
    calls = [call for call in trace.calls if not call.nested]
    if len(calls) < _SEVERAL:
        return ()
    moved = made.wanted if made.name in {"first", "last"} else frozenset()
    target = {"first": calls[0], "last": calls[-1]}.get(made.name)
    return tuple(_search(call, made, moved, trace, is_target=call is target) for call in calls)


def _search(
    call: RetrieverCall, made: Intervention, moved: frozenset[str], trace: Trace, *, is_target: bool
) -> Search:
    """What one search found of what is handed out, with what is moved if that goes there."""
    handed = {passage.id: passage for passage in made.passages}
    found = [handed[name] for name in call.passages if name in handed and name not in moved]
    if is_target:
        gold = [passage for passage in made.passages if passage.id in moved]
        before = {passage.id for passage in made.passages[: made.passages.index(gold[0])]}
        at = sum(passage.id in before for passage in found)
        found[at:at] = gold
    own = {passage.id: passage for passage in trace.retrieved}
    scores = [own[name].score for name in call.passages if name in own]
    return Search(call.query, call.retriever, _ranked(found, scores))


def _placed(passages: Sequence[Passage], trace: Trace) -> tuple[Passage, ...]:
    return _ranked(passages, [passage.score for passage in trace.retrieved])


def _ranked(passages: Sequence[Passage], scores: Sequence[float | None]) -> tuple[Passage, ...]:
    """Rank the passages anew; scores stay with their places, as apps cut off by them."""
    return tuple(
        passage.model_copy(
            update={"rank": at, "score": scores[at - 1] if at <= len(scores) else None}
        )
        for at, passage in enumerate(passages, start=1)
    )
