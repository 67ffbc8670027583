"""The pytest plugin, in a suite of its own: it gates, and does nothing unless it is asked."""

import re
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import numpy.fft  # noqa: F401  pytester forgets what its runs import, and numpy loads its parts once
import pytest
import scipy.special  # noqa: F401

from gated_run import gated_run, write
from misslink import registry
from misslink.errors import InputError
from misslink.pytest_plugin import _fail_test, check_gate

pytest_plugins = "pytester"
ROOT = Path(__file__).parents[1]
# Where the package was installed before it had the plugin, the plugin is named by hand.
LOADED = any(entry.name == "misslink" for entry in entry_points(group="pytest11"))
BY_HAND = () if LOADED else ("-p", "misslink.pytest_plugin")
# Each inner run imports its plugins anew; LangSmith's takes a second.
ALONE = (*BY_HAND, "-p", "no:xdist", "-p", "no:langsmith_plugin", "-p", "no:hypothesispytest")
CRITERIA = "gates: [{name: recall_at_1, threshold: 0.5}]"


@pytest.fixture(autouse=True, scope="module")
def registered():
    """What a run registers stays, and pytester forgets the module: it would be registered twice."""
    for entry in vars(registry).values():
        if isinstance(entry, registry.Registry):
            entry.names()


@pytest.fixture
def suite(pytester):
    readme = (ROOT / "examples" / "ci" / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    pytester.makepyfile(example)
    (pytester.path / "ship-criteria.yaml").write_text(CRITERIA, encoding="utf-8")
    write(pytester.path / "reports" / "main", gated_run("1111111100"))
    write(pytester.path / "reports" / "today", gated_run("1111111110"))
    write(pytester.path / "reports" / "worse", gated_run("1111000000"))
    return lambda *options: pytester.runpytest_inprocess(*ALONE, *options)


@pytest.mark.slow
def test_the_documented_example_gates_on_the_run_of_the_option(suite):
    suite("--misslink-run", "reports/today").assert_outcomes(passed=1)
    failed = suite("--misslink-run", "reports/worse")
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*error recall_at_1: recall@1 is 40%, below the floor of 50%*"])


def test_the_run_may_stand_in_the_configuration(suite, pytester):
    pytester.makeini("[pytest]\nmisslink_run = reports/worse\n")
    suite("--strict-config").assert_outcomes(failed=1)


def test_the_run_may_be_made_by_a_fixture(suite, pytester):
    pytester.makeconftest(
        "import pytest\nfrom misslink.io import read_run\n\n"
        '@pytest.fixture(scope="session")\ndef misslink_run():\n'
        '    return read_run("reports/worse")\n'
    )
    suite().assert_outcomes(failed=1)


def test_without_a_run_the_message_says_how_to_give_one(suite):
    result = suite()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*there is no run: set misslink_run in pytest's configuration*"])


def test_a_warning_is_told_and_does_not_fail(suite, pytester):
    text = CRITERIA.replace("threshold", "severity: warning, threshold")
    (pytester.path / "ship-criteria.yaml").write_text(text, encoding="utf-8")
    result = suite("--misslink-run", "reports/worse")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*warning recall_at_1: recall@1 is 40%, below the floor of 50%*"])


def test_a_mistake_is_one_sentence_and_no_traceback(suite, pytester):
    text = CRITERIA.replace("recall_at_1", "recal_at_1")
    (pytester.path / "ship-criteria.yaml").write_text(text, encoding="utf-8")
    result = suite("--misslink-run", "reports/today")
    result.assert_outcomes(failed=1)
    said = result.stdout.str()
    assert "line 1: gate 'recal_at_1': its name is not a metric" in said
    assert "Error" not in said
    assert "During handling" not in said
    missing = suite("--misslink-run", "nowhere")
    assert "this is not a run folder" in missing.stdout.str()
    assert "Traceback" not in missing.stdout.str()


def test_a_message_names_what_a_test_can_set(tmp_path):
    (tmp_path / "gates.yaml").write_text("gates: [{name: recall_at_1, regression_max: 0.1}]")
    run = gated_run("11")
    with pytest.raises(InputError) as error:
        check_gate(tmp_path / "gates.yaml", run)
    with pytest.raises(pytest.fail.Exception) as failure:
        _fail_test(error.value)
    message = str(failure.value)
    assert "assert_gate(..., baseline=...)" in message
    assert "assert_gate(..., allow_missing_baseline=True)" in message
    assert "--" not in message
    check_gate(tmp_path / "gates.yaml", run, allow_missing_baseline=True)


def test_a_run_is_not_its_own_baseline(suite):
    result = suite("--misslink-run", "reports/main")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the baseline is the run itself*"])


def test_what_is_under_test_moves_no_cursor(suite, pytester):
    hostile = [f"c\x1b[2J\r\x9b{at}" for at in range(10)]
    write(pytester.path / "reports" / "hostile", gated_run("0" * 10, ids=hostile))
    pytester.makepyfile(
        test_it='def test_it(assert_gate):\n    assert_gate("ship-criteria.yaml")\n'
    )
    result = suite("--misslink-run", "reports/hostile", "test_it.py")
    result.assert_outcomes(failed=1)
    assert "look at c[2J" in result.stdout.str()
    assert not {"\x1b", "\x9b"} & set(result.stdout.str())


@pytest.mark.slow
def test_a_suite_that_does_not_use_it_imports_nothing_heavy(pytester):
    pytester.makepyfile(
        "import sys\n\ndef test_light():\n"
        '    assert not {"numpy", "pandas", "openai", "yaml"} & set(sys.modules)\n'
    )
    result = pytester.runpytest_subprocess(*ALONE)
    result.assert_outcomes(passed=1)


def test_the_package_declares_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"misslink": "misslink.pytest_plugin"}
