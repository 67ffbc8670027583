"""What tests of several packages share."""

import gc
import os
import signal
import ssl
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("ANONYMIZED_TELEMETRY", "False")
# Read when numpy or torch is first imported. Tests run on all cores; threads of their own that wait
# for each other made some ten times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import optional_models
from judge_server import JudgeServer

gc.disable()  # until all is collected

# A shell starts what runs in the background with the interrupt ignored, and nohup the hang-up; tests of
# Ctrl-C would wait forever.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Each HTTP client reads the certificates anew, for 30 ms; the tests open hundreds, none with TLS.
ssl.create_default_context = cache(ssl.create_default_context)

# No test measures time: a machine with other work to do is slow, and nothing is wrong. Few examples, which
# differ each time, are enough for a run that is made after each change; `make test-slow` takes many.
settings.register_profile("few", deadline=None, max_examples=25)
settings.register_profile("many", deadline=None, max_examples=100)
settings.load_profile("few")


def pytest_collection_modifyitems(items):
    """Without a source tree, what reads it is skipped; all else tests what is installed."""
    if (Path(__file__).parents[1] / "src" / "misslink").is_dir():
        return
    absent = pytest.mark.skip(reason="no src/misslink here: the tests run against a wheel")
    for item in items:
        if item.get_closest_marker("source"):
            item.add_marker(absent)


# Ray's tests start many processes, and beside each other take eight times as long; the examples share
# vectors that take a minute. Pages that are run and simulated apps share nothing, and fill the time at
# the end.
_ONE_BY_ONE = ("tests/engines", "tests/examples")
_APART = ("tests/test_readme.py", "tests/linking/replay/test_replay_results.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With ``--dist loadfile``, keep the tests of some folders in one process, and split two files."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class FolderScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            if file in _APART:
                return nodeid
            folder = file.rpartition("/")[0]
            return folder if folder in _ONE_BY_ONE else file

    return FolderScheduling(config, log)


def pytest_collection_finish():
    """Thousands of items and modules stay to the end: the garbage collector need not visit them."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 100)  # what tests make and what libraries keep is visited seldom
    gc.enable()


def pytest_sessionfinish():
    """What is left needs no more visits: pytest and the interpreter would make a dozen of them."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def no_optional_models():
    """Whether UMAP and MiniLM are installed must decide no test."""
    with pytest.MonkeyPatch.context() as patch:
        optional_models.leave_out(patch.setattr)
        yield


@pytest.fixture
def judge_server():
    """A running JudgeServer; give it a `script` to misbehave."""
    with JudgeServer() as server:
        yield server


@pytest.fixture(scope="session")
def warm_commands():
    """A folder to put first on the PATH of a shell: `misslink` and `python` start fast from there."""
    import warm_program  # it starts nothing before a command does

    with warm_program.commands() as folder:
        yield folder


@pytest.fixture
def imports_forgotten(monkeypatch, tmp_path_factory):
    """What a test imports from its own folders and puts on the path is gone after it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    folders = str(tmp_path_factory.getbasetemp())
    yield
    for name in set(sys.modules) - before:
        if (getattr(sys.modules[name], "__file__", None) or "").startswith(folders):
            del sys.modules[name]
