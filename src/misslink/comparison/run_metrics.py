"""Look up any metric of a run by its name, such as recall@5 or link.attributable_fraction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, get_args

from misslink.calibration.labelled_failures import judged_run
from misslink.calibration.stored_calibration import corrected_shares, current_calibrations
from misslink.document_model import Document
from misslink.documents import METRIC_LEVELS, calibration_of, cutoff_of, manifest_of, summary_of
from misslink.errors import InputError, did_you_mean
from misslink.failure_modes import OWNERS
from misslink.field_markers import LowerIsBetter, marked_names
from misslink.io.numbers import as_finite, parse_estimate
from misslink.judge.calibration import Calibration
from misslink.linking.association import summarize_association
from misslink.parts import CaseValues, case_ids, places_of, select_items
from misslink.pipeline.summary import (
    Reading,
    conversation_estimate,
    lower_is_better,
    mean_reading,
    metric_readings,
)
from misslink.registry import judged_metrics, rank_metrics
from misslink.render.format import format_estimate
from misslink.render.html import html_table
from misslink.retrieval import (
    format_metric_name,
    mean_scores,
    parse_metric,
    score_cases,
    unmatched_reason,
)
from misslink.stats import proportion
from misslink.stats.intervals import median
from misslink.types import Estimate, FailureMode, Link, Outcome, Reason, Run

CONVERSATIONS = "conversations_passed"  # a share of conversations, which has no value per case
ROUNDING_TOLERANCE = 1e-9  # between two ways to compute one number
UNKNOWN_OUTCOMES = frozenset({"inconclusive", "unknown"})

# The outcomes of each axis of a link, and how to read them.
LINK_AXES: dict[str, tuple[tuple[str, ...], Callable[[Outcome], str]]] = {
    "failures": (get_args(FailureMode), lambda link: link.failure or "inconclusive"),
    "owners": (OWNERS, lambda link: link.owner or "unknown"),
    "retrieval": (get_args(Link.model_fields["retrieval"].annotation), lambda link: link.retrieval),
    "answers": (get_args(Link.model_fields["answer"].annotation), lambda link: link.answer),
}
LINK_STATES = {True: "failed", False: "passed", None: "inconclusive"}  # by `Link.failed`
_GOOD_OUTCOMES = frozenset({"passed", "none", "hit", "not_needed", "faithful"})
_AXIS_LABELS = {
    "failures": "failure mode",
    "owners": "owner",
    "retrieval": "retrieval",
    "answers": "answer",
}
_RBP_PERSISTENCE = 0.8  # the usual one
_TRUST_RATES = (
    *("sensitivity", "specificity", "kappa", "gwet_ac1", "auroc", "precision", "recall", "f1"),
    "balanced_accuracy",
)
# A path into a document with one of these keys is better when low.
_LOWER_IS_BETTER_KEYS = marked_names(Document, LowerIsBetter) | {"bad", "latency", "false_alarm"}
_ASSOCIATIONS = frozenset({"link", "link_correctness"})
_DIRECTED_GROUPS = frozenset({"coverage", "latency", "selftest", "trust", "usage"}) | _ASSOCIATIONS
_DOCUMENT_COMMANDS = {
    "replay": "misslink replay",
    "whatif": "misslink whatif",
    "selftest": "misslink selftest",
}
_ESTIMATE_KEYS = frozenset({"value", "low", "high", "n", "method"})


@dataclass(frozen=True)
class MetricValue:
    """A metric of a run: its estimate, and the value of each case if it is a mean over cases."""

    name: str
    estimate: Estimate
    of_case: Mapping[str, float | None] | None
    lower_is_better: bool


def metric_value(run: Run, name: str) -> MetricValue:
    """Return a metric of a run.

    Parameters
    ----------
    run : Run
        A whole run, or a selection of its cases by `select_cases`.
    name : str
        A rank metric at any cutoff, a judged metric, ``coverage.METRIC``, ``latency``, ``errors``,
        ``conversations_passed``, ``trust.RATE``, or a path into a document of the run, such as ``link.failures.fabricated``.
        A level such as ``retrieval.`` may come first.

    Returns
    -------
    MetricValue
        Recomputed from cases, traces, verdicts and links if possible, else read from the run's
        documents. A known metric that was not judged is missing, with a reason.

    Raises
    ------
    InputError
        No metric has this name; the message suggests the nearest one.
    """
    path = name.strip()
    level, _, metric_path = path.partition(".")
    metric = metric_path if level in METRIC_LEVELS and metric_path else path
    readings = judged_readings(run)
    axis, _, outcome = metric_path.partition(".")
    if metric in readings:
        return _judged_metric(run, metric, *readings[metric])
    if is_rank_metric(metric):
        parsed = parse_metric(metric)
        of_case = score_cases(run.cases, run.traces, [str(parsed)])[str(parsed)]
        estimate = mean_scores(
            of_case.values(), unmatched_reason(run.traces), seed=manifest_of(run).seed or 0
        )
        low = getattr(parsed, "better", "high") == "low"
        return _case_metric(run, str(parsed), estimate, of_case, low=low)
    if level == "coverage" and metric_path in readings and metric_path == readings[metric_path][0]:
        return _coverage(run, path, metric_path)
    if level == "link" and axis in LINK_AXES and outcome in LINK_AXES[axis][0]:
        return _outcome_share(run, axis, outcome)
    if metric == CONVERSATIONS:
        share = conversation_estimate(run.cases, run.outcomes).get(metric)
        missing = Estimate.missing(Reason(code="no_conversation"))
        return MetricValue(metric, share or missing, of_case=None, lower_is_better=False)
    if path == "errors":
        failed = {trace.case_id: float(trace.error is not None) for trace in run.traces}
        return _share(run, "errors", failed, Reason(code="no_case_traced"), low=True)
    low = path.rpartition(".")[2] in _lower_is_better_names(run)
    low = low or bool(set(path.split(".")) & _LOWER_IS_BETTER_KEYS)
    return MetricValue(path, _document_estimate(run, path), None, low)


class RunMetrics(Mapping[str, Estimate]):
    """The metrics of a run: those of the three levels, and by name any that `metric_value` takes."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __getitem__(self, name: str) -> Estimate:
        try:
            return metric_value(self._run, name).estimate
        except InputError as unknown:
            raise KeyError(unknown.problem) from None

    def __iter__(self) -> Iterator[str]:
        return iter(summary_metrics([self._run]))

    def __len__(self) -> int:
        return len(summary_metrics([self._run]))

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {format_estimate(name, x).brief}" for name, x in self.items())

    def _repr_html_(self) -> str:
        rows = [
            (name, format_estimate(name, found).brief, f"{found.n:,}")
            for name, found in self.items()
        ]
        return html_table("", ("metric", "value [95%]", "n"), rows)


def run_metrics(run: Run) -> RunMetrics:
    """Return the metrics of a run by name."""
    return RunMetrics(judged_run(run))


def summary_metrics(runs: Sequence[Run]) -> list[str]:
    """Return the metrics of the three levels that are of cases and in one of the runs, each once."""
    names: list[str] = []
    for level in METRIC_LEVELS:
        for run in runs:
            metrics = getattr(summary_of(run), level)
            names += (name for name in metrics if name != CONVERSATIONS)
    judged = [
        name
        for run in runs
        for name, (metric, read) in judged_readings(run).items()
        if any(score.metric == metric and read(score) is not None for score in run.scores)
    ]
    return list(dict.fromkeys([*names, *(judged if not names else ())]))


def has_direction(run: Run, name: str) -> bool:
    """Whether it is known if a rise of this metric is good or bad."""
    if name in {"errors", CONVERSATIONS} or name.partition(".")[0] in _DIRECTED_GROUPS:
        return True
    return bool(set(name.split(".")) & _LOWER_IS_BETTER_KEYS) or is_registered_metric(run, name)


def is_registered_metric(run: Run, name: str) -> bool:
    """Whether a name is a registered metric, over all cases or over a slice of them."""
    inner = name.rpartition(".metrics.")[2]
    return inner in judged_readings(run) or is_rank_metric(inner)


def is_rank_metric(name: str) -> bool:
    """Whether a name looks like a rank metric; `parse_metric` reports what is wrong with it."""
    bases = {entry.partition("@")[0] for entry in rank_metrics.names()}
    base, separator, _ = name.partition("@")
    return base in bases or (bool(separator) and "." not in name)


def select_cases(run: Run, ids: AbstractSet[str]) -> Run:
    """Return the run with only these cases; its manifest says so under ``selected``.

    Its documents stay those of the whole run, so `metric_value` reads no metric of cases from
    them. Unknown ids are ignored; with all cases selected `run` itself is returned.
    """
    selected = ids & set(case_ids(run.cases))
    if len(selected) == len(run.cases):
        return run
    cases = select_items(run.cases, selected)
    before = run.manifest.get("selected")
    total = before["of"] if isinstance(before, dict) and "of" in before else len(run.cases)
    return run.model_copy(
        update={
            "manifest": {**run.manifest, "selected": {"cases": len(cases), "of": total}},
            "cases": cases,
            **{
                part: select_items(getattr(run, part), selected)
                for part in ("traces", "verdicts", "links")
            },
        }
    )


def known_metric_names(run: Run) -> list[str]:
    """Return the names that `metric_value` takes; rank metrics at the run's own cutoffs."""
    readings, k = judged_readings(run), cutoff_of(run)
    names = [
        *summary_of(run).retrieval,
        *(format_metric_name(name, k, _RBP_PERSISTENCE) for name in rank_metrics.names()),
        *readings,
        *(f"link.{axis}.{name}" for axis, (group, _) in LINK_AXES.items() for name in group),
        *iter_paths(link_summary(run)),
        *(f"coverage.{name}" for name, (metric, _) in readings.items() if name == metric),
        *("latency", "errors", CONVERSATIONS, *(f"trust.{name}" for name in _TRUST_RATES)),
    ]
    documents = {
        name: document
        for name, document in _run_documents(run).items()
        if name not in (*METRIC_LEVELS, *_ASSOCIATIONS)
    }
    return list(dict.fromkeys([*names, *iter_paths(documents)]))


def judged_readings(run: Run) -> dict[str, tuple[str, Reading]]:
    """Each number of the judged metrics: its metric, and how to read it from a verdict."""
    metrics = dict.fromkeys(judged_metrics.names())
    # A run may have verdicts of a plugin that is not installed here.
    metrics |= dict.fromkeys(verdict.metric for verdict in run.scores)
    return {
        name: (metric, read) for metric in metrics for name, read in metric_readings(metric).items()
    }


def link_summary(run: Run) -> dict[str, Any]:
    """Return the blocks ``link`` and ``link_correctness`` of ``summary.json``.

    Of a selection of cases, with other labels, and where a calibration is newer, they are computed
    again.
    """
    whole = run.manifest.keys().isdisjoint(("selected", "relabelled")) and run.calibration is None
    if whole and run.summary.keys() >= _ASSOCIATIONS:
        return {name: run.summary[name] for name in _ASSOCIATIONS}
    seed = manifest_of(run).seed or 0
    blocks = summarize_association(run, own=current_calibrations(run), seed=seed)
    return {name: block.document() for name, block in blocks.items()}


def _case_metric(
    run: Run, name: str, estimate: Estimate, of_case: Mapping[str, float | None], *, low: bool
) -> MetricValue:
    if not run.cases:
        estimate = Estimate.missing(Reason(code="no_cases"))
    return MetricValue(name, estimate, CaseValues(of_case, places_of(run.cases)), low)


def _share(
    run: Run, name: str, values: Mapping[str, float | None], missing: Reason, *, low: bool
) -> MetricValue:
    """The share of 1 among the cases with a value."""
    of_case = dict.fromkeys(case_ids(run.cases)) | dict(values)
    decided = [value for value in of_case.values() if value is not None]
    estimate = proportion(int(sum(decided)), len(decided)) if decided else Estimate.missing(missing)
    return _case_metric(run, name, estimate, of_case, low=low)


def _judged_metric(run: Run, name: str, metric: str, read: Reading) -> MetricValue:
    verdicts = [score for score in run.scores if score.metric == metric]
    of_case: dict[str, float | None] = dict.fromkeys(case_ids(run.cases))
    of_case |= {verdict.case_id: read(verdict) for verdict in verdicts}
    estimate = mean_reading(verdicts, read, seed=manifest_of(run).seed or 0)
    if not verdicts and run.verdicts:
        estimate = Estimate.missing(Reason(code="not_judged_by", metric=metric))
    return _case_metric(run, name, estimate, of_case, low=name in _lower_is_better_names(run))


def _coverage(run: Run, name: str, metric: str) -> MetricValue:
    """The share scored, among verdicts that failed, were scored, or skipped after an app error."""
    crashed = {t.case_id for t in run.traces if t.error is not None and t.answer is None}
    values = {
        verdict.case_id: float(verdict.status == "scored")
        for verdict in run.scores
        if verdict.metric == metric and (verdict.status != "skipped" or verdict.case_id in crashed)
    }
    missing = Reason(code="not_judged")
    if any(verdict.metric == metric for verdict in run.scores):
        missing = Reason(code="nothing_to_judge")
    elif run.verdicts:
        missing = Reason(code="not_judged_by", metric=metric)
    return _share(run, name, values, missing, low=False)


def _outcome_share(run: Run, axis: str, outcome: str) -> MetricValue:
    """The share of an outcome; unknown outcomes count only if their own share is the metric."""
    outcome_of = LINK_AXES[axis][1]
    values = {
        link.case_id: float(outcome_of(link) == outcome)
        for link in run.outcomes
        if outcome in UNKNOWN_OUTCOMES or outcome_of(link) not in UNKNOWN_OUTCOMES
    }
    if outcome in ("passed", "none"):  # an answer may have failed for an unknown cause
        failed = {link.case_id: link.failed for link in run.outcomes}
        values = {name: float(not bad) for name, bad in failed.items() if bad is not None}
    missing = Reason(code="no_case_linked")
    if run.links:
        missing = Reason(code="axis_unknown", axis=_AXIS_LABELS[axis])
    name = f"link.{axis}.{outcome}"
    return _share(run, name, values, missing, low=outcome not in _GOOD_OUTCOMES)


def _lower_is_better_names(run: Run) -> set[str]:
    """Metrics that are better when low, as registered or as recorded by the run."""
    registered = lower_is_better(judged_metrics.get(name) for name in judged_metrics.names())
    return {*registered, *summary_of(run).lower_is_better}


def _document_estimate(run: Run, name: str) -> Estimate:
    """A number that is no mean over cases."""
    group, _, metric_path = name.partition(".")
    if name == "latency":
        times = [trace.latency_s for trace in run.traces if trace.latency_s is not None]
        return median(times) if times else Estimate.missing(Reason(code="no_latency"))
    if group == "trust" and metric_path in _TRUST_RATES:
        return _trust_estimate(run, metric_path)
    if group in _DOCUMENT_COMMANDS and metric_path and getattr(run, group) is None:
        return Estimate.missing(Reason(code="needs_command", command=_DOCUMENT_COMMANDS[group]))
    if group == "selftest" and run.selftest is not None:
        tested, judge = run.selftest.get("judge"), manifest_of(run).judge
        if tested != judge:
            return Estimate.missing(
                Reason(code="selftest_of_other_judge", tested=tested, judge=judge)
            )
    try:
        if group in _ASSOCIATIONS:
            estimate = find_estimate(link_summary(run), name, n=len(run.links))
            return estimate if run.cases else Estimate.missing(Reason(code="no_cases"))
        estimate = find_estimate(_run_documents(run), name, n=len(run.cases))
    except MissingPathError:
        links = {group: run.summary.get(group, {})}
        if group in _ASSOCIATIONS and "selected" in run.manifest and name in iter_paths(links):
            return Estimate.missing(Reason(code="not_of_selection"))
        raise _unknown_metric_error(run, name) from None
    if "selected" in run.manifest or ("relabelled" in run.manifest and group != "usage"):
        return Estimate.missing(Reason(code="whole_run_only"))
    return estimate


def _trust_estimate(run: Run, name: str) -> Estimate:
    rates, stored, applied = dict[str, Estimate](), calibration_of(run), Calibration.of_run(run)
    if stored is not None:
        rates |= stored.agreement
    if applied is not None:  # what linking used comes first
        rates |= {"sensitivity": applied.sensitivity, "specificity": applied.specificity}
    if not rates:
        return Estimate.missing(Reason(code="not_calibrated"))
    return rates.get(name) or Estimate.missing(Reason(code="not_in_calibration", name=name))


def _run_documents(run: Run) -> dict[str, object]:
    documents = {name: getattr(run, name) for name in _DOCUMENT_COMMANDS}
    documents_by_name = {
        **run.summary,
        **{name: doc for name, doc in documents.items() if doc is not None},
    }
    if run.calibration is not None:  # it may be newer than the summary
        shares = corrected_shares(run)
        documents_by_name["corrected"] = {
            name: share.summary_entry().document() for name, share in shares.items()
        }
    return documents_by_name


def _unknown_metric_error(run: Run, name: str) -> InputError:
    paths = (f"link.{axis}.{name}" for axis, (outcomes, _) in LINK_AXES.items() if name in outcomes)
    path = next(paths, None)
    hint = f"did you mean '{path}'?" if path else did_you_mean(name, known_metric_names(run))
    ranks = [format_metric_name(entry) for entry in rank_metrics.names()]
    listed = ", ".join([*ranks, *judged_readings(run), "latency", "errors"])
    listing = (
        f"known: {listed}, and paths such as link.attributable_fraction, "
        "link.failures.retrieval_miss, coverage.faithfulness, usage.calls"
    )
    return InputError(f"no metric of a run is called '{name}'; {hint or listing}")


class MissingPathError(LookupError):
    """The document has no number at this path."""


def find_estimate(document: Mapping[str, Any], path: str, *, n: int) -> Estimate:
    """Return the number at a dotted path; a plain number gets `n` and no interval.

    Keys may contain dots; an item of a list is found by its ``name``. Raises MissingPathError.

    >>> find_estimate({"usage": {"calls": 12, "cost": None}}, "usage.calls", n=3).value
    12.0
    >>> find_estimate({"usage": {"calls": 12, "cost": None}}, "usage.cost", n=3).reason
    'the run has no value there (cost is null)'
    """
    for found, key, node, parent in _walk(document):
        if node is None and (found == path or path.startswith(f"{found}.")):
            reason = parent.get("reason") if isinstance(parent, Mapping) else None
            text = reason if isinstance(reason, str) else Reason(code="null_number", name=key)
            return Estimate.missing(text)
        if found != path:
            continue
        if isinstance(node, Mapping) and node.keys() >= _ESTIMATE_KEYS:
            return parse_estimate(node)
        if (number := as_finite(node)) is not None:
            recorded = Reason(code="recorded_number")
            return Estimate.partial(number, None, None, recorded, n=n, method="recorded")
    raise MissingPathError(path)


def iter_paths(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of a document that end in an estimate, a number or null."""
    for path, _, node, parent in _walk(document):
        inside = isinstance(parent, Mapping) and parent.keys() >= _ESTIMATE_KEYS
        is_estimate = isinstance(node, Mapping) and node.keys() >= _ESTIMATE_KEYS
        if not inside and (node is None or is_estimate or as_finite(node) is not None):
            yield path


def _walk(parent: Any, prefix: str = "") -> Iterator[tuple[str, str, Any, Any]]:
    """Path, key, value and parent of everything in a document; a list's items have names."""
    if isinstance(parent, Mapping):
        items = list(parent.items())
    elif isinstance(parent, list):
        named = (item for item in parent if isinstance(item, Mapping))
        items = [(item["name"], item) for item in named if isinstance(item.get("name"), str)]
    else:
        return
    for key, node in items:
        yield f"{prefix}{key}", key, node, parent
        yield from _walk(node, f"{prefix}{key}.")
