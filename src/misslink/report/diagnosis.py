"""Missed passages, the checklist, missing labels, and what other retrieval would change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from misslink.document_model import NOT_COMPUTED, Estimates
from misslink.documents import (
    ChecklistItem,
    MetricWithLabels,
    MissingLabelDocument,
    OptionCheck,
    OptionMetric,
    WhatIfOption,
    manifest_of,
    summary_of,
    whatif_of,
)
from misslink.parts import by_case, light_items
from misslink.render.format import (
    FormattedEstimate,
    format_decimal,
    format_difference,
    format_estimate,
    format_number,
    format_p_value,
    format_percent,
    pluralize,
)
from misslink.render.miss_sentences import MISS_LABELS, miss_type_advice
from misslink.report.glossary import CHECKED, MEASURED
from misslink.report.links import case_fragment, number_cases, view_fragment
from misslink.types import Estimate, Missed, Outcome, RetrievalMiss, Run

_SHARE_MEASUREMENTS = ("cosine_percentile", "shared_stems", "shared_stems_percentile")
# Estimates of the checklist whose name has none of these words are plain numbers.
_SHARE_WORDS = ("share", "recall", "precision", "hit", "rate", "split", "lost")
_DECIMAL_WORDS = ("auroc", "cosine", "mrr", "ndcg")
# The numbers that the verdict of a check rests on.
_DECISIVE_NUMBERS = {
    "chunk_quality": ("cut_within_a_sentence", "places_lost_to_duplicates"),
    "embedding_quality": ("auroc",),
    "recall": ("recall_in_context",),
    "precision": ("auroc",),
    "vocabulary": ("auroc",),
    "boundaries": ("split",),
}
_MAX_MISSING_LABELS = 500  # on a page; a large run has thousands


OutcomeT = TypeVar("OutcomeT", bound=Outcome)


def missed_passages(links: Iterable[OutcomeT]) -> Iterator[tuple[OutcomeT, Any]]:
    """Yield every missed passage of every case once, also if two evidences need it.

    Of several entries for a passage the first with a miss type is taken.
    """
    for link in links:
        misses: dict[str, Missed] = {}
        for miss in link.missed:
            if (known := misses.setdefault(miss.passage_id, miss)).kind is None:
                misses[miss.passage_id] = known if miss.kind is None else miss
        yield from ((link, miss) for miss in misses.values())


@dataclass(frozen=True)
class MissTypeRow:
    """The missed passages of one type: how many, in how many ``failed`` cases, and an example."""

    label: str
    count: int
    share: FormattedEstimate
    failed: int
    advice: str
    example: str
    example_at: str
    fragment: str


def miss_type_rows(run: Run) -> tuple[MissTypeRow, ...]:
    """Return missed passages by miss type, the most frequent first.

    Empty if nothing was missed, or if no miss has a type (older runs, traces without ranks).
    """
    from misslink.stats import proportion

    groups: dict[str | None, list[tuple[str, bool | None, bool]]] = {}
    deeper, recorded, links = False, bool(manifest_of(run).traces), by_case(run.links)
    for link, miss in missed_passages(run.outcomes):
        groups.setdefault(miss.kind, []).append((link.case_id, link.failed, miss.explained))
        deeper |= miss.depth is not None and not recorded
    if not groups.keys() - {None}:
        return ()
    numbers = number_cases(run.cases)
    total = sum(map(len, groups.values()))
    rows = []
    for miss_type, misses in sorted(
        groups.items(), key=lambda group: (group[0] is None, -len(group[1]))
    ):
        example = next((miss for miss in misses if miss[2]), misses[0])
        number = numbers.get(example[0])
        told = [m.reason for _, m in missed_passages([links[example[0]]]) if m.kind == miss_type]
        rows.append(
            MissTypeRow(
                label=MISS_LABELS[miss_type] if miss_type else "not known",
                count=len(misses),
                share=format_estimate("share", proportion(len(misses), total)),
                failed=len({case_id for case_id, failed, _ in misses if failed}),
                advice=miss_type_advice(miss_type, deeper=deeper),
                example=next(filter(None, told), ""),
                example_at="" if number is None else case_fragment(number),
                fragment=view_fragment(miss_type=miss_type) if miss_type else "",
            )
        )
    return tuple(rows)


def describe_distance(distance: int | None) -> str:
    """Write how far below the cutoff a passage ranks; "" if that is not known or within it.

    Examples
    --------
    >>> describe_distance(12), describe_distance(1), describe_distance(None)
    ('12 ranks below the cutoff', '1 rank below the cutoff', '')
    """
    if distance is None or distance <= 0:
        return ""
    return f"{pluralize(distance, 'rank')} below the cutoff"


def miss_details(misses: Iterable[RetrievalMiss]) -> list[dict[str, Any]]:
    """Return the measurements of a missed passage, without repeats if it has several evidences."""
    details: list[dict[str, Any]] = []
    for miss in misses:
        above = (
            {
                "rank": rival.rank,
                "id": rival.passage_id,
                "score": "" if rival.score is None else format_decimal(rival.score, 3),
                "cosine": "" if rival.cosine is None else format_decimal(rival.cosine),
                "duplicate_of": rival.duplicate_of,
            }
            for rival in miss.above
        )
        detail = {
            "reason": miss.reason,
            "also": [MISS_LABELS[other] for other in miss.also],
            "distance": describe_distance(miss.distance),
            "measured": {
                MEASURED.get(name, name): _format_measurement(name, value)
                for name, value in miss.measured.items()
            },
            "above": [{key: part for key, part in rival.items() if part} for rival in above],
        }
        known = {key: part for key, part in detail.items() if part}
        if known not in details and known.keys() - {"also"}:
            details.append(known)
    return details


def _format_measurement(name: str, value: float) -> str:
    if name in _SHARE_MEASUREMENTS:
        return format_percent(value)
    return format_decimal(value) if name.startswith("cosine") else format_number(value)


@dataclass(frozen=True)
class ChecklistView:
    """The checklist: each item with its state, why it has none, and its numbers in words."""

    facts: str
    checks: tuple[tuple[ChecklistItem, str, str, tuple[tuple[str, str], ...]], ...]


def read_checklist(run: Run) -> ChecklistView | None:
    """Read the checklist of `run`; None if there is none."""
    diagnosis = summary_of(run).diagnosis
    if not diagnosis.checklist:
        return None
    embedding, corpus = diagnosis.embedding, diagnosis.corpus
    similarity = f"Similarities are those of {embedding}" if embedding else "No embedding was given"
    passages = (
        f"the corpus of {corpus:,} passages was read"
        if corpus
        else "no corpus was given, so that passages are those that were retrieved"
    )
    checks = []
    for item in diagnosis.checklist:
        numbers = tuple(
            (CHECKED.get(name) or name.replace("_", " "), _format_check_number(name, value))
            for name, value in item.numbers.items()
        )
        checks.append((item, *check_verdict(item), numbers))
    return ChecklistView(facts=f"{similarity}; {passages}.", checks=tuple(checks))


@dataclass(frozen=True)
class MissingLabelsView:
    """The first missing labels with the places of their passages, and how many there are."""

    rows: tuple[tuple[MissingLabelDocument, str], ...]
    metrics: Mapping[str, MetricWithLabels]
    count: int


def read_missing_labels(run: Run) -> MissingLabelsView | None:
    """Read the passages that the gold set may lack; None if there are none."""
    missing = summary_of(run).diagnosis.missing_labels
    rows = missing.holes[:_MAX_MISSING_LABELS]
    if not rows:
        return None
    case_ids, numbers = {row.case_id for row in rows}, number_cases(run.cases)
    anchors = {
        # The explorer also takes the passage to show of the case.
        (trace.case_id, passage.id): f"{case_fragment(numbers[trace.case_id])}&passage={position}"
        for trace in light_items(run.traces)
        if trace.case_id in numbers and trace.case_id in case_ids
        for position, passage in enumerate(trace.retrieved, 1)
    }
    linked = tuple((row, anchors.get((row.case_id, row.passage_id), "")) for row in rows)
    return MissingLabelsView(rows=linked, metrics=missing.metrics, count=len(missing.holes))


def check_verdict(item: ChecklistItem) -> tuple[str, str]:
    """Return whether a question of the checklist has a good answer, and why it is inconclusive.

    Returns
    -------
    pair of str
        'ok', 'not ok', 'inconclusive' (the numbers do not decide) or 'not measured' (there are no
        numbers); the reason of 'inconclusive', otherwise "".

    Examples
    --------
    >>> check_verdict(ChecklistItem.read({"name": "recall"}))
    ('not measured', '')
    """
    if item.ok is not None:
        return ("ok" if item.ok else "not ok"), ""
    estimates = {name: value for name, value in item.numbers.items() if isinstance(value, Estimate)}
    # Counts are there even if nothing was counted: 0 passages are no measurement.
    if not any(estimate.value is not None for estimate in estimates.values()) and (
        estimates or not any(type(value) in (int, float) for value in item.numbers.values())
    ):
        return "not measured", ""
    names = _DECISIVE_NUMBERS.get(item.name, ())
    decisive = [estimates[name] for name in names if name in estimates]
    if not decisive:
        return "inconclusive", "the numbers do not decide it"
    unmeasured = next((estimate for estimate in decisive if estimate.value is None), None)
    if unmeasured is not None:
        return "inconclusive", unmeasured.reason or "what decides it was not measured"
    return "inconclusive", "the interval includes both good and bad values"


def _format_check_number(name: str, value: Estimate | bool | float | str | None) -> str:
    """An estimate with its interval and n, or a number; any other value as text."""
    is_share = any(word in name for word in _SHARE_WORDS)
    if isinstance(value, Estimate):
        is_share = is_share or value.method.startswith("wilson")  # a count of a whole
        return format_estimate(name, value).text if is_share else _format_unitless(name, value)
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "not measured"}[value]
    if isinstance(value, str):
        return value
    return format_percent(value) if is_share and 0 <= value <= 1 else format_number(value)


def _format_unitless(name: str, estimate: Estimate) -> str:
    if estimate.value is None:
        return f"not measured: {estimate.reason}"
    write = format_decimal if any(word in name for word in _DECIMAL_WORDS) else format_number
    low, high = (
        "unbounded" if end is None else write(end) for end in (estimate.low, estimate.high)
    )
    interval = "" if estimate.low is estimate.high is None else f" [{low}, {high}]"
    return f"{write(estimate.value)}{interval}, n = {estimate.n:,}"


_VERDICTS = {"option": "better", "today": "worse"}


@dataclass(frozen=True)
class OptionEffect:
    """A metric of the run today and with an option."""

    at: str
    today: FormattedEstimate
    option: FormattedEstimate
    difference: FormattedEstimate
    verdict: str
    p: str


@dataclass(frozen=True)
class OptionRow:
    """An option with its effect on the main metric, on all of them, and the tokens before and after."""

    option: WhatIfOption
    main: OptionEffect | None
    changes: tuple[OptionEffect, ...]
    tokens: tuple[FormattedEstimate, ...]


@dataclass(frozen=True)
class WhatIfView:
    """What other retrieval would change; ``metric`` is the main one, ``check`` what was run again."""

    facts: str
    metric: str
    heading: str
    options: tuple[OptionRow, ...]
    check: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def read_whatif(run: Run) -> WhatIfView | None:
    """Read what other retrieval options would change; None if this was not evaluated."""
    whatif = whatif_of(run)
    if whatif is None or not whatif.options:
        return None
    today = whatif.baseline
    metric = next((name for name in today if name.startswith("recall")), next(iter(today), ""))
    facts = "No corpus was given, so the options are those that the run's own ranks can tell."
    if whatif.corpus:
        passages = pluralize(whatif.corpus.passages, "passage")
        facts = f"The same {passages} were searched with the same questions."
    # Without a heading the run's k is not the number of passages in its prompt.
    width = whatif.context_passages
    in_context = width and metric == f"recall@{width}"
    skipped = (f"{option.name} was not tried: {option.reason}." for option in whatif.skipped)
    rows = []
    for option in whatif.options:
        effects = {name: _option_effect(name, m, today) for name, m in option.metrics.items()}
        tokens = (option.context_tokens.get(name, NOT_COMPUTED) for name in ("today", "b"))
        rows.append(
            OptionRow(
                option=option,
                main=effects.get(metric),
                changes=tuple(effects.values()),
                tokens=tuple(format_estimate("context_tokens", count) for count in tokens),
            )
        )
    return WhatIfView(
        facts=facts,
        metric=metric,
        heading=f"Recall in the context (today {pluralize(width, 'passage')})"
        if in_context
        else "",
        options=tuple(rows),
        check=tuple(_check_rows(whatif.check)),
        notes=(*skipped, *whatif.notes),
    )


def _option_effect(name: str, compared: OptionMetric, today: Estimates) -> OptionEffect:
    untested = "not tested" if compared.p_holm is None else "no detectable difference"
    other = compared.at and name.partition("@")[2] != str(compared.at)
    # Where the option has fewer cases than the run, today's value is that of the same cases.
    paired = compared.a or today.get(name, NOT_COMPUTED)
    return OptionEffect(
        at=f"at {compared.at} under the option" if other else "",
        today=format_estimate(name, paired),
        option=format_estimate(name, compared.b),
        difference=format_difference(name, compared.difference),
        verdict=_VERDICTS.get(compared.winner or "", untested),
        p=format_p_value(compared.p_holm),
    )


def _check_rows(check: OptionCheck | None) -> Iterator[tuple[str, str]]:
    """The cases of one option that were run again, as labels and texts."""
    if check is None:
        return
    yield "Option", check.option
    strata = (check.changed, "that it changes"), (check.unchanged, "that it leaves as they are")
    for counts, which in strata:
        text = f"{counts.checked or 0:,} of {pluralize(counts.cases, 'case')} run again: "
        text += f"{counts.failed_before or 0:,} failed before, {counts.failed_after or 0:,} after"
        yield f"Cases {which}", text
    if check.reason:
        yield "Not run again", check.reason
