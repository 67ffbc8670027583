"""A comparison of runs as data for people: a page, markdown and the terminal read the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

from misslink.report.flips import Cell, FlippedCase, Moves, flipped_cases, moves
from misslink.report.forest import Forest, forest
from misslink.report.preferred import Preferred, preferred
from misslink.report.wording import Shown, decimal, p_value, plural, shown, shown_difference
from misslink.types import Estimate, Run

__all__ = ["Comparison", "ComparisonPage", "Row", "build", "render"]

_TOLD = 3  # metrics that the headline names
_ALIKE = "the same"


@dataclass(frozen=True)
class Row:
    """One metric of two runs.

    Parameters
    ----------
    name, level : str
    a, b, difference : Shown
        Over the cases that have a value in both runs; b minus a.
    verdict : {'better', 'worse', 'within chance', 'the same', 'not measured'}
        Of B beside A.
    p, p_holm, t_test, mcnemar : str
        "" where there is none.
    effect, detectable : str
    n : int
    left_out : str
        How many cases have no value, and why; "" where all have.
    lower_is_better : bool
    size : float
        The difference without its sign; 0 where there is none.
    better, worse : Cell or None
        How many cases flipped, of yes-or-no values.
    """

    name: str
    level: str
    a: Shown
    b: Shown
    difference: Shown
    verdict: str
    p: str
    p_holm: str
    t_test: str
    mcnemar: str
    effect: str
    detectable: str
    n: int
    left_out: str
    lower_is_better: bool
    size: float
    better: Cell | None = None
    worse: Cell | None = None


@dataclass(frozen=True)
class Comparison:
    """One further run held against the first.

    Parameters
    ----------
    letter, name : str
    paired : int
    finding : str
        The outcome in a sentence or two.
    notes : tuple of str
    rows, alike, unmeasured : tuple of Row
        Beyond chance first, the biggest change first; apart from them those that are the same in
        every case, and those without a value.
    forest : Forest or None
    causes : Moves or None
    cases : tuple of FlippedCase
    more : int
        How many more cases changed than are shown.
    preferred : Preferred or None
    """

    letter: str
    name: str
    paired: int
    finding: str
    notes: tuple[str, ...]
    rows: tuple[Row, ...]
    alike: tuple[Row, ...]
    unmeasured: tuple[Row, ...]
    forest: Forest | None
    causes: Moves | None
    cases: tuple[FlippedCase, ...]
    more: int
    preferred: Preferred | None


@dataclass(frozen=True)
class ComparisonPage:
    """Everything that is shown of a comparison; ``runs`` are letter, name and link ("" if none)."""

    title: str
    runs: tuple[tuple[str, str, str], ...]
    tested: int
    comparisons: tuple[Comparison, ...]


def build(
    document: Mapping[str, Any],
    runs: Mapping[str, Run],
    reports: Mapping[str, str] | None = None,
) -> ComparisonPage:
    """Turn what `misslink.deciding.compare.compare` found into what people read.

    Parameters
    ----------
    document : mapping
    runs : mapping of str to Run
        By name, for questions and answers.
    reports : mapping of str to str or None
        Run name to the address of its report, seen from the page; a run without one has no links.
    """
    links = reports or {}
    found = document["comparisons"]
    names = [document["a"], *(one["b"] for one in found)]
    tests = [m for one in found for m in one["metrics"].values() if m["p"] is not None]
    return ComparisonPage(
        title=" against ".join([", ".join(names[1:]), names[0]]),
        runs=tuple(
            (letter, name, links.get(name, ""))
            for letter, name in zip(ascii_uppercase, names, strict=False)
        ),
        tested=len(tests),
        comparisons=tuple(
            _comparison(letter, document["a"], one, runs, links, len(tests))
            for letter, one in zip(ascii_uppercase[1:], found, strict=False)
        ),
    )


def render(page: ComparisonPage) -> str:
    """Turn the page into HTML: everything escaped, no script at all."""
    from misslink.report.html import asset, fill

    return fill("comparison.jinja", page, style=asset("report.css") + asset("comparison.css"))


def _comparison(
    letter: str,
    first: str,
    found: Mapping[str, Any],
    runs: Mapping[str, Run],
    links: Mapping[str, str],
    tested: int,
) -> Comparison:
    rows = [_row(name, metric) for name, metric in found["metrics"].items()]
    measured = sorted(
        (row for row in rows if row.difference.measured),
        key=lambda row: (row.verdict not in ("better", "worse"), -row.size),
    )
    a, b = runs[first], runs[found["b"]]
    addresses = links.get(first, ""), links.get(found["b"], "")
    cases, more, cells = flipped_cases(found, letter, (a, b), addresses)
    return Comparison(
        letter=letter,
        name=found["b"],
        paired=found["paired"],
        finding=_finding(letter, measured, found["paired"], tested),
        notes=tuple(found["notes"]),
        rows=tuple(_with_flips(row, cells) for row in measured if row.verdict != _ALIKE),
        alike=tuple(row for row in measured if row.verdict == _ALIKE),
        unmeasured=tuple(row for row in rows if not row.difference.measured),
        forest=forest(
            [
                (row.name, row.verdict, found["metrics"][row.name])
                for row in measured
                if row.verdict != _ALIKE
            ]
        ),
        causes=moves(found["causes"], b, addresses[1]),
        cases=cases,
        more=more,
        preferred=preferred(letter, found["preference"]),
    )


def _row(name: str, found: Mapping[str, Any]) -> Row:
    a, b, difference = (Estimate.model_validate(found[key]) for key in ("a", "b", "difference"))
    test, mcnemar = found["t_test"], found["mcnemar"]
    return Row(
        name=name,
        level=found["level"],
        a=shown(name, a),
        b=shown(name, b),
        difference=shown_difference(name, difference),
        verdict=_verdict(found),
        p=p_value(found["p"]),
        p_holm=p_value(found["p_holm"]),
        t_test=p_value(test["p"]),
        mcnemar="" if mcnemar is None else p_value(mcnemar["p"]),
        effect=_effect(found),
        detectable=_detectable(name, found["detectable"]),
        n=found["n"],
        left_out=_left_out(found["left_out"]),
        lower_is_better=found["lower_is_better"],
        size=abs(difference.value or 0.0),
    )


def _with_flips(row: Row, cells: Mapping[tuple[str, str], Cell]) -> Row:
    return replace(
        row, better=cells.get((row.name, "better")), worse=cells.get((row.name, "worse"))
    )


def _verdict(found: Mapping[str, Any]) -> str:
    if found["winner"] is not None:
        return "better" if found["winner"] == "b" else "worse"
    if found["p"] is None:
        return "not measured"
    # The differences may cancel out; alike are only runs in which no case differs.
    same = found["difference"]["value"] == 0 and found["detectable"] is None
    return _ALIKE if same else "within chance"


def _effect(found: Mapping[str, Any]) -> str:
    effect = found["effect"]
    if effect["value"] is None:
        return f"none: {effect['reason']}"
    said = f"{effect['method']} {decimal(effect['value'])}"
    mcnemar = found["mcnemar"]
    return said if mcnemar is None else f"{said}, {mcnemar['gained']} up, {mcnemar['lost']} down"


def _detectable(name: str, value: float | None) -> str:
    if value is None:
        return ""
    written = shown_difference(
        name, Estimate(value=value, low=None, high=None, n=1, method="", reason="a threshold")
    )
    return written.value.lstrip("+")


def _left_out(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return ""
    count = found["in_a"] + found["in_b"] + found["in_both"]
    reasons = list(dict.fromkeys(one["reason"] for one in found["reasons"]))
    return f"{plural(count, 'case')} left out: {'; '.join(reasons)}"


def _finding(letter: str, rows: Sequence[Row], paired: int, tested: int) -> str:
    """What the comparison shows, the metrics beyond chance by name."""
    of = f"{plural(paired, 'case')}, {plural(tested, 'test')}, Holm"
    sides = {
        verdict: [row for row in rows if row.verdict == verdict] for verdict in ("better", "worse")
    }
    if not any(sides.values()):
        found = f"Nothing measured differs between A and {letter} by more than chance ({of})."
        if rows and all(row.verdict == _ALIKE for row in rows):
            return f"A and {letter} are alike in everything that was measured ({of})."
        return f"{found} {_could(rows)}".rstrip()
    said = [f"{verdict} than A on {_listed(which)}" for verdict, which in sides.items() if which]
    return f"{letter} is {' and '.join(said)}, beyond chance ({of})."


def _could(rows: Sequence[Row]) -> str:
    row = next((row for row in rows if row.detectable), None)
    if row is None:
        return ""
    return (
        f"With so few differing cases, {row.name} would have to change by about {row.detectable} "
        "to be seen in 4 of 5 repetitions."
    )


def _listed(rows: Sequence[Row]) -> str:
    told = ", ".join(f"{row.name} ({row.difference.brief})" for row in rows[:_TOLD])
    more = len(rows) - _TOLD
    return f"{told} and {more} more" if more > 0 else told
