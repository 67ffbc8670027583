"""The names that misslink offers to Python, and what their docstrings say."""

import inspect
import re
import subprocess
import sys
from functools import cache

import pytest

import misslink

FUNCTIONS = {
    "calibrate", "compare", "evaluate", "evaluate_async", "feedback", "gate", "record_retrieval",
    "register_metric", "rejudge", "replay", "selftest", "whatif",
}  # fmt: skip
MODELS = {"Case", "Claim", "Estimate", "Link", "Passage", "Run", "Trace", "Verdict"}
RESULTS = {"CalibrationDocument", "Comparison", "GateDecision", "Replay", "Selftest", "WhatIf"}
OTHERS = {
    "JudgeConfig",
    "JudgedMetric",
    "MisslinkError",
    "Rubric",
    "__version__",
    "judge",
    "testing",
}


def test_the_public_names_are_these():
    assert set(misslink.__all__) == FUNCTIONS | MODELS | RESULTS | OTHERS
    assert set(dir(misslink)) == set(misslink.__all__)
    assert all(getattr(misslink, name) is not None for name in misslink.__all__)
    assert set(misslink.testing.__all__) == {"ScriptedJudge", "complete", "small_run"}
    assert {"Ask", "Judge", "JudgeInfo", "Reply"} <= set(misslink.judge.__all__)


def test_no_name_is_hidden_by_a_package_that_is_imported():
    program = (
        "import misslink, misslink.cli.main, misslink.report.page, misslink.pytest_plugin\n"
        "misslink.compare, misslink.gate\n"
        "import misslink.comparison.compare_runs, misslink.gates.decision, misslink.judge.protocol\n"
        f"assert all(callable(getattr(misslink, name)) for name in {sorted(FUNCTIONS)})"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_to_import_misslink_loads_none_of_its_modules():
    program = (
        "import sys, misslink\n"
        "print([name for name in sys.modules if name.startswith('misslink.')],"
        " 'pydantic' in sys.modules, 'numpy' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.split("\n")[0] == "[] False False"


@cache
def sections(name):
    """The sections of a docstring: parameters with their own lines, and the names of the others."""
    text = inspect.getdoc(getattr(misslink, name)) or ""
    titles = re.findall(r"^(\w+)\n-{3,}$", text, re.MULTILINE)
    found = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-{3,}$|\Z)", text, re.MULTILINE | re.DOTALL)
    lines = re.findall(r"^(\S[^:\n]*)", found[1], re.MULTILINE) if found else []
    return titles, [each.strip(" *") for line in lines for each in line.split(",")], text


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_function_documents_its_parameters_results_and_an_example(name):
    titles, documented, text = sections(name)
    assert len(text.splitlines()[0]) <= 100
    parameters = inspect.signature(getattr(misslink, name)).parameters
    assert sorted(documented) == sorted(parameters)
    wanted = {"Parameters", "Raises", "Examples"}
    assert wanted | ({"Returns"} if name != "record_retrieval" else set()) <= set(titles)


@pytest.mark.parametrize("name", sorted(MODELS - {"Run", "Estimate"}))
def test_a_model_documents_no_field_that_it_lacks(name):
    _, documented, _ = sections(name)
    assert set(documented) <= {*getattr(misslink, name).model_fields, *dir(getattr(misslink, name))}
