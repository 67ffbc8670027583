"""What goes to machines that do not have an app's code: its folder, and no more."""

import sys

import pytest

from misslink.capture import load_app
from misslink.engines.ray import code_bundle as parcel
from misslink.engines.ray.code_bundle import pack_code, unpack_code
from misslink.errors import InputError

pytestmark = pytest.mark.usefixtures("imports_forgotten")


def write(folder, **files):
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_file_goes_with_what_lies_beside_it_and_is_loaded_from_there(tmp_path):
    write(
        tmp_path,
        mine__parcelled_py="from beside_it import told\napp = lambda question: told\n",
        mine__beside_it_py="told = 'blue'\n",
        mine__sub__data="1",
        outside="no",
    )
    found = pack_code("mine/parcelled.py:app", tmp_path)
    folder = unpack_code(found.archive)
    assert names(folder) == ["beside_it.py", "parcelled.py", "sub/data"]
    assert load_app(found.spec, folder)("what?") == "blue"
    assert sys.modules["parcelled"].__file__ == str(folder.resolve() / "parcelled.py")


def test_hidden_files_links_byte_code_and_environments_stay(tmp_path):
    write(tmp_path, app_py="", **{"__pycache__/x": "", ".git/config": "", ".env": "KEY=secret"})
    write(tmp_path, venv__lib__module_py="", venv__pyvenv="")
    (tmp_path / "venv" / "pyvenv.cfg").touch()
    (tmp_path / "link").symlink_to("/etc/hostname")
    assert names(unpack_code(pack_code("app.py:app", tmp_path).archive)) == ["app.py"]


def test_of_a_module_only_its_package_goes(tmp_path):
    write(tmp_path, package__inner_py="app = str.upper\n", package__x="", other__y="")
    found = pack_code("package.inner:app", tmp_path)
    assert names(unpack_code(found.archive)) == ["package/inner.py", "package/x"]


def test_what_is_not_here_is_left_to_the_workers(tmp_path):
    assert pack_code("installed.elsewhere:app", tmp_path) is None
    assert pack_code("absent.py:app", tmp_path) is None


def test_a_large_folder_is_refused_with_a_fix(tmp_path, monkeypatch):
    monkeypatch.setattr(parcel, "MAX_BUNDLE_BYTES", 2**20)
    write(tmp_path, app_py="", index="x" * 2**20, more="x")
    with pytest.raises(
        InputError, match=r"larger than 1 MiB. Move the app's code to a separate folder"
    ):
        pack_code("app.py:app", tmp_path)


def test_files_of_any_date_go(tmp_path):
    write(tmp_path, app_py="app = 1")
    import os

    os.utime(tmp_path / "app.py", (0, 0))  # 1970, which a zip archive cannot say
    assert names(unpack_code(pack_code("app.py:app", tmp_path).archive)) == ["app.py"]
