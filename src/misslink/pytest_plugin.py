"""Gates in an existing test suite: the fixtures ``misslink_run`` and ``assert_gate``.

pytest loads this by its entry point. It does nothing until a test asks for a fixture, and until
then imports nothing of misslink that is heavy.

::

    def test_may_ship(assert_gate):
        assert_gate("ship-criteria.yaml", baseline="reports/main")

The run is the folder that ``misslink_run = reports/today`` in pytest's configuration (from pytest's
root folder) or ``--misslink-run=reports/today`` (from the working folder) names, or what a fixture
of that name in your own conftest.py returns::

    @pytest.fixture(scope="session")
    def misslink_run():
        return misslink.evaluate(chain, "gold.jsonl", judge="embedded", k=2)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from misslink.deciding.baseline import Baseline
    from misslink.types import Run

__all__ = ["check_gate"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add where the run is."""
    told = "run folder of misslink that the fixture misslink_run reads"
    parser.addini("misslink_run", told, default="")
    parser.getgroup("misslink").addoption("--misslink-run", metavar="FOLDER", help=told)


@pytest.fixture(scope="session")
def misslink_run(pytestconfig: pytest.Config) -> Run:
    """The run that gates are held against."""
    from misslink.errors import InputError
    from misslink.files import read_whole

    given = pytestconfig.getoption("--misslink-run")
    named = given or pytestconfig.getini("misslink_run")
    if not named:
        pytest.fail(
            "there is no run: set misslink_run in pytest's configuration, give "
            "--misslink-run=FOLDER, or define a fixture misslink_run that returns what "
            "misslink.evaluate returns",
            pytrace=False,
        )
    try:
        return read_whole(Path(named) if given else _from_root(pytestconfig, named))
    except InputError as problem:
        _fail(problem)


@pytest.fixture(scope="session")
def assert_gate(request: pytest.FixtureRequest) -> Callable[..., None]:
    """A function of a criteria file, and if need be a run and a baseline; see `check_gate`.

    Paths are from pytest's root folder (``rootdir``), where its configuration is; that of the
    option ``--misslink-run=FOLDER`` alone is from the working folder.
    """

    def check(
        criteria: str | Path, run: Run | str | Path | None = None, baseline: Any = None
    ) -> None:
        __tracebackhide__ = True
        from misslink.errors import InputError

        root = request.config
        held = request.getfixturevalue("misslink_run") if run is None else _placed(root, run)
        try:
            check_gate(_from_root(root, criteria), held, _placed(root, baseline))
        except InputError as problem:
            _fail(problem)

    return check


def check_gate(criteria: str | Path, run: Run | str | Path, baseline: Any = None) -> None:
    """Raise where a run does not meet its criteria; of a gate of severity warning, warn.

    Parameters
    ----------
    criteria : path
    run : Run or path
        A run, or the folder of one.
    baseline : Run, path or None
        A run, its folder, or a summary.json.

    Raises
    ------
    AssertionError
        A gate of severity error failed; the message says which and why.
    InputError
        The criteria, the run or the baseline cannot be read, or do not go together.
    """
    __tracebackhide__ = True
    from misslink.deciding.criteria import read_criteria
    from misslink.deciding.gate import decide
    from misslink.files import read_whole

    wanted = read_criteria(criteria)
    folder = run if isinstance(run, str | Path) else None
    held = read_whole(run) if isinstance(run, str | Path) else run
    decision = decide(held, wanted, _baseline(baseline), folder=folder)
    if not decision.passed:
        raise AssertionError(decision.text())
    if decision.failed:
        warnings.warn(decision.text(), stacklevel=2)


def _fail(problem: Exception) -> NoReturn:
    """End a test on a mistake of whoever set it up: its one sentence, no traceback."""
    from misslink.files.markdown import in_line

    raise pytest.fail.Exception(in_line(str(problem)), pytrace=False) from None


def _baseline(given: Any) -> Baseline | None:
    from misslink.deciding.baseline import Baseline, read_baseline

    if given is None:
        return None
    if isinstance(given, str | Path):
        return read_baseline(given)
    return Baseline(Path("given as a run"), given, given.summary)


def _placed(config: pytest.Config, given: Any) -> Any:
    return _from_root(config, given) if isinstance(given, str | Path) else given


def _from_root(config: pytest.Config, path: str | Path) -> Path:
    return config.rootpath / path  # an absolute path stays
