"""The size of each package, and the layers between them."""

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

from code_size import BUDGETS, PACKAGE, SELF_CONTAINED, SLACK, sizes
from message_texts import syntax, text_of
from misslink.render.reasons import SENTENCES

pytestmark = pytest.mark.source

ROOT = Path(__file__).parents[1]
LONGEST = 700  # physical lines of a file
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees():
    """The syntax of each file of the package."""
    return {path.relative_to(PACKAGE): syntax(path) for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def functions():
    """Each function of the package, with its file."""
    return [
        (path, node)
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS)
    ]


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
        for path, node in functions()
        if "cli" not in path.with_suffix("").parts
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


def test_a_reason_code_has_one_sentence():
    """A code in two tables would have the sentence of the later one."""
    codes = [
        key.value
        for path, tree in trees().items()
        if path.parts[0] == "render"
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict)
        if ast.unparse(getattr(node, "target", None) or node.targets[0]).endswith("SENTENCES")
        for key in node.value.keys
        if key is not None
    ]
    assert len(codes) > 250
    assert [code for code, count in Counter(codes).items() if count > 1] == []


def test_layers_import_only_earlier_ones_and_matching_by_its_face_alone():
    """The contracts are in pyproject.toml."""
    command = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([command], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


MOST_LOOSE = 54


def test_fewer_and_fewer_functions_return_what_no_type_checker_sees():
    loose = [
        f"{path}:{node.name}"
        for path, node in functions()
        if node.returns is not None and ast.unparse(node.returns) == "dict[str, Any]"
    ]
    assert len(loose) <= MOST_LOOSE, "give it a Document or a dataclass, see documents.py"
    assert len(loose) == MOST_LOOSE, f"{len(loose)} are left: lower MOST_LOOSE"


# Computation gives numbers and reason codes, and `misslink.render` has the sentences. What is left:
MEASURING = ("calibration", "comparison", "gates", "linking", "metrics", "retrieval", "stats")
SENTENCES_LEFT = {
    "linking": 3,
}
_WORD = re.compile(r"(?<![\w{])[A-Za-z][a-z]*(?![\w}])")
_FEWEST_WORDS = 4  # of a sentence


_TOLD = re.compile(r"[eE]rror$|\b_?log\.|\bwarn$")  # calls that tell what is wrong with an input
_DECLARED = {"description", "method"}  # what a setting means, how a number is made
_PATTERN = re.compile(r"\(\?|\[\^|\\[bds]")


def of_errors(tree):
    """The nodes of errors and warnings, with the functions and the variables that give their texts."""
    scopes = [tree, *(node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))]
    made = {
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise)
        or (isinstance(node, ast.Call) and _TOLD.search(ast.unparse(node.func)))
    }
    within = {scope: list(ast.walk(scope)) for scope in scopes}
    found = set()
    while made - found:
        found |= {part for node in made for part in ast.walk(node)}
        called = {name_of(node.func) for node in found if isinstance(node, ast.Call)}
        made = {
            node
            for scope in scopes[1:]
            if scope.name in called
            for node in within[scope]
            if isinstance(node, ast.Return | ast.Yield)
        }
        for scope, inside in within.items():
            names = {node.id for node in inside if node in found and isinstance(node, ast.Name)}
            for node in scope.body if scope is tree else inside:
                if isinstance(node, ast.Assign | ast.NamedExpr) and names & set(targets(node)):
                    made.add(node)
                if isinstance(node, ast.For) and names & set(map(name_of, ast.walk(node.target))):
                    made.add(node.iter)
    return found


def name_of(node):
    return getattr(node, "id", None) or getattr(node, "attr", None)


def targets(node):
    """The names that a statement gives a value."""
    given = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [name_of(part) for each in given for part in ast.walk(each)]


def sentences_of(tree):
    """The texts by which a module says what came out, and not what is wrong with an input.

    Nor what a class says of itself: the question of a judged metric is in the one file that adds it.
    """
    skipped = of_errors(tree) | {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= set(ast.walk(node)) - {node}
        named = [node.arg] if isinstance(node, ast.keyword) else []
        named += targets(node) if isinstance(node, ast.Assign) else []
        if _DECLARED & {str(name).strip("_").lower() for name in named}:
            skipped |= set(ast.walk(node))
        for part in node.body if isinstance(node, ast.ClassDef) else ():
            skipped |= (
                set(ast.walk(part)) if isinstance(part, ast.Assign | ast.AnnAssign) else set()
            )
    for node in ast.walk(tree):
        text = None if node in skipped else text_of(node)
        if (
            text
            and " " in text
            and len(_WORD.findall(text)) >= _FEWEST_WORDS
            and not _PATTERN.search(text)
        ):
            yield text


def test_measuring_packages_have_fewer_and_fewer_sentences():
    found = {name: [] for name in MEASURING}
    for path, tree in trees().items():
        if path.parts[0] in found:
            found[path.parts[0]] += sentences_of(tree)
    left = {name: len(texts) for name, texts in found.items() if texts}
    assert left == SENTENCES_LEFT, f"give a Reason; if there are fewer, lower the number: {found}"
