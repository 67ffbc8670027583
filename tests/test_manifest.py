"""What a run was made of: the app's own code is known again, and nothing else is taken for it."""

import sys
from pathlib import Path

import pytest

from misslink.io.manifest import hash_app_code
from misslink.user_code import import_target


@pytest.fixture
def app(tmp_path, monkeypatch, imports_forgotten):
    """An app of two files in a working folder, freshly imported at each call; its hash."""
    monkeypatch.chdir(tmp_path)
    Path("manifest_parts.py").write_text("K = 1", encoding="utf-8")
    Path("manifest_app.py").write_text("import manifest_parts", encoding="utf-8")

    def imported():
        for name in ("manifest_parts", "manifest_app"):
            sys.modules.pop(name, None)
        before = frozenset(sys.modules)
        import_target("manifest_app.py", Path.cwd())
        return hash_app_code("manifest_app.py:app", before=before)

    return imported


def test_the_same_code_is_known_again(app):
    assert app() == app()


@pytest.mark.parametrize("name", ["manifest_app.py", "manifest_parts.py"])
def test_an_edit_of_the_app_or_of_what_it_imports_is_seen(app, name):
    before = app()
    Path(name).write_text(Path(name).read_text(encoding="utf-8") + "\n# edited", encoding="utf-8")
    assert app() != before


def test_a_script_in_the_working_folder_that_the_app_did_not_import_is_none_of_its_code(app):
    alone = app()
    whole = hash_app_code("manifest_app.py:app")
    Path("manifest_other.py").write_text("", encoding="utf-8")
    import_target("manifest_other.py", Path.cwd())
    assert app() == alone
    assert hash_app_code("manifest_app.py:app") != whole, "without before all that is loaded counts"


def test_an_app_that_was_imported_before_counts_all_the_same(app):
    app()
    before = frozenset(sys.modules)
    known = hash_app_code("manifest_app.py:app", before=before)
    Path("manifest_app.py").write_text("import manifest_parts\n# edited", encoding="utf-8")
    assert hash_app_code("manifest_app.py:app", before=before) != known


@pytest.mark.slow
def test_python_and_installed_packages_are_no_code_of_the_app(app, monkeypatch):
    app()
    known = hash_app_code("manifest_app.py:app")
    monkeypatch.chdir("/")  # everything lies in this folder
    monkeypatch.setitem(sys.modules, "made_up_of_pytest", pytest)
    assert hash_app_code(str(known)) == hash_app_code(str(known))
    installed = Path("nowhere/site-packages/manifest_lib.py")
    fake = type(sys)("manifest_lib")
    fake.__file__ = str(installed.resolve())
    whole = hash_app_code("manifest_app.py:app")
    monkeypatch.setitem(sys.modules, "manifest_lib", fake)
    assert hash_app_code("manifest_app.py:app") == whole
