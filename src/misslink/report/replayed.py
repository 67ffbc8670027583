"""What replay found: which causes were confirmed by mending the context and asking again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from misslink.report.documents import count_in, estimate_in, mapping_in, rows_in, text_in
from misslink.report.glossary import CAUSES, INTERVENTIONS
from misslink.report.wording import Shown, plural, shown
from misslink.types import Estimate, Run

__all__ = [
    "BAD",
    "UNPROVEN",
    "Proof",
    "Replayed",
    "ReplayedCause",
    "case_replays",
    "proof",
    "replayed",
]

# What replay counts as bad; the table of misses and unfaithful answers has the one kind alone.
BAD = "bad answers (unfaithful, wrong, or declined where an answer was due; full misses only)"
# Said beside a fraction whose interval holds 0.
UNPROVEN = "the interval includes 0: these cases do not establish it"
_MENDED = {
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
class ReplayedCause:
    """One cause: how many of its cases were replayed and mended, and by what.

    ``of`` says how many cases the cause has, and how many of those replayed were flaky or gave
    the same answer as before.
    """

    label: str
    count: int
    of: str
    confirmed: Shown
    interventions: tuple[tuple[str, Shown], ...]


@dataclass(frozen=True)
class Replayed:
    """The replay as a table; ``facts`` say how it was run, ``skipped`` why cases were not."""

    facts: str
    causes: tuple[ReplayedCause, ...]
    flaky: Shown
    causal: Shown
    causal_words: str
    skipped: tuple[str, ...]


@dataclass(frozen=True)
class Proof:
    """For the headline: association and cause as two figures, and a sentence a cause."""

    figures: tuple[tuple[str, str, Shown], ...]
    sentences: tuple[str, ...]


def replayed(run: Run) -> Replayed | None:
    """What replay found; None where the run was not replayed."""
    if not run.replay:
        return None
    document = run.replay
    words, causal = _causal_words(_causal(document))
    return Replayed(
        facts=_facts(document),
        causes=tuple(
            _cause(key, mapping_in(found))
            for key, found in mapping_in(document.get("causes")).items()
            if count_in(mapping_in(found), "replayed")
        ),
        flaky=shown("flaky", estimate_in(document, "flaky")),
        causal=shown("attributable_fraction", causal),
        causal_words=f"{words[:1].upper()}{words[1:]}",
        skipped=_skipped(document),
    )


def proof(run: Run) -> Proof | None:
    """Association and cause side by side; None where the run was not replayed."""
    if not run.replay:
        return None
    figures = (
        ("Association", *_observed_words(_observed(run))),
        ("Cause, by replay", *_causal_words(_causal(run.replay))),
    )
    sentences = []
    for key, found in mapping_in(run.replay.get("causes")).items():
        said = _sentence(key, estimate_in(mapping_in(found), "confirmed"))
        sentences += [said] if said else []
    return Proof(
        figures=tuple(
            (label, words, shown("attributable_fraction", estimate))
            for label, words, estimate in figures
        ),
        sentences=tuple(sentences),
    )


def case_replays(run: Run) -> dict[str, tuple[str, ...]]:
    """By case id, what every replay of that case gave, in words."""
    said: dict[str, tuple[str, ...]] = {}
    for row in rows_in((run.replay or {}).get("cases")):
        case_id = text_in(row, "case_id")
        said[case_id] = (*said.get(case_id, ()), _told(row))
    return said


def _causal(document: Mapping[str, JsonValue]) -> Estimate:
    return estimate_in(document, "causal_attributable_fraction", why="the replay gives none")


def _observed(run: Run) -> Estimate:
    """The association over the same answers as the replay's; only so can the two be compared."""
    return estimate_in(
        run.replay or {},
        "observed_attributable_fraction",
        why="the replay holds none over the answers that it counts as bad",
    )


def _causal_words(causal: Estimate) -> tuple[str, Estimate]:
    """What a causal fraction says, and the share to write before it, which is not negative."""
    if causal.value is not None and causal.value < 0:
        words = f"more {BAD} when what was missed is handed over"
        return f"{words}{_doubt(causal)}", _turned(causal)
    return f"fewer {BAD} when what was missed is handed over{_doubt(causal)}", causal


def _observed_words(observed: Estimate) -> tuple[str, Estimate]:
    if observed.value is not None and observed.value <= 0:
        return f"of {BAD}: they are no more frequent after a miss{_doubt(observed)}", observed
    return f"of {BAD} go with a retrieval miss{_doubt(observed)}", observed


def _doubt(estimate: Estimate) -> str:
    low, high = estimate.low, estimate.high
    holds = low is not None and high is not None and low <= 0 <= high
    return f" ({UNPROVEN})" if holds else ""


def _turned(estimate: Estimate) -> Estimate:
    """What there is more of, where the estimate says how much fewer."""

    def less(value: float | None) -> float | None:
        return None if value is None else -value

    ends = {"value": less(estimate.value), "low": less(estimate.high), "high": less(estimate.low)}
    return estimate.model_copy(update=ends)


def _facts(document: Mapping[str, JsonValue]) -> str:
    usage = mapping_in(document.get("usage"))
    parts = [
        f"App {app}" if (app := text_in(document, "app")) else "",
        f"judge {judge}" if (judge := text_in(document, "judge")) else "",
        f"at most {plural(many, 'case')} a cause" if (many := count_in(document, "sample")) else "",
        f"seed {document['seed']}" if isinstance(document.get("seed"), int) else "",
        f"{plural(calls, 'question')} to the judge" if (calls := count_in(usage, "calls")) else "",
        f"{plural(kept, 'answer')} of the app kept from before"
        if (kept := count_in(usage, "generations_kept"))
        else "",
    ]
    said = ", ".join(part for part in parts if part)
    return f"{said[:1].upper()}{said[1:]}." if said else ""


def _cause(key: str, found: Mapping[str, JsonValue]) -> ReplayedCause:
    return ReplayedCause(
        label=CAUSES[key].label if key in CAUSES else key,
        count=count_in(found, "replayed"),
        of=_of(found),
        confirmed=shown("confirmed", estimate_in(found, "confirmed")),
        interventions=tuple(
            (INTERVENTIONS.get(name, name), shown(name, estimate_in({"one": given}, "one")))
            for name, given in mapping_in(found.get("interventions")).items()
        ),
    )


def _of(found: Mapping[str, JsonValue]) -> str:
    cases, contributing = count_in(found, "cases"), count_in(found, "contributing")
    flaky, same = count_in(found, "flaky"), count_in(found, "same_answer")
    parts = [
        f"of {plural(cases, 'case')}" if cases else "",
        f"{contributing:,} to which it only contributes" if contributing else "",
        f"{flaky:,} flaky" if flaky else "",
        f"{same:,} with the same answer" if same else "",
    ]
    return ", ".join(part for part in parts if part)


def _sentence(key: str, confirmed: Estimate) -> str:
    """Such as "Of 40 replayed retrieval misses, 31 (78 % [62, 88]) were mended by ..."."""
    if confirmed.value is None:
        return ""
    label = CAUSES[key].label if key in CAUSES else key
    one, many, how = _MENDED.get(key, (f"case of {label}", f"cases of {label}", "replay"))
    mended = round(confirmed.value * confirmed.n)  # a share of n cases, so a whole number
    brief = shown("confirmed", confirmed).brief
    were = "was" if mended == 1 else "were"
    what = one if confirmed.n == 1 else many
    return f"Of {confirmed.n:,} replayed {what}, {mended:,} ({brief}) {were} mended by {how}."


def _skipped(document: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Reasons for which cases were not replayed, the most frequent first."""
    reasons = Counter(text_in(row, "reason") for row in rows_in(document.get("skipped")))
    return tuple(f"{plural(count, 'case')}: {why}" for why, count in reasons.most_common())


def _again(first: JsonValue, second: JsonValue) -> str:
    """The second draw of the same, beside the first."""
    if second is None:
        return ""
    return " (twice)" if second == first else f" (and once {second})"


def _told(row: Mapping[str, JsonValue]) -> str:
    again = mapping_in(row.get("repeats"))
    outcomes = ", ".join(
        f"{INTERVENTIONS.get(name, name)}: {outcome}{_again(outcome, again.get(name))}"
        for name, outcome in mapping_in(row.get("outcomes")).items()
        if outcome is not None
    )
    if row.get("flaky") is True:
        verdict = "Flaky: the answer changes when nothing is changed"
    elif row.get("confirmed") is True:
        as_cause = text_in(row, "replayed_as")
        label = CAUSES[as_cause].label.lower() if as_cause in CAUSES else as_cause
        contributes = as_cause not in ("", text_in(row, "cause"))
        verdict = f"Confirmed by replay{f' as {label}' if contributes else ''}"
    elif row.get("confirmed") is False:
        verdict = "Not confirmed by replay"
    else:
        verdict = "Replayed, undecided"
    said = f"{verdict}: {outcomes}." if outcomes else f"{verdict}."
    reason = text_in(row, "reason")
    return f"{said} {reason}" if reason else said
