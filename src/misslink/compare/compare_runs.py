"""Compare runs metric by metric with paired tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from misslink.calibration.corrected_prevalence import CorrectedDifference, compare_corrected_shares
from misslink.compare.config_diff import ConfigDifference, config_differences
from misslink.compare.missing_values import count_missing_values, one_sided_missing_values
from misslink.compare.pairing import CaseSelection, NamedRun, Pairing, pair_cases
from misslink.compare.preferences import StoredPreferences, answers_hash
from misslink.compare.run_metrics import (
    MetricValue,
    judged_readings,
    manifest_int,
    metric_value,
    select_cases,
)
from misslink.errors import InputError
from misslink.metrics import GOOD_SHARES
from misslink.stats.run_comparison import compare_paired_runs
from misslink.types import Estimate, Reason, Run

_BINARY_VALUES = frozenset({0.0, 1.0})


def flipped_ids(
    ids: Sequence[str],
    before: Sequence[float | None],
    after: Sequence[float | None],
    *,
    lower_is_better: bool,
) -> dict[str, list[str]] | None:
    """Ids whose value got `better` and `worse`; None unless all values are 0 or 1."""
    if not is_binary(complete_pairs(before, after)):
        return None
    sign = -1 if lower_is_better else 1
    gains = {
        name: sign * (new - old)
        for name, old, new in zip(ids, before, after, strict=True)
        if old is not None and new is not None
    }
    return {
        "better": [name for name, gain in gains.items() if gain > 0],
        "worse": [name for name, gain in gains.items() if gain < 0],
    }


def failure_transitions(a: Run, b: Run, ids: Sequence[str]) -> dict[str, Any]:
    """Count the failure modes of both runs, and the changes of each case."""
    before, after = (
        {link.case_id: link.failure or "inconclusive" for link in run.links} for run in (a, b)
    )
    both = [name for name in ids if name in before and name in after]
    moves: dict[tuple[str, str], list[str]] = {}
    for name in both:
        moves.setdefault((before[name], after[name]), []).append(name)
    return {
        "n": len(both),
        "a": dict(Counter(before[name] for name in both)),
        "b": dict(Counter(after[name] for name in both)),
        "changed": sum(len(cases) for (was, now), cases in moves.items() if was != now),
        "changes": [
            {"from": was, "to": now, "n": len(cases), "cases": cases}
            for (was, now), cases in sorted(
                moves.items(), key=lambda move: (move[0][0] == move[0][1], -len(move[1]), move[0])
            )
        ],
    }


def values_in_order(value: MetricValue, ids: Sequence[str]) -> list[float | None]:
    """The value of each case, or None."""
    values = value.of_case or {}
    return [values.get(name) for name in ids]


def complete_pairs(
    before: Sequence[float | None], after: Sequence[float | None]
) -> list[tuple[float, float]]:
    """The values of the cases with a value in both runs."""
    both = zip(before, after, strict=True)
    return [(x, y) for x, y in both if x is not None and y is not None]


def is_binary(pairs: Sequence[tuple[float, float]]) -> bool:
    """Whether every value is no (0) or yes (1), and there are some."""
    return bool(pairs) and all(value in _BINARY_VALUES for pair in pairs for value in pair)


PASSED = "link.failures.passed"
_LEVELS = ("retrieval", "generation", "answer")
_MIN_RUNS = 2


@dataclass(frozen=True)
class _RunValue:
    """A run with only the compared cases, and one metric of it."""

    run: Run
    value: MetricValue


def compare_runs(
    runs: Sequence[NamedRun],
    *,
    metrics: Sequence[str] | None = None,
    cases: CaseSelection = None,
    preferences: Sequence[StoredPreferences] = (),
) -> dict[str, Any]:
    """Compare every further run with the first.

    Parameters
    ----------
    runs : sequence of NamedRun
        Two or more; differences are each run minus the first.
    metrics : sequence of str or None
        Names as of `misslink.compare.run_metrics.metric_value`, of means over cases. None: every
        metric of the three levels that a run has.
    cases : 'common', collection of str, or None
        The cases to compare if the gold sets differ; see `pair_cases`.
    preferences : sequence of StoredPreferences
        Each of the first run and another one.

    Returns
    -------
    dict
        ``a``, ``names``, ``cases`` (ids), and under ``comparisons`` for each further run: ``b``, ``paired`` (cases),
        ``passed`` (as a metric, with the ids of ``fixed`` and ``broken`` answers), ``metrics``, ``flipped``, ``failures``, ``notes``, ``differs``, ``left_out``, ``lacking``
        (cases with a value in one run only) and ``preference``; for two runs also at the top. A
        metric has ``a`` and ``b`` (over the cases with a value in both), ``difference``, ``p``
        (sign flips), ``p_holm`` (over all metrics and runs), ``detectable``, ``winner`` ('a', 'b'
        or None; None for a judged metric unless ``same_judge``), ``level``, ``lower_is_better``, ``n``, ``left_out``, ``effect`` (Cohen's d_z),
        the uncorrected ``t_test``, ``wilcoxon`` and ``mcnemar`` (yes-or-no values only), and
        ``corrected``: shares corrected for the judge's errors, or None.

    Raises
    ------
    InputError
        The runs have other cases, a metric is unknown or no mean over cases, or preferences are
        of other runs.
    """
    if len(runs) < _MIN_RUNS:
        raise InputError("one run cannot be compared; name two run folders or more")
    pairing = pair_cases(runs, cases)
    ids = pairing.ids
    seed = manifest_int(runs[0].run, "seed", 0)
    selected = [select_cases(named.run, frozenset(ids)) for named in runs]
    of_metric = [
        _values_per_run(selected, name)
        for name in (_summary_metrics(selected) if metrics is None else metrics)
    ]
    # Under its normalized name, so that a metric with two names appears once.
    values = list({per_run[0].name: per_run for per_run in of_metric}.values())
    if not values:
        raise InputError("there is no metric to compare; name one, such as recall@5")
    sides = [
        [_RunValue(run, per_run[place]) for per_run in values] for place, run in enumerate(selected)
    ]
    tested = compare_paired_runs(
        [
            {side.value.name: values_in_order(side.value, ids) for side in run_values}
            for run_values in sides
        ],
        seed=seed,
        lower_is_better={per_run[0].name for per_run in values if per_run[0].lower_is_better},
    )
    titles = [(runs[0].title, named.title) for named in runs[1:]]
    differs = [
        config_differences(runs[0].run, named.run, names)
        for names, named in zip(titles, runs[1:], strict=True)
    ]
    rows = [
        [
            _metric_comparison(result, later, ids, row[result.value.name], settings)
            for result, later in zip(sides[0], run_values, strict=True)
        ]
        for run_values, row, settings in zip(sides[1:], tested, differs, strict=True)
    ]
    matched = _match_preferences(preferences, runs)
    corrections = [
        compare_corrected_shares(
            runs[0].run, named.run, frozenset(ids), letters=(runs[0].name, named.name), seed=seed
        )
        for named in runs[1:]
    ]
    passed = _compare_passed(selected, ids, differs, seed)
    comparisons = [
        {
            "b": named.name,
            "paired": len(ids),
            "passed": passed[place - 1],
            "metrics": {
                per_run[0].name: {
                    **result,
                    "corrected": _corrected_comparison(
                        per_run[0].name, result, corrections[place - 1][0]
                    ),
                }
                for per_run, result in zip(values, row, strict=True)
            },
            "flipped": _flipped(sides[0], sides[place], ids),
            "failures": failure_transitions(selected[0], selected[place], ids),
            "lacking": one_sided_missing_values(
                (selected[0], [side.value for side in sides[0]]),
                (selected[place], [side.value for side in sides[place]]),
                ids,
            ),
            "preference": _preference_document(matched[place], named.run, ids),
            **_comparison_notes(
                titles[place - 1],
                differs[place - 1],
                pairing,
                place,
                corrections[place - 1][1],
            ),
        }
        for place, (named, row) in enumerate(zip(runs[1:], rows, strict=True), start=1)
    ]
    top = comparisons[0] if len(comparisons) == 1 else {}
    names = [named.title for named in runs]
    return {
        "a": runs[0].name,
        **top,
        "names": names,
        "cases": list(ids),
        "comparisons": comparisons,
    }


def _compare_passed(
    runs: Sequence[Run],
    ids: Sequence[str],
    differs: Sequence[Sequence[ConfigDifference]],
    seed: int,
) -> list[dict[str, Any]]:
    """Test whether more answers pass in each further run, and list those fixed and broken."""
    values = [_values_per_run([run], PASSED)[0] for run in runs]
    passed = [{PASSED: values_in_order(value, ids)} for value in values]
    documents = []
    for place, tested in enumerate(compare_paired_runs(passed, seed=seed), start=1):
        both = zip(ids, passed[0][PASSED], passed[place][PASSED], strict=True)
        flips = [(case, after) for case, before, after in both if {before, after} == {0.0, 1.0}]
        document = tested[PASSED] | {
            "fixed": [case for case, after in flips if after],
            "broken": [case for case, after in flips if not after],
        }
        if any(difference.changes_judge for difference in differs[place - 1]):
            document["winner"] = None
        documents.append(document)
    return documents


def _summary_metrics(runs: Sequence[Run]) -> list[str]:
    """Return the metrics of the three levels that one of the runs has, each once."""
    names: list[str] = []
    for level in _LEVELS:
        for run in runs:
            metrics = run.summary.get(level)
            names += metrics if isinstance(metrics, Mapping) else ()
    judged = [name for run in runs if run.verdicts for name in judged_readings(run)]
    return list(dict.fromkeys([*names, *(judged if not names else ())]))


def _values_per_run(runs: Sequence[Run], name: str) -> list[MetricValue]:
    """The metric in each run; missing in a run that does not know it."""
    values: list[MetricValue | None] = []
    refused: InputError | None = None
    for run in runs:
        try:
            values.append(metric_value(run, name))
        except InputError as unknown:  # a plugin's metric, in a run made without the plugin
            refused = refused or unknown
            values.append(None)
    first = next((value for value in values if value is not None), None)
    if first is None:
        raise refused or InputError(f"no metric of a run is called '{name}'")
    if first.of_case is None:
        raise InputError(
            f"the metric '{first.name}' has no value per case, so runs cannot be paired by "
            "it; remove it, or gate on it with  misslink gate --baseline"
        )
    absent = replace(first, estimate=Estimate.missing(Reason(code="not_judged_by_it")), of_case={})
    return [value or absent for value in values]


def _metric_comparison(
    a: _RunValue,
    b: _RunValue,
    ids: Sequence[str],
    tested: dict[str, Any],
    differs: Sequence[ConfigDifference],
) -> dict[str, Any]:
    """One metric: its tests, its level, and the cases without a value."""
    level = _metric_level(a.run, b.run, a.value.name)
    by_labels = level == "retrieval" or a.value.name.startswith("link.retrieval.")
    other_judge = not by_labels and any(difference.changes_judge for difference in differs)
    return {
        "level": level,
        **tested,
        "winner": None if other_judge else tested["winner"],
        "difference": _difference_with_reason(tested["difference"], a, b),
        "left_out": count_missing_values((a.run, a.value), (b.run, b.value), ids),
    }


def _flipped(
    a: Sequence[_RunValue], b: Sequence[_RunValue], ids: Sequence[str]
) -> dict[str, dict[str, list[str]]]:
    """The flipped cases of each metric whose values are all 0 or 1."""
    flips = {}
    for side, later in zip(a, b, strict=True):
        before, after = values_in_order(side.value, ids), values_in_order(later.value, ids)
        low = side.value.lower_is_better
        if (flipped := flipped_ids(ids, before, after, lower_is_better=low)) is not None:
            flips[side.value.name] = flipped
    return flips


def _corrected_comparison(
    name: str, comparison: Mapping[str, Any], corrections: Mapping[str, CorrectedDifference]
) -> dict[str, Any] | None:
    """A share of good answers corrected for the judge's errors."""
    share = name in GOOD_SHARES.values() or (
        comparison["mcnemar"] is not None and not comparison["lower_is_better"]
    )
    return corrections[name].document() if share and name in corrections else None


def _difference_with_reason(
    difference: dict[str, Any], a: _RunValue, b: _RunValue
) -> dict[str, Any]:
    """The difference; without paired values, the reason of the first run without them."""
    if difference["value"] is not None:
        return difference
    missing = next((s.value.estimate for s in (a, b) if s.value.estimate.value is None), None)
    if missing is None:
        return Estimate.missing(Reason(code="no_common_value")).model_dump()
    return Estimate.missing(missing.reason_code or missing.reason or "").model_dump()


def _metric_level(a: Run, b: Run, name: str) -> str:
    for level in _LEVELS:
        for run in (a, b):
            metrics = run.summary.get(level)
            if isinstance(metrics, Mapping) and name in metrics:
                return level
    room = name.partition(".")[0]
    return room if room in ("link", "coverage") else "retrieval"


def _comparison_notes(
    names: tuple[str, str],
    differs: Sequence[ConfigDifference],
    pairing: Pairing,
    place: int,
    uncorrected: str | None,
) -> dict[str, Any]:
    omitted = pairing.left_out[place - 1]
    notes = [difference.sentence for difference in differs]
    notes += [f"{note[:1].upper()}{note[1:]}." for note in pairing.notes[place - 1]]
    if omitted:
        reasons = {
            "only_in_a": f"are only in {names[0]}",
            "only_in_b": f"are only in {names[1]}",
            "asks_something_else": "ask different questions",
            "not_selected": "were not selected",
        }
        counts = ", ".join(f"{count} {reasons[reason]}" for reason, count in omitted.items())
        notes.append(f"{len(pairing.ids)} cases are compared; of the others, {counts}.")
    if uncorrected:
        notes.append(f"Not corrected for the judge's errors: {uncorrected}.")
    return {
        "same_judge": not any(difference.changes_judge for difference in differs),
        "notes": notes,
        "uncorrected": uncorrected,
        "differs": [
            {"what": difference.what, "a": difference.a, "b": difference.b}
            for difference in differs
        ],
        "left_out": omitted,
    }


def _match_preferences(
    preferences: Sequence[StoredPreferences], runs: Sequence[NamedRun]
) -> dict[int, StoredPreferences | None]:
    """The preferences that go with each further run."""
    used: dict[int, StoredPreferences | None] = dict.fromkeys(range(1, len(runs)))
    hashes = [answers_hash(named.run) for named in runs] if preferences else []
    for preference in preferences:
        fits = [(p, matched) for p in used if (matched := preference.between(hashes[0], hashes[p]))]
        if not fits:
            raise InputError(
                f"these preferences are between the answers of {preference.a} and {preference.b} as they were "
                f"then, not between those of {runs[0].name} and a run that is compared with it; "
                "ask  misslink judge pairwise  for these",
                path=preference.path,
            )
        used[fits[0][0]] = fits[0][1]
    return used


def _preference_document(
    preference: StoredPreferences | None, run: Run, ids: Sequence[str]
) -> dict[str, Any] | None:
    return preference.document(run, ids) if preference is not None else None
