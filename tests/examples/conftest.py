"""The demo's app, loaded by its path as `misslink evaluate` does."""

import importlib.util
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "python_reference"


@pytest.fixture(scope="session")
def app():
    pytest.importorskip("langchain_text_splitters", reason="needs misslink[langchain]")
    sys.path.insert(0, str(FOLDER))
    spec = importlib.util.spec_from_file_location("python_reference_app", FOLDER / "app.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path.remove(str(FOLDER))


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory):
    """Where the vectors of the reference are kept: they take a minute, and two examples use them."""
    return tmp_path_factory.mktemp("python_reference")


@pytest.fixture(scope="session")
def local_models(app):
    return sys.modules[app.MiniLM.__module__]


@pytest.fixture(scope="session")
def passages(app):
    return app.split_reference()
