"""The association of what reached the prompt with bad answers: risks, adjustment, correction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass

from misslink.calibration_document import ErrorTest
from misslink.documents import (
    AdjustedRisks,
    Answers,
    CountedTable,
    ExposureTable,
    LeftOut,
    Note,
    RiskAssociation,
    Risks,
    Stratum,
    TestResult,
    TrendResult,
    calibrations_of,
)
from misslink.failure_modes import FAILURE_MODES
from misslink.parts import by_case
from misslink.render.reasons import describe_reason
from misslink.retrieval import case_exposures, case_needs, cluster_cases, relevant_ids
from misslink.stats import proportion
from misslink.stats.clustered import clustered_mean
from misslink.stats.exposure import (
    EXPOSURES,
    ExposedCases,
    exposure_risks,
    exposure_trend,
    pooled_exposure_risks,
    powered_exposure_risks,
    rated_exposure_risks,
)
from misslink.types import Case, Estimate, Outcome, Reason, Run, Trace

# p of heterogeneity below which strata are said to disagree; the customary one
_HETEROGENEITY_P = 0.05
_MIN_FOR_DIFFICULTY = 30  # cases from which thirds are large enough to compare within
_MIN_FOR_FIFTHS = 150  # cases from which fifths are large enough; they take out more of a bias
# What the groups are made of where there are no categories, by their names in `proxies`.
_PROXIES = {
    "question_length": "question length",
    "relevant_passages": "number of relevant passages",
    "irrelevant_score": "best score of an irrelevant passage",
}
_DIFFICULTIES = ("easiest", "easier", "middle", "harder", "hardest")
_DECIMALS = 9  # rounding must not part cases that are alike
_ADJUSTED = ("risk_difference", "risk_ratio", "attributable_fraction")
NO_CATEGORY = "no category"  # the stratum of the cases without one, where others have one


def _is_bad(link: Outcome, metric: str) -> bool | None:
    """Whether an answer is unfaithful or wrong, by metric; None: it declines, or no verdict says."""
    if metric == "correctness":
        return None if link.correct is None else not link.correct
    return {"faithful": False, "unfaithful": True}.get(link.answer)


@dataclass(frozen=True)
class _LinkedCases:
    """Cases with their exposure and their cluster, in the order of the links.

    ``by`` says what decides the exposure, ``own`` are the metrics whose labels are of this run's
    verdicts.
    """

    run: Run
    links: Sequence[Outcome]
    by: str | None
    exposures: Mapping[str, str]
    clusters: Mapping[str, Hashable]
    cases: Mapping[str, Case]
    traces: Mapping[str, Trace]
    own: Collection[str]
    seed: int

    def exposed(self, bad: Mapping[str, float]) -> ExposedCases:
        """The cases of `bad`, by what their answers are."""
        return ExposedCases(
            [EXPOSURES.index(self.exposures[id_]) for id_ in bad],
            list(bad.values()),
            [self.clusters.get(id_, id_) for id_ in bad],
        )


def summarize_association(
    run: Run, links: Sequence[Outcome] | None = None, *, own: Collection[str] = (), seed: int = 0
) -> dict[str, RiskAssociation]:
    """Return the blocks ``link`` and ``link_correctness`` of ``summary.json``.

    A case is exposed to none, some or all of what it needs. Cases are left out and counted if they
    need nothing, if their exposure is unknown, or if the answer has no verdict.

    Parameters
    ----------
    run : Run
        Any cases; every estimate without cases is missing with a reason.
    links : sequence of Outcome or None
        None: those of the run.
    own : collection of str
        Metrics whose calibration in the run is of its own verdicts.
    seed : int
        Random seed of the intervals.
    """
    links = run.outcomes if links is None else links
    by, exposures = case_exposures(links)
    clusters, cases, traces = cluster_cases(run.cases), by_case(run.cases), by_case(run.traces)
    linked = _LinkedCases(run, links, by, exposures, clusters, cases, traces, own, seed)
    return {
        "link": _associate(linked, "faithfulness"),
        "link_correctness": _associate(linked, "correctness"),
    }


def association_warnings(blocks: Mapping[str, RiskAssociation]) -> list[Note]:
    """Return the warnings of both blocks, with a sentence of its own where it is of both."""
    notes = [note for block in blocks.values() for note in block.warnings]
    counts = Counter(note.code for note in notes)
    by_code = {note.code: note for note in notes}
    if counts["not_corrected"] == len(blocks):
        by_code["not_corrected"] = _note(Reason(code="not_corrected", metric=None))
    return [
        note.replace(message=f"{note.message[:1].upper()}{note.message[1:]}.")
        for note in by_code.values()
    ]


def failed_share(
    links: Sequence[Outcome], clusters: Mapping[str, Hashable], *, seed: int = 0
) -> Estimate:
    """Return the share of failed cases among those whose outcome is known."""
    failed = {link.case_id: link.failed for link in links if link.failed is not None}
    names = [clusters.get(case_id, case_id) for case_id in failed]
    if len(set(names)) == len(names):
        return proportion(sum(failed.values()), len(failed))
    return clustered_mean(list(failed.values()), names, seed=seed)


def _associate(linked: _LinkedCases, metric: str) -> RiskAssociation:
    """Bad answers by exposure, bad by a metric."""
    bad = {
        link.case_id: float(is_bad)
        for link in linked.links
        if link.case_id in linked.exposures and (is_bad := _is_bad(link, metric)) is not None
    }
    cases = linked.exposed(bad)
    estimates = exposure_risks(cases, seed=linked.seed)
    if not bad:
        reason = Reason(code="no_exposed_verdict" if linked.by else "no_exposure")
        estimates = dict.fromkeys(estimates, Estimate.missing(reason))
    corrected = _correct(linked, metric)
    warnings = [Reason(code="exposure_by_judge")] if linked.by == "sufficiency" else []
    printed = estimates["attributable_fraction"].value is not None
    if printed and corrected["attributable_fraction"].value is None:
        warnings.append(Reason(code="not_corrected", metric=metric))
    links = linked.links
    if inferred := sum(link.basis == "inferred" for link in links):
        warnings.append(Reason(code="inferred", count=inferred))
    trend = exposure_trend(cases, seed=linked.seed)
    failures = Counter(link.failure for link in links)
    return RiskAssociation(
        **dict(_risks(estimates)),
        exposure=linked.by,
        table=CountedTable(
            **dict(_table(cases)),
            left_out=len(links) - len(bad),
            not_needed=sum(link.retrieval == "not_needed" for link in links),
        ),
        clusters=len(set(cases.clusters)),
        corrected=_risks(corrected),
        judge_error_by_exposure=_judge_error(linked, metric),
        adjusted=_adjust(linked, bad, estimates["risk_difference"]),
        trend=TrendResult(p=trend.p, method=trend.method, reason=trend.reason, slope=trend.slope),
        warnings=tuple(map(_note, warnings)),
        failed=failed_share(links, linked.clusters, seed=linked.seed),
        failures={failure: failures[failure] for failure in FAILURE_MODES if failures[failure]},
        owners=dict(Counter(str(link.owner) for link in links if link.owner)),
        retrieval=dict(sorted(Counter(link.retrieval for link in links).items())),
        answers=dict(sorted(Counter(link.answer for link in links).items())),
        reliability=None,
    )


def _correct(linked: _LinkedCases, metric: str) -> dict[str, Estimate]:
    """The risks without the judge's errors, by labels of this run, else by its error rates.

    All scored verdicts count, those of the uncertain band too; answers that decline are left out.
    """
    calibration = calibrations_of(linked.run).get(metric)
    declined = {link.case_id for link in linked.links if link.answer == "declined"}
    scores = {
        verdict.case_id: verdict.value if verdict.probability is None else verdict.probability
        for verdict in linked.run.scores
        if verdict.metric == metric and verdict.status == "scored"
    }
    good = {
        link.case_id: score
        for link in linked.links
        if link.case_id in linked.exposures
        and (metric == "correctness" or link.case_id not in declined)
        and (score := scores.get(link.case_id)) is not None
    }
    if calibration is None or calibration.threshold is None or not good:
        code = "not_calibrated" if calibration is None else "no_exposed_verdict"
        names = (*(f"risk_given_{name}" for name in EXPOSURES), *_ADJUSTED)
        return dict.fromkeys(names, Estimate.missing(Reason(code=code)))
    if metric in linked.own:
        labelled, weights = calibration.labelled, calibration.label_weights
        labels = [None if (x := labelled.get(id_)) is None else float(x < 1 / 2) for id_ in good]
        return powered_exposure_risks(
            linked.exposed({id_: 1 - score for id_, score in good.items()}),
            labels,
            weights=[weights.get(id_, 1.0) for id_ in good],
            seed=linked.seed,
        )
    called = {id_: float(score < calibration.threshold) for id_, score in good.items()}
    rates = {name: getattr(calibration.by_exposure, name) for name in EXPOSURES}
    return rated_exposure_risks(linked.exposed(called), rates, seed=linked.seed)


def _judge_error(linked: _LinkedCases, metric: str) -> ErrorTest:
    """Whether the judge errs alike at each exposure, by its calibration."""
    calibration = calibrations_of(linked.run).get(metric)
    why = describe_reason(Reason(code="few_to_compare" if calibration else "not_calibrated"))
    if calibration is None:
        return ErrorTest(tested=False, differs=None, p=None, reason=why)
    test = calibration.by_exposure
    reason = None if test.tested else test.reason or why
    return ErrorTest(tested=test.tested, differs=test.differs, p=test.p, reason=reason)


def _adjust(linked: _LinkedCases, bad: Mapping[str, float], crude: Estimate) -> AdjustedRisks:
    """Compare none with all within categories only, else within groups of difficulty, and pool."""
    categories = {id_: linked.cases[id_].category for id_ in bad if id_ in linked.cases}
    proxies: list[str] = []
    if any(categories.values()):
        by = "category"
        names = {id_: categories.get(id_) or NO_CATEGORY for id_ in bad}
        order = sorted(set(names.values()), key=lambda name: (name == NO_CATEGORY, name))
    else:
        order = list(_DIFFICULTIES)
        names, proxies = _difficulties(linked, bad)
        by = ", ".join(_PROXIES[name] for name in proxies)
    groups = [{id_: bad[id_] for id_ in names if names[id_] == name} for name in order]
    strata = {
        name: linked.exposed(group) for name, group in zip(order, groups, strict=True) if group
    }
    pooled = pooled_exposure_risks(list(strata.values()), seed=linked.seed)
    estimates, p, difference = pooled.estimates, pooled.p, pooled.estimates["risk_difference"]
    if not strata:
        missing = Estimate.missing(Reason(code="nothing_to_adjust_for"))
        estimates = dict.fromkeys(estimates, missing)
    silent = [len(cases.bad) for cases in strata.values() if not cases.compared_with_all([0])]
    warning = _confounding(crude, difference, p)
    change = None
    if crude.value is not None and difference.value is not None:
        ends = {"crude": crude.model_dump(), "adjusted": difference.model_dump()}
        change = _note(Reason(code="adjusted_change", by=by, **ends))
    return AdjustedRisks(
        by=by if strata else None,
        proxies=tuple(proxies),
        **estimates,
        strata=tuple(
            Stratum(
                name=name,
                table=_table(cases),
                **dict(_risks(exposure_risks(cases, seed=linked.seed))),
            )
            for name, cases in strata.items()
        ),
        left_out=LeftOut(strata=len(silent), cases=sum(silent)),
        heterogeneity=TestResult(
            p=p,
            method=pooled.method,
            reason=describe_reason(Reason(code="few_strata")) if p is None else None,
        ),
        warning=warning and _note(warning),
        change=change,
    )


def _difficulties(
    linked: _LinkedCases, bad: Mapping[str, float]
) -> tuple[dict[str, str], list[str]]:
    """The third or fifth of each case by how hard it seems, and the numbers that say so.

    The numbers are weighted by a linear regression of bad answers on them and on the exposure (a
    confounder score), so that it need not be known whether a high score is a good one.

    References
    ----------
    Miettinen (1976), Stratification by a multivariate confounder score. Cochran (1968), The
    effectiveness of adjustment by subclassification in removing bias, for fifths.
    """
    import numpy as np

    ids = sorted(id_ for id_ in bad if id_ in linked.cases)
    if len(ids) < _MIN_FOR_DIFFICULTY:
        return {}, []
    numbers: dict[str, list[float | None]] = {
        "question_length": [float(len(linked.cases[id_].question)) for id_ in ids],
        "relevant_passages": [  # of the shortest alternative
            float(min(map(len, case_needs(linked.cases[id_], ())), default=0)) for id_ in ids
        ],
        "irrelevant_score": [
            _irrelevant_score(linked.cases[id_], linked.traces.get(id_)) for id_ in ids
        ],
    }
    columns = {}
    for name, values in numbers.items():
        known = [value for value in values if value is not None]
        if len(known) < len(values) / 2 or min(known) == max(known):
            continue
        column = np.array([np.mean(known) if value is None else value for value in values])
        columns[name] = (column - column.mean()) / column.std()
    if not columns:
        return {}, []
    proxies = np.stack(list(columns.values()), axis=1)
    exposed = np.array([[linked.exposures[id_] == name for name in EXPOSURES] for id_ in ids])
    outcome = np.array([bad[id_] for id_ in ids])
    weights = np.linalg.lstsq(np.hstack([exposed, proxies]), outcome, rcond=None)[0]
    score = np.round(proxies @ weights[len(EXPOSURES) :], _DECIMALS)
    names = _DIFFICULTIES if len(ids) >= _MIN_FOR_FIFTHS else _DIFFICULTIES[1:-1]
    cuts = np.quantile(score, np.arange(1, len(names)) / len(names))
    places = np.searchsorted(cuts, score)
    return {id_: names[place] for id_, place in zip(ids, places, strict=True)}, list(columns)


def _irrelevant_score(case: Case, trace: Trace | None) -> float | None:
    """The score of the first retrieved passage that the case does not need."""
    if trace is None:
        return None
    relevant = set(relevant_ids(case, trace.retrieved))
    return next((p.score for p in trace.retrieved if p.id not in relevant), None)


def _confounding(crude: Estimate, pooled: Estimate, p: float | None) -> Reason | None:
    """Where all cases together mislead (Simpson's paradox), if they do.

    Two differences near 0 have two signs by chance in every ninth run in which nothing is
    confounded (of 60 to 300 cases in four categories), so a sign only turns where one of the two
    intervals excludes 0: then that happens in fewer than one of 1,000.
    """
    if crude.value is None or pooled.value is None or pooled.low is None or pooled.high is None:
        return None
    both = {"crude": crude.model_dump(), "adjusted": pooled.model_dump()}
    if crude.value * pooled.value < 0 and (_excludes_zero(crude) or _excludes_zero(pooled)):
        return Reason(code="sign_turns", **both)
    if not pooled.low <= crude.value <= pooled.high:
        return Reason(code="crude_misleads", **both)
    if p is not None and p < _HETEROGENEITY_P:
        return Reason(code="strata_disagree", p=p)
    return None


def _excludes_zero(estimate: Estimate) -> bool:
    low, high = estimate.low, estimate.high
    return low is not None and high is not None and (low > 0 or high < 0)


def _table(cases: ExposedCases) -> ExposureTable:
    none, some, whole = (Answers(bad=bad, good=n - bad) for bad, n in cases.table())
    return ExposureTable(none=none, some=some, all=whole)


def _note(reason: Reason) -> Note:
    return Note(code=reason.code, message=describe_reason(reason))


def _risks(estimates: Mapping[str, Estimate]) -> Risks:
    return Risks(**{name: estimates[name] for name in Risks.model_fields})
