"""Compare runs metric by metric with paired tests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from misslink.calibration.corrected_prevalence import compare_corrected_shares
from misslink.comparison.missing_values import count_missing_values, one_sided_missing_values
from misslink.comparison.pairing import (
    CaseSelection,
    NamedRun,
    case_clusters,
    config_differences,
    is_scored_only,
    pair_cases,
)
from misslink.comparison.preferences import StoredPreferences, answers_hash
from misslink.comparison.run_metrics import MetricValue, metric_value, summary_metrics
from misslink.comparison.shared_part import share_cases
from misslink.documents import METRIC_LEVELS, cutoff_of, manifest_of, summary_of
from misslink.errors import InputError
from misslink.metrics import GOOD_SHARES
from misslink.parts import LazyMapping
from misslink.render.format import as_sentence
from misslink.render.reasons import describe_reasons
from misslink.stats.run_comparison import compare_paired_runs
from misslink.types import Estimate, Reason, Run

PASSED = "link.failures.passed"
_RunValue = tuple[Run, MetricValue]  # a run with only the compared cases, and one metric of it


def compare_runs(
    runs: Sequence[NamedRun],
    *,
    metrics: Sequence[str] | None = None,
    cases: CaseSelection = None,
    preferences: Sequence[StoredPreferences] = (),
) -> dict[str, object]:
    """Compare every further run with the first.

    Parameters
    ----------
    runs : sequence of NamedRun
        Two or more; differences are each run minus the first.
    metrics : sequence of str or None
        Names as of `misslink.comparison.run_metrics.metric_value`, of means over cases. None: every
        metric of the three levels that a run has.
    cases : collection of str or None
        The cases to compare. None: those that ask the same in all runs. The labels of the last run
        score every ranking; see `share_cases`.
    preferences : sequence of StoredPreferences
        Each of the first run and another one.

    Returns
    -------
    dict
        ``a``, ``names``, ``cases`` (ids), and under ``comparisons`` for each further run: ``b``, ``paired`` (cases),
        ``passed`` (as a metric, with the ids of ``fixed`` and ``broken`` answers), ``metrics``, ``flipped``, ``failures``, ``notes``, ``differs``, ``left_out``, ``lacking``
        (cases with a value in one run only) and ``preference``; for two runs also at the top. A
        metric has ``a`` and ``b`` (over the cases with a value in both), ``difference``, ``p``
        (sign flips), ``p_holm`` (over all metrics of its level and all runs), ``detectable``, ``winner`` ('a', 'b'
        or None; None for a judged metric unless ``same_judge``), ``level``, ``lower_is_better``, ``n``, ``left_out``, ``effect`` (Cohen's d_z),
        the uncorrected ``t_test``, ``wilcoxon`` and ``mcnemar`` (yes-or-no values only), and
        ``corrected``: shares corrected for the judge's errors, or None.

    Raises
    ------
    InputError
        The runs share no case, a metric is unknown or no mean over cases, or preferences are of
        other runs.
    """
    if not runs[1:]:
        raise InputError("one run cannot be compared; name at least two run folders")
    pairing = pair_cases(runs, cases)
    ids, seed = pairing.ids, manifest_of(runs[0].run).seed or 0
    shared = share_cases([named.run for named in runs], frozenset(ids))
    selected, linked = shared.runs, [name for name in ids if name not in shared.relabelled]
    names = _default_metrics(selected) if metrics is None else metrics
    # Under its normalized name, so that a metric with two names appears once.
    values = {per_run[0].name: per_run for name in names if (per_run := _per_run(selected, name))}
    if not values:
        raise InputError("there is no metric to compare; name one, such as recall@5")
    scored_only = all(map(is_scored_only, selected))
    if scored_only and not any(all(map(_has_values, per_run)) for per_run in values.values()):
        raise InputError(
            f"{' and '.join(named.name for named in runs)} have no metric in common; they have "
            f"{', '.join(values)}"
        )
    clusters = case_clusters(selected[0], ids)
    tested = compare_paired_runs(
        [
            LazyMapping(
                {name: per_run[place] for name, per_run in values.items()},
                partial(_in_order, ids=ids),
            )
            for place in range(len(runs))
        ],
        seed=seed,
        lower_is_better={name for name, per_run in values.items() if per_run[0].lower_is_better},
        clusters=clusters,
        families={name: _metric_level(selected, name) for name in values},
    )
    passed = [_per_run([run], PASSED)[0] for run in selected]
    passed_tests = compare_paired_runs(
        [{PASSED: _in_order(value, ids)} for value in passed], seed=seed, clusters=clusters
    )
    matched = _match_preferences(preferences, runs)
    comparisons = []
    for place, named in enumerate(runs[1:], start=1):
        titles = runs[0].title, named.title
        differs = config_differences(runs[0].run, named.run, titles)
        same_judge = not any(difference.changes_judge for difference in differs)
        corrections, uncorrected = compare_corrected_shares(
            runs[0].run, named.run, frozenset(ids), letters=(runs[0].name, named.name), seed=seed
        )
        sides = {
            name: ((selected[0], per_run[0]), (selected[place], per_run[place]))
            for name, per_run in values.items()
        }
        results = {
            name: _metric_comparison(a, b, ids, tested[place - 1][name], same_judge=same_judge)
            for name, (a, b) in sides.items()
        }
        flips = {name: _flipped(a[1], b[1], ids) for name, (a, b) in sides.items()}
        preferred = matched[place]
        notes = []  # what is compared comes first
        if omitted := pairing.left_out[place - 1]:
            a, b = titles
            notes.append(Reason(code="cases_left_out", n=len(ids), left_out=omitted, a=a, b=b))
        notes += [*pairing.notes[place - 1], *(difference.meaning for difference in differs)]
        if not same_judge:
            notes.append(Reason(code="rejudge_to_compare"))
        why_uncorrected = describe_reasons(uncorrected) or None
        if why_uncorrected:
            notes.append(Reason(code="differences_not_corrected", why=why_uncorrected))
        turned = _flipped(passed[0], passed[place], ids) or {"better": [], "worse": []}
        comparisons.append(
            {
                "b": named.name,
                "paired": len(ids),
                "passed": passed_tests[place - 1][PASSED]
                | {"fixed": turned["better"], "broken": turned["worse"]}
                | ({} if same_judge else {"winner": None}),
                "metrics": {
                    name: {
                        **result,
                        "corrected": corrections[name].document()
                        if name in corrections and _is_good_share(name, result)
                        else None,
                    }
                    for name, result in results.items()
                },
                "flipped": {name: turns for name, turns in flips.items() if turns is not None},
                "failures": failure_transitions(selected[0], selected[place], linked),
                "lacking": one_sided_missing_values(list(sides.values()), ids),
                "preference": preferred.document(named.run, ids) if preferred else None,
                "same_judge": same_judge,
                "notes": [as_sentence(str(note)) for note in notes],
                "uncorrected": why_uncorrected,
                "differs": [{"what": d.what, "a": d.a, "b": d.b} for d in differs],
                "left_out": omitted,
            }
        )
    return {
        "a": runs[0].name,
        **(comparisons[0] if len(comparisons) == 1 else {}),
        "names": [named.title for named in runs],
        "cases": list(ids),
        "comparisons": comparisons,
    }


def flipped_ids(
    ids: Sequence[str],
    before: Sequence[float | None],
    after: Sequence[float | None],
    *,
    lower_is_better: bool,
) -> dict[str, list[str]] | None:
    """Ids whose value got `better` and `worse`; None unless all values are 0 or 1."""
    both = [
        (name, old, new)
        for name, old, new in zip(ids, before, after, strict=True)
        if old is not None and new is not None
    ]
    if not is_binary([(old, new) for _, old, new in both]):
        return None
    sign = -1 if lower_is_better else 1
    return {
        way: [name for name, old, new in both if turn * sign * (new - old) > 0]
        for way, turn in (("better", 1), ("worse", -1))
    }


def failure_transitions(a: Run, b: Run, ids: Sequence[str]) -> dict[str, object]:
    """Count the failure modes of both runs, and the changes of each case."""
    before, after = (
        {link.case_id: link.failure or "inconclusive" for link in run.outcomes} for run in (a, b)
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


def _flipped(a: MetricValue, b: MetricValue, ids: Sequence[str]) -> dict[str, list[str]] | None:
    before, after = _in_order(a, ids), _in_order(b, ids)
    return flipped_ids(ids, before, after, lower_is_better=a.lower_is_better)


def _in_order(value: MetricValue, ids: Sequence[str]) -> list[float | None]:
    """The value of each case, or None."""
    values = value.of_case or {}
    return [values.get(name) for name in ids]


def is_binary(pairs: Sequence[tuple[float, float]]) -> bool:
    """Whether every value is no (0) or yes (1), and there are some."""
    return bool(pairs) and all(value in (0.0, 1.0) for pair in pairs for value in pair)


def _per_run(runs: Sequence[Run], name: str) -> list[MetricValue]:
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


def _has_values(metric: MetricValue) -> bool:
    return any(value is not None for value in (metric.of_case or {}).values())


def _default_metrics(runs: Sequence[Run]) -> list[str]:
    """Those of the summaries, of recall only at the runs' own cutoff: each test costs power."""
    names, own = summary_metrics(runs), {f"recall@{cutoff_of(run)}" for run in runs}
    if own.isdisjoint(names):
        return names
    return [name for name in names if name in own or not name.startswith("recall@")]


def _metric_comparison(
    a: _RunValue, b: _RunValue, ids: Sequence[str], tested: dict[str, Any], *, same_judge: bool
) -> dict[str, object]:
    """One metric: its tests, its level, and the cases without a value."""
    name, difference = a[1].name, tested["difference"]
    level = _metric_level((a[0], b[0]), name)
    by_labels = level == "retrieval" or name.startswith("link.retrieval.")
    if difference["value"] is None:  # the reason of the first run without values says why
        missing = next((v.estimate for _, v in (a, b) if v.estimate.value is None), None)
        reason: Reason | str = Reason(code="no_common_value")
        if missing is not None:
            reason = missing.why
        difference = Estimate.missing(reason).model_dump()
    return {
        "level": level,
        **tested,
        "winner": tested["winner"] if same_judge or by_labels else None,
        "difference": difference,
        "left_out": count_missing_values(a, b, ids),
    }


def _is_good_share(name: str, comparison: Mapping[str, Any]) -> bool:
    yes_or_no = comparison["mcnemar"] is not None and not comparison["lower_is_better"]
    return name in GOOD_SHARES.values() or yes_or_no


def _metric_level(runs: Sequence[Run], name: str) -> str:
    """Retrieval, generation or answer, within which tests are corrected; else such as 'link'.

    All metrics of score tables are of one level.
    """
    for level in METRIC_LEVELS:
        if any(name in getattr(summary_of(run), level) for run in runs):
            return level
    if all(is_scored_only(run) for run in runs):
        return "scores"
    room = name.partition(".")[0]
    return room if room in ("link", "coverage") else "retrieval"


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
