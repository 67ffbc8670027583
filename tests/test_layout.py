"""The size of each package, and the layers between them."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

from code_size import BUDGETS, PACKAGE, SELF_CONTAINED, SLACK, sizes
from misslink.render.reasons import SENTENCES

pytestmark = pytest.mark.source

ROOT = Path(__file__).parents[1]
LONGEST = 700  # physical lines of a file


@cache
def trees():
    """The syntax of each file of the package."""
    return {
        path.relative_to(PACKAGE): ast.parse(path.read_text(encoding="utf-8"))
        for path in PACKAGE.rglob("*.py")
    }


@pytest.mark.slow
def test_each_package_is_within_its_budget():
    assert {path.parts[0] for path in trees() if len(path.parts) > 1} <= set(BUDGETS)
    longer = {
        name: lines
        for name, lines in sizes().items()
        if lines > (budget := BUDGETS.get(name, 0)) + max(SLACK[0] * budget, SLACK[1])
    }
    assert longer == {}, "shorten it, or raise its budget and say why"


def test_no_file_is_longer_than_a_reader_can_follow():
    lengths = {
        str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in PACKAGE.rglob("*.py")
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST} == {}


def test_a_class_name_occurs_once_in_the_core():
    places = defaultdict(list)
    for path, tree in trees().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and path.parts[0] not in SELF_CONTAINED:
                places[node.name].append(str(path))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


MOST_PARAMETERS = 8
# The public functions are one call with all options. The others are still to get an options object.
LONG_CALLS = {
    "api/calibrate.py calibrate",
    "api/replay.py replay",
    "api/whatif.py whatif",
    "pipeline/evaluate.py evaluate",
    "pipeline/rejudge.py rejudge",
    "api/selftest.py selftest",
    "goldset/generation/pipeline.py generate_async",
    "goldset/generation/pipeline.py preview_async",
    "goldset/pooling/pool.py make_pool",
}


def test_a_function_has_at_most_eight_parameters():
    """Commands have one for each of their options."""
    long_calls = {
        f"{path} {node.name}"
        for path, tree in trees().items()
        if "cli" not in path.with_suffix("").parts
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for arguments in [[*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
        if sum(each.arg not in {"self", "cls"} for each in arguments) > MOST_PARAMETERS
    }
    assert long_calls == LONG_CALLS


def test_each_reason_code_has_its_sentence():
    codes = {
        found[1]
        for path in PACKAGE.rglob("*.py")
        for found in re.finditer(
            r'(?:Reason\(\s*code|reason_code)="(\w+)"',
            path.read_text(encoding="utf-8").replace(">>>", ""),
        )
    }
    assert codes - {"few"} <= set(SENTENCES)  # few: an example


def test_layers_import_only_earlier_ones_and_matching_by_its_face_alone():
    """The contracts are in pyproject.toml."""
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


MOST_LOOSE = 55


def test_fewer_and_fewer_functions_return_what_no_type_checker_sees():
    loose = [
        f"{path}:{node.name}"
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.returns is not None
        and ast.unparse(node.returns) == "dict[str, Any]"
    ]
    assert len(loose) <= MOST_LOOSE, "give it a Document or a dataclass, see documents.py"
    assert len(loose) == MOST_LOOSE, f"{len(loose)} are left: lower MOST_LOOSE"
