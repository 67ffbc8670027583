"""A notebook cell, where an event loop is already running, evaluates like a script."""

import pytest

pytestmark = pytest.mark.slow

CELL = """
import misslink
gold = [{"id": "a", "question": "When?", "relevant": ["p"]}]
traces = [{"case_id": "a", "retrieved": [{"id": "p", "text": "At seven."}], "answer": "At seven."}]
run = misslink.evaluate(goldset=gold, traces=traces, judge="heuristic", cache=None)
print(run.links[0].failure)
"""


def test_a_cell_of_a_real_notebook_evaluates():
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    nbclient.NotebookClient(notebook, timeout=120).execute()
    (output,) = notebook.cells[0].outputs
    assert output.text.strip() == "passed"
