"""How the run was judged, and what audits and calibration say about biases of the judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from pydantic import JsonValue

from misslink.render.format import (
    FormattedEstimate,
    format_decimal_estimate,
    format_difference,
    format_p_value,
    pluralize,
    shorten,
)
from misslink.render.json_fields import JsonFields
from misslink.types import Run

_CORE_METRICS = ("faithfulness", "correctness")  # named in the sentence; the table has all
_NAME_LENGTH = 60
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
    summary = JsonFields(run.summary)
    if usage := summary.object("usage"):
        yield from _usage_notes(run, usage)
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
    if cascade := summary.object("cascade"):
        yield from _cascade_notes(cascade)
    rows = {row.metric: row.flips.text for row in repeat_rows(run) if row.flips.measured}
    if rows:
        named = [f"{metric} {rows[metric]}" for metric in _CORE_METRICS if metric in rows]
        which = f"; verdicts that were not unanimous: {'; '.join(named)}" if named else ""
        yield f"Each question was put {summary.object('repeats').count('samples')} times{which}."
    abilities = JsonFields(run.manifest).object("judging", "abilities").values
    if abilities.get("structure") in ("plain", "json_object"):
        yield "The judge's server takes no answer schema; it stood in the prompt and cost tokens."
    if abilities.get("gives_logprobs") is False:
        yield "The judge gives no log-probabilities, so its verdicts carry no probability."


def _usage_notes(run: Run, usage: JsonFields) -> Iterator[str]:
    calls = usage.count("calls")
    tokens = cost = ""
    if usage.values.get("prompt_tokens") is not None and calls:
        tokens = (
            f", {usage.count('prompt_tokens'):,} prompt and"
            f" {usage.count('completion_tokens'):,} completion tokens"
        )
    if (paid := usage.number("cost")) is not None and calls:
        cost = f", cost {paid:.4g}"
    yield (
        f"The judge was asked {pluralize(calls, 'question')}{tokens}{cost}; "
        f"{usage.count('from_cache'):,} more came from the cache, free."
    )
    spent = [v.usage for v in run.verdicts if v.usage is not None]
    prompt = sum(verdict_usage.prompt_tokens or 0 for verdict_usage in spent)
    if prompt:
        completion = sum(verdict_usage.completion_tokens or 0 for verdict_usage in spent)
        yield (
            f"All replies behind this run, whenever they were paid for: {prompt:,} prompt and "
            f"{completion:,} completion tokens."
        )
    if unasked := usage.count("not_asked"):
        yield (
            f"Questions not put: {unasked:,}, because the budget or the time of the run was used up. "
            "The same command continues the run; missing verdicts are counted as skipped."
        )


def _cascade_notes(cascade: JsonFields) -> Iterator[str]:
    yield (
        "A cascade judged: the cheap judge decided where it was sure, and the other one saw "
        f"{cascade.formatted('share_dear').text} of the questions. Who decided a case decided every "
        "metric of it; what the cheap judge does not judge (context sufficiency, helpfulness) rests "
        "on the other cases alone."
    )
    agreement = cascade.formatted("agreement")
    if agreement.measured:
        yield (
            "Both were asked of a random sample of what the cheap one had decided; they gave the "
            f"same label in {agreement.text}."
        )
    else:
        yield "The random sample of what the cheap judge decided is empty: nothing was audited."


def repeat_rows(run: Run) -> tuple[RepeatRow, ...]:
    """Return how far each metric moved between samples; empty if each question was put once."""
    repeats = JsonFields(run.summary).object("repeats")
    rows = []
    for metric, fields in repeats.objects("metrics").items():
        flips = fields.formatted("flip_rate", name=metric)
        spread = fields.formatted("spread", name=metric)
        if flips.measured or spread.measured:
            sd = repeats.object("run", metric).number("sd")
            rows.append(RepeatRow(metric, flips, spread, "" if sd is None else f"{sd:.3f}"))
    return tuple(rows)


@dataclass(frozen=True)
class AuditRow:
    """One change, and what it did to the verdicts of one metric.

    Parameters
    ----------
    metric, change : str
    n, left_out : int
        Verdicts that could be compared, and those that could not.
    flipped : FormattedEstimate
        Share of them with the other label.
    direction : str
        Which way they turned; "" if that is not known.
    shift : FormattedEstimate or None
        Mean change of the score; None if there is none, as of a preference.
    finding : str
        What exceeds chance.
    """

    metric: str
    change: str
    n: int
    left_out: int
    flipped: FormattedEstimate
    direction: str
    shift: FormattedEstimate | None
    finding: str


@dataclass(frozen=True)
class JudgeAudit:
    """All rows of an audit; ``facts`` names the judge and the number of cases."""

    facts: str
    rows: tuple[AuditRow, ...]
    notes: tuple[str, ...]


def read_audit(run: Run) -> JudgeAudit | None:
    """Read the audit of a run's judge, rows with a finding first; None if there is none."""
    document = JsonFields(run.audit)
    tables = [
        (metric, change, row)
        for metric, changes in document.objects("metrics").items()
        for change, row in changes.objects().items()
    ]
    preferences = document.objects("preferences").items()
    tables += [("preference", change, row) for change, row in preferences if row]
    order = {change: position for position, change in enumerate(_CHANGE_NAMES)}
    tables.sort(key=lambda table: (not table[2].text("finding"), order.get(table[1], len(order))))
    rows = tuple(_audit_row(*table) for table in tables)
    notes = document.texts("notes")
    if not rows and not notes:
        return None
    judge = shorten(document.text("judge"), _NAME_LENGTH)
    facts = f"The judge {judge} judged" if judge else "The judge judged"
    if count := document.count("cases"):
        facts += f" {pluralize(count, 'case')} of the run"
    facts += " again, with changes that must not matter."
    if judge and judge != run.manifest.get("judge"):
        facts += " It is not the judge of this run."
    return JudgeAudit(facts, rows, notes)


def _audit_row(metric: str, change: str, row: JsonFields) -> AuditRow:
    flipped = row.formatted("flipped")
    reasons = row.object("left_out")
    shift = format_difference("share", row.estimate("shift")) if "shift" in row else None
    return AuditRow(
        metric=shorten(metric, _NAME_LENGTH),
        change=_CHANGE_NAMES.get(change, shorten(change.replace("_", " "), _NAME_LENGTH)),
        n=row.count("n") or flipped.n,
        left_out=sum(map(reasons.count, reasons)),
        flipped=flipped,
        direction=_flip_directions(row),
        shift=shift,
        finding=row.text("finding") or ("nothing beyond chance" if flipped.measured else ""),
    )


def _flip_directions(row: JsonFields) -> str:
    """Which way labels turned, as shares of all that were asked."""
    ways = (("good", row.formatted("to_good")), ("bad", row.formatted("to_bad")))
    parts = [f"{share.brief} to {word}" for word, share in ways if share.measured]
    if places := row.object("places"):
        first, second = places.count("first"), places.count("second")
        parts.append(f"{first:,} for the one shown first, {second:,} for the second")
    claims = row.formatted("claims")
    if claims.measured:
        parts.append(f"of the answer's own claims {claims.brief} are called otherwise")
    if row.values.get("may_lower") is True:
        parts.append("it may rightly turn bad here")
    return "; ".join(parts)


@dataclass(frozen=True)
class MatchedPairs:
    """Which of two answers to one question with the same human label the judge prefers.

    ``which`` is such as 'longer', "" for the kind that the row is of; ``preferred`` the share of
    pairs in which that one is scored better; ``says`` how many pairs there are, with the p-value.
    """

    which: str
    preferred: FormattedEstimate
    says: str
    beyond_chance: bool


@dataclass(frozen=True)
class JudgeBias:
    """What should not matter to the judge, and what it does to its errors.

    Parameters
    ----------
    of : str
        Such as 'length' or 'category: law'.
    unit : str
        What the numbers are per; "" if the calibration does not say.
    errors : FormattedEstimate
        Log-odds of an error.
    pull : FormattedEstimate or None
        Log-odds of the label good, the human label held constant: above 0 the judge is lenient.
        None: an older calibration without it.
    finding : str
        What exceeds chance.
    matched : MatchedPairs or None
        The same among answers to one question; None if there are none.
    """

    of: str
    unit: str
    errors: FormattedEstimate
    pull: FormattedEstimate | None
    finding: str
    matched: MatchedPairs | None


def read_biases(document: Mapping[str, JsonValue]) -> tuple[JudgeBias, ...]:
    """Read ``bias`` of a calibration document, rows with a finding first."""
    rows = list(JsonFields(document).objects("bias").items())
    rows.sort(
        key=lambda row: not (row[1].text("finding") or row[1].object("matched").text("finding"))
    )
    biases = []
    for name, row in rows:
        errors = _format_log_odds(row, "coefficient")
        finding = row.text("finding")
        if "finding" in row and not finding and errors.measured:
            finding = "no error that goes with it beyond chance"
        biases.append(
            JudgeBias(
                of=shorten(name.replace("_", " "), _NAME_LENGTH),
                unit=shorten(row.text("unit"), _NAME_LENGTH),
                errors=errors,
                pull=_format_log_odds(row, "pull") if "pull" in row else None,
                finding=finding,
                matched=_matched_pairs(row.object("matched")),
            )
        )
    return tuple(biases)


def _matched_pairs(fields: JsonFields) -> MatchedPairs | None:
    """The comparison within questions; None if nothing could be matched."""
    key = next((name for name in fields if name.endswith("preferred")), "")
    if not key or not (preferred := fields.formatted(key)).measured:
        return None
    pairs, questions = fields.count("pairs"), fields.count("questions")
    text = pluralize(pairs, "pair") + (
        f" of {pluralize(questions, 'question')}" if questions else ""
    )
    p = format_p_value(fields.number("p"))
    which = shorten(key.removesuffix("preferred").replace("_", " ").strip(), _NAME_LENGTH)
    return MatchedPairs(
        which, preferred, f"{text}, {p}" if p else text, bool(fields.text("finding"))
    )


def _format_log_odds(row: JsonFields, name: str) -> FormattedEstimate:
    """A coefficient, which no axis from 0 to 1 can show."""
    return replace(format_decimal_estimate(name, row.estimate(name)), bar=None)
