"""What  misslink retrieval  found, as tables for people, in 80 columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from misslink.cli.output import cell, encodable, plain, say

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from misslink.report.rank_plot import Chart

__all__ = ["print_chart", "print_comparison", "print_per_query", "print_run"]

_DIGITS = 4  # what trec_eval prints
_NONE = "none"


def print_run(console: Console, name: str, document: Mapping[str, Any]) -> None:
    """Print the metrics of one run, what was counted, what to beware of, and its slices.

    Parameters
    ----------
    console : Console
    name : str
    document : mapping
        As `misslink.cli.retrieval_document.document_of` makes it.
    """
    say(console, name, "bold")
    bounds = document.get("bounds")
    last = ("lowest", "highest") if bounds else ()
    table = _table("metric", "mean", "95 % interval", "n", *last)
    for metric, found in document["metrics"].items():
        ends = [bounds[metric][end] for end in ("low", "high")] if bounds else []
        cells = (metric, _number(found), _interval(found), f"{found['n']:,}", *map(_number, ends))
        table.add_row(*(cell(console, text) for text in cells))
    console.print(table)
    for text in _counted(document):
        say(console, text)
    for metric, found in document["metrics"].items():
        if found["reason"]:
            say(console, f"{metric}: {found['reason']}.")
    for column, groups in document.get("slices", {}).items():
        _print_slices(console, column, groups)
    for text in document["warnings"]:
        say(console, f"Warning: {text}", "yellow")
    console.print()


def print_per_query(console: Console, document: Mapping[str, Any]) -> None:
    """Print every value, apart by tabs, so that other programs can read it."""
    metrics = list(document["metrics"])
    print("\t".join(["query", *metrics]))
    for query, values in document["per_query"].items():
        numbers = (_NONE if values[name] is None else f"{values[name]:.4f}" for name in metrics)
        print("\t".join([encodable(plain(query), console.encoding), *numbers]))


def print_comparison(console: Console, document: Mapping[str, Any], one: Mapping[str, Any]) -> None:
    """Print one further run held against the first: differences, tests and what turned.

    Parameters
    ----------
    console : Console
    document : mapping
        As `misslink.cli.retrieval_document.compared` makes it.
    one : mapping
        One of its ``comparisons``.
    """
    say(console, f"{one['letter']} {one['b']} against A {document['a']}", "bold")
    table = _table("metric", "A", one["letter"], "difference [95 %]", "p Holm", "", "n")
    tests = _table("metric", "p", "t-test", "Wilcoxon", "McNemar", "d_z", "detectable")
    for metric, found in one["metrics"].items():
        difference = found["difference"]
        cells = (
            *(metric, _number(found["a"]), _number(found["b"])),
            f"{_signed(difference)} {_interval(difference, digits=3)}".rstrip(),
            *(_p(found["p_holm"]), _verdict(found), f"{found['n']:,}"),
        )
        table.add_row(*(cell(console, text) for text in cells))
        mcnemar = found["mcnemar"]
        own = (found["p"], found["t_test"]["p"], found["wilcoxon"]["p"], mcnemar and mcnemar["p"])
        if found["effect"]["value"] is not None:
            sizes = (found["effect"]["value"], found["detectable"])
            cells = (metric, *map(_p, own), _minus(f"{sizes[0]:.2f}"), _detectable(sizes[1]))
            tests.add_row(*(cell(console, text) for text in cells))
    console.print(table)
    if tests.row_count:
        console.print(tests)
        say(
            console,
            "p is of the randomisation test (sign flips). It and the tests beside it are not "
            "corrected; p Holm is, over all metrics and runs. d_z is Cohen's, of paired "
            "differences. Detectable: what so many queries show in 4 of 5 repetitions.",
        )
    for metric, turned in one["flipped"].items():
        better, worse = len(turned["better"]), len(turned["worse"])
        if better or worse:
            say(console, f"{metric}: {better:,} queries better, {worse:,} worse.")
    console.print()


def print_chart(console: Console, chart: Chart) -> None:
    """Print a chart with characters that the terminal knows."""
    from misslink.report.rank_plot import characters

    for line in characters(chart, encoding=console.encoding):
        say(console, line)
    console.print()


def _table(*columns: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        left = name in ("metric", "95 % interval", "difference [95 %]", "")
        table.add_column(name, justify="left" if left else "right", overflow="fold")
    return table


def _print_slices(console: Console, column: str, groups: Mapping[str, Any]) -> None:
    """The groups under one another, metric by metric: beside one another they take 80 columns."""
    table = _table("metric", column, "mean", "95 % interval", "n")
    table.columns[1].justify = "left"
    for metric in next(iter(groups.values()))["metrics"]:
        table.add_section()
        for place, (group, found) in enumerate(groups.items()):
            own = found["metrics"][metric]
            name = metric if place == 0 else ""
            cells = (name, group, _number(own), _interval(own), f"{own['n']:,}")
            table.add_row(*(cell(console, text) for text in cells))
    console.print(table)
    means = [found for own in groups.values() for found in own["metrics"].values()]
    lacking = [found["reason"] for found in means if found["n"] and found["low"] is None]
    for reason in dict.fromkeys(filter(None, lacking)):
        say(console, f"Without an interval: {reason}.")


def _counted(document: Mapping[str, Any]) -> list[str]:
    """What was counted, a sentence each; what there is none of is not told."""
    counts = document["counts"]
    told = [f"{_queries(counts['queries'])} in the qrels, {counts['evaluated']:,} evaluated."]
    sentences = {
        "without_relevant": "{} without a relevant document: no value there but of judged@k.",
        "failed": "{} with a trace that tells no retrieval (an error, say): no value.",
        "missing_from_run": "{} missing from the run: counted as 0.",
        "not_in_qrels": "{} of the run not in the qrels: passed over.",
    }
    told += [text.format(_queries(counts[key])) for key, text in sentences.items() if counts[key]]
    share = counts["judged_at_10"]
    if share is not None:
        told.append(f"Of the first 10 documents {100 * share:.0f} % were ever judged.")
    if cluster := document.get("cluster"):
        told.append(
            f"Intervals draw the {cluster['clusters']:,} clusters of '{cluster['column']}'."
        )
    return told


def _queries(count: int) -> str:
    return f"{count:,} {'query' if count == 1 else 'queries'}"


def _number(found: Mapping[str, Any]) -> str:
    return _NONE if found["value"] is None else f"{found['value']:.{_DIGITS}f}"


def _signed(found: Mapping[str, Any]) -> str:
    return _NONE if found["value"] is None else _minus(f"{found['value']:+.3f}")


def _interval(found: Mapping[str, Any], *, digits: int = _DIGITS) -> str:
    if found["low"] is None or found["high"] is None:
        return ""
    return _minus(f"[{found['low']:.{digits}f}, {found['high']:.{digits}f}]")


def _minus(text: str) -> str:
    return text.replace("-", "\N{MINUS SIGN}")


def _p(p: float | None) -> str:
    from misslink.stats.written import p_value

    return "" if p is None else p_value(p).removeprefix("p = ").removeprefix("p ")


def _verdict(found: Mapping[str, Any]) -> str:
    if found["winner"] is not None:
        return "better" if found["winner"] == "b" else "worse"
    if found["p"] is None:
        return _NONE
    same = found["difference"]["value"] == 0 and found["detectable"] is None
    return "same" if same else "chance"


def _detectable(value: float | None) -> str:
    if value is None:
        return "not known"
    return f"{value:.3f}" if value <= 1 else "none"
