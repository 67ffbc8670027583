"""Results of what-if: other retrieval options on the same questions."""

from __future__ import annotations

from dataclasses import dataclass

from misslink.documents import (
    NOT_COMPUTED,
    Estimates,
    ForecastError,
    OptionMetric,
    WhatIfOption,
    whatif_of,
)
from misslink.render.format import (
    FormattedEstimate,
    format_difference,
    format_estimate,
    format_number,
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
    moved: str
    finding: str


@dataclass(frozen=True)
class WhatIfTable:
    """All options, best first."""

    facts: str
    metric: str
    heading: str
    options: tuple[OptionRow, ...]
    error: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def read_whatif(run: Run) -> WhatIfTable | None:
    """Read what other retrieval options would change; None if this was not evaluated."""
    whatif = whatif_of(run)
    if whatif is None or not whatif.options:
        return None
    today = whatif.today
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
        error=_forecast_error(whatif.forecast_error) if whatif.forecast_error else (),
        notes=(*skipped, *whatif.notes),
    )


def _option_row(option: WhatIfOption, today: Estimates, metric: str) -> OptionRow:
    effects = {
        name: _option_effect(name, compared, today) for name, compared in option.metrics.items()
    }
    moved = "misses fixed: not known"
    if option.misses_mended is not None and option.new_misses is not None:
        fixed = pluralize(option.misses_mended, "miss", "misses")
        moved = f"{fixed} fixed, {option.new_misses:,} new"
    return OptionRow(
        name=option.name,
        what=option.what,
        main=effects.get(metric),
        changes=tuple(effects.values()),
        tokens=(
            format_estimate("context_tokens", option.context_tokens.get("today", NOT_COMPUTED)),
            format_estimate("context_tokens", option.context_tokens.get("b", NOT_COMPUTED)),
        ),
        avoided=format_estimate("unfaithful_avoided", option.unfaithful_avoided),
        moved=moved,
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


def _forecast_error(check: ForecastError) -> tuple[tuple[str, str], ...]:
    """The forecast of one option compared with regenerated answers, as labels and texts."""
    if not check.checked:
        return (("Not checked", check.error.reason or "no case was checked"),)
    forecast, measured = check.forecast, check.measured
    rows = (
        ("Option", check.option),
        ("Cases checked", f"{check.checked:,} of {check.affected:,} that it affects"),
        ("Avoided by the forecast", "" if forecast is None else format_number(round(forecast, 1))),
        ("Avoided in fact", "" if measured is None else format_number(measured)),
        ("Forecast less fact, a case", format_difference("error", check.error).text),
    )
    return tuple((label, text) for label, text in rows if text)
