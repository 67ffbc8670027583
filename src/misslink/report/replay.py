"""Results of replay: what missed passages cause, and which failure modes were confirmed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from misslink.documents import Replay, ReplayedCase, ReplayedFailure, replay_of
from misslink.failure_modes import FAILURE_MODES
from misslink.render.format import FormattedEstimate, format_difference, format_estimate, pluralize
from misslink.report.glossary import ARMS
from misslink.types import Estimate, Run

_GOOD = "passed"


@dataclass(frozen=True)
class ReplayTable:
    """The replay as a table; ``facts`` say how it was run, ``skipped`` why cases were not."""

    facts: str
    causal: FormattedEstimate
    causal_words: str
    sentences: tuple[str, ...]
    failures: tuple[tuple[str, ReplayedFailure], ...]
    shares: tuple[tuple[str, str], ...]
    skipped: tuple[str, ...]


def read_replay(run: Run) -> ReplayTable | None:
    """Read the results of replay; None if the run was not replayed."""
    replay = replay_of(run)
    if replay is None:
        return None
    reasons = Counter(case.reason for case in replay.skipped)
    return ReplayTable(
        facts=_replay_facts(replay),
        causal=format_estimate("causal_fraction", replay.causal_fraction),
        causal_words=describe_causal_fraction(replay),
        sentences=tuple(
            _net_sentence(_mode_label(mode), failure.net_fixed, failure.confirmed)
            for mode, failure in replay.failures.items()
            if failure.net_fixed.value is not None
        ),
        failures=tuple(
            (_mode_label(mode), failure)
            for mode, failure in replay.failures.items()
            if failure.replayed
        ),
        shares=tuple(
            (words, format_estimate("share", share).text)
            for words, share in (
                ("Failed answers fixed by the missed passages", replay.fixed),
                ("Good answers broken by them", replay.broken),
                ("Good answers broken by irrelevant passages", replay.placebo_broken),
                ("Answers that change by themselves (flaky)", replay.flaky),
                ("Answers that change with the order of passages", replay.order_sensitive),
            )
        ),
        skipped=tuple(
            f"{pluralize(count, 'case')}: {reason}" for reason, count in reasons.most_common()
        ),
    )


def describe_causal_fraction(replay: Replay) -> str:
    """Return the words after the number of the causal fraction."""
    words = "of failed answers are caused by missed passages"
    return f"{words}{'; not enough data to tell' if _includes_zero(replay.causal_fraction) else ''}"


def describe_case_replays(run: Run) -> dict[str, tuple[str, ...]]:
    """Describe the replay of each case, by case id."""
    replay = replay_of(run)
    return {case.case_id: (_describe_replay(case),) for case in (replay.cases if replay else ())}


def _includes_zero(estimate: Estimate) -> bool:
    low, high = estimate.low, estimate.high
    return low is not None and high is not None and low <= 0 <= high


def _replay_facts(replay: Replay) -> str:
    calls, saved = replay.usage.calls, replay.usage.generations_kept
    parts = (
        replay.app and f"App {replay.app}",
        replay.judge and f"judge {replay.judge}",
        replay.sample and f"at most {pluralize(replay.sample, 'case')} a failure mode",
        "" if replay.seed is None else f"seed {replay.seed}",
        calls and f"{pluralize(calls, 'question')} to the judge",
        saved and f"{pluralize(saved, 'answer')} of the app reused",
    )
    facts = ", ".join(part for part in parts if part)
    sentences = [facts, *(note.message for note in replay.warnings)]
    return " ".join(f"{text[:1].upper()}{text[1:]}." for text in sentences if text)


def _mode_label(mode: str) -> str:
    return FAILURE_MODES[mode].label if mode in FAILURE_MODES else mode


def _net_sentence(label: str, net: Estimate, confirmed: Estimate) -> str:
    """Return such as "Retrieval miss: of 40 replayed cases the missed passage fixed ..."."""
    replayed = f"{label}, {pluralize(net.n, 'case')} replayed"
    if _includes_zero(net):
        return f"{replayed}: not enough data to tell whether the missed passages are the cause."
    effect = format_difference("net_fixed", net).brief
    more = ""
    if confirmed.value is not None:
        more = f" {round(confirmed.value * confirmed.n)} confirmed."
    return f"{replayed}: the missed passages fix {effect} more than irrelevant ones do.{more}"


def _describe_replay(case: ReplayedCase) -> str:
    outcomes = ", ".join(
        f"{ARMS.get(arm, arm)}: {outcome}" for arm, outcome in case.outcomes.items()
    )
    is_good = case.failure == _GOOD
    if case.confirmed:
        verdict = "Confirmed by replay"
    elif case.turned:
        verdict = (
            "Broken by the missed passage" if is_good else "Fixed by replay, and not confirmed"
        )
    else:
        verdict = "Not broken by the missed passage" if is_good else "Not fixed by replay"
    notes = (
        "The answer is true by the missed passage; only its evidence was missing."
        if case.outcomes.get("observed") == "good" and not is_good
        else "",
        "Flaky: the answer changes when nothing is changed." if case.flaky else "",
        f"{case.note[:1].upper()}{case.note[1:]}." if case.note else "",
    )
    text = f"{verdict}: {outcomes}." if outcomes else f"{verdict}."
    return " ".join(filter(None, (text, *notes)))
