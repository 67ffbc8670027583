"""Apps by name, and what is said of names that are none."""

import subprocess
import sys

import pytest

from misslink.capture import load_app
from misslink.errors import InputError

FILE = """
from dataclasses import dataclass
import {helper}
VALUE = 3
def answer(question):
    return {helper}.PREFIX + question
def build():
    return answer
def build_for(index, k):
    return answer
def build_with_error():
    return 1 / 0
def build_nothing():
    pass
class App:
    def __call__(self, question):
        return question
    inner = staticmethod(answer)
app = App()
"""


pytestmark = pytest.mark.usefixtures("imports_forgotten")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "helper_here.py").write_text("PREFIX = 'you asked '\n")
    (tmp_path / "my_rag.py").write_text(FILE.format(helper="helper_here"))
    package = tmp_path / "my_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper_there.py").write_text("PREFIX = 'there '\n")
    (package / "chain.py").write_text(FILE.format(helper="helper_there"))
    return tmp_path


def refused(spec, folder):
    with pytest.raises(InputError) as caught:
        load_app(spec, folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_by_module(folder):
    assert load_app("my_rag:answer", folder)("why") == "you asked why"


def test_by_file_with_its_own_folder_importable(folder):
    assert load_app("my_package/chain.py:answer", folder)("why") == "there why"


def test_by_absolute_path(folder, tmp_path_factory):
    spec = f"{folder / 'my_rag.py'}:answer"
    assert load_app(spec, tmp_path_factory.mktemp("elsewhere"))("why") == "you asked why"


def test_an_attribute_of_an_attribute(folder):
    assert load_app("my_rag:app.inner", folder)("why") == "you asked why"


def test_a_function_without_parameters_builds_the_app(folder):
    assert load_app("my_rag:build", folder)("why") == "you asked why"


def test_a_file_named_like_a_library_does_not_take_its_place(folder):
    (folder / "json.py").write_text("def app(question):\n    return question\n")
    import json

    assert load_app("json.py:app", folder)("why") == "why"
    assert sys.modules["json"] is json


@pytest.mark.parametrize("spec", ["my_rag", "my_rag:", ":app", ""])
def test_no_colon_or_nothing_beside_it(folder, spec):
    assert "package.module:attribute" in refused(spec, folder)


def test_no_such_file_names_the_nearest(folder):
    said = refused("my_rga.py:app", folder)
    assert "there is no file my_rga.py" in said
    assert "did you mean 'my_rag.py'?" in said


def test_no_such_module_names_the_nearest(folder):
    said = refused("my_rga:app", folder)
    assert "there is no module 'my_rga'" in said
    assert "did you mean 'my_rag'?" in said


def test_no_such_attribute_names_the_nearest(folder):
    assert "did you mean 'answer'?" in refused("my_rag:answr", folder)


def test_no_such_attribute_and_nothing_near(folder):
    assert "it has" in refused("my_rag:zzz", folder)


@pytest.mark.parametrize(
    ("body", "said", "line"),
    [
        ("x = 1\ny = x / 0\n", "ZeroDivisionError: division by zero", 2),
        ("import not_installed_at_all\n", "No module named 'not_installed_at_all'", 1),
        ("def broken(:\n", "SyntaxError: invalid syntax", 1),
        ("import sys\nsys.exit(4)\n", "SystemExit: 4", 2),
    ],
)
@pytest.mark.parametrize("spec", ["boom:app", "boom.py:app"])
def test_a_module_that_raises_is_named_with_its_line(folder, body, said, line, spec):
    (folder / "boom.py").write_text(body)
    message = refused(spec, folder)
    assert message.startswith(f"{folder / 'boom.py'}, line {line}: importing boom")
    assert said in message
    assert "boom" not in sys.modules


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        ("VALUE", "is an int, not an app"),
        ("App", "is a class, not an app; name an instance of it, say  app = App(...)"),
        ("build_for", "say  app = build()"),
        ("build_nothing", "is a NoneType, not an app"),
        ("build_with_error", "ZeroDivisionError"),
        ("helper_here", "is a module, not an app"),
    ],
)
def test_what_is_no_app_is_told_apart(folder, attribute, said):
    assert said in refused(f"my_rag:{attribute}", folder)


def test_a_graph_that_was_not_compiled(folder):
    pytest.importorskip("langgraph")
    (folder / "graph.py").write_text(
        "from langgraph.graph import StateGraph, MessagesState\napp = StateGraph(MessagesState)\n"
    )
    assert ".compile()" in refused("graph.py:app", folder)


@pytest.mark.slow
def test_loading_and_watching_import_no_langchain_before_there_is_an_app():
    code = (
        "import sys, misslink.capture; misslink.record_retrieval('q', 5);"  # no evaluation records it
        "print([m for m in sys.modules if m.split('.')[0] in ('langchain_core', 'langchain', "
        "'langgraph', 'chromadb', 'httpx', 'torch', 'numpy', 'pandas')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_app_that_lacks_a_package_of_an_extra_gets_the_pip_command(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "langchain_chroma", None)
    (tmp_path / "lacking.py").write_text("import langchain_chroma\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"pip install 'misslink\[langchain\]'"):
        load_app(f"{tmp_path / 'lacking.py'}:chain")
