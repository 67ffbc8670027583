"""Results of replay: which failure modes were confirmed as causes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.failure_modes import FAILURE_MODES
from misslink.render.format import FormattedEstimate, format_estimate, pluralize
from misslink.render.json_fields import JsonFields
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
    if not run.replay:
        return None
    document = JsonFields(run.replay)
    words, causal = _describe_causal(document)
    reasons = Counter(row.text("reason") for row in document.rows("skipped"))
    return ReplayTable(
        facts=_replay_facts(document),
        failures=tuple(
            ReplayedMode(
                label=_mode_label(mode),
                count=fields.count("replayed"),
                of=_case_counts(fields),
                confirmed=fields.formatted("confirmed"),
                interventions=tuple(
                    (INTERVENTIONS.get(name, name), fields.formatted("interventions", name))
                    for name in fields.object("interventions")
                ),
            )
            for mode, fields in document.objects("failures").items()
            if fields.count("replayed")
        ),
        flaky=document.formatted("flaky"),
        causal=format_estimate("attributable_fraction", causal),
        causal_words=f"{words[:1].upper()}{words[1:]}",
        skipped=tuple(
            f"{pluralize(count, 'case')}: {reason}" for reason, count in reasons.most_common()
        ),
    )


def causal_figures(run: Run) -> CausalFigures | None:
    """Return association and cause side by side; None if the run was not replayed."""
    if not run.replay:
        return None
    document = JsonFields(run.replay)
    # Only an association over the same answers as the replay's can be compared with it.
    observed = document.estimate(
        "observed_attributable_fraction",
        why="the replay holds none over the answers that it counts as bad",
    )
    association = " go with a retrieval miss"
    if observed.value is not None and observed.value <= 0:
        association = ": they are no more frequent after a miss"
    words = f"of {BAD_ANSWERS}{association}{_uncertainty_text(observed)}"
    causal_words, causal = _describe_causal(document)
    sentences = (
        _confirmed_sentence(mode, fields.estimate("confirmed"))
        for mode, fields in document.objects("failures").items()
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
    for row in JsonFields(run.replay).rows("cases"):
        case_id = row.text("case_id")
        texts[case_id] = (*texts.get(case_id, ()), _describe_replay(row))
    return texts


def _describe_causal(document: JsonFields) -> tuple[str, Estimate]:
    """The causal fraction in words, and the share to write before them, which is not negative."""
    causal = document.estimate("causal_attributable_fraction", why="the replay gives none")
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


def _replay_facts(document: JsonFields) -> str:
    usage, seed = document.object("usage"), document.values.get("seed")
    app, judge, sample = document.text("app"), document.text("judge"), document.count("sample")
    calls, saved = usage.count("calls"), usage.count("generations_kept")
    parts = (
        app and f"App {app}",
        judge and f"judge {judge}",
        sample and f"at most {pluralize(sample, 'case')} a failure mode",
        f"seed {seed}" if isinstance(seed, int) else "",
        calls and f"{pluralize(calls, 'question')} to the judge",
        saved and f"{pluralize(saved, 'answer')} of the app kept from before",
    )
    facts = ", ".join(part for part in parts if part)
    return f"{facts[:1].upper()}{facts[1:]}." if facts else ""


def _mode_label(mode: str) -> str:
    return FAILURE_MODES[mode].label if mode in FAILURE_MODES else mode


def _case_counts(fields: JsonFields) -> str:
    names = ("cases", "also", "flaky", "same_answer")
    cases, also, flaky, unchanged = map(fields.count, names)
    parts = (
        cases and f"of {pluralize(cases, 'case')}",
        also and f"{also:,} to which it only contributes",
        flaky and f"{flaky:,} flaky",
        unchanged and f"{unchanged:,} with the same answer",
    )
    return ", ".join(part for part in parts if part)


def _confirmed_sentence(mode: str, confirmed: Estimate) -> str:
    """Return such as "Of 40 replayed retrieval misses, 31 (78 % [62, 88]) were fixed by ..."."""
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


def _describe_replay(row: JsonFields) -> str:
    repeats = row.object("repeats").values
    outcomes = ", ".join(
        f"{INTERVENTIONS.get(name, name)}: {outcome}{_second_draw(outcome, repeats.get(name))}"
        for name, outcome in row.object("outcomes").values.items()
        if outcome is not None
    )
    verdict = "Replayed, inconclusive"
    if row.values.get("flaky") is True:
        verdict = "Flaky: the answer changes when nothing is changed"
    elif row.values.get("confirmed") is True:
        mode = row.text("replayed_as")
        differs = mode not in ("", row.text("failure"))
        label = FAILURE_MODES[mode].label.lower() if mode in FAILURE_MODES else mode
        verdict = f"Confirmed by replay{f' as {label}' if differs else ''}"
    elif row.values.get("confirmed") is False:
        verdict = "Not confirmed by replay"
    text = f"{verdict}: {outcomes}." if outcomes else f"{verdict}."
    return f"{text} {row.text('reason')}".rstrip()


def _second_draw(first: JsonValue, second: JsonValue) -> str:
    """The second draw of the same, if there is one."""
    if second is None:
        return ""
    return " (twice)" if second == first else f" (and once {second})"
