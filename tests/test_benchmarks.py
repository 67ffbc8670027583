"""Benchmarks and examples run rarely: what they take from misslink must still be there."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS, EXAMPLES = ROOT / "benchmarks", ROOT / "examples"
SCRIPTS = sorted([*BENCHMARKS.rglob("*.py"), *EXAMPLES.rglob("*.py")])
# The smallest size of those that have one; the rest import, and tests call their functions.
SMALL = {path: ["--smoke"] for path in SCRIPTS if '"--smoke"' in path.read_text("utf-8")} | {
    BENCHMARKS / name: options.split()
    for name, options in {
        "robustness.py": "--part losses --part unlike --part answers --rounds 1",
        "io/trace_input.py": "--traces 20 --passages 20",
        "judge/judge_throughput.py": "--only ours --cases 10 --many-cases 20",
        "linking/link_speed.py": "--cases 10 --passages 50",
        "pipeline/scale.py": "--cases 10",
        "retrieval/rank_metrics_stream.py": "--queries 100",
        "stats/association_coverage.py": "--rounds 2",
    }.items()
}


def module_or_name(module, name):
    """What `from module import name` gives; None if there is no such name."""
    if not hasattr(module, name):
        try:
            return importlib.import_module(f"{module.__name__}.{name}")
        except ModuleNotFoundError:
            return None
    return getattr(module, name)


@pytest.mark.source
def test_a_script_names_only_what_misslink_has():
    assert {path: missing for path in SCRIPTS if (missing := names_missing_in(path))} == {}


def names_missing_in(path):
    """What a script takes from misslink, or of one of its modules, and is not there."""
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
    return missing


IMPORT_ALL = """
import importlib, pathlib, sys
sys.argv = ["benchmark"]
here = pathlib.Path.cwd()
sys.path[:0] = [str(path) for path in (here, *here.iterdir()) if path.is_dir()]
for path in sorted([*here.glob("*.py"), *here.glob("*/*.py")]):
    try:
        importlib.import_module(path.stem)
    except ModuleNotFoundError as missing:
        if (missing.name or "").startswith("misslink"):
            raise
        print("not installed:", missing.name)
"""


@pytest.mark.source
@pytest.mark.slow
def test_every_benchmark_imports():
    """In one process of its own: some set options of the process."""
    command = [sys.executable, "-c", IMPORT_ALL]
    done = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.source
@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(SMALL), ids=lambda path: path.name)
def test_a_benchmark_starts_in_its_smallest_size(path):
    if path.stem == "ray_workers":
        pytest.importorskip("ray", reason="the extra ray is not installed")
    command = [sys.executable, str(path), *SMALL[path]]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stdout.strip()


@pytest.mark.source
def test_the_cpu_budget_is_skipped_and_says_so_where_the_clone_lacks_the_commit():
    command = [sys.executable, "benchmarks/cpu_budget.py", "--against", "0" * 40]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("skipped:")


@pytest.mark.source
def test_every_page_of_a_benchmark_says_what_it_measured(tmp_path):
    from stale_pages import MEASURED, Measurement, measurement, stamp

    pages = sorted(BENCHMARKS.rglob("*.md"))
    assert {page.stem for page in pages} <= set(MEASURED)
    for parts in MEASURED.values():
        assert [part for part in parts if not (ROOT / "src/misslink" / part).exists()] == []
    page = tmp_path / "ties.md"
    said = Measurement("0123456789abcdef", ("linking", "text"))
    page.write_text(f"# Ties\n\n{said.line}\n", encoding="utf-8")
    stamp(page)
    assert measurement(page) == said
    assert page.read_text(encoding="utf-8").count("Measured at") == 1
