"""Gates in a pytest suite: the fixtures ``misslink_run`` and ``assert_gate``."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

if TYPE_CHECKING:
    from misslink.types import Run


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add where the run is."""
    help_text = "run folder of misslink that the fixture misslink_run reads"
    parser.addini("misslink_run", help_text, default="")
    parser.getgroup("misslink").addoption("--misslink-run", metavar="FOLDER", help=help_text)


@pytest.fixture(scope="session")
def misslink_run(pytestconfig: pytest.Config) -> Run:
    """The run that gates are checked on."""
    from misslink.errors import InputError
    from misslink.types import Run

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
        return Run.read(Path(named) if given else pytestconfig.rootpath / named)
    except InputError as problem:
        _fail_test(problem)


@pytest.fixture(scope="session")
def assert_gate(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Check a criteria file, by default on `misslink_run`; see `check_gate` for the arguments.

    Paths are from pytest's root folder (``rootdir``), where its configuration is; that of the
    option ``--misslink-run=FOLDER`` alone is from the working folder.
    """

    def check(
        criteria: str | Path,
        run: Run | str | Path | None = None,
        baseline: Any = None,
        *,
        allow_missing_baseline: bool = False,
    ) -> None:
        __tracebackhide__ = True
        from misslink.errors import InputError

        root = request.config.rootpath  # an absolute path stays
        held = request.getfixturevalue("misslink_run") if run is None else run
        held, before = (root / x if isinstance(x, str | Path) else x for x in (held, baseline))
        try:
            check_gate(root / criteria, held, before, allow_missing_baseline=allow_missing_baseline)
        except InputError as problem:
            _fail_test(problem)

    return check


def check_gate(
    criteria: str | Path,
    run: Run | str | Path,
    baseline: Any = None,
    *,
    allow_missing_baseline: bool = False,
) -> None:
    """Raise where a run does not meet its criteria; of a gate of severity warning, warn.

    Parameters
    ----------
    criteria : path
    run : Run or path
        A run, or the folder of one.
    baseline : Run, path or None
        A run, its folder, or a summary.json.
    allow_missing_baseline : bool
        Without a baseline, do not check regressions and new failures.

    Raises
    ------
    AssertionError
        A gate of severity error failed; the message says which and why.
    InputError
        The criteria, the run or the baseline cannot be read, or do not go together.
    """
    __tracebackhide__ = True
    import misslink

    decision = misslink.gate(run, criteria, baseline, allow_missing_baseline=allow_missing_baseline)
    if not decision.passed:
        raise AssertionError(decision.text())
    if decision.failed:
        warnings.warn(decision.text(), stacklevel=2)


# How a test passes the options of the command.
_ARGUMENTS = {
    "--allow-missing-baseline": "allow_missing_baseline=True",
    "--baseline": "baseline=...",
}


def _fail_test(problem: Exception) -> NoReturn:
    """Fail a test with the one sentence of an input error, without a traceback."""
    from misslink.render.markdown import single_line

    text = single_line(str(problem))
    for flag, argument in _ARGUMENTS.items():
        text = text.replace(flag, f"assert_gate(..., {argument})")
    raise pytest.fail.Exception(text, pytrace=False) from None
