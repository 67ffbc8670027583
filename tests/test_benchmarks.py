"""Benchmarks run rarely: what they take from misslink must still be there."""

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def module_or_name(module, name):
    """What `from module import name` gives; None if there is no such name."""
    if not hasattr(module, name):
        try:
            return importlib.import_module(f"{module.__name__}.{name}")
        except ModuleNotFoundError:
            return None
    return getattr(module, name)


@pytest.mark.source
@pytest.mark.parametrize(
    "path", sorted(BENCHMARKS.rglob("*.py")), ids=lambda path: str(path.relative_to(BENCHMARKS))
)
def test_a_benchmark_names_only_what_misslink_has(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    taken, missing = {}, []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("misslink"):
            module = importlib.import_module(node.module)
            for alias in node.names:
                found = module_or_name(module, alias.name)
                missing += [f"{node.module}.{alias.name}"] if found is None else []
                if isinstance(found, ModuleType):
                    taken[alias.asname or alias.name] = found
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = taken.get(node.value.id)
            if module is not None and not hasattr(module, node.attr):
                missing.append(f"{module.__name__}.{node.attr}")
    assert missing == []
