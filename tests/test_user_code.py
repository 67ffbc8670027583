"""Files and modules of the user's own, and whose line it is that failed."""

import json
import sys

import pytest

from misslink.errors import InputError
from misslink.user_code import error_location, import_target, resolve_attribute

pytestmark = pytest.mark.usefixtures("imports_forgotten")


def test_a_file_is_run_anew_each_time_and_keeps_its_name_where_that_is_free(tmp_path):
    (tmp_path / "mine_alone.py").write_text("VALUE = []\n")
    first = import_target("mine_alone.py", tmp_path)
    second = import_target("mine_alone.py", tmp_path)
    assert first.__name__ == "mine_alone"
    assert sys.modules["mine_alone"] is first
    assert second.__name__ != "mine_alone"
    assert first.VALUE is not second.VALUE


def test_a_file_named_like_a_loaded_module_leaves_that_alone(tmp_path):
    (tmp_path / "json.py").write_text("VALUE = 7\n")
    assert import_target("json.py", tmp_path).VALUE == 7
    assert sys.modules["json"] is json


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.mkdir()
    (home / "in_my_home.py").write_text("VALUE = 7\n")
    monkeypatch.setenv("HOME", str(home))
    assert import_target("~/in_my_home.py", elsewhere).VALUE == 7


def test_a_dotted_attribute_is_followed_and_a_wrong_step_named(tmp_path):
    (tmp_path / "with_inner.py").write_text("class Outer:\n    inner = 7\n")
    module = import_target("with_inner", tmp_path)
    assert resolve_attribute(module, "Outer.inner", "with_inner") == 7
    with pytest.raises(InputError, match=r"with_inner has no 'iner'; did you mean 'inner'\?"):
        resolve_attribute(module, "Outer.iner", "with_inner")


def test_an_empty_module_says_so(tmp_path):
    (tmp_path / "nothing_in_it.py").write_text("")
    module = import_target("nothing_in_it.py", tmp_path)
    with pytest.raises(InputError, match="has no 'app'; it is empty"):
        resolve_attribute(module, "app", "nothing_in_it.py")


def test_the_place_of_an_error_is_the_users_line_and_no_librarys(tmp_path):
    (tmp_path / "asks_a_library.py").write_text(
        "import json\nfrom misslink.types import Case\n\n"
        "def library():\n    json.loads('{')\n\n"
        "def ours():\n    Case.model_validate([])\n"
    )
    module = import_target("asks_a_library.py", tmp_path)
    for function, line in ((module.library, 5), (module.ours, 8)):
        with pytest.raises(ValueError) as caught:  # noqa: PT011 - whatever it says
            function()
        assert error_location(caught.value) == (str(tmp_path / "asks_a_library.py"), line)


def test_an_error_without_a_line_of_anybodys_own_has_no_place():
    with pytest.raises(ValueError, match="property name") as caught:
        json.loads("{")
    inside = caught.value.with_traceback(caught.value.__traceback__.tb_next)
    assert error_location(inside) is None
