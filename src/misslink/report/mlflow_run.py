"""Log a run to MLflow: its numbers with intervals, its settings, and its report.

Source: the client of mlflow 3 (https://mlflow.org/docs/latest/api_reference/python_api/mlflow.client.html).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from misslink.documents import manifest_of, summary_of
from misslink.errors import InputError, MissingExtraError
from misslink.io.secrets import address_secrets, redact_keys
from misslink.io.storage import redact_url
from misslink.registry import exporters
from misslink.types import Estimate, Run

EXPERIMENT = "misslink"
_REPORTS = {"report.html": "html", "report.md": "markdown", "cases.parquet": "parquet"}
# MLflow waits minutes for a server that is not there, reports its use to its makers, and prints a
# run's address on stdout, where the command prints its JSON.
_SETTINGS = {
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "30",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
_SECRETS = ("MLFLOW_TRACKING_TOKEN", "MLFLOW_TRACKING_PASSWORD")


class LoggedRun(NamedTuple):
    """Where a run was logged."""

    experiment: str
    run_id: str
    metrics: int


def iter_metrics(run: Run) -> Iterator[tuple[str, float]]:
    """Yield the numbers of a run under names that MLflow takes; one without a value has none.

    An estimate gives its value under its own name (``recall_at_5``), and ``.low``, ``.high``, ``.n``.
    """
    summary = summary_of(run)
    estimates: dict[str, Estimate] = {
        **summary.retrieval,
        **summary.generation,
        **summary.answer,
        **summary.judged,
    }
    link = summary.link
    estimates |= {
        "failed": link.failed,
        "link.risk_difference": link.risk_difference,
        "link.attributable_fraction": link.attributable_fraction,
    }
    for name, estimate in estimates.items():
        if estimate.value is None:
            continue
        key = re.sub(r"[^\w./ -]", "_", name.replace("@", "_at_"))
        yield key, estimate.value
        ends = {"low": estimate.low, "high": estimate.high, "n": estimate.n}
        yield from ((f"{key}.{end}", float(x)) for end, x in ends.items() if x is not None)
    yield from ((f"owners.{owner}", float(cases)) for owner, cases in link.owners.items())


def log_run(run: Run, uri: str | None = None, experiment: str = EXPERIMENT) -> LoggedRun:
    """Log `run` as a new run of an MLflow experiment.

    Parameters
    ----------
    run : Run
    uri : str or None
        Tracking store, such as ``sqlite:///mlflow.db`` or a server's address. None: the environment
        variable ``MLFLOW_TRACKING_URI``.
    experiment : str
        Created if it does not exist.

    Returns
    -------
    LoggedRun

    Raises
    ------
    MissingExtraError
        MLflow is not installed.
    InputError
        No store is named, or it refuses the run.
    """
    store = uri or os.environ.get("MLFLOW_TRACKING_URI")
    if not store:
        raise InputError(
            "No MLflow store is named. Give --uri, such as sqlite:///mlflow.db, or set "
            "MLFLOW_TRACKING_URI."
        )
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        from mlflow.exceptions import MlflowException
        from mlflow.tracking import MlflowClient
    except ImportError:
        raise MissingExtraError("MLflow", "mlflow") from None
    try:
        return _log(MlflowClient(tracking_uri=store), run, experiment)
    except (MlflowException, OSError, ImportError) as refused:
        secrets = [*address_secrets(store), *filter(None, map(os.environ.get, _SECRETS))]
        reason = redact_keys(str(refused) or type(refused).__name__, secrets).splitlines()[0]
        raise InputError(f"MLflow at {redact_url(store)} did not take the run: {reason}") from None


def _log(client: Any, run: Run, experiment: str) -> LoggedRun:
    from mlflow.entities import Metric, Param, RunTag

    found = client.get_experiment_by_name(experiment)
    experiment_id = found.experiment_id if found else client.create_experiment(experiment)
    manifest, summary = manifest_of(run), summary_of(run)
    made = client.create_run(experiment_id, run_name=Path(summary.run or "").name or None)
    run_id = made.info.run_id
    now = made.info.start_time
    metrics = [Metric(name, value, now, 0) for name, value in iter_metrics(run)]
    settings = {
        "app": manifest.app or manifest.traces,
        "goldset": manifest.goldset,
        "judge": manifest.judge,
        "k": manifest.k,
        "cases": summary.cases,
        "misslink": manifest.misslink,
    }
    params = [Param(name, str(value)) for name, value in settings.items() if value]
    try:
        tags = [RunTag("mlflow.note.content", run.headline)]
        client.log_batch(run_id, metrics=metrics, params=params, tags=tags)
        with TemporaryDirectory(prefix="misslink-") as folder:
            for file, form in _REPORTS.items():
                exporters.get(form)(run, Path(folder) / file)
            client.log_artifacts(run_id, folder)
        client.log_dict(run_id, summary.model_dump(mode="json"), "summary.json")
    except BaseException:
        client.set_terminated(run_id, "FAILED")
        raise
    client.set_terminated(run_id)
    return LoggedRun(experiment, run_id, len(metrics))
