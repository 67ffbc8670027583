"""One case as people read it: its answer by claims, its passages by quotes, and what was missed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from misslink.report.claims import ClaimRow, PassageRow, Spots
from misslink.report.glossary import ANSWERS, CAUSES, FAILURES, RETRIEVALS
from misslink.report.replayed import case_replays
from misslink.report.spans import Piece, Span, pieces
from misslink.report.wording import decimal, percent
from misslink.types import Case, Claim, Link, Repeats, Run, Trace, Verdict

__all__ = ["CaseEntry", "case_entries"]


@dataclass(frozen=True)
class VerdictRow:
    """What a judge said of one metric; ``said`` are its samples, and claims of its own.

    ``label`` is 'good', 'bad' or "".
    """

    metric: str
    value: str
    label: str
    probability: str
    reason: str
    scored: bool
    said: tuple[str, ...]


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
    (older runs), ``contributing`` names the others.
    """

    number: int
    anchor: str
    id: str
    question: str
    cause: str
    cause_label: str
    contributing: tuple[str, ...]
    reason: str
    evidence: tuple[CauseEvidence, ...]
    basis: str
    replays: tuple[str, ...]
    failure: bool
    outcome: str
    category: str
    tags: tuple[str, ...]
    answer: tuple[Piece, ...]
    answer_note: str
    claims: tuple[ClaimRow, ...]
    retrieved: tuple[PassageRow, ...]
    missed: tuple[PassageRow, ...]
    references: tuple[str, ...]
    verdicts: tuple[VerdictRow, ...]
    judges: tuple[str, ...]
    notes: tuple[str, ...]
    error: str
    latency: str
    raws: tuple[tuple[str, str], ...]


def case_entries(run: Run, k: int) -> tuple[CaseEntry, ...]:
    """Every case of `run`, the worst first, at its cutoff `k`.

    Worst is by cause, in the order of types.Cause; then by the lower faithfulness; then by place
    in the gold set. A case that no link speaks of comes after all that one does.
    """
    traces = {trace.case_id: trace for trace in run.traces}
    links = {link.case_id: link for link in run.links}
    verdicts: dict[str, list[Verdict]] = {}
    for verdict in run.verdicts:
        verdicts.setdefault(verdict.case_id, []).append(verdict)
    replays = case_replays(run)
    severity = {cause: place for place, cause in enumerate(CAUSES)}
    keyed = []
    for number, case in enumerate(run.cases, 1):
        link, said = links.get(case.id), verdicts.get(case.id, [])
        again = replays.get(case.id, ())
        entry = _entry(number, case, traces.get(case.id), link, said, again, k)
        faithfulness = _of(said, "faithfulness")
        value = faithfulness.value if faithfulness is not None else None
        keyed.append(
            (severity[link.cause] if link else len(severity), 2 if value is None else value, entry)
        )
    keyed.sort(key=lambda item: item[:2])  # stable: ties stay in the gold set's order
    return tuple(entry for *_, entry in keyed)


def _entry(
    number: int,
    case: Case,
    trace: Trace | None,
    link: Link | None,
    verdicts: Sequence[Verdict],
    replays: tuple[str, ...],
    k: int,
) -> CaseEntry:
    from misslink.retrieval import outcome, relevant_ids  # brings numpy

    anchor = f"case-{number}"
    faithfulness = _of(verdicts, "faithfulness")
    claims = faithfulness.claims if faithfulness else ()
    retrieved = trace.retrieved if trace else ()
    spots = Spots(anchor, trace, link)
    rows = tuple(spots.claim(index, claim) for index, claim in enumerate(claims))
    known = relevant_ids(case, retrieved) if retrieved else set()
    note = outcome(case, trace, k).note if trace else None
    return CaseEntry(
        number=number,
        anchor=anchor,
        id=case.id,
        question=case.question,
        cause=link.cause if link else "",
        cause_label=CAUSES[link.cause].label if link else "Not linked",
        contributing=(
            tuple(CAUSES[cause].label for cause in link.contributing if cause not in link.reasons)
            if link
            else ()
        ),
        reason=link.reason if link else "There is no link for this case: no judge was asked.",
        evidence=_evidence(link),
        basis="confirmed by replay" if link and link.basis == "replayed" else "",
        replays=replays,
        failure=link is not None and link.cause in FAILURES,
        outcome=_outcome(link),
        category=case.category or "",
        tags=tuple(f"{name}: {tag}" for name, tag in case.tags.items()),
        answer=_answer(trace, claims, rows),
        answer_note=_answer_note(trace),
        claims=rows,
        retrieved=tuple(spots.retrieved(p, i, known) for i, p in enumerate(retrieved)),
        missed=spots.missed(),
        references=case.references,
        verdicts=tuple(_verdict(verdict, claims) for verdict in verdicts),
        judges=tuple(dict.fromkeys(verdict.judge for verdict in verdicts)),
        notes=(*(trace.notes if trace else ()), *([note] if note else [])),
        error=(trace.error or "") if trace else "",
        latency=f"{trace.latency_s:.1f} s" if trace and trace.latency_s is not None else "",
        raws=_raws(verdicts),
    )


def _evidence(link: Link | None) -> tuple[CauseEvidence, ...]:
    """Every cause with its evidence, the primary one first, whatever order the run has."""
    if link is None:
        return ()
    return tuple(
        CauseEvidence(CAUSES[cause].label, words, cause == link.cause, cause in FAILURES)
        for cause, words in sorted(link.reasons.items(), key=lambda item: item[0] != link.cause)
    )


def _answer(
    trace: Trace | None, claims: Sequence[Claim], rows: Sequence[ClaimRow]
) -> tuple[Piece, ...]:
    text = (trace.answer or "") if trace else ""
    spans = [
        Span(claim.start, claim.end, claim.support, f"{row.anchor}-span", _target(row), row.number)
        for claim, row in zip(claims, rows, strict=True)
        if row.located and claim.start is not None and claim.end is not None
    ]
    return pieces(text, spans)


def _target(row: ClaimRow) -> str:
    """What a click on a claim shows: its quote, else the passage it needed, else the claim."""
    found = (pointer.href for pointer in (*row.quotes, *row.needed) if pointer.href)
    return next(found, row.anchor)


def _answer_note(trace: Trace | None) -> str:
    if trace is None:
        return "There is no trace of this case."
    if trace.answer is None:
        return "The app raised an error." if trace.error else "The app gave no answer."
    return "" if trace.answer.strip() else "The answer is empty."


def _outcome(link: Link | None) -> str:
    """The outcomes in one line, such as "miss, unfaithful, wrong"."""
    if link is None:
        return ""
    words = [RETRIEVALS[link.retrieval], ANSWERS[link.answer]]
    if link.correct is not None:
        words.append("correct" if link.correct else "wrong")
    return ", ".join(words).lower()


def _verdict(verdict: Verdict, shown_already: Sequence[Claim]) -> VerdictRow:
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
        ),
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


def _of(verdicts: Sequence[Verdict], metric: str) -> Verdict | None:
    return next((verdict for verdict in verdicts if verdict.metric == metric), None)
