"""Runs over the same cases, held against each other case by case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

from misslink.calibration.differences import Both, compared
from misslink.deciding.changes import causes, flipped, in_order
from misslink.deciding.circumstances import circumstances
from misslink.deciding.left_out import lacking, left_out
from misslink.deciding.numbers import judged_numbers, number_in
from misslink.deciding.pairing import Named, Pairing, Wanted, pair
from misslink.deciding.preferences import Preferences, answers_hash
from misslink.deciding.values import Value, select, value_of
from misslink.errors import InputError
from misslink.judging.shares import GOOD_SHARES
from misslink.stats.side_by_side import side_by_side
from misslink.types import Estimate, Run

__all__ = ["compare"]

_LEVELS = ("retrieval", "generation", "answer")
_FEWEST = 2
_UNKNOWN = "this run was not judged by it"


@dataclass(frozen=True)
class _Side:
    """A run cut to the cases compared, and one number of it."""

    run: Run
    value: Value


def compare(
    runs: Sequence[Named],
    *,
    metrics: Sequence[str] | None = None,
    cases: Wanted = None,
    preferences: Sequence[Preferences] = (),
) -> dict[str, Any]:
    """Compare every further run with the first.

    Parameters
    ----------
    runs : sequence of Named
        Two to 26; differences are each run minus the first.
    metrics : sequence of str or None
        Names as `misslink.deciding.values` takes them, of means over cases. None: every metric of
        the three levels that one of the runs has.
    cases : 'common', collection of str, or None
        Which cases to take where the gold sets differ; see `misslink.deciding.pairing.pair`.
    preferences : sequence of Preferences
        Each of the first run and another one.

    Returns
    -------
    dict
        ``a``, and under ``comparisons`` for each further run: ``b``, ``paired`` (cases),
        ``metrics``, ``flipped``, ``causes``, ``notes``, ``differs``, ``left_out``, ``lacking``
        (cases with a value in one run alone) and ``preference``; of two runs these also stand at
        the top. A metric has ``a`` and ``b`` (over the cases that have a value in both),
        ``difference``, ``p`` (sign flips), ``p_holm`` (over all metrics and runs), ``detectable``
        (at the level that Holm leaves), ``winner`` ('a', 'b' or None), ``level``,
        ``lower_is_better``, ``n``, ``left_out``, ``effect`` (Cohen's d_z), and uncorrected beside
        it ``t_test``, ``wilcoxon`` and, of yes-or-no values, ``mcnemar`` with the odds of the
        discordant cases; ``corrected`` is None, or ``a``, ``b``, ``difference`` of what people
        would call good and the ``labels`` behind it, where both runs keep a calibration of one
        judge.

    Raises
    ------
    InputError
        The runs are not of the same cases, a metric is unknown or no mean over cases, or
        preferences are of other runs.
    """
    _check(runs)
    pairing = pair(runs, cases)
    ids = pairing.ids
    seed = number_in(runs[0].run, "seed", 0)
    cut = [select(named.run, frozenset(ids)) for named in runs]
    of_metric = [_values(cut, name) for name in (_metrics_of(cut) if metrics is None else metrics)]
    # By the name that values have: a metric asked for by two names is one.
    values = list({of[0].name: of for of in of_metric}.values())
    if not values:
        raise InputError("no metric is named to compare by; name one, such as recall@5")
    sides = [[_Side(run, of[place]) for of in values] for place, run in enumerate(cut)]
    tested = side_by_side(
        [{side.value.name: in_order(side.value, ids) for side in mine} for mine in sides],
        seed=seed,
        lower_is_better={of[0].name for of in values if of[0].lower_is_better},
    )
    rows = [
        [
            _compared(one, other, ids, row[one.value.name])
            for one, other in zip(sides[0], mine, strict=True)
        ]
        for mine, row in zip(sides[1:], tested, strict=True)
    ]
    used = _matched(preferences, runs)
    people = [
        compared(runs[0].run, named.run, frozenset(ids), letters=("A", letter), seed=seed)
        for letter, named in zip(ascii_uppercase[1:], runs[1:], strict=False)
    ]
    comparisons = [
        {
            "b": named.name,
            "paired": len(ids),
            "metrics": {
                of[0].name: {**one, "corrected": _corrected(of[0].name, one, people[place - 1][0])}
                for of, one in zip(values, row, strict=True)
            },
            "flipped": flipped(
                [side.value for side in sides[0]], [side.value for side in sides[place]], ids
            ),
            "causes": causes(cut[0], cut[place], ids),
            "lacking": lacking(
                (cut[0], [side.value for side in sides[0]]),
                (cut[place], [side.value for side in sides[place]]),
                ids,
            ),
            "preference": _preference(used[place], named.run, ids),
            **_surroundings(runs, place, pairing, people[place - 1][1]),
        }
        for place, (named, row) in enumerate(zip(runs[1:], rows, strict=True), start=1)
    ]
    top = comparisons[0] if len(comparisons) == 1 else {}
    return {"a": runs[0].name, **top, "comparisons": comparisons}


def _metrics_of(runs: Sequence[Run]) -> list[str]:
    """Return the metrics of the three levels that one of the runs has, each once."""
    names: list[str] = []
    for level in _LEVELS:
        for run in runs:
            of = run.summary.get(level)
            names += of if isinstance(of, Mapping) else ()
    judged = [name for run in runs if run.verdicts for name in judged_numbers(run)]
    return list(dict.fromkeys([*names, *(judged if not names else ())]))


def _check(runs: Sequence[Named]) -> None:
    if not _FEWEST <= len(runs) <= len(ascii_uppercase):
        raise InputError(f"{len(runs)} runs cannot be compared; name from 2 to 26 run folders")


def _values(runs: Sequence[Run], name: str) -> list[Value]:
    """The number of each run; missing in one that does not know it, if another does."""
    found: list[Value | None] = []
    refused: InputError | None = None
    for run in runs:
        try:
            found.append(value_of(run, name))
        except InputError as unknown:  # a plugin's metric, in a run made without the plugin
            refused = refused or unknown
            found.append(None)
    known = next((value for value in found if value is not None), None)
    if known is None:
        raise refused or InputError(f"nothing in a run is called '{name}'")
    if known.of_case is None:
        raise InputError(
            f"the metric '{known.name}' has no value case by case, so runs cannot be paired by "
            "it; leave it out, or gate on it with  misslink gate --baseline"
        )
    absent = replace(known, estimate=Estimate.missing(_UNKNOWN), of_case={})
    return [value or absent for value in found]


def _compared(a: _Side, b: _Side, ids: Sequence[str], tested: dict[str, Any]) -> dict[str, Any]:
    """Everything of one metric: what the tests say, where it stands, and who was left out."""
    return {
        "level": _level(a.run, b.run, a.value.name),
        **tested,
        "difference": _with_reason(tested["difference"], a, b),
        "left_out": left_out((a.run, a.value), (b.run, b.value), ids),
    }


def _corrected(
    name: str, found: Mapping[str, Any], people: Mapping[str, Both]
) -> dict[str, Any] | None:
    """What people would call good, beside a share of good answers."""
    share = name in GOOD_SHARES.values() or (
        found["mcnemar"] is not None and not found["lower_is_better"]
    )
    return people[name].document() if share and name in people else None


def _with_reason(difference: dict[str, Any], a: _Side, b: _Side) -> dict[str, Any]:
    """The difference; where no case has both values, why the first run lacking them has none."""
    if difference["value"] is not None:
        return difference
    whose = next((s.value.estimate for s in (a, b) if s.value.estimate.value is None), None)
    reason = (whose and whose.reason) or "no case has a value in both runs"
    return Estimate.missing(reason).model_dump()


def _level(a: Run, b: Run, name: str) -> str:
    for level in _LEVELS:
        for run in (a, b):
            of = run.summary.get(level)
            if isinstance(of, Mapping) and name in of:
                return level
    room = name.partition(".")[0]
    return room if room in ("link", "coverage") else "retrieval"


def _surroundings(
    runs: Sequence[Named], place: int, pairing: Pairing, uncorrected: str | None
) -> dict[str, Any]:
    letters = ascii_uppercase[0], ascii_uppercase[place]
    differs = circumstances(runs[0].run, runs[place].run, letters)
    omitted = pairing.left_out[place - 1]
    notes = [one.sentence for one in differs]
    notes += [f"{note[:1].upper()}{note[1:]}." for note in pairing.notes[place - 1]]
    if omitted:
        notes.append(_omitted(len(pairing.ids), omitted, letters))
    if uncorrected:
        notes.append(f"Not corrected for the judge's errors: {uncorrected}.")
    return {
        "notes": notes,
        "uncorrected": uncorrected,
        "differs": [{"what": one.what, "a": one.a, "b": one.b} for one in differs],
        "left_out": omitted,
    }


def _omitted(taken: int, omitted: Mapping[str, int], letters: tuple[str, str]) -> str:
    said = {
        "only_in_a": f"are only in {letters[0]}",
        "only_in_b": f"are only in {letters[1]}",
        "asks_something_else": "ask something else in each",
        "not_selected": "were not selected",
    }
    counts = ", ".join(f"{count} {said[reason]}" for reason, count in omitted.items())
    return f"{taken} cases are compared; of the others {counts}."


def _matched(
    preferences: Sequence[Preferences], runs: Sequence[Named]
) -> dict[int, Preferences | None]:
    """The preferences that go with each further run."""
    used: dict[int, Preferences | None] = dict.fromkeys(range(1, len(runs)))
    hashes = [answers_hash(named.run) for named in runs] if preferences else []
    for one in preferences:
        fits = [(p, found) for p in used if (found := one.between(hashes[0], hashes[p]))]
        if not fits:
            raise InputError(
                f"these preferences are between the answers of {one.a} and {one.b} as they were "
                f"then, not between those of {runs[0].name} and a run that is compared with it; "
                "ask  misslink judge prefer  for these",
                path=one.path,
            )
        used[fits[0][0]] = fits[0][1]
    return used


def _preference(one: Preferences | None, run: Run, ids: Sequence[str]) -> dict[str, Any] | None:
    return one.document(run, ids) if one is not None else None
