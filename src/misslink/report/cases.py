"""The cases of a run for the report, the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

from misslink.documents import cutoff_of
from misslink.failure_modes import FAILURE_MODES, FAILURES
from misslink.linking.findings import can_search_fix
from misslink.parts import by_case, case_ids, group_by_case, last_of_each
from misslink.render.format import (
    as_sentence,
    format_decimal,
    format_percent,
    pluralize,
    shorten,
)
from misslink.render.need_sentences import ARRIVED, STAGE_OWNERS, describe_need, describe_source
from misslink.report.association import describe_case_replays
from misslink.report.claims import (
    CaseLocations,
    ClaimRow,
    PassageRow,
    TextPiece,
    TextSpan,
    is_sure,
    split_text,
)
from misslink.report.fixes import count_fixes
from misslink.report.human_labels import HumanLabel, read_human_labels
from misslink.report.links import CORRECT_VALUES, LinkedCases, view_fragment
from misslink.types import Case, Claim, Link, Repeats, Run, Trace, Verdict

# Cases up to which a page holds them all. A page of 10,000 cases has 14 MB, which a browser opens
# at once and a mail or a wiki still takes (benchmarks/report/report.md).
MAX_FULL_PAGE = 10_000
PARTIAL_PAGE_CASES = 5_000  # in the page of a run that has more

ORDER_RULE = (
    "by failure mode, in the order of the table of failure modes; then the lower faithfulness, the more claims "
    "that no passage supports, the lower recall and the lower reciprocal rank; then the order of "
    "the gold set"
)
_MODE_PART = 50  # the part of the room that each failure mode has for itself: with ten failure modes a fifth at most
_FIXABLE = ("retriever", "index", "prompt")  # owners whose failures a fix of retrieval addresses
_BASIS = {"replayed": "Confirmed by replay.", "inferred": "Inferred without labels."}
_EXCERPT = 140  # characters of the first unsupported claim in the table
_NO_VALUE = 2.0  # above every value in [0, 1]: without a value after all that have one


def page_size(cases: int) -> int:
    """How many of a run's cases its page holds in full: all, or those that are worst.

    Examples
    --------
    >>> page_size(10_000), page_size(10_001)
    (10000, 5000)
    """
    return cases if cases <= MAX_FULL_PAGE else PARTIAL_PAGE_CASES


def cases_per_mode(most: int) -> int:
    """Of how many cases of each failure mode there is room among `most` in any case.

    Examples
    --------
    >>> cases_per_mode(5_000), cases_per_mode(10)
    (100, 0)
    """
    return most // _MODE_PART


def select_worst(run: Run, most: int) -> tuple[int, ...]:
    """Return the numbers of the `most` worst cases of `run`, the worst first.

    They are the first of `rank_cases`, except that the last places go to the worst cases of each
    other failure mode, `cases_per_mode` of them, so that every mode has cases on the page.
    """
    order = rank_cases(run)
    if most >= len(order):
        return order
    failures = {link.case_id: link.failure or "inconclusive" for link in run.outcomes}
    ids = case_ids(run.cases)
    room = dict.fromkeys([*FAILURE_MODES, ""], cases_per_mode(most))
    chosen = set[int]()
    for number in order:
        failure = failures.get(ids[number - 1], "")
        if room[failure]:
            room[failure] -= 1
            chosen.add(number)
    remaining = (number for number in order if number not in chosen)
    chosen.update(islice(remaining, most - len(chosen)))
    return tuple(number for number in order if number in chosen)


def rank_cases(run: Run) -> tuple[int, ...]:
    """Return the numbers of all cases of `run`, from 1, the worst first.

    The order is by failure mode, then by lower faithfulness, more unsupported claims, lower recall
    at the run's cutoff, lower reciprocal rank, and place in the gold set. Cases without a value come
    after those with one, cases without a link last.
    """
    failures = {link.case_id: link.failure or "inconclusive" for link in run.outcomes}
    severity = {failure: place for place, failure in enumerate(FAILURE_MODES)}
    values, unfaithful = dict[str, float](), dict[str, int]()
    for verdict in run.scores:
        if verdict.metric != "faithfulness":
            continue
        if verdict.value is not None:
            values[verdict.case_id] = verdict.value
        unfaithful[verdict.case_id] = sum(c.support != "supported" for c in verdict.claims)
    ids, ranks = case_ids(run.cases), _rank_values(run)

    def badness(number: int) -> tuple[float, ...]:
        case_id = ids[number - 1]
        return (
            severity.get(failures.get(case_id, ""), len(severity)),
            values.get(case_id, _NO_VALUE),
            -unfaithful.get(case_id, 0),
            *(_NO_VALUE if (value := by_case.get(case_id)) is None else value for by_case in ranks),
        )

    return tuple(sorted(range(1, len(ids) + 1), key=badness))


def _rank_values(run: Run) -> tuple[Mapping[str, float | None], ...]:
    """Recall at the cutoff and the reciprocal rank, by case; of a repeated id the last counts."""
    from misslink.retrieval import score_cases  # imports numpy

    names = [f"recall@{cutoff_of(run)}", "mrr"]
    of_each = score_cases(last_of_each(run.cases), last_of_each(run.traces), names)
    return tuple(of_each.values())


class VerdictRow(NamedTuple):
    """One metric's verdict on a case, beside the annotators' label.

    ``label`` is 'good', 'bad' or "". ``people`` is the annotators' label, "" without one, and
    ``stands`` says whether the judge agrees with it; see `misslink.report.human_labels`.
    """

    metric: str
    value: str
    label: str
    probability: str
    reason: str
    scored: bool
    details: tuple[str, ...]
    people: str
    stands: str


@dataclass(frozen=True)
class NeedRow:
    """A need of a case: the stage where it was lost, what happened there, and how that is known."""

    text: str
    source: str
    passage: str
    stage: str
    what: str
    how: str


@dataclass(frozen=True)
class SearchRow:
    """A search of the app: by what, how many passages it gave, and what it found of those missing."""

    query: str
    tool: str
    passages: int
    found: str


@dataclass(frozen=True)
class NamedText:
    """A text and what it is: of whom, by whom, or of what mode."""

    name: str
    text: str


@dataclass(frozen=True)
class CaseRow:
    """A case in the list; the page's scripts read these names, and nothing that is empty.

    ``number`` is its place in the gold set, from 1. ``failure``, ``retrieval`` and ``answered`` are
    keys of the glossary, "" where no link speaks of the case. ``values`` are those of its scored
    verdicts by metric, ``bad`` the metrics with a bad label. Of its claims it has how many there are
    (``claimed``), how many the prompt does not support, how many the reference contradicts
    (``wrong``), and the first that is to be read. A rank by keywords stands for one that is not known.
    """

    number: int
    id: str
    question: str
    failure: str
    unexplained: bool
    retrieval: str
    answered: str
    correct: str
    lost_at: tuple[str, ...]
    miss_types: tuple[str, ...]
    best_rank: int | None
    keyword_rank: int | None
    category: str
    tier: str
    tags: tuple[str, ...]
    values: Mapping[str, float]
    bad: tuple[str, ...]
    people: tuple[str, ...]
    claimed: int | None
    unsupported: int | None
    wrong: int | None
    claim: str
    latency_s: float | None
    failed_to_run: bool


@dataclass(frozen=True)
class CaseBody:
    """An open case; the page's scripts read these names, and nothing that is empty.

    ``summary`` is the verdict of a failed case in two sentences, ``also`` has its other failure modes
    with their evidence, ``history`` earlier messages by role, ``standalone`` the question without
    them by who worded it, ``raws`` the judge's replies by the metrics that they serve. ``marks`` are
    the parts of the answer.
    """

    reason: str
    also: tuple[NamedText, ...]
    summary: tuple[str, ...]
    needs: tuple[NeedRow, ...]
    fix: LinkedCases | None
    basis: str
    replays: tuple[str, ...]
    answer: str
    marks: tuple[TextPiece, ...]
    answer_note: str
    claims: tuple[ClaimRow, ...]
    retrieved: tuple[PassageRow, ...]
    missed: tuple[PassageRow, ...]
    prompt: str
    calls: tuple[SearchRow, ...]
    references: tuple[str, ...]
    history: tuple[NamedText, ...]
    standalone: NamedText | None
    verdicts: tuple[VerdictRow, ...]
    judges: tuple[str, ...]
    notes: tuple[str, ...]
    error: str
    raws: tuple[NamedText, ...]


@dataclass(frozen=True)
class CaseEntry(CaseRow, CaseBody):
    """One case of the run: its row in the list, and what it shows when it is open."""


def build_case_entries(run: Run, k: int, most: int | None = None) -> tuple[CaseEntry, ...]:
    """The cases of `run` at its cutoff `k`, in the order of `misslink.report.cases`.

    Parameters
    ----------
    run : Run
    k : int
    most : int or None
        Only so many of them, 0 or more, the worst; None: all. Nothing is built of the others.
    """
    numbers = rank_cases(run) if most is None else select_worst(run, most)
    traces, links = by_case(run.traces), by_case(run.links)
    verdicts = group_by_case(run.verdicts)
    replays, labels = describe_case_replays(run), read_human_labels(run)
    fixes: dict[int, LinkedCases] = {}
    for fix in count_fixes(run):  # the best first
        advice = LinkedCases(fix.label, len(fix.cases), fix.fragment)
        fixes = dict.fromkeys(fix.cases, advice) | fixes
    counts = Counter(link.failure for link in run.outcomes)
    modes = {
        mode: LinkedCases(
            FAILURE_MODES[mode].action.rstrip("."), counts[mode], view_fragment(failure=mode)
        )
        for mode in FAILURES
    }
    entries = []
    for number in numbers:
        case = run.cases[number - 1]
        link, case_verdicts = links.get(case.id), list(verdicts.get(case.id, ()))
        again, people = replays.get(case.id, ()), labels.get(case.id, {})
        entry = _case_entry(
            number, case, traces.get(case.id), link, case_verdicts, again, people, k
        )
        if link and link.failed and link.failure:
            owner = FAILURE_MODES[link.failure].owner
            own = fixes.get(number) if owner in _FIXABLE else None
            entry = replace(entry, fix=own or modes.get(link.failure))
        entries.append(entry)
    return tuple(entries)


def _case_entry(
    number: int,
    case: Case,
    trace: Trace | None,
    link: Link | None,
    verdicts: Sequence[Verdict],
    replays: tuple[str, ...],
    people: Mapping[str, HumanLabel],
    k: int,
) -> CaseEntry:
    from misslink.retrieval import relevant_ids  # imports numpy

    faithfulness = next((v for v in verdicts if v.metric == "faithfulness"), None)
    claims = faithfulness.claims if faithfulness else ()
    retrieved, missed = trace.retrieved if trace else (), link.missed if link else ()
    spots = CaseLocations(trace, link)
    rows = tuple(spots.claim(index, claim) for index, claim in enumerate(claims))
    relevant = relevant_ids(case, retrieved) if retrieved else set()
    note = _retrieval_note(case, trace, k) if trace else None
    needs = _need_rows(trace, link, k)
    unsupported = [row for row in rows if row.support != "supported"]
    wrong = [row for row in rows if row.wrong]
    first = next(iter(unsupported or wrong), None)
    best = min((miss.true_rank for miss in missed if miss.true_rank), default=None)
    by_keywords = min((miss.bm25_rank for miss in missed if miss.bm25_rank), default=None)
    return CaseEntry(
        number=number,
        id=case.id,
        question=case.question,
        failure=(link.failure or "inconclusive") if link else "",
        unexplained=bool(link and link.unexplained),
        retrieval=link.retrieval if link else "",
        answered=link.answer if link else "",
        correct=CORRECT_VALUES[link.correct if link else None],
        needs=needs,
        lost_at=tuple(dict.fromkeys(need.stage for need in needs)),
        miss_types=tuple(dict.fromkeys(miss.kind for miss in missed if miss.kind)),
        best_rank=best,
        keyword_rank=None if best else by_keywords,
        category=case.category or "",
        tier=case.tier or "",
        tags=tuple(f"{name}:{tag}" for name, tag in case.tags.items()),
        values={v.metric: v.value for v in verdicts if v.value is not None},
        bad=tuple(dict.fromkeys(v.metric for v in verdicts if v.label is False)),
        people=tuple(dict.fromkeys(label.stands for label in people.values() if label.stands)),
        claimed=len(rows) or None,
        unsupported=len(unsupported) if rows else None,
        wrong=len(wrong) or None,
        claim=shorten(first.text, _EXCERPT) if first else "",
        latency_s=trace.latency_s if trace else None,
        failed_to_run=trace is None
        or trace.answer is None
        or any(v.status == "failed" for v in verdicts),
        reason=link.reasons.get(link.failure or "", link.reason)
        if link
        else "There is no link for this case: the run has no judge.",
        also=tuple(
            NamedText(FAILURE_MODES[mode].label, link.reasons.get(mode, ""))
            for mode in dict.fromkeys((*link.also, *link.notes, *link.reasons))
            if mode != link.failure
        )
        if link
        else (),
        summary=_summarize_case(link, trace, claims, k)
        if link and link.failure in FAILURES
        else (),
        fix=None,
        basis=_BASIS.get(link.basis, "") if link else "",
        replays=replays,
        answer=(trace.answer or "") if trace else "",
        marks=_mark_answer(trace, claims, rows),
        answer_note=_answer_note(trace),
        claims=rows,
        retrieved=tuple(spots.retrieved(passage, relevant) for passage in retrieved),
        missed=spots.missed(),
        prompt=(trace.prompt or "") if trace else "",
        calls=_searches(case, trace, link) if trace else (),
        references=case.references,
        history=tuple(NamedText(message.role, message.content) for message in case.history),
        standalone=_standalone_question(case, verdicts),
        verdicts=tuple(_verdict_row(v, claims, people.get(v.metric)) for v in verdicts),
        judges=tuple(dict.fromkeys(verdict.judge for verdict in verdicts)),
        notes=(*(trace.notes if trace else ()), *([note] if note else [])),
        error=(trace.error or "") if trace else "",
        raws=_raw_replies(verdicts),
    )


def _need_rows(trace: Trace | None, link: Link | None, k: int) -> tuple[NeedRow, ...]:
    rows = []
    for need in link.needs if link else ():
        what, how = describe_need(need, trace, k)
        stage = need.lost_at or ARRIVED
        source, passage = describe_source(need), need.passage_id or ""
        rows.append(NeedRow(need.text, source, passage, stage, what, how))
    return tuple(rows)


def _summarize_case(
    link: Link, trace: Trace | None, claims: Sequence[Claim], k: int
) -> tuple[str, ...]:
    """Where the needed facts were lost, and what missed passages say of the unsupported claims."""
    where = FAILURE_MODES[link.failure or "inconclusive"].meaning
    lost = [need for need in link.needs if STAGE_OWNERS.get(need.lost_at or "") == link.owner]
    stated = (link.failure, "states_reference")
    if lost:
        what, how = describe_need(lost[0], trace, k)
        many = f"{len(lost):,} of {pluralize(len(link.needs), 'needed fact')}"
        verb = "is" if len(lost) == 1 else "are"
        where = f"{many} {verb} {what[:1].lower()}{what[1:]}: {how}."
    elif not can_search_fix(link) or any(
        (e.failure, e.reason_code) == stated for e in link.evidence
    ):
        where = as_sentence(link.reason)
    bad = {index for index, claim in enumerate(claims) if claim.support != "supported"}
    wrong = sum(claim.correct is False for claim in claims)
    text = f"{len(bad):,} of {pluralize(len(claims), 'claim')} unsupported." if bad else ""
    if claims and not bad:
        text = "The prompt supports every claim."
    for verb in ("support", "contradict"):
        ties = {
            tie.index for tie in link.claims if tie.relation == f"would_{verb}" and is_sure(tie)
        } & bad
        text += f" A missed passage would {verb} {len(ties):,} of them." if ties else ""
    if wrong and not bad:
        text += f" The reference answer contradicts {wrong:,} of {pluralize(len(claims), 'claim')}."
    return where, text


def _standalone_question(case: Case, verdicts: Sequence[Verdict]) -> NamedText | None:
    if case.standalone_question:
        return NamedText("gold set", case.standalone_question)
    by_judge = ((f"judge {v.judge}", v.standalone_question) for v in verdicts)
    return next((NamedText(by, text) for by, text in by_judge if text), None)


def _searches(case: Case, trace: Trace, link: Link | None) -> tuple[SearchRow, ...]:
    """The searches of an app that made several, or one with another query than the question."""
    if [call.query for call in trace.calls] in ([], [case.question]):
        return ()
    searches, rows = iter(link.searches if link else ()), []
    for call in trace.calls:
        search = None if call.nested else next(searches, None)
        result = "inside the search before it" if call.nested else ""
        if search is not None and search.missing:
            of = pluralize(search.missing, "missing relevant passage")
            result = f"{len(search.found):,} of {of}"
        tool = call.tool or call.retriever
        rows.append(SearchRow(call.query, tool, len(call.passages), result))
    return tuple(rows)


def _retrieval_note(case: Case, trace: Trace, k: int) -> str | None:
    """What the outcome of retrieval notes; without evidence there is nothing to look for."""
    from misslink.retrieval import retrieval_outcome, unmeasured_reason

    return retrieval_outcome(case, trace, k).note if case.evidence else unmeasured_reason(trace)


def _mark_answer(
    trace: Trace | None, claims: Sequence[Claim], rows: Sequence[ClaimRow]
) -> tuple[TextPiece, ...]:
    text = (trace.answer or "") if trace else ""
    spans = [
        TextSpan(claim.start, claim.end, claim.support, row.number)
        for claim, row in zip(claims, rows, strict=True)
        if not row.unlocated and claim.start is not None and claim.end is not None
    ]
    return split_text(text, spans)


def _answer_note(trace: Trace | None) -> str:
    if trace is None:
        return "There is no trace of this case."
    if trace.answer is None:
        return "The app raised an error." if trace.error else "The app gave no answer."
    return "" if trace.answer.strip() else "The answer is empty."


def _verdict_row(
    verdict: Verdict, shown_already: Sequence[Claim], people: HumanLabel | None
) -> VerdictRow:
    value = verdict.status if verdict.value is None else format_percent(verdict.value)
    parts = [
        f"{name} {format_percent(part)}" for name, part in verdict.parts.items() if part is not None
    ]
    own = () if tuple(shown_already) == verdict.claims else verdict.claims
    return VerdictRow(
        metric=verdict.metric,
        value=value,
        label={True: "good", False: "bad", None: ""}[verdict.label],
        probability="" if verdict.probability is None else format_decimal(verdict.probability),
        reason=", ".join([*parts, *([verdict.reason] if verdict.reason else [])]),
        scored=verdict.status == "scored",
        details=(
            *_describe_samples(verdict.repeats),
            *(f"{claim.support}: {claim.text}" for claim in own),
            *(f"annotators, {line}" for line in (people.said if people else ())),
        ),
        people=(people.word or people.stands) if people else "",
        stands=people.stands if people else "",
    )


def _describe_samples(repeats: Repeats | None) -> Iterator[str]:
    """What each of several samples said, and how far they lie apart."""
    if repeats is None:
        return
    values = ", ".join(
        "none" if value is None else format_percent(value) for value in repeats.values
    )
    spread = "" if repeats.spread is None else f"; sd {format_decimal(repeats.spread)}"
    flipped = (
        "" if not repeats.flipped else f"; {format_percent(repeats.flipped)} against the label"
    )
    yield f"{len(repeats.values)} samples: {values}{spread}{flipped}"


def _raw_replies(verdicts: Sequence[Verdict]) -> tuple[NamedText, ...]:
    """Raw replies, each once: one reply often serves several metrics."""
    names: dict[str, list[str]] = {}
    for verdict in verdicts:
        if verdict.raw:
            names.setdefault(verdict.raw, []).append(verdict.metric)
    return tuple(NamedText(", ".join(metrics), raw) for raw, metrics in names.items())
