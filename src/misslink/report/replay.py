"""Results of replay: which failure modes were confirmed as causes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from misslink.documents import Replay, ReplayedCase, ReplayedFailure, replay_of
from misslink.failure_modes import FAILURE_MODES
from misslink.render.format import FormattedEstimate, format_estimate, pluralize
from misslink.report.glossary import INTERVENTIONS
from misslink.types import Estimate, Run

# What replay counts as bad; the table of misses and unfaithful answers counts only the latter.
BAD_ANSWERS = (
    "bad answers (unfaithful, wrong, or declined where an answer was due; full misses only)"
)
# Said of a fraction whose interval includes 0.
NOT_ESTABLISHED = "the interval includes 0: these cases do not establish it"
_FIX_PHRASES = {
    "retrieval_miss": ("retrieval miss", "retrieval misses", "handing over the missed passage"),
    "ignored_context": (
        "case of ignored context",
        "cases of ignored context",
        "moving the needed passage first or leaving it alone",
    ),
    "distracted": (
        "distracted case",
        "distracted cases",
        "taking the irrelevant passages away",
    ),
}


@dataclass(frozen=True)
class ReplayedMode:
    """One failure mode: how many of its cases were replayed and fixed, and by what.

    ``of`` says how many cases it has, and how many of those replayed were flaky or gave the same
    answer as before.
    """

    label: str
    count: int
    of: str
    confirmed: FormattedEstimate
    interventions: tuple[tuple[str, FormattedEstimate], ...]


@dataclass(frozen=True)
class ReplayTable:
    """The replay as a table; ``facts`` say how it was run, ``skipped`` why cases were not."""

    facts: str
    failures: tuple[ReplayedMode, ...]
    flaky: FormattedEstimate
    causal: FormattedEstimate
    causal_words: str
    skipped: tuple[str, ...]


@dataclass(frozen=True)
class CausalFigures:
    """For the headline: association and cause as two figures, and a sentence per mode."""

    figures: tuple[tuple[str, str, FormattedEstimate], ...]
    sentences: tuple[str, ...]


def read_replay(run: Run) -> ReplayTable | None:
    """Read the results of replay; None if the run was not replayed."""
    replay = replay_of(run)
    if replay is None:
        return None
    words, causal = _describe_causal(replay)
    reasons = Counter(case.reason for case in replay.skipped)
    return ReplayTable(
        facts=_replay_facts(replay),
        failures=tuple(
            ReplayedMode(
                label=_mode_label(mode),
                count=failure.replayed,
                of=_case_counts(failure),
                confirmed=format_estimate("confirmed", failure.confirmed),
                interventions=tuple(
                    (INTERVENTIONS.get(name, name), format_estimate(name, fixed))
                    for name, fixed in failure.interventions.items()
                ),
            )
            for mode, failure in replay.failures.items()
            if failure.replayed
        ),
        flaky=format_estimate("flaky", replay.flaky),
        causal=format_estimate("attributable_fraction", causal),
        causal_words=f"{words[:1].upper()}{words[1:]}",
        skipped=tuple(
            f"{pluralize(count, 'case')}: {reason}" for reason, count in reasons.most_common()
        ),
    )


def causal_figures(run: Run) -> CausalFigures | None:
    """Return association and cause side by side; None if the run was not replayed."""
    replay = replay_of(run)
    if replay is None:
        return None
    # Only an association over the same answers as the replay's can be compared with it.
    observed = replay.observed_attributable_fraction
    association = " go with a retrieval miss"
    if observed.value is not None and observed.value <= 0:
        association = ": they are no more frequent after a miss"
    words = f"of {BAD_ANSWERS}{association}{_uncertainty_text(observed)}"
    causal_words, causal = _describe_causal(replay)
    sentences = (
        _confirmed_sentence(mode, failure.confirmed) for mode, failure in replay.failures.items()
    )
    return CausalFigures(
        figures=(
            ("Association", words, format_estimate("attributable_fraction", observed)),
            ("Cause, by replay", causal_words, format_estimate("attributable_fraction", causal)),
        ),
        sentences=tuple(filter(None, sentences)),
    )


def describe_case_replays(run: Run) -> dict[str, tuple[str, ...]]:
    """Describe every replay of each case, by case id."""
    texts: dict[str, tuple[str, ...]] = {}
    replay = replay_of(run)
    for case in replay.cases if replay else ():
        texts[case.case_id] = (*texts.get(case.case_id, ()), _describe_replay(case))
    return texts


def _describe_causal(replay: Replay) -> tuple[str, Estimate]:
    """The causal fraction in words, and the share to write before them, which is not negative."""
    causal = replay.causal_attributable_fraction
    harmful = causal.value is not None and causal.value < 0
    words = (
        f"{'more' if harmful else 'fewer'} {BAD_ANSWERS} when what was missed is handed over"
        f"{_uncertainty_text(causal)}"
    )
    if harmful:
        value, low, high = (
            None if end is None else -end for end in (causal.value, causal.high, causal.low)
        )
        causal = causal.model_copy(update={"value": value, "low": low, "high": high})
    return words, causal


def _uncertainty_text(estimate: Estimate) -> str:
    low, high = estimate.low, estimate.high
    includes_zero = low is not None and high is not None and low <= 0 <= high
    return f" ({NOT_ESTABLISHED})" if includes_zero else ""


def _replay_facts(replay: Replay) -> str:
    calls, saved = replay.usage.calls, replay.usage.generations_kept
    parts = (
        replay.app and f"App {replay.app}",
        replay.judge and f"judge {replay.judge}",
        replay.sample and f"at most {pluralize(replay.sample, 'case')} a failure mode",
        "" if replay.seed is None else f"seed {replay.seed}",
        calls and f"{pluralize(calls, 'question')} to the judge",
        saved and f"{pluralize(saved, 'answer')} of the app kept from before",
    )
    facts = ", ".join(part for part in parts if part)
    return f"{facts[:1].upper()}{facts[1:]}." if facts else ""


def _mode_label(mode: str) -> str:
    return FAILURE_MODES[mode].label if mode in FAILURE_MODES else mode


def _case_counts(failure: ReplayedFailure) -> str:
    parts = (
        failure.cases and f"of {pluralize(failure.cases, 'case')}",
        failure.also and f"{failure.also:,} to which it only contributes",
        failure.flaky and f"{failure.flaky:,} flaky",
        failure.same_answer and f"{failure.same_answer:,} with the same answer",
    )
    return ", ".join(part for part in parts if part)


def _confirmed_sentence(mode: str, confirmed: Estimate) -> str:
    """Return such as "Of 40 replayed retrieval misses, 31 (78% [62, 88]) were fixed by ..."."""
    if confirmed.value is None:
        return ""
    label = _mode_label(mode)
    singular, plural, fix = _FIX_PHRASES.get(
        mode, (f"case of {label}", f"cases of {label}", "replay")
    )
    fixed = round(confirmed.value * confirmed.n)  # a share of n cases, so a whole number
    brief = format_estimate("confirmed", confirmed).brief
    return (
        f"Of {confirmed.n:,} replayed {singular if confirmed.n == 1 else plural}, {fixed:,} "
        f"({brief}) {'was' if fixed == 1 else 'were'} fixed by {fix}."
    )


def _describe_replay(case: ReplayedCase) -> str:
    outcomes = ", ".join(
        f"{INTERVENTIONS.get(name, name)}: {outcome}{_second_draw(outcome, case.repeats.get(name))}"
        for name, outcome in case.outcomes.items()
        if outcome is not None
    )
    verdict = "Replayed, inconclusive"
    if case.flaky:
        verdict = "Flaky: the answer changes when nothing is changed"
    elif case.confirmed:
        mode = case.replayed_as
        differs = mode not in ("", case.failure)
        label = FAILURE_MODES[mode].label.lower() if mode in FAILURE_MODES else mode
        verdict = f"Confirmed by replay{f' as {label}' if differs else ''}"
    elif case.confirmed is False:
        verdict = "Not confirmed by replay"
    text = f"{verdict}: {outcomes}." if outcomes else f"{verdict}."
    return f"{text} {case.reason}".rstrip()


def _second_draw(first: str, second: str | None) -> str:
    """The second draw of the same, if there is one."""
    if second is None:
        return ""
    return " (twice)" if second == first else f" (and once {second})"
