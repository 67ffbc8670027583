"""Results of what-if: other retrieval options on the same questions."""

from __future__ import annotations

from collections.abc import Iterator
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
    """One retrieval option: its main metric, all of its metrics, context tokens before and after."""

    option: WhatIfOption
    main: OptionEffect | None
    changes: tuple[OptionEffect, ...]
    tokens: tuple[FormattedEstimate, ...]


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
    rows = []
    for option in whatif.options:
        effects = {name: _option_effect(name, m, today) for name, m in option.metrics.items()}
        tokens = (option.context_tokens.get(name, NOT_COMPUTED) for name in ("today", "b"))
        rows.append(
            OptionRow(
                option,
                effects.get(metric),
                tuple(effects.values()),
                tuple(format_estimate("context_tokens", count) for count in tokens),
            )
        )
    return WhatIfTable(
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
        verdict=_VERDICTS.get(compared.winner, untested),
        p=format_p_value(compared.p_holm),
    )


def _check_rows(check: OptionCheck | None) -> Iterator[tuple[str, str]]:
    """The cases of one option that were run again, as labels and texts."""
    if check is None:
        return
    yield "Option", check.option
    strata = (check.changed, "that it changes"), (check.unchanged, "that it leaves as they are")
    for counts, which in strata:
        cases, checked, before, after = (
            counts.get(name, 0) for name in ("cases", "checked", "failed_before", "failed_after")
        )
        text = f"{checked:,} of {pluralize(cases, 'case')} run again: {before:,} failed before, "
        yield f"Cases {which}", f"{text}{after:,} after"
    if check.reason:
        yield "Not run again", check.reason
