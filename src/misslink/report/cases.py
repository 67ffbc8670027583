"""One case as people read it: its answer by claims, its passages by quotes, and what was missed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from misslink.report.claims import ClaimRow, PassageRow, Spots
from misslink.report.glossary import CAUSES, FAILURES
from misslink.report.labelled import Labelled, labelled
from misslink.report.places import CORRECT
from misslink.report.replayed import case_replays
from misslink.report.spans import Piece, Span, pieces
from misslink.report.wording import decimal, percent
from misslink.report.worst import worst, worst_first
from misslink.types import Case, Claim, Link, Repeats, Run, Trace, Verdict

__all__ = ["CaseEntry", "case_entries"]


@dataclass(frozen=True)
class VerdictRow:
    """What a judge said of one metric; ``said`` are its samples, and claims of its own.

    ``label`` is 'good', 'bad' or "". ``people`` is what people called the case, "" where nobody
    did, and ``stands`` how the judge's call stands to that; see `misslink.report.labelled`.
    """

    metric: str
    value: str
    label: str
    probability: str
    reason: str
    scored: bool
    said: tuple[str, ...]
    people: str
    stands: str


@dataclass(frozen=True)
class CauseEvidence:
    """A cause of one case with what put the case there."""

    label: str
    words: str
    primary: bool
    failure: bool


@dataclass(frozen=True)
class CaseEntry:
    """One case of the run, by its place in the gold set (``number``, from 1).

    ``evidence`` holds all its causes, the primary one first; where the run gives none a cause
    (older runs), ``contributing`` names the others. ``cause``, ``retrieval`` and ``answered`` are
    keys of the glossary, "" where no link speaks of the case. ``values`` are those of its scored
    verdicts by metric, ``bad`` the metrics with a bad label; ``people`` how the judge's calls stand
    to those of people.
    """

    number: int
    id: str
    question: str
    cause: str
    retrieval: str
    answered: str
    correct: str
    subtypes: tuple[str, ...]
    category: str
    tier: str
    tags: tuple[str, ...]
    values: Mapping[str, float]
    bad: tuple[str, ...]
    people: tuple[str, ...]
    latency_s: float | None
    contributing: tuple[str, ...]
    reason: str
    evidence: tuple[CauseEvidence, ...]
    basis: str
    replays: tuple[str, ...]
    answer: str
    pieces: tuple[Piece, ...]
    answer_note: str
    claims: tuple[ClaimRow, ...]
    retrieved: tuple[PassageRow, ...]
    missed: tuple[PassageRow, ...]
    references: tuple[str, ...]
    verdicts: tuple[VerdictRow, ...]
    judges: tuple[str, ...]
    notes: tuple[str, ...]
    error: str
    raws: tuple[tuple[str, str], ...]


def case_entries(run: Run, k: int, most: int | None = None) -> tuple[CaseEntry, ...]:
    """The cases of `run` at its cutoff `k`, in the order of `misslink.report.worst`.

    Parameters
    ----------
    run : Run
    k : int
    most : int or None
        Only so many of them, 0 or more, the worst; None: all. Nothing is built of the others.
    """
    numbers = worst_first(run) if most is None else worst(run, most)
    wanted = {run.cases[number - 1].id for number in numbers}
    traces = {trace.case_id: trace for trace in run.traces if trace.case_id in wanted}
    links = {link.case_id: link for link in run.links if link.case_id in wanted}
    verdicts: dict[str, list[Verdict]] = {}
    for verdict in run.verdicts:
        if verdict.case_id in wanted:
            verdicts.setdefault(verdict.case_id, []).append(verdict)
    replays, labels = case_replays(run), labelled(run)
    found = []
    for number in numbers:
        case = run.cases[number - 1]
        link, said = links.get(case.id), verdicts.get(case.id, [])
        again, people = replays.get(case.id, ()), labels.get(case.id, {})
        found.append(_entry(number, case, traces.get(case.id), link, said, again, people, k))
    return tuple(found)


def _entry(
    number: int,
    case: Case,
    trace: Trace | None,
    link: Link | None,
    verdicts: Sequence[Verdict],
    replays: tuple[str, ...],
    people: Mapping[str, Labelled],
    k: int,
) -> CaseEntry:
    from misslink.retrieval import relevant_ids  # brings numpy

    faithfulness = next((one for one in verdicts if one.metric == "faithfulness"), None)
    claims = faithfulness.claims if faithfulness else ()
    retrieved = trace.retrieved if trace else ()
    spots = Spots(trace, link)
    rows = tuple(spots.claim(index, claim) for index, claim in enumerate(claims))
    known = relevant_ids(case, retrieved) if retrieved else set()
    note = _retrieval_note(case, trace, k) if trace else None
    return CaseEntry(
        number=number,
        id=case.id,
        question=case.question,
        cause=link.cause if link else "",
        retrieval=link.retrieval if link else "",
        answered=link.answer if link else "",
        correct=CORRECT[link.correct if link else None],
        subtypes=tuple(dict.fromkeys(one.subtype for one in link.missed if one.subtype))
        if link
        else (),
        category=case.category or "",
        tier=case.tier or "",
        tags=tuple(f"{name}:{tag}" for name, tag in case.tags.items()),
        values={one.metric: one.value for one in verdicts if one.value is not None},
        bad=tuple(dict.fromkeys(one.metric for one in verdicts if one.label is False)),
        people=tuple(dict.fromkeys(one.stands for one in people.values() if one.stands)),
        latency_s=trace.latency_s if trace else None,
        contributing=(
            tuple(CAUSES[cause].label for cause in link.contributing if cause not in link.reasons)
            if link
            else ()
        ),
        reason=link.reason if link else "There is no link for this case: no judge was asked.",
        evidence=_evidence(link),
        basis="confirmed by replay" if link and link.basis == "replayed" else "",
        replays=replays,
        answer=(trace.answer or "") if trace else "",
        pieces=_marked(trace, claims, rows),
        answer_note=_answer_note(trace),
        claims=rows,
        retrieved=tuple(spots.retrieved(passage, known) for passage in retrieved),
        missed=spots.missed(),
        references=case.references,
        verdicts=tuple(_verdict(one, claims, people.get(one.metric)) for one in verdicts),
        judges=tuple(dict.fromkeys(verdict.judge for verdict in verdicts)),
        notes=(*(trace.notes if trace else ()), *([note] if note else [])),
        error=(trace.error or "") if trace else "",
        raws=_raws(verdicts),
    )


def _retrieval_note(case: Case, trace: Trace, k: int) -> str | None:
    """What the outcome of retrieval notes; without evidence there is nothing to look for."""
    from misslink.retrieval import outcome, why_unmeasured

    return outcome(case, trace, k).note if case.evidence else why_unmeasured(trace)


def _evidence(link: Link | None) -> tuple[CauseEvidence, ...]:
    """Every cause with its evidence, the primary one first, whatever order the run has."""
    if link is None:
        return ()
    return tuple(
        CauseEvidence(CAUSES[cause].label, words, cause == link.cause, cause in FAILURES)
        for cause, words in sorted(link.reasons.items(), key=lambda item: item[0] != link.cause)
    )


def _marked(
    trace: Trace | None, claims: Sequence[Claim], rows: Sequence[ClaimRow]
) -> tuple[Piece, ...]:
    text = (trace.answer or "") if trace else ""
    spans = [
        Span(claim.start, claim.end, claim.support, row.number)
        for claim, row in zip(claims, rows, strict=True)
        if row.located and claim.start is not None and claim.end is not None
    ]
    return pieces(text, spans)


def _answer_note(trace: Trace | None) -> str:
    if trace is None:
        return "There is no trace of this case."
    if trace.answer is None:
        return "The app raised an error." if trace.error else "The app gave no answer."
    return "" if trace.answer.strip() else "The answer is empty."


def _verdict(
    verdict: Verdict, shown_already: Sequence[Claim], people: Labelled | None
) -> VerdictRow:
    value = verdict.status if verdict.value is None else percent(verdict.value)
    parts = [f"{name} {percent(part)}" for name, part in verdict.parts.items() if part is not None]
    own = () if tuple(shown_already) == verdict.claims else verdict.claims
    return VerdictRow(
        metric=verdict.metric,
        value=value,
        label={True: "good", False: "bad", None: ""}[verdict.label],
        probability="" if verdict.probability is None else decimal(verdict.probability),
        reason=", ".join([*parts, *([verdict.reason] if verdict.reason else [])]),
        scored=verdict.status == "scored",
        said=(
            *_sampled(verdict.repeats),
            *(f"{claim.support}: {claim.text}" for claim in own),
            *(f"people, {line}" for line in (people.said if people else ())),
        ),
        people=(people.word or people.stands) if people else "",
        stands=people.stands if people else "",
    )


def _sampled(repeats: Repeats | None) -> Iterator[str]:
    """What each of several samples said, and how far they lie apart."""
    if repeats is None:
        return
    said = ", ".join("none" if value is None else percent(value) for value in repeats.values)
    spread = "" if repeats.spread is None else f"; sd {decimal(repeats.spread)}"
    flipped = "" if not repeats.flipped else f"; {percent(repeats.flipped)} against the label"
    yield f"{len(repeats.values)} samples: {said}{spread}{flipped}"


def _raws(verdicts: Sequence[Verdict]) -> tuple[tuple[str, str], ...]:
    """Raw replies, each once: one reply often serves several metrics."""
    names: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.raw:
            names.setdefault(verdict.raw, []).append(verdict.metric)
    return tuple((", ".join(metrics), raw) for raw, metrics in names.items())
