"""Run the tests of the changes that are not committed, or if all are, of the last commit.

With a revision, of all changes since it: python tests/quick.py [REV].

A package's tests are in the folder of the same name, and those of a builder import it.
"""

import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src"
MOST_USERS = 3  # packages that use a changed one whose tests run, those that use it most


def changed_files(revision):
    """Return tracked files that differ from `revision`, and new ones."""
    diff = ["git", "diff", "--name-only", revision]
    new = ["git", "ls-files", "--others", "--exclude-standard"]
    return [
        Path(line)
        for command in (diff, new)
        for line in subprocess.run(
            command, cwd=TESTS.parent, capture_output=True, text=True, check=True
        ).stdout.splitlines()
    ]


def tests_of(files):
    """Return the test folders and files to run."""
    chosen = {"test_layout.py"}
    for file in files:
        parts = file.parts
        if parts[:2] == ("tests", "builders"):
            chosen.update(users_of(file.stem))
        elif parts[0] == "tests":
            whole = file if file.name.startswith("test_") else file.parent
            chosen.add(str(whole.relative_to("tests")))
        elif parts[:2] == ("src", "misslink"):
            inner = "/".join(parts[2:4])  # a folder in a package, where that has tests of its own
            own = inner if (TESTS / inner).is_dir() else parts[2]
            chosen |= {own, f"test_{parts[2]}", f"test_{file.stem}.py", "cli/test_messages.py"}
            module = ".".join(file.with_suffix("").parts[1:]).removesuffix(".__init__")
            chosen |= {*users_of_module(module), *whole_project_tests_of(module)}
        elif parts[0] == "prompts":
            chosen.add("judge")
        elif parts[0] == "examples":
            chosen.add("examples")
        elif file.suffix == ".md":
            chosen.update(["test_readme.py", "test_contributing.py"])
    return sorted(
        str(TESTS / name)
        for name in chosen - {".", "gold"}
        if (TESTS / name).is_dir() or ((TESTS / name).exists() and "test_" in name)
    )


@cache
def import_graph():
    """Who imports whom in the package, without imports for type checkers alone."""
    import grimp

    sys.path.insert(0, str(SOURCE))
    return grimp.build_graph("misslink", exclude_type_checking_imports=True)


def users_of_module(module):
    """Return the packages that import a module most, other than its own."""
    graph, own = import_graph(), ".".join(module.split(".")[:2])
    users = Counter()
    for name in (module, own):  # what is registered is imported by nobody, but its package is
        if name in graph.modules and not users:
            users.update(
                user.split(".")[1]
                for user in graph.find_modules_that_directly_import(name)
                if not f"{user}.".startswith(f"{own}.")
            )
    return [name for name, _ in users.most_common(MOST_USERS)]


def whole_project_tests_of(module):
    """Return the test files beside the folders that import a module."""
    imports = re.compile(rf"^(?:from|import) {re.escape(module)} ", re.MULTILINE)
    files = TESTS.glob("test_*.py")
    return [path.name for path in files if imports.search(path.read_text(encoding="utf-8"))]


def users_of(builder):
    """Return the test files that import a builder."""
    imports = re.compile(rf"^(?:from|import) {builder}\b", re.MULTILINE)
    return [
        str(path.relative_to(TESTS))
        for path in TESTS.rglob("test_*.py")
        if imports.search(path.read_text(encoding="utf-8"))
    ]


if __name__ == "__main__":
    changed = changed_files(sys.argv[1] if len(sys.argv) > 1 else "HEAD")
    places = tests_of(changed or changed_files("HEAD~1"))
    sys.stderr.write("Running " + " ".join(Path(place).name for place in places) + "\n")
    sys.exit(
        subprocess.run(
            [sys.executable, "-m", "pytest", "-n", "auto", "--dist", "worksteal", *places],
            check=False,
        ).returncode
    )
