"""How the run was judged, in sentences: what was asked, what was not believed, what moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report.documents import count_in, estimate_in, mapping_in
from misslink.report.wording import Shown, plural, shown
from misslink.types import Run

__all__ = ["RepeatRow", "judging_notes", "repeat_rows"]

_TOLD = ("faithfulness", "correctness")  # of repeats, in the sentence; the table has them all


@dataclass(frozen=True)
class RepeatRow:
    """How far one metric moved: labels not unanimous, spread of values, sd of the run's mean."""

    metric: str
    flips: Shown
    spread: Shown
    moved: str


def judging_notes(run: Run) -> tuple[str, ...]:
    """Say how the run was judged; empty for a run without a judge.

    Parameters
    ----------
    run : Run
    """
    if run.manifest.get("judge") in (None, "none"):
        return ()
    notes = [
        *_asked(run),
        *_failed(run),
        *_not_believed(run),
        *_cascade(mapping_in(run.summary.get("cascade"))),
        *_repeats(run),
        *_abilities(mapping_in(mapping_in(run.manifest.get("judging")).get("abilities"))),
    ]
    return tuple(notes)


def _asked(run: Run) -> Iterator[str]:
    usage = mapping_in(run.summary.get("usage"))
    if not usage:
        return
    calls, kept = (count_in(usage, name) for name in ("calls", "from_ledger"))
    tokens = ""
    if usage.get("prompt_tokens") is not None and calls:
        tokens = (
            f", {count_in(usage, 'prompt_tokens'):,} prompt and"
            f" {count_in(usage, 'completion_tokens'):,} completion tokens"
        )
    cost = usage.get("cost")
    paid = f", cost {cost:.4g}" if isinstance(cost, int | float) and calls else ""
    yield (
        f"The judge was asked {plural(calls, 'question')}{tokens}{paid}; "
        f"{kept:,} more came from the ledger, free."
    )
    spent = [v.usage for v in run.verdicts if v.usage is not None]
    prompt, completion = (
        sum(getattr(each, name) or 0 for each in spent)
        for name in ("prompt_tokens", "completion_tokens")
    )
    if prompt:
        yield (
            f"All replies behind this run, whenever they were paid for: {prompt:,} prompt and "
            f"{completion:,} completion tokens."
        )
    left = count_in(usage, "not_asked")
    if left:
        yield (
            f"Questions not put: {left:,}, because the budget or the time of the run "
            "was used up; the same command goes on, and what is missing is counted as skipped."
        )


def _failed(run: Run) -> Iterator[str]:
    """Count the cases of which a verdict failed, with the most frequent reason."""
    failed = {v.case_id: v.reason for v in run.verdicts if v.status == "failed"}
    if failed:
        reason, count = Counter(failed.values()).most_common(1)[0]
        yield (
            f"Verdicts failed in {len(failed):,} of {plural(len(run.cases), 'case')}, most often "
            f"({count:,}) because: {reason}"
        )


def _not_believed(run: Run) -> Iterator[str]:
    """Count the claims whose support the judge could not show."""
    claims = [c for v in run.verdicts if v.metric == "faithfulness" for c in v.claims]
    doubted = sum(claim.overruled for claim in claims)
    if claims:
        yield (
            "Claims that count as unsupported because the judge's quote did not hold (it was "
            f"missing, in no passage, or about something else): {doubted:,} of {len(claims):,}."
        )


def _cascade(cascade: Mapping[str, JsonValue]) -> Iterator[str]:
    if not cascade:
        return
    share = shown("share", estimate_in(cascade, "share_dear")).text
    yield (
        "A cascade judged: the cheap judge decided where it was sure, and the other one saw "
        f"{share} of the questions. Who decided a case decided every metric of it; what the cheap "
        "judge does not judge (context sufficiency, helpfulness) rests on the other cases alone."
    )
    agreement = shown("agreement", estimate_in(cascade, "agreement"))
    if agreement.measured:
        yield (
            "Both were asked of a random sample of what the cheap one had decided; they gave the "
            f"same label in {agreement.text}."
        )
    else:
        yield "The random sample of what the cheap judge decided is empty: nothing was audited."


def repeat_rows(run: Run) -> tuple[RepeatRow, ...]:
    """How far each metric moved between samples; empty where each question was put once."""
    repeats = mapping_in(run.summary.get("repeats"))
    of_run = mapping_in(repeats.get("run"))
    rows = []
    for metric, found in mapping_in(repeats.get("metrics")).items():
        flips = shown(metric, estimate_in(mapping_in(found), "flip_rate"))
        spread = shown(metric, estimate_in(mapping_in(found), "spread"))
        sd = mapping_in(of_run.get(metric)).get("sd")
        if flips.measured or spread.measured:
            moved = f"{sd:.3f}" if isinstance(sd, float) else ""
            rows.append(RepeatRow(metric, flips, spread, moved))
    return tuple(rows)


def _repeats(run: Run) -> Iterator[str]:
    rows = {row.metric: row.flips.text for row in repeat_rows(run) if row.flips.measured}
    told = [f"{metric} {rows[metric]}" for metric in _TOLD if metric in rows]
    if rows:
        put = count_in(mapping_in(run.summary.get("repeats")), "samples")
        which = f"; verdicts that were not unanimous: {'; '.join(told)}" if told else ""
        yield f"Each question was put {put} times{which}."


def _abilities(abilities: Mapping[str, JsonValue]) -> Iterator[str]:
    if abilities.get("structure") in ("plain", "json_object"):
        yield "The judge's server takes no answer schema; it stood in the prompt and cost tokens."
    if abilities.get("gives_logprobs") is False:
        yield "The judge gives no log-probabilities, so its verdicts carry no probability."
