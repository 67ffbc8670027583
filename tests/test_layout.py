"""The size of each package, and the layers between them."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from code_size import BUDGETS, PACKAGE, SELF_CONTAINED, sizes

pytestmark = pytest.mark.source

ROOT = Path(__file__).parents[1]
LONGEST = 700  # physical lines of a file


@pytest.mark.parametrize("package", sorted(BUDGETS))
def test_a_package_is_within_its_budget(package):
    assert sizes()[package] <= BUDGETS[package], "shorten it, or raise its budget and say why"


def test_every_package_has_a_budget():
    assert {path.parts[0] for path in PACKAGE.rglob("*.py")}
    folders = {path.parent.relative_to(PACKAGE).parts[0] for path in PACKAGE.glob("*/*.py")}
    assert folders <= set(BUDGETS)


def test_no_file_is_longer_than_a_reader_can_follow():
    lengths = {
        str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in PACKAGE.rglob("*.py")
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_a_class_name_occurs_once_in_the_core():
    places = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        if path.relative_to(PACKAGE).parts[0] in SELF_CONTAINED:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_each_layer_imports_only_earlier_ones():
    """The contracts are in pyproject.toml."""
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
