"""The comparison of runs for the page, markdown and the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Any

from misslink.render.format import (
    FormattedEstimate,
    format_decimal,
    format_difference,
    format_estimate,
    format_number,
    format_p_value,
    format_points,
    pluralize,
    shorten,
)
from misslink.report.changed_cases import (
    CaseCount,
    ChangedCase,
    ModeTransitions,
    find_changed_cases,
    mode_transitions,
)
from misslink.stats.run_comparison import SIGNIFICANCE_LEVEL
from misslink.types import Estimate, Run

SAME = "the same"
SAME_EXCEPT_MISSING = "the same in the rest"
OTHER_JUDGE = "other judge"
LARGEST_DIFFERENCE = 1.0  # difference that two values between 0 and 1 can have
_REASON_LENGTH = 160  # characters of a reason why a case has no value


@dataclass(frozen=True)
class ComparisonRow:
    """One metric of two runs.

    Parameters
    ----------
    name, level : str
    a, b, difference : FormattedEstimate
        Over the cases that have a value in both runs; b minus a.
    verdict : {'better', 'worse', 'within chance', 'the same', 'the same in the rest', \
'not measured', 'other judge'}
        Of B beside A; 'the rest' are the cases with a value in both, where some have it in one.
    p, p_holm, t_test, mcnemar : str
        "" where there is none.
    d_z, effect, detectable : str
        Cohen's d_z, "" where there is none; the same with what turned, or why there is none.
        Detectable at the level that Holm leaves; "" where it cannot be told.
    n : int
    of : str
        Such as "20 of 23 cases" where not all cases have a value in both; else "".
    left_out : str
        How many cases have no value, and why; "" where all have.
    lower_is_better : bool
    shows : float or None
        What is detectable, as a number.
    better, worse : Cell or None
        How many cases flipped, of yes-or-no values.
    """

    name: str
    level: str
    a: FormattedEstimate
    b: FormattedEstimate
    difference: FormattedEstimate
    verdict: str
    p: str
    p_holm: str
    t_test: str
    mcnemar: str
    d_z: str
    effect: str
    detectable: str
    n: int
    of: str
    left_out: str
    lower_is_better: bool
    shows: float | None
    better: CaseCount | None = None
    worse: CaseCount | None = None


@dataclass(frozen=True)
class CorrectedComparisonRow:
    """A share of good answers of two runs as people would call it; b minus a.

    Parameters
    ----------
    name : str
    a, b, difference : FormattedEstimate
        Over the cases that have a verdict in both runs.
    labels : int
        Labelled cases that the judge's error rates rest on.
    """

    name: str
    a: FormattedEstimate
    b: FormattedEstimate
    difference: FormattedEstimate
    labels: int

    def sentence(self, letter: str) -> str:
        """The row in a sentence, `letter` being the further run's."""
        basis = f"corrected for the judge's errors by {pluralize(self.labels, 'label')}"
        if not self.difference.measured:
            return f"{self.name} could not be {basis}: {self.difference.reason}."
        return (
            f"{self.name}, {basis}: A {self.a.brief}, {letter} {self.b.brief}, difference "
            f"{self.difference.brief}."
        )


def build_corrected_row(
    name: str, corrected: Mapping[str, Any] | None
) -> CorrectedComparisonRow | None:
    """Turn the corrected share of a metric into a row; None where it has none.

    Parameters
    ----------
    name : str
    found : mapping or None
        As `misslink.compare.compare_runs.compare_runs` has it under ``corrected``.
    """
    if corrected is None:
        return None
    a, b, difference = (Estimate.model_validate(corrected[key]) for key in ("a", "b", "difference"))
    return CorrectedComparisonRow(
        name,
        format_estimate(name, a),
        format_estimate(name, b),
        format_difference(name, difference),
        corrected["labels"],
    )


def build_row(name: str, metric: Mapping[str, Any], paired: int, letter: str) -> ComparisonRow:
    """Turn one metric of a comparison into a row.

    Parameters
    ----------
    name : str
    found : mapping
        As `misslink.compare.compare_runs.compare_runs` has it.
    paired : int
        How many cases are compared.
    letter : str
        Of the further run.
    """
    a, b, difference = (Estimate.model_validate(metric[key]) for key in ("a", "b", "difference"))
    test, mcnemar = metric["t_test"], metric["mcnemar"]
    return ComparisonRow(
        name=name,
        level=metric["level"],
        a=format_estimate(name, a),
        b=format_estimate(name, b),
        difference=format_difference(name, difference),
        verdict=_row_verdict(metric),
        p=format_p_value(metric["p"]),
        p_holm=format_p_value(metric["p_holm"]),
        t_test=format_p_value(test["p"]),
        mcnemar="" if mcnemar is None else format_p_value(mcnemar["p"]),
        d_z="" if metric["effect"]["value"] is None else format_decimal(metric["effect"]["value"]),
        effect=_effect_size(metric),
        detectable=_detectable_effect(name, metric["detectable"]),
        n=metric["n"],
        of="" if metric["n"] == paired else f"{metric['n']:,} of {pluralize(paired, 'case')}",
        left_out=_missing_cases(metric["left_out"], letter),
        lower_is_better=metric["lower_is_better"],
        shows=metric["detectable"],
    )


def _row_verdict(metric: Mapping[str, Any]) -> str:
    if metric["winner"] is not None:
        return "better" if metric["winner"] == "b" else "worse"
    if metric["p"] is None:
        return "not measured"
    if metric["p_holm"] < SIGNIFICANCE_LEVEL:
        return OTHER_JUDGE
    # The differences may cancel out; alike are only runs in which no case differs.
    if metric["difference"]["value"] != 0 or metric["detectable"] is not None:
        return "within chance"
    omitted = metric["left_out"]
    return SAME_EXCEPT_MISSING if omitted and omitted["in_a"] + omitted["in_b"] else SAME


def _effect_size(metric: Mapping[str, Any]) -> str:
    """Cohen's d_z; of yes-or-no values also how many cases turned, and their odds."""
    effect, mcnemar = metric["effect"], metric["mcnemar"]
    value = effect["value"]
    text = f"none: {effect['reason']}" if value is None else f"d_z {format_decimal(value)}"
    if mcnemar is None or not mcnemar["gained"] + mcnemar["lost"]:
        return text
    odds = mcnemar["odds"]
    turned = f"{mcnemar['gained']:,} up, {mcnemar['lost']:,} down"
    if odds["value"] is not None:
        value, low, high = (format_number(odds[name]) for name in ("value", "low", "high"))
        turned += f", odds {value} [{low}, {high}]"
    return f"{text}; {turned}"


def _detectable_effect(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if value > LARGEST_DIFFERENCE:
        return "none of any size"
    written = format_difference(
        name, Estimate(value=value, low=None, high=None, n=1, method="", reason="a threshold")
    )
    return written.value.lstrip("+")


def _missing_cases(left_out: Mapping[str, Any] | None, letter: str) -> str:
    """How many cases are without a value in both, which run alone has one, and why."""
    if left_out is None:
        return ""
    text = (
        f"{pluralize(left_out['in_a'] + left_out['in_b'] + left_out['in_both'], 'case')} left out"
    )
    sides = (("A", left_out["in_b"]), (letter, left_out["in_a"]))
    alone = [f"{count:,} with a value in {side} alone" for side, count in sides if count]
    reasons = dict.fromkeys(shorten(row["reason"], _REASON_LENGTH) for row in left_out["reasons"])
    return f"{', '.join([text, *alone])}: {'; '.join(reasons)}"


_MAX_NAMES = 3  # metrics that are named, and reasons that are told
_REASON_LIMIT = 160  # characters of a reason


def summarize_comparison(
    letter: str,
    rows: Sequence[ComparisonRow],
    missing: Sequence[Mapping[str, Any]],
    paired: int,
    tested: int,
) -> str:
    """Say what the comparison shows, the metrics beyond chance by name.

    Parameters
    ----------
    letter : str
        Of the further run.
    rows : sequence of ComparisonRow
        Those with a value in both, those beyond chance first.
    found : sequence of mapping
        Cases with a value in one run alone, as `misslink.compare.missing_values.one_sided_missing_values` has them.
    paired, tested : int
        Cases that are compared, and tests that were made in all.

    Returns
    -------
    str
        What failed in one run alone stands first, since the rest may be its easy cases.
    """
    basis = f"{pluralize(paired, 'case')}, {pluralize(tested, 'test')}, Holm"
    lead = next(
        (f"{_leading_sentence(letter, group, rows)}. " for group in missing if _is_fault(group)), ""
    )
    sides = {
        verdict: [row for row in rows if row.verdict == verdict] for verdict in ("better", "worse")
    }
    if any(sides.values()):
        verdict_texts = [
            f"{verdict} than A on {_list_metrics(side)}" for verdict, side in sides.items() if side
        ]
        scope = " over the cases that both have" if lead else ""
        return f"{lead}{letter} is {' and '.join(verdict_texts)}, beyond chance{scope} ({basis})."
    verdicts = {row.verdict for row in rows}
    if OTHER_JUDGE in verdicts:
        return (
            f"{lead}A and {letter} differ beyond chance only where their judges differ ({basis})."
        )
    if verdicts == {SAME}:
        extent = (
            f"the {pluralize(len(rows), 'metric')} that both have"
            if missing
            else "everything that was measured"
        )
        return f"{lead}A and {letter} are alike in {extent} ({basis})."
    if verdicts and verdicts <= {SAME, SAME_EXCEPT_MISSING}:
        return f"{lead}No case that has a value in both A and {letter} differs ({basis})."
    nothing = f"Nothing measured differs between A and {letter} by more than chance ({basis})."
    return f"{lead}{nothing} {_power_sentence(rows, tested)}".rstrip()


def describe_missing(letter: str, missing: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say which cases have a value in one run alone, but for what already leads the finding."""
    lead = next((group for group in missing if _is_fault(group)), None)
    groups = [group for group in missing if group is not lead]
    sentences = [
        f"{_missing_sentence(letter, group)}: {_join_names(group['metrics'])}."
        for group in groups[:_MAX_NAMES]
    ]
    more = len(groups) - _MAX_NAMES
    if more > 0:
        sentences.append(f"{pluralize(more, 'more reason')} in the JSON of the same command.")
    return sentences


def _missing_sentence(letter: str, group: Mapping[str, Any]) -> str:
    """Such as "12 cases of A have no value in B (the app failed)"."""
    run, other = ("A", letter) if group["run"] == "a" else (letter, "A")
    count = len(group["cases"])
    verb = "has" if count == 1 else "have"
    reason = shorten(group["reason"], _REASON_LIMIT)
    return f"{pluralize(count, 'case')} of {other} {verb} no value in {run} ({reason})"


def _leading_sentence(letter: str, group: Mapping[str, Any], rows: Sequence[ComparisonRow]) -> str:
    """Return what is missing, with the names of the metrics unless all of them lack it."""
    sentence = _missing_sentence(letter, group)
    every = {row.name for row in rows} <= set(group["metrics"])
    return sentence if every else f"{sentence}: {_join_names(group['metrics'])}"


def _is_fault(group: Mapping[str, Any]) -> bool:
    """Whether something failed; a verdict that is skipped is no fault."""
    return not str(group["reason"]).startswith(("skipped: ", "its verdict does not have"))


def _power_sentence(rows: Sequence[ComparisonRow], tested: int) -> str:
    """What the cases could have shown; no metric is picked by how it came out."""
    detectable = [(row.shows, row) for row in rows if row.shows is not None]
    if not detectable:
        return ""
    possible = [pair for pair in detectable if pair[0] <= LARGEST_DIFFERENCE]
    level = " at the level that Holm leaves" if tested > 1 else ""
    if not possible:
        return f"So few cases show no difference of any size in 4 of 5 repetitions{level}."
    least, most = (pick(possible, key=lambda pair: pair[0])[1] for pick in (min, max))
    text = f"{least.name} would have to change by about {least.detectable}"
    if most is not least:
        text += f" and {most.name} by about {most.detectable}"
    if len(possible) > len({least.name, most.name}):
        text += ", others by something between"
    if none := len(detectable) - len(possible):
        text += f"; {pluralize(none, 'metric')} would show no difference of any size"
    return f"To be seen in 4 of 5 repetitions{level}, {text}."


def _list_metrics(rows: Sequence[ComparisonRow]) -> str:
    return _join_names([f"{row.name} ({row.difference.brief})" for row in rows])


def _join_names(names: Sequence[str]) -> str:
    text = ", ".join(names[:_MAX_NAMES])
    more = len(names) - _MAX_NAMES
    return f"{text} and {more} more" if more > 0 else text


@dataclass(frozen=True)
class PreferenceTable:
    """Which answers a judge preferred: rows of (label, A wins, B wins, ties), and what follows."""

    judge: str
    rows: tuple[tuple[str, int, int, int], ...]
    sentences: tuple[str, ...]


def read_preferences(letter: str, preferences: Mapping[str, Any] | None) -> PreferenceTable | None:
    """Return what is shown of the preferences of a comparison; None where there are none.

    Parameters
    ----------
    letter : str
        Of the further run.
    found : mapping or None
        As `misslink.compare.preferences.StoredPreferences.document` has it.
    """
    if preferences is None:
        return None
    rows = [("Both orders agree, else a tie", preferences["wins"])]
    rows += [("A shown first", preferences["by_order"]["a_first"])]
    rows += [(f"{letter} shown first", preferences["by_order"]["b_first"])]
    share = Estimate.model_validate(preferences["preference"])
    flips = Estimate.model_validate(preferences["position_flips"])
    p = f", {format_p_value(preferences['p'])} (sign test)" if preferences["p"] is not None else ""
    sentences = [
        f"{letter} was preferred in {_share_phrase('preference', share, 'decided case')}{p}.",
        f"The order decided, and nothing else, in {_share_phrase('flips', flips, 'pair')}.",
    ]
    if share.value is None:
        sentences[0] = f"No preference: {share.reason}."
    if flips.value is None:
        sentences[1] = f"How far the order decides is not known: {flips.reason}."
    if preferences["identical"]:
        sentences.append(f"{pluralize(preferences['identical'], 'tie')} between identical answers.")
    omitted = sum(preferences["left_out"].values()) + preferences["not_asked"]
    if omitted:
        why = "; ".join(
            [*preferences["left_out"], *(["not asked"] if preferences["not_asked"] else [])]
        )
        sentences.append(f"{pluralize(omitted, 'case')} left out: {why}.")
    return PreferenceTable(
        preferences["judge"],
        tuple((label, wins["a"], wins["b"], wins["tie"]) for label, wins in rows),
        tuple(sentences),
    )


def _share_phrase(name: str, share: Estimate, noun: str) -> str:
    """Such as "33% [6, 79] of the 3 decided cases"."""
    return f"{format_estimate(name, share).brief} of the {pluralize(share.n, noun)}"


_WIDTH, _LABEL_WIDTH, _MARGIN, _ROW_HEIGHT, _TOP = 640, 210, 24, 22, 26
_TICK_STEPS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0)  # where the axis may end
_LABEL_LENGTH = 30  # characters of a name


@dataclass(frozen=True)
class ForestRow:
    """One difference: where its line, its ends and its middle are."""

    name: str
    verdict: str
    y: float
    low: float
    high: float
    x: float


@dataclass(frozen=True)
class ForestTick:
    """A mark of the axis."""

    x: float
    label: str


@dataclass(frozen=True)
class ForestPlot:
    """A forest plot, in units of its view box; ``right`` is where the axis ends."""

    width: int
    height: int
    left: float
    right: float
    ticks: tuple[ForestTick, ...]
    whiskers: tuple[ForestRow, ...]


def draw_forest(rows: Sequence[tuple[str, str, Mapping[str, Any]]]) -> ForestPlot | None:
    """Lay out differences that have a bounded interval; None where there are none.

    Parameters
    ----------
    rows : sequence of (name, verdict, metric)
        A metric as `misslink.compare.compare_runs.compare_runs` has it.
    """
    drawn = [(name, verdict, metric["difference"]) for name, verdict, metric in rows]
    drawn = [row for row in drawn if None not in (row[2]["value"], row[2]["low"], row[2]["high"])]
    if not drawn:
        return None
    widest = max(max(abs(difference["low"]), abs(difference["high"])) for _, _, difference in drawn)
    limit = next((step for step in _TICK_STEPS if widest <= step), _TICK_STEPS[-1])
    span = _WIDTH - _LABEL_WIDTH - _MARGIN

    def x_position(value: float) -> float:
        inside = min(max(value, -limit), limit)
        return round(_LABEL_WIDTH + span * (inside + limit) / (2 * limit), 1)

    return ForestPlot(
        width=_WIDTH,
        height=_TOP + _ROW_HEIGHT * len(drawn) + 8,
        left=x_position(-limit),
        right=x_position(limit),
        ticks=tuple(ForestTick(x_position(x), format_points(x)) for x in (-limit, 0.0, limit)),
        whiskers=tuple(
            ForestRow(
                name=shorten(name, _LABEL_LENGTH),
                verdict=verdict,
                y=_TOP + _ROW_HEIGHT * (place + 0.5),
                low=x_position(difference["low"]),
                high=x_position(difference["high"]),
                x=x_position(difference["value"]),
            )
            for place, (name, verdict, difference) in enumerate(drawn)
        ),
    )


@dataclass(frozen=True)
class RunComparison:
    """Comparison of one run with the first run of the page.

    ``rows`` starts with significant changes, the largest first. ``alike`` has metrics that are
    equal in every case, ``unmeasured`` those without a value. ``more`` counts the changed cases not
    shown.
    """

    letter: str
    name: str
    paired: int
    finding: str
    notes: tuple[str, ...]
    rows: tuple[ComparisonRow, ...]
    alike: tuple[ComparisonRow, ...]
    unmeasured: tuple[ComparisonRow, ...]
    corrected: tuple[CorrectedComparisonRow, ...]
    forest: ForestPlot | None
    failures: ModeTransitions | None
    cases: tuple[ChangedCase, ...]
    more: int
    preferred: PreferenceTable | None


@dataclass(frozen=True)
class ComparisonPage:
    """Everything that is shown of a comparison; ``runs`` are letter, name and link ("" if none).

    ``tested`` is how many tests were made, ``left`` how many of them Holm's procedure leaves.
    """

    title: str
    runs: tuple[tuple[str, str, str], ...]
    tested: int
    left: int
    comparisons: tuple[RunComparison, ...]


def build_comparison_page(
    document: Mapping[str, Any],
    runs: Mapping[str, Run],
    reports: Mapping[str, str] | None = None,
) -> ComparisonPage:
    """Turn what `misslink.compare.compare_runs.compare_runs` found into what people read.

    Parameters
    ----------
    document : mapping
    runs : mapping of str to Run
        By name, for questions and answers.
    reports : mapping of str to str or None
        Run name to the address of its report, seen from the page; a run without one has no links.
    """
    links = reports or {}
    comparisons = document["comparisons"]
    names = [document["a"], *(comparison["b"] for comparison in comparisons)]
    tests = [
        m
        for comparison in comparisons
        for m in comparison["metrics"].values()
        if m["p"] is not None
    ]
    return ComparisonPage(
        title=" against ".join([", ".join(names[1:]), names[0]]),
        runs=tuple(
            (letter, name, links.get(name, ""))
            for letter, name in zip(ascii_uppercase, names, strict=False)
        ),
        tested=len(tests),
        left=max(1, sum(test["p_holm"] >= SIGNIFICANCE_LEVEL for test in tests)),
        comparisons=tuple(
            _run_comparison(letter, document["a"], comparison, runs, links, len(tests))
            for letter, comparison in zip(ascii_uppercase[1:], comparisons, strict=False)
        ),
    )


def render_comparison_page(page: ComparisonPage) -> str:
    """Turn the page into HTML: everything escaped, no script at all."""
    from misslink.render.html import read_assets, render_template

    folder = Path(__file__).resolve().parent / "templates"
    style = read_assets(folder, "report.css", "comparison.css")
    return render_template(folder / "comparison.jinja", page, style=style)


def _run_comparison(
    letter: str,
    first: str,
    comparison: Mapping[str, Any],
    runs: Mapping[str, Run],
    links: Mapping[str, str],
    tested: int,
) -> RunComparison:
    rows = [
        build_row(name, metric, comparison["paired"], letter)
        for name, metric in comparison["metrics"].items()
    ]
    measured = sorted(
        (row for row in rows if row.difference.measured),
        key=lambda row: (
            row.verdict not in ("better", "worse"),
            -abs(comparison["metrics"][row.name]["difference"]["value"]),
        ),
    )
    a, b = runs[first], runs[comparison["b"]]
    addresses = links.get(first, ""), links.get(comparison["b"], "")
    cases, more, cells = find_changed_cases(comparison, letter, (a, b), addresses)
    return RunComparison(
        letter=letter,
        name=comparison["b"],
        paired=comparison["paired"],
        finding=summarize_comparison(
            letter, measured, comparison["lacking"], comparison["paired"], tested
        ),
        notes=(*describe_missing(letter, comparison["lacking"]), *comparison["notes"]),
        rows=tuple(_with_case_links(row, cells) for row in measured if row.verdict != SAME),
        alike=tuple(row for row in measured if row.verdict == SAME),
        unmeasured=tuple(row for row in rows if not row.difference.measured),
        corrected=tuple(
            row
            for name, metric in comparison["metrics"].items()
            if (row := build_corrected_row(name, metric.get("corrected")))
        ),
        forest=draw_forest(
            [
                (row.name, row.verdict, comparison["metrics"][row.name])
                for row in measured
                if row.verdict != SAME
            ]
        ),
        failures=mode_transitions(comparison["failures"], b, addresses[1]),
        cases=cases,
        more=more,
        preferred=read_preferences(letter, comparison["preference"]),
    )


def _with_case_links(
    row: ComparisonRow, cells: Mapping[tuple[str, str], CaseCount]
) -> ComparisonRow:
    return replace(
        row, better=cells.get((row.name, "better")), worse=cells.get((row.name, "worse"))
    )
