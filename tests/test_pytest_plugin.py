"""The pytest plugin, in a suite of its own: it gates, and does nothing unless it is asked."""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent / "deciding"))
from gated_run import gated_run, write

pytest_plugins = "pytester"
ROOT = Path(__file__).parents[1]
# Where the package was installed before it had the plugin, the plugin is named by hand.
LOADED = any(entry.name == "misslink" for entry in entry_points(group="pytest11"))
BY_HAND = () if LOADED else ("-p", "misslink.pytest_plugin")
CRITERIA = "gates: [{name: recall_at_1, threshold: 0.5}]"


@pytest.fixture
def suite(pytester):
    readme = (ROOT / "examples" / "ci" / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    pytester.makepyfile(example)
    (pytester.path / "ship-criteria.yaml").write_text(CRITERIA, encoding="utf-8")
    write(pytester.path / "reports" / "main", gated_run("1111111100"))
    write(pytester.path / "reports" / "worse", gated_run("1111000000"))
    return lambda *options: pytester.runpytest_subprocess(*BY_HAND, "-p", "no:xdist", *options)


def test_the_documented_example_gates_on_the_run_of_the_option(suite):
    suite("--misslink-run", "reports/main").assert_outcomes(passed=1)
    failed = suite("--misslink-run", "reports/worse")
    failed.assert_outcomes(failed=1)
    failed.stdout.fnmatch_lines(["*error recall_at_1: recall@1 is 40 %, below the floor of 50 %*"])


def test_the_run_may_stand_in_the_configuration(suite, pytester):
    pytester.makeini("[pytest]\nmisslink_run = reports/worse\n")
    suite("--strict-config").assert_outcomes(failed=1)


def test_the_run_may_be_made_by_a_fixture(suite, pytester):
    pytester.makeconftest(
        "import pytest\nfrom misslink.files import read_run\n\n"
        '@pytest.fixture(scope="session")\ndef misslink_run():\n'
        '    return read_run("reports/worse")\n'
    )
    suite().assert_outcomes(failed=1)


def test_without_a_run_the_message_says_how_to_give_one(suite):
    result = suite()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*there is no run: set misslink_run in pytest's configuration*"])


def test_a_suite_that_does_not_use_it_imports_nothing_heavy(pytester):
    pytester.makepyfile(
        "import sys\n\ndef test_light():\n"
        '    assert not {"numpy", "pandas", "openai", "yaml"} & set(sys.modules)\n'
    )
    result = pytester.runpytest_subprocess(*BY_HAND, "-p", "no:xdist", "-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1)


def test_the_package_declares_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"misslink": "misslink.pytest_plugin"}
