"""The comparison of runs for the page, markdown and the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.documents import cutoff_of
from misslink.render.format import (
    FormattedEstimate,
    format_decimal,
    format_difference,
    format_estimate,
    format_number,
    format_p_value,
    format_share_of,
    pluralize,
    shorten,
)
from misslink.report.changed_cases import (
    CHANGES,
    MAX_CASES,
    ComparedCase,
    compare_cases,
    mode_changes,
)
from misslink.stats.run_comparison import SIGNIFICANCE_LEVEL
from misslink.types import Estimate, Run

_TEMPLATES = Path(__file__).resolve().parent / "templates"
SAME = "the same"
_LARGEST_DIFFERENCE = 1.0  # that two values between 0 and 1 can have
_MAX_NAMES = 3  # metrics or reasons that a sentence lists
_REASON_LENGTH = 160  # characters of a reason
_FAMILY_ROWS = 4  # of a family in the first table; the table of tests has all
# The families of metrics in the order in which they are read.
_FAMILIES = {
    "answer": ("Answers", "what people get"),
    "generation": ("Generation", "what the model makes of its passages"),
    "retrieval": ("Retrieval", "what the retriever finds"),
    "scores": ("Scores", "what the tables have"),
}
# With another number of passages these change whatever the retriever does.
_FOLLOWS_K = ("precision", "f1", "context_relevance", "context_precision")


@dataclass(frozen=True)
class ComparisonRow:
    """One metric of two runs, over the cases with a value in both; B minus A.

    ``verdict`` is 'better', 'worse', 'not significant' (among all that was tested), 'not enough
    data', 'the same', 'the same in the rest' (of cases with a value in both), 'not measured' or
    'other judge'. ``better`` and ``worse`` count the cases that flipped, and are None unless all
    values are yes or no. Texts are "" where there is nothing to say.
    """

    name: str
    level: str
    a: FormattedEstimate
    b: FormattedEstimate
    difference: FormattedEstimate
    gain: tuple[float, float, float] | None  # value and ends; more is better
    verdict: str
    tests: Mapping[str, float | None]  # p-values
    effect: str
    detectable: str
    n: int
    of: str
    left_out: str
    lower_is_better: bool
    better: int | None
    worse: int | None


@dataclass(frozen=True)
class RunComparison:
    """Comparison of one run with the first.

    ``rows`` are by family, answers first; in each, significant changes come first, the largest
    first. ``alike`` are the metrics that are
    equal in every case, ``unmeasured`` those without a value.
    """

    name: str
    headline: str
    passed: Mapping[str, Any]
    paired: int
    faults: tuple[str, ...]
    notes: tuple[str, ...]
    rows: tuple[ComparisonRow, ...]
    alike: tuple[ComparisonRow, ...]
    unmeasured: tuple[ComparisonRow, ...]
    corrected: tuple[tuple[str, FormattedEstimate, FormattedEstimate, FormattedEstimate, int], ...]
    failures: Mapping[str, Any]
    mode_moves: tuple[tuple[str, str, int], ...]
    preferred: Mapping[str, Any] | None
    preferences: tuple[str, ...]

    @property
    def families(self) -> tuple[tuple[str, str, tuple[ComparisonRow, ...]], ...]:
        """The first rows of each family of metrics: its title, what it is about, the rows."""
        groups = (
            (*words, tuple(row for row in self.rows if row.level == level)[:_FAMILY_ROWS])
            for level, words in _FAMILIES.items()
        )
        return tuple(group for group in groups if group[2])

    @property
    def outcomes(self) -> tuple[tuple[str, int, str], ...]:
        """How many answers are broken, fixed, and fail or pass in both runs: (label, n, kind)."""
        if not self.passed["n"]:
            return ()
        fixed, broken = len(self.passed["fixed"]), len(self.passed["broken"])
        still = self.passed["n"] * self.passed["a"]["value"] - broken
        failing = self.passed["n"] - fixed - broken - round(still)
        counts = (broken, failing, fixed, round(still))
        labels = ("broken", "fail in both", "fixed", "pass in both")
        kinds = ("broken", "failing", "fixed", "passing")
        return tuple(row for row in zip(labels, counts, kinds, strict=True) if row[1])


@dataclass(frozen=True)
class ComparisonPage:
    """Everything that is shown of a comparison; ``runs`` are a name and a link ("" if none).

    ``tested`` is how many tests were made of each level; ``counts`` how many cases there are of each change.
    """

    headline: str
    runs: tuple[tuple[str, str], ...]
    tested: Mapping[str, int]
    comparisons: tuple[RunComparison, ...]
    cases: tuple[ComparedCase, ...]
    counts: Mapping[str, int]

    labels = CHANGES

    @property
    def tests(self) -> str:
        """Such as "retrieval 5 tests, answer 1 test"."""
        return ", ".join(f"{level} {pluralize(n, 'test')}" for level, n in self.tested.items())

    @property
    def title(self) -> str:
        """Such as "wider, hybrid against chain"."""
        names = [name for name, _ in self.runs]
        return f"{', '.join(names[1:])} against {names[0]}"

    @property
    def filters(self) -> tuple[tuple[str, str, tuple[tuple[str, str, int], ...]], ...]:
        """The filters of the cases: key, label and options (value, label, cases)."""
        change = [(name, CHANGES[name], count) for name, count in self.counts.items()]
        by_value = {
            key: Counter(value for case in self.cases for value in set(case.data[key]))
            for key in ("failure", "metric")
        }
        return (
            ("change", "Change", tuple(change)),
            ("failure", "Failure mode", _options(by_value["failure"])),
            ("metric", "Changed metric", _options(by_value["metric"])),
        )


def _options(counts: Mapping[str, int]) -> tuple[tuple[str, str, int], ...]:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple((value, value, count) for value, count in ordered)


def build_comparison_page(
    document: Mapping[str, Any],
    runs: Mapping[str, Run],
    reports: Mapping[str, str] | None = None,
) -> ComparisonPage:
    """Turn what `misslink.comparison.compare_runs.compare_runs` returned into what people read.

    Parameters
    ----------
    document : mapping
    runs : mapping of str to Run
        By folder, for questions and answers.
    reports : mapping of str to str or None
        Folder to the address of its report, seen from the page; a run without one has no links.
    """
    names, comparisons = document["names"], document["comparisons"]
    folders = [document["a"], *(comparison["b"] for comparison in comparisons)]
    addresses = [(reports or {}).get(folder, "") for folder in folders]
    tested = Counter(
        metric["level"]
        for comparison in comparisons
        for metric in comparison["metrics"].values()
        if metric["p"] is not None
    )
    sections = tuple(
        _run_comparison((names[0], name), comparison, other_k=len({*map(cutoff_of, pair)}) > 1)
        for name, comparison in zip(names[1:], comparisons, strict=True)
        for pair in [(runs[document["a"]], runs[comparison["b"]])]
    )
    cases = compare_cases(document, [runs[folder] for folder in folders], addresses)
    counts = Counter(case.change for case in cases)
    return ComparisonPage(
        headline=sections[0].headline if len(sections) == 1 else _rank_runs(names, sections),
        runs=tuple(zip(names, addresses, strict=True)),
        tested=tested,
        comparisons=sections,
        cases=tuple(cases[:MAX_CASES]),
        counts={change: counts[change] for change in CHANGES if counts[change]},
    )


def render_comparison_page(page: ComparisonPage) -> str:
    """Turn the page into HTML: everything escaped, only the page's own style and script allowed."""
    from misslink.render.html import read_assets, render_template

    style = read_assets(_TEMPLATES, "report.css", "explorer.css", "comparison.css")
    script = f'"use strict";\n{{\n{read_assets(_TEMPLATES, "report.js", "comparison.js")}}}\n'
    return render_template(_TEMPLATES / "comparison.jinja", page, style=style, script=script)


def comparison_markdown(page: ComparisonPage, *, page_at: str = "") -> str:
    """Write the comparison as markdown; every text under test is text in it and no more.

    Parameters
    ----------
    page : ComparisonPage
    page_at : str
        The address of the same comparison as HTML, seen from the markdown. "": nothing is linked
        to it.
    """
    from misslink.render.html import render_markdown_template

    return render_markdown_template(_TEMPLATES / "comparison.md.jinja", page=page, page_at=page_at)


def _run_comparison(
    names: tuple[str, str], comparison: Mapping[str, Any], *, other_k: bool
) -> RunComparison:
    flips = {
        name: (len(ways["better"]), len(ways["worse"]))
        for name, ways in comparison["flipped"].items()
    }
    rows = [
        _metric_row(name, metric, comparison["paired"], names, flips.get(name, (None, None)))
        for name, metric in comparison["metrics"].items()
    ]
    levels = list(_FAMILIES)
    measured = sorted(
        (row for row in rows if row.difference.measured),
        key=lambda row: (
            levels.index(row.level),
            row.verdict not in ("better", "worse"),
            -abs(comparison["metrics"][row.name]["difference"]["value"]),
        ),
    )
    passed = comparison["passed"]
    if passed["fixed"] or passed["broken"]:  # it is the first of the answers
        turned = len(passed["fixed"]), len(passed["broken"])
        metric = {**passed, "level": "answer", "left_out": None}
        row = _metric_row("passed", metric, comparison["paired"], names, turned)
        measured = [row, *measured] if row.difference.measured else measured
    # A verdict that is skipped is no fault.
    skipped = [group for group in comparison["lacking"] if _is_skipped(group)]
    faults = [group for group in comparison["lacking"] if not _is_skipped(group)]
    leading = [
        row for row in measured if not (other_k and row.name.partition("@")[0] in _FOLLOWS_K)
    ]
    headline = _headline(names, comparison, [row for row in leading if row.name != "passed"])
    if faults:  # they come first, because the other cases may be the easy ones
        headline = f"{_missing_sentence(names, faults[0])}. {headline}"
    if comparison["left_out"]:  # and what is compared before all
        headline = f"Over {pluralize(comparison['paired'], 'shared case')}: {headline}"
    return RunComparison(
        name=names[1],
        headline=headline,
        passed=comparison["passed"],
        paired=comparison["paired"],
        faults=tuple(_missing_sentences(names, faults)),
        notes=(*_missing_sentences(names, skipped), *comparison["notes"]),
        rows=tuple(row for row in measured if row.verdict != SAME),
        alike=tuple(row for row in measured if row.verdict == SAME),
        unmeasured=tuple(row for row in rows if not row.difference.measured),
        corrected=tuple(_corrected_rows(comparison["metrics"])),
        failures=comparison["failures"],
        mode_moves=tuple(mode_changes(comparison["failures"])),
        preferred=comparison["preference"],
        preferences=tuple(describe_preferences(names, comparison["preference"])),
    )


def _is_skipped(group: Mapping[str, Any]) -> bool:
    return str(group["reason"]).startswith(("skipped: ", "its verdict does not have"))


def _headline(
    names: tuple[str, str], comparison: Mapping[str, Any], rows: Sequence[ComparisonRow]
) -> str:
    """Say which run passes more answers, else what the metrics show."""
    (a, b), passed = names, comparison["passed"]
    metrics = _significant_metrics(names, rows)
    if not passed["n"]:
        same = rows and all(row.verdict.startswith(SAME) for row in rows)
        few = f"Not enough data to tell {b} from {a} on {pluralize(comparison['paired'], 'case')}."
        return metrics or (
            f"{b} and {a} do not differ in any case with a value in both." if same else few
        )
    before, after = (round(passed[run]["value"] * passed["n"]) for run in ("a", "b"))
    verb = "passes" if after == 1 else "pass"
    answers = f"{after:,} of {pluralize(passed['n'], 'answer')} {verb}"
    flips = f"{len(passed['fixed']):,} fixed, {len(passed['broken']):,} broken."
    if passed["winner"] == "b":
        return f"{b} beats {a}: {answers}, up from {before:,}. {flips}"
    if passed["winner"] == "a":
        return f"{b} is worse than {a}: {answers}, down from {before:,}. {flips}"
    if not comparison["same_judge"]:
        return (
            f"{a} and {b} have other judges, so neither wins: {answers}, {before:,} in {a}. {flips}"
        )
    if not passed["fixed"] and not passed["broken"]:
        return f"{b} passes the same answers as {a}: {after:,} of {passed['n']:,}."
    counts = f"{answers}, {before:,} in {a}. {flips}"
    if metrics:
        return f"Not enough data on answers: {counts} But {metrics}"
    return f"Not enough data to tell {b} from {a}: {counts}"


def _significant_metrics(names: tuple[str, str], rows: Sequence[ComparisonRow]) -> str:
    """Name the metrics with a winner; "" if there is none."""
    found = [row for row in rows if row.verdict in ("better", "worse")]
    # Of several the table has the sizes: a headline of ten numbers is not read.
    texts = {
        row.name: row.name if found[1:] else f"{row.name} ({row.difference.brief})" for row in found
    }
    better, worse = (
        _join_names(texts[row.name] for row in found if row.verdict == verdict)
        for verdict in ("better", "worse")
    )
    if better and worse:
        return f"{names[1]} is better than {names[0]} on {better}, and worse on {worse}."
    verdict = "better" if better else "worse"
    return f"{names[1]} is {verdict} than {names[0]} on {better or worse}." if found else ""


def _rank_runs(names: Sequence[str], comparisons: Sequence[RunComparison]) -> str:
    """Order several runs by how many answers pass, over the cases judged in each pair."""
    if not all(comparison.passed["n"] for comparison in comparisons):
        return f"{pluralize(len(names), 'run')} of {pluralize(comparisons[0].paired, 'question')}."
    shares = [(names[0], comparisons[0].passed["a"]["value"], comparisons[0].passed["n"])]
    shares += [(one.name, one.passed["b"]["value"], one.passed["n"]) for one in comparisons]
    (best, share, n), *others = sorted(shares, key=lambda row: -row[1])
    if len({(round(value * of), of) for _, value, of in shares}) == 1:
        return f"All {len(names):,} runs pass equally many: {round(share * n):,} of {pluralize(n, 'answer')}."
    rest = ", ".join(f"{name} {round(value * of):,}" for name, value, of in others)
    return f"{best} passes most: {round(share * n):,} of {pluralize(n, 'answer')}; {rest}."


def _missing_sentences(
    names: tuple[str, str], groups: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Say which cases have a value in one run only, and in which metrics."""
    for group in groups[:_MAX_NAMES]:
        yield f"{_missing_sentence(names, group)}: {_join_names(group['metrics'])}."
    if (more := len(groups) - _MAX_NAMES) > 0:
        yield f"{pluralize(more, 'more reason')} in the JSON of the same command."


def _missing_sentence(names: tuple[str, str], group: Mapping[str, Any]) -> str:
    """Such as "12 cases of chain have no value in wider (the app failed)"."""
    run, other = names if group["run"] == "a" else names[::-1]
    count, reason = len(group["cases"]), shorten(group["reason"], _REASON_LENGTH)
    verb = "has" if count == 1 else "have"
    return f"{pluralize(count, 'case')} of {other} {verb} no value in {run} ({reason})"


def _join_names(names: Iterable[str]) -> str:
    listed = list(names)
    more = len(listed) - _MAX_NAMES
    return ", ".join(listed[:_MAX_NAMES]) + (f" and {more} more" if more > 0 else "")


def _corrected_rows(
    metrics: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, FormattedEstimate, FormattedEstimate, FormattedEstimate, int]]:
    """The shares corrected for the judge's errors: name, both runs, difference, labels."""
    for name, metric in metrics.items():
        if corrected := metric.get("corrected"):
            a, b, difference = (
                Estimate.model_validate(corrected[key]) for key in ("a", "b", "difference")
            )
            shown = format_estimate(name, a), format_estimate(name, b)
            yield name, *shown, format_difference(name, difference), corrected["labels"]


def _metric_row(
    name: str,
    metric: Mapping[str, Any],
    paired: int,
    names: tuple[str, str],
    flips: tuple[int | None, int | None],
) -> ComparisonRow:
    a, b, difference = (Estimate.model_validate(metric[key]) for key in ("a", "b", "difference"))
    sign = -1 if metric["lower_is_better"] else 1
    gain = None
    if difference.value is not None and difference.low is not None and difference.high is not None:
        low, high = sorted((sign * difference.low, sign * difference.high))
        gain = sign * difference.value, low, high
    return ComparisonRow(
        name=name,
        level=metric["level"],
        a=format_estimate(name, a),
        b=format_estimate(name, b),
        difference=format_difference(name, difference),
        gain=gain,
        verdict=_row_verdict(metric),
        tests={
            "holm": metric["p_holm"],
            "sign_flips": metric["p"],
            "t_test": metric["t_test"]["p"],
            "mcnemar": (metric["mcnemar"] or {"p": None})["p"],
        },
        effect=_effect_size(metric),
        detectable=_detectable_effect(name, metric["detectable"]),
        n=metric["n"],
        of="" if metric["n"] == paired else f"{metric['n']:,} of {pluralize(paired, 'case')}",
        left_out=_missing_cases(metric["left_out"], names),
        lower_is_better=metric["lower_is_better"],
        better=flips[0],
        worse=flips[1],
    )


def _row_verdict(metric: Mapping[str, Any]) -> str:
    if metric["winner"] is not None:
        return "better" if metric["winner"] == "b" else "worse"
    if metric["p"] is None:
        return "not measured"
    if metric["p_holm"] < SIGNIFICANCE_LEVEL:
        return "other judge"
    if metric["p"] < SIGNIFICANCE_LEVEL:  # alone, and not among all that was tested
        return "not significant"
    # The differences may cancel out; alike are only runs in which no case differs.
    if metric["difference"]["value"] != 0 or metric["detectable"] is not None:
        return "not enough data"
    omitted = metric["left_out"]
    return f"{SAME} in the rest" if omitted and omitted["in_a"] + omitted["in_b"] else SAME


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
    if value > _LARGEST_DIFFERENCE:
        return "none of any size"
    written = format_difference(
        name, Estimate(value=value, low=None, high=None, n=1, method="", reason="a threshold")
    )
    return written.value.lstrip("+")


def _missing_cases(left_out: Mapping[str, Any] | None, names: tuple[str, str]) -> str:
    """How many cases are without a value in both, which run alone has one, and why."""
    if left_out is None:
        return ""
    total = left_out["in_a"] + left_out["in_b"] + left_out["in_both"]
    sides = ((names[0], left_out["in_b"]), (names[1], left_out["in_a"]))
    alone = [f"{count:,} with a value in {side} alone" for side, count in sides if count]
    reasons = dict.fromkeys(shorten(row["reason"], _REASON_LENGTH) for row in left_out["reasons"])
    counts = ", ".join([f"{pluralize(total, 'case')} left out", *alone])
    return f"{counts}: {'; '.join(reasons)}"


def describe_preferences(
    names: tuple[str, str], preferences: Mapping[str, Any] | None
) -> Iterator[str]:
    """Say which answers a judge preferred, and how far the order decided."""
    if preferences is None:
        return
    share = Estimate.model_validate(preferences["preference"])
    flips = Estimate.model_validate(preferences["position_flips"])
    p = f", {format_p_value(preferences['p'])} (sign test)" if preferences["p"] is not None else ""
    if share.value is None:
        yield f"No preference: {share.reason}."
    else:
        cases = format_share_of(share, "decided case")
        yield f"The judge preferred {names[1]} in {cases}{p}."
    if flips.value is None:
        yield f"How far the order of the two answers decides is not known: {flips.reason}."
    else:
        pairs = format_share_of(flips, "pair")
        yield f"Only the order of the two answers decided in {pairs}."
    if preferences["identical"]:
        yield f"{pluralize(preferences['identical'], 'tie')} between identical answers."
    if omitted := sum(preferences["left_out"].values()) + preferences["not_asked"]:
        why = [*preferences["left_out"], *(["not asked"] if preferences["not_asked"] else [])]
        yield f"{pluralize(omitted, 'case')} left out: {'; '.join(why)}."
