"""How the run was judged, and what audits and calibration say about biases of the judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from misslink import documents
from misslink.documents import AuditedChange, Cascade, JudgeUsage
from misslink.render.format import (
    FormattedEstimate,
    format_estimate,
    pluralize,
    shorten,
)
from misslink.types import Run

_CORE_METRICS = ("faithfulness", "correctness")  # named in the sentence; the table has all
_NAME_LENGTH = 60
_DECISION_PRICE = 0.10  # USD per million tokens: OpenAI, Gemini and Upstage in November 2026
# The changes of an audit, in the order of the table.
_CHANGE_NAMES = {
    "padding": "answer padded with its passages",
    "passage_order": "passages in reverse order",
    "passage_shuffle": "passages shuffled",
    "again": "nothing: asked again",
    "answer_order": "two answers swapped",
}


@dataclass(frozen=True)
class RepeatRow:
    """How far one metric moved: labels not unanimous, spread of values, sd of the run's mean."""

    metric: str
    flips: FormattedEstimate
    spread: FormattedEstimate
    moved: str


def describe_judging(run: Run) -> tuple[str, ...]:
    """Describe how the run was judged, in sentences; empty for a run without a judge."""
    if run.manifest.get("judge") in (None, "none"):
        return ()
    return tuple(_judging_notes(run))


def _judging_notes(run: Run) -> Iterator[str]:
    summary = documents.summary_of(run)
    if summary.usage:
        yield from _usage_notes(run, summary.usage)
    failed = {v.case_id: v.reason for v in run.verdicts if v.status == "failed"}
    if failed:
        reason, count = Counter(failed.values()).most_common(1)[0]
        yield (
            f"Verdicts failed in {len(failed):,} of {pluralize(len(run.cases), 'case')}, most often "
            f"({count:,}) because: {reason}"
        )
    claims = [c for v in run.verdicts if v.metric == "faithfulness" for c in v.claims]
    if claims:
        yield (
            "Claims that count as unsupported because the judge's quote did not hold (it was "
            "missing, in no passage, or about something else): "
            f"{sum(claim.overruled for claim in claims):,} of {len(claims):,}."
        )
    if summary.cascade:
        yield from _cascade_notes(summary.cascade)
    if documents.manifest_of(run).judge == "heuristic":
        yield from _heuristic_notes(run)
    rows = {row.metric: row.flips.text for row in repeat_rows(run) if row.flips.measured}
    if rows:
        named = [f"{metric} {rows[metric]}" for metric in _CORE_METRICS if metric in rows]
        which = f"; verdicts that were not unanimous: {'; '.join(named)}" if named else ""
        yield f"The judge answered each question {summary.repeats.samples} times{which}."
    abilities = documents.manifest_of(run).judging.abilities
    if abilities.get("structure") in ("plain", "json_object"):
        yield "The judge's server supports no answer schema. The schema was in the prompt and cost tokens."
    if abilities.get("gives_logprobs") is False:
        yield "The judge gives no log-probabilities, so its verdicts carry no probability."


def _heuristic_notes(run: Run) -> Iterator[str]:
    """What the heuristic judge misses, and what a model would cost that does not."""
    from misslink.judge.checks.dry_run import estimate_run_tokens

    yield (
        "An earlier fit of the heuristic judge found 49 of 70 answers with an evident fabrication and"
        " 5 of 20 with a contradiction, in answers that were not used to build it. To find"
        " contradictions, use a language model or a decision model as the judge."
    )
    calls, tokens, decision_tokens = estimate_run_tokens(run)
    if calls:
        cost = decision_tokens * _DECISION_PRICE / 1_000_000
        yield (
            f"To judge this run with a model takes {pluralize(calls, 'call')}: about {tokens:,} prompt"
            f" tokens of a language model, or {decision_tokens:,} of a decision model"
            f" ({cost:.2g} USD at {_DECISION_PRICE:.2f} USD per million)."
        )


def _usage_notes(run: Run, usage: JudgeUsage) -> Iterator[str]:
    tokens = cost = ""
    if usage.prompt_tokens is not None and usage.calls:
        tokens = (
            f", {usage.prompt_tokens:,} prompt and"
            f" {usage.completion_tokens or 0:,} completion tokens"
        )
    if usage.cost is not None and usage.calls:
        cost = f", cost {usage.cost:.4g}"
    yield (
        f"The judge was sent {pluralize(usage.calls, 'question')}{tokens}{cost}; "
        f"{usage.from_cache:,} more came from the cache, free."
    )
    spent = [v.usage for v in run.verdicts if v.usage is not None]
    prompt = sum(verdict_usage.prompt_tokens or 0 for verdict_usage in spent)
    if prompt:
        completion = sum(verdict_usage.completion_tokens or 0 for verdict_usage in spent)
        yield (
            f"All replies behind this run, whenever they were paid for: {prompt:,} prompt and "
            f"{completion:,} completion tokens."
        )
    if usage.not_asked:
        yield (
            f"Questions not asked: {usage.not_asked:,}, because the budget or the time of the run was used up. "
            "The same command continues the run; missing verdicts are counted as skipped."
        )


def _cascade_notes(cascade: Cascade) -> Iterator[str]:
    yield (
        "A cascade judged: the cheap judge decided where it was sure, and the other one saw "
        f"{format_estimate('share', cascade.share_dear).text} of the questions. One judge decides all metrics "
        "of a case. Metrics that the cheap judge lacks (context sufficiency, helpfulness) cover only "
        "the cases of the other judge."
    )
    agreement = format_estimate("agreement", cascade.agreement)
    if agreement.measured:
        yield (
            "Both judged a random sample of the cheap judge's cases, and gave the same label in "
            f"{agreement.text}."
        )
    else:
        yield "The random sample of the cheap judge's cases is empty, so the two were not compared."
    for name, stage in cascade.stages.items():
        same = format_estimate("agreement", stage.agreement)
        agreed = (
            f"; the judges after it gave the same label in {same.text}" if same.measured else ""
        )
        cost = "" if stage.cost is None else f", cost {stage.cost:.4g}"
        yield (
            f"{shorten(name, _NAME_LENGTH)} decided {pluralize(stage.sure, 'question')}"
            f" ({pluralize(stage.calls, 'call')}{cost}){agreed}."
        )


def repeat_rows(run: Run) -> tuple[RepeatRow, ...]:
    """Return how far each metric moved between samples; empty if each question was put once."""
    repeats = documents.summary_of(run).repeats
    rows = []
    for metric, repeatability in repeats.metrics.items():
        flips = format_estimate(metric, repeatability.flip_rate)
        spread = format_estimate(metric, repeatability.spread)
        if flips.measured or spread.measured:
            sd = repeats.run.get(metric, {}).get("sd")
            rows.append(RepeatRow(metric, flips, spread, "" if sd is None else f"{sd:.3f}"))
    return tuple(rows)


@dataclass(frozen=True)
class JudgeAudit:
    """An audit; ``facts`` names the judge and the number of cases.

    A row has the metric, the name of the change, what it did, and which way labels turned.
    """

    facts: str
    rows: tuple[tuple[str, str, AuditedChange, str], ...]
    notes: tuple[str, ...]


def read_audit(run: Run) -> JudgeAudit | None:
    """Read the audit of a run's judge, rows with a finding first; None if there is none."""
    audit = documents.audit_of(run)
    if audit is None:
        return None
    tables = [
        (metric, change, row)
        for metric, changes in (*audit.metrics.items(), ("preference", audit.preferences))
        for change, row in changes.items()
    ]
    order = {change: position for position, change in enumerate(_CHANGE_NAMES)}
    tables.sort(key=lambda table: (not table[2].finding, order.get(table[1], len(order))))
    rows = tuple(
        (
            shorten(metric, _NAME_LENGTH),
            _CHANGE_NAMES.get(change, shorten(change.replace("_", " "), _NAME_LENGTH)),
            row,
            _flip_directions(row),
        )
        for metric, change, row in tables
    )
    if not rows and not audit.notes:
        return None
    judge = shorten(audit.judge, _NAME_LENGTH)
    facts = f"The judge {judge} judged" if judge else "The judge judged"
    if audit.cases:
        facts += f" {pluralize(audit.cases, 'case')} of the run"
    facts += " again, with changes that must not matter."
    if judge and judge != run.manifest.get("judge"):
        facts += " It is not the judge of this run."
    return JudgeAudit(facts, rows, audit.notes)


def _flip_directions(row: AuditedChange) -> str:
    """Which way labels turned, as shares of all that were asked."""
    ways = (("good", row.to_good), ("bad", row.to_bad))
    parts = [
        f"{format_estimate('share', share).brief} to {word}"
        for word, share in ways
        if share.value is not None
    ]
    if row.places:
        first, second = row.places.get("first", 0), row.places.get("second", 0)
        parts.append(f"{first:,} for the one shown first, {second:,} for the second")
    if row.claims and row.claims.value is not None:
        claims = format_estimate("share", row.claims).brief
        parts.append(f"of the answer's own claims {claims} get another verdict")
    if row.may_lower:
        parts.append("here a good verdict may turn bad and still be right")
    return "; ".join(parts)
