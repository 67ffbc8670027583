"""Results of what-if: other retrieval options on the same questions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from misslink.documents import (
    NOT_COMPUTED,
    Estimates,
    OptionCheck,
    OptionMetric,
    WhatIfOption,
    whatif_of,
)
from misslink.render.format import (
    FormattedEstimate,
    format_difference,
    format_estimate,
    format_p_value,
    pluralize,
)
from misslink.types import Run

_VERDICTS = {"option": "better", "today": "worse"}


@dataclass(frozen=True)
class OptionEffect:
    """One metric today and with an option; ``verdict`` says which is better.

    ``at`` is the cutoff with the option if it differs from today's; else "".
    """

    at: str
    today: FormattedEstimate
    option: FormattedEstimate
    difference: FormattedEstimate
    verdict: str
    p: str


@dataclass(frozen=True)
class OptionRow:
    """One retrieval option: its main metric, what it costs, what it would save."""

    name: str
    what: str
    main: OptionEffect | None
    changes: tuple[OptionEffect, ...]
    tokens: tuple[FormattedEstimate, FormattedEstimate]
    avoided: FormattedEstimate
    retrieved: str
    finding: str


@dataclass(frozen=True)
class WhatIfTable:
    """All options, best first."""

    facts: str
    metric: str
    heading: str
    options: tuple[OptionRow, ...]
    check: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def read_whatif(run: Run) -> WhatIfTable | None:
    """Read what other retrieval options would change; None if this was not evaluated."""
    whatif = whatif_of(run)
    if whatif is None or not whatif.options:
        return None
    today = whatif.baseline
    metric = next((name for name in today if name.startswith("recall")), next(iter(today), ""))
    facts = "No corpus was given, so the options are those that the run's own ranks can tell."
    if whatif.corpus:
        passages = pluralize(whatif.corpus.passages, "passage")
        facts = f"Searched were the same {passages} with the same questions."
    # Without a heading the run's k is not the number of passages in its prompt.
    width = whatif.context_passages
    in_context = width and metric == f"recall@{width}"
    skipped = (f"{option.name} was not tried: {option.reason}." for option in whatif.skipped)
    return WhatIfTable(
        facts=facts,
        metric=metric,
        heading=f"Recall in the context (today {pluralize(width, 'passage')})"
        if in_context
        else "",
        options=tuple(_option_row(option, today, metric) for option in whatif.options),
        check=_check_rows(whatif.check) if whatif.check else (),
        notes=(*skipped, *whatif.notes),
    )


def _option_row(option: WhatIfOption, today: Estimates, metric: str) -> OptionRow:
    effects = {
        name: _option_effect(name, compared, today) for name, compared in option.metrics.items()
    }
    return OptionRow(
        name=option.name,
        what=option.what,
        main=effects.get(metric),
        changes=tuple(effects.values()),
        tokens=(
            format_estimate("context_tokens", option.context_tokens.get("today", NOT_COMPUTED)),
            format_estimate("context_tokens", option.context_tokens.get("b", NOT_COMPUTED)),
        ),
        avoided=format_estimate("failures_avoided", option.failures_avoided),
        retrieved="not known"
        if option.newly_retrieved is None
        else pluralize(option.newly_retrieved, "missed passage"),
        finding=option.finding,
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
        verdict=_VERDICTS.get(compared.winner, untested),
        p=format_p_value(compared.p_holm),
    )


def _check_rows(check: OptionCheck) -> tuple[tuple[str, str], ...]:
    """The cases of one option that were run again, as labels and texts."""
    rows = (
        ("Option", check.option),
        ("Cases that it changes", _checked_text(check.changed)),
        ("Cases that it leaves as they are", _checked_text(check.unchanged)),
        ("Not run again", check.reason),
    )
    return tuple((label, text) for label, text in rows if text)


def _checked_text(counts: Mapping[str, int]) -> str:
    cases, checked, before, after = (
        counts.get(name, 0) for name in ("cases", "checked", "failed_before", "failed_after")
    )
    return (
        f"{checked:,} of {pluralize(cases, 'case')} run again: {before:,} failed before, "
        f"{after:,} after"
    )
