"""Offline evaluations of the variants, compared with the live result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.comparison.run_metrics import metric_value
from misslink.document_model import parse_document
from misslink.documents import Summary
from misslink.errors import InputError, known_names
from misslink.io.manifest import display_path
from misslink.io.run_folder import read_complete_run, read_json_object
from misslink.stats import paired_difference
from misslink.stats.intervals import square_and_add, without_interval
from misslink.types import Estimate, Reason


@dataclass(frozen=True)
class OfflineRun:
    """A variant's offline run: metric to case id to a value in [0, 1]."""

    folder: str
    judge: str
    metrics: Mapping[str, Estimate]
    questions: Mapping[str, str]  # by case id; empty if only a summary is available
    values: Mapping[str, Mapping[str, float | None]]

    def document(self) -> dict[str, object]:
        """Return it as JSON values."""
        metrics = {name: estimate.model_dump() for name, estimate in self.metrics.items()}
        return {"run": self.folder, "judge": self.judge, "metrics": metrics}


def read_offline(given: Sequence[str], variants: Sequence[str]) -> dict[str, OfflineRun]:
    """Read run folders as the command line names them.

    Parameters
    ----------
    given : sequence of str
        VARIANT=FOLDER each.
    variants : sequence of str
        Those of the experiment.

    Returns
    -------
    dict of str to Offline
        Of each variant; its metrics are ``recall@k``, ``fully_faithful`` and ``correctness``.

    Raises
    ------
    InputError
        One is written otherwise, names no variant or the same twice, or its folder holds no
        readable summary.json.
    """
    runs: dict[str, OfflineRun] = {}
    for text in given:
        name, sign, folder = text.partition("=")
        if not sign or not name or not folder:
            raise InputError(f"--offline {text} cannot be read. Write VARIANT=FOLDER of a run.")
        if name not in variants:
            raise InputError(
                f"--offline names '{name}', which is not a variant of this experiment; "
                + known_names(name, variants)
            )
        if name in runs:
            raise InputError(f"--offline names variant '{name}' twice. Name each once.")
        runs[name] = _read_offline_run(Path(folder))
    return runs


def offline_metrics(
    runs: Mapping[str, OfflineRun], control: str, variant: str
) -> dict[str, dict[str, Any]]:
    """Compare a variant's run with control's: metric to both estimates and their difference."""
    # With the same questions in both runs, the difference is paired, as in `misslink compare`.
    # Otherwise it is Newcombe's square-and-add interval for independent runs, which is wider.
    if control not in runs or variant not in runs:
        return {}
    control_run, variant_run = runs[control], runs[variant]
    metrics = {}
    for name in control_run.metrics:
        if name not in variant_run.metrics:
            continue
        first, second = control_run.metrics[name], variant_run.metrics[name]
        difference = _difference(first, second)
        if (
            control_run.questions
            and control_run.questions == variant_run.questions
            and name in control_run.values
            and name in variant_run.values
        ):
            sides = (
                [run.values[name].get(case) for case in control_run.questions]
                for run in (control_run, variant_run)
            )
            difference = paired_difference(*sides).difference
        metrics[name] = {
            "control": first.model_dump(),
            "variant": second.model_dump(),
            "difference": difference.model_dump(),
        }
    return metrics


def disagreements(
    offline: Mapping[str, Mapping[str, Any]],
    live: Mapping[str, Mapping[str, Any]],
    control: str,
    variant: str,
) -> list[dict[str, Any]]:
    """Return where offline and live point different ways.

    Parameters
    ----------
    offline : mapping
        As `offline_of` has it; more is better of all.
    live : mapping of str to mapping
        The user metrics of the comparison.
    control, variant : str

    Returns
    -------
    list of dict
        ``is_clear``: both intervals exclude no difference; otherwise chance may be why.
    """
    results = []
    for name, off in offline.items():
        for metric, live_metric in live.items():
            offline_difference = off["difference"]
            live_difference = live_metric["always_valid"]["difference"]
            sign = 1 if live_metric["better"] == "high" else -1
            if None in (offline_difference["value"], live_difference["value"]):
                continue
            if offline_difference["value"] * live_difference["value"] * sign >= 0:
                continue
            results.append(
                {
                    "offline": name,
                    "live": metric,
                    "offline_winner": variant if offline_difference["value"] > 0 else control,
                    "live_winner": variant if live_difference["value"] * sign > 0 else control,
                    "offline_difference": offline_difference,
                    "live_difference": live_difference,
                    "unit": live_metric["unit"],
                    "variant": variant,
                    "is_clear": _excludes_none(offline_difference)
                    and _excludes_none(live_difference),
                }
            )
    return sorted(results, key=lambda result: not result["is_clear"])


def _excludes_none(interval: Mapping[str, Any]) -> bool:
    low, high = interval["low"], interval["high"]
    return low is not None and high is not None and (low > 0 or high < 0)


def _difference(first: Estimate, other: Estimate) -> Estimate:
    count, method = first.n + other.n, "square and add"
    if first.value is None or other.value is None:
        unknown = first if first.value is None else other
        return Estimate.missing(unknown.why, n=count, method=method)
    if first.low is None or first.high is None or other.low is None or other.high is None:
        why = Reason(code="one_run_without_interval")
        return without_interval(other.value - first.value, why, n=count, method=method)
    value, low, high = square_and_add(
        (other.value, other.low, other.high), (-first.value, -first.high, -first.low)
    )
    return Estimate(value=value, low=low, high=high, n=count, method=method)


def _read_offline_run(folder: Path) -> OfflineRun:
    path = folder / "summary.json"
    if not path.is_file():
        raise InputError(
            "Cannot read the run: it has no summary. Name a folder that misslink evaluate wrote.",
            path=path,
        )
    summary = parse_document(Summary, read_json_object(path), path)
    if not summary.judge:
        raise InputError(
            "This is not the summary of a run. Name a folder that misslink evaluate wrote.",
            path=path,
        )
    measured = {**summary.retrieval, **summary.generation, **summary.answer}
    metrics = {
        name: estimate
        for name, estimate in measured.items()
        if name in (f"recall@{summary.k}", "fully_faithful", "correctness")
    }
    questions: dict[str, str] = {}
    values: dict[str, Mapping[str, float | None]] = {}
    if (folder / "manifest.json").is_file():  # not a summary that was kept alone
        run = read_complete_run(folder)
        questions = {case.id: case.question for case in run.cases}
        for name in metrics:
            if (of_case := metric_value(run, name).of_case) is not None:
                values[name] = of_case
    return OfflineRun(display_path(folder), summary.judge, metrics, questions, values)
