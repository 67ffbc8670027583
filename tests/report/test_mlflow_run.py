"""A run in a real MLflow store: its numbers with intervals, and its report."""

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

import misslink
from misslink.cli.main import app
from misslink.errors import InputError, MissingExtraError
from misslink.examples import load_example

pytestmark = pytest.mark.skipif(not find_spec("mlflow"), reason="needs the extra 'mlflow'")

cli = CliRunner()


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mlflow") / "run"
    misslink.evaluate(**load_example("ferry"), out=folder, embedding="none")
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The address of a running ``mlflow server``; the small package has none."""
    pytest.importorskip("mlflow.server", reason="needs the whole mlflow", exc_type=ImportError)
    folder = tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = "127.0.0.1", free.getsockname()[1]
    command = ["-m", "mlflow", "server", "--host", address[0], "--port", str(address[1])]
    command += ["--backend-store-uri", f"sqlite:///{folder / 'mlflow.db'}", "--workers", "1"]
    command += ["--artifacts-destination", str(folder / "artifacts")]
    url = f"http://{address[0]}:{address[1]}"
    settings = {"MLFLOW_DISABLE_TELEMETRY": "true", "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=folder,
            env={**os.environ, **settings},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # with its workers, so that all of them can be ended
        )
        try:
            wait_for(f"{url}/health", process)
            yield url
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def wait_for(url, process):
    """Return when a server answers; it has none to tell when it is ready."""
    for _ in range(1_200):
        assert process.poll() is None, "the server ended"
        try:
            httpx.get(url).raise_for_status()
        except httpx.HTTPError:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
        else:
            return
    raise AssertionError("the server does not answer")


@pytest.fixture(scope="module", params=["file", pytest.param("server", marks=pytest.mark.slow)])
def store(request, run_folder):
    """The address of a store, and what the command printed when it logged the run."""
    for name in ("alembic", "mlflow"):
        logging.getLogger(name).setLevel(logging.WARNING)
    monkeypatch = pytest.MonkeyPatch()
    monkeypatch.chdir(run_folder.parent)  # artifacts of an SQLite store are put in ./mlruns
    uri = f"sqlite:///{run_folder.parent / 'mlflow.db'}"
    if request.param == "server":
        uri = request.getfixturevalue("server")
    command = ["export", str(run_folder), "--to", "mlflow", "--uri", uri, "--json"]
    done = cli.invoke(app, command, env={"MLFLOW_TRACKING_URI": "http://127.0.0.1:9"})
    assert done.exit_code == 0, done.output
    yield uri, json.loads(done.stdout)
    monkeypatch.undo()


@pytest.mark.slow
def test_every_number_is_there_with_its_interval(run_folder, store):
    from mlflow.tracking import MlflowClient

    uri, printed = store
    logged = MlflowClient(uri).get_run(printed["run_id"])
    summary = json.loads((run_folder / "summary.json").read_text())
    k = summary["k"]
    for level, name in (("retrieval", f"recall@{k}"), ("generation", "faithfulness")):
        estimate, key = summary[level][name], name.replace("@", "_at_")
        assert estimate["value"] is not None
        assert logged.data.metrics[key] == estimate["value"]
        for end in ("low", "high", "n"):
            assert logged.data.metrics[f"{key}.{end}"] == estimate[end]
    owners = summary["link"]["owners"]
    assert {o: logged.data.metrics[f"owners.{o}"] for o in owners} == owners
    assert len(logged.data.metrics) == printed["metrics"]
    assert logged.data.params["judge"] == "heuristic"
    assert logged.data.tags["mlflow.note.content"] == summary["headline"]
    assert logged.info.status == "FINISHED"


@pytest.mark.slow
def test_the_report_is_an_artifact(store, tmp_path):
    from mlflow.tracking import MlflowClient

    uri, printed = store
    client = MlflowClient(uri)
    names = {file.path for file in client.list_artifacts(printed["run_id"])}
    assert names == {"report.html", "report.md", "cases.parquet", "summary.json"}
    page = Path(client.download_artifacts(printed["run_id"], "report.html", str(tmp_path)))
    assert "<html" in page.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "MLFLOW_TRACKING_URI"),
        (["--uri", "sqlite:////dev/null/mlflow.db"], "did not take the run"),
        (["--uri", "http://ada:top-secret-word@127.0.0.1:9"], "did not take the run"),
        (["--uri", "sqlite:///x.db", "--send", "http://127.0.0.1:9"], "--send"),
    ],
)
def test_a_store_that_is_not_there_is_one_sentence(run_folder, arguments, said, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    done = cli.invoke(app, ["export", str(run_folder), "--to", "mlflow", *arguments])
    assert isinstance(done.exception, InputError)
    assert said in str(done.exception)
    assert "top-secret-word" not in str(done.exception)


def test_without_the_package_the_pip_line_is_given(run_folder, monkeypatch):
    for name in [n for n in sys.modules if n.split(".")[0] == "mlflow"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mlflow", None)
    done = cli.invoke(app, ["export", str(run_folder), "--to", "mlflow", "--uri", "sqlite:///x"])
    assert isinstance(done.exception, MissingExtraError)
    assert "pip install 'misslink[mlflow]'" in str(done.exception)


def test_other_tools_have_no_store(run_folder):
    done = cli.invoke(app, ["export", str(run_folder), "--to", "csv", "--uri", "sqlite:///x"])
    assert isinstance(done.exception, InputError)
